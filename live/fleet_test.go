package live_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
	"github.com/condensehq/condense/registry"
)

// Many conversations that must be condensed at once take turns: as many at a time as there are processors.
func TestCondensationsTakeTurns(t *testing.T) {
	testkit.Slow(t)
	const conversations = 24
	v := httptest.NewServer(upstream.New(upstream.Options{Window: 1_000_000, Script: agentLoop}))
	defer v.Close()
	var running, most, done atomic.Int64
	o := withWindow(20_000)
	o.Strategies = []registry.Strategy{registry.Define("counted", "For a test.", func() struct{} { return struct{}{} },
		func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) {
			return core.ProviderFunc(func(_ context.Context, r *core.Request) (*core.Result, error) {
				n := running.Add(1)
				defer running.Add(-1)
				for old := most.Load(); n > old; old = most.Load() {
					if most.CompareAndSwap(old, n) {
						break
					}
				}
				<-time.After(10 * time.Millisecond) // so that others come meanwhile
				done.Add(1)
				last := len(r.Messages)
				return &core.Result{Messages: core.KeepGroups(r.Messages, func(i int) bool { return i < 1 || i >= last-3 })}, nil
			}), nil
		})}
	o.Values.Chain = []string{"counted"}
	g, s := serveWith(t, v.URL, o, nil)
	var all sync.WaitGroup
	for i := range conversations {
		all.Go(func() {
			res, body := send(t, http.MethodPost, s.URL+"/v1/messages", map[string]string{"X-Claude-Code-Session-Id": fmt.Sprint("s", i)}, loop(i, 100_000))
			if res.StatusCode != http.StatusOK {
				t.Errorf("%s: %s", res.Status, body)
			}
		})
	}
	all.Wait()
	if got := g.Stats(); got.EpochCount != conversations || done.Load() < conversations {
		t.Errorf("%d epochs of %d conversations: %v", got.EpochCount, conversations, got.Errors)
	}
	if limit := int64(max(2, runtime.GOMAXPROCS(0))); most.Load() > limit { // two also on one processor, as the runner allows
		t.Errorf("%d condensations at a time, with %d processors", most.Load(), limit)
	}
}

// Of 200 conversations that come near their limit at once, a bounded number is prepared by a language model at a time, and none of the
// others is held.
func TestPreparationsAreBounded(t *testing.T) {
	testkit.Slow(t)
	const conversations, size, most, mostBytes = 200, 100_000, 16, 90 << 20
	v := httptest.NewServer(upstream.New(upstream.Options{Window: 1_000_000, Script: agentLoop}))
	defer v.Close()
	var running, peak, done atomic.Int64
	hold := make(chan struct{})
	o := withWindow(40_000)
	o.Strategies = []registry.Strategy{registry.Define("faulty", "For a test.", func() struct{} { return struct{}{} },
		func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) {
			return &asking{func(_ context.Context, r *core.Request) (*core.Result, error) {
				n := running.Add(1)
				defer running.Add(-1)
				for old := peak.Load(); n > old; old = peak.Load() {
					peak.CompareAndSwap(old, n)
				}
				<-hold
				done.Add(1)
				last := len(r.Messages)
				return &core.Result{Messages: core.KeepGroups(r.Messages, func(i int) bool { return i < 1 || i >= last-3 })}, nil
			}}, nil
		})}
	o.Values.Chain = []string{"faulty"}
	g, s := serveWith(t, v.URL, o, func(o *live.Options) { o.Epoch.IgnorePayback = true })
	burst := func() {
		var all sync.WaitGroup
		for i := range conversations {
			all.Go(func() {
				res, body := send(t, http.MethodPost, s.URL+"/v1/messages", map[string]string{"X-Claude-Code-Session-Id": fmt.Sprint("s", i)}, loop(i, size))
				if res.StatusCode != http.StatusOK {
					t.Errorf("%s: %s", res.Status, body)
				}
			})
		}
		all.Wait()
		http.DefaultClient.CloseIdleConnections()
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	burst()
	burst() // by now it is known that the chain asks
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d preparations at a time, %d MB held, of %d MB of requests", peak.Load(), used>>20, conversations*size>>20)
	if n := peak.Load(); n == 0 || n > most || used > mostBytes {
		t.Errorf("%d preparations at a time, %d MB held", n, used>>20)
	}
	close(hold)
	testkit.Eventually(t, "the preparations have ended", func() bool { return running.Load() == 0 && done.Load() > 0 })
	burst() // those that were left out have their turn
	testkit.Eventually(t, "others are prepared", func() bool { return done.Load() > most })
	if errs := g.Stats().Errors; len(errs) > 0 {
		t.Errorf("errors %v", errs)
	}
}

// A goneStore is a database that can be unavailable.
type goneStore struct {
	store.Store
	gone atomic.Bool
}

func (s *goneStore) err() error {
	if s.gone.Load() {
		return store.ErrUnavailable
	}
	return nil
}

func (s *goneStore) Changes(ctx context.Context, k store.Key) (int64, error) {
	if err := s.err(); err != nil {
		return 0, err
	}
	return s.Store.Changes(ctx, k)
}

func (s *goneStore) Load(ctx context.Context, k store.Key) ([]store.Record, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.Store.Load(ctx, k)
}

func (s *goneStore) Save(ctx context.Context, r *store.Record) error {
	if err := s.err(); err != nil {
		return err
	}
	return s.Store.Save(ctx, r)
}

// While the database is unavailable, a conversation goes on where it is known, with the view that it had; elsewhere it waits. Nothing is
// condensed, and afterwards nothing has changed.
func TestDatabaseUnavailable(t *testing.T) {
	testkit.Slow(t)
	vendor, database, start := goneFleet(t, 500_000)
	first, url := start()
	second, other := start()
	c := claude("s")
	c.URL = url
	p := &play{Gateway: first, vendor: vendor, client: &c}
	p.begin(t)
	p.untilEpoch(t, 1)
	p.step(t)
	p.step(t)

	database.gone.Store(true)
	for range 3 {
		p.step(t)
	}
	fresh := claude("new")
	fresh.URL = url
	n := &play{Gateway: first, vendor: vendor, client: &fresh}
	n.begin(t)
	n.step(t) // a conversation that began meanwhile goes on, too

	c.URL = other
	answered := make(chan error, 1)
	go func() {
		_, _, err := c.Step(t.Context())
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("the gateway that does not know the conversation did not wait (%v)", err)
	case <-time.After(100 * time.Millisecond):
	}
	database.gone.Store(false)
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	for range 3 {
		p.step(t)
	}
	for _, r := range vendor.Refusals() {
		t.Errorf("refused: %s: %s", r.Rule, r.Error)
	}
	epochs := first.Stats().EpochCount + second.Stats().EpochCount
	if got := vendor.Breaks(); len(got) > epochs {
		t.Errorf("%d breaks of the prefix in %d epochs", len(got), epochs)
	}
}

// goneFleet is a vendor, the database of a fleet, and what starts a gateway.
func goneFleet(t *testing.T, size int) (vendor *upstream.Vendor, database *goneStore, start func() (g *live.Gateway, url string)) {
	t.Helper()
	vendor = upstream.New(upstream.Options{Window: size, Script: upstream.Loop(300, 2200, nil)})
	v := httptest.NewServer(vendor)
	t.Cleanup(v.Close)
	database = &goneStore{Store: inMemory(t)}
	return vendor, database, func() (*live.Gateway, string) {
		h, err := condense.Open(t.Context(), withWindow(window))
		if err != nil {
			t.Fatal(err)
		}
		g, err := live.NewWith(h, &live.Options{Upstreams: live.Upstreams{URLs: map[string]string{"anthropic": v.URL}}, Bounds: live.Bounds{Deadline: time.Minute}}, database)
		if err != nil {
			t.Fatal(err)
		}
		s := httptest.NewServer(g)
		t.Cleanup(func() { s.Close(); _ = g.Close(); _ = h.Close() })
		return g, s.URL
	}
}

// While the database is unavailable for long, no agent sees an error: a conversation that this gateway does not know is sent without the
// thinking that its vendor
// refuses, one that gets too long is condensed, and both go on as if nothing had been when the database is back.
func TestDatabaseUnavailableForLong(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for _, size := range []int{500_000, window} { // what the client sends fits, or does not
		for _, known := range []bool{true, false} {
			t.Run(fmt.Sprintf("window %d, known %t", size, known), func(t *testing.T) {
				t.Parallel() // it waits, for the most part
				vendor, database, start := goneFleet(t, size)
				first, url := start()
				second, other := start()
				live.WaitForStore(second, 0)
				c := claude("s")
				c.URL = url
				p := &play{Gateway: first, vendor: vendor, client: &c}
				p.begin(t)
				p.untilEpoch(t, 1)
				p.step(t)
				p.step(t)
				epochs := first.Stats().EpochCount
				database.gone.Store(true)
				if !known {
					c.URL = other
				}
				before := len(vendor.Breaks())
				for range 40 {
					p.step(t)
				}
				broken := len(vendor.Breaks()) - before
				if got := first.Stats().EpochCount + second.Stats().EpochCount; got != epochs {
					t.Errorf("%d epochs were begun, of which the database knows nothing", got-epochs)
				}
				database.gone.Store(false)
				testkit.Eventually(t, "an epoch when the database is back", func() bool {
					time.Sleep(50 * time.Millisecond) // the gateway looks for it five times a second, and the script has an end
					p.step(t)
					return first.Stats().EpochCount+second.Stats().EpochCount > epochs
				})
				for range 5 {
					p.step(t)
				}
				rules := map[string]int{}
				for _, r := range vendor.Refusals() {
					rules[r.Rule]++
				}
				t.Logf("%d breaks of the prefix in 40 requests, refused and sent again: %v", broken, rules)
				if !known { // those are repaired
					delete(rules, "binding")
				}
				if broken > 5 || len(rules) > 0 {
					t.Errorf("%d breaks of the prefix, refused: %v", broken, rules)
				}
			})
		}
	}
}
