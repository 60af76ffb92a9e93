package live

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/messages"
	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/secret"
	"github.com/condensehq/condense/live/internal/audit"
	"github.com/condensehq/condense/live/internal/payload"
	"github.com/condensehq/condense/live/internal/telemetry"
	"github.com/condensehq/condense/live/internal/upstream"
)

// watched calls a method of the watcher. A panic in it does not affect the conversation.
func (g *Gateway) watched(f func()) {
	_ = g.guarded("watch", func() error { f(); return nil })
}

// watch passes a turn to the watcher.
func (p *plan) watch() {
	if p.req.s.Reports.Watch == nil || p.req.lease == nil || p.req.t.count {
		return
	}
	p.req.g.watched(p.show)
}

func (p *plan) show() {
	r := p.req
	t := &Turn{
		Time: r.in.start, Conversation: r.lease.Conversation, Tenant: r.from.key.Tenant, Agent: r.from.agent.Name, Model: r.parsed.Model,
		Profile: r.limits.profile, Mode: r.limits.mode, Messages: len(r.parsed.Messages), Tokens: p.tokens, Observe: r.s.Observe,
	}
	t.History, t.Window = p.state.Estimate(p.original), r.limits.policy.Window
	if t.DueAt = r.limits.policy.Limit; r.limits.policy.Threshold > 0 {
		t.DueAt = min(cmp.Or(r.limits.policy.Limit, r.limits.policy.Threshold), r.limits.policy.Threshold)
	}
	if p.epoch != nil {
		t.Epoch = new(*p.epoch)
	}
	r.s.Reports.Watch.Turn(t)
}

// judge has the view of the epoch held against the client's whole history, beside the requests, and says the result where the epoch is
// shown. Without capacity for that, the epoch stays unmeasured.
func (p *plan) judge() {
	e, view, g, tenant, watch := *p.epoch, p.messages, p.req.g, p.req.tenant(), p.req.s.Reports.Watch
	api, history, size := p.req.parsed.API, messages.Raw(p.req.parsed.Messages), len(p.req.parsed.Body)
	leave, ok := g.preparing.Try(tenant, max(int64(size), maxPrepared/maxPreparing))
	if !ok {
		return
	}
	g.background.Go(func() {
		defer leave()
		if size >= largeBody {
			defer payload.Burst()()
		}
		err := g.safely("truth", func() error {
			of, err := g.runner.Judge(g.life, tenant, api, history, view)
			if err != nil {
				return err
			}
			g.stats.Change(e.Lineage, e.Time, func(o *Epoch) { o.Truth = (*Truth)(of) })
			if watch != nil {
				g.watched(func() { watch.Later(e.Lineage, e.Time, Finding{Truth: (*Truth)(of)}) })
			}
			return nil
		})
		if err != nil && g.life.Err() == nil {
			g.fault("truth", err)
		}
	})
}

// A Watcher observes conversations, to show them on pages. Its methods are called while requests wait, so they must return soon,
// and from several goroutines. They must not modify their arguments.
type Watcher interface {
	// Turn is called before a turn is sent. If it has an epoch, this is the first turn sent with that condensation.
	Turn(*Turn)
	// Answer is called when the vendor has reported the usage of a turn.
	Answer(conversation string, u *Used)
	// Later is called when more is known of an epoch, with its beginning; zero for a recall before the first.
	Later(conversation string, epoch time.Time, f Finding)
}

// A Finding is what its view was found to be, held against the whole history; or, without a truth, that the agent has recalled condensed
// content, with its size in tokens.
type Finding struct {
	Truth    *Truth
	Recalled int
	Pieces   []Recalled // that make up Recalled, with their handles
}

// A Turn is a request that continues a conversation.
type Turn struct {
	Time         time.Time
	Conversation string // ID, the same for all turns
	Tenant       string // NAME:HASH with Options.Tokens, else HASH; the hash is a keyed hash of the credentials
	Agent        string
	Model        string
	Profile      string // empty for the default
	Mode         string // empty for none
	Messages     int    // number of the client's messages
	Tokens       int    // size of the request as sent, estimated in the vendor's count
	History      int    // size of the client's request, in the same count
	Window       int    // window of the model, in tokens
	DueAt        int    // size in tokens at which the conversation is condensed at the latest; 0 if nothing is changed
	Observe      bool
	Epoch        *Epoch // nil unless it begins with this turn
}

// Used is the vendor's report about a turn, in tokens and US dollars.
type Used struct {
	Time                       time.Time // of the turn
	Epoch                      time.Time // beginning of the epoch whose view was sent; zero before the first
	Input, Read, Write, Output int
	Cost                       float64
	Saved                      float64 // compared to the client's own history; negative if the turn cost more
	Priced                     bool    // the price of the model is known
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
	// Received is the client's body and Sent the body for the vendor, both decompressed.
	Received, Sent []byte
	Epoch          *Epoch // not nil if the history was condensed for this request
}

// A Truth counts what the view of an epoch says that is not so, and what it no longer says, held against the history that it stands for.
type Truth struct {
	// Sentences of the user in the history, and those that the view does not have verbatim, white space aside.
	Sentences     int `json:"sentences"`
	SentencesGone int `json:"sentences_gone"`
	// Claims are lines that the view gives as the user's; WrongAuthor those that somebody else wrote.
	Claims      int `json:"claims"`
	WrongAuthor int `json:"wrong_author"`
	// Lines are lines of files in the view; Superseded those that an edit or a newer read replaced, without the newer text.
	Lines      int `json:"lines"`
	Superseded int `json:"superseded"`
	// Outcomes are identifiers of what calls started or created, while their end was not seen; OutcomesLost those not in the view.
	Outcomes     int `json:"outcomes"`
	OutcomesLost int `json:"outcomes_lost"`
}

// String returns the four numbers in the order of the fields; a dash for nil, which is not measured.
func (t *Truth) String() string { return (*epoch.Truth)(t).String() }

// Faults says each in words, if there are any; nothing for nil.
func (t *Truth) Faults() []string { return (*epoch.Truth)(t).Faults() }

// measure adds v to a metric. Attribute values must never come from a request, except model names from the table or
// the configuration.
func (g *Gateway) measure(m *telemetry.Metric, v float64, of ...attribute.KeyValue) {
	g.telemetry.Add(g.life, m, v, of...)
}

var modelRule = plain.Pattern(`^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,63}$`)

// modelName returns the model as an attribute: its name if it is in the table or the configuration, else "other".
func (r *request) modelName() string {
	if r.parsed != nil && modelRule().MatchString(r.parsed.Model) && modelOf(r.g.host.Config(), r.parsed.Model) != nil {
		return r.parsed.Model
	}
	return "other"
}

// began starts the span of a request, as a child of the client's span if the request names one.
func (g *Gateway) began(r *http.Request, t *target) (*http.Request, trace.Span) {
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := g.telemetry.Tracer.Start(ctx, method(r)+" "+t.kind(), trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(telemetry.APIKey.String(t.kind())))
	return r.WithContext(ctx), span
}

// ended counts an answered request.
func (g *Gateway) ended(t *target, o *audit.Outcome, span trace.Span) {
	result := "passed"
	switch {
	case o.Refused != "":
		result = "refused"
		g.measure(&telemetry.Refusals, 1, telemetry.TenantKey.String(t.who.Tenant), telemetry.LimitKey.String(o.Refused))
	case t.changed:
		result = "changed"
	}
	status := o.Code()
	g.measure(&telemetry.Requests, 1, telemetry.TenantKey.String(t.who.Tenant), telemetry.APIKey.String(t.kind()),
		telemetry.OutcomeKey.String(result), telemetry.StatusKey.Int(status))
	span.SetAttributes(telemetry.TenantKey.String(t.who.Tenant), telemetry.OutcomeKey.String(result), telemetry.StatusKey.Int(status))
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// asks starts the span of a request to a vendor.
func (e *exchange) asks(ctx context.Context) {
	e.asked = time.Now()
	_, e.span = e.req.g.telemetry.Tracer.Start(ctx, "chat "+e.req.modelName(), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(e.req.about()...))
}

// about returns the attributes of a request to a vendor.
func (r *request) about() []attribute.KeyValue {
	vendor := upstream.SpeaksOpenAI
	switch {
	case r.t.upstream != nil:
		vendor = r.t.upstream.Name
	case r.parsed != nil: // the caller of /v1/compress asks the vendor itself
		vendor = cmp.Or(upstreamOf[wire.Of(r.parsed.API).Vendor], vendor)
	}
	return []attribute.KeyValue{
		telemetry.OperationKey.String("chat"), telemetry.ProviderKey.String(vendor),
		telemetry.ModelKey.String(r.modelName()),
	}
}

// answered ends and counts the span of a request to a vendor. A nil watcher means that there was no answer.
func (e *exchange) answered() {
	if e.span == nil {
		return
	}
	about, failed := e.req.about(), ""
	if e.watcher == nil {
		failed = "unreachable"
	} else {
		a := e.watcher.answer()
		e.span.SetAttributes(telemetry.InputKey.Int(a.Input), telemetry.OutputKey.Int(a.Output), telemetry.ReadKey.Int(a.CacheRead),
			telemetry.WriteKey.Int(a.CacheWrite))
		if failed = kindOf(a.ErrorType); a.ErrorType == "" {
			failed = ""
			if e.status >= http.StatusBadRequest {
				failed = strconv.Itoa(e.status)
			}
		}
		e.span.SetAttributes(telemetry.StatusKey.Int(e.status))
	}
	if e.req.lease != nil && e.req.lease.Entry != nil {
		e.span.SetAttributes(telemetry.SessionKey.String(e.req.lease.Conversation))
	}
	if failed != "" {
		about = append(about, telemetry.ErrorKey.String(failed))
		e.span.SetAttributes(telemetry.ErrorKey.String(failed))
		e.span.SetStatus(codes.Error, "")
	}
	e.req.g.measure(&telemetry.Operation, time.Since(e.asked).Seconds(), about...)
	e.span.End()
}

// used counts the usage that an answer reports.
func (e *exchange) used(a wire.Answer, b bill) {
	about, tenant := e.req.about(), telemetry.TenantKey.String(e.req.t.who.Tenant)
	if b.estimated {
		e.req.g.measure(&telemetry.Estimated, 1, tenant, telemetry.ModelKey.String(e.req.modelName()))
	} else {
		for kind, n := range map[string]int{"input": a.Input, "output": a.Output} {
			e.req.g.measure(&telemetry.Usage, float64(n), append(slices.Clip(about), telemetry.TokenTypeKey.String(kind))...)
		}
	}
	tokens := map[string]int{
		"received": b.received, "sent": b.sent, "saved": b.received - b.sent, "cache_read": a.CacheRead,
		"cache_write": a.CacheWrite, "output": a.Output,
	}
	if e.req.s.Observe {
		tokens["sent"], tokens["saved"], tokens["would_save"] = b.received, 0, b.received-b.sent
	}
	for kind, n := range tokens {
		e.req.g.measure(&telemetry.Tokens, float64(n), tenant, telemetry.TypeKey.String(kind))
	}
	switch {
	case !b.known && b.again:
	case !b.known:
		e.req.g.measure(&telemetry.Unpriced, 1, tenant, telemetry.ModelKey.String(e.req.modelName()))
	default:
		e.req.g.measure(&telemetry.Cost, b.paid, tenant, telemetry.ModelKey.String(e.req.modelName()))
		if !e.req.s.Observe {
			e.req.g.measure(&telemetry.Saved, b.saved, tenant)
		}
	}
	if e.plan.ingested > 0 && !e.req.s.Observe && !b.again {
		e.req.g.measure(&telemetry.Results, float64(e.plan.ingested), tenant)
	}
}

// condensed counts an epoch.
func (r *request) condensed(e *Epoch) {
	tenant, reason := telemetry.TenantKey.String(r.t.who.Tenant), telemetry.ReasonKey.String(e.Reason)
	mode := telemetry.ModeKey.String(cmp.Or(r.limits.mode, r.limits.profile))
	if r.s.Observe {
		r.g.measure(&telemetry.Observed, 1, tenant, reason, mode)
		return
	}
	r.g.measure(&telemetry.Epochs, 1, tenant, reason, mode)
	r.g.measure(&telemetry.Removed, float64(e.Before-e.After), tenant, reason, mode)
	r.g.measure(&telemetry.EpochDuration, e.Millis/1000, reason) //nolint:mnd // milliseconds
}

// served records a request when it is over.
func (g *Gateway) served(s *settings, t *target, r *http.Request, o *audit.Outcome, start time.Time, span trace.Span) {
	if t.path == "/" && r.Method == http.MethodHead {
		span.End()
		return
	}
	g.ended(t, o, span)
	if o.Unsent != "" {
		g.unreached(s, t.upstream, o.Unsent)
	}
	how := method(r)
	if t.handshake { // r is what its requests are
		how = http.MethodGet
	}
	more := []any{"api", t.kind(), "method", how, "status", o.Code(), "from", r.RemoteAddr, "ms", time.Since(start).Milliseconds()}
	if o.Refused != "" {
		s.audit("refused", t.who, append(more, "why", o.Refused)...)
		return
	}
	s.audit("request", t.who, more...)
}

// audit records an action with its caller. The only words of a client that may be in it are a few known ones.
func (s *settings) audit(what string, who tenant.Caller, more ...any) {
	s.Reports.Audit.Info(what, //nolint:sloglint // one of a few words
		append([]any{"tenant", who.Tenant, "token", who.Token}, more...)...)
}

// limited records that a limit is reached.
func (g *Gateway) limited(who tenant.Caller, limit string) {
	s := g.current.Load()
	g.measure(&telemetry.Refusals, 1, telemetry.TenantKey.String(who.Tenant), telemetry.LimitKey.String("limit "+limit))
	s.audit("limit", who, "limit", limit)
	s.Reports.Logger.Info("a tenant has reached a limit", "tenant", who.Tenant, "limit", limit)
}

// kind returns the kind of request, as a word that does not come from the request.
func (t *target) kind() string {
	switch {
	case t.api != "":
		return t.api
	case t.mcp:
		return "mcp"
	case t.compress:
		return "compress"
	}
	return "other"
}

// method returns the method of a request; unusual ones are not repeated.
func method(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return r.Method
	}
	return "other"
}

// attempted counts an attempt in a mode. A failure is logged once per cause.
func (g *Gateway) attempted(provider string, outcome core.Outcome, reason, mode string) {
	s := g.current.Load()
	a := Attempt{Provider: provider, Outcome: string(outcome), Mode: mode, Count: 1, Reason: secret.Safe(reason), Last: s.Now()}
	g.measure(&telemetry.Attempts, 1, telemetry.CondenserKey.String(a.Provider), telemetry.OutcomeKey.String(a.Outcome),
		telemetry.ModeKey.String(a.Mode))
	g.stats.Sum(&Stats{Attempts: []Attempt{a}})
	about := []any{"provider", a.Provider, "outcome", a.Outcome, "mode", a.Mode, "reason", a.Reason}
	switch {
	case !a.Failed():
		s.Reports.Logger.DebugContext(g.life, "a provider was asked to condense", about...)
	case g.causes.First(a.Provider+" "+a.Outcome+" "+a.Mode, a.Reason, a.Last):
		s.Reports.Logger.WarnContext(g.life, "a provider did not condense", about...)
	default:
		s.Reports.Logger.DebugContext(g.life, "a provider did not condense", about...)
	}
}

// unreached counts a request that could not be sent to its upstream.
func (g *Gateway) unreached(s *settings, u *upstream.Upstream, why string) {
	n := Unreachable{Upstream: u.Name, Address: u.Base.Scheme + "://" + u.Base.Host, Count: 1, Reason: secret.Safe(why), Last: s.Now()}
	g.stats.Sum(&Stats{Unreachable: []Unreachable{n}})
	if g.causes.First("upstream "+n.Upstream+n.Address, n.Reason, n.Last) {
		s.Reports.Logger.Warn("an upstream cannot be reached", "upstream", n.Upstream, "address", n.Address, "err", n.Reason)
	}
}
