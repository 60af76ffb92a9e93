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

	"github.com/condensehq/condense/internal/live/audit"
	"github.com/condensehq/condense/internal/live/stats"
	"github.com/condensehq/condense/internal/live/telemetry"
	"github.com/condensehq/condense/internal/live/upstream"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
)

// measure adds v to a metric. Attribute values must never come from a request, except model names from the table or
// the configuration.
func (g *Gateway) measure(m *telemetry.Metric, v float64, of ...attribute.KeyValue) {
	g.telemetry.Add(g.life, m, v, of...)
}

var modelRule = plain.Pattern(`^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,63}$`)

// modelName returns the model as an attribute: its name if it is in the table or the configuration, else "other".
func (x *known) modelName() string {
	if x.r != nil && modelRule().MatchString(x.r.Model) && modelOf(x.host.Config(), x.r.Model) != nil {
		return x.r.Model
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
func (x *sending) asks(ctx context.Context) {
	x.asked = time.Now()
	_, x.span = x.telemetry.Tracer.Start(ctx, "chat "+x.modelName(), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(x.about()...))
}

// about returns the attributes of a request to a vendor.
func (x *known) about() []attribute.KeyValue {
	vendor := upstream.SpeaksOpenAI
	switch {
	case x.t.upstream != nil:
		vendor = x.t.upstream.Name
	case x.r != nil && x.r.API == wire.Messages: // the caller of /v1/compress asks the vendor itself
		vendor = upstream.SpeaksAnthropic
	}
	return []attribute.KeyValue{
		telemetry.OperationKey.String("chat"), telemetry.ProviderKey.String(vendor),
		telemetry.ModelKey.String(x.modelName()),
	}
}

// answered ends and counts the span of a request to a vendor. A nil watcher means that there was no answer.
func (x *sending) answered() {
	if x.span == nil {
		return
	}
	about, failed := x.about(), ""
	if x.watcher == nil {
		failed = "unreachable"
	} else {
		a := x.watcher.answer()
		x.span.SetAttributes(telemetry.InputKey.Int(a.Input), telemetry.OutputKey.Int(a.Output), telemetry.ReadKey.Int(a.CacheRead),
			telemetry.WriteKey.Int(a.CacheWrite))
		if failed = kindOf(a.ErrorType); a.ErrorType == "" {
			failed = ""
			if x.status >= http.StatusBadRequest {
				failed = strconv.Itoa(x.status)
			}
		}
		x.span.SetAttributes(telemetry.StatusKey.Int(x.status))
	}
	if x.claim != nil && x.claim.Entry != nil {
		x.span.SetAttributes(telemetry.SessionKey.String(x.claim.Conversation))
	}
	if failed != "" {
		about = append(about, telemetry.ErrorKey.String(failed))
		x.span.SetAttributes(telemetry.ErrorKey.String(failed))
		x.span.SetStatus(codes.Error, "")
	}
	x.measure(&telemetry.Operation, time.Since(x.asked).Seconds(), about...)
	x.span.End()
}

// used counts the usage that an answer reports.
func (x *sending) used(a wire.Answer, b bill) {
	about, tenant := x.about(), telemetry.TenantKey.String(x.t.who.Tenant)
	if b.estimated {
		x.measure(&telemetry.Estimated, 1, tenant, telemetry.ModelKey.String(x.modelName()))
	} else {
		for kind, n := range map[string]int{"input": a.Input, "output": a.Output} {
			x.measure(&telemetry.Usage, float64(n), append(slices.Clip(about), telemetry.TokenTypeKey.String(kind))...)
		}
	}
	tokens := map[string]int{
		"received": b.received, "sent": b.sent, "saved": b.received - b.sent, "cache_read": a.CacheRead,
		"cache_write": a.CacheWrite, "output": a.Output,
	}
	if x.s.Observe {
		tokens["sent"], tokens["saved"], tokens["would_save"] = b.received, 0, b.received-b.sent
	}
	for kind, n := range tokens {
		x.measure(&telemetry.Tokens, float64(n), tenant, telemetry.TypeKey.String(kind))
	}
	switch {
	case !b.known && b.again:
	case !b.known:
		x.measure(&telemetry.Unpriced, 1, tenant, telemetry.ModelKey.String(x.modelName()))
	default:
		x.measure(&telemetry.Cost, b.paid, tenant, telemetry.ModelKey.String(x.modelName()))
		if !x.s.Observe {
			x.measure(&telemetry.Saved, b.saved, tenant)
		}
	}
	if x.ingested > 0 && !x.s.Observe && !b.again {
		x.measure(&telemetry.Results, float64(x.ingested), tenant)
	}
}

// condensed counts an epoch.
func (x *known) condensed(e *stats.Epoch) {
	tenant, reason := telemetry.TenantKey.String(x.t.who.Tenant), telemetry.ReasonKey.String(e.Reason)
	mode := telemetry.ModeKey.String(cmp.Or(x.mode, x.profile))
	if x.s.Observe {
		x.measure(&telemetry.Observed, 1, tenant, reason, mode)
		return
	}
	x.measure(&telemetry.Epochs, 1, tenant, reason, mode)
	x.measure(&telemetry.Removed, float64(e.Before-e.After), tenant, reason, mode)
	x.measure(&telemetry.EpochDuration, e.Millis/1000, reason) //nolint:mnd // milliseconds
}
