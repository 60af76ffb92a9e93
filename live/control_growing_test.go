package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/live"
	"github.com/condensehq/condense/registry"
)

// TestGrowingWithOrders is [TestL2L3L5L6Growing] with two gateways of one store, of which any gets the next request,
// two tenants, strategies and disks that fail, and a user who asks for something between the requests. Nothing is
// refused, only what was asked for changes what was sent before, what is undone is the client's own, what is protected
// stays, and the bill is the vendor's. `make soak-orders` has 100,000 runs.
func TestGrowingWithOrders(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	w := newOrdered(t)
	rapid.Check(t, func(t *rapid.T) {
		w.runs++
		w.play(t)
	})
	t.Logf("%d runs, %+v", w.runs, w.seen)
	if w.runs < 1000 || t.Failed() {
		return
	}
	seen := reflect.ValueOf(w.seen)
	for i := range seen.NumField() {
		if seen.Field(i).Int() == 0 {
			t.Errorf("the runs test too little: no %s", seen.Type().Field(i).Name)
		}
	}
}

// chains are the chains of the hosts, each of one strategy. The last one fails when it is told to.
var chains = [][]string{nil, {"slide"}, {"summary"}, {"brittle", "smart"}}

// How a strategy fails.
const (
	none int32 = iota
	fails
	panics
	invalid
	faultKinds
)

// brittle is a strategy that keeps the newest half, unless it is told to fail.
func (w *ordered) brittle() registry.Strategy {
	return registry.Define("brittle", "Keeps half, or fails.", func() struct{} { return struct{}{} },
		func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) {
			return core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
				switch w.broken.Load() {
				case fails:
					return nil, errors.New("out of order")
				case panics:
					panic("out of order")
				case invalid:
					return &core.Result{Messages: req.Messages[:1]}, nil
				default:
					return &core.Result{Messages: core.KeepGroups(req.Messages, func(i int) bool { return i == 0 || i >= len(req.Messages)/2 })}, nil
				}
			}), nil
		})
}

// ordered is the vendor, the gateways, and what was tested.
type ordered struct {
	hosts  []*condense.Host
	stores [2]*common // in memory, and in a file
	pairs  map[[2]int]*[2]*live.Gateway
	clock  atomic.Int64 // seconds
	broken atomic.Int32 // a fault
	vendor *growingVendor
	body   []byte       // the vendor's last answer
	said   bytes.Buffer // the gateways' warnings in this run
	log    *slog.Logger
	usage  live.Tokens // that the vendor has reported

	runs int
	seen struct {
		Requests, Epochs, Asked, Refused, Undone, Own, Former, Paused, PausedEpochs, Protected, Kept, Broken, Unsaved, Restarts, Moved, Cold int
	}
}

func newOrdered(t *testing.T) *ordered {
	t.Helper()
	w := &ordered{pairs: map[[2]int]*[2]*live.Gateway{}}
	w.log = slog.New(slog.NewTextHandler(&w.said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	for _, chain := range chains {
		o := withWindow(2_000)
		o.Strategies = []registry.Strategy{w.brittle()}
		o.Values.Providers = map[string]config.ProviderValues{
			"slide": {Strategy: "slidingwindow"}, "brittle": {Strategy: "brittle"}, "smart": {Strategy: "smart"},
			"summary": {Strategy: "native", Settings: json.RawMessage(`{"model":"extractive"}`)},
		}
		o.Values.Chain = chain
		host, err := condense.Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		w.hosts = append(w.hosts, host)
	}
	file, err := store.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"))
	if err != nil {
		t.Fatal(err)
	}
	w.stores = [2]*common{{Store: inMemory(t)}, {Store: file}}
	t.Cleanup(func() {
		for _, pair := range w.pairs {
			for _, g := range pair {
				if err := g.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		for _, h := range w.hosts {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// common is a store of several gateways of one process, and a disk that is full for a number of writes.
type common struct {
	store.Store
	changes atomic.Int64
	full    atomic.Int32
}

func (s *common) Changes(context.Context, store.Key) (int64, error) { return s.changes.Load(), nil }

func (s *common) Save(ctx context.Context, r *store.Record) error {
	if s.full.Load() > 0 {
		s.full.Add(-1)
		return fmt.Errorf("no space: %w", store.ErrFile)
	}
	s.changes.Add(1)
	return s.Store.Save(ctx, r)
}

func (s *common) Keep(ctx context.Context, r *store.Record, k *store.Kept, most int64) error {
	s.changes.Add(1)
	return s.Store.Keep(ctx, r, k, most)
}

func (s *common) Close() error { return nil }

// open returns a gateway whose vendor is w.
func (w *ordered) open(t *rapid.T, host *condense.Host, in store.Store) *live.Gateway {
	g, err := live.NewWith(host, &live.Options{
		Upstreams: live.Upstreams{URLs: map[string]string{"anthropic": "http://vendor.invalid"}},
		Reports:   live.Reports{Logger: w.log}, Now: w.now,
		Bounds: live.Bounds{Deadline: time.Minute}, // on a busy machine
	}, in)
	if err != nil {
		t.Fatal(err)
	}
	live.Record(g, w)
	return g
}

func (w *ordered) now() time.Time { return time.Unix(w.clock.Load(), 0) }

// RoundTrip answers as the vendor.
func (w *ordered) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	answer, err := w.vendor.Answer(body)
	status := http.StatusOK
	if err != nil {
		status = http.StatusBadRequest
		w.body = fmt.Appendf(nil, `{"type":"error","error":{"type":"invalid_request_error","message":%q}}`, err.Error())
	} else {
		u := live.Tokens{Sent: len(body)/4 + 10, CacheRead: len(body) / 8, CacheWrite: len(body) / 16, Output: 10 + len(answer)%7}
		w.body = fmt.Appendf(nil, `{"id":"msg","type":"message","model":"m","stop_reason":"end_turn","usage":{"input_tokens":%d,`+
			`"cache_read_input_tokens":%d,"cache_creation_input_tokens":%d,"output_tokens":%d},"answer":%s}`,
			u.Sent-u.CacheRead-u.CacheWrite, u.CacheRead, u.CacheWrite, u.Output, answer)
		w.usage.Sent += u.Sent
		w.usage.CacheRead += u.CacheRead
		w.usage.CacheWrite += u.CacheWrite
		w.usage.Output += u.Output
	}
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(w.body)), ContentLength: int64(len(w.body)), Request: r,
	}, nil
}

// A turns is one run.
type turns struct {
	*ordered
	t     *rapid.T
	store *common
	pair  *[2]*live.Gateway
	host  *condense.Host
	at    int // the gateway that gets the next request
	named string

	counted live.Tokens    // by gateways that have ended
	faults  map[string]int // of them
	full    int            // how many writes of the next request fail
	unsaved bool           // a write has failed: the gateways do not know the same any more
	owner   map[string]int // the tenant of a conversation, by its ID
	asked   map[string]*control.Conversation
	lost    map[string]bool // messages that some request did not have verbatim while they were not protected
}

func (w *ordered) play(t *rapid.T) {
	host := rapid.IntRange(0, len(w.hosts)-1).Draw(t, "chain")
	disk := 0
	if rapid.IntRange(0, 99).Draw(t, "disk") == 99 {
		disk = 1
	}
	x := &turns{
		ordered: w, t: t, store: w.stores[disk], host: w.hosts[host], named: fmt.Sprint("s", w.runs), faults: map[string]int{},
		owner: map[string]int{}, asked: map[string]*control.Conversation{}, lost: map[string]bool{},
	}
	w.vendor, w.usage = &growingVendor{}, live.Tokens{}
	w.broken.Store(none)
	w.said.Reset()
	defer func() {
		if t.Failed() {
			t.Logf("%s", w.said.Bytes())
		}
	}()
	if x.pair = w.pairs[[2]int{host, disk}]; x.pair == nil {
		x.pair = &[2]*live.Gateway{}
		w.pairs[[2]int{host, disk}] = x.pair
		for i := range x.pair {
			x.pair[i] = w.open(t, x.host, x.store)
		}
	}
	for i := range x.pair { // what earlier runs have counted
		x.add(i, -1)
	}
	runGrowing(t, w.vendor, growingWorld{Words: 60, Tenants: true, Restart: x.restart, Ask: x.ask, Send: x.send}, 40)
	for i := range x.pair {
		x.add(i, 1)
	}
	if _, err := x.store.Expire(t.Context(), w.now().Add(time.Hour), 0); err != nil {
		t.Fatal(err)
	}
	x.store.changes.Add(1)
	for kind, n := range x.faults {
		if n > 0 && kind != "panic" && !x.unsaved {
			t.Errorf("faults: %v", x.faults)
		}
	}
	if x.counted != w.usage {
		t.Fatalf("the bill says %+v, the vendor %+v", x.counted, w.usage)
	}
}

// add adds, n times, what a gateway has counted.
func (x *turns) add(i, n int) {
	s := x.pair[i].Stats()
	x.counted.Sent += n * s.Tokens.Sent
	x.counted.CacheRead += n * s.Tokens.CacheRead
	x.counted.CacheWrite += n * s.Tokens.CacheWrite
	x.counted.Output += n * s.Tokens.Output
	for kind, m := range s.Errors {
		x.faults[kind] += n * m
	}
}

// restart ends the gateway that gets the next request, and starts another one.
func (x *turns) restart() {
	x.seen.Restarts++
	x.add(x.at, 1)
	if err := x.pair[x.at].Close(); err != nil {
		x.t.Error(err)
	}
	x.pair[x.at] = x.open(x.t, x.host, x.store)
	x.add(x.at, -1)
}

func (x *turns) controller() *control.Controller { return x.pair[x.at].Controller() }

func (x *turns) conversations() []*control.Conversation {
	all, err := x.controller().Conversations(x.t.Context(), time.Time{})
	if err != nil {
		x.t.Fatal(err)
	}
	return all
}

// ask changes something, and asks for something that can be had.
func (x *turns) ask(n int) {
	if !x.unsaved {
		x.at = n % 2
	}
	all := x.conversations()
	switch n /= 2; n % 16 {
	case 0:
		x.broken.Store(int32(n) / 16 % faultKinds)
		x.seen.Broken++
	case 1:
		x.clock.Add(int64(2 * time.Hour / time.Second))
		x.seen.Cold++
	case 2:
		x.full = 1 + n/16%2
	default:
		if len(all) > 0 {
			n /= 16
			x.order(all[n%len(all)], n/len(all))
		}
	}
}

func (x *turns) order(c *control.Conversation, n int) {
	d, ctx := x.controller(), x.t.Context()
	_, no := d.PlanUndo(ctx, c)
	var err error
	switch do := n % 8; {
	case do < 4 && no == nil:
		err = d.Undo(ctx, c)
	case do < 4:
		x.clock.Add(60) // no more than one in a minute
		o := session.Order{}
		if share := n % 50; share > 0 {
			o.Percent = float64(max(10, share))
		}
		if n%5 == 0 {
			o.Provider = []string{"slide", "summary", "brittle", "smart"}[n/5%4]
		}
		err = d.Now(ctx, c, o)
	case do == 4:
		if err = d.Pause(ctx, c, !c.Paused); c.Paused {
			x.seen.Paused++
		}
	case len(c.Protections) == 2: // more may not fit into the window
		p := c.Protections[0]
		err = d.Protect(ctx, c, session.Protection{Text: p.Text, Message: p.Message}, false)
	default:
		p := session.Protection{Message: 1 + n%c.Messages}
		if n%3 == 0 {
			p = session.Protection{Text: fmt.Sprint("tok", n%20, ".")}
		}
		x.seen.Protected++
		if no := d.Protect(ctx, c, p, true); no != nil && !c.Condensed && p.Text == "" { // which may occur nowhere
			err = no
		}
	}
	if err != nil {
		x.t.Fatal(err)
	}
	x.asked[c.ID] = c
}

// send sends a request to the other gateway than the one before, and returns the answer, and whether earlier messages
// were allowed to change.
func (x *turns) send(c growingCall) (growingAnswer, bool) {
	x.seen.Requests++
	x.clock.Add(1)
	if !x.unsaved {
		x.at = (x.at + 1) % 2
	}
	g := x.pair[x.at]
	epochs, undone, passed, _ := live.Counts(g)
	x.store.full.Store(int32(x.full))
	r := httptest.NewRequestWithContext(x.t.Context(), http.MethodPost, "http://127.0.0.1/v1/messages", bytes.NewReader(c.Body))
	r.RemoteAddr = "127.0.0.1:1"
	r.Header.Set("X-Condense-Session", x.named)
	r.Header.Set("X-Api-Key", fmt.Sprint("tenant", c.Tenant))
	out := httptest.NewRecorder()
	g.ServeHTTP(out, r)
	live.Settle(g)
	if int(x.store.full.Swap(0)) < x.full {
		x.unsaved = true
		x.seen.Unsaved++
	}
	x.full = 0
	if !bytes.Equal(out.Body.Bytes(), x.body) {
		x.t.Fatalf("the vendor answers %s, and the client gets %s", x.body, out.Body)
	}
	var answer struct{ Answer json.RawMessage }
	if err := json.Unmarshal(x.body, &answer); err != nil || out.Code != http.StatusOK {
		x.t.Fatalf("%d %v: %s\nclient: %s", out.Code, err, x.body, c.Body)
	}
	if c.Tenant > 0 {
		x.seen.Moved++
	}
	epochsNow, undoneNow, passedNow, last := live.Counts(g)
	if _, got := x.vendor.Last(); passedNow > passed && !bytes.Equal(c.Body, got.Body) {
		x.t.Fatalf("a request was passed on in another form\nclient: %s\nsent: %s", c.Body, got.Body)
	}
	if epochsNow == epochs {
		last = nil
	}
	x.obeyed(c, last, undoneNow > undone)
	x.seen.Epochs += epochsNow - epochs
	x.seen.Undone += undoneNow - undone
	return growingAnswer(answer.Answer), epochsNow > epochs || undoneNow > undone
}

// obeyed checks what the user has asked for, after a request that may have begun an epoch, or undone one.
func (x *turns) obeyed(c growingCall, began *live.Epoch, undone bool) {
	client, _ := x.vendor.Last()
	rolling := lineage.Roll(client.Messages)
	shown := x.vendor.Shown()
	lost := func(i int) string { return fmt.Sprint(c.Tenant, " ", session.At(rolling[i])) }
	if len(x.asked) > 0 || undone {
		x.served(c, began, undone, func(p session.Protection) {
			for i, raw := range client.Messages {
				is := p.At == session.At(rolling[i]) || p.Text != "" && strings.Contains(string(raw.Raw), p.Text)
				if is && shown[i] {
					x.seen.Kept++
				}
				if is && !shown[i] && !x.lost[lost(i)] {
					_, got := x.vendor.Last()
					x.t.Fatalf("message %d is protected by %+v, and does not arrive\nclient: %s\nsent: %s", i+1, p, c.Body, got.Body)
				}
			}
		})
	}
	for i := range rolling {
		if !shown[i] {
			x.lost[lost(i)] = true
		}
	}
}

// served finds the conversation of a request, and checks its orders and those of the others.
func (x *turns) served(c growingCall, began *live.Epoch, undone bool, protected func(session.Protection)) {
	for _, now := range x.conversations() {
		before, served := x.asked[now.ID], now.Last.Equal(x.now())
		if tenant, known := x.owner[now.ID]; served && known && tenant != c.Tenant {
			x.t.Fatalf("a request of tenant %d is part of a conversation of tenant %d", c.Tenant, tenant)
		}
		if served {
			x.owner[now.ID] = c.Tenant
		}
		if before == nil {
			continue
		}
		if !served {
			if a, b := asJSON(before.LastOrder), asJSON(now.LastOrder); a != b {
				x.t.Fatalf("an order was carried out with the request of another conversation: %s, and before %s", b, a)
			}
			continue
		}
		for _, p := range before.Protections {
			protected(p)
		}
		x.carriedOut(c, before, now, began, undone)
		x.asked[now.ID] = now
		if now.Order == nil && !now.Paused && now.Protections == nil {
			delete(x.asked, now.ID) // nothing is asked for any more
		}
	}
}

// carriedOut checks the order of a conversation with its next request.
func (x *turns) carriedOut(c growingCall, before, now *control.Conversation, began *live.Epoch, undone bool) {
	o, done := before.Order, now.LastOrder
	if done != nil && before.LastOrder != nil && done.Number == before.LastOrder.Number {
		done = nil
	}
	if before.Paused && began != nil && (done == nil || done.Do != session.OrderNow) {
		x.seen.PausedEpochs++
		if began.Before <= now.Window && began.Reason != "overflow" {
			x.t.Fatalf("a paused conversation was condensed: %+v", began)
		}
	}
	if o == nil {
		return
	}
	switch {
	case done == nil && x.vendor.Continues() && !x.unsaved && (now.Order == nil || now.Order.Waits == ""):
		x.t.Fatalf("the next request did not carry out %+v: %+v", o, now.Order)
	case done == nil:
		return
	case done.Number != o.Number || !done.Changed && done.Result == "":
		x.t.Fatalf("%+v became %+v", o, done)
	case !done.Changed:
		x.seen.Refused++
	case o.Do == session.OrderNow:
		x.seen.Asked++
		if began == nil {
			x.t.Fatalf("%+v was carried out without an epoch", done)
		}
	case !undone:
		x.t.Fatalf("%+v was carried out without an undo", done)
	case now.Condensed:
		x.seen.Former++
	default:
		x.seen.Own++
		_, got := x.vendor.Last()
		if !x.vendor.Own() || !now.Bound && !bytes.Equal(got.Body, c.Body) {
			x.t.Fatalf("what was undone is not the client's own\nclient: %s\nsent: %s", c.Body, got.Body)
		}
	}
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
