package live_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/live"
)

// A sizing vendor takes what fits its window and notes the size of each conversation's last request. It counts four bytes as a token.
type sizing struct {
	*httptest.Server
	mu      sync.Mutex
	last    map[string]int
	refused int
}

var taskOf = regexp.MustCompile(`Task (\d+)\.`)

func newSizing(t *testing.T, window int) *sizing {
	t.Helper()
	v := &sizing{last: map[string]int{}}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		v.mu.Lock()
		defer v.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if len(body)/4 > window {
			v.refused++
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: %d tokens > %d maximum"}}`, len(body)/4, window)
			return
		}
		if task := taskOf.FindSubmatch(body); task != nil {
			v.last[string(task[1])] = len(body)
		}
		fmt.Fprintf(w, `{"type":"message","content":[],"usage":{"input_tokens":%d,"output_tokens":1}}`, len(body)/4)
	}))
	t.Cleanup(v.Close)
	return v
}

// dueAt is a window with the threshold at half of it, and the chain of a test.
func dueAt(window int, do core.ProviderFunc) *condense.Options {
	o := faulty(do)
	half := 50.0
	o.Values.Profiles["small"] = config.ProfileValues{Window: &window, Tuning: config.Tuning{Threshold: &half}}
	return o
}

// keepEnds keeps the first message and the newest.
func keepEnds(r *core.Request) *core.Result {
	n := len(r.Messages)
	return &core.Result{Messages: core.KeepGroups(r.Messages, func(i int) bool { return i < 1 || i >= n-3 })}
}

// together sends the bodies at the same time and waits until all are answered.
func together(t *testing.T, url string, bodies [][]byte) {
	t.Helper()
	var all sync.WaitGroup
	for _, body := range bodies {
		all.Go(func() {
			res, err := http.Post(url+"/v1/messages", "application/json", bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			text, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if res.StatusCode != http.StatusOK {
				t.Errorf("%s: %.200s", res.Status, text)
			}
		})
	}
	all.Wait()
}

// longer is a request with one more round.
func longer(body []byte) []byte {
	return append(bytes.TrimSuffix(bytes.Clone(body), []byte("]}")), `,{"role":"assistant","content":"Done."},{"role":"user","content":"Go on."}]}`...)
}

// No request waits for an epoch that no refusal forces: all are answered while the chain has not come to an end with one of them. The next
// requests begin with what was prepared, but for one whose messages have changed since.
func TestNobodyWaitsForAnEpochThatNothingForces(t *testing.T) {
	t.Parallel()
	const window, n = 60_000, 8
	var asked atomic.Int32
	release := make(chan struct{})
	host := dueAt(window, func(ctx context.Context, r *core.Request) (*core.Result, error) {
		asked.Add(1)
		select {
		case <-release:
			return keepEnds(r), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	v := newSizing(t, window)
	g, s := serveWith(t, v.URL, host, func(o *live.Options) { o.Epoch.IgnorePayback, o.Epoch.IgnoreCold = true, true })
	var bodies [][]byte
	for i := range n {
		bodies = append(bodies, loop(i, 36_000*4))
	}
	together(t, s.URL, bodies)
	testkit.Eventually(t, "an epoch is prepared", func() bool { return asked.Load() > 0 })
	if got := g.Stats(); got.EpochCount > 0 || len(got.Errors) > 0 {
		t.Errorf("%d epochs before the chain has answered, faults %v", got.EpochCount, got.Errors)
	}
	for i, size := range v.last {
		if size < len(bodies[0])/2 {
			t.Errorf("conversation %s was sent shorter: %d bytes", i, size)
		}
	}
	close(release)
	live.Settle(g)
	for i := range bodies {
		bodies[i] = longer(bodies[i])
	}
	bodies[0] = bytes.Replace(bodies[0], []byte("seq 3"), []byte("seq 4"), 1)
	together(t, s.URL, bodies)
	for i, size := range v.last {
		if changed := i == "0"; (size < len(bodies[0])/2) == changed {
			t.Errorf("conversation %s, changed %t: the next request has %d of %d bytes", i, changed, size, len(bodies[0]))
		}
	}
	if got := g.Stats(); got.EpochCount != n-1 || len(got.Errors) > 0 {
		t.Errorf("%d epochs of %d, faults %v", got.EpochCount, n-1, got.Errors)
	}
}

// Many conversations above the limit at once, and a chain that is never done in time: each is truncated and accepted by the vendor,
// and what
// took the place of the chain is named.
func TestAHerdAboveTheLimitIsTruncatedInTime(t *testing.T) {
	t.Parallel()
	const window, n = 20_000, 16
	host := dueAt(window, func(ctx context.Context, _ *core.Request) (*core.Result, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	v := newSizing(t, window)
	g, s := serveWith(t, v.URL, host, func(o *live.Options) { o.Bounds.Deadline = 100 * time.Millisecond })
	var bodies [][]byte
	for i := range n {
		bodies = append(bodies, loop(i, 2*window*4))
	}
	together(t, s.URL, bodies)
	got := g.Stats()
	if v.refused > 0 || len(v.last) != n || got.EpochCount != n {
		t.Errorf("%d of %d sent, %d refused, %d epochs, faults %v", len(v.last), n, v.refused, got.EpochCount, got.Errors)
	}
	for _, e := range got.Epochs {
		if e.Provider != condense.Truncation || !e.Fallback || e.Cause == "" {
			t.Errorf("an epoch by %s, fallback %t, cause %q", e.Provider, e.Fallback, e.Cause)
		}
	}
	replaced := 0
	for _, a := range got.Attempts {
		if a.Provider == "faulty" && a.Outcome == live.Replaced {
			replaced += a.Count
		}
	}
	if replaced != n {
		t.Errorf("the chain was replaced %d times: %+v", replaced, got.Attempts)
	}
}

// A caller that hangs up ends its condensation at once, and leaves the queue: none of it runs until the deadline.
func TestAbandonedCallsEndAtOnce(t *testing.T) {
	t.Parallel()
	const calls = 12
	var began, ended atomic.Int32
	host := dueAt(60_000, func(ctx context.Context, _ *core.Request) (*core.Result, error) {
		began.Add(1)
		defer ended.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	g, s := serveWith(t, "http://127.0.0.1:9", host, func(o *live.Options) { o.Bounds.Deadline = time.Hour })
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			body := bytes.Replace(loop(1, 40_000), []byte("{"), []byte(`{"config":{"target_ratio":0.1},`), 1)
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/compress", bytes.NewReader(body))
			if err != nil {
				t.Error(err)
				return
			}
			if res, err := http.DefaultClient.Do(req); err == nil {
				_ = res.Body.Close()
				t.Error("answered")
			}
		})
	}
	testkit.Eventually(t, "some run and the others wait", func() bool {
		waiting, underWay := live.Turns(g)
		return waiting+underWay == calls && int(began.Load()) == underWay && underWay > 0
	})
	hangUp()
	all.Wait()
	testkit.Eventually(t, "all have ended", func() bool {
		waiting, underWay := live.Turns(g)
		return waiting+underWay == 0 && began.Load() == ended.Load()
	})
}

// TestNobodyIsTruncatedForWantOfSeconds: conversations of one key come together over the limit, as after a restart in front of
// running sessions. Their agents wait until the last one is done, so all are condensed by the chain, though each would have far
// less than a condensation takes if they shared one deadline.
func TestNobodyIsTruncatedForWantOfSeconds(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const window, n = 6_000, 60                                     // small, so that they take no time but that
	const takes, deadline = 150 * time.Millisecond, 4 * time.Second // a share would have 133 ms
	host := dueAt(window, func(ctx context.Context, r *core.Request) (*core.Result, error) {
		select {
		case <-time.After(takes):
			return keepEnds(r), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	v := newSizing(t, window)
	g, s := serveWith(t, v.URL, host, func(o *live.Options) { o.Bounds.Deadline = deadline })
	var bodies [][]byte
	for i := range n {
		bodies = append(bodies, loop(i, 2*window*4))
	}
	together(t, s.URL, bodies)
	got := g.Stats()
	if v.refused > 0 || len(v.last) != n || got.EpochCount != n || len(got.Errors) > 0 {
		t.Errorf("%d of %d sent, %d refused, %d epochs, faults %v", len(v.last), n, v.refused, got.EpochCount, got.Errors)
	}
	for _, e := range got.Epochs {
		if e.Provider != "faulty" || e.Fallback {
			t.Errorf("an epoch by %s: %s", e.Provider, e.Cause)
		}
	}
}

// programs are the plugins of a test: each does what it wants.
type programs struct{ core.ProviderFunc }

func (programs) Approved(*config.Config, config.Provider) (string, error) { return "", nil }
func (programs) RefusesSettings(error) bool                               { return false }
func (programs) Ping(context.Context) error                               { return nil }

func (p programs) Open(config.Provider, string, condense.PluginEnv) (condense.Plugin, error) {
	return p, nil
}

// TestTurnsBoundProcessors: of many conversations over the limit as many are condensed at once as compute on the processors, or as
// wait for another process, and no more. All the others wait for their turn, and are condensed by the chain.
func TestTurnsBoundProcessors(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const window, n = 20_000, 40
	processors := max(2, runtime.GOMAXPROCS(0))
	for name, c := range map[string]struct {
		plugin bool
		atOnce int
	}{"a plugin": {true, max(16, processors)}, "a strategy": {false, processors}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var inside, most atomic.Int32
			release := make(chan struct{})
			do := func(ctx context.Context, r *core.Request) (*core.Result, error) {
				now := inside.Add(1)
				defer inside.Add(-1)
				for was := most.Load(); now > was; was = most.Load() {
					if most.CompareAndSwap(was, now) {
						break
					}
				}
				select {
				case <-release:
					return keepEnds(r), nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			host := dueAt(window, do)
			if c.plugin {
				host.Plugins, host.Values.Providers = programs{do}, map[string]config.ProviderValues{"faulty": {Plugin: os.Args[0]}}
			}
			v := newSizing(t, window)
			g, s := serveWith(t, v.URL, host, func(o *live.Options) { o.Bounds.Deadline = time.Hour })
			var bodies [][]byte
			for i := range n {
				bodies = append(bodies, loop(i, 2*window*4))
			}
			go func() {
				testkit.Eventually(t, "all have come, and some are in their turn", func() bool {
					waiting, underWay := live.Turns(g)
					return waiting+underWay == n && int(inside.Load()) == underWay
				})
				close(release)
			}()
			together(t, s.URL, bodies)
			if int(most.Load()) != min(n, c.atOnce) {
				t.Errorf("%d at once, want %d", most.Load(), c.atOnce)
			}
			got := g.Stats()
			if v.refused > 0 || got.EpochCount != n || len(got.Errors) > 0 {
				t.Errorf("%d refused, %d epochs, faults %v", v.refused, got.EpochCount, got.Errors)
			}
			for _, e := range got.Epochs {
				if e.Provider != "faulty" || e.Fallback {
					t.Errorf("an epoch by %s: %s", e.Provider, e.Cause)
				}
			}
		})
	}
}

// TestTruncationForWantOfTimeIsReplaced: what was truncated because there was no time is condensed by the chain in the background,
// from the messages before the truncation. No request waits for that, and the next one after it has it.
func TestTruncationForWantOfTimeIsReplaced(t *testing.T) {
	t.Parallel()
	const window, n = 20_000, 4
	release := make(chan struct{})
	host := dueAt(window, func(ctx context.Context, r *core.Request) (*core.Result, error) {
		select {
		case <-release:
			return keepEnds(r), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	file := t.TempDir() + "/live.db"
	v := newSizing(t, window)
	g, s := serveWith(t, v.URL, host, func(o *live.Options) { o.Bounds.Deadline, o.Store.Path = 500*time.Millisecond, file })
	var bodies [][]byte
	for i := range n {
		bodies = append(bodies, loop(i, 2*window*4))
	}
	next := func() {
		for i := range bodies {
			bodies[i] = longer(bodies[i])
		}
		together(t, s.URL, bodies)
	}
	together(t, s.URL, bodies)
	next() // while the chain is at work
	if all := g.Stats().Epochs; len(all) != n {
		t.Fatalf("%d epochs while the chain is at work", len(all))
	}
	for _, e := range g.Stats().Epochs {
		if e.Provider != condense.Truncation {
			t.Fatalf("an epoch by %s: %s", e.Provider, e.Cause)
		}
	}
	close(release)
	live.Settle(g)
	next()
	got := g.Stats()
	if got.EpochCount != 2*n || v.refused > 0 {
		t.Fatalf("%d epochs, %d refused, faults %v", got.EpochCount, v.refused, got.Errors)
	}
	for _, e := range got.Epochs[n:] {
		if e.Provider != "faulty" || e.Fallback || e.Before < 2*window {
			t.Errorf("an epoch by %s of %d tokens: %s", e.Provider, e.Before, e.Cause)
		}
	}
	sent := v.last["0"]
	together(t, s.URL, [][]byte{longer(bodies[0])})
	if after := g.Stats(); after.EpochCount != 2*n || v.last["0"] < sent {
		t.Errorf("it does not stay: %d epochs, %d and then %d bytes", after.EpochCount, sent, v.last["0"])
	}
}

// TestAReplacementThatFailsIsNotTriedWithEachRequest: a chain that fails with a conversation is asked again when that has grown.
func TestAReplacementThatFailsIsNotTriedWithEachRequest(t *testing.T) {
	t.Parallel()
	const window = 20_000
	var asked atomic.Int32
	var fail atomic.Bool
	host := dueAt(window, func(ctx context.Context, _ *core.Request) (*core.Result, error) {
		if asked.Add(1); fail.Load() {
			return nil, errors.New("a fault")
		}
		<-ctx.Done()
		fail.Store(true)
		return nil, ctx.Err()
	})
	v := newSizing(t, window)
	g, s := serveWith(t, v.URL, host, func(o *live.Options) { o.Bounds.Deadline = 200 * time.Millisecond })
	body := loop(1, 2*window*4)
	together(t, s.URL, [][]byte{body})
	live.Settle(g)
	before := asked.Load()
	for range 5 {
		body = longer(body)
		together(t, s.URL, [][]byte{body})
		live.Settle(g)
	}
	if now := asked.Load(); before < 2 || now != before {
		t.Errorf("asked %d times after the truncation, and %d with the requests after it", before, now)
	}
	if got := g.Stats(); got.EpochCount != 1 || v.refused > 0 {
		t.Errorf("%d epochs, %d refused", got.EpochCount, v.refused)
	}
}
