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
	"github.com/condensehq/condense/providers/slidingwindow"
	"github.com/condensehq/condense/tokens"
)

// A setup is all that follows from one configuration.
type setup struct {
	host   *Host
	config *config.Config

	users   int  // guarded by host.mu
	retired bool // guarded by host.mu; it is closed once nobody uses it

	lender *Lender

	mu        sync.Mutex
	resolved  map[turnKey]*settings
	providers map[string]*opened // by name, settings and the model of the profile
}

// A turnKey is what a turn names.
type turnKey struct{ profile, mode string }

// Settings are what holds for a profile and mode, ready for use.
type settings struct {
	*config.Resolved
	rule    policy.Rule
	counter *tokens.Counter
}

func (h *Host) newSetup(ctx context.Context, c *config.Config) (*setup, error) {
	s := &setup{
		host: h, config: c, lender: NewLender(c, &h.opts),
		resolved:  map[turnKey]*settings{},
		providers: map[string]*opened{},
	}
	keys := []turnKey{{}}
	for _, p := range c.Profiles() {
		keys = append(keys, turnKey{profile: p})
	}
	for _, m := range c.Modes() {
		keys = append(keys, turnKey{mode: m})
	}
	var errs []error
	seen := map[string]bool{} // profiles share providers, and their faults
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

func (s *setup) prepare(ctx context.Context, k turnKey) []error {
	set, err := s.resolve(k)
	if err != nil {
		return []error{err}
	}
	var errs []error
	for _, c := range set.Chain {
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

// resolve returns what holds for a profile and mode.
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
	if s.host.opts.Adjust != nil {
		s.host.opts.Adjust(r)
	}
	counter, err := s.host.counter(r.Tokenizer)
	if err != nil {
		return nil, err
	}
	set := &settings{Resolved: r, rule: Rule(r), counter: counter}
	if err := set.rule.Validate(); err != nil {
		return nil, fmt.Errorf("profile %s: %w", r.Profile, err)
	}
	if k.mode == "" || slices.Contains(s.config.Modes(), k.mode) {
		s.resolved[k] = set // a host may make up any number of other modes
	}
	return set, nil
}

// forRequest returns what holds for a turn that says how large the model's window and its
// answer are.
func (s *settings) forRequest(t Turn) (*settings, error) {
	if t.Window <= 0 && t.MaxOutput <= 0 {
		return s, nil
	}
	r := *s.Resolved
	if t.Window > 0 {
		r.Window = t.Window
	}
	if t.MaxOutput > 0 {
		r.MaxOutput = t.MaxOutput
	}
	own := &settings{Resolved: &r, rule: Rule(&r), counter: s.counter}
	if err := own.rule.Validate(); err != nil {
		return nil, fmt.Errorf("profile %s, window %d and longest answer %d of the turn: %w", r.Profile, r.Window, r.MaxOutput, err)
	}
	return own, nil
}

// Rule returns the policy that the configuration asks for.
func Rule(r *config.Resolved) policy.Rule {
	return policy.Rule{
		Window: r.Window, MaxOutput: r.MaxOutput, Buffer: r.Buffer, Auto: r.Auto,
		Threshold: r.Threshold, MaxContextTokens: r.MaxContextTokens, MinSize: r.MinSize,
		Target: r.Target, MinGain: r.MinGain, MinNewTokens: r.MinNewTokens, Roo: r.RooRule,
	}
}

// provider returns the provider of a chain of a profile with this model, opened on first
// use.
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

// truncation returns the provider that ends every chain.
func truncation() core.CondensationProvider {
	return slidingwindow.New(slidingwindow.DefaultConfig())
}

// inForce has the providers that s shares with the setup before it look for models in the
// configuration of s.
func (s *setup) inForce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.providers {
		p.lender.Store(s.lender)
	}
}

// chain returns the candidates of a plan, truncation last. Truncation that the
// configuration does not name is only a fallback: a provider that fails below the limit
// must not cost the conversation. By Roo Code's rule that holds of any truncation after
// another provider. Asked is called after every attempt.
func (s *setup) chain(ctx context.Context, p *plan, asked func(core.Attempt)) (*core.Chain, error) {
	var candidates []core.Candidate
	for _, c := range p.Chain {
		provider, err := s.provider(ctx, c, p.Model.Name)
		if err != nil {
			return nil, err
		}
		if p.free() {
			provider = unpaid{provider, c.Plugin != ""}
		}
		candidates = append(candidates, core.Candidate{
			Name: c.Name, Provider: provider, Timeout: c.Timeout,
			Fallback: p.RooRule && len(candidates) > 0 && c.Strategy == slidingwindow.Name && c.Name != Truncation,
		})
	}
	if n := len(candidates); n == 0 || candidates[n-1].Name != Truncation {
		candidates = append(candidates, core.Candidate{Name: Truncation, Provider: truncation(), Fallback: n > 0})
	}
	event := Event{Profile: p.Profile, Mode: p.Mode}
	return core.NewChain(candidates, &core.ChainOptions{
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
