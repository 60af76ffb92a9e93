package core_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
)

// A mutation makes a valid result invalid in one way. It reports false if there was nothing to
// spoil. What it is given is a copy.
type mutation struct {
	name, rule string
	spoil      func(r *rand.Rand, req *core.Request, m []core.Message) ([]core.Message, bool)
}

// pick returns one of the indexes of m that ok accepts.
func pick(r *rand.Rand, m []core.Message, ok func(core.Message) bool) (int, bool) {
	var all []int
	for i := range m {
		if ok(m[i]) {
			all = append(all, i)
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return all[r.IntN(len(all))], true
}

func isKnown(m core.Message) bool { return m.ID != "" }

// pickPair returns the places of a result and the call that it answers.
func pickPair(r *rand.Rand, m []core.Message) (call, result place, ok bool) {
	callOf := pairs(m)
	var all []place
	walk(m, func(at place, _ core.Part) {
		if _, ok := callOf[at]; ok {
			all = append(all, at)
		}
	})
	if len(all) == 0 {
		return place{}, place{}, false
	}
	result = all[r.IntN(len(all))]
	return callOf[result], result, true
}

// only reports whether no other call, or result, of the same ID is in the message.
// If one does, the loss of either looks the same.
func only(m []core.Message, at place) bool {
	p := m[at.message].Parts[at.part]
	n := 0
	for _, q := range m[at.message].Parts {
		switch q := q.(type) {
		case core.ToolCall:
			if p, ok := p.(core.ToolCall); ok && p.ID == q.ID {
				n++
			}
		case core.ToolResult:
			if p, ok := p.(core.ToolResult); ok && p.CallID == q.CallID {
				n++
			}
		default:
		}
	}
	return n == 1
}

func remove(m []core.Message, at place) []core.Message {
	m[at.message].Parts = slices.Delete(m[at.message].Parts, at.part, at.part+1)
	return m
}

var mutations = []mutation{
	{"swap two messages", "keep-order", func(r *rand.Rand, _ *core.Request, m []core.Message) ([]core.Message, bool) {
		i, ok1 := pick(r, m, isKnown)
		j, ok2 := pick(r, m, isKnown)
		if !ok1 || !ok2 || i == j {
			return nil, false
		}
		m[i], m[j] = m[j], m[i]
		return m, true
	}},
	{"drop a call", "keep-pairs", func(r *rand.Rand, _ *core.Request, m []core.Message) ([]core.Message, bool) {
		call, _, ok := pickPair(r, m)
		if !ok || !only(m, call) {
			return nil, false
		}
		return remove(m, call), true
	}},
	{"drop a result", "keep-pairs", func(r *rand.Rand, _ *core.Request, m []core.Message) ([]core.Message, bool) {
		_, result, ok := pickPair(r, m)
		if !ok || !only(m, result) {
			return nil, false
		}
		return remove(m, result), true
	}},
	{"hide the message of a call", "keep-pairs", func(r *rand.Rand, _ *core.Request, m []core.Message) ([]core.Message, bool) {
		call, result, ok := pickPair(r, m)
		if !ok || call.message == result.message {
			return nil, false
		}
		return slices.Delete(m, call.message, call.message+1), true
	}},
	{"split a pair", "no-split", func(r *rand.Rand, _ *core.Request, m []core.Message) ([]core.Message, bool) {
		call, result, ok := pickPair(r, m)
		if !ok || call.message == result.message {
			return nil, false
		}
		return slices.Insert(m, call.message+1+r.IntN(result.message-call.message), summary(hi)), true
	}},
	{"put a summary behind an open call", "no-split", func(_ *rand.Rand, req *core.Request, m []core.Message) ([]core.Message, bool) {
		if len(req.Messages) == 0 {
			return nil, false
		}
		last := req.Messages[len(req.Messages)-1]
		calls := slices.ContainsFunc(last.Parts, func(p core.Part) bool { _, ok := p.(core.ToolCall); return ok })
		if kept := m[len(m)-1]; !calls || kept.ID != last.ID {
			return nil, false
		}
		return append(m, summary(hi)), true
	}},
	{"lose the ID of a protected message", "keep-protected", func(r *rand.Rand, _ *core.Request, m []core.Message) ([]core.Message, bool) {
		i, ok := pick(r, m, func(m core.Message) bool { return m.Protected })
		if !ok {
			return nil, false
		}
		m[i].ID = ""
		return m, true
	}},
	{"lose the ID of a call's message", "keep-calls", func(r *rand.Rand, _ *core.Request, m []core.Message) ([]core.Message, bool) {
		call, _, ok := pickPair(r, m)
		if !ok {
			return nil, false
		}
		m[call.message].ID = ""
		return m, true
	}},
	{"mistake an ID", "known-ids", func(r *rand.Rand, _ *core.Request, m []core.Message) ([]core.Message, bool) {
		i, ok := pick(r, m, isKnown)
		if !ok {
			return nil, false
		}
		m[i].ID += "x"
		return m, true
	}},
	{"duplicate", "unique-ids", func(r *rand.Rand, _ *core.Request, m []core.Message) ([]core.Message, bool) {
		i, ok := pick(r, m, isKnown)
		if !ok {
			return nil, false
		}
		return slices.Insert(m, i+r.IntN(len(m)-i)+1, m[i]), true
	}},
	{"drop an image", "keep-media", func(r *rand.Rand, req *core.Request, m []core.Message) ([]core.Message, bool) {
		i, ok := pick(r, m, func(m core.Message) bool {
			// Another rewrite of the message may have left the text that excuses it.
			return isKnown(m) && slices.ContainsFunc(m.Parts, isImage) && sameAs(req, m)
		})
		if !ok {
			return nil, false
		}
		m[i].Parts = slices.DeleteFunc(m[i].Parts, isImage)
		return m, true
	}},
	{"drop an image in a result", "keep-media", func(r *rand.Rand, req *core.Request, m []core.Message) ([]core.Message, bool) {
		i, ok := pick(r, m, func(m core.Message) bool { return isKnown(m) && sameAs(req, m) && nestedImage(m) >= 0 })
		if !ok {
			return nil, false
		}
		j := nestedImage(m[i])
		res := m[i].Parts[j].(core.ToolResult)
		res.Content = slices.DeleteFunc(res.Content, isImage)
		m[i].Parts[j] = res
		return m, true
	}},
	{"stale counter", "no-growth", func(_ *rand.Rand, req *core.Request, m []core.Message) ([]core.Message, bool) {
		big := summary(core.Text(strings.Repeat("grow", req.Tokens()+1)))
		big.Tokens = 1 // as it was when it was short
		return slices.Insert(m, 0, big), true
	}},
	{"empty a message", "not-empty", func(r *rand.Rand, req *core.Request, m []core.Message) ([]core.Message, bool) {
		i, ok := pick(r, m, func(m core.Message) bool { return isKnown(m) && !m.Blank() && !blankIn(req, m) })
		if !ok {
			return nil, false
		}
		m[i].Parts = []core.Part{core.Text(" ")}
		return m, true
	}},
	{"edit a protected message", "keep-protected", func(r *rand.Rand, _ *core.Request, m []core.Message) ([]core.Message, bool) {
		i, ok := pick(r, m, func(m core.Message) bool { return m.Protected })
		if !ok {
			return nil, false
		}
		m[i].Parts = append(m[i].Parts, core.Text("."))
		return m, true
	}},
	{"hide a protected message", "keep-protected", func(r *rand.Rand, _ *core.Request, m []core.Message) ([]core.Message, bool) {
		i, ok := pick(r, m, func(m core.Message) bool { return m.Protected })
		if !ok || len(m) == 1 {
			return nil, false
		}
		return slices.Delete(m, i, i+1), true
	}},
	{"hide a system message", "keep-system", func(r *rand.Rand, _ *core.Request, m []core.Message) ([]core.Message, bool) {
		i, ok := pick(r, m, func(m core.Message) bool { return m.Role == core.RoleSystem && isKnown(m) })
		if !ok || len(m) == 1 {
			return nil, false
		}
		return slices.Delete(m, i, i+1), true
	}},
	{"edit a system message", "keep-system", func(r *rand.Rand, _ *core.Request, m []core.Message) ([]core.Message, bool) {
		i, ok := pick(r, m, func(m core.Message) bool { return m.Role == core.RoleSystem && isKnown(m) })
		if !ok {
			return nil, false
		}
		m[i].Parts = append(m[i].Parts, core.Text("."))
		return m, true
	}},
	{"put a word into a user's mouth", "keep-words", func(r *rand.Rand, _ *core.Request, m []core.Message) ([]core.Message, bool) {
		i, ok := pick(r, m, func(m core.Message) bool { return m.Role == core.RoleUser && m.Kind == core.KindOriginal && isKnown(m) })
		if !ok {
			return nil, false
		}
		m[i].Parts = append(m[i].Parts, core.Text("push"))
		return m, true
	}},
	{"change a role", "keep-role", func(r *rand.Rand, _ *core.Request, m []core.Message) ([]core.Message, bool) {
		i, ok := pick(r, m, isKnown)
		if !ok {
			return nil, false
		}
		m[i].Role += "s"
		return m, true
	}},
	{"change a kind", "keep-role", func(r *rand.Rand, _ *core.Request, m []core.Message) ([]core.Message, bool) {
		i, ok := pick(r, m, isKnown)
		if !ok {
			return nil, false
		}
		m[i].Kind += "s"
		return m, true
	}},
	{"speak as the system", "new-role", func(_ *rand.Rand, _ *core.Request, m []core.Message) ([]core.Message, bool) {
		return append(m, withRole(summary(hi), core.RoleSystem)), true
	}},
	{"touch up reasoning", "keep-reasoning", func(r *rand.Rand, _ *core.Request, m []core.Message) ([]core.Message, bool) {
		isReasoning := func(p core.Part) bool { _, ok := p.(core.Reasoning); return ok }
		i, ok := pick(r, m, func(m core.Message) bool { return isKnown(m) && slices.ContainsFunc(m.Parts, isReasoning) })
		if !ok {
			return nil, false
		}
		j := slices.IndexFunc(m[i].Parts, isReasoning)
		thought := m[i].Parts[j].(core.Reasoning)
		thought.Text += "."
		m[i].Parts[j] = thought
		return m, true
	}},
	{"invent a call", "keep-calls", func(r *rand.Rand, _ *core.Request, m []core.Message) ([]core.Message, bool) {
		i, ok := pick(r, m, isKnown)
		if !ok {
			return nil, false
		}
		m[i].Parts = append(m[i].Parts, call("invented"))
		return m, true
	}},
	{"let results trade places", "keep-calls", func(r *rand.Rand, _ *core.Request, m []core.Message) ([]core.Message, bool) {
		_, a, ok1 := pickPair(r, m)
		_, b, ok2 := pickPair(r, m)
		if !ok1 || !ok2 || a.message == b.message {
			return nil, false
		}
		pa, pb := m[a.message].Parts, m[b.message].Parts
		if pa[a.part].(core.ToolResult).CallID == pb[b.part].(core.ToolResult).CallID {
			return nil, false // what they say may be rewritten, so it cannot be detected
		}
		pa[a.part], pb[b.part] = pb[b.part], pa[a.part]
		return m, true
	}},
	{"let a model begin", "first-role", func(_ *rand.Rand, req *core.Request, m []core.Message) ([]core.Message, bool) {
		if leader(req.Messages) != core.RoleUser {
			return nil, false
		}
		return slices.Insert(m, 0, withRole(summary(hi), core.RoleAssistant)), true
	}},
	{"return a pointer", "valid-parts", func(r *rand.Rand, _ *core.Request, m []core.Message) ([]core.Message, bool) {
		i, ok := pick(r, m, isKnown)
		if !ok {
			return nil, false
		}
		m[i].Parts = append(m[i].Parts, new(hi))
		return m, true
	}},
	{"return nothing", "answer", func(_ *rand.Rand, _ *core.Request, m []core.Message) ([]core.Message, bool) {
		return nil, len(m) > 0
	}},
}

func isImage(p core.Part) bool { _, ok := p.(core.Image); return ok }

func nestedImage(m core.Message) int {
	return slices.IndexFunc(m.Parts, func(p core.Part) bool {
		r, ok := p.(core.ToolResult)
		return ok && slices.ContainsFunc(r.Content, isImage)
	})
}

func sameAs(req *core.Request, m core.Message) bool {
	return slices.ContainsFunc(req.Messages, func(o core.Message) bool { return o.Equal(m) })
}

func blankIn(req *core.Request, m core.Message) bool {
	return slices.ContainsFunc(req.Messages, func(o core.Message) bool { return o.ID == m.ID && o.Blank() })
}

// TestValidEditsPass: whatever is made of a conversation by hiding whole groups,
// shortening texts and inserting summaries breaks no rule, its difference brings it
// about, and a chain hands it on.
func TestValidEditsPass(t *testing.T) {
	changed := 0
	rapid.Check(t, func(t *rapid.T) {
		req, e := validRequest(t)
		was := req.Clone()
		res := e.edit(req)
		if err := core.Verify(req, res); err != nil {
			t.Fatalf("got %v, want a valid result", err)
		}
		if broken := brokenPair(req.Messages, res.Messages); broken != "" {
			t.Fatalf("the generator is at fault: %s", broken)
		}
		// Two providers that edit at random, one after the other.
		edit := core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) { return e.edit(req), nil })
		chain, err := core.NewChain([]core.NamedProvider{{Name: "p1", Provider: edit}, {Name: "p2", Provider: edit}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Budget.Target, req.Budget.Limit = 0, req.Tokens()
		was.Budget = req.Budget
		out, err := chain.Run(context.Background(), req)
		if err != nil {
			t.Fatal(err)
		}
		checkCondensed(t, req, out)
		untouched(t, was, req)
		if !out.Edit.Empty() {
			changed++
		}
	})
	if changed == 0 {
		t.Error("no edit changed anything")
	}
}

// TestMutationsAreFound proves that the test above can fail: each way to break a valid
// result is reported, under the name of the rule that it breaks.
func TestMutationsAreFound(t *testing.T) {
	spoilt := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		req, e := validRequest(t)
		res := e.edit(req)
		for _, mu := range mutations {
			m, ok := mu.spoil(e.Rand, req, (&core.Request{Messages: res.Messages}).Clone().Messages)
			if !ok {
				continue
			}
			spoilt[mu.name]++
			err := core.Verify(req, &core.Result{Messages: m})
			if err == nil || !hasRule(err, mu.rule) {
				t.Fatalf("%s: got %v, want a violation of %s", mu.name, err, mu.rule)
			}
		}
	})
	for _, mu := range mutations {
		if spoilt[mu.name] == 0 && !testing.Short() { // -short tries too few to find them all
			t.Errorf("%s: never tried", mu.name)
		} else {
			t.Logf("%5d %s", spoilt[mu.name], mu.name)
		}
	}
}

func hasRule(err error, rule string) bool {
	many, ok := err.(interface{ Unwrap() []error })
	return ok && slices.ContainsFunc(many.Unwrap(), func(err error) bool {
		v, ok := errors.AsType[*core.ViolationError](err)
		return ok && v.Rule == rule
	})
}
