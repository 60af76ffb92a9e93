// Package live condenses the conversations of running agents: a [Gateway] is an HTTP handler
// between agents and the APIs of their language models.
//
// An agent is given the gateway as its base URL and needs nothing else. Requests with a
// conversation (Anthropic's Messages, OpenAI's Chat Completions and Responses) are condensed when
// they come near the model's window, by the chain of the [condense.Host]; everything else is
// passed through. A request that need not be condensed is forwarded byte for byte, and answers are
// never changed, delayed or collected, unless they call the tool that [Recall] can add.
//
//	h, err := condense.Open(ctx, nil)
//	…
//	g, err := live.New(h, nil)
//	…
//	defer g.Close()
//	err = (&http.Server{Addr: "127.0.0.1:8765", Handler: g, ReadHeaderTimeout: 10 * time.Second}).ListenAndServe()
//
// A server must not set a WriteTimeout, which would cut long answers.
package live

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/internal/live/access"
	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/live/count"
	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/library"
	"github.com/condensehq/condense/internal/live/queue"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/live/internal/admin"
	"github.com/condensehq/condense/live/internal/audit"
	"github.com/condensehq/condense/live/internal/chain"
	"github.com/condensehq/condense/live/internal/payload"
	"github.com/condensehq/condense/live/internal/telemetry"
)

const (
	pingEvery    = 10 * time.Second
	bodyPatience = time.Minute // the longest pause between two parts of a request's body
	lastFlush    = 5 * time.Second
)

// A Gateway forwards the requests of agents and condenses their conversations. It is safe for
// concurrent use.
type Gateway struct {
	host      *condense.Host
	store     store.Store
	secrets   *secrets
	current   atomic.Pointer[settings]
	stats     counters
	telemetry *telemetry.Recorder
	tenants   tenant.Tenants
	sessions  *session.Sessions
	runner    *job.Runner
	preparing *queue.Queue // admits condensations prepared for a later request, by the bytes of the request
	pages     *admin.Pages
	originals
	findings
	service
	work
	pauses
	sockets   sockets
	histories *chain.Histories
	bodies    *payload.Budget // of requests
}

// originals are the condensed messages that agents can recall.
type originals struct {
	library *library.Library
	passes  library.Passes
	mcp     http.Handler
	asking  chan struct{} // holds a value for each request to /mcp that is being answered
}

// findings caches facts learned from earlier requests.
type findings struct {
	parsed    *wire.Cache
	profiles  profiles
	windows   windows
	bound     binding
	twice     binding // models whose vendor counts cached tokens twice, as the log says
	ingesters ingesters
}

// service is the state of the gateway for its operators.
type service struct {
	draining   atomic.Bool
	unusable   atomic.Bool // the store cannot be used, and the log says so
	causes     causes
	rejections sync.Map // refusals already logged, by reason and kind; there are few
}

// work is done next to requests.
type work struct {
	life       context.Context //nolint:containedctx // ends with Close
	stop       context.CancelFunc
	background sync.WaitGroup
}

// pauses are how long a client waits, or may pause.
type pauses struct {
	pingEvery time.Duration // interval of pings while a client waits for the answer to a recall
	patience  time.Duration // how long a client may pause while it sends a body
}

// New returns a gateway that condenses with host, which must stay open until the gateway is
// closed.
func New(host *condense.Host, opts *Options) (*Gateway, error) {
	if host == nil {
		return nil, errors.New("live: no host: open one with condense.Open")
	}
	s, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	opened, err := store.Open(context.Background(), s.Store.Path)
	if err != nil {
		return nil, fmt.Errorf("live: %w", err)
	}
	return start(host, s, opened)
}

func start(host *condense.Host, s *settings, opened store.Store) (*Gateway, error) {
	g := &Gateway{
		host: host, store: opened, preparing: queue.New(maxPrepared), findings: findings{
			parsed:  wire.NewCache(count.Message),
			windows: windows{of: map[windowKey]*modelWindow{}, listed: map[windowKey]map[string]int{}},
		},
		stats: counters{s: Stats{Errors: map[string]int{}}}, service: service{causes: causes{of: map[string]time.Time{}}},
		originals: originals{asking: make(chan struct{}, maxAsking)},
		pauses:    pauses{pingEvery, bodyPatience}, sockets: newSockets(), histories: chain.New(maxHistories), bodies: payload.NewBudget(s.maxHeld(), payload.LongestWait),
	}
	g.life, g.stop = context.WithCancel(context.Background())
	var err error
	if g.telemetry, err = telemetry.New(s.Reports.Meter, s.Reports.Tracer); err != nil {
		g.stop()
		return nil, errors.Join(fmt.Errorf("live: telemetry: %w", err), opened.Close())
	}
	g.stats.Faulted = func(kind string) { g.measure(&telemetry.Faults, 1, telemetry.KindKey.String(kind)) }
	g.secrets, err = newSecrets(g.life, s.Store.Key, opened)
	if err == nil {
		events := job.Events{Attempted: g.attempted, Fault: g.fault, Crowded: func() { g.stats.Fault("queue") }}
		g.runner, err = job.New(g.life, host, queue.New(maxLooked), events)
	}
	if err != nil {
		g.stop()
		return nil, errors.Join(err, opened.Close())
	}
	g.sessions = session.New(opened, session.Surroundings{
		Life: g.life, Background: &g.background, Now: func() time.Time { return g.current.Load().Now() },
		Log: func() *slog.Logger { return g.current.Load().Reports.Logger }, Fault: g.fault, Damaged: func() { g.stats.Fault("store_damaged") },
	})
	g.pages = &admin.Pages{
		Host: host, Door: func() *access.Door { return &g.current.Load().door }, Stats: func() any { return g.Stats() },
		Controller: func() *control.Controller { return control.New(opened, g.current.Load().Now, g.sessions.Changed) },
		Orders:     func() string { return g.current.Load().Access.Orders },
		Now:        func() time.Time { return g.current.Load().Now() },
		Audit:      func(what string, who tenant.Caller, more ...any) { g.current.Load().audit(what, who, more...) },
		Ready:      g.storeReady, Draining: g.draining.Load,
	}
	empty := func() *library.Library {
		return library.New(opened, g.recalled, g.titled, func(err error) { g.fault("store_damaged", err) })
	}
	g.library = empty()
	g.library.Beside = func() library.Others { return g.current.Load().Recall.Beside }
	if s.Recall.Own {
		g.mcp = g.newMCP(g.library)
	} else { // whoever chooses a secret could look for sessions by guessed keys
		g.mcp = g.newMCP(empty())
	}
	g.current.Store(s)
	g.stats.Since = s.Now()
	g.background.Go(g.expire)
	spent := store.NewOwn(tenant.UsageKey)
	if err := g.share(g.life, spent); err != nil {
		g.fault("usage", err)
	}
	g.background.Go(func() { g.saving(spent) })
	return g, nil
}

// expire deletes conversations that exceed KeepFor or KeepBytes from the store, at the start and then once a day.
func (g *Gateway) expire() {
	const daily = 24 * time.Hour
	tick := time.NewTicker(daily)
	defer tick.Stop()
	for {
		g.expireNow()
		select {
		case <-tick.C:
		case <-g.life.Done():
			return
		}
	}
}

func (g *Gateway) expireNow() {
	s := g.current.Load()
	if n, err := g.store.Expire(g.life, s.Now().Add(-s.Store.KeepFor), s.Store.KeepBytes); err != nil && g.life.Err() == nil {
		g.fault("expire", err)
	} else if n > 0 {
		s.Reports.Logger.Info("old conversations were deleted from the store", "lineages", n)
	}
}

// Reload applies other options from the next request on, except Store, Key, Meter and Tracer, which keep their values.
// On an error nothing has changed.
func (g *Gateway) Reload(opts *Options) error {
	s, err := newSettings(opts)
	if err != nil {
		return err
	}
	before := g.current.Load().upstreams
	for name, u := range s.upstreams {
		if old := before[name]; old != nil && *old.Base == *u.Base {
			u.Transport = old.Transport // its connections are good
		}
	}
	g.current.Store(s)
	for name, old := range before {
		if u := s.upstreams[name]; u == nil || u.Transport != old.Transport {
			old.Transport.CloseIdleConnections()
		}
	}
	return nil
}

// Close stops the background work, stores conversations that could not be stored before, closes the store and frees
// resources. It does not end requests in progress: shut the server down first. The host stays open.
func (g *Gateway) Close() error {
	g.stop()
	g.sockets.open.Wait()
	g.background.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), lastFlush)
	defer cancel()
	g.sessions.Flush(ctx)
	for _, u := range g.current.Load().upstreams {
		u.Transport.CloseIdleConnections()
	}
	return errors.Join(g.runner.Close(), g.ingesters.close(), g.store.Close())
}

// ServeHTTP answers a request: it refuses it, serves the gateway's own endpoints, or forwards it to its upstream.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := g.current.Load()
	if access.IsUpgrade(r) && g.serveSocket(w, r, s) { //nolint:contextcheck // a socket outlives the request that opened it
		return
	}
	t := s.route(r)
	if g.draining.Load() {
		w.Header().Set("Connection", "close")
	}
	r.Body = payload.Patiently(r, w, g.patience)
	v := g.admit(w, r, s, &t)
	defer v.end()
	if v.leave == nil {
		return
	}
	defer v.leave()
	out, r := v.out, v.r
	g.measure(&telemetry.Active, 1)
	defer g.measure(&telemetry.Active, -1)
	if s.limitsFor(t.who.Tenant).Bytes > 0 {
		r.Body = payload.Tap(r.Body, func(read []byte, _ error) { g.countBytes(t.who, len(read)) })
	}
	switch {
	case t.mcp:
		g.serveMCP(out, r, s, &t)
	case t.compress:
		g.serveCompress(out, r, s, &t)
	case t.api != "" && r.Method == http.MethodPost:
		g.converse(out, r, s, &t)
	case r.Method == http.MethodGet && t.upstream != nil && strings.HasSuffix(t.path, "/models"):
		s.forward(out, r, &t, listening(g, t.upstream, t.who.Tenant))
	default:
		s.forward(out, r, &t, nil)
	}
}

// Stats returns a snapshot of the statistics.
func (g *Gateway) Stats() Stats {
	s := g.stats.Snapshot()
	s.AsOf, s.Observe, s.Windows = g.current.Load().Now(), g.current.Load().Observe, g.windows.known()
	_, s.Preparing = g.preparing.Waiting()
	if pending := g.host.ReloadErr(); pending != nil {
		s.Pending = pending.Error()
	}
	return s
}

// Admin returns the handler of the pages for administrators, not for agents: it belongs on a listener of its own, on
// the loopback if possible.
//
//	/healthz          200 while the process serves
//	/readyz           200 if requests should be sent here: the file of the store answers, and [Gateway.Drain] was not
//	                  called; else 503. The text also reports a configuration change that is not used, because it
//	                  waits for trust or is invalid.
//	/condense/status  [Stats] as JSON
//	/condense/live    the conversations used in the last hour, as JSON; below it, /ID shows the view that the model has
//	                  of one, and a POST of JSON to /ID/ACTION performs one of actions, as condense live does
//	/metrics          Reports.Metrics, if there is one
//	/condense/        Reports.Pages, if there are any
//
// With a token, every page but the first two needs it, or one of Options.Tokens for administrators: in the header
// X-Condense-Token, as bearer token, or as the password of any user, for which browsers ask. Without a token, only
// clients on this machine are answered, and only those that send [Access.Orders] in its place direct conversations and are
// shown texts.
func (g *Gateway) Admin() http.Handler {
	s := g.current.Load()
	return g.pages.Handler(s.Reports.Metrics, s.Reports.Pages)
}

// Drain makes /readyz say that no new requests should be sent here. Requests are still served, to give a balancer the
// time to ask, and each is the last of its connection. WebSockets end after the
// answers in progress.
func (g *Gateway) Drain() {
	g.draining.Store(true)
	g.sockets.once.Do(func() { close(g.sockets.drained) })
}

// storeReady returns an error if the store cannot be used, and logs it once.
func (g *Gateway) storeReady(ctx context.Context) error {
	err := g.store.Ready(ctx)
	switch {
	case err == nil:
		g.unusable.Store(false)
	case errors.Is(err, store.ErrUnavailable), ctx.Err() != nil:
	case !g.unusable.Swap(true):
		g.stats.Fault("store")
		g.current.Load().Reports.Logger.WarnContext(ctx, "the store cannot be used: requests go on", "err", err)
	}
	return err
}

// A visit is a request that was let in, or refused.
type visit struct {
	r     *http.Request // with its span
	out   *audit.Outcome
	leave func() // ends its place among the simultaneous requests of its tenant; nil if it was answered
	end   func() // records it; never nil
}

// admit lets a request in, or answers it: it checks the token and the limits, and that an upstream takes it. All requests come through
// here: those over HTTP, handshakes of WebSockets, and events of their clients.
func (g *Gateway) admit(w http.ResponseWriter, r *http.Request, s *settings, t *target) visit {
	start, out := time.Now(), &audit.Outcome{ResponseWriter: w}
	r, span := g.began(r, t)
	v := visit{r: r, out: out, end: func() { g.served(s, t, r, out, start, span) }}
	switch status, text := s.refuse(r, t); {
	case status != 0:
		if out.Refused = "access"; status == http.StatusUnauthorized {
			out.Refused = "token"
		}
		t.refuse(out, status, text)
	case t.own:
		t.refuse(out, http.StatusNotFound, "condense: here are only the models; the gateway's own pages are at its admin address (serve.admin.listen)")
	case t.path == "/" && r.Method == http.MethodHead: // the probe of Claude Code
		out.WriteHeader(http.StatusOK)
	case t.rejection != nil:
		g.reject(out, r, s, t)
	default:
		now, key := g.current.Load(), g.secrets.tenantOf(t.who, credentials(t, r.Header), nil) // s may be older than a reload of the limits
		var no *tenant.Denied
		if v.leave, no = g.tenants.Enter(t.who, key, now.limitsFor(t.who.Tenant), now.Now()); no != nil {
			t.deny(out, no)
		}
	}
	return v
}

// deny refuses a request because of a limit. Clients of both vendors obey Retry-After if it is short and retry at once if it is long;
// X-Should-Retry then tells them not to.
func (t *target) deny(out *audit.Outcome, no *tenant.Denied) {
	if out.Refused = "limit " + no.Limit; t.handshake && no.Limit == "concurrent" {
		t.noSocket(out)
		return
	}
	out.Header().Set("Retry-After", strconv.Itoa(int(no.Wait.Seconds())))
	if no.Wait > time.Minute {
		out.Header().Set("X-Should-Retry", "false")
	}
	t.refuse(out, http.StatusTooManyRequests, no.Text)
}

// noSocket refuses a WebSocket. Codex uses HTTP after this status, and after no other.
func (t *target) noSocket(out *audit.Outcome) {
	out.Refused = "limit concurrent"
	t.refuse(out, http.StatusUpgradeRequired, "condense: there are too many WebSockets of this caller or of all; use HTTP")
}

// refuse returns the HTTP status and message for a request that must not be answered. Otherwise it returns 0 and sets
// t.who to the caller.
func (s *settings) refuse(r *http.Request, t *target) (status int, text string) {
	var ok bool
	if t.who, text, ok = s.door.Admit(t.token); !ok {
		return http.StatusUnauthorized, "condense: " + text + "; send it in the header X-Condense-Token or in the base URL: /token/TOKEN"
	}
	if t.who.Admin && s.door.Tokens != nil {
		return http.StatusForbidden, "condense: this token is for the gateway's own pages; for models use that of a tenant"
	}
	if status, text = s.door.Outside(r); status == 0 && access.IsUpgrade(r) {
		return http.StatusUpgradeRequired, "condense: no WebSocket here; use HTTP"
	}
	return status, text
}
