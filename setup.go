package condense

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/resolver"
	"github.com/condensehq/condense/providers/slidingwindow"
	"github.com/condensehq/condense/tokens"
)

// A setup is everything that follows from one configuration.
type setup struct {
	host   *Host
	config *config.Config
	models *resolver.Models

	users   int  // guarded by host.mu
	retired bool // guarded by host.mu; the setup is closed when it has no users

	mu        sync.Mutex
	resolved  map[turnKey]*settings
	providers map[string]*opened // by name, settings and the model of the profile
	fresh     []fresh            // opened for this setup, and is not shared with the former one
}

// A fresh provider was opened for a setup.
type fresh struct {
	o      *opened
	name   string
	origin config.Origin
}

// A turnKey is the part of a [Turn] that selects the settings.
type turnKey struct{ profile, mode string }

// Settings are the values of a profile and mode, ready for use.
type settings struct {
	*config.Resolved
	rule    policy.Rule
	counter *tokens.Counter
}

func (h *Host) newSetup(ctx context.Context, c *config.Config) (*setup, error) {
	s := &setup{
		host: h, config: c,
		models:    resolver.NewModels(c, resolver.ModelOptions{Own: h.opts.Models, Default: h.opts.Model, Logger: h.opts.Logger}),
		resolved:  map[turnKey]*settings{},
		providers: map[string]*opened{},
	}
	keys := []turnKey{{}}
	keys = append(keys, plain.Each(c.Profiles(), func(p string) turnKey { return turnKey{profile: p} })...)
	keys = append(keys, plain.Each(c.Modes(), func(m string) turnKey { return turnKey{mode: m} })...)
	var errs []error
	seen := map[string]bool{} // profiles share providers, and their errors
	for _, k := range keys {
		for _, err := range s.prepare(ctx, k) {
			if !seen[err.Error()] {
				seen[err.Error()] = true
				errs = append(errs, err)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// startable starts the plugins that were opened for s and returns why s must not replace the former setup: a plugin refuses its
// settings, as a strategy does when it is opened, or it does not start and would take the place of a provider that works. Any other
// plugin may fail: its place in a chain is taken by the next provider.
func (s *setup) startable(ctx context.Context, former *setup) error {
	var errs []error
	for _, f := range s.fresh {
		err := f.o.unusable
		switch {
		case f.o.plugin != nil:
			err = f.o.plugin.Ping(ctx)
		case err == nil:
			continue
		}
		if err != nil && (s.host.opts.Plugins.RefusesSettings(err) || former.works(ctx, f.name)) {
			errs = append(errs, fmt.Errorf("%s: provider %s does not start, and the former one goes on: %w", f.origin, f.name, err))
		}
	}
	return errors.Join(errs...)
}

// works reports whether a provider of that name is open and can be asked.
func (s *setup) works(ctx context.Context, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, p := range s.providers {
		if provider, _, _ := strings.Cut(id, "\x00"); provider != name {
			continue
		}
		_, skipped := p.CondensationProvider.(withheld)
		return !skipped && (p.plugin == nil || p.plugin.Ping(ctx) == nil)
	}
	return false
}

func (s *setup) prepare(ctx context.Context, k turnKey) []error {
	set, err := s.resolve(k)
	if err != nil {
		return []error{err}
	}
	var errs []error
	for _, c := range set.Providers() {
		if _, err := s.provider(ctx, c, set.Model.Name); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func (s *setup) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, p := range s.providers {
		errs = append(errs, s.host.release(p))
	}
	clear(s.providers)
	return errors.Join(errs...)
}

// resolve returns the settings of a profile and mode.
func (s *setup) resolve(k turnKey) (*settings, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if set, ok := s.resolved[k]; ok {
		return set, nil
	}
	r, err := s.config.Resolve(k.profile, k.mode)
	if err != nil {
		return nil, err
	}
	counter, err := s.host.counter(r.Tokenizer)
	if err != nil {
		return nil, err
	}
	set := &settings{Resolved: r, rule: r.Rule(), counter: counter}
	if err := set.rule.Validate(); err != nil {
		return nil, fmt.Errorf("profile %s: %w", r.Profile, err)
	}
	if k.mode == "" || slices.Contains(s.config.Modes(), k.mode) {
		s.resolved[k] = set // a program may invent any number of other modes
	}
	return set, nil
}

// forRequest returns the settings for a turn that has its own window, longest answer or target.
func (s *settings) forRequest(t Turn) (*settings, error) {
	if t.Window <= 0 && t.MaxOutput <= 0 && t.Target <= 0 && t.Trigger != core.TriggerIngest {
		return s, nil
	}
	r := *s.Resolved
	if t.Window > 0 {
		r = *s.ForWindow(t.Window)
	}
	if t.MaxOutput > 0 {
		r.MaxOutput = t.MaxOutput
	}
	if t.Trigger == core.TriggerIngest {
		r.Chain = r.Ingest
	}
	own := &settings{Resolved: &r, rule: r.Rule(), counter: s.counter}
	if t.Target > 0 {
		percent := 100 * float64(t.Target) / float64(r.Window)
		own.rule.Target = max(1, min(percent, own.rule.Threshold-1)) // as a rule must have it
	}
	if err := own.rule.Validate(); err != nil {
		return nil, fmt.Errorf("profile %s, window %d and longest answer %d of the turn: %w", r.Profile, r.Window, r.MaxOutput, err)
	}
	return own, nil
}

// Provider returns the provider that c describes, for programs that ask one directly, for
// instance to compare it with others. It is opened as in the chain of a profile (empty for
// the default one), with the language models of the configuration and, if it is a plugin,
// as a supervised process. It belongs to the host, which closes it when the configuration
// changes or the host is closed.
func (h *Host) Provider(ctx context.Context, c config.Provider, profile string) (core.CondensationProvider, error) {
	s, release := h.use()
	set, err := s.resolve(turnKey{profile: profile})
	if err != nil {
		return nil, errors.Join(err, release())
	}
	p, err := s.provider(ctx, c, set.Model.Name)
	return p, errors.Join(err, release())
}

// provider returns a provider for the chain of a profile with the model agent. It is
// opened on first use.
func (s *setup) provider(ctx context.Context, c config.Provider, agent string) (core.CondensationProvider, error) {
	if c.Name == Truncation {
		return truncation(), nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := strings.Join([]string{c.Name, string(c.Settings), agent}, "\x00")
	if p, ok := s.providers[id]; ok {
		return p.CondensationProvider, nil
	}
	p, err := s.acquire(ctx, c, agent)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Origin, err)
	}
	s.providers[id] = p
	return p.CondensationProvider, nil
}

// abilities returns those that a strategy of this program declares. A plugin declares its own.
func (s *setup) abilities(c config.Provider) core.Abilities {
	if c.Plugin != "" || c.Withheld != "" {
		return 0
	}
	strategy, err := s.host.reg.Get(c.Strategy)
	if err != nil {
		return 0 // it is not open either
	}
	return strategy.Abilities
}

// truncation returns the provider that ends every chain.
func truncation() core.CondensationProvider { return slidingwindow.New(slidingwindow.DefaultConfig()) }

// activate makes the providers that s shares with the previous setup use the models of s.
func (s *setup) activate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.providers {
		p.models.Store(s.models)
	}
}

// chain returns the chain of a plan, with truncation last. Truncation that the
// configuration does not name is only a fallback: a provider that fails below the limit
// must not cost the conversation. Roo Code's rule treats any truncation after another
// provider so. Asked is called after every attempt.
func (s *setup) chain(ctx context.Context, p *plan, asked func(core.Attempt)) (*core.Chain, error) {
	var list []core.NamedProvider
	mayAsk := p.mayAsk
	if p.free() {
		mayAsk = func() error { return errUnpaid }
	}
	for _, c := range p.set.Chain {
		opened, err := s.provider(ctx, c, p.set.Model.Name)
		if err != nil {
			return nil, err
		}
		provider := opened
		switch {
		case slices.Contains(p.skip, c.Name):
			provider = withheld{errUnawaited}
		case p.free() && c.Plugin != "":
			provider = withheld{errUnknown}
		case p.free():
			provider = unpaid{provider}
		}
		if p.request.Trigger == core.TriggerIngest {
			provider = ingesting{provider, p.request}
		}
		list = append(list, core.NamedProvider{
			Name: c.Name, Provider: limited{provider, opened, c.Name, c.Limits, mayAsk}, Timeout: c.Timeout, Abilities: s.abilities(c),
			Strategy: strategy(c.Strategy, opened),
			Uncut:    c.Strategy != slidingwindow.Name,
			Fallback: p.set.RooRule && len(list) > 0 && c.Strategy == slidingwindow.Name && c.Name != Truncation,
		})
	}
	if n := len(list); n == 0 || list[n-1].Name != Truncation {
		fallback := n > 0 || p.request.Trigger == core.TriggerIngest
		list = append(list, core.NamedProvider{Name: Truncation, Provider: truncation(), Fallback: fallback})
	}
	event := Event{Profile: p.set.Profile, Mode: p.set.Mode}
	return core.NewChain(list, &core.ChainOptions{
		Asking: func(name string) {
			e := event
			e.Kind, e.Provider = EventAsking, name
			s.host.observe(e)
		},
		Asked: func(a core.Attempt) {
			asked(a)
			e := event
			e.Kind, e.Provider, e.Attempt = EventAttempt, a.Provider, a
			s.host.observe(e)
		},
	})
}

// An ingesting provider shortens new tool results. Each of its results says how to get back the whole, and one that is no shorter stays.
type ingesting struct {
	core.CondensationProvider
	came *core.Request // with the results as the tools gave them
}

// Condense implements [core.CondensationProvider].
func (g ingesting) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	res, err := g.CondensationProvider.Condense(ctx, req)
	if err != nil || res == nil || len(res.Messages) != len(req.Messages) {
		return res, err // the check of the rules says what is wrong
	}
	out := *res
	out.Messages = slices.Clone(res.Messages)
	for i := range out.Messages {
		is, was := slices.Clone(out.Messages[i].Parts), req.Messages[i].Parts
		for k := range min(len(is), len(was)) {
			if r, ok := is[k].(core.ToolResult); ok && !core.EqualParts(is[k:k+1], was[k:k+1]) {
				if is[k] = marked(r, core.Handle(g.came.Messages[i].Parts[k]), req.NoRecall); req.Counter.Count(is[k]) >= req.Counter.Count(was[k]) {
					is[k] = was[k]
				}
			}
		}
		out.Messages[i].Parts = is
	}
	return &out, nil
}

// marked returns a shortened result with the handle of the whole, unless the agent cannot recall.
func marked(r core.ToolResult, handle string, noRecall bool) core.ToolResult {
	says := func(p core.Part) bool {
		t, ok := p.(core.Text)
		return ok && strings.Contains(string(t), "h:"+handle)
	}
	if noRecall || slices.ContainsFunc(r.Content, says) {
		return r
	}
	mark := core.Text("[… shortened; recall h:" + handle + "]")
	r.Content = slices.Clone(r.Content)
	if n := len(r.Content) - 1; n >= 0 {
		if t, ok := r.Content[n].(core.Text); ok {
			r.Content[n] = t + "\n" + mark
			return r
		}
	}
	r.Content = append(r.Content, mark)
	return r
}
