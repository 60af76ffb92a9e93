package live

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/live/count"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/internal/live/wire"
)

// limitsFor returns the limits of a tenant.
func (s *settings) limitsFor(name string) tenant.Limits {
	if l, ok := s.Access.Tenants[name]; ok {
		return tenant.Limits(l)
	}
	return tenant.Limits(s.Access.Limits)
}

// countBytes counts n bytes of a request.
func (g *Gateway) countBytes(c tenant.Caller, n int) {
	s := g.current.Load()
	g.tenants.Received(c.Tenant, s.limitsFor(c.Tenant), s.Now(), n)
}

// paid adds the cost of an answer, in US dollars, to the tenant's usage, of which so much was reserved.
func (r *request) paid(cost, reserved float64) {
	if cost > 0 || reserved > 0 {
		r.g.tenants.Paid(r.t.who.Tenant, r.g.current.Load().limitsFor(r.t.who.Tenant), r.s.Now(), cost, reserved)
	}
}

// settle pays an answer in place of what was reserved for it.
func (e *exchange) settle(cost float64) {
	e.req.paid(cost, e.reserved)
	e.reserved = 0
}

// reserve sets the estimated cost of the request with the answer so far, of which so many bytes are written, if its tenant has a limit
// of cost: a client that
// has the end of an answer may send the next request before the answer is counted.
func (e *exchange) reserve(written int, a wire.Answer) {
	l := e.req.g.current.Load().limitsFor(e.req.t.who.Tenant)
	if l.Cost == 0 || e.free || e.req.t.count {
		return
	}
	if a.Input == 0 {
		a.Input = e.size(a.Model)
	}
	a.Output = max(a.Output, written/count.BytesPerToken)
	if cost, known := e.req.cost(a); known && cost > e.reserved {
		e.req.g.tenants.Reserve(e.req.t.who.Tenant, l, cost-e.reserved)
		e.reserved = cost
	}
}

// mayAsk reports whether the tenant may have one more condensation by a language model today. If so, it counts that
// condensation.
func (r *request) mayAsk() bool {
	name := r.t.who.Tenant
	may := r.g.tenants.MayAsk(name, r.g.current.Load().limitsFor(name), r.s.Now(), r.s.limitsFor(name).ModelEpochs)
	if !may {
		r.g.limited(r.t.who, "model_epochs")
	}
	return may
}

// share saves the usage of the tenants, and reads the usage that other gateways have saved.
func (g *Gateway) share(ctx context.Context, r *store.Record) error {
	return g.tenants.Share(ctx, g.store, r, g.current.Load().Now(),
		func(name string) tenant.Limits { return g.current.Load().limitsFor(name) })
}

// tenantOf returns the name of the tenant in a record's key; empty if there is none.
func tenantOf(key string) string {
	name, _, named := strings.Cut(key, ":")
	if !named {
		return ""
	}
	return name
}

// warnOfTokens logs a warning about a token file without tokens, and about limits for tenants that have no token.
func (s *settings) warnOfTokens() {
	named := map[string]bool{}
	for _, t := range s.door.Tokens.All() {
		named[t.Tenant] = true
	}
	if len(named) == 0 {
		s.Reports.Logger.Warn("there is no token: every request is refused until 'condense token new' makes one", "file", s.Access.Tokens)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.Access.Tenants)) {
		if !named[name] {
			s.Reports.Logger.Warn("a tenant has limits, but no token: is its name right?", "tenant", name, "file", s.Access.Tokens)
		}
	}
}
