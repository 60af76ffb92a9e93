package core

import (
	"errors"
	"fmt"
	"slices"
)

// Verify checks res against every one of the [Rules] and returns all violations,
// joined; each is a [*ViolationError]. It measures with req.Counter and leaves the rule
// on growth out if there is none. The host, the conformance suite and the fuzz tests all
// call this one function. The cost is linear.
func Verify(req *Request, res *Result) error {
	return verify(req, res, false)
}

// verify is [Verify]. If adopted is set, res holds what a chain has made of earlier
// answers: new messages have IDs too.
func verify(req *Request, res *Result, adopted bool) error {
	v := verifier{req: req, adopted: adopted, at: make(map[string]int, len(req.Messages))}
	if res == nil {
		v.fault(ruleAnswer, "", "neither messages nor an error came back")
		return v.err()
	}
	if len(res.Messages) == 0 && len(req.Messages) > 0 {
		v.fault(ruleAnswer, "", "all %d messages are gone", len(req.Messages))
		return v.err()
	}
	for i := range req.Messages {
		v.at[req.Messages[i].ID] = i
	}
	if !v.parts(res.Messages) {
		return v.err() // the other checks read the parts
	}
	v.identity(res.Messages)
	v.protected(res.Messages)
	v.content(res.Messages)
	v.tools(res.Messages)
	v.first(res.Messages)
	v.growth(res.Messages)
	return v.err()
}

type verifier struct {
	req     *Request
	adopted bool
	at      map[string]int // ID to index in req.Messages
	faults  []error
}

func (v *verifier) fault(rule, id, format string, args ...any) {
	v.faults = append(v.faults, &ViolationError{Rule: rule, Message: id, Detail: fmt.Sprintf(format, args...)})
}

func (v *verifier) err() error { return errors.Join(v.faults...) }

// original returns the message of the request that m claims to be.
func (v *verifier) original(m *Message) (*Message, bool) {
	i, ok := v.at[m.ID]
	if !ok || m.ID == "" {
		return nil, false
	}
	return &v.req.Messages[i], true
}

func (v *verifier) parts(messages []Message) bool {
	for i := range messages {
		for j, p := range messages[i].Parts {
			if fault := invalidPart(p, true); fault != "" {
				v.fault(ruleParts, messages[i].ID, "part %d: %s", j, fault)
			}
		}
	}
	return len(v.faults) == 0
}

// invalidPart says what is wrong with p. The set of parts is closed, but a pointer to
// one satisfies the interface too.
func invalidPart(p Part, top bool) string {
	switch p := p.(type) {
	case Text, Image, Reasoning, Opaque:
		return ""
	case ToolCall:
		if !top {
			return "a tool call inside a tool result"
		}
		return ""
	case ToolResult:
		if !top {
			return "a tool result inside a tool result"
		}
		for i, c := range p.Content {
			if fault := invalidPart(c, false); fault != "" {
				return fmt.Sprintf("content %d: %s", i, fault)
			}
		}
		return ""
	default:
		return fmt.Sprintf("%T is not a part", p)
	}
}

func (v *verifier) identity(messages []Message) {
	seen := make(map[string]bool, len(messages))
	last, lastID := -1, ""
	for i := range messages {
		m := &messages[i]
		j, ok := v.at[m.ID]
		if m.ID == "" || v.adopted && !ok {
			if m.Role != RoleUser && m.Role != RoleAssistant {
				v.fault(ruleNewRole, "", "new message %d has the role %q; want user or assistant", i, m.Role)
			}
			if m.Kind != KindOriginal && m.Kind != KindSummary && m.Kind != KindMarker {
				v.fault(ruleNewRole, "", "new message %d is of kind %q; want summary or marker", i, m.Kind)
			}
			continue
		}
		if !ok {
			v.fault(ruleKnown, m.ID, "the request has no such message")
			continue
		}
		if seen[m.ID] {
			v.fault(ruleUnique, m.ID, "appears again")
			continue
		}
		seen[m.ID] = true
		if j < last {
			v.fault(ruleOrder, m.ID, "stands behind message %s, which is younger", lastID)
		} else {
			last, lastID = j, m.ID
		}
		if o := &v.req.Messages[j]; m.Role != o.Role {
			v.fault(ruleRole, m.ID, "role was %s, is %s", o.Role, m.Role)
		} else if m.Kind != o.Kind {
			v.fault(ruleRole, m.ID, "kind was %q, is %q", o.Kind, m.Kind)
		}
	}
}

func (v *verifier) protected(messages []Message) {
	kept := make(map[string]*Message, len(messages))
	for i := range messages {
		kept[messages[i].ID] = &messages[i]
	}
	for i := range v.req.Messages {
		o := &v.req.Messages[i]
		if !o.Protected {
			continue
		}
		if m, ok := kept[o.ID]; !ok {
			v.fault(ruleProtected, o.ID, "is hidden")
		} else if !EqualParts(m.Parts, o.Parts) {
			v.fault(ruleProtected, o.ID, "is rewritten")
		}
	}
}

// content checks what stands in new and rewritten messages.
func (v *verifier) content(messages []Message) {
	for i := range messages {
		m := &messages[i]
		o, ok := v.original(m)
		if !ok {
			if m.Blank() {
				v.fault(ruleEmpty, m.ID, "new message %d says nothing", i)
			}
			if slices.ContainsFunc(m.Parts, sealed) {
				v.fault(ruleReasoning, m.ID, "signed or encrypted reasoning stands in new message %d", i)
			}
			continue
		}
		if EqualParts(m.Parts, o.Parts) {
			continue
		}
		if m.Blank() && !o.Blank() {
			v.fault(ruleEmpty, m.ID, "says nothing any more")
		}
		v.media(m.ID, "", o.Parts, m.Parts, hasNewText(o.Parts, m.Parts))
		v.results(m, o)
		v.reasoning(m, o)
	}
}

// results checks the tool results of a rewritten message as content checks messages.
func (v *verifier) results(m, o *Message) {
	is := map[string][]ToolResult{} // by call ID, in order
	for _, p := range m.Parts {
		if r, ok := p.(ToolResult); ok {
			is[r.CallID] = append(is[r.CallID], r)
		}
	}
	for _, p := range o.Parts {
		r, ok := p.(ToolResult)
		if !ok {
			continue
		}
		if len(is[r.CallID]) == 0 { // gone, which keep-pairs judges, and its pictures with it
			v.media(m.ID, " with the result of call "+r.CallID, r.Content, nil, hasNewText(o.Parts, m.Parts))
			continue
		}
		after := is[r.CallID][0].Content
		is[r.CallID] = is[r.CallID][1:]
		if blankParts(after) && !blankParts(r.Content) {
			v.fault(ruleEmpty, m.ID, "the result of call %s says nothing any more", r.CallID)
		}
		v.media(m.ID, " in the result of call "+r.CallID, r.Content, after, hasNewText(r.Content, after))
	}
}

// media checks that what cannot be shortened was not dropped silently: that text stands
// in its place.
func (v *verifier) media(id, where string, before, after []Part, text bool) {
	kept := countParts(after)
	for _, p := range before {
		var what string
		switch p := p.(type) {
		case Image:
			what = "an image"
		case Opaque:
			what = fmt.Sprintf("a block of kind %q", p.Kind)
		case Text, ToolCall, ToolResult, Reasoning:
			continue
		default:
			continue // not a part at all; see countParts
		}
		if kept[p] > 0 {
			kept[p]--
		} else if !text {
			v.fault(ruleMedia, id, "%s is gone%s and no text stands in its place", what, where)
		}
	}
}

// hasNewText reports whether after has a text that before has not.
func hasNewText(before, after []Part) bool {
	was := countParts(before)
	for _, p := range after {
		if t, ok := p.(Text); ok && was[t] == 0 && !blank(string(t)) {
			return true
		}
	}
	return false
}

func (v *verifier) reasoning(m, o *Message) {
	was := countParts(o.Parts)
	for _, p := range m.Parts {
		r, ok := p.(Reasoning)
		if !ok {
			continue
		}
		if was[r]--; was[r] < 0 {
			v.fault(ruleReasoning, m.ID, "reasoning was changed or repeated")
		}
	}
}

// sealed reports whether p is reasoning that only a vendor can have written.
func sealed(p Part) bool {
	r, ok := p.(Reasoning)
	return ok && (r.Signature != "" || r.Encrypted != "")
}

// countParts counts equal parts. Tool results, which are not comparable, are left out,
// and so is what only claims to be a part: a request may hold it, and perhaps it is not
// comparable either.
func countParts(parts []Part) map[Part]int {
	n := make(map[Part]int, len(parts))
	for _, p := range parts {
		switch p.(type) {
		case Text, ToolCall, Image, Reasoning, Opaque:
			n[p]++
		case ToolResult:
		}
	}
	return n
}

func (v *verifier) first(messages []Message) {
	was, ok := firstRole(v.req.Messages)
	if !ok || was != RoleUser {
		return
	}
	switch is, ok := firstRole(messages); {
	case !ok:
		v.fault(ruleFirst, "", "only system messages are left")
	case is != RoleUser:
		v.fault(ruleFirst, "", "the first message is now from %s", is)
	}
}

func firstRole(messages []Message) (Role, bool) {
	for i := range messages {
		if messages[i].Role != RoleSystem {
			return messages[i].Role, true
		}
	}
	return "", false
}

func (v *verifier) growth(messages []Message) {
	if v.req.Counter == nil {
		return
	}
	before, after := v.req.Tokens(), v.req.Budget.Overhead
	for i := range messages {
		after += sizeOf(v.req, v.at, &messages[i])
	}
	if after > before {
		v.fault(ruleGrowth, "", "%d tokens became %d", before, after)
	}
}

// sizeOf returns the tokens of m, which are known already if it is as it was.
func sizeOf(req *Request, at map[string]int, m *Message) int {
	if i, ok := at[m.ID]; ok && m.ID != "" && EqualParts(m.Parts, req.Messages[i].Parts) {
		return req.Messages[i].Tokens
	}
	return MessageTokens(req.Counter, *m)
}
