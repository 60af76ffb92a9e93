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
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
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
