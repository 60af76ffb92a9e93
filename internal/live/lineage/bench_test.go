package lineage_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/testkit"
)

// long returns a conversation of about so many tokens, 500 in each result.
func long(tb testing.TB, tokens int) (*wire.Request, []wire.Hash) {
	tb.Helper()
	var b strings.Builder
	b.WriteString(`{"model":"claude-opus-5-5","max_tokens":1000,"messages":[{"role":"user","content":"Fix the build."}`)
	text := strings.Repeat("one more line of output\\n", 80)
	for i := range tokens / 500 {
		fmt.Fprintf(&b, `,{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"c2ln"},{"type":"tool_use","id":"t%d","name":"Bash","input":{"command":"make"}}]}`, i)
		fmt.Fprintf(&b, `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"%s%d"}]}`, i, text, i)
	}
	b.WriteString("]}")
	r, err := wire.Parse(wire.Messages, []byte(b.String()), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return r, lineage.Roll(r.Messages)
}

// condensed returns the state after an epoch that left a quarter.
func condensed(tb testing.TB, r *wire.Request, rolling []wire.Hash) *lineage.State {
	tb.Helper()
	s := &lineage.State{}
	s.Adapt(r, rolling, true)
	after := append([]wire.Message{{Raw: []byte(`{"role":"user","content":"Summary."}`), Role: "user"}}, r.Messages[len(r.Messages)/4*3/2*2+1:]...)
	s, err := s.Freeze(r, rolling, lineage.Condensed{After: after}, begin)
	if err != nil {
		tb.Fatal(err)
	}
	s.Sent(r, rolling, begin)
	s.Count(r, rolling, func(raw []byte) int { return len(raw) / 4 })
	return s
}

// BenchmarkTurn is a turn that needs nothing: what the gateway spends on it besides reading the request.
func BenchmarkTurn(b *testing.B) {
	for _, tokens := range []int{20_000, 200_000, 1_000_000} {
		r, rolling := long(b, tokens)
		plain := &lineage.State{}
		plain.Count(r, rolling, func(raw []byte) int { return len(raw) / 4 })
		plain.Sent(r, rolling, begin)
		for _, v := range []struct {
			name  string
			state *lineage.State
		}{{"plain", plain}, {"condensed", condensed(b, r, rolling)}} {
			b.Run(fmt.Sprintf("%dk/%s", tokens/1000, v.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					rolling := lineage.Roll(r.Messages)
					s, _ := lineage.Follow([]*lineage.State{v.state}, r, rolling)
					s.Count(r, rolling, func(raw []byte) int { return len(raw) / 4 })
					if s.View(r, rolling) == nil {
						b.Fatal("no view")
					}
					s.Sent(r, rolling, begin)
				}
			})
		}
	}
}

// Sessions with many branches and long histories must not cost more than in proportion.
func TestTurnIsLinear(t *testing.T) {
	testkit.Linear(t, 2000, func(n int) func() {
		r, rolling := long(t, 500*n)
		s := condensed(t, r, rolling)
		return func() {
			got, _ := lineage.Follow([]*lineage.State{s}, r, lineage.Roll(r.Messages))
			got.Shorten(r, rolling, func(int) []byte { return nil })
			got.View(r, rolling)
		}
	})
}

func TestManyStatesAreSearchedInProportion(t *testing.T) {
	r, rolling := long(t, 200_000)
	testkit.Linear(t, 256, func(n int) func() {
		states := make([]*lineage.State, n)
		for i := range states {
			states[i] = &lineage.State{}
			states[i].Sent(r, rolling[:len(rolling)-i], begin)
		}
		return func() {
			if s, kind := lineage.Follow(states, r, rolling); kind != lineage.Continue || len(s.Rolling) != len(rolling) {
				t.Errorf("got kind %v", kind)
			}
		}
	})
}
