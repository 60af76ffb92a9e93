package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// A tape is a string of bytes that is read as conversations. Its alphabet is small, so
// that IDs collide, parts repeat and texts are blank more often than in any real one.
type tape []byte

func (t *tape) next() int {
	if len(*t) == 0 {
		return 0
	}
	b := (*t)[0]
	*t = (*t)[1:]
	return int(b)
}

func (t *tape) part(depth int) core.Part {
	b := t.next()
	id := string(rune('a' + b>>4%3))
	switch b % 9 {
	case 0:
		return core.Text("some words, and then " + id)
	case 1:
		return core.Text([]string{"", " ", "\n", "."}[b>>4%4])
	case 2, 3:
		return core.ToolCall{ID: id, Name: []string{"read", "write"}[b>>6%2], Args: []string{"", "{}"}[b>>7]}
	case 4, 5:
		r := core.ToolResult{CallID: id, IsError: b>>7 == 1}
		for range t.next() % 3 {
			if depth == 0 || b == 0xf4 { // now and then where it must not be
				r.Content = append(r.Content, t.part(depth+1))
			}
		}
		return r
	case 6:
		return core.Image{URL: id}
	case 7:
		return core.Reasoning{Text: id, Signature: []string{"", "s"}[b>>7]}
	default:
		return core.Opaque{Kind: "k", JSON: id}
	}
}

func (t *tape) parts() []core.Part {
	var parts []core.Part
	for range t.next() % 5 {
		parts = append(parts, t.part(0))
	}
	return parts
}

var fuzzRoles = []core.Role{core.RoleUser, core.RoleAssistant, core.RoleUser, core.RoleAssistant, core.RoleTool, core.RoleSystem}

// request reads a request; what is invalid in one is left out.
func (t *tape) request() *core.Request {
	var m []core.Message
	for i := range t.next() % 12 {
		b := t.next()
		parts := slices.DeleteFunc(t.parts(), nested)
		m = append(m, core.Message{ID: fmt.Sprintf("m%d", i), Role: fuzzRoles[b%6], Protected: b > 220, Parts: parts})
	}
	req := &core.Request{Messages: m, Counter: coretest.Counter{}}
	core.Measure(req.Counter, m)
	total := req.Tokens()
	req.Budget = core.Budget{Limit: total, Target: total * (t.next() % 8) / 8}
	return req
}

// nested reports whether p is a result that holds calls or results.
func nested(p core.Part) bool {
	r, ok := p.(core.ToolResult)
	return ok && slices.ContainsFunc(r.Content, func(p core.Part) bool {
		switch p.(type) {
		case core.ToolCall, core.ToolResult:
			return true
		default:
			return false
		}
	})
}

// result reads what a provider makes of the messages, mostly in order.
func (t *tape) result(in []core.Message) *core.Result {
	var out []core.Message
	at := 0
	for range 2 * (len(in) + 1) {
		b := t.next()
		switch {
		case b%8 < 3 && at < len(in): // keep
			out = append(out, in[at])
			at++
		case b%8 == 3: // hide
			at++
		case b%8 == 4 && at < len(in): // take something out
			m := in[at].Clone()
			if n := len(m.Parts); n > 0 {
				i := b >> 3 % n
				m.Parts = slices.Delete(m.Parts, i, i+1)
			}
			out = append(out, m)
			at++
		case b%8 == 5 && at < len(in): // rewrite
			m := in[at]
			m.Parts = t.parts()
			out = append(out, m)
			at++
		case b%8 == 6: // add
			kind := []core.Kind{core.KindSummary, core.KindMarker, core.KindOriginal, "odd"}[b>>3%4]
			out = append(out, core.Message{Role: fuzzRoles[b>>5%6], Kind: kind, Parts: t.parts()})
		case b == 0xff && len(in) > 0: // anything, again perhaps
			out = append(out, in[t.next()%len(in)])
		case b == 0xef:
			out = append(out, core.Message{ID: "m99", Role: core.RoleUser, Parts: []core.Part{new(hi), nil}})
		}
	}
	for b := t.next(); b%2 == 1 && at < len(in); at++ {
		out = append(out, in[at]) // and the rest
	}
	return &core.Result{Messages: out}
}

func addSeeds(f *testing.F) {
	f.Helper()
	f.Add([]byte{})
	f.Add([]byte("\x04\x00\x01\x00\x01\x02\x02\x12\x00\x02\x04\x00\x00\x01\x00\x00\x00\x00\x04\x00\x00\x00\x00\x01"))
	f.Add([]byte("\x03\x00\x01\x00\x01\x01\x02\x00\x01\x04\x00\x02\x00\x05\x00\x06\x01\x00\x01"))
	f.Add([]byte("\x05\x05\x01\x00\x00\x01\x00\x01\x02\x06\x07\x02\x02\x04\x01\x06\x00\x01\x00\x04\x03\x03\x00\x00\x00\x01"))
	f.Add([]byte("\x06\x00\x01\x00\x01\x01\x02\x00\x01\x04\x00\x01\x01\x02\x00\x01\x04\x00\x00\x01\x00\x02\x00\x03\x03\x06\x01\x00\x00\x00\x00\x01"))
	f.Add([]byte("\x02\xff\x01\x00\x01\x01\x02\x04\xff\x01\xef\x04\x05\x01\x06\x0e\x01\x00"))
}

// FuzzVerify: no input brings Verify down, the request is a valid answer to itself, and
// what Verify accepts is sound by checks that share nothing with it.
func FuzzVerify(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		tp := tape(data)
		req := tp.request()
		was := req.Clone()
		res := tp.result(req.Messages)
		if err := core.Verify(req, &core.Result{Messages: req.Clone().Messages}); err != nil {
			t.Fatalf("the request itself is invalid: %v", err)
		}
		err := core.Verify(req, res)
		untouched(t, was, req)
		if err != nil {
			_ = err.Error()
			return
		}
		checkSound(t, req, res.Messages)
		named := slices.Clone(res.Messages)
		for i := range named {
			if named[i].ID == "" {
				named[i].ID = fmt.Sprintf("new%d", i)
			}
		}
		applied, err := core.Diff(req.Messages, named).Apply(req.Messages)
		if err != nil || !sameMessages(applied, named) {
			t.Fatalf("the difference does not lead to the result: %v\ngot  %+v\nwant %+v", err, applied, named)
		}
	})
}

// checkSound checks a result by brute force.
func checkSound(t *testing.T, req *core.Request, out []core.Message) {
	t.Helper()
	if broken := brokenPair(req.Messages, out); broken != "" {
		t.Errorf("accepted although %s", broken)
	}
	before, after := req.Budget.Overhead, req.Budget.Overhead
	for _, o := range req.Messages {
		before += core.MessageTokens(req.Counter, o)
		n := 0
		for _, m := range out {
			if m.ID != o.ID {
				continue
			}
			n++
			if o.Protected && !m.Equal(o) {
				t.Errorf("accepted although %s is protected and changed", o.ID)
			}
			if m.Role != o.Role || m.Kind != o.Kind || m.Blank() && !o.Blank() {
				t.Errorf("accepted although %s has another role or is blank", o.ID)
			}
		}
		if n > 1 || n < 1 && o.Protected {
			t.Errorf("accepted although %s appears %d times", o.ID, n)
		}
	}
	last := -1
	for i, m := range out {
		after += core.MessageTokens(req.Counter, m)
		if m.ID == "" {
			if m.Blank() || m.Role != core.RoleUser && m.Role != core.RoleAssistant {
				t.Errorf("accepted although the new message %d is blank or from %s", i, m.Role)
			}
			continue
		}
		j := slices.IndexFunc(req.Messages, func(o core.Message) bool { return o.ID == m.ID })
		if j < 0 || j <= last {
			t.Errorf("accepted although %s is unknown or out of order", m.ID)
		}
		last = j
	}
	for r, c := range pairs(out) {
		for i := c.message + 1; i < r.message; i++ {
			if out[i].ID == "" {
				t.Errorf("accepted although the new message %d splits a pair", i)
			}
		}
	}
	if after > before {
		t.Errorf("accepted although it grew from %d to %d tokens", before, after)
	}
	if leader(req.Messages) == core.RoleUser && leader(out) != core.RoleUser {
		t.Errorf("accepted although it begins with %q", leader(out))
	}
}

// FuzzChain: whatever two providers answer, a chain returns what is sound or an error
// that says that it is exhausted, and leaves the request alone.
func FuzzChain(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		tp := tape(data)
		req := tp.request()
		req.Budget.Limit = max(req.Budget.Target, req.Budget.Limit*(tp.next()%9)/8)
		was := req.Clone()
		random := core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
			if b := tp.next(); b > 250 {
				panic(b)
			}
			return tp.result(req.Messages), nil
		})
		out, err := chainOf(t, nil, random, random, coretest.Truncates()).Run(t.Context(), req)
		untouched(t, was, req)
		if err != nil {
			if _, ok := errors.AsType[*core.ExhaustedError](err); !ok {
				t.Fatal(err)
			}
			return
		}
		if out.TokensAfter > req.Budget.Limit {
			t.Errorf("got %d tokens, above the limit of %d", out.TokensAfter, req.Budget.Limit)
		}
		checkCondensed(t, req, out)
	})
}
