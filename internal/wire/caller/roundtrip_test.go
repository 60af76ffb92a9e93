package caller_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/wire/caller"
	"github.com/condensehq/condense/registry"
)

// TestSame: a provider that answers at random answers the same through the protocol as in
// process, and the messages that it is given are the same.
func TestSame(t *testing.T) {
	var given atomic.Pointer[core.Request]
	const everything = core.Hides | core.Rewrites | core.Inserts | core.AsksModels
	var seed atomic.Uint64
	random := core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
		given.Store(req.Clone())
		return scramble(rand.New(rand.NewPCG(seed.Load(), 1)), req), nil
	})
	plugin := serve(t, provided(random).Only(everything), &caller.Options{Host: "condense v1.2.3"})
	rapid.Check(t, func(rt *rapid.T) {
		seed.Store(rapid.Uint64().Draw(rt, "seed"))
		r := rand.New(rand.NewPCG(seed.Load(), 0))
		messages := coretest.Random(r, nil)
		for i := range messages {
			if r.IntN(10) == 0 { // names that are no UTF-8, or look like the escape for those
				messages[i].ID = []string{"\xff\x00", "\ufffdhex:ff00", "\ufffdhex:", "a\nb\x80"}[r.IntN(4)] + messages[i].ID
			}
			if r.IntN(10) == 0 {
				messages[i].Time, messages[i].Labels = time.Time{}, map[string]string{"kept": "pin", "na\xffme": "te\xffxt"}
			}
		}
		req := coretest.HalfRequest(messages)
		req.Budget = core.Budget{Window: r.IntN(1e6), Reserve: -1, Overhead: r.IntN(100), Limit: 1 << 40, Target: r.IntN(100)}
		req.Trigger, req.Profile, req.Mode = core.TriggerOverflow, "pro\xfffile", "code"
		req.System, req.Environment, req.Instructions = "sys\xfftem", "env", "do\x80"
		req.FilesRead = []string{"a", "", "b\xff"}
		req.Dir, req.Tools, req.Originals = "/work\xff", `[{"name":"t"}]`, "history/part-1.jsonl"
		req.Abilities = everything
		req.Host, req.Model, req.Price = "condense v1.2.3", "mod\xffel", core.Price{Input: r.Float64(), Output: 1, CacheRead: 2, CacheWrite: 3}
		req.API, req.NoRecall = "responses", r.IntN(2) == 0
		req.MayWait, req.Quota = r.IntN(2) == 0, core.Quota{ModelCalls: 1 + r.IntN(9), USD: r.Float64()}
		req.Conversation, req.State = "con\xffversation", []byte("st\xffate")
		req.Cached = core.Cached{Messages: 1 + r.IntN(9), Until: time.UnixMilli(1 + r.Int64N(1e12)).UTC()}
		for f, v := range reflect.ValueOf(*req).Fields() {
			if v.IsZero() && !slices.Contains([]string{"NoRecall", "MayWait", "Messages", "Typed", "Hidden", "File", "States"}, f.Name) { // functions, and others' states, cannot cross
				rt.Fatalf("Request.%s is not tested: a plugin must get it", f.Name)
			}
		}
		want, _ := random(rt.Context(), req.Clone())
		got, err := plugin.Condense(rt.Context(), req)
		if err != nil {
			rt.Fatalf("%v", err)
		}
		sameMessages(rt, "given", given.Load().Messages, req.Messages)
		for i, m := range given.Load().Messages {
			if w := req.Messages[i]; m.Tokens != w.Tokens || m.Protected != w.Protected || !maps.Equal(m.Labels, w.Labels) || !m.Time.Equal(w.Time.Truncate(time.Millisecond)) {
				rt.Errorf("message %q was given as %+v; want %+v", w.ID, m, w)
			}
		}
		g, w := *given.Load(), *req
		g.Messages, g.Counter, w.Messages, w.Counter = nil, nil, nil, nil
		if diff := cmp.Diff(w, g); diff != "" {
			rt.Errorf("what was given differs (-want +got):\n%s", diff)
		}
		sameMessages(rt, "answered", got.Messages, want.Messages)
		if !bytes.Equal(got.State, want.State) {
			rt.Errorf("state is %q; want %q", got.State, want.State)
		}
		if got.Later != want.Later {
			rt.Errorf("later is %q; want %q", got.Later, want.Later)
		}
		if got.Usage != want.Usage {
			rt.Errorf("usage is %+v; want %+v", got.Usage, want.Usage)
		}
		if diff := cmp.Diff(want.Steps, got.Steps); diff != "" {
			rt.Errorf("steps (-want +got):\n%s", diff)
		}
	})
}

func sameMessages(t *rapid.T, what string, got, want []core.Message) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d messages; want %d\ngot  %q\nwant %q", what, len(got), len(want), ids(got), ids(want))
	}
	for i := range got {
		if !got[i].Equal(want[i]) {
			t.Fatalf("%s: message %d is %#v; want %#v", what, i, got[i], want[i])
		}
	}
}

// scramble returns an answer that an edit can express, valid or not: messages hidden,
// rewritten in all ways, and new ones.
func scramble(r *rand.Rand, req *core.Request) *core.Result {
	res := &core.Result{Usage: core.Usage{Calls: r.IntN(3), InputTokens: r.IntN(1000), OutputTokens: 2, CachedTokens: 1, USD: r.Float64()}}
	if r.IntN(2) == 0 {
		res.State, res.Later = []byte{0xff, byte(r.IntN(256))}, "half done"
	}
	for i := range r.IntN(3) {
		s := core.Step{Name: "step", Looked: r.IntN(9), Changed: i, TokensBefore: r.IntN(9), TokensAfter: 3, Duration: time.Duration(r.IntN(1e9)), Note: "né"}
		if r.IntN(2) == 0 {
			s.Saved = map[string]int{"user": r.IntN(9), "tool_result": -1}
		}
		res.Steps = append(res.Steps, s)
	}
	fresh := func() {
		res.Messages = append(res.Messages, core.Message{
			Role: core.RoleUser, Kind: core.KindSummary,
			Parts: []core.Part{core.Text("new\xff"), core.ToolCall{ID: "x\xff", Args: "{"}, core.Reasoning{Encrypted: "e"}},
		})
	}
	for _, m := range req.Messages {
		switch r.IntN(8) {
		case 0, 1: // hidden
			continue
		case 2:
			fresh()
		case 3, 4:
			m.Parts = scrambleParts(r, m.Parts, true)
		}
		res.Messages = append(res.Messages, m)
	}
	if r.IntN(3) == 0 || len(res.Messages) == 0 {
		fresh()
	}
	return res
}

func scrambleParts(r *rand.Rand, parts []core.Part, top bool) []core.Part {
	var out []core.Part
	for _, p := range parts {
		switch r.IntN(7) {
		case 0:
			continue
		case 1:
			out = append(out, core.Text("put"), p, p)
		case 2:
			if t, ok := p.(core.ToolResult); ok {
				t.IsError = !t.IsError
				p = t
			}
			out = append(out, p)
		case 3, 4:
			if t, ok := p.(core.ToolResult); ok && top {
				t.Content = scrambleParts(r, t.Content, false)
				p = t
			}
			out = append(out, p)
		default:
			out = append(out, p)
		}
	}
	r.Shuffle(len(out), func(i, j int) {
		if r.IntN(4) == 0 {
			out[i], out[j] = out[j], out[i]
		}
	})
	return out
}

// TestKeepsHostsMessages: what a plugin keeps is the host's own message, with what the
// plugin never saw.
func TestKeepsHostsMessages(t *testing.T) {
	messages := chat(4)
	for i := range messages {
		messages[i].Source = raw(`{"from": "file"}`)
	}
	c := serve(t, strategy(func(_ context.Context, req *core.Request, _ registry.Env) (*core.Result, error) {
		m := req.Messages
		m[1].Parts = []core.Part{core.Text("shorter"), m[1].Parts[1]}
		return &core.Result{Messages: []core.Message{m[0], m[1], m[3]}}, nil
	}), nil)
	res, err := c.Condense(t.Context(), coretest.HalfRequest(messages))
	if err != nil {
		t.Fatal(err)
	}
	if got := ids(res.Messages); strings.Join(got, " ") != "m1 m2 m4" {
		t.Fatalf("got %v", got)
	}
	if m := res.Messages[0]; string(m.Source) != `{"from": "file"}` || &m.Parts[0] != &messages[0].Parts[0] || !m.Time.Equal(messages[0].Time) {
		t.Errorf("a kept message is %+v", m)
	}
	if m := res.Messages[1]; m.Source != nil || m.Tokens != 0 || m.Parts[0] != core.Text("shorter") {
		t.Errorf("a rewritten message is %+v", m)
	}
}

// TestLarge: whatever is larger than gRPC's default limit of 4 MiB passes, in any place.
func TestLarge(t *testing.T) {
	huge := core.Text(strings.Repeat("a line of some tool's output\n", 180_000)) // 5.2 MB
	messages := coretest.Conversation(
		coretest.User(huge), coretest.Assistant(core.Text("x")), coretest.User(huge+"!"), coretest.Assistant(core.Text("y")))
	var counted int
	c := serve(t, strategy(func(_ context.Context, req *core.Request, _ registry.Env) (*core.Result, error) {
		if req.System != string(huge) || len(req.Messages) != 4 || req.Messages[2].Parts[0] != huge+"!" {
			return nil, errors.New("something is missing")
		}
		counted = req.Counter.Count(huge[1:])
		m := req.Messages
		m[0].Parts = []core.Part{huge[:4_500_000]}
		return &core.Result{Messages: []core.Message{m[0], {Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{huge[:4_300_000]}}, m[3]}}, nil
	}), nil)
	req := coretest.HalfRequest(messages)
	req.System = string(huge)
	res, err := c.Condense(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Messages) != 3 || res.Messages[0].Parts[0] != huge[:4_500_000] || res.Messages[1].Parts[0] != huge[:4_300_000] {
		t.Errorf("got %d messages", len(res.Messages))
	}
	if want := req.Counter.Count(huge[1:]); counted != want {
		t.Errorf("counted %d; want %d", counted, want)
	}
}

// TestConformance: what is valid in process is valid through the protocol, and what coretest
// finds wrong with a provider it finds here as well.
func TestConformance(t *testing.T) {
	summarizes := core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
		res, err := coretest.Truncates().Condense(ctx, req)
		if err != nil {
			return nil, err
		}
		for i := range res.Messages {
			if m := &res.Messages[i]; m.ID == "" {
				m.Kind = core.KindSummary
			}
		}
		return res, nil
	})
	for name, p := range map[string]core.CondensationProvider{
		"keeps": coretest.Keeps(), "truncates": coretest.Truncates(), "summarizes": summarizes,
	} {
		t.Run(name, func(t *testing.T) {
			coretest.Run(t, func(t *testing.T) core.CondensationProvider { return serve(t, provided(p), nil) })
		})
	}
}
