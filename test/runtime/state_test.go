package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// A counting strategy keeps the newest quarter, and leaves how often it was applied and in which conversation.
type counting struct {
	mu    sync.Mutex
	given []string // states
	named map[string]bool
}

func (c *counting) Condense(_ context.Context, req *core.Request) (*core.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.given = append(c.given, string(req.State))
	if c.named == nil {
		c.named = map[string]bool{}
	}
	c.named[req.Conversation] = true
	n := len(req.Messages)
	return &core.Result{
		Messages: core.KeepGroups(req.Messages, func(i int) bool { return i == 0 || i >= n-n/4 }),
		State:    fmt.Appendf(nil, "%s+", req.State),
	}, nil
}

func (c *counting) strategy() registry.Strategy {
	return registry.Define("counting", "Counts.", func() struct{} { return struct{}{} },
		func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) { return c, nil })
}

// withStrategy starts a host whose chain is one strategy, in a window of 4,000 tokens.
func withStrategy(t *testing.T, s registry.Strategy) *condense.Host {
	t.Helper()
	return start(t, &condense.Options{Strategies: []registry.Strategy{s}, Values: &config.Values{
		Tuning: config.Tuning{Chain: []string{s.Name}, Threshold: new(50.0)}, Providers: map[string]config.ProviderValues{s.Name: {Strategy: s.Name}},
		Profiles: map[string]config.ProfileValues{"default": {Window: new(4_000), Tuning: config.Tuning{MaxOutput: new(400)}}},
	}})
}

// grow adds messages of about 2,000 tokens.
func grow(t *testing.T, c *condense.Conversation) {
	t.Helper()
	for i := range 20 {
		m := coretest.User(core.Text(strings.Repeat("word ", 100)))
		if i%2 == 1 {
			m = coretest.Assistant(core.Text(strings.Repeat("word ", 100)))
		}
		if err := c.Append(m); err != nil {
			t.Fatal(err)
		}
	}
}

// What a provider leaves comes back in the next condensation, from the file too, and is undone with the one that left it. The
// conversation has one name, and another one has another.
func TestStateOfAProvider(t *testing.T) {
	var p counting
	h := withStrategy(t, p.strategy())
	f, err := history.Create(filepath.Join(t.TempDir(), "c.jsonl"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // the file is the test's own
	c := condense.ResumeConversation(f.Journal)
	shorten := func() string {
		t.Helper()
		grow(t, c)
		r, err := h.Manage(t.Context(), c, condense.Turn{Trigger: core.TriggerManual})
		if err != nil || !r.Acted {
			t.Fatalf("%+v, %v", r, err)
		}
		return r.CondensationID
	}
	shorten()
	second := shorten()
	shorten()
	if err := c.Undo(second); err != nil {
		t.Fatal(err)
	}
	last := shorten()
	if err := c.Undo(last); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := history.Encode(&file, c.Journal()); err != nil {
		t.Fatal(err)
	}
	again, _, err := history.Decode(&file)
	if err != nil {
		t.Fatal(err)
	}
	c = condense.ResumeConversation(again)
	shorten()
	if got, want := fmt.Sprintf("%q", p.given), `["" "+" "++" "+++" "+++"]`; got != want {
		t.Errorf("given were %s, want %s", got, want)
	}
	if len(p.named) != 1 || p.named[""] {
		t.Errorf("the conversation was named %v, want one name", p.named)
	}
	c = condense.NewConversation()
	shorten()
	if got := p.given[len(p.given)-1]; got != "" || len(p.named) != 2 {
		t.Errorf("another conversation has the state %q and the names %v", got, p.named)
	}
}

// A program is a plugin that describes its strategy.
type program struct {
	*counting
	name string
}

func (program) Ping(context.Context) error                               { return nil }
func (p program) Strategy(context.Context) string                        { return p.name }
func (program) Close() error                                             { return nil }
func (program) RefusesSettings(error) bool                               { return false }
func (program) Approved(*config.Config, config.Provider) (string, error) { return "", nil }
func (p program) Open(config.Provider, string, condense.PluginEnv) (condense.Plugin, error) {
	return p, nil
}

// A state belongs to the strategy that left it: whatever else gets the provider's name in the configuration begins without one, and a
// newer program of the same strategy goes on.
func TestStateOfAnotherProvider(t *testing.T) {
	var compiled, plugin counting
	host := func(of config.ProviderValues, p program) *condense.Host {
		return start(t, &condense.Options{Strategies: []registry.Strategy{compiled.strategy()}, Plugins: p, Values: &config.Values{
			Tuning: config.Tuning{Chain: []string{"notes"}}, Providers: map[string]config.ProviderValues{"notes": of},
			Profiles: map[string]config.ProfileValues{"default": {Window: new(4_000), Tuning: config.Tuning{MaxOutput: new(400)}}},
		}})
	}
	path := filepath.Join(t.TempDir(), "plugin")
	c := condense.NewConversation()
	for _, h := range []*condense.Host{
		host(config.ProviderValues{Strategy: "counting"}, program{}),
		host(config.ProviderValues{Plugin: path}, program{&plugin, "journal"}),
		host(config.ProviderValues{Plugin: path + "-2"}, program{&plugin, "journal"}),
		host(config.ProviderValues{Plugin: path + "-2"}, program{&plugin, "index"}),
		host(config.ProviderValues{Strategy: "counting"}, program{}),
	} {
		grow(t, c)
		if r, err := h.Manage(t.Context(), c, condense.Turn{Trigger: core.TriggerManual}); err != nil || !r.Acted {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if got, want := fmt.Sprintf("%q %q", compiled.given, plugin.given), `["" "+"] ["" "+" ""]`; got != want {
		t.Errorf("given were %s, want %s", got, want)
	}
}

// A patient strategy wants to wait.
type patient struct{ asked []int }

func (p *patient) Condense(_ context.Context, req *core.Request) (*core.Result, error) {
	p.asked = append(p.asked, req.Tokens())
	return &core.Result{Messages: req.Messages, Later: "a task is half done"}, nil
}

// A provider that wants to wait is asked again each time the conversation has grown by 2 % of the window, until it is over its limit.
// Then, or if the user asks, the next one condenses.
func TestProviderMayWait(t *testing.T) {
	var p patient
	h := withStrategy(t, registry.Define("patient", "Waits.", func() struct{} { return struct{}{} },
		func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) { return &p, nil }))
	c := condense.NewConversation()
	var r *condense.Report
	for n := 0; ; n++ {
		m := coretest.User(core.Text(strings.Repeat("word ", 20)))
		if n%2 == 1 {
			m = coretest.Assistant(core.Text(strings.Repeat("word ", 20)))
		}
		if err := c.Append(m); err != nil {
			t.Fatal(err)
		}
		before := len(p.asked)
		var err error
		if r, err = h.Manage(t.Context(), c, condense.Turn{}); err != nil {
			t.Fatal(err)
		}
		if r.Acted {
			break
		}
		if waits := "not yet: a task is half done; asked again after 80 more tokens"; len(p.asked) > before && (r.Reason != waits || r.Later != "a task is half done" || r.Attempts[0].Outcome != core.OutcomeLater) {
			t.Errorf("got %q, later %q, %+v", r.Reason, r.Later, r.Attempts)
		}
	}
	if len(p.asked) < 3 {
		t.Errorf("asked %d times", len(p.asked))
	}
	for i := 1; i < len(p.asked)-1; i++ { // the last time it was over the limit
		if grown := p.asked[i] - p.asked[i-1]; grown < 80 || grown > 80+30 {
			t.Errorf("asked again after %d tokens", grown)
		}
	}
	if got := r.Attempts; got[0].Outcome != core.OutcomeSkipped || got[1].Outcome != core.OutcomeApplied || r.Decision != "limit" {
		t.Errorf("over the limit: %s, %+v", r.Decision, got)
	}
	grow(t, c)
	if r, err := h.Manage(t.Context(), c, condense.Turn{Trigger: core.TriggerManual}); err == nil && r.Attempts[0].Outcome == core.OutcomeLater {
		t.Errorf("the user asked, and it waits: %+v", r)
	}
}

// The keys for messages, results, age and share of results make a small conversation due, and once it is condensed only later messages
// count.
func TestWhen(t *testing.T) {
	long := strings.Repeat("word ", 100)
	turn := func(i int) []core.Message {
		id := fmt.Sprint("call", i)
		return []core.Message{
			coretest.Assistant(core.ToolCall{ID: id, Name: "shell", Args: `{"command":"make"}`}),
			{Role: core.RoleUser, Time: time.Now().Add(-2 * time.Hour), Parts: []core.Part{core.ToolResult{CallID: id, Content: []core.Part{core.Text(long)}}}},
			{Role: core.RoleAssistant, Parts: []core.Part{core.Text("I have seen it.")}},
		}
	}
	for key, tuning := range map[policy.Reason]config.Tuning{
		policy.ReasonMessages: {MaxMessages: new(30)}, policy.ReasonToolResults: {MaxToolResults: new(10)},
		policy.ReasonAge: {MaxAge: new("1h")}, policy.ReasonResultsShare: {MaxResultsShare: new(50.0)},
	} {
		h := open(t, config.Values{Tuning: tuning, Profiles: map[string]config.ProfileValues{"default": {Window: new(10_000)}}}, config.Override{})
		c := condense.NewConversation()
		if err := c.Append(coretest.User(core.Text("Build it."))); err != nil {
			t.Fatal(err)
		}
		acted, at := 0, []int{}
		for i := range 40 {
			if err := c.Append(turn(i)...); err != nil {
				t.Fatal(err)
			}
			for again := range 2 { // the second time nothing is new
				r, err := h.Manage(t.Context(), c, condense.Turn{})
				if err != nil {
					t.Fatal(err)
				}
				if r.Acted {
					if acted++; r.Decision != key || again > 0 {
						t.Errorf("%s: acted for %s", key, r.Reason)
					}
					at = append(at, i)
				}
			}
		}
		most := 4 // every tenth turn
		if key == policy.ReasonAge {
			most = 40 // new messages are old already
		}
		if acted < 3 || acted > most {
			t.Errorf("%s: acted %d times, at %v", key, acted, at)
		}
	}
}

// A curious strategy asks a model until that fails, and returns the error.
type curious struct {
	told  core.Quota
	asked int
}

func (a *curious) strategy() registry.Strategy {
	return registry.Define("asking", "Asks.", func() struct{} { return struct{}{} }, func(_ context.Context, _ struct{}, env registry.Env) (core.CondensationProvider, error) {
		m, err := env.Model("ours")
		return core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
			a.told, a.asked = req.Quota, 0
			for range 200 {
				if _, err := m.Generate(ctx, &model.Prompt{Messages: req.Messages[:1]}); err != nil {
					return nil, err
				}
				a.asked++
			}
			return &core.Result{Messages: req.Messages}, nil
		}), err
	})
}

// A costly model costs a quarter of a dollar for each answer.
type costly struct{}

func (costly) Info() model.Info { return model.Info{Name: "ours", Window: 10_000} }

func (costly) Generate(context.Context, *model.Prompt) (*model.Answer, error) {
	return &model.Answer{Text: "Yes.", Usage: core.Usage{Calls: 1, USD: 0.25}}, nil
}

// A provider that is compiled in is told its quota and keeps it in each call: the error names the key. Without the key it is 64 requests.
func TestQuotaOfAProvider(t *testing.T) {
	for _, tt := range []struct {
		limits *core.Quota
		told   core.Quota
		asked  int
		reason string
	}{
		{nil, core.Quota{ModelCalls: 64}, 64, "quota: more than 64 requests to language models in one call: providers.asking.limits.model_calls"},
		{&core.Quota{ModelCalls: 3}, core.Quota{ModelCalls: 3}, 3, "quota: more than 3 requests to language models in one call: providers.asking.limits.model_calls"},
		{&core.Quota{USD: 1}, core.Quota{ModelCalls: 64, USD: 1}, 4, "quota: $1.00 are spent in one call: providers.asking.limits.usd"},
	} {
		var p curious
		h := start(t, &condense.Options{
			Strategies: []registry.Strategy{p.strategy()}, Models: map[string]model.Generator{"ours": costly{}}, Values: &config.Values{
				Tuning: config.Tuning{Chain: []string{"asking"}}, Providers: map[string]config.ProviderValues{"asking": {Strategy: "asking", Limits: tt.limits}},
			},
		})
		c := condense.NewConversation()
		grow(t, c)
		for range 2 { // each call has its own
			r, err := h.Manage(t.Context(), c, condense.Turn{Trigger: core.TriggerManual})
			if r == nil {
				t.Fatal(err)
			}
			if a := r.Attempts[0]; p.told != tt.told || p.asked != tt.asked || a.Reason != tt.reason || !errors.Is(a.Err, model.ErrQuota) {
				t.Errorf("%+v: told %+v, asked %d times, then %q, %v; want %+v, %d, %q", tt.limits, p.told, p.asked, a.Reason, a.Err, tt.told, tt.asked, tt.reason)
			}
		}
	}
}
