package live_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/lab/online"
	"github.com/condensehq/condense/internal/live/access"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// A soak is hours of a gateway in simulated time: conversations of all APIs that begin, pause for an hour, are left in the middle of an
// answer and meet faults of the vendor; tokens that change; reloads; retention, and someone who looks at the pages.
type soak struct {
	t       *testing.T
	g       *live.Gateway
	opts    live.Options
	url     string
	vendor  *httptest.Server
	admin   http.Handler
	clock   atomic.Int64
	client  *http.Client
	vendors sync.Map // *upstream.Vendor by the number of the conversation
	epochs  sync.Map // *atomic.Int64 by the ID of the conversation
	token   string   // of the tenant, for conversations that begin
	looks   string   // token for the pages
	tokens  string   // file

	turns, breaks, condensed atomic.Int64
}

// A soakTalk is a conversation.
type soakTalk struct {
	n      int
	client upstream.Client
	vendor *upstream.Vendor
	stall  chan struct{} // closed when the client has left
	left   int           // steps
}

// A soakWatcher counts the epochs of each conversation.
type soakWatcher struct {
	live.Watcher
	epochs *sync.Map
}

func (c soakWatcher) Turn(t *live.Turn) {
	if t.Epoch != nil {
		n, _ := c.epochs.LoadOrStore(t.Conversation, new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
	}
	c.Watcher.Turn(t)
}

func (s *soak) now() time.Time { return time.Unix(0, s.clock.Load()) }

// begin makes a conversation.
func (s *soak) begin(n int) *soakTalk {
	c := recalls(clients()[n%3])
	steps := 5
	if n%12 == 5 {
		steps = 40
	}
	k := &soakTalk{n: n, client: c, stall: make(chan struct{}), left: steps + 1}
	k.client.URL, k.client.HTTP, k.client.Session = s.url, s.client, fmt.Sprint("s", n)
	k.client.Header = http.Header{"X-Soak": {strconv.Itoa(n)}, "X-Condense-Token": {s.token}, "X-Condense-Recall": {strings.Repeat("recall", 3)}}
	k.client.History = []object{first(c.API, fmt.Sprintf("Read all the files, one after the other: conversation no. %d.", n))}
	faults := []upstream.Fault{{Status: 429}, {Status: 529}, {Status: 500}, {Reset: true}, {Reset: true, At: 300}, {Error: true, At: 300}, {Unended: true}, {Chunk: 3}}
	k.vendor = upstream.New(upstream.Options{Window: window, Script: upstream.Loop(steps, 2200, nil), Now: s.now, Fault: func(r upstream.Record) *upstream.Fault {
		if n%10 == 9 && r.N == 4 {
			return &upstream.Fault{At: 200, Stall: k.stall}
		}
		if r.N%6 == 4 {
			return &faults[(n+r.N/6)%len(faults)]
		}
		return nil
	}})
	s.vendors.Store(strconv.Itoa(n), k.vendor)
	return k
}

// play plays so many steps, and reports whether the conversation goes on.
func (s *soak) play(k *soakTalk, steps int) bool {
	for range min(steps, k.left) {
		k.left--
		calls, err := false, error(nil)
		for range 4 { // faults pass
			ctx, leave := context.WithCancel(s.t.Context())
			if k.n%10 == 9 && len(k.vendor.Records()) == 3 {
				go func() {
					<-time.After(5 * time.Millisecond)
					leave()
				}()
			}
			_, calls, err = k.client.Step(ctx)
			gone := ctx.Err() != nil
			leave()
			if gone {
				close(k.stall)
				return false
			}
			if err == nil {
				break
			}
		}
		s.turns.Add(1)
		if err != nil {
			s.t.Errorf("conversation %d: %v", k.n, err)
			return false
		}
		if !calls {
			return false
		}
		s.clock.Add(int64(2 * time.Second))
	}
	return k.left > 0
}

// end judges a conversation that is over.
func (s *soak) end(k *soakTalk) {
	for _, r := range k.vendor.Refusals() {
		if r.Rule != "fault" {
			s.t.Errorf("conversation %d, request %d was refused: %s: %s", k.n, r.N, r.Rule, r.Error)
		}
	}
	var epochs int64
	all, err := s.g.Controller().Conversations(s.t.Context(), time.Time{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, c := range all {
		if c.Session != k.client.Session {
			continue
		}
		for _, id := range c.Branches {
			if n, ok := s.epochs.LoadAndDelete(id); ok {
				epochs += n.(*atomic.Int64).Load()
			}
		}
	}
	if b := k.vendor.Breaks(); int64(len(b)) > epochs {
		s.t.Errorf("conversation %d: %d breaks of the prefix in %d epochs: %v", k.n, len(b), epochs, b)
	}
	s.breaks.Add(int64(len(k.vendor.Breaks())))
	s.condensed.Add(epochs)
	s.vendors.Delete(strconv.Itoa(k.n))
}

// hour plays conversations, several at a time, the paused ones of the hour before first. It returns those that pause.
func (s *soak) hour(h, talks int, paused []*soakTalk) (pause []*soakTalk) {
	start := s.clock.Load()
	todo := make(chan *soakTalk)
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			for k := range todo {
				steps := 1000
				if k.n%8 == 3 && k.n/talks == h {
					steps = k.left / 2
				}
				if s.play(k, steps) {
					mu.Lock()
					pause = append(pause, k)
					mu.Unlock()
				} else {
					s.end(k)
				}
			}
		})
	}
	for i := range talks {
		if i < len(paused) {
			todo <- paused[i]
		}
		todo <- s.begin(h*talks + i)
		if i == talks/2 { // in the middle of answers
			s.reload(h)
		}
	}
	close(todo)
	all.Wait()
	s.clock.Store(start + int64(time.Hour))
	return pause
}

// reload makes a new token of the tenant, drops that before the last, and reads the options again.
func (s *soak) reload(h int) {
	token := access.Token{Tenant: "acme", Created: time.Now()}
	text := token.New()
	data, err := os.ReadFile(s.tokens)
	if err == nil {
		err = access.Add(s.tokens, &token)
	}
	old, parse := access.ParseTokens(data)
	if err := errors.Join(err, parse); err != nil {
		s.t.Fatal(err)
	}
	if len(old) > 4 { // the administrator's, and those of conversations that paused
		if _, err := access.Remove(s.tokens, old[1].ID()); err != nil {
			s.t.Fatal(err)
		}
	}
	s.opts.Recall.MaxResult = 8000 + h%2
	if err := s.g.Reload(&s.opts); err != nil {
		s.t.Fatal(err)
	}
	s.token = text
}

// look reads the pages.
func (s *soak) look() {
	for _, path := range []string{"/condense/", "/condense/status", "/readyz"} {
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, http.NoBody)
		r.Header.Set("X-Condense-Token", s.looks)
		w := httptest.NewRecorder()
		if s.admin.ServeHTTP(w, r); w.Code != http.StatusOK {
			s.t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// A size is what the process holds when nothing is under way.
type sizes struct {
	heap             uint64
	goroutines, open int
	stored           int64
}

func (s *soak) measure(dir string) (m sizes) {
	live.Settle(s.g) // a condensation that is under way holds its tables
	s.client.CloseIdleConnections()
	http.DefaultClient.CloseIdleConnections()
	s.vendor.CloseClientConnections()                // how many the gateway keeps depends on how many requests met
	for quiet, before := 0, -1; quiet < 4; quiet++ { // connections end, on a busy machine not at once
		if n := runtime.NumGoroutine(); n != before {
			quiet, before = 0, n
		}
		<-time.After(50 * time.Millisecond)
	}
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	m.heap, m.goroutines = stats.HeapAlloc, runtime.NumGoroutine()
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		m.open = len(open)
	}
	files, err := filepath.Glob(filepath.Join(dir, "gateway.db*"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, f := range files {
		if i, err := os.Stat(f); err == nil {
			m.stored += i.Size()
		}
	}
	return m
}

// A gateway that runs for a day needs what it needed in the morning: memory, goroutines, open files and space in the store. No prefix
// breaks outside
// an epoch, and the vendor refuses nothing. CONDENSE_SOAK_GATEWAY is the number of hours and of conversations
// in each.
func TestSoakGateway(t *testing.T) {
	testkit.Slow(t)
	hours, talks := 6, 12
	if text := os.Getenv("CONDENSE_SOAK_GATEWAY"); text != "" {
		if _, err := fmt.Sscanf(text, "%dx%d", &hours, &talks); err != nil {
			t.Fatalf("CONDENSE_SOAK_GATEWAY: %q: want HOURSxCONVERSATIONS, as in 24x125", text)
		}
	}
	dir := t.TempDir()
	s := &soak{t: t, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}, tokens: filepath.Join(dir, "tokens")}
	s.clock.Store(time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC).UnixNano())
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v, ok := s.vendors.Load(r.Header.Get("X-Soak")); ok {
			v.(*upstream.Vendor).ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	defer vendor.Close()
	s.vendor = vendor
	ops, acme := access.Token{Tenant: "ops", Admin: true}, access.Token{Tenant: "acme"}
	s.looks, s.token = ops.New(), acme.New()
	if err := errors.Join(access.Add(s.tokens, &ops), access.Add(s.tokens, &acme)); err != nil {
		t.Fatal(err)
	}
	size, file, quiet := window, filepath.Join(dir, "gateway.db"), slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	host, err := condense.Open(t.Context(), &condense.Options{Values: &config.Values{
		DefaultProfile: "small", Profiles: map[string]config.ProfileValues{
			"small": {Window: &size},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	watch, err := online.New(t.Context(), file, quiet)
	if err != nil {
		t.Fatal(err)
	}
	s.opts = live.Options{
		Upstreams: live.Upstreams{URLs: map[string]string{"anthropic": vendor.URL, "openai": vendor.URL}},
		Store:     live.Store{Path: file, KeepFor: 2 * time.Hour},
		Access:    live.Access{Tokens: s.tokens},
		Now:       s.now,
		Bounds:    live.Bounds{Deadline: time.Minute},
		Epoch:     live.EpochOptions{Risk: 100},
		Reports:   live.Reports{Logger: quiet, Watch: soakWatcher{watch, &s.epochs}, Pages: watch.Pages("", func() live.Stats { return s.g.Stats() })},
	}
	if s.g, err = live.New(host, &s.opts); err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(s.g)
	s.url, s.admin = front.URL, s.g.Admin()
	var seen []sizes
	var paused []*soakTalk
	for h := range hours {
		paused = s.hour(h, talks, paused)
		live.Expire(s.g)
		s.look()
		seen = append(seen, s.measure(dir))
		m := seen[h]
		t.Logf("hour %2d: heap %5.1f MB, %d goroutines, %d files, store %4.1f MB; %d turns, %d epochs, %d breaks", h+1, float64(m.heap)/1e6, m.goroutines, m.open, float64(m.stored)/1e6, s.turns.Load(), s.condensed.Load(), s.breaks.Load())
	}
	for _, k := range paused {
		s.end(k)
	}
	// The first third fills what is bounded by numbers, such as the conversations in memory.
	mean := func(of func(sizes) float64, part int) (sum float64) {
		from, to := hours*part/3, hours*(part+1)/3
		for _, m := range seen[from:to] {
			sum += of(m) / float64(to-from)
		}
		return sum
	}
	for _, c := range []struct {
		what  string
		of    func(sizes) float64
		slack float64
	}{
		{"bytes of heap", func(m sizes) float64 { return float64(m.heap) }, 3 << 20},
		{"goroutines", func(m sizes) float64 { return float64(m.goroutines) }, 8},
		{"open files", func(m sizes) float64 { return float64(m.open) }, 8},
		// With what the pages keep of conversations, some kB an hour: that has the real clock, and the month of retention does not end here.
		{"bytes in the store", func(m sizes) float64 { return float64(m.stored) }, 1 << 20},
	} {
		second, third := mean(c.of, 1), mean(c.of, 2)
		if third > 1.05*second+c.slack {
			t.Errorf("%s: %.0f in the second third of the time, and %.0f in the last", c.what, second, third)
		}
	}
	stats := s.g.Stats()
	for kind := range stats.Errors {
		if !strings.HasPrefix(kind, "vendor_") {
			t.Errorf("faults: %v", stats.Errors)
			break
		}
	}
	if s.condensed.Load() == 0 || s.breaks.Load() == 0 {
		t.Error("nothing was condensed")
	}
	front.Close()
	if err := errors.Join(s.g.Close(), watch.Close(), host.Close()); err != nil {
		t.Error(err)
	}
	s.client.CloseIdleConnections()
}
