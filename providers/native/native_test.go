package native_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/providers/native"
	"github.com/condensehq/condense/registry"
)

// A fake is a model that answers what a test says, and remembers what it was asked.
type fake struct {
	info   model.Info
	answer func(ctx context.Context, p *model.Prompt) (*model.Answer, error)

	mu   sync.Mutex
	asks []*model.Prompt
}

func (f *fake) Info() model.Info { return f.info }

func (f *fake) Generate(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	f.mu.Lock()
	f.asks = append(f.asks, p)
	f.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f.answer != nil {
		return f.answer(ctx, p)
	}
	return say("The build failed because of a missing comma; it was mended.")(ctx, p)
}

// say returns the behaviour of a model that always says text.
func say(text string) func(context.Context, *model.Prompt) (*model.Answer, error) {
	return func(_ context.Context, p *model.Prompt) (*model.Answer, error) {
		n := 0
		for _, m := range p.Messages {
			n += coretest.Counter{}.Count(m.Parts...)
		}
		return &model.Answer{Text: text, Usage: core.Usage{Calls: 1, InputTokens: n, OutputTokens: (len(text) + 3) / 4}}, nil
	}
}

// open returns the provider that a configuration with these settings would get.
func open(tb testing.TB, settings string, gen model.Generator) core.CondensationProvider {
	tb.Helper()
	p, err := native.Strategy().Open(context.Background(), json.RawMessage(settings), registry.Env{
		Model: func(string) (model.Generator, error) { return gen, nil },
	})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func forEachPreset(t *testing.T, f func(t *testing.T, preset string)) {
	t.Helper()
	for _, s := range native.Strategy().Settings() {
		if s.Name != "preset" {
			continue
		}
		for _, preset := range s.Enum {
			t.Run(preset, func(t *testing.T) { f(t, preset) })
		}
	}
}

func TestConformance(t *testing.T) {
	forEachPreset(t, func(t *testing.T, name string) {
		t.Parallel()
		for _, request := range []string{"text", "native", "prefix"} {
			settings := fmt.Sprintf(`{"preset":%q,"request":%q}`, name, request)
			if err := coretest.TestProvider(t.Context(), open(t, settings, new(fake))); err != nil {
				t.Errorf("request %s: %v", request, err)
			}
		}
	})
}

// TestAnswersAreValid holds that whatever the conversation and the summary, the answer
// breaks no rule, is smaller than what it replaces, and within the room where there is
// any.
func TestAnswersAreValid(t *testing.T) {
	forEachPreset(t, func(t *testing.T, name string) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
			messages := coretest.Random(r, nil)
			req := coretest.Request(messages, 0)
			total := req.Tokens()
			target := rapid.IntRange(1, max(1, total)).Draw(t, "target")
			req.Budget = core.Budget{Window: 2 * target, Limit: target + rapid.IntRange(0, 500).Draw(t, "slack"), Target: target}
			req.Environment = rapid.SampledFrom([]string{"", "<environment_details>\nopen: a.go\n</environment_details>"}).Draw(t, "environment")
			req.Originals = rapid.SampledFrom([]string{"", "history/part-1.jsonl"}).Draw(t, "originals")
			req.Trigger = rapid.SampledFrom([]core.Trigger{core.TriggerAutomatic, core.TriggerManual, core.TriggerOverflow}).Draw(t, "trigger")
			text := strings.Repeat("What was said. ", rapid.IntRange(1, 200).Draw(t, "length"))
			request := rapid.SampledFrom([]string{"text", "native", "prefix"}).Draw(t, "request")
			gen := &fake{answer: say(text), info: model.Info{Window: rapid.SampledFrom([]int{0, 3000, 1 << 20}).Draw(t, "window")}}
			p := open(nopTB{}, fmt.Sprintf(`{"preset":%q,"request":%q}`, name, request), gen)
			res, err := p.Condense(context.Background(), req)
			for _, ask := range gen.asks {
				checkPrompt(t, ask)
			}
			if err != nil {
				return
			}
			if err := core.Verify(req, res); err != nil {
				t.Fatal(err)
			}
			after := 0
			for _, m := range res.Messages {
				after += core.MessageTokens(req.Counter, m)
			}
			if len(gen.asks) > 0 && (after >= total || after > req.Budget.Limit) {
				t.Fatalf("%d tokens became %d, limit %d", total, after, req.Budget.Limit)
			}
		})
	})
}

// nopTB fails by panicking, for helpers inside of a property.
type nopTB struct{ testing.TB }

func (nopTB) Helper()           {}
func (nopTB) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// checkPrompt holds a request to a model against what the vendors' APIs demand.
func checkPrompt(t interface{ Fatalf(string, ...any) }, p *model.Prompt) {
	if len(p.Messages) == 0 {
		t.Fatalf("a prompt without messages")
	}
	if last := p.Messages[len(p.Messages)-1]; last.Role != core.RoleUser {
		t.Fatalf("the last message is of %s", last.Role)
	}
	if p.Cached {
		return // it is what the agent would send, whatever that is
	}
	used := map[string]bool{}
	for i, m := range p.Messages {
		if m.Role != core.RoleUser && m.Role != core.RoleAssistant {
			t.Fatalf("message %d is of %s", i, m.Role)
		}
		if m.Blank() {
			t.Fatalf("message %d is blank", i)
		}
		results := map[string]bool{}
		if i+1 < len(p.Messages) {
			for _, part := range p.Messages[i+1].Parts {
				if r, ok := part.(core.ToolResult); ok {
					results[r.CallID] = true
				}
			}
		}
		for _, part := range m.Parts {
			switch part := part.(type) {
			case core.ToolCall:
				if m.Role != core.RoleAssistant || used[part.ID] || !results[part.ID] {
					t.Fatalf("message %d: call %s is unpaired, used twice, or the user's", i, part.ID)
				}
				used[part.ID] = true
			case core.Reasoning, core.Opaque:
				t.Fatalf("message %d has a %T", i, part)
			case core.Text, core.Image, core.ToolResult:
			}
		}
	}
}
