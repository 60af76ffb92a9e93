package live

import (
	"net/http"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/live/internal/audit"
	"github.com/condensehq/condense/live/internal/telemetry"
)

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
