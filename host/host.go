// Package host is the runtime: it puts the configuration, the strategies and the journal
// of a conversation together. A program that talks to a language model opens one [Host],
// keeps one [Conversation] for each of its conversations, and calls [Host.Manage] before
// every request to the model.
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/providers/slidingwindow"
	"github.com/condensehq/condense/registry"
	"github.com/condensehq/condense/tokens"
)

// Truncation is the name, in reports, of the candidate that every chain ends with:
// strategy slidingwindow, mode budget. Configuration cannot remove it.
const Truncation = "truncation"

// Options adjust a [Host]. A nil pointer and the zero value of every field mean the
// defaults.
type Options struct {
	Logger *slog.Logger // default: [slog.DiscardHandler]
	// Adjust may change what was resolved for a profile and mode before it is used: a
	// command line does so for its flags.
	Adjust func(*config.Resolved)
	// Asking is called before a provider is asked, Asked after every attempt.
	Asking func(provider string)
	Asked  func(core.Attempt)
}

// A Host manages conversations. It is safe for concurrent use by different conversations.
type Host struct {
	config *config.Config
	reg    *registry.Registry
	opts   Options

	mu        sync.Mutex
	resolved  map[key]*settings
	counters  map[string]*tokens.Counter
	providers map[string]core.CondensationProvider // by name and settings
}

// A key is what a turn names.
type key struct{ profile, mode string }

// Settings are what does not change from turn to turn.
type settings struct {
	*config.Resolved
	rule    policy.Rule
	counter *tokens.Counter
}

// Open returns a host with the given configuration. Every provider that a chain names is
// opened at once, so that a wrong setting is found here and not in the middle of a
// conversation; the error reports all that are wrong.
func Open(ctx context.Context, c *config.Config, reg *registry.Registry, opts *Options) (*Host, error) {
	h := &Host{
		config: c, reg: reg,
		resolved:  map[key]*settings{},
		counters:  map[string]*tokens.Counter{},
		providers: map[string]core.CondensationProvider{},
	}
	if opts != nil {
		h.opts = *opts
	}
	if h.opts.Logger == nil {
		h.opts.Logger = slog.New(slog.DiscardHandler)
	}
	var errs []error
	keys := []key{{}}
	for _, p := range c.Profiles() {
		keys = append(keys, key{profile: p})
	}
	for _, m := range c.Modes() {
		keys = append(keys, key{mode: m})
	}
	seen := map[string]bool{}
	for _, k := range keys {
		err := h.prepare(ctx, k)
		if err != nil && !seen[err.Error()] { // profiles share providers
			seen[err.Error()] = true
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// Close releases the providers.
func (h *Host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for _, p := range h.providers {
		errs = append(errs, core.Close(p))
	}
	clear(h.providers)
	return errors.Join(errs...)
}

func (h *Host) prepare(ctx context.Context, k key) error {
	p, err := h.resolve(k)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range p.Chain {
		if _, err := h.provider(ctx, c); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// resolve returns what holds for a profile and mode.
func (h *Host) resolve(k key) (*settings, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p, ok := h.resolved[k]; ok {
		return p, nil
	}
	r, err := h.config.Resolve(k.profile, k.mode)
	if err != nil {
		return nil, err
	}
	if h.opts.Adjust != nil {
		h.opts.Adjust(r)
	}
	counter, err := h.counter(r.Tokenizer)
	if err != nil {
		return nil, err
	}
	p := &settings{Resolved: r, rule: ruleOf(r), counter: counter}
	if err := p.rule.Validate(); err != nil {
		return nil, fmt.Errorf("profile %s: %w", r.Profile, err)
	}
	h.resolved[k] = p
	return p, nil
}

// counter returns the counter of an encoding, one for all conversations: what one has
// counted the others need not. The caller holds h.mu.
func (h *Host) counter(tokenizer string) (*tokens.Counter, error) {
	if c, ok := h.counters[tokenizer]; ok {
		return c, nil
	}
	encoding, err := tokens.Open(tokenizer)
	if err != nil {
		return nil, err
	}
	c := tokens.NewCounter(encoding)
	h.counters[tokenizer] = c
	return c, nil
}

// ruleOf returns the policy that the configuration asks for.
func ruleOf(r *config.Resolved) policy.Rule {
	return policy.Rule{
		Window: r.Window, MaxOutput: r.MaxOutput, Buffer: r.Buffer, Auto: r.Auto,
		Threshold: r.Threshold, MaxContextTokens: r.MaxContextTokens, MinSize: r.MinSize,
		Target: r.Target, MinGain: r.MinGain, MinNewTokens: r.MinNewTokens, Roo: r.RooRule,
	}
}

// provider returns the provider of a chain, opened on first use.
func (h *Host) provider(ctx context.Context, c config.Provider) (core.CondensationProvider, error) {
	if c.Plugin != "" {
		return nil, fmt.Errorf("%s: provider %s: this version cannot start plugins", c.Origin, c.Name)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	id := c.Name + "\x00" + string(c.Settings)
	if p, ok := h.providers[id]; ok {
		return p, nil
	}
	s, err := h.reg.Get(c.Strategy)
	if err != nil {
		return nil, fmt.Errorf("%s: provider %s: %w", c.Origin, c.Name, err)
	}
	p, err := s.Open(ctx, c.Settings, registry.Env{Logger: h.opts.Logger.With("provider", c.Name)})
	if err != nil {
		return nil, fmt.Errorf("%s: provider %s: %w", c.Origin, c.Name, err)
	}
	h.providers[id] = p
	return p, nil
}

// chain returns the candidates of a plan, truncation last.
func (h *Host) chain(ctx context.Context, p *plan) (*core.Chain, error) {
	var candidates []core.Candidate
	for _, c := range p.Chain {
		provider, err := h.provider(ctx, c)
		if err != nil {
			return nil, err
		}
		candidates = append(candidates, core.Candidate{Name: c.Name, Provider: provider, Timeout: c.Timeout})
	}
	candidates = append(candidates, core.Candidate{
		Name: Truncation, Provider: slidingwindow.New(slidingwindow.DefaultConfig()),
	})
	return core.NewChain(candidates, &core.ChainOptions{Asking: h.opts.Asking, Asked: h.opts.Asked})
}

// A plan is what one turn leads to.
type plan struct {
	*settings
	view     []core.Message
	system   int // tokens
	tools    int // tokens
	decision policy.Decision
	request  *core.Request
}

// markerTokens is what the note that truncation leaves costs at most. It is part of what
// cannot be removed.
const markerTokens = 64

func (h *Host) plan(c *Conversation, t Turn) (*plan, error) {
	s, err := h.resolve(key{t.Profile, t.Mode})
	if err != nil {
		return nil, err
	}
	c.measure(s.Tokenizer, s.counter)
	p := &plan{settings: s, view: c.View()}
	if t.System != "" {
		p.system = core.FramingTokens + p.counter.Count(core.Text(t.System))
	}
	if len(t.Tools) > 0 {
		p.tools = p.counter.Count(core.Text(t.Tools))
	}
	trigger := t.Trigger
	if trigger == "" {
		trigger = core.TriggerAutomatic
	}
	size := policy.Size{System: p.system, Tools: p.tools, Messages: c.journal.Tokens(), Protected: c.pinned}
	p.decision = p.rule.Decide(size, c.state, trigger)
	if !p.decision.Act {
		return p, nil
	}
	// Now that it matters, and costs a walk over the messages anyway, be exact.
	size.Protected = c.floor()
	if size.Protected < size.Messages {
		size.Protected = min(size.Messages, size.Protected+markerTokens)
	}
	p.decision = p.rule.Decide(size, c.state, trigger)
	p.request = &core.Request{
		Messages: p.view, Budget: p.decision.Budget, Trigger: trigger,
		Profile: p.Profile, Mode: p.Mode, System: t.System, Environment: t.Environment,
		FilesRead: t.FilesRead, Instructions: t.Instructions, Counter: p.counter,
	}
	if p.request.Instructions == "" {
		p.request.Instructions = p.Prompt
	}
	return p, nil
}
