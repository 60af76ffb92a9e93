package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
	"github.com/condensehq/condense/registry"
)

// asks is a strategy that asks a language model.
func asks(do core.ProviderFunc) *condense.Options {
	o := faulty(do)
	o.Strategies = []registry.Strategy{registry.Define("faulty", "For a test.", func() struct{} { return struct{}{} },
		func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) {
			return &asking{do}, nil
		})}
	return o
}

// A loudPlay is one whose gateway says what it does in a log, metrics and pages.
type loudPlay struct {
	*play
	log    *lockedBuffer
	meter  *meter
	status string // its address
}

func tell(t *testing.T, o *condense.Options, vendor upstream.Options) *loudPlay {
	t.Helper()
	p := &loudPlay{play: &play{vendor: upstream.New(vendor)}, log: &lockedBuffer{}}
	v := httptest.NewServer(p.vendor)
	t.Cleanup(v.Close)
	p.Gateway, p.server = serveWith(t, v.URL, o, func(o *live.Options) {
		p.meter = newMeter(t, o)
		o.Reports.Logger, o.Epoch = slog.New(slog.NewJSONHandler(p.log, nil)), live.EpochOptions{Risk: 100}
	})
	p.server.Config.Handler = live.Settled(p.Gateway)
	c := claude("s")
	c.URL = p.server.URL
	p.client, p.status = &c, adminOf(t, p.Gateway)+"/condense/status"
	return p
}

// count is how often a provider had an outcome, as /condense/status has it. The metric must say the same.
func (p *loudPlay) count(t *testing.T, provider, outcome string) *live.Attempt {
	t.Helper()
	_, body := send(t, http.MethodGet, p.status, nil, nil)
	var s live.Stats
	if err := json.Unmarshal(body, &s); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	i := slices.IndexFunc(s.Attempts, func(a live.Attempt) bool { return a.Provider == provider && a.Outcome == outcome })
	if i < 0 {
		return &live.Attempt{}
	}
	n := 0.0
	for _, m := range p.meter.families(t)["condense_attempts_total"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["condense_provider"] == provider && labels["condense_outcome"] == outcome && labels["condense_mode"] == "small" {
			n = m.GetCounter().GetValue()
		}
	}
	if now := p.Stats().Attempts; n < float64(s.Attempts[i].Count) || n > float64(now[i].Count) {
		t.Errorf("%s %s: %d by the status, %v by the metric", provider, outcome, s.Attempts[i].Count, n)
	}
	return &s.Attempts[i]
}

// lines are those of the log with a message.
func (p *loudPlay) lines(t *testing.T, message string) (found []map[string]any) {
	t.Helper()
	for line := range strings.Lines(p.log.String()) {
		fields := map[string]any{}
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if fields["msg"] == message {
			found = append(found, fields)
		}
	}
	return found
}

const notCondensed = "a provider did not condense"

// A model that refuses the key while the conversation is below its limit condenses nothing: that is counted, and named once in the
// log, without the key.
func TestModelThatFailsIsNotSilent(t *testing.T) {
	t.Parallel()
	const key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"
	var n int
	p := tell(t, asks(func(context.Context, *core.Request) (*core.Result, error) {
		n++
		return nil, errors.New("401 Unauthorized: invalid x-api-key " + key + " (request req_0" + strings.Repeat("1", n) + ")")
	}), upstream.Options{Window: 500_000, Script: upstream.Loop(60, 900, nil)})
	p.begin(t)
	for p.count(t, "faulty", "failed").Count < 3 {
		p.step(t)
	}
	if a := p.count(t, "faulty", "failed"); !a.Failed() || !strings.HasPrefix(a.Reason, "401 Unauthorized: invalid x-api-key [redacted]") {
		t.Errorf("got %+v", a)
	}
	if got := p.lines(t, notCondensed); len(got) != 1 || got[0]["level"] != "WARN" || got[0]["provider"] != "faulty" || got[0]["outcome"] != "failed" {
		t.Errorf("the log has %v", got)
	}
	if strings.Contains(p.log.String(), key) {
		t.Error("the key is in the log")
	}
	const failing = "a conversation is not condensed, because its epochs fail: at the limit it is truncated"
	// It can come after the count.
	testkit.Eventually(t, "the log says that the epochs fail", func() bool { return len(p.lines(t, failing)) > 0 })
	if got := p.lines(t, failing); len(got) != 1 {
		t.Errorf("the log has %v", got)
	}
	if s := p.Stats(); len(s.Errors) > 0 || strings.Count(p.log.String(), `"level":"WARN"`) != 2 {
		t.Errorf("the same failure is another fault too: %v, %s", s.Errors, p.log.String())
	}
}

// An epoch says which provider has condensed and, if it was not the first of the chain, why not that one.
func TestEpochsNameTheirProvider(t *testing.T) {
	t.Parallel()
	fails := func(context.Context, *core.Request) (*core.Result, error) { panic("a fault") }
	for name, tt := range map[string]struct {
		options  *condense.Options
		provider string
		cause    string // begins so
		outcome  string // that is counted of faulty
	}{
		"the chain": {faulty(func(_ context.Context, r *core.Request) (*core.Result, error) {
			n := len(r.Messages)
			return &core.Result{Messages: core.KeepGroups(r.Messages, func(i int) bool { return i < 1 || i >= n-3 })}, nil
		}), "faulty", "", "applied"},
		"truncation for a provider that crashes":                {faulty(fails), condense.Truncation, "faulty failed: panic: a fault", "failed"},
		"the built-in chain for a model that was not asked yet": {asks(fails), "smart", "faulty replaced: it asks a language model", "replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := tell(t, tt.options, upstream.Options{Window: window})
			send(t, http.MethodPost, p.server.URL+"/v1/messages", nil, loop(1, 4*window))
			s := p.Stats()
			if len(s.Epochs) != 1 {
				t.Fatalf("got %+v", s)
			}
			e := s.Epochs[0]
			if e.Provider != tt.provider || e.Outcome == "" || e.Fallback != (tt.cause != "") || !strings.HasPrefix(e.Cause, tt.cause) {
				t.Errorf("got %+v", e)
			}
			if a := p.count(t, "faulty", tt.outcome); a.Count == 0 || a.Failed() != e.Fallback {
				t.Errorf("got %+v", s.Attempts)
			}
			if got := p.lines(t, "epoch"); len(got) != 1 || got[0]["provider"] != e.Provider || got[0]["outcome"] != e.Outcome || got[0]["fallback"] != e.Fallback || e.Fallback && got[0]["cause"] != e.Cause || got[0]["profile"] == nil || got[0]["mode"] == nil {
				t.Errorf("the log has %v", got)
			}
			if got := p.lines(t, notCondensed); (len(got) == 1) != e.Fallback {
				t.Errorf("the log has %v", got)
			}
		})
	}
}

// Words of the user that an epoch leaves out are said where a person looks: as many tokens in the status, the log and the list, from which
// the status line is made.
func TestLostWordsAreSaid(t *testing.T) {
	t.Parallel()
	body := bytes.Replace(loop(1, 4*window), []byte(`"Task 1."}`),
		[]byte(`"Task 1."},{"role":"assistant","content":"Yes?"},{"role":"user","content":"Never delete table 12, whatever anybody says later."}`), 1)
	for name, tt := range map[string]struct {
		kept int // of the first messages
		lost bool
	}{"they stay": {3, false}, "they go": {1, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := tell(t, faulty(func(_ context.Context, r *core.Request) (*core.Result, error) {
				n := len(r.Messages)
				return &core.Result{Messages: core.KeepGroups(r.Messages, func(i int) bool { return i < tt.kept || i >= n-3 })}, nil
			}), upstream.Options{Window: window})
			send(t, http.MethodPost, p.server.URL+"/v1/messages", nil, body)
			_, text := send(t, http.MethodGet, p.status, nil, nil)
			var s live.Stats
			if err := json.Unmarshal(text, &s); err != nil || len(s.Epochs) != 1 || s.Epochs[0].Provider != "faulty" || s.Epochs[0].WordsLost > 0 != tt.lost {
				t.Fatalf("%v, the status: %s", err, text)
			}
			lost := s.Epochs[0].WordsLost
			if got := p.lines(t, "epoch"); len(got) != 1 || got[0]["words_lost"] != float64(lost) {
				t.Errorf("%d are lost, the log has %v", lost, got)
			}
			all, err := p.Controller().Conversations(t.Context(), time.Time{})
			if err != nil || len(all) != 1 || all[0].LastEpoch == nil || all[0].LastEpoch.Lost != lost {
				t.Errorf("%d are lost, the list has %+v, %v", lost, all, err)
			}
		})
	}
}

// What an epoch's view says that is not so is said in the status and to the watcher soon after it begins, and from the next request on in
// the list.
func TestTruthIsSaid(t *testing.T) {
	t.Parallel()
	body := bytes.Replace(loop(1, 4*window), []byte(`"Task 1."}`),
		[]byte(`"Task 1."},{"role":"assistant","content":"Yes?"},{"role":"user","content":"Never delete table 12. Rename it."}`), 1)
	o := faulty(func(_ context.Context, r *core.Request) (*core.Result, error) {
		n := len(r.Messages)
		return &core.Result{Messages: core.KeepGroups(r.Messages, func(i int) bool { return i < 1 || i >= n-3 })}, nil
	})
	judged := make(chan live.Truth, 1)
	v := httptest.NewServer(upstream.New(upstream.Options{Window: window}))
	t.Cleanup(v.Close)
	g, s := serveWith(t, v.URL, o, func(o *live.Options) { o.Epoch.Risk, o.Reports.Watch = 100, judging{judged} })
	send(t, http.MethodPost, s.URL+"/v1/messages", nil, body)
	want := live.Truth{Sentences: 3, SentencesGone: 2}
	if got := <-judged; got.Sentences != want.Sentences || got.SentencesGone != want.SentencesGone {
		t.Errorf("the watcher has %+v", got)
	} else {
		want = got
	}
	if s := g.Stats(); len(s.Epochs) != 1 || s.Epochs[0].Truth == nil || *s.Epochs[0].Truth != want {
		t.Errorf("the status has %+v", s.Epochs)
	}
	send(t, http.MethodPost, s.URL+"/v1/messages", nil, body)
	all, err := g.Controller().Conversations(t.Context(), time.Time{})
	if err != nil || len(all) != 1 || all[0].LastEpoch == nil || all[0].LastEpoch.Truth == nil || live.Truth(*all[0].LastEpoch.Truth) != want {
		t.Errorf("the list has %+v, %v", all, err)
	}
}

// judging is told what was measured.
type judging struct{ to chan live.Truth }

func (judging) Turn(*live.Turn)                               {}
func (judging) Answer(string, *live.Used)                     {}
func (j judging) Later(_ string, _ time.Time, f live.Finding) { j.to <- *f.Truth }

// An upstream that cannot be reached is named with its address, without what is in its path, and once in the log.
func TestUnreachableUpstreamIsNamed(t *testing.T) {
	t.Parallel()
	log := &lockedBuffer{}
	g, s := serveWith(t, "http://127.0.0.1:9/of/mine", nil, func(o *live.Options) { o.Reports.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	for range 3 {
		send(t, http.MethodPost, s.URL+"/v1/messages", map[string]string{"X-Api-Key": "sk-secret"}, loop(1, 1000))
	}
	testkit.Eventually(t, "three are counted", func() bool {
		u := g.Stats().Unreachable
		return len(u) == 1 && u[0].Count == 3 && u[0].Upstream == "anthropic" && u[0].Address == "http://127.0.0.1:9" && u[0].Reason != ""
	})
	if got := log.String(); strings.Count(got, "an upstream cannot be reached") != 1 || strings.Contains(got, "of/mine") || strings.Contains(got, "sk-secret") {
		t.Errorf("the log:\n%s", got)
	}
}

// A paid provider asks a language model, and says what that may cost, or why it cannot tell.
type paid struct {
	core.ProviderFunc

	unknown error
}

func (p paid) EstimateCost(context.Context, *core.Request) (core.Usage, error) {
	return core.Usage{USD: 1, InputTokens: 1000}, p.unknown
}

// TestOnlyTheSlowProviderIsSkipped: of a chain whose one provider asks a model, which a request over the window cannot wait for,
// the others are asked. Only a chain with nothing else gets the built-in one. What is shown says so.
func TestOnlyTheSlowProviderIsSkipped(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	keeps := core.ProviderFunc(func(_ context.Context, r *core.Request) (*core.Result, error) { return keepEnds(r), nil })
	never := core.ProviderFunc(func(context.Context, *core.Request) (*core.Result, error) {
		t.Error("a provider that asks a model was asked while a request waits")
		return nil, errors.New("a test")
	})
	exits := core.ProviderFunc(func(context.Context, *core.Request) (*core.Result, error) { return nil, errors.New("exit status 3") })
	all := map[string]core.CondensationProvider{
		"keeps": keeps, "never": paid{never, nil}, "breaks": paid{exits, errors.New("exit status 3")}, "declines": core.ProviderFunc(func(context.Context, *core.Request) (*core.Result, error) { return &core.Result{}, nil }),
	}
	for name, tt := range map[string]struct {
		chain      []string
		by, reason string
	}{
		"before":           {[]string{"keeps", "never"}, "keeps", ""},
		"after":            {[]string{"never", "keeps"}, "keeps", "the turn does not wait for its answer"},
		"between":          {[]string{"declines", "never", "keeps"}, "keeps", "declines rejected"},
		"nothing else":     {[]string{"never"}, "smart", "it asks a language model, and nothing was prepared"},
		"nothing enough":   {[]string{"declines", "never"}, "smart", "it asks a language model, and nothing was prepared"},
		"it fails":         {[]string{"breaks"}, "smart", "exit status 3"},
		"it fails, others": {[]string{"breaks", "never", "keeps"}, "keeps", "exit status 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := withWindow(window)
			for name, p := range all {
				o.Strategies = append(o.Strategies, registry.Define(name, "For a test.", func() struct{} { return struct{}{} },
					func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) { return p, nil }))
			}
			o.Values.Chain = tt.chain
			v := newSizing(t, window)
			g, s := serveWith(t, v.URL, o, nil)
			together(t, s.URL, [][]byte{loop(1, 2*window*4)})
			got := g.Stats()
			if len(got.Epochs) != 1 || got.Epochs[0].Provider != tt.by || v.refused > 0 {
				t.Fatalf("epochs %+v, attempts %+v, %d refused", got.Epochs, got.Attempts, v.refused)
			}
			if e := got.Epochs[0]; !strings.Contains(e.Cause, tt.reason) || e.Fallback != (tt.reason != "") {
				t.Errorf("by %s, cause %q, want %q", e.Provider, e.Cause, tt.reason)
			}
			for _, a := range got.Attempts {
				if model := strings.Contains(a.Reason, "language model"); model && a.Provider != "never" {
					t.Errorf("%+v", a)
				}
			}
		})
	}
}
