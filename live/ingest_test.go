package live_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/pgtest"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// withIngest returns options with a provider of new results that does as do.
func withIngest(do core.ProviderFunc) *condense.Options {
	o := faulty(do)
	o.Values.Chain, o.Values.Ingest = nil, []string{"faulty"}
	return o
}

// rewriteResults returns the messages with other texts in their results.
func rewriteResults(r *core.Request, text func(whole string) string) *core.Result {
	all := r.Clone().Messages
	for i := range all {
		for k, p := range all[i].Parts {
			if t, ok := p.(core.ToolResult); ok {
				t.Content = []core.Part{core.Text(text(string(t.Content[0].(core.Text))))}
				all[i].Parts[k] = t
			}
		}
	}
	return &core.Result{Messages: all}
}

// moody never answers the same twice, not even in another process, and says how it was asked.
func moody() core.ProviderFunc {
	var n atomic.Int64
	return func(_ context.Context, r *core.Request) (*core.Result, error) {
		if r.Trigger != core.TriggerIngest {
			return nil, fmt.Errorf("asked with %s: %w", r.Trigger, core.ErrUnavailable)
		}
		return rewriteResults(r, func(whole string) string {
			return fmt.Sprintf("%d lines, mood %d of %d for %d", strings.Count(whole, "\n"), n.Add(1), os.Getpid(), len(r.Messages))
		}), nil
	}
}

// TestOwnIngest: a provider of the configuration shortens each result before it is first sent, whatever the API; the same bytes are sent
// again, though it would answer something else; and the whole result is recalled by its handle.
func TestOwnIngest(t *testing.T) {
	testkit.Slow(t)
	for _, c := range clients() {
		for _, can := range []bool{true, false} {
			t.Run(fmt.Sprint(c.API, "/recalls=", can), func(t *testing.T) {
				with := c
				if can {
					with = recalls(c)
				}
				p := &play{vendor: upstream.New(upstream.Options{Script: upstream.Loop(12, 6_000, nil), Window: window}), client: &with}
				p.serve(t, withIngest(moody()), func(o *live.Options) { o.Store.Path = filepath.Join(t.TempDir(), "live.db") })
				p.say(t)
				p.check(t, 0)
				last := p.vendor.Turns()[11].Body
				for n := 1; n <= 11; n++ {
					if got := bytes.Count(last, fmt.Appendf(nil, "mood %d of", n)); got != 1 {
						t.Errorf("shortened form %d was sent %d times: %.300s", n, got, last)
					}
				}
				if len(p.results()) == 0 || bytes.Contains(last, []byte(p.results()[0][:60])) {
					t.Errorf("a result was sent as it came")
				}
				if got := bytes.Contains(last, []byte("recall h:")); got != can {
					t.Errorf("handles: %v, want %v", got, can)
				}
				if !can {
					return
				}
				for i, whole := range p.results() {
					h := core.Handle(core.ToolResult{Content: []core.Part{core.Text(whole)}})
					if got, ok := recallAll(t, p.server.URL+"/recall/"+secret+"/mcp", h); !ok || got != whole {
						t.Errorf("result %d is %.100q", i, got)
					}
				}
			})
		}
	}
}

// A result that a provider has shortened is cut by the built-in one, too, and both forms can be recalled.
func TestOwnIngestBeforeBuiltin(t *testing.T) {
	testkit.Slow(t)
	for _, c := range clients() {
		t.Run(string(c.API), func(t *testing.T) {
			with := recalls(c)
			p := &play{vendor: upstream.New(upstream.Options{Script: upstream.Loop(6, 30_000, nil), Window: window}), client: &with}
			half := func(_ context.Context, r *core.Request) (*core.Result, error) {
				return rewriteResults(r, func(whole string) string { return whole[:strings.LastIndexByte(whole[:len(whole)/2], '\n')] }), nil
			}
			p.serve(t, withIngest(half), func(o *live.Options) { o.Ingest.MaxResult = 1000 })
			p.say(t)
			p.check(t, 0)
			if turns := p.vendor.Turns(); turns[len(turns)-1].Tokens > 15_000 {
				t.Errorf("%d tokens were sent", turns[len(turns)-1].Tokens)
			}
			p.keptPromises(t)
			whole := p.results()[0]
			h := core.Handle(core.ToolResult{Content: []core.Part{core.Text(whole)}})
			if got, ok := recallAll(t, p.server.URL+"/recall/"+secret+"/mcp", h); !ok || got != whole {
				t.Errorf("the first result is %.100q", got)
			}
		})
	}
}

// TestFailingIngest: whatever a provider does that it must not, the result is sent as it came, and the log says so in one line.
func TestFailingIngest(t *testing.T) {
	never := make(chan struct{})
	for name, tt := range map[string]struct {
		do   core.ProviderFunc
		says string
	}{
		"throws": {func(context.Context, *core.Request) (*core.Result, error) { panic("no") }, "panic: no"},
		"fails":  {func(context.Context, *core.Request) (*core.Result, error) { return nil, errors.New("no disk") }, "no disk"},
		"is slow": {func(ctx context.Context, _ *core.Request) (*core.Result, error) {
			select {
			case <-never:
			case <-ctx.Done():
			}
			return nil, ctx.Err()
		}, "deadline"},
		"hides": {func(_ context.Context, r *core.Request) (*core.Result, error) {
			return &core.Result{Messages: r.Messages[:1]}, nil
		}, "only-results"},
		"inserts": {func(_ context.Context, r *core.Request) (*core.Result, error) {
			res := rewriteResults(r, func(string) string { return "short" })
			res.Messages = append(res.Messages, core.Message{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("Go on.")}})
			return res, nil
		}, "only-results"},
		"speaks for the model": {func(_ context.Context, r *core.Request) (*core.Result, error) {
			res := rewriteResults(r, func(string) string { return "short" })
			res.Messages[len(res.Messages)-1].Parts = []core.Part{core.Text("")}
			return res, nil
		}, "only-results"},
		"turns a failure into a success": {func(_ context.Context, r *core.Request) (*core.Result, error) {
			all := r.Clone().Messages
			for i := range all {
				for k, p := range all[i].Parts {
					if t, ok := p.(core.ToolResult); ok {
						t.IsError = !t.IsError
						t.Content = []core.Part{core.Text("fine")}
						all[i].Parts[k] = t
					}
				}
			}
			return &core.Result{Messages: all}, nil
		}, "only-results"},
		"forges a handle": {func(_ context.Context, r *core.Request) (*core.Result, error) {
			return rewriteResults(r, func(string) string { return "recall h:0123456789" }), nil
		}, "ingest"},
	} {
		t.Run(name, func(t *testing.T) {
			with := recalls(claude("s"))
			p := &play{vendor: upstream.New(upstream.Options{Script: upstream.Loop(3, 3_000, nil), Window: window}), client: &with}
			var log testkit.Log
			p.serve(t, withIngest(tt.do), func(o *live.Options) {
				o.Reports.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
				o.Ingest.Off, o.Recall.MaxResult = true, 0
				if name == "is slow" {
					o.Bounds.Deadline = 50 * time.Millisecond
				}
			})
			p.say(t)
			last := p.vendor.Turns()[3].Body
			for i, whole := range p.results() {
				if !bytes.Contains(last, []byte(strings.ReplaceAll(whole[:60], "\n", `\n`))) {
					t.Errorf("result %d was not sent as it came: %.500s", i, last)
				}
			}
			if got := len(p.vendor.Refusals()) + len(p.vendor.Breaks()); got > 0 || p.Stats().Ingested > 0 {
				t.Errorf("%d refusals or breaks, %d shortened", got, p.Stats().Ingested)
			}
			if !strings.Contains(log.String(), tt.says) {
				t.Errorf("the log does not say %q:\n%s", tt.says, log.String())
			}
			// On a slow machine the gateway's own time may be over, too, which it says.
			if n := strings.Count(log.String(), "level=WARN"); n != 1 && name != "forges a handle" && name != "is slow" {
				t.Errorf("%d warnings:\n%s", n, log.String())
			}
		})
	}
}

// A replying model answers "Yes." and counts how often it was asked.
type replying struct{ calls atomic.Int64 }

func (*replying) Info() model.Info { return model.Info{Name: "counted", Window: 200_000} }

func (c *replying) Generate(context.Context, *model.Prompt) (*model.Answer, error) {
	c.calls.Add(1)
	return &model.Answer{Text: "Yes.", Usage: core.Usage{Calls: 1, USD: 1}}, nil
}

// TestIngestWithinModelEpochs: rounds of new results for which a provider asks a model, for texts or vectors, are condensations by a model.
// Above the tenant's limit the model is not asked: the provider does without, or its results are sent as they came. The same limit holds
// for a chain that announces no cost.
func TestIngestWithinModelEpochs(t *testing.T) {
	testkit.Slow(t)
	for _, do := range []string{"does without", "declines", "embeds", "in the chain"} {
		t.Run(do, func(t *testing.T) {
			asked, without := &replying{}, atomic.Int64{}
			vectors := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked.calls.Add(1)
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"data":[{"index":0,"embedding":[1,2]}],"usage":{"prompt_tokens":3}}`))
			}))
			defer vectors.Close()
			o := withIngest(nil)
			o.Models = map[string]model.Generator{"counted": asked}
			o.Values.Models = map[string]config.ModelValues{"near": {API: "openai", Model: "nomic", BaseURL: vectors.URL + "/v1", Embeddings: true}}
			o.Strategies = []registry.Strategy{registry.Define("faulty", "For a test.", func() struct{} { return struct{}{} },
				func(_ context.Context, _ struct{}, env registry.Env) (core.CondensationProvider, error) {
					m, err := env.Model("counted")
					return core.ProviderFunc(func(ctx context.Context, r *core.Request) (*core.Result, error) {
						ask := func() error {
							_, err := m.Generate(ctx, &model.Prompt{})
							return err
						}
						if do == "embeds" {
							ask = func() error {
								_, _, err := env.Embed(ctx, []string{"a text"})
								return err
							}
						}
						err := errors.Join(ask(), ask()) // one condensation, with two requests
						if n := len(r.Messages); do == "in the chain" && err == nil {
							return &core.Result{Messages: core.KeepGroups(r.Messages, func(i int) bool { return i < 1 || i >= n-3 })}, nil
						}
						if err != nil {
							without.Add(1)
						}
						if err != nil && do != "does without" {
							return nil, err
						}
						return rewriteResults(r, func(whole string) string { return whole[:len(whole)/2] }), nil
					}), err
				})}
			rounds := 6
			if do == "in the chain" {
				o.Values.Chain, o.Values.Ingest, rounds = o.Values.Ingest, nil, 120
			}
			with := recalls(claude("s"))
			p := &play{vendor: upstream.New(upstream.Options{Script: upstream.Loop(rounds, 2_200, nil), Window: window}), client: &with}
			var log testkit.Log
			p.serve(t, o, func(o *live.Options) {
				o.Ingest.Off, o.Recall.MaxResult = true, 0
				o.Access.Limits = live.Limits{ModelEpochs: 2}
				o.Reports.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			})
			p.say(t)
			if n := asked.calls.Load(); n != 4 || without.Load() == 0 {
				t.Errorf("the model was asked %d times, and %d times not", n, without.Load())
			}
			if got, want := p.Stats().Ingested, map[string]int{"does without": 6, "declines": 2, "embeds": 2}[do]; got != want {
				t.Errorf("%d results are shortened, want %d", got, want)
			}
			if says := strings.Contains(log.String(), "model_epochs"); says != (do != "does without") {
				t.Errorf("the log names the limit: %t\n%s", says, log.String())
			}
			if do == "in the chain" && p.Stats().EpochCount < 3 {
				t.Errorf("%d epochs: they should go on without a model", p.Stats().EpochCount)
			}
			if got := len(p.vendor.Refusals()); got > 0 {
				t.Errorf("%d refusals", got)
			}
		})
	}
}

// TestRefusedIngest: a provider makes results that the vendor would refuse. They are sent as they came, and epochs begin when they are due.
func TestRefusedIngest(t *testing.T) {
	with := claude("s")
	p := &play{vendor: upstream.New(upstream.Options{Script: upstream.Loop(40, 6_000, nil), Window: window}), client: &with}
	p.serve(t, withIngest(func(_ context.Context, r *core.Request) (*core.Result, error) {
		res := rewriteResults(r, func(whole string) string { return whole[:len(whole)/2] })
		for i := range res.Messages {
			for k, part := range res.Messages[i].Parts {
				if t, ok := part.(core.ToolResult); ok {
					t.Content = append(t.Content, core.Text(""))
					res.Messages[i].Parts[k] = t
				}
			}
		}
		return res, nil
	}), nil)
	p.say(t)
	if got := p.vendor.Refusals(); len(got) > 0 {
		t.Errorf("%d refusals: %v", len(got), got[0])
	}
	if got := p.Stats().Epochs; len(got) < 3 || got[0].Provider != "smart" || got[0].Fallback {
		t.Errorf("epochs: %+v", got)
	}
}

// TestKilledAfterIngest: the process is killed after it has sent a shortened result, or one that its provider did not shorten. The next
// process has another mood, and sends the same bytes.
func TestKilledAfterIngest(t *testing.T) {
	testkit.Process(t)
	for _, first := range []string{"moody", "fails"} {
		t.Run(first, func(t *testing.T) {
			var asked atomic.Int64
			sent, hold := make(chan struct{}), make(chan struct{})
			vendor := upstream.New(upstream.Options{Window: window, Script: upstream.Loop(5, 6_000, nil), Fault: func(upstream.Record) *upstream.Fault {
				if asked.Add(1) == 4 {
					close(sent)
					return &upstream.Fault{Hold: hold}
				}
				return nil
			}})
			v := httptest.NewServer(vendor)
			defer v.Close()
			defer close(hold)
			store := filepath.Join(t.TempDir(), "live.db")
			url, end := startAlone(t, v.URL, store, "CONDENSE_LIVE_INGEST="+first)
			c := claude("s")
			c.URL, c.HTTP = url, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			go func() {
				<-sent
				end()
			}()
			if _, err := c.Say(t.Context(), task); err == nil {
				t.Fatal("the gateway was not killed")
			}
			seen := len(vendor.Records())
			again, kill := startAlone(t, v.URL, store, "CONDENSE_LIVE_INGEST=moody")
			c.URL = again
			defer kill()
			for calls := true; calls; {
				var err error
				if _, calls, err = c.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			before, after := messagesOf(t, vendor.Records()[seen-1].Body), messagesOf(t, vendor.Records()[seen].Body)
			if len(before) != len(after) {
				t.Fatalf("%d messages, then %d", len(before), len(after))
			}
			for i := range before {
				if !bytes.Equal(before[i], after[i]) {
					t.Errorf("message %d was %.300s, is %.300s", i, before[i], after[i])
				}
			}
			if shortened := bytes.Contains(after[len(after)-1], []byte("mood")); shortened != (first == "moody") {
				t.Errorf("the last result is %.300s", after[len(after)-1])
			}
			if got := vendor.Breaks(); len(got) > 0 {
				t.Errorf("breaks of the prefix: %v", got)
			}
		})
	}
}

// TestFleetOfMoodyIngest: two gateways with one database, each with a provider of a mood of its own, serve one conversation in turn. Each
// request comes to the other one, too: at once, or while the first one still waits for its provider. Every message is sent as it first was.
func TestFleetOfMoodyIngest(t *testing.T) {
	testkit.Process(t)
	database := pgtest.Start(t).URL()
	for _, c := range clients() {
		for _, at := range []string{"at once", "one is slow"} {
			t.Run(fmt.Sprint(c.API, "/", at), func(t *testing.T) {
				const rounds, slow = 12, 4
				vendor := upstream.New(upstream.Options{Script: upstream.Loop(rounds, 6_000, nil), Window: 200_000})
				v := httptest.NewServer(vendor)
				defer v.Close()
				var asked [2]atomic.Int64
				held, hold := make(chan struct{}), make(chan struct{})
				var urls []string
				for k, name := range []string{"Ann", "Bob"} {
					o := withIngest(func(_ context.Context, r *core.Request) (*core.Result, error) {
						n := asked[k].Add(1)
						if at == "one is slow" && name == "Ann" && n == slow {
							close(held)
							<-hold
						}
						return rewriteResults(r, func(whole string) string {
							return fmt.Sprintf("%s shortened %d lines, for the time %d", name, strings.Count(whole, "\n"), n)
						}), nil
					})
					_, server := serveWith(t, v.URL, o, func(o *live.Options) { o.Store.Path, o.Ingest.Off = database, true })
					urls = append(urls, server.URL)
				}
				c.Session, c.History = fmt.Sprint(c.API, at), []object{first(c.API, task)}
				for i, calls := 0, true; calls; i++ {
					twin := c
					twin.History, twin.URL = slices.Clone(c.History), urls[1]
					c.URL = urls[0]
					var both sync.WaitGroup
					var err error
					both.Go(func() { _, calls, err = c.Step(t.Context()) })
					if at == "one is slow" && i == slow {
						<-held
					}
					if at == "at once" || i == slow {
						if _, _, err := twin.Step(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					if at == "one is slow" && i == slow {
						close(hold)
					}
					if both.Wait(); err != nil {
						t.Fatal(err)
					}
				}
				var sent [][]byte
				for _, r := range vendor.Records() {
					parsed, err := wire.Parse(wire.API(c.API), r.Body, &wire.Options{})
					if err != nil {
						t.Fatal(err)
					}
					for i, m := range parsed.Messages {
						if raw := wire.Unmark(m.Raw); i == len(sent) {
							sent = append(sent, raw)
						} else if i < len(sent) && !bytes.Equal(sent[i], raw) {
							t.Errorf("request %d: message %d was %.300s, is %.300s", r.N, i, sent[i], raw)
						}
					}
				}
				last := string(bytes.Join(sent, nil))
				if n := strings.Count(last, "Ann shortened") + strings.Count(last, "Bob shortened"); n != rounds {
					t.Errorf("%d of %d results were shortened", n, rounds)
				}
				t.Logf("asked %d and %d times, %d requests", asked[0].Load(), asked[1].Load(), len(vendor.Records()))
			})
		}
	}
}

// TestTwinsOfSlowIngest: a request comes again while a provider is still at work on its results. The second one waits, for the model has
// seen neither form, and is sent with the same.
func TestTwinsOfSlowIngest(t *testing.T) {
	testkit.Slow(t)
	for _, c := range clients() {
		t.Run(string(c.API), func(t *testing.T) {
			p := &play{vendor: upstream.New(upstream.Options{Script: upstream.Loop(3, 6_000, nil), Window: window}), client: &c}
			held, hold := make(chan struct{}), make(chan struct{})
			var n atomic.Int64
			p.serve(t, withIngest(func(_ context.Context, r *core.Request) (*core.Result, error) {
				if n.Add(1) == 2 {
					close(held)
					<-hold
				}
				return rewriteResults(r, func(string) string { return fmt.Sprint("short ", n.Load()) }), nil
			}), nil)
			p.begin(t)
			p.step(t)
			twin := c
			twin.History = slices.Clone(c.History)
			before := len(p.vendor.Records())
			whole, _, _ := strings.Cut(p.results()[1], "\n")
			p.server.Config.Handler = p.Gateway // two requests at a time
			var both sync.WaitGroup
			both.Go(func() {
				if _, _, err := c.Step(t.Context()); err != nil {
					t.Error(err)
				}
			})
			<-held
			sent := make(chan struct{})
			both.Go(func() {
				defer close(sent)
				if _, _, err := twin.Step(t.Context()); err != nil {
					t.Error(err)
				}
			})
			select {
			case <-sent:
				t.Error("the second request was sent before the results were shortened")
			case <-time.After(time.Second): // longer than a request waits for a decision that it need not have
			}
			close(hold)
			both.Wait()
			for _, r := range p.vendor.Records()[before:] {
				if !bytes.Contains(r.Body, []byte("short 2")) || bytes.Contains(r.Body, []byte(whole)) {
					t.Errorf("request %d has not the short form: %.300s", r.N, r.Body)
				}
			}
		})
	}
}

// ingestOf are the options of a gateway in a process of its own.
func ingestOf(name string) *condense.Options {
	switch name {
	case "moody":
		return withIngest(moody())
	case "fails":
		return withIngest(func(context.Context, *core.Request) (*core.Result, error) { return nil, errors.New("no disk") })
	}
	return withWindow(window)
}
