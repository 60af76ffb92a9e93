package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// A parrot is a language model that answers with its name.
type parrot string

func (p parrot) Generate(context.Context, *model.Prompt) (*model.Answer, error) {
	return &model.Answer{Text: string(p), Usage: core.Usage{Calls: 1, InputTokens: 100, OutputTokens: 10, Unpriced: 1}}, nil
}

func (p parrot) Info() model.Info { return model.Info{Name: string(p)} }

// asker is a strategy that replaces everything by a model's answer. It records in opened and
// closed which of its providers were opened and closed.
type asker struct{ opened, closed *[]string }

type askerSettings struct {
	Model string `json:"model" doc:"the name of the language model"`
}

func (a asker) strategy() registry.Strategy {
	return registry.Define("asker", "Asks a language model.", func() askerSettings { return askerSettings{} },
		func(_ context.Context, s askerSettings, env registry.Env) (core.CondensationProvider, error) {
			m, err := env.Model(s.Model)
			if err != nil {
				return nil, err
			}
			*a.opened = append(*a.opened, m.Info().Name)
			return &asking{a, m}, nil
		})
}

type asking struct {
	asker
	model.Generator
}

func (a *asking) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	answer, err := a.Generate(ctx, &model.Prompt{Messages: req.Messages})
	if err != nil {
		return nil, err
	}
	m := core.Message{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(answer.Text + " " + req.Originals)}}
	return &core.Result{Messages: []core.Message{m}, Usage: answer.Usage}, nil
}

func (a *asking) EstimateCost(context.Context, *core.Request) (core.Usage, error) {
	return core.Usage{Calls: 3, InputTokens: 300, OutputTokens: 30, Unpriced: 3}, nil
}

func (a *asking) Close() error {
	*a.closed = append(*a.closed, a.Info().Name)
	return nil
}

// openAsker returns a host that knows the strategy, with this configuration.
func openAsker(t *testing.T, text string, opts *condense.Options) (*condense.Host, asker, error) {
	t.Helper()
	a := asker{new([]string), new([]string)}
	all := condense.Options{}
	if opts != nil {
		all = *opts
	}
	all.Load, all.Strategies = loadText(t, text), []registry.Strategy{a.strategy()}
	h, err := condense.Open(t.Context(), &all)
	if err == nil {
		t.Cleanup(func() {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return h, a, err
}

// configured returns the configuration of a file with this text.
func configured(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := condense.Load(&condense.Options{Load: loadText(t, text), Strategies: []registry.Strategy{asker{}.strategy()}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestWhichModel: the model of a provider follows from its settings, the program, the
// profile and the configuration, in this order.
func TestWhichModel(t *testing.T) {
	own := map[string]model.Generator{"ours": parrot("ours")}
	const (
		local  = "models: {local: {api: openai, base_url: 'http://localhost:1/v1'}}\n"
		two    = "models: {local: {api: openai, base_url: 'http://localhost:1/v1'}, cheap: {api: anthropic, model: claude-haiku-4-5}}\n"
		ask    = "providers: {ask: {strategy: asker}}\n"
		plain  = "profiles: {p: {window: 20000, chain: [ask]}}\n"
		sonnet = "profiles: {p: {model: anthropic/claude-sonnet-4-5, chain: [ask]}}\n"
		odd    = "profiles: {p: {model: deepseek/deepseek-chat, chain: [ask]}}\n"
	)
	named := func(name string) string {
		return "providers: {ask: {strategy: asker, settings: {model: '" + name + "'}}}\n"
	}
	for _, tt := range []struct {
		name, text string
		opts       *condense.Options
		want       string // the model's name, empty if its provider is skipped; or part of the error
	}{
		{"by name", plain + two + named("cheap"), nil, "cheap"},
		{"of the table", plain + named("openai/gpt-4.1-mini"), nil, "openai/gpt-4.1-mini"},
		{"extractive", plain + named("extractive"), nil, "extractive"},
		{"of the program", plain + two + named("ours"), &condense.Options{Models: own}, "ours"},
		{"the program's comes first", plain + local + named("local"), &condense.Options{Models: map[string]model.Generator{"local": parrot("theirs")}}, "theirs"},
		{"none named: the program's choice", sonnet + two + ask, &condense.Options{Model: "extractive"}, "extractive"},
		{"none named: the profile's", sonnet + two + ask, nil, "anthropic/claude-sonnet-4-5"},
		{"none named: the only one declared is not taken", plain + local + ask, nil, ""},
		{"none named: the program's only one", plain + ask, &condense.Options{Models: own}, "ours"},
		{"none named: the profile's cannot be reached, and another vendor's is not taken", odd + local + ask, nil, ""},
		{"none at all", plain + ask, nil, ""},
		{"several declared", plain + two + ask, nil, ""},
		{"misspelt", plain + two + named("chep"), nil, `there is no language model "chep"; did you mean "cheap"?; there are cheap, local, extractive`},
		{"misspelt in the table", plain + named("anthropic/claude-haiku-4-6"), nil, `did you mean "anthropic/claude-haiku-4-5"?`},
		{"not reached", plain + named("deepseek/deepseek-chat"), nil, "how to reach it is not known: declare it in the section models with api"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, a, err := openAsker(t, tt.text, tt.opts)
			if err != nil {
				if !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got error %v\nwant %s", err, tt.want)
				}
				return
			}
			// The default profile has no chain: only p opens the provider.
			if !slices.Equal(*a.opened, []string{tt.want}) {
				t.Errorf("got %q; want %q", *a.opened, tt.want)
			}
		})
	}
}

// TestModelPerProfile: a provider that names no model gets that of each profile.
func TestModelPerProfile(t *testing.T) {
	_, a, err := openAsker(t, `
default_profile: a
profiles:
  a: {model: anthropic/claude-sonnet-4-5, chain: [asker]}
  b: {model: openai/gpt-4.1, chain: [asker]}
  c: {model: openai/gpt-4.1, threshold: 50, chain: [asker]}
`, nil)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(*a.opened)
	if want := []string{"anthropic/claude-sonnet-4-5", "openai/gpt-4.1"}; !slices.Equal(*a.opened, want) {
		t.Errorf("opened for %q; want %q", *a.opened, want)
	}
}

// TestMissingKey: a model without its key is not an error of the configuration; its provider
// is skipped, the report says which variable is missing, and a key that is set later counts.
func TestMissingKey(t *testing.T) {
	t.Setenv("TEST_CONDENSE_KEY", "")
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			t.Errorf("the key sent is %q", r.Header.Get("Authorization"))
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"choices": []any{map[string]any{"message": map[string]any{"role": "assistant", "content": "in short"}, "finish_reason": "stop"}},
			"usage":   map[string]any{"prompt_tokens": 1000, "completion_tokens": 5},
		})
	}))
	defer vendor.Close()
	text := "profiles: {p: {window: 20000, chain: [ask]}}\nproviders: {ask: {strategy: asker, settings: {model: m}}}\nmodels: {m: {api: openai, model: x, base_url: '" + vendor.URL +
		"/v1', api_key_env: TEST_CONDENSE_KEY, price: {input: 2, output: 10}}}\n"
	h, _, err := openAsker(t, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := h.Manage(t.Context(), talk(400), condense.Turn{})
	if err != nil {
		t.Fatal(err)
	}
	if at := r.Attempts[0]; at.Outcome != core.OutcomeSkipped || !strings.Contains(at.Reason, "TEST_CONDENSE_KEY") {
		t.Errorf("got %s: %s; want it to be skipped for want of TEST_CONDENSE_KEY", at.Outcome, at.Reason)
	}
	t.Setenv("TEST_CONDENSE_KEY", "sesame")
	r, err = h.Manage(t.Context(), talk(400), condense.Turn{})
	if err != nil {
		t.Fatal(err)
	}
	want := core.Usage{Calls: 1, InputTokens: 1000, OutputTokens: 5, USD: 0.00205}
	if at := r.Attempts[0]; at.Outcome != core.OutcomeApplied || r.Usage != want {
		t.Errorf("got %s: %s with usage %+v; want %+v", at.Outcome, at.Reason, r.Usage, want)
	}
}

// TestEstimate: the expected costs are known before, the actual costs afterwards, in the
// report and in the journal.
func TestEstimate(t *testing.T) {
	var events []string
	opts := &condense.Options{Models: map[string]model.Generator{"ours": parrot("ours")}, Observe: func(e condense.Event) {
		events = append(events, string(e.Kind))
	}}
	h, _, err := openAsker(t, "profiles: {p: {window: 20000, chain: [asker]}}\n", opts)
	if err != nil {
		t.Fatal(err)
	}
	estimate := condense.Estimate{Provider: "asker", Usage: core.Usage{Calls: 3, InputTokens: 300, OutputTokens: 30, Unpriced: 3}}
	c := talk(400)
	got, err := h.Estimate(t.Context(), c, condense.Turn{})
	if err != nil || !slices.Equal(got, []condense.Estimate{estimate}) {
		t.Errorf("got %+v, %v; want %+v", got, err, estimate)
	}
	if got, err := h.Estimate(t.Context(), talk(3), condense.Turn{}); err != nil || got != nil {
		t.Errorf("nothing is due: got %+v, %v", got, err)
	}
	events = nil
	r, err := h.Manage(t.Context(), c, condense.Turn{Estimate: true})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Estimates, []condense.Estimate{estimate}) || !slices.Equal(events[:3], []string{"started", "estimated", "asking"}) {
		t.Errorf("got estimates %+v and events %q", r.Estimates, events)
	}
	spent := core.Usage{Calls: 1, InputTokens: 100, OutputTokens: 10, Unpriced: 1}
	if recorded := c.Journal().Condensations()[0].Attempts[0].Usage; r.Usage != spent || recorded != spent {
		t.Errorf("got usage %+v, recorded %+v; want %+v", r.Usage, recorded, spent)
	}
}

// TestSpentInVain: the costs of a condensation that is cancelled are reported.
func TestSpentInVain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	opts := &condense.Options{Models: map[string]model.Generator{"ours": parrot("ours")}, Observe: func(e condense.Event) {
		if e.Kind == condense.EventAttempt {
			cancel()
		}
	}}
	h, _, err := openAsker(t, "profiles: {p: {window: 20000, chain: [asker]}}\n", opts)
	if err != nil {
		t.Fatal(err)
	}
	c := talk(400)
	r, err := h.Manage(ctx, c, condense.Turn{})
	if !errors.Is(err, context.Canceled) || r == nil {
		t.Fatalf("got %+v, %v", r, err)
	}
	want := core.Usage{Calls: 1, InputTokens: 100, OutputTokens: 10, Unpriced: 1}
	if r.Acted || r.Usage != want || len(r.Attempts) != 1 || len(c.Journal().Condensations()) != 0 {
		t.Errorf("got %d attempts, usage %+v, acted %v; want one, %+v, and nothing done", len(r.Attempts), r.Usage, r.Acted, want)
	}
}

// TestReloadKeepsProviders: a change that does not concern a provider does not open it
// again; one of the models that it uses does.
func TestReloadKeepsProviders(t *testing.T) {
	text := func(threshold, window string) string {
		return "threshold: " + threshold + "\nprofiles: {p: {model: m, window: 20000, chain: [asker]}}\n" +
			"models: {m: {api: openai, base_url: 'http://localhost:1/v1', window: " + window + "}}\n"
	}
	h, a, err := openAsker(t, text("50", "1000"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		text           string
		opened, closed int
	}{
		{text("60", "1000"), 1, 0},
		{text("60", "2000"), 2, 1},
		{text("70", "2000"), 2, 1},
		{"profiles: {p: {window: 20000}}\n", 2, 2},
	} {
		if err := h.Reload(t.Context(), configured(t, step.text)); err != nil {
			t.Fatal(err)
		}
		if len(*a.opened) != step.opened || len(*a.closed) != step.closed {
			t.Errorf("%s: %d opened, %d closed; want %d and %d", step.text, len(*a.opened), len(*a.closed), step.opened, step.closed)
		}
	}
	wrong := configured(t, "profiles: {p: {window: 20000, chain: [ask]}}\nproviders: {ask: {strategy: asker, settings: {model: nope}}}\n")
	if err := h.Reload(t.Context(), wrong); err == nil {
		t.Error("a configuration with a model that does not exist was taken")
	}
}
