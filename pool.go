package condense

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/extractive"
	"github.com/condensehq/condense/internal/resolver"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// Plugins runs the providers of a configuration that are programs. It is an interface because the
// implementation, Plugins of package plugin-sdk/host, brings gRPC into a program.
type Plugins interface {
	// Approved returns the checksum that the user has approved for p. The error says how to
	// approve it; if it wraps [core.ErrUnavailable], p is skipped, and else the configuration is refused.
	Approved(c *config.Config, p config.Provider) (checksum string, err error)
	// Open returns p as a provider. Its program must exist; it is started by the first call, if it
	// has the checksum.
	Open(p config.Provider, checksum string, env PluginEnv) (Plugin, error)
	// RefusesSettings reports whether err, of Plugin.Ping, means that the plugin does not accept
	// its settings.
	RefusesSettings(err error) bool
}

// A Plugin is a provider that is a program.
type Plugin interface {
	core.CondensationProvider
	// Ping starts the program if it does not run.
	Ping(ctx context.Context) error
}

// A PluginEnv is the part of a host that a plugin can use. The models may change while the plugin runs.
type PluginEnv struct {
	Logger *slog.Logger
	// Model returns a language model for a request; an empty name means the host's choice.
	Model func(req *core.Request, name string) (model.Generator, error)
	// Models are the names that Model accepts, with an empty one if there is a choice.
	Models func(req *core.Request) iter.Seq2[string, model.Info]
	// Run lets a strategy of this program shorten the messages of req that are not protected, with these models, and verifies its answer.
	Run func(ctx context.Context, req *core.Request, strategy string, settings json.RawMessage,
		models func(name string) (model.Generator, error)) (*core.Result, error)
	// Embedder returns the model of the configuration for vectors.
	Embedder func() (model.Embedder, error)
}

// An opened is a provider and the settings it was opened with. Successive configurations, and the
// profiles of one, share it as long as nothing that it depends on differs: a plugin is not
// started again because a threshold was edited.
type opened struct {
	core.CondensationProvider

	id     string // identity
	key    string // on its shelf
	agent  string // the model of the profile that it was opened for
	users  int    // setups that hold it; guarded by host.mu
	plugin Plugin // nil for other providers
	// unusable is why a program is not opened: it is missing or not approved.
	unusable error
	models   atomic.Pointer[resolver.Models] // of the current configuration

	mu    sync.Mutex
	asked map[string]string // signatures of the models that it asked for, by name
}

// model returns a model to the provider and remembers which.
func (o *opened) model(name string) (model.Generator, error) {
	models := o.models.Load()
	o.mu.Lock()
	o.asked[name] = models.Signature(o.agent, name)
	o.mu.Unlock()
	g, err := models.Model(o.agent, name)
	if err != nil {
		return nil, err
	}
	return &guarded{g, g == extractive.New()}, nil
}

// fits reports whether the provider would get the same models from m under a profile with
// the model agent.
func (o *opened) fits(m *resolver.Models, agent string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, was := range o.asked {
		if m.Signature(agent, name) != was {
			return false
		}
	}
	return true
}

// identity returns everything that a provider depends on except its models. It differs if
// a plugin's program was replaced or removed, so that the program is checked again.
func identity(c config.Provider, pin string) (string, error) {
	c.Timeout, c.Origin = 0, config.Origin{} // are the chain's
	text, err := json.Marshal(c)
	id := string(text) + pin + c.SettingsDir
	if info, fault := os.Stat(c.Plugin); fault == nil {
		id += fmt.Sprint(info.Size(), info.ModTime())
	} else if c.Plugin != "" {
		id += fault.Error()
	}
	return id, err
}

// acquire returns the provider that c describes, an open one or a new one. The caller
// releases it.
func (s *setup) acquire(ctx context.Context, c config.Provider, agent string) (*opened, error) {
	pin, err := s.approval(c)
	var unusable error
	if errors.Is(err, core.ErrUnavailable) {
		unusable, err = err, nil
	}
	if err != nil {
		return nil, err
	}
	id, err := identity(c, pin)
	if err != nil {
		return nil, err
	}
	if o := s.host.shared(id, s.models, agent); o != nil {
		return o, nil
	}
	o := &opened{id: id, agent: agent, users: 1, asked: map[string]string{}}
	o.models.Store(s.models)
	switch {
	case c.Withheld != "":
		o.CondensationProvider = withheld{&resolver.UnavailableError{Text: fmt.Sprintf("provider %s: %s", c.Name, c.Withheld)}}
	case unusable != nil:
		o.CondensationProvider, o.unusable = withheld{unusable}, unusable
	case c.Plugin != "":
		o.plugin, err = s.host.opts.Plugins.Open(c, pin, o.env(s.host))
		o.CondensationProvider = o.plugin
	default:
		o.CondensationProvider, err = s.builtin(ctx, c, o)
	}
	if err != nil {
		return nil, err
	}
	s.fresh = append(s.fresh, fresh{o, c.Name, c.Origin})
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	sh, ok := s.host.pool[id]
	if !ok {
		o.mu.Lock()
		sh = &shelf{asks: slices.Sorted(maps.Keys(o.asked)), by: map[string][]*opened{}}
		o.mu.Unlock()
		s.host.pool[id] = sh
	}
	o.key = sh.key(s.models, agent)
	sh.by[o.key] = append(sh.by[o.key], o)
	return o, nil
}

// approval returns the checksum that a program must have if c is a plugin.
func (s *setup) approval(c config.Provider) (string, error) {
	switch {
	case c.Plugin == "":
		return "", nil
	case s.host.opts.Plugins == nil:
		return "", fmt.Errorf("plugin %s: this program runs no plugins: its author adds them with condense.Options.Plugins", c.Name)
	}
	return s.host.opts.Plugins.Approved(s.config, c)
}

// env returns the environment of a plugin: the models of the configuration in force when it asks.
func (o *opened) env(h *Host) PluginEnv {
	return PluginEnv{
		Logger:   h.opts.Logger,
		Embedder: o.embedder,
		Run:      resolver.RunnerOf(h.reg),
		Model: func(req *core.Request, name string) (model.Generator, error) {
			m := o.models.Load()
			g, err := m.Model(m.Agent(req), name)
			if err != nil {
				return nil, err
			}
			return &guarded{g, g == extractive.New()}, nil
		},
		Models: func(req *core.Request) iter.Seq2[string, model.Info] {
			m := o.models.Load()
			return m.Available(m.Agent(req))
		},
	}
}

// A shelf has the open providers of one identity, by the models that the first of them asked for: a configuration with thousands of
// models does not compare each with each.
type shelf struct {
	asks []string
	by   map[string][]*opened
}

func (sh *shelf) key(m *resolver.Models, agent string) string {
	var key strings.Builder
	for _, name := range sh.asks {
		key.WriteString(m.Signature(agent, name) + "\x00")
	}
	return key.String()
}

// shared returns an open provider and counts one user more; nil if there is none.
func (h *Host) shared(id string, m *resolver.Models, agent string) *opened {
	h.mu.Lock()
	defer h.mu.Unlock()
	sh, ok := h.pool[id]
	if !ok {
		return nil
	}
	for _, o := range sh.by[sh.key(m, agent)] {
		if o.fits(m, agent) {
			o.users++
			return o
		}
	}
	return nil
}

// release closes a provider when no setup holds it any more.
func (h *Host) release(o *opened) error {
	h.mu.Lock()
	o.users--
	last := o.users == 0
	if last {
		sh := h.pool[o.id]
		sh.by[o.key] = slices.DeleteFunc(sh.by[o.key], func(p *opened) bool { return p == o })
		if len(sh.by[o.key]) == 0 {
			delete(sh.by, o.key)
		}
		if len(sh.by) == 0 {
			delete(h.pool, o.id)
		}
	}
	h.mu.Unlock()
	if last {
		return core.Close(o.CondensationProvider)
	}
	return nil
}

func (s *setup) builtin(ctx context.Context, c config.Provider, o *opened) (core.CondensationProvider, error) {
	strategy, err := s.host.reg.Get(c.Strategy)
	if err != nil {
		return nil, fmt.Errorf("provider %s: %w", c.Name, err)
	}
	p, err := strategy.Open(ctx, c.Settings, registry.Env{
		Logger: s.host.opts.Logger.With("provider", c.Name), Model: o.model, Dir: c.SettingsDir,
		Run: func(ctx context.Context, req *core.Request, strategy string, settings json.RawMessage) (*core.Result, error) {
			return resolver.RunnerOf(s.host.reg)(ctx, req, strategy, settings, o.model)
		},
		Embed: func(ctx context.Context, texts []string) ([][]float32, core.Usage, error) {
			m, err := o.embedder()
			if err != nil {
				return nil, core.Usage{}, err
			}
			return m.Embed(ctx, texts)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("provider %s: %w", c.Name, err)
	}
	return p, nil
}

// A withheld provider is declared by a file that the user has not trusted, is a program that is missing or not approved, or is not asked in
// this turn. It declines every request, so that the next provider is asked.
type withheld struct{ why error }

// Condense implements [core.CondensationProvider].
func (w withheld) Condense(context.Context, *core.Request) (*core.Result, error) { return nil, w.why }

// Why a provider is skipped: it is one of [Turn.Skip], or the turn may spend nothing, and what a plugin spends is unknown.
var (
	errUnawaited = fmt.Errorf("the turn does not wait for its answer: %w", core.ErrUnavailable)
	errUnpaid    = fmt.Errorf("auto is false, so no language model is asked unless the user wants it: %w", core.ErrUnavailable)
	errUnknown   = fmt.Errorf("what a plugin spends is not known: %w", errUnpaid)
)

// An unpaid provider takes part in a turn that may spend nothing. If it would cost something it is not asked.
type unpaid struct{ core.CondensationProvider }

// Condense implements [core.CondensationProvider].
func (u unpaid) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	cost, err := core.EstimateCost(ctx, u.CondensationProvider, req)
	if err == nil && (cost.USD > 0 || cost.Unpriced > 0) {
		return nil, errUnpaid
	}
	return u.CondensationProvider.Condense(ctx, req)
}

// A limited provider of a chain is told its quota, and the models that the host gives to it, compiled in or a plugin's, keep it; those
// that are not free also ask mayAsk, unless it is nil.
type limited struct {
	core.CondensationProvider
	opened core.CondensationProvider // the same, as it was opened
	name   string
	quota  core.Quota
	mayAsk func() error
}

// Condense implements [core.CondensationProvider].
func (l limited) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	req.Quota = l.quota
	return l.CondensationProvider.Condense(context.WithValue(ctx, spentKey{}, &spent{limited: l}), req)
}

// Frames implements [core.Framer].
func (l limited) Frames() bool {
	f, ok := l.opened.(core.Framer)
	return ok && f.Frames()
}

// Abilities implements [core.Declarer].
func (l limited) Abilities() core.Abilities { return core.AbilitiesOf(l.opened) }

// strategy returns the name of what runs: known, or the one that a plugin describes, which is started for that.
func strategy(known string, opened core.CondensationProvider) func(context.Context) string {
	return func(ctx context.Context) string {
		if p, ok := opened.(interface {
			Strategy(context.Context) string
		}); ok {
			return p.Strategy(ctx)
		}
		return known
	}
}

// spentKey is the key of the [*spent] of a call in its context.
type spentKey struct{}

// A spent counts the requests to models in one call.
type spent struct {
	limited limited
	mu      sync.Mutex
	calls   int
	usd     float64
}

// more counts one request more, to a free model or another, or says why there may be none.
func (s *spent) more(free bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch q := s.limited.quota; {
	case q.ModelCalls > 0 && s.calls >= q.ModelCalls:
		return fmt.Errorf("%w: more than %d requests to language models in one call: providers.%s.limits.model_calls", model.ErrQuota, q.ModelCalls, s.limited.name)
	case q.USD > 0 && s.usd >= q.USD:
		return fmt.Errorf("%w: %s are spent in one call: providers.%s.limits.usd", model.ErrQuota, size.Dollars(s.usd, 2), s.limited.name)
	}
	if s.limited.mayAsk != nil && !free {
		if err := s.limited.mayAsk(); err != nil {
			return err
		}
	}
	s.calls++
	return nil
}

// enter counts a request to a model in the call of ctx, or says why there may be none. Done takes its usage.
func enter(ctx context.Context, free bool) (done func(core.Usage), err error) {
	s, ok := ctx.Value(spentKey{}).(*spent)
	if !ok {
		return func(core.Usage) {}, nil
	}
	return func(u core.Usage) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.usd += u.USD
	}, s.more(free)
}

// embedder returns the model of the configuration for vectors.
func (o *opened) embedder() (model.Embedder, error) {
	m, err := o.models.Load().Embedder()
	if err != nil {
		return nil, err
	}
	return embedder{m}, nil
}

// An embedder is [guarded] for vectors.
type embedder struct{ model.Embedder }

// Embed implements [model.Embedder].
func (e embedder) Embed(ctx context.Context, texts []string) ([][]float32, core.Usage, error) {
	done, err := enter(ctx, false)
	if err != nil {
		return nil, core.Usage{}, err
	}
	vectors, usage, err := e.Embedder.Embed(ctx, texts)
	done(usage)
	return vectors, usage, err
}

// A guarded model refuses in turns that may spend nothing, unless it is free, and beyond the quota of the call.
type guarded struct {
	model.Generator
	free bool
}

// ask asks the model within the limits of ctx.
func (g *guarded) ask(ctx context.Context, ask func(context.Context, *model.Prompt) (*model.Answer, error), p *model.Prompt) (*model.Answer, error) {
	done, err := enter(ctx, g.free)
	if err != nil {
		return nil, err
	}
	answer, err := ask(ctx, p)
	if answer != nil {
		done(answer.Usage)
	}
	return answer, err
}

// Generate implements [model.Generator].
func (g *guarded) Generate(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	return g.ask(ctx, g.Generator.Generate, p)
}

// Compacts implements [model.Compactor].
func (g *guarded) Compacts() string {
	if c, ok := g.Generator.(model.Compactor); ok {
		return c.Compacts()
	}
	return ""
}

// Compact implements [model.Compactor].
func (g *guarded) Compact(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	c, ok := g.Generator.(model.Compactor)
	if !ok {
		return nil, fmt.Errorf("model %s cannot compact: %w", g.Info().Name, core.ErrUnavailable)
	}
	return g.ask(ctx, c.Compact, p)
}

// CheckKey implements [model.Checker].
func (g *guarded) CheckKey() error { return model.CheckKey(g.Generator) }
