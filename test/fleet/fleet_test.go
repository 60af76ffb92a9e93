// Package fleet_test has a test of several gateways that share a database: real processes, which are killed.
package fleet_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/pgtest"
	"github.com/condensehq/condense/internal/testkit/upstream"
)

// gateways are how many processes share the database.
const gateways = 4

// TestFleet lets conversations run through gateways that are killed and started again, each request through another one, and takes the
// database away in the middle. CONDENSE_FLEET is the number of conversations and of turns, such as 200x60.
func TestFleet(t *testing.T) {
	testkit.Process(t)
	conversations, turns, outage := 24, 30, 3*time.Second
	if v := os.Getenv("CONDENSE_FLEET"); v != "" {
		if _, err := fmt.Sscanf(v, "%dx%d", &conversations, &turns); err != nil {
			t.Fatalf("CONDENSE_FLEET=%s: %v", v, err)
		}
		outage = 10 * time.Second
	}
	database := pgtest.Start(t)
	address := database.URL()
	vendor := upstream.New(upstream.Options{Window: 16_000, Script: upstream.Loop(turns-1, 2500, nil)})
	v := httptest.NewServer(vendor)
	defer v.Close()
	f := newFleet(t, v.URL, address)

	// Phases, by how many turns were played: kills, the outage, kills again.
	all := int64(conversations * turns)
	var played, waiting atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var chaos sync.WaitGroup
	chaos.Go(func() {
		kills := func(until int64) {
			for played.Load() < until && ctx.Err() == nil {
				f.kill(ctx)
				pause(ctx, 100*time.Millisecond)
			}
		}
		kills(all / 3)
		f.all(ctx) // those that were killed are there again
		before := played.Load()
		database.Pause()
		pause(ctx, outage)
		during := played.Load() - before
		database.Resume()
		t.Logf("%d turns in %v without a database", during, outage)
		if during == 0 && ctx.Err() == nil {
			t.Error("without a database nothing went on")
		}
		// What a gateway could not store while the database was away is lost with it: two faults at once may cost a write of the cache.
		pause(ctx, outage)
		kills(all * 9 / 10)
	})
	clients := make([]*upstream.Client, conversations)
	var wait sync.WaitGroup
	for i := range clients {
		c := &upstream.Client{API: upstream.Messages, Model: "claude-opus-5-5", Thinking: "adaptive", Stream: true, Session: session(i), URL: "http://fleet", HTTP: &http.Client{Transport: f}}
		switch i % 4 {
		case 1:
			c.Model, c.Thinking = "claude-sonnet-4-5", "enabled"
		case 2:
			c.API, c.Model, c.Thinking = upstream.Responses, "gpt-5.4", ""
		}
		clients[i] = c
		wait.Go(func() {
			waiting.Add(1)
			defer waiting.Add(-1)
			if err := play(ctx, c, i, &played); err != nil {
				t.Errorf("conversation %d: %v", i, err)
				stop()
			}
		})
	}
	wait.Wait()
	stop()
	chaos.Wait()
	f.stop()
	t.Logf("%d turns, %d kills, %d requests sent again; faults: %v", played.Load(), f.kills.Load(), f.again.Load(), f.faults())
	check(t, vendor, address, conversations, f)
	if t.Failed() {
		t.Log(f.log.String())
	}
}

func session(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", i) }

// mark is in every message that is of one conversation only.
func mark(i int) string { return fmt.Sprintf("conversation-%04d-", i) }

// play is an agent, which sends a request again if it gets no answer.
func play(ctx context.Context, c *upstream.Client, i int, played *atomic.Int64) error {
	text := "Read all the files, one after the other. This is " + mark(i) + "."
	if c.API == upstream.Messages {
		c.History = append(c.History, map[string]any{"role": "user", "content": []any{map[string]any{"type": "text", "text": text}}})
	} else {
		c.History = append(c.History, map[string]any{"role": "user", "content": text})
	}
	for {
		_, calls, err := c.Step(ctx)
		for try := 0; err != nil && try < 50 && ctx.Err() == nil && !errors.Is(err, upstream.ErrRefused); try++ {
			pause(ctx, 50*time.Millisecond)
			_, calls, err = c.Step(ctx)
		}
		if err != nil {
			return err
		}
		if played.Add(1); !calls {
			return nil
		}
		pause(ctx, time.Duration(rand.IntN(400))*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// check looks for what must never happen.
func check(t *testing.T, vendor *upstream.Vendor, address string, conversations int, f *fleet) {
	t.Helper()
	records := vendor.Records()
	for _, r := range records {
		if r.Rule != "" {
			t.Errorf("request %d of %s was refused: %s: %s", r.N, r.Session, r.Rule, r.Error)
		}
		n, err := strconv.Atoi(strings.TrimLeft(r.Session[max(0, len(r.Session)-12):], "0") + "")
		if err != nil && r.Session != session(0) {
			t.Fatalf("session %q", r.Session)
		}
		for _, m := range marks.FindAll(r.Body, -1) {
			if string(m) != mark(n) {
				t.Errorf("request %d of conversation %d has %s", r.N, n, m)
			}
		}
	}
	epochs := epochsOf(t, address)
	breaks, total, unused, missed := map[string]int{}, 0, 0, 0
	turnOf := map[int]upstream.Record{}
	for _, r := range records {
		turnOf[r.N] = r
	}
	where := map[string][]string{}
	late := map[int]bool{}
	for _, b := range vendor.Breaks() {
		// A request of a gateway that was killed can be answered after the one that was sent again in its place, and the next one.
		if b.To < b.From {
			late[b.To] = true
		}
		if late[b.To] || late[b.From] {
			continue
		}
		s := turnOf[b.To].Session
		breaks[s]++
		where[s] = append(where[s], fmt.Sprintf("%d (%d tokens) to %d (%d tokens) at %s, %d of them shared", b.From, turnOf[b.From].Tokens, b.To, turnOf[b.To].Tokens, b.Where, b.Shared))
	}
	for i := range conversations {
		s := session(i)
		total += epochs[s]
		if breaks[s] > epochs[s] {
			t.Errorf("conversation %d: the prefix broke %d times in %d epochs: %s", i, breaks[s], epochs[s], strings.Join(where[s], "; "))
			if dir := os.Getenv("FLEET_KEEP"); dir != "" { // the requests, to look at
				for _, r := range records {
					if r.Session == s {
						_ = os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d-%05d-%d.json", i, r.N, r.Status)), r.Body, 0o600)
					}
				}
			}
		}
		// An epoch whose storing got no answer, because the database stopped in the middle, may be stored and not used.
		unused += epochs[s] - breaks[s]
	}
	if unused > gateways {
		t.Errorf("%d of %d epochs that are stored were not sent", unused, total)
	}
	if total < conversations {
		t.Errorf("%d epochs in %d conversations: the test shows too little", total, conversations)
	}
	// What an ideal cache has and the real one did not have is the price of kills: of a request that was sent again before the vendor had
	// answered it the first time, at most one write each.
	largest := 0
	for _, r := range vendor.Turns() {
		missed += max(0, r.Ideal-r.Usage.CacheRead)
		largest = max(largest, r.Usage.Prompt)
	}
	read, ideal := vendor.Cached()
	t.Logf("%d requests, %d epochs (%d not used); %d tokens read from the cache of %d that an ideal one has; largest prompt %d", len(records), total, unused, read, ideal, largest)
	if missed > int(f.kills.Load())*gateways*largest {
		t.Errorf("%d tokens were not read from the cache in %d kills", missed, f.kills.Load())
	}
}

var marks = regexp.MustCompile(`conversation-\d{4}-`)

// epochsOf returns how many different epochs are stored, by session.
func epochsOf(t *testing.T, address string) map[string]int {
	t.Helper()
	s, err := store.Open(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	all, err := s.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	seen, found := map[string]bool{}, map[string]int{}
	keys := map[store.Key]bool{}
	for _, r := range all {
		if keys[r.Key] {
			continue
		}
		keys[r.Key] = true
		records, err := s.Load(t.Context(), r.Key)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			var state struct {
				Epoch *struct {
					N, Cut int
					From   json.RawMessage
				}
			}
			if err := json.Unmarshal(r.Data, &state); err != nil || state.Epoch == nil || state.Epoch.Cut == 0 {
				continue
			}
			if id := fmt.Sprintf("%s %d %d %s", r.Key.Session, state.Epoch.N, state.Epoch.Cut, state.Epoch.From); !seen[id] {
				seen[id] = true
				found[r.Key.Session]++
			}
		}
	}
	return found
}

// A fleet is the gateways. It is an [http.RoundTripper] that sends each request to the next of them.
type fleet struct {
	t       *testing.T
	program string
	args    []string
	dir     string
	log     testkit.Log
	next    atomic.Int64
	kills   atomic.Int64
	again   atomic.Int64

	mu        sync.Mutex
	processes [gateways]*process
}

type process struct {
	cmd *exec.Cmd
	url string // host and port
}

func newFleet(t *testing.T, vendor, database string) *fleet {
	t.Helper()
	dir := t.TempDir()
	program, err := testkit.Program("../..", filepath.Join(dir, "condense"))
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, program: program, dir: dir}
	config := filepath.Join(dir, "fleet.yaml")
	if err := os.WriteFile(config, []byte("default_profile: small\nprofiles: {small: {window: 16000}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.args = []string{"serve", "--config", config, "--listen", "127.0.0.1:0", "--store", database, "--log", "warn", "--upstream", "anthropic=" + vendor, "--upstream", "openai=" + vendor}
	t.Cleanup(f.stop)
	for i := range gateways {
		if err := f.start(i); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// start starts a gateway and waits until it listens.
func (f *fleet) start(i int) error {
	cmd := exec.Command(f.program, f.args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.dir, "TERM=dumb"}
	cmd.Stderr = &f.log
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	m := listens.FindStringSubmatch(line)
	if m == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return fmt.Errorf("gateway %d does not listen: %w\n%s%s", i, err, line, f.log.String())
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.processes[i] = &process{cmd, m[1]}
	return nil
}

var listens = regexp.MustCompile(`listens on http://(\S+)`)

// end kills a gateway.
func (f *fleet) end(i int) {
	f.mu.Lock()
	p := f.processes[i]
	f.processes[i] = nil
	f.mu.Unlock()
	if p != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	}
}

// kill kills one of the gateways, and starts it again after a while.
func (f *fleet) kill(ctx context.Context) {
	i := rand.IntN(gateways)
	f.end(i)
	f.kills.Add(1)
	pause(ctx, time.Duration(rand.IntN(300))*time.Millisecond)
	if err := f.start(i); err != nil && ctx.Err() == nil {
		f.t.Error(err)
	}
}

// all starts what does not run.
func (f *fleet) all(ctx context.Context) {
	for i := range gateways {
		f.mu.Lock()
		there := f.processes[i] != nil
		f.mu.Unlock()
		if !there && ctx.Err() == nil {
			if err := f.start(i); err != nil {
				f.t.Error(err)
			}
		}
	}
}

func (f *fleet) stop() {
	for i := range gateways {
		f.end(i)
	}
}

// RoundTrip sends a request to the next gateway that is there. Like a balancer, it tries another one if the first does not take the
// connection.
func (f *fleet) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_ = r.Body.Close()
	for try := 0; ; try++ {
		f.mu.Lock()
		p := f.processes[int(f.next.Add(1))%gateways]
		f.mu.Unlock()
		err = net.ErrClosed
		if p != nil {
			out := r.Clone(r.Context())
			out.Body, out.Host = io.NopCloser(bytes.NewReader(body)), p.url
			out.URL = &url.URL{Scheme: "http", Host: p.url, Path: r.URL.Path}
			var res *http.Response
			if res, err = transport.RoundTrip(out); err == nil {
				return res, nil
			}
		}
		if f.again.Add(1); try > 20 || r.Context().Err() != nil {
			return nil, err
		}
	}
}

var transport = &http.Transport{MaxIdleConnsPerHost: 64}

// faults counts the faults that the gateways have logged, by kind.
func (f *fleet) faults() map[string]int {
	found := map[string]int{}
	for line := range strings.Lines(f.log.String()) {
		if m := failed.FindStringSubmatch(line); m != nil {
			found[m[1]]++
		} else if m := message.FindStringSubmatch(line); m != nil {
			found[m[1]]++
		}
	}
	return found
}

var (
	failed  = regexp.MustCompile(` failed=(\S+)`)
	message = regexp.MustCompile(` msg="?([^"=]+)`)
)
