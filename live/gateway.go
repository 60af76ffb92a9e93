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
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/internal/live/access"
	"github.com/condensehq/condense/internal/live/admin"
	"github.com/condensehq/condense/internal/live/audit"
	"github.com/condensehq/condense/internal/live/count"
	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/library"
	"github.com/condensehq/condense/internal/live/payload"
	"github.com/condensehq/condense/internal/live/queue"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/stats"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/telemetry"
	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/internal/live/upstream"
	"github.com/condensehq/condense/internal/live/wire"
)

// Options adjust a [Gateway]. A nil pointer and the zero value of every field mean the defaults.
type Options struct {
	// Upstreams maps names to the base URLs of APIs: requests to the gateway's path /NAME/… go to the upstream NAME.
	// "anthropic" and "openai" default to the vendors' own addresses; requests to "openai" that carry the login of a
	// ChatGPT plan go to "chatgpt" instead. For any other name, the URL can begin with a protocol and a +: "anthropic",
	// "openai", "both" (decided by the path; the default), or "pass" for an API that the gateway does not read:
	// pass+https://api.example.com forwards every path below /NAME unchanged.
	Upstreams map[string]string
	// Unversioned lists the upstreams whose paths have no /v1. For all others, /v1 is added to a path that a client
	// sends without it, if the base URL has no path.
	Unversioned []string
	// Store keeps the state that must survive a restart: the path of a SQLite file, created if missing, or the address
	// of a PostgreSQL database, postgres://…, which several gateways can share. Empty or "memory" keeps the state in
	// memory only.
	Store string
	// KeepFor and KeepBytes limit the store: conversations unused for KeepFor are deleted, and so are the least
	// recently used ones beyond KeepBytes in total. Defaults: 30 days, 1 GiB.
	KeepFor   time.Duration
	KeepBytes int64
	// Compaction says, by upstream name, who answers an agent that asks its vendor to compact the conversation.
	// Upstreams that are not named use [CompactAuto].
	Compaction map[string]upstream.Compaction
	// Token, if not empty, must be sent by every client, in the header X-Condense-Token or as the
	// first part of the path: /token/TOKEN/… Without a token only clients on this machine are
	// answered, and only if they call it by a name or address of the loopback.
	Token string
	// Tokens, if not empty, replaces Token: the path of a file with hashes of tokens, each belonging to a tenant, as
	// 'condense token new' writes it. The file is read again when it changes. Tenants share no state.
	Tokens string
	// Key, if not nil, is a secret of at least 32 random bytes that all gateways with this store have in common. The
	// keys that tell tenants apart, seal compactions and protect wrap's recall are derived from it. Without Key the
	// store holds such a secret itself, so a copy of the store exposes it. [Gateway.Reload] does not change it.
	Key []byte
	// Limits apply to tenants that are not in Tenants, or to all clients together if Tokens is empty.
	Limits  tenant.Limits
	Tenants map[string]tenant.Limits
	// Names, if not empty, are the host names by which clients with a token may call the gateway; *.example.com stands
	// for any name one level below example.com. IP addresses and loopback names are always allowed.
	Names []string
	// Audit records who did something: requests, refusals, epochs, recalls, uses of the gateway's own pages. It never
	// receives conversation text or keys. Default: nothing is recorded.
	Audit *slog.Logger

	// Profile and Mode are used for requests that name none and match no rule; see
	// [condense.Turn]. A request names them in the headers X-Condense-Profile and X-Condense-Mode,
	// or in its path: /profile/NAME/…, /mode/NAME/…
	Profile, Mode string
	// Rules choose a profile or mode for requests that name none. The first match wins.
	Rules []Rule

	// Observe forwards every request unchanged, and counts in [Stats] how much condensing would have saved.
	Observe bool
	// Account says whether, and by whose model, the first provider of the chains has an account of the conversation
	// written. A request that the vendor would refuse does not wait for that: it is condensed without the account.
	Account Account
	// Ingest says how a new tool result is treated before it is first sent, and Epoch when and how far the history is
	// condensed.
	Ingest Ingest
	Epoch  EpochOptions
	// Recall says how agents get condensed content back.
	Recall Recall

	// MaxBody is the size in bytes, after decompression, of the largest request body that is read; larger ones are
	// passed through. Default 32 MB.
	MaxBody int64
	// Deadline limits how long a request that the vendor would refuse may wait to be condensed. Requests that wait at
	// the same time share it. After the deadline the request is truncated. Default 5 s.
	Deadline time.Duration
	// ExpectedTurns is the number of further requests to expect when deciding whether shortening a cached conversation
	// pays. Default: as many as there were so far, at most 50.
	ExpectedTurns int

	// Record is called with every condensable request after it was answered. It must neither change nor retain the
	// Exchange: its bodies hold the conversation.
	Record func(context.Context, *Exchange)
	Logger *slog.Logger // default: nothing is logged. Credentials and bodies never are.
	// Meter and Tracer receive the metrics and traces listed in docs/telemetry.md: numbers, never conversation text.
	// Default: nothing is measured. [Gateway.Reload] does not change them.
	Meter  metric.MeterProvider
	Tracer trace.TracerProvider
	// Metrics, if not nil, serves /metrics in [Gateway.Admin], and Pages serves everything below /condense/ there. A
	// handler returned by Admin keeps the ones that were set when it was called.
	Metrics http.Handler
	Pages   http.Handler
	// Watch, if not nil, sees the turns of conversations. Shadow names profiles whose chains also condense at each
	// epoch, only for Watch to compare the results, which are not sent; a chain that would ask a language model does
	// not run. Options given to [Gateway.Reload] must repeat both, or watching ends.
	Watch  Watcher
	Shadow []string
	// Now is the clock, for tests.
	Now func() time.Time
}

// A Rule chooses the profile or the mode of a request. All fields that are set must match.
type Rule struct {
	Model  string // the model's name; * is any text
	Agent  string // name of the agent: claude, codex, opencode, pi …
	System string // a phrase in the system prompt, or in a system message
	// Profile and Mode are the choice.
	Profile, Mode string
}

// Ingest configures the treatment of new tool results. The zero value makes only lossless changes.
type Ingest struct {
	// Off forwards tool results as they came.
	Off bool
	// MaxResult is the most tokens that a result may have; 0 means no limit. Longer ones are shortened according to
	// their type and get a handle, so the agent needs a way to recall the rest.
	MaxResult int
}

// EpochOptions say when the history is condensed other than by the limits of the profile, and
// how far. The zero value is right for most.
type EpochOptions struct {
	// Target is the size to condense to, in percent of the window. 0 means the profile's target. If the profile has
	// none: in windows of 200,000 tokens or more, half of the conversation without system prompt and tools; in smaller
	// windows, a quarter; a fifth where the vendor charges less than a tenth of the input price for reading its cache;
	// three tenths where writing the cache costs nothing extra. If the vendor's cache is the only reason for the epoch,
	// at least 20,000 tokens of the conversation remain.
	Target float64
	// IgnoreCold ignores an expired vendor cache as an occasion to condense. IgnorePayback ignores the occasion that
	// writing a shorter history to the cache costs less than reading it saves.
	IgnoreCold, IgnorePayback bool
	// MinSize is a size in tokens, without system prompt and tools: smaller conversations are condensed only when a
	// limit requires it, because cutting them costs more than money. Default: half of the largest possible size, at
	// most 60,000.
	MinSize int
	// Risk limits the loss if the conversation ended right after an epoch that pays for itself only later: in percent,
	// 0 to 100, of the conversation's cost so far. Savings of earlier epochs may be risked as well. Default: 4.
	Risk float64
}

// An Exchange is a condensable request as the gateway saw it.
type Exchange struct {
	Time    time.Time
	API     string // messages, chat or responses
	Tenant  string // a keyed hash of the credentials
	Agent   string
	Session string
	Lineage string // identifies the conversation within the session
	Model   string
	// Received is the body from the client and Sent the one for the vendor, both decompressed.
	Received, Sent []byte
	Epoch          *stats.Epoch // not nil if the history was condensed for this request
}

const (
	defaultMaxBody  = 32 << 20
	defaultDeadline = 5 * time.Second
	pingEvery       = 10 * time.Second
	bodyPatience    = time.Minute // the longest pause between two parts of a request's body
)

// A Gateway forwards the requests of agents and condenses their conversations. It is safe for
// concurrent use.
type Gateway struct {
	host      *condense.Host
	store     store.Store
	secrets   *secrets
	current   atomic.Pointer[settings]
	stats     stats.Counters
	telemetry *telemetry.Recorder
	tenants   tenant.Tenants
	sessions  *session.Sessions
	runner    *job.Runner
	preparing *queue.Queue // admits condensations prepared for a later request, by the bytes of the request
	pages     *admin.Pages
	originals
	comparing
	findings
	service
	work
	pauses
}

// originals are what agents can get back.
type originals struct {
	library *library.Library
	passes  library.Passes
	mcp     http.Handler
	asking  chan struct{} // holds a value for each request to /mcp that is being answered
}

// comparing limits the condensations made only for comparison.
type comparing struct {
	waiting chan struct{} // holds a value for each of them
	shading sync.Mutex    // held by the one that runs
}

// findings are what requests have told, and need not be found out again.
type findings struct {
	parsed    *wire.Cache
	profiles  profiles
	windows   windows
	bound     binding
	ingesters ingesters
	relays    relays
}

// service is the state of the gateway for those who run it.
type service struct {
	draining atomic.Bool
	unusable atomic.Bool // the store cannot be used, and the log says so
	causes   stats.Causes
	strays   sync.Map // refusals already logged, by reason and kind; there are few
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

// settings are Options after validation, with defaults filled in.
type settings struct {
	Options
	door      access.Door
	upstreams map[string]*upstream.Upstream
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
	opened := store.Memory()
	if s.Store != "" && s.Store != "memory" {
		if opened, err = store.Open(context.Background(), s.Store); err != nil {
			return nil, fmt.Errorf("live: %w", err)
		}
	}
	return start(host, s, opened)
}

func start(host *condense.Host, s *settings, opened store.Store) (*Gateway, error) {
	g := &Gateway{
		host: host, store: opened, preparing: queue.New(mostPrepared), findings: findings{parsed: wire.NewCache(count.Tokens)},
		originals: originals{asking: make(chan struct{}, mostAsking)}, comparing: comparing{waiting: make(chan struct{}, mostShadows)},
		pauses: pauses{pingEvery, bodyPatience},
	}
	g.life, g.stop = context.WithCancel(context.Background())
	var err error
	if g.telemetry, err = telemetry.New(s.Meter, s.Tracer); err != nil {
		g.stop()
		return nil, errors.Join(fmt.Errorf("live: telemetry: %w", err), opened.Close())
	}
	g.stats.Faulted = func(kind string) { g.measure(&telemetry.Faults, 1, telemetry.KindKey.String(kind)) }
	g.secrets, err = newSecrets(g.life, s.Key, opened)
	if err == nil {
		events := job.Events{Attempted: g.attempted, Fault: g.fault, Crowded: func() { g.stats.Fault("queue") }}
		g.runner, err = job.New(g.life, host, queue.New(mostLooked), events)
	}
	if err != nil {
		g.stop()
		return nil, errors.Join(err, opened.Close())
	}
	g.sessions = session.New(opened, session.Surroundings{
		Life: g.life, Background: &g.background, Now: func() time.Time { return g.current.Load().Now() },
		Log: func() *slog.Logger { return g.current.Load().Logger }, Fault: g.fault, Damaged: func() { g.stats.Fault("store_damaged") },
	})
	g.pages = &admin.Pages{
		Host: host, Door: func() *access.Door { return &g.current.Load().door }, Desk: g.Desk, Stats: g.Stats,
		Now: func() time.Time { return g.current.Load().Now() }, Log: func() *slog.Logger { return g.current.Load().Logger },
		Audit: func(what string, who tenant.Caller, more ...any) { g.current.Load().audit(what, who, more...) },
		Ready: g.storeReady, Draining: g.draining.Load,
	}
	g.library = library.New(opened, g.recalled, func(err error) { g.fault("store_damaged", err) })
	g.mcp = g.newMCP()
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

// Defaults of Options.KeepFor and Options.KeepBytes.
const (
	defaultKeepFor   = 30 * 24 * time.Hour
	defaultKeepBytes = 1 << 30
)

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
	if n, err := g.store.Expire(g.life, s.Now().Add(-s.KeepFor), s.KeepBytes); err != nil && g.life.Err() == nil {
		g.fault("expire", err)
	} else if n > 0 {
		s.Logger.Info("old conversations were deleted from the store", "lineages", n)
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

// Close stops the background work, closes the store and frees resources. It does not end requests in progress: shut the
// server down first. The host stays open.
func (g *Gateway) Close() error {
	g.stop()
	g.background.Wait()
	for _, u := range g.current.Load().upstreams {
		u.Transport.CloseIdleConnections()
	}
	return errors.Join(g.runner.Close(), g.ingesters.close(), g.store.Close())
}

func newSettings(opts *Options) (*settings, error) {
	s := &settings{upstreams: map[string]*upstream.Upstream{}}
	if opts != nil {
		s.Options = *opts
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	if s.Audit == nil {
		s.Audit = slog.New(slog.DiscardHandler)
	}
	if s.Meter == nil {
		s.Meter = metricnoop.NewMeterProvider()
	}
	if s.Tracer == nil {
		s.Tracer = tracenoop.NewTracerProvider()
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.MaxBody == 0 {
		s.MaxBody = defaultMaxBody
	}
	if s.Deadline == 0 {
		s.Deadline = defaultDeadline
	}
	if s.KeepFor == 0 {
		s.KeepFor = defaultKeepFor
	}
	if s.KeepBytes == 0 {
		s.KeepBytes = defaultKeepBytes
	}
	if s.Recall.MaxSize == 0 {
		s.Recall.MaxSize = defaultMaxKept
	}
	var errs []error
	for _, limit := range []struct {
		name  string
		value int64
	}{{"MaxBody", s.MaxBody}, {"KeepFor", int64(s.KeepFor)}, {"KeepBytes", s.KeepBytes}, {"Deadline", int64(s.Deadline)}, {"ExpectedTurns", int64(s.ExpectedTurns)}, {"Ingest.MaxResult", int64(s.Ingest.MaxResult)}, {"Epoch.MinSize", int64(s.Epoch.MinSize)}, {"Recall.MaxSize", s.Recall.MaxSize}, {"Recall.MaxResult", int64(s.Recall.MaxResult)}} {
		if limit.value < 0 {
			errs = append(errs, fmt.Errorf("live: %s: %d is negative", limit.name, limit.value))
		}
	}
	if s.Key != nil && len(s.Key) < sha256.Size {
		errs = append(errs, fmt.Errorf("live: Key: it has %d bytes; use at least %d random ones", len(s.Key), sha256.Size))
	}
	s.door = access.Door{Token: s.Token, Names: s.Names, Now: s.Now}
	if s.Tokens != "" {
		var err error
		if s.door.Tokens, err = access.OpenTokens(s.Tokens, func(err error) { s.Logger.Warn("the changed tokens are not used", "err", err) }); err != nil {
			errs = append(errs, fmt.Errorf("live: tokens: %w", err))
		} else {
			s.warnOfTokens()
		}
		if s.Token != "" {
			errs = append(errs, errors.New("live: Token and Tokens: set one of the two"))
		}
	}
	all := maps.Clone(upstream.Vendors)
	maps.Copy(all, s.Upstreams)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		u, err := upstream.New(name, all[name])
		if err != nil {
			errs = append(errs, fmt.Errorf("live: upstream %s: %w", name, err))
			continue
		}
		u.Host.Unversioned = u.Host.Unversioned || slices.Contains(s.Unversioned, name)
		s.upstreams[name] = u
	}
	errs = append(errs, s.compactions(), s.checkAccount())
	if p := s.Epoch.Target; !(p >= 0 && p < 100) { // NaN too
		errs = append(errs, fmt.Errorf("live: Epoch.Target: %v is not a percentage", p))
	}
	if p := s.Epoch.Risk; !(p >= 0 && p <= 100) {
		errs = append(errs, fmt.Errorf("live: Epoch.Risk: %v is not a percentage", p))
	}
	for i := range s.Rules {
		if err := s.Rules[i].check(); err != nil {
			errs = append(errs, fmt.Errorf("live: rules[%d]: %w", i, err))
		}
	}
	return s, errors.Join(errs...)
}

// ServeHTTP answers a request: it refuses it, serves the gateway's own endpoints, or forwards it to its upstream.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s := g.current.Load()
	t := s.route(r)
	out := &audit.Outcome{ResponseWriter: w}
	if g.draining.Load() {
		w.Header().Set("Connection", "close")
	}
	r, span := g.began(r, &t)
	defer g.served(s, &t, r, out, time.Now(), span)
	status, text := s.refuse(r, &t)
	if status != 0 {
		if out.Refused = "access"; status == http.StatusUnauthorized {
			out.Refused = "token"
		}
		t.refuse(out, status, text)
		return
	}
	switch {
	case t.own:
		t.refuse(out, http.StatusNotFound, "condense: here are only the models; the gateway's own pages are at its admin address (serve.admin.listen)")
		return
	case t.path == "/" && r.Method == http.MethodHead: // the probe of Claude Code
		out.WriteHeader(http.StatusOK)
		return
	case t.stray != nil:
		g.turnAway(out, r, s, &t)
		return
	}
	leave, no := g.tenants.Enter(t.who, s.limitsFor(t.who.Tenant), s.Now())
	if no != nil {
		out.Refused = "limit " + no.Limit
		answerDenied(out, &t, no)
		return
	}
	defer leave()
	g.measure(&telemetry.Active, 1)
	defer g.measure(&telemetry.Active, -1)
	r.Body = payload.Patiently(r.Body, w, g.patience)
	if s.limitsFor(t.who.Tenant).Bytes > 0 {
		r.Body = tenant.Meter(r.Body, func(n int) { g.received(t.who, n) })
	}
	switch {
	case t.mcp:
		g.serveMCP(out, r, s, &t)
	case t.headroom != nil:
		t.headroom(g, out, r, s, &t)
	case t.api != "" && r.Method == http.MethodPost:
		g.converse(out, r, s, &t)
	default:
		s.forward(out, r, &t, nil)
	}
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
		return http.StatusUpgradeRequired, "condense: no WebSocket here; use HTTP (Codex: supports_websockets = false)"
	}
	return status, text
}
