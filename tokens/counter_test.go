package tokens_test

import (
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/tokens"
)

func TestCounterCount(t *testing.T) {
	t.Parallel()
	c := tokens.NewCounter(open(t, tokens.O200kBase))
	const args = `{"path":"main.go"}`
	text := c.CountText
	for _, tt := range []struct {
		name  string
		parts []core.Part
		want  int
	}{
		{"nothing", nil, 0},
		{"text", []core.Part{core.Text("hello world")}, 2},
		{"texts", []core.Part{core.Text("hello world"), core.Text("hello world")}, 4},
		{"tool call", []core.Part{core.ToolCall{ID: "toolu_01", Name: "read_file", Args: args}}, text("read_file") + text(args)},
		{"tool result", []core.Part{core.ToolResult{CallID: "toolu_01", Content: []core.Part{core.Text("hello world"), core.Image{}}}}, 2 + 1600},
		{"empty tool result", []core.Part{core.ToolResult{CallID: "toolu_01"}}, 0},
		{"reasoning", []core.Part{core.Reasoning{Text: "hello world", Signature: strings.Repeat("x", 500)}}, 2},
		{"encrypted reasoning", []core.Part{core.Reasoning{Encrypted: strings.Repeat("x", 4000)}}, (3000 - 650 + 3) / 4},
		{"short encrypted reasoning", []core.Part{core.Reasoning{Encrypted: strings.Repeat("x", 100)}}, 0},
		{"encrypted reasoning with a summary", []core.Part{core.Reasoning{Text: "hello world", Encrypted: strings.Repeat("x", 4000)}}, 588},
		{"opaque", []core.Part{core.Opaque{Kind: "document", JSON: args}}, text(args)},
	} {
		if got := c.Count(tt.parts...); got != tt.want {
			t.Errorf("%s: Count = %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestBreakdown(t *testing.T) {
	t.Parallel()
	c := tokens.NewCounter(open(t, tokens.O200kBase))
	hello := core.Text("hello world")
	call := core.ToolCall{Name: "hello", Args: "world"}
	got := c.Breakdown(
		core.Message{Role: core.RoleSystem, Parts: []core.Part{hello}},
		core.Message{Role: core.RoleUser, Parts: []core.Part{hello, core.Image{URL: "https://example.com/a.png"}}},
		core.Message{Role: core.RoleAssistant, Parts: []core.Part{core.Reasoning{Text: "hello"}, hello, call, call}},
		core.Message{Role: core.RoleUser, Parts: []core.Part{core.ToolResult{Content: []core.Part{hello, core.Image{}}}}},
		core.Message{Role: core.RoleTool, Parts: []core.Part{core.ToolResult{Content: []core.Part{core.Opaque{JSON: "hello"}}}}},
		core.Message{Role: "developer", Parts: []core.Part{hello}},
	)
	want := map[tokens.Kind]int{
		tokens.KindSystem:     4 + 2,
		tokens.KindUser:       4 + 2 + 4 + 4 + 2,
		tokens.KindAssistant:  4 + 2,
		tokens.KindReasoning:  1,
		tokens.KindToolCall:   4,
		tokens.KindToolResult: 2 + 4 + 1,
		tokens.KindImage:      1600 + 1600,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Breakdown (-want +got):\n%s", diff)
	}
	for _, k := range tokens.Kinds() {
		delete(got, k)
	}
	if len(got) != 0 {
		t.Errorf("kinds that Kinds does not list: %v", got)
	}
}

// The numbers of a report add up, whatever is in a message.
func TestBreakdownAddsUp(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(23, 24))
	for _, name := range tokens.Names() {
		c := tokens.NewCounter(open(t, name))
		for range 300 {
			messages := make([]core.Message, r.IntN(4))
			want := 0
			for i := range messages {
				messages[i] = message(r)
				want += core.MessageTokens(c, messages[i])
			}
			by := c.Breakdown(messages...)
			got := 0
			for n := range maps.Values(by) {
				got += n
			}
			if got != want {
				t.Errorf("%s: the kinds of %v add up to %d, want %d", name, messages, got, want)
			}
			for range 2 { // not measured, and measured
				if diff := cmp.Diff(by, c.BreakdownMeasured(messages...)); diff != "" {
					t.Errorf("%s: BreakdownMeasured of %v (-Breakdown +got):\n%s", name, messages, diff)
				}
				core.Measure(c, messages)
			}
		}
	}
}

func message(r *rand.Rand) core.Message {
	roles := []core.Role{core.RoleSystem, core.RoleUser, core.RoleAssistant, core.RoleTool, "developer", ""}
	return core.Message{Role: roles[r.IntN(len(roles))], Parts: parts(r, 2)}
}

func parts(r *rand.Rand, depth int) []core.Part {
	var out []core.Part
	for range r.IntN(4) {
		switch s := tokens.RandomText(r, 20); r.IntN(6) {
		case 0:
			out = append(out, core.Text(s))
		case 1:
			out = append(out, core.ToolCall{ID: s, Name: s, Args: s})
		case 2:
			if depth > 0 {
				out = append(out, core.ToolResult{CallID: s, Content: parts(r, depth-1)})
			}
		case 3:
			out = append(out, core.Image{Data: s})
		case 4:
			out = append(out, core.Reasoning{Text: s, Encrypted: strings.Repeat("x", r.IntN(2000))})
		case 5:
			out = append(out, core.Opaque{Kind: "document", JSON: s})
		}
	}
	return out
}

func TestCounterConcurrently(t *testing.T) {
	t.Parallel()
	enc := open(t, tokens.CL100kBase)
	c := tokens.NewCounter(enc)
	recorded := sessions(t)[:150]
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, s := range recorded {
				if got, want := c.CountText(s.text), enc.CountText(s.text); got != want {
					t.Errorf("CountText(%.40q) = %d, want %d", s.text, got, want)
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkCounter measures a history that was measured before, as at every turn.
func BenchmarkCounter(b *testing.B) {
	c := tokens.NewCounter(open(b, tokens.O200kBase))
	var messages []core.Message
	size := 0
	for _, s := range sessions(b) {
		messages = append(messages, core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text(s.text)}})
		size += len(s.text)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		for i := range messages {
			core.MessageTokens(c, messages[i])
		}
	}
}
