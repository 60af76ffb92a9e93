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
func (s *settings) limitsFor(tenant string) tenant.Limits {
	if l, ok := s.Access.Tenants[tenant]; ok {
		return l
	}
	return s.Access.Limits
}

// received counts n bytes of a request.
func (g *Gateway) received(c tenant.Caller, n int) {
	s := g.current.Load()
	g.tenants.Received(c.Tenant, s.limitsFor(c.Tenant), s.Now(), n)
}

// paid adds the cost of an answer, in US dollars, to the tenant's usage, of which so much was reserved.
func (x *known) paid(cost, reserved float64) {
	if cost > 0 || reserved > 0 {
		x.tenants.Paid(x.t.who.Tenant, x.current.Load().limitsFor(x.t.who.Tenant), x.s.Now(), cost, reserved)
	}
}

// settle pays an answer in place of what was reserved for it.
func (x *sending) settle(cost float64) {
	x.paid(cost, x.reserved)
	x.reserved = 0
}

// reserve sets the estimated cost of the request with the answer so far, of which so many bytes are written, if its tenant has a limit of cost: a client that
// has the end of an answer may send the next request before the answer is counted.
func (x *sending) reserve(written int, a wire.Answer) {
	l := x.current.Load().limitsFor(x.t.who.Tenant)
	if l.Cost == 0 || x.free || x.t.count {
		return
	}
	if a.Input == 0 {
		a.Input = x.size(a.Model)
	}
	a.Output = max(a.Output, written/count.BytesPerToken)
	if cost, known := x.cost(a); known && cost > x.reserved {
		x.tenants.Reserve(x.t.who.Tenant, l, cost-x.reserved)
		x.reserved = cost
	}
}

// mayAsk reports whether the tenant may have one more condensation by a language model today. If so, it counts that
// condensation.
func (x *known) mayAsk() bool {
	name := x.t.who.Tenant
	may := x.tenants.MayAsk(name, x.current.Load().limitsFor(name), x.s.Now(), x.s.limitsFor(name).ModelEpochs)
	if !may {
		x.limited(x.t.who, "model_epochs")
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
