package live

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/catalog"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/live/count"
	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/model"
)

// Limits are the settings that apply to a request, from its profile and its model.
type limits struct {
	profile, mode string
	resolved      *resolved
	policy        epoch.Policy
	output        int // tokens of the window that are kept free for the answer
}

// Resolved holds the values of a profile and mode.
type resolved struct {
	*config.Resolved
	learned job.Learned
	client  bool // the chain asks the client's own model
}

// A profileKey identifies resolved values of the configuration.
type profileKey struct{ profile, mode string }

// profiles holds the resolved values of a configuration.
type profiles struct {
	mu  sync.Mutex
	of  *config.Config
	all map[profileKey]*resolved
	odd map[string]bool // names that do not exist and were logged, for one log line each
}

// mostOdd is how many names that do not exist are logged: clients may send any number.
const mostOdd = 20

// resolve returns the values of a profile and mode. Unknown names mean the default, and are logged once.
func (p *profiles) resolve(c *config.Config, k profileKey, log *slog.Logger) (*resolved, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of != c {
		p.of, p.all, p.odd = c, map[profileKey]*resolved{}, map[string]bool{}
	}
	p.known("mode", &k.mode, c.Modes, log)
	p.known("profile", &k.profile, c.Profiles, log)
	if r := p.all[k]; r != nil {
		return r, nil
	}
	values, err := c.Resolve(k.profile, k.mode)
	if err != nil {
		return nil, err
	}
	r := &resolved{Resolved: values}
	r.learned.Names = plain.Each(values.Chain, func(x config.Provider) string { return x.Name })
	r.learned.Waits = len(values.Chain) > 0 && values.Chain[0].Plugin != "" && !config.IsModule(values.Chain[0].Plugin)
	r.client = r.asksClient()
	p.all[k] = r
	return r, nil
}

// known empties a name that is none of names, and logs it.
func (p *profiles) known(kind string, name *string, names func() []string, log *slog.Logger) {
	if *name == "" || slices.Contains(names(), *name) {
		return
	}
	if id := kind + " " + *name; !p.odd[id] && len(p.odd) < mostOdd {
		p.odd[id] = true
		log.Warn("a request names something that the configuration does not declare: the default is used", "kind", kind, "name", plain.Clip(*name))
	}
	*name = ""
}

// limitsOf returns the limits of a request.
func limitsOf(r *request) (limits, error) {
	choice := r.s.choose(r.t, r.from.agent.Name, r.parsed)
	values, err := r.g.profiles.resolve(r.g.host.Config(), choice, r.s.Reports.Logger)
	if err != nil {
		return limits{}, err
	}
	l := limits{profile: values.Profile, mode: values.Mode, resolved: values}
	window := values.Window // one that the user has set counts, even if it is too small
	if !usersOwn(values) {
		window = askedWindow(r, window)
	}
	// Vendors accept a request whose longest answer would exceed the window, so a large limit says little about the
	// answer: Claude Code asks for 128,000 tokens.
	const share = 5
	if l.output = min(r.parsed.MaxOutput, window/share); l.output == 0 {
		l.output = values.MaxOutput
	}
	rule := values.ForWindow(window).Rule()
	rule.MaxOutput = l.output
	// Use the budget's reserve: a default unknown to the host would not scale with the host's count.
	l.output = rule.Budget(policy.Size{}, core.TriggerAutomatic).Reserve
	l.policy = r.s.Epoch.over(epoch.Of(rule))
	l.policy.Turns = r.s.Epoch.ExpectedTurns
	if at := r.own().Compacts; at > 0 && l.policy.Threshold > 0 { // its summary would replace the view
		l.policy.Threshold = min(l.policy.Threshold, int(BeforeAgent*float64(at)))
	}
	return l, nil
}

// BeforeAgent is the share of the size at which an agent condenses by itself at which the gateway does: the next answer and
// its results must fit below that size.
const BeforeAgent = 0.9

// Due returns the size from which a gateway condenses conversations of an agent with a model, and the window that the model has by itself;
// known reports whether the size is known.
func Due(g *Gateway, agent, model string) (at, window int, known bool) {
	r := &request{g: g, s: g.current.Load(), t: &target{}, parsed: &wire.Request{Model: model}}
	r.from.agent = agents.Find(agent)
	r.priced(model)
	l, err := limitsOf(r)
	if err != nil {
		return 0, 0, false
	}
	if usersOwn(l.resolved) {
		return l.policy.Threshold, r.tariff.listed, true
	}
	return l.policy.Threshold, l.policy.Window, r.tariff.listed > 0
}

// own returns what the request's agent knows about its model.
func (r *request) own() agents.Limit {
	if r.s.Agent != nil {
		if l := r.s.Agent(r.parsed.Model, r.tariff.listed); l != (AgentLimit{}) {
			return agents.Limit(l)
		}
	}
	if r.from.agent == nil {
		return agents.Limit{}
	}
	return r.from.agent.Limit(r.parsed.Model, r.tariff.listed)
}

// over returns the policy of a profile with the gateway's options applied.
func (o *EpochOptions) over(p epoch.Policy) epoch.Policy {
	p.Target, p.MinSize, p.Risk = cmp.Or(o.Target, p.Target), o.MinSize, o.Risk/100
	p.IgnoreCold, p.IgnorePayback = p.IgnoreCold || o.IgnoreCold, p.IgnorePayback || o.IgnorePayback
	return p
}

// priced sets the price and the caching rules of a model. They apply to every request, whether or not it is a turn of
// a conversation.
func (r *request) priced(name string) {
	r.tariff = tariff{model: model.Info{Name: name}, ttl: r.parsed.TTL}
	if known := modelOf(r.g.host.Config(), name); known != nil {
		_, r.tariff.declared = r.g.host.Config().Origin("models", known.Name, "window")
		r.tariff.model.Price, r.tariff.model.Tiers, r.tariff.model.Free, r.tariff.listed = known.Price, known.Tiers, known.Free, known.Window
	}
	if !r.tariff.declared { // the agent sends no more than its own window, whatever the vendor takes
		r.tariff.listed = cmp.Or(r.own().Window, r.g.windows.listedFor(r), r.tariff.listed)
	}
	r.tariff.caching = catalog.CachingOf(name, r.tariff.model.Price)
	switch {
	case !wire.Marks(r.parsed.API):
		r.tariff.caching.Bound = false
	case r.g.bound.has(r):
		r.tariff.caching.Bound = true
	}
}

// binding remembers models by something that requests have shown: in findings.bound, that they bind their thinking although the
// table does not say so, because a vendor refused a request with thinking, then accepted it without.
type binding struct {
	mu sync.Mutex
	of map[windowKey]bool
}

func (b *binding) has(r *request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return r.t.upstream != nil && b.of[windowKey{r.t.upstream.Base.String(), r.parsed.Model}]
}

func (b *binding) add(r *request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil || len(b.of) >= maxWindows {
		b.of = map[windowKey]bool{}
	}
	b.of[windowKey{r.t.upstream.Base.String(), r.parsed.Model}] = true
}

// modelOf returns the entry of a model, by its name in the section models, its ID, or its name in the table; nil if
// unknown.
func modelOf(c *config.Config, name string) *config.Model {
	for _, declared := range c.Models() {
		if m, err := c.Model(declared); err == nil && (declared == name || m.ID == name) {
			return m
		}
	}
	m, _ := c.Model(name)
	return m
}

// choose returns the profile and mode of a request: as named by the request, else by the first matching rule, else the
// default.
func (s *settings) choose(t *target, agent string, r *wire.Request) profileKey {
	if t.profile != "" || t.mode != "" {
		return profileKey{t.profile, t.mode}
	}
	for i := range s.Choice.Rules {
		rule := &s.Choice.Rules[i]
		if rule.matches(agent, r.Model, func(phrase string) bool { return inSystem(r, phrase) }) {
			return profileKey{rule.Profile, rule.Mode}
		}
	}
	return profileKey{s.Choice.Profile, s.Choice.Mode}
}

// inSystem reports whether a phrase is in the system prompt or in a system message.
func inSystem(r *wire.Request, phrase string) bool {
	raw := escaped(phrase)
	return bytes.Contains(r.System, raw) || slices.ContainsFunc(r.Messages, func(m wire.Message) bool {
		return (m.Role == "system" || m.Role == "developer") && bytes.Contains(m.Raw, raw)
	})
}

// escaped returns a text as it is in JSON, as clients usually write it.
func escaped(text string) []byte {
	raw, _ := rawjson.Encode(text) // a string and a line break
	return raw[1 : len(raw)-2]
}

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
// of cost: a client that has the end of an answer may send the next request before the answer is counted.
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
	return key[:max(0, strings.Index(key, ":"))]
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
