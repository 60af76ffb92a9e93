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

	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/live/internal/audit"
	"github.com/condensehq/condense/live/internal/telemetry"
	"github.com/condensehq/condense/live/internal/upstream"
)

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
