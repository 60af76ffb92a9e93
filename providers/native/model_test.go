package native_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/providers/native"
	"github.com/condensehq/condense/registry"
)

// session returns a request for a conversation of about so many tokens, to be brought to
// half of them. Its window is as large as it is.
func session(turns, tokens int) *core.Request {
	var m []core.Message
	for i := range turns {
		id := fmt.Sprintf("c%d", i)
		m = append(
			m,
			coretest.User(core.Text(fmt.Sprintf("Request number %d.", i))),
			coretest.Assistant(core.Text("Looking."), core.ToolCall{ID: id, Name: "run", Args: `{"command":"make"}`}),
			coretest.User(coretest.Result(id, fmt.Sprintf("output %d ", i)+strings.Repeat("line of output\n", tokens/4/turns))),
			coretest.Assistant(core.Text(fmt.Sprintf("Answer number %d.", i))),
		)
	}
	return coretest.HalfRequest(coretest.Conversation(m...))
}

// TestOddModels holds that no model, whatever it does, gets a bad summary into a
// conversation, and that what was spent is reported.
func TestOddModels(t *testing.T) {
	t.Parallel()
	fail := func(err error) func(context.Context, *model.Prompt) (*model.Answer, error) {
		return func(context.Context, *model.Prompt) (*model.Answer, error) {
			return &model.Answer{Usage: core.Usage{Calls: 1, InputTokens: 7}}, err
		}
	}
	cut := func(_ context.Context, _ *model.Prompt) (*model.Answer, error) {
		return &model.Answer{Text: "and so on", Truncated: true, Usage: core.Usage{Calls: 1, InputTokens: 7}}, nil
	}
	unavailable := fmt.Errorf("no key: %w", core.ErrUnavailable)
	for _, c := range []struct {
		name   string
		answer func(context.Context, *model.Prompt) (*model.Answer, error)
		is     error  // what the error wraps
		want   string // what the error, or else the summary, says
		calls  int
	}{
		{name: "says nothing", answer: say(" \n"), is: model.ErrNoText, want: "without text", calls: 1},
		{name: "only thinks", answer: say("<think>Hm.</think>"), is: model.ErrNoText, want: "without text", calls: 1},
		{name: "thinks first", answer: say("<think>Hm.</think>\n\nIt works."), want: "Summary\nIt works.", calls: 1},
		{name: "analyses first", answer: say("<analysis>Hm.</analysis>\n<summary>\nIt works.\n</summary>"), want: "Summary\nIt works.", calls: 1},
		{name: "repeats its instructions", answer: func(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
			return say(text(p.Messages[len(p.Messages)-1]))(ctx, p)
		}, want: "repeated its instructions", calls: 1},
		{name: "writes a call of a tool", answer: say("<tool_call>{\"name\":\"rm\"}</tool_call>\nIt works."), want: "It works.", calls: 1},
		{name: "says too much", answer: say(strings.Repeat("bla ", 30_000)), want: "saves nothing", calls: 2},
		{name: "says too much once", answer: func(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
			if strings.Contains(text(p.Messages[len(p.Messages)-1]), "first attempt was too long") {
				return say("Short now.")(ctx, p)
			}
			return say(strings.Repeat("bla ", 30_000))(ctx, p)
		}, want: "Short now.", calls: 2},
		{name: "is cut off", answer: cut, want: "The summary ends here because the model reached its limit", calls: 2},
		{name: "cannot be asked", answer: fail(unavailable), is: core.ErrUnavailable, want: "no key", calls: 1},
		{name: "fails", answer: fail(errors.New("500 oh no")), want: "ask the model odd: 500 oh no", calls: 1},
		{name: "answers nothing at all", answer: func(context.Context, *model.Prompt) (*model.Answer, error) { return nil, nil }, want: "neither an answer nor an error", calls: 1},
		{name: "panics", answer: func(context.Context, *model.Prompt) (*model.Answer, error) { panic("oh") }, want: "panic: oh", calls: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			gen := &fake{answer: c.answer, info: model.Info{Name: "odd", Window: 1 << 20}}
			req := session(10, 20_000)
			res, err := open(t, `{}`, gen).Condense(t.Context(), req)
			got := ""
			switch {
			case err != nil:
				got = err.Error()
				if c.is != nil && !errors.Is(err, c.is) {
					t.Errorf("%v does not wrap %v", err, c.is)
				}
			default:
				if c.is != nil {
					t.Errorf("got no error, want %v", c.is)
				}
				if err := core.Verify(req, res); err != nil {
					t.Error(err)
				}
				got = allText(res.Messages)
			}
			wantAll(t, "the outcome", got, c.want)
			if len(gen.asks) != c.calls {
				t.Errorf("the model was asked %d times, want %d", len(gen.asks), c.calls)
			}
			if spent := res.Usage.Calls; c.name != "panics" && c.name != "answers nothing at all" && spent != c.calls {
				t.Errorf("%d calls are reported, want %d", spent, c.calls)
			}
		})
	}
}

// TestSlowModel holds that the end of a context ends the work.
func TestSlowModel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gen := &fake{info: model.Info{Window: 1 << 20}, answer: func(ctx context.Context, _ *model.Prompt) (*model.Answer, error) {
			<-ctx.Done()
			return nil, fmt.Errorf("the request was given up: %w", ctx.Err())
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := open(t, `{}`, gen).Condense(ctx, session(10, 20_000))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the deadline", err)
		}
		if len(gen.asks) != 1 {
			t.Errorf("asked %d times, want once", len(gen.asks))
		}
	})
}

// TestNothingIsSpentInVain holds that no model is called if nothing can come of it.
func TestNothingIsSpentInVain(t *testing.T) {
	t.Parallel()
	onTarget := session(10, 20_000)
	onTarget.Budget.Target, onTarget.Budget.Limit = 1<<20, 1<<20
	protected := session(10, 20_000)
	for i := range protected.Messages {
		protected.Messages[i].Protected = i != 3
	}
	summary := coretest.HalfRequest(coretest.Conversation(core.Message{
		Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(strings.Repeat("It works. ", 1000))},
	}))
	summary.Trigger = core.TriggerManual
	summary.Budget.Target, summary.Budget.Limit = 1<<20, 1<<20
	tiny := coretest.HalfRequest(coretest.Conversation(coretest.User(core.Text("Hello.")), coretest.Assistant(core.Text("Hello."))))
	small := session(10, 20_000)
	for name, c := range map[string]struct {
		req  *core.Request
		info model.Info
		want string
	}{
		"on target":             {req: onTarget},
		"almost all protected":  {req: protected},
		"nothing but a summary": {req: summary},
		"two words":             {req: tiny},
		"window too small":      {req: small, info: model.Info{Name: "tiny", Window: 1500}, want: "the window of the model tiny is too small: 1,500 tokens"},
		"too many calls":        {req: session(200, 400_000), info: model.Info{Name: "small", Window: 8000}, want: "max_calls allows 32"},
	} {
		gen := &fake{info: c.info}
		res, err := open(t, `{}`, gen).Condense(t.Context(), c.req)
		switch {
		case err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v", name, err)
		case err == nil && c.want != "":
			t.Errorf("%s: no error, want %s", name, c.want)
		case err == nil && len(res.Messages) != len(c.req.Messages):
			t.Errorf("%s: %d messages became %d", name, len(c.req.Messages), len(res.Messages))
		}
		if len(gen.asks) > 0 {
			t.Errorf("%s: the model was asked %d times", name, len(gen.asks))
		}
	}
}

// TestPresetsAreDefaults holds that a preset gives the other settings their defaults, and
// that any of them can be set next to it.
func TestPresetsAreDefaults(t *testing.T) {
	t.Parallel()
	var c native.Config
	if err := json.Unmarshal([]byte(`{"max_output":100,"preset":"rolling","recent_messages":2}`), &c); err != nil {
		t.Fatal(err)
	}
	if c.MaxOutput != 100 || c.RecentMessages != 2 || c.RecentShare != 0.25 {
		t.Errorf("got %+v", c)
	}
	if d := native.DefaultConfig(); d.Preset != "fresh_start" || d.MaxOutput != 8192 {
		t.Errorf("the defaults are %+v", d)
	}
	env := registry.Env{Model: func(string) (model.Generator, error) { return new(fake), nil }}
	for settings, want := range map[string]string{
		`{"preset":"roling"}`:                      `open native: settings: preset: "roling" is none of fresh_start, keep_recent, rolling, sections`,
		`{"presett":"rolling"}`:                    `did you mean "preset"?`,
		`{"preset":7}`:                             `preset: got a JSON number`,
		`{"preset":"rolling","max_output":"many"}`: `max_output: got a JSON string`,
		`{"max_output":0}`:                         `max_output: 0 is less than 1`,
		`{"recent_share":1.5}`:                     `recent_share: 1.5 is not between 0 and 1`,
		`{"prompt_text":"a","prompt_file":"b"}`:    `prompt_file: prompt_text is set too`,
		`{"prompt_file":"/no/such/file"}`:          `open native: settings: prompt_file: open /no/such/file`,
		`[]`:                                       `got a JSON array`,
	} {
		_, err := native.Strategy().Open(t.Context(), json.RawMessage(settings), env)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", settings, err, want)
		}
	}
	env.Model = func(name string) (model.Generator, error) { return nil, fmt.Errorf("there is no model %q", name) }
	_, err := native.Strategy().Open(t.Context(), json.RawMessage(`{"model":"cheep"}`), env)
	if err == nil || err.Error() != `open native: settings: model: there is no model "cheep"` {
		t.Errorf("got %v", err)
	}
}

// TestPrompts holds that the instructions are those that the settings ask for, with what
// the user wants of this condensation.
func TestPrompts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "prompt.txt")
	if err := os.WriteFile(file, []byte("Write it as a poem.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for settings, want := range map[string]string{
		`{}`:                                   "1. Goal",
		`{"preset":"rolling"}`:                 "- Goals:",
		`{"prompt_text":"Write it in Latin."}`: "Write it in Latin.",
		`{"prompt_file":"` + file + `"}`:       "Write it as a poem.",
		`{"preset":"sections"}`:                "one short paragraph",
		`{"preset":"keep_recent"}`:             "Write the summary now",
		`{"request":"prefix"}`:                 "1. Goal",
	} {
		gen := new(fake)
		req := session(10, 20_000)
		req.Instructions = "Keep the port numbers."
		if _, err := open(t, settings, gen).Condense(t.Context(), req); err != nil {
			t.Fatalf("%s: %v", settings, err)
		}
		ask := gen.asks[0]
		last := text(ask.Messages[len(ask.Messages)-1])
		wantAll(t, settings, last, want)
		wantAll(t, settings, ask.System+last, "Keep the port numbers.", "Write at most", "ystem operation")
	}
}

// TestPromptFileOfTheConfiguration: a relative path starts at the file of the settings.
func TestPromptFileOfTheConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "prompt.txt"), []byte("Write it as a poem.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	gen := new(fake)
	p, err := native.Strategy().Open(t.Context(), json.RawMessage(`{"prompt_file":"prompt.txt"}`), registry.Env{
		Dir: dir, Model: func(string) (model.Generator, error) { return gen, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Condense(t.Context(), session(10, 20_000)); err != nil {
		t.Fatal(err)
	}
	wantAll(t, "what was asked", allText(gen.asks[0].Messages), "Write it as a poem.")
}

// TestEstimate holds that what a condensation costs is known before, no call too few and
// never too low, and that nothing is asked to find out.
func TestEstimate(t *testing.T) {
	t.Parallel()
	for name, info := range map[string]model.Info{
		"at once":  {Window: 1 << 20},
		"in parts": {Window: 12_000},
		"priced":   {Window: 12_000, Price: model.Price{Input: 1, Output: 5}},
	} {
		gen := &fake{info: info, answer: func(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
			a, err := say(strings.Repeat("word ", 50))(ctx, p)
			a.Usage.InputTokens += coretest.Counter{}.Count(core.Text(p.System))
			a.Usage = info.Charge(a.Usage)
			return a, err
		}}
		p := open(t, `{}`, gen)
		req := session(40, 60_000)
		before, err := core.EstimateCost(t.Context(), p, req)
		if err != nil {
			t.Fatal(err)
		}
		if len(gen.asks) > 0 {
			t.Errorf("%s: the model was asked", name)
		}
		res, err := p.Condense(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		after := res.Usage
		if before.Calls != after.Calls || before.InputTokens < after.InputTokens || before.OutputTokens < after.OutputTokens || before.USD < after.USD {
			t.Errorf("%s: estimated %+v, was %+v", name, before, after)
		}
		if before.InputTokens > 2*after.InputTokens {
			t.Errorf("%s: estimated %d tokens of input, were %d", name, before.InputTokens, after.InputTokens)
		}
		if info.Price.Input > 0 == (before.Unpriced > 0) {
			t.Errorf("%s: %d of %d calls have no price", name, before.Unpriced, before.Calls)
		}
	}
}
