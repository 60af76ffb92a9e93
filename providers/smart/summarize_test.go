package smart_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/providers/smart"
	"github.com/condensehq/condense/registry"
)

// A writer is a model for tests.
type writer struct {
	answer  func(ctx context.Context, p *model.Prompt) (string, error)
	at, max atomic.Int32 // concurrent calls
}

func (w *writer) Info() model.Info { return model.Info{Name: "writer"} }

func (w *writer) Generate(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	for n, m := w.at.Add(1), w.max.Load(); n > m && !w.max.CompareAndSwap(m, n); m = w.max.Load() {
		continue
	}
	defer w.at.Add(-1)
	text, err := w.answer(ctx, p)
	return &model.Answer{Text: text, Usage: core.Usage{Calls: 1, OutputTokens: 10}}, err
}

func openWith(t *testing.T, settings string, w *writer) core.CondensationProvider {
	t.Helper()
	env := registry.Env{Model: func(string) (model.Generator, error) { return w, nil }}
	p, err := smart.Strategy().Open(t.Context(), json.RawMessage(settings), env)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// turns are n turns of a user, each with a call whose result is long.
func turns(n int) []core.Message {
	var m []core.Message
	for i := range n {
		m = append(m, coretest.User(core.Text(fmt.Sprintf("Question %d.", i))))
		m = append(m, tool(strconv.Itoa(i), "bash", fmt.Sprintf(`{"command":"run %d"}`, i), code(i, 1500))...)
		m = append(m, coretest.Assistant(core.Text(fmt.Sprintf("Answer %d.", i))))
	}
	return coretest.Conversation(m...)
}

func TestSummarize(t *testing.T) {
	for what, want := range map[string]struct{ calls, summaries int }{
		"block":   {6, 0}, // the results of all turns but the newest four messages' one and a half
		"section": {6, 6},
		"before":  {1, 1},
	} {
		t.Run(what, func(t *testing.T) {
			w := &writer{answer: func(_ context.Context, p *model.Prompt) (string, error) {
				if n := len(p.Messages); n != 1 || p.MaxOutput != 200 {
					t.Errorf("got %d messages and %d tokens, want 1 and 200", n, p.MaxOutput)
				}
				return "SHORT " + textOf(p.Messages...)[:20], nil
			}}
			req := coretest.Request(turns(8), 1)
			res := condense(t, openWith(t, `{"passes": [{"pass": "summarize", "what": "`+what+`", "keep": 5}]}`, w), req)
			summaries := 0
			for _, m := range res.Messages {
				if m.Kind == core.KindSummary {
					summaries++
				}
			}
			got := textOf(res.Messages...)
			if res.Usage.Calls < want.calls || strings.Count(got, "SHORT") < want.calls {
				t.Errorf("got %d calls and %d of their answers, want %d; summaries %d", res.Usage.Calls, strings.Count(got, "SHORT"), want.calls, summaries)
			}
			if (summaries > 0) != (want.summaries > 0) {
				t.Errorf("got %d summaries, want %d", summaries, want.summaries)
			}
			if w.max.Load() > 4 {
				t.Errorf("got %d concurrent calls, want at most 4", w.max.Load())
			}
			if !strings.Contains(got, code(7, 1500)) || !strings.Contains(got, "Answer 7.") {
				t.Error("the newest messages are not as they were")
			}
		})
	}
}

// TestSummarizeFailure lets every second call fail: what it was to replace stays, the
// other answers are used, and the report says so.
func TestSummarizeFailure(t *testing.T) {
	var calls atomic.Int32
	w := &writer{answer: func(context.Context, *model.Prompt) (string, error) {
		if calls.Add(1)%2 == 0 {
			return "", errors.New("overloaded")
		}
		return "SHORT", nil
	}}
	req := coretest.Request(turns(8), 1)
	res := condense(t, openWith(t, `{"passes": [{"pass": "summarize", "what": "block", "keep": 5, "parallel": 1}]}`, w), req)
	if got := textOf(res.Messages...); !strings.Contains(got, "SHORT") {
		t.Error("no answer was used")
	}
	if note := res.Steps[0].Note; !strings.Contains(note, "calls failed: overloaded") {
		t.Errorf("got the note %q", note)
	}
}

func TestSummarizeDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &writer{answer: func(ctx context.Context, _ *model.Prompt) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}}
		p := openWith(t, `{"passes": [{"pass": "summarize", "what": "before", "seconds": 5}]}`, w)
		start := time.Now()
		res, err := p.Condense(t.Context(), coretest.Request(turns(8), 1))
		if err != nil || time.Since(start) > 25*time.Second {
			t.Errorf("got %v after %s, want an answer soon after the deadlines", err, time.Since(start))
		}
		if len(res.Messages) != 32 {
			t.Errorf("got %d messages, want all 32", len(res.Messages))
		}
	})
}

func TestSummarizeNeedsAModel(t *testing.T) {
	_, err := smart.Strategy().Open(t.Context(), json.RawMessage(`{"passes": ["summarize"]}`), registry.Env{})
	if err == nil || !strings.Contains(err.Error(), "passes: 1: summarize: this host has no language models") {
		t.Errorf("got %v", err)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for settings, want := range map[string]string{
		`{"preset": "balancd"}`:                          `no preset "balancd"; did you mean "balanced"?`,
		`{"preset": "conservative"}`:                     `preset: there is no preset "conservative" any more: "balanced" keeps more`,
		`{"preset": "lossless", "passes": ["layout"]}`:   `the preset "lossless" has passes of its own`,
		`{"passes": ["layot"]}`:                          `passes: 1: no pass "layot"; did you mean "layout"?`,
		`{"passes": ["layout", {"keep": 3}]}`:            `an object without the key pass`,
		`{"passes": [{"pass": "mask", "kep": 3}]}`:       `passes: 1: mask: settings: unknown setting "kep"; did you mean "keep"?`,
		`{"passes": [{"pass": "mask", "keep": "many"}]}`: `passes: 1: mask: settings: keep: got a JSON string; want integer`,
		`{"passes": [{"pass": "mask", "keep": -1}]}`:     `passes: 1: mask: settings: keep: -1 is negative`,
		`{"passes": [3]}`:                                `passes: 1: got 3; want the name of a pass, or an object with the key pass`,
		`{"land": 2}`:                                    `land: 2 is not between 0 and 1`,
		`{"accept": {"users": -1}}`:                      `accept: users: -1 is negative`,
	} {
		_, err := smart.Strategy().Open(t.Context(), json.RawMessage(settings), registry.Env{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", settings, err, want)
		}
	}
}

// What calls a model says before what it would cost at the most; what calls none is not even
// asked.
func TestEstimate(t *testing.T) {
	req := coretest.Request(turns(6), 1)
	for _, what := range []string{"block", "section", "before"} {
		asked := 0
		w := &writer{answer: func(context.Context, *model.Prompt) (string, error) {
			asked++
			return "Short.", nil
		}}
		p := openWith(t, `{"passes": ["layout", {"pass": "summarize", "what": "`+what+`", "keep": 5, "parallel": 1}]}`, w)
		u, err := core.EstimateCost(t.Context(), p, req)
		if err != nil || asked > 0 {
			t.Fatalf("%s: %v, and the model was asked %d times", what, err, asked)
		}
		condense(t, p, req)
		if u.Calls != asked || u.OutputTokens != 200*asked || u.InputTokens < 500*asked {
			t.Errorf("%s: estimated %+v, made %d calls", what, u, asked)
		}
	}
	if _, ok := openWith(t, `{}`, &writer{}).(core.CostEstimator); ok {
		t.Error("balanced says what it costs, though it calls no model")
	}
}
