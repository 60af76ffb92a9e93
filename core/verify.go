package core

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/size"
)

// Verify checks res against every one of the [Rules] and returns all violations, joined; each is a [*ViolationError].
// It measures with req.Counter and leaves the rule on growth out if there is none. The request must be one that a
// [Chain] accepts: with different IDs and measured messages. The host, the conformance suite and the fuzz tests all
// call this function. The cost is linear.
func Verify(req *Request, res *Result) error {
	return (&verifier{req: req}).verify(res)
}

// VerifyPlaces checks only that res is an answer of parts whose messages have the IDs, the order and the roles of the rules: an [Edit]
// cannot express the rest.
func VerifyPlaces(req *Request, res *Result) error {
	v := &verifier{req: req}
	if v.read(res) {
		v.identity()
	}
	return v.err()
}

// read finds the messages of res in the request. It reports whether other checks can read them.
func (v *verifier) read(res *Result) bool {
	switch {
	case res == nil:
		v.fault(ruleAnswer, "", "neither messages nor an error came back")
		return false
	case len(res.Messages) == 0 && len(v.req.Messages) > 0:
		v.fault(ruleAnswer, "", "all %d messages are gone", len(v.req.Messages))
		return false
	}
	v.out = res.Messages
	if !v.parts() {
		return false
	}
	v.locate()
	return true
}

func (v *verifier) verify(res *Result) error {
	if !v.read(res) {
		return v.err()
	}
	v.abilities(res.Usage)
	v.ingested()
	v.identity()
	v.request()
	v.protected()
	v.words()
	v.content()
	v.tools()
	v.first()
	v.growth()
	return v.err()
}

type verifier struct {
	req     *Request
	out     []Message // of the result
	adopted bool      // the result is the combined one of a chain so far: new messages have IDs, too
	added   int       // tokens that the host has added to the result
	uncut   bool      // the newest request may not be cut even if it exceeds the limit
	from    []int     // for each of out, its index in the request; -1 if it is new
	same    []bool    // for each of out, whether it is known and has the parts that it had
	kept    []int     // for each of the request, its index in out; -1 if it is hidden
	faults  []error
}

func (v *verifier) fault(rule, id, format string, args ...any) {
	v.faults = append(v.faults, &ViolationError{Rule: rule, Message: id, Detail: fmt.Sprintf(format, args...)})
}

func (v *verifier) err() error { return errors.Join(v.faults...) }

func (v *verifier) parts() bool {
	for i := range v.out {
		for j, p := range v.out[i].Parts {
			if fault := invalidPart(p, true); fault != "" {
				v.fault(ruleParts, v.out[i].ID, "part %d: %s", j, fault)
			}
		}
	}
	return len(v.faults) == 0
}

// invalidPart describes the fault of p. The set of parts is closed, but a pointer to one satisfies the interface,
// too.
func invalidPart(p Part, top bool) string {
	switch p := p.(type) {
	case Text, Image, Reasoning, Opaque:
	case ToolCall:
		if !top {
			return "a tool call inside a tool result"
		}
	case ToolResult:
		if !top {
			return "a tool result inside a tool result"
		}
		for i, c := range p.Content {
			if fault := invalidPart(c, false); fault != "" {
				return fmt.Sprintf("content %d: %s", i, fault)
			}
		}
	default:
		return fmt.Sprintf("%T is not a part", p)
	}
	return ""
}

// locate finds the messages of the result in the request.
func (v *verifier) locate() {
	v.from = make([]int, len(v.out))
	v.same = make([]bool, len(v.out))
	v.kept = slices.Repeat([]int{-1}, len(v.req.Messages))
	find := finder(v.req.Messages)
	for i := range v.out {
		j := find(v.out[i].ID)
		v.from[i] = j
		if j < 0 {
			continue
		}
		v.same[i] = EqualParts(v.out[i].Parts, v.req.Messages[j].Parts)
		if v.kept[j] < 0 {
			v.kept[j] = i
		}
	}
}

func (v *verifier) identity() {
	last := -1
	for i := range v.out {
		m, j := &v.out[i], v.from[i]
		switch {
		case j < 0 && m.ID != "" && !v.adopted:
			v.fault(ruleKnown, m.ID, "the request has no such message")
			continue
		case j < 0:
			v.newcomer(i)
			continue
		case v.kept[j] != i:
			v.fault(ruleUnique, m.ID, "appears again")
			continue
		}
		if j < last {
			v.fault(ruleOrder, m.ID, "is after message %s, which is newer", v.req.Messages[last].ID)
		} else {
			last = j
		}
		if o := &v.req.Messages[j]; m.Role != o.Role {
			v.fault(ruleRole, m.ID, "role was %s, is %s", o.Role, m.Role)
		} else if m.Kind != o.Kind {
			v.fault(ruleRole, m.ID, "kind was %q, is %q", o.Kind, m.Kind)
		}
	}
}

func (v *verifier) newcomer(i int) {
	m := &v.out[i]
	if m.Role != RoleUser && m.Role != RoleAssistant {
		v.fault(ruleNewRole, "", "new message %d has the role %q; want user or assistant", i, m.Role)
	}
	if m.Kind != KindOriginal && m.Kind != KindSummary && m.Kind != KindMarker {
		v.fault(ruleNewRole, "", "new message %d is of kind %q; want summary or marker", i, m.Kind)
	}
}

// ingested checks that nothing but the content of results has changed, if the model has read nothing of it.
func (v *verifier) ingested() {
	if v.req.Trigger != TriggerIngest {
		return
	}
	same := func(is, was Part) bool {
		a, ok := is.(ToolResult)
		b, result := was.(ToolResult)
		return equalPart(is, was) || ok && result && a.CallID == b.CallID && a.IsError == b.IsError
	}
	for i := range v.out {
		if j := v.from[i]; j < 0 {
			v.fault(ruleResults, "", "new message %d is inserted", i)
		} else if m := &v.req.Messages[j]; !v.same[i] && !slices.EqualFunc(v.out[i].Parts, m.Parts, same) {
			v.fault(ruleResults, m.ID, "more than the content of results is changed")
		}
	}
	if j := slices.Index(v.kept, -1); j >= 0 {
		v.fault(ruleResults, v.req.Messages[j].ID, "is hidden")
	}
}

func (v *verifier) protected() {
	for j := range v.req.Messages {
		o, i := &v.req.Messages[j], v.kept[j]
		switch {
		case !o.Protected:
		case i < 0:
			v.fault(ruleProtected, o.ID, "is hidden")
		case !v.same[i]:
			v.fault(ruleProtected, o.ID, "is rewritten")
		}
	}
}

func (v *verifier) first() {
	if firstRole(v.req.Messages) != RoleUser {
		return
	}
	if is := firstRole(v.out); is == RoleSystem {
		v.fault(ruleFirst, "", "only system messages are left")
	} else if is != RoleUser {
		v.fault(ruleFirst, "", "the first message is now from %s", is)
	}
}

// firstRole returns the role of the first message that is not from the system, whose role is that of the others.
func firstRole(messages []Message) Role {
	i := slices.IndexFunc(messages, func(m Message) bool { return m.Role != RoleSystem })
	if i < 0 {
		return RoleSystem
	}
	return messages[i].Role
}

func (v *verifier) growth() {
	if v.req.Counter == nil {
		return
	}
	before, after := v.req.Tokens(), v.req.Budget.Overhead
	for i := range v.out {
		if v.same[i] {
			after += v.req.Messages[v.from[i]].Tokens // unchanged messages need not be counted
		} else {
			after += MessageTokens(v.req.Counter, v.out[i])
		}
	}
	if after-v.added > before {
		v.fault(ruleGrowth, "", "%s tokens became %s", size.Group(before), size.Group(after))
	}
}

// A Rule is one thing that every result must respect.
type Rule struct {
	Name string // as it appears in a [ViolationError]
	Text string // its requirement and reason
}

// The names of the rules.
const (
	ruleAnswer    = "answer"
	ruleParts     = "valid-parts"
	ruleKnown     = "known-ids"
	ruleUnique    = "unique-ids"
	ruleOrder     = "keep-order"
	ruleRole      = "keep-role"
	ruleNewRole   = "new-role"
	ruleProtected = "keep-protected"
	ruleSystem    = "keep-system"
	ruleRequest   = "keep-request"
	ruleWords     = "keep-words"
	ruleEmpty     = "not-empty"
	ruleCalls     = "keep-calls"
	rulePairs     = "keep-pairs"
	rulePending   = "keep-pending"
	ruleSplit     = "no-split"
	ruleMedia     = "keep-media"
	ruleReasoning = "keep-reasoning"
	ruleFirst     = "first-role"
	ruleGrowth    = "no-growth"
	ruleResults   = "only-results"
	ruleAbilities = "declared-abilities"
)

//go:embed rules.txt
var rulesText string

var rules = func() (all []Rule) {
	for line := range strings.Lines(rulesText) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		all = append(all, Rule{name, text})
	}
	return all
}()

// Rules returns every rule that [Verify] checks. Rules are stated relative to the
// request, because real conversations arrive with faults of their own: returning the
// messages as they came breaks none.
func Rules() []Rule { return slices.Clone(rules) }
