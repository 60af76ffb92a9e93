package condense

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/model/extractive"
	"github.com/condensehq/condense/registry"
)

// An opened is a provider and what it was opened with. Configurations that follow each
// other, and the profiles of one, share it for as long as nothing that it depends on
// differs: a plugin is not started again because a threshold was edited.
type opened struct {
	core.CondensationProvider

	id     string
	agent  string                 // the model of the profile that it was opened for
	users  int                    // setups that hold it; guarded by host.mu
	lender atomic.Pointer[Lender] // of the configuration in force

	mu    sync.Mutex
	asked map[string]string // the signature of every model that it was lent, by name
}

// model lends the provider a model and remembers which.
func (o *opened) model(name string) (model.Generator, error) {
	l := o.lender.Load()
	o.mu.Lock()
	o.asked[name] = l.signature(o.agent, name)
	o.mu.Unlock()
	g, err := l.Model(o.agent, name)
	if err != nil || g == extractive.New() { // which is no language model
		return g, err
	}
	return &guarded{g}, nil
}

// fits reports whether the models that the provider was lent are those that it would be
// lent by l under a profile whose agent talks to this model.
func (o *opened) fits(l *Lender, agent string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, was := range o.asked {
		if l.signature(agent, name) != was {
			return false
		}
	}
	return true
}

// identity returns all that a provider follows from beside the models it is lent. A
// program that was replaced or is gone gives another one, so that it is looked at again.
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

// acquire returns the provider that c describes, for s to release: one that is open, or a
// new one.
func (s *setup) acquire(ctx context.Context, c config.Provider, agent string) (*opened, error) {
	pin, err := s.pin(c)
	if err != nil {
		return nil, err
	}
	id, err := identity(c, pin)
	if err != nil {
		return nil, err
	}
	if o := s.host.shared(id, s.lender, agent); o != nil {
		return o, nil
	}
	o := &opened{id: id, agent: agent, users: 1, asked: map[string]string{}}
	o.lender.Store(s.lender)
	switch {
	case c.Withheld != "":
		o.CondensationProvider = withheld{c.Name, c.Withheld}
	case c.Plugin != "":
		o.CondensationProvider, err = s.plugin(c, pin, o)
	default:
		o.CondensationProvider, err = s.builtin(ctx, c, o)
	}
	if err != nil {
		return nil, err
	}
	s.host.mu.Lock()
	s.host.pool[id] = append(s.host.pool[id], o)
	s.host.mu.Unlock()
	return o, nil
}

// shared returns a provider that is open, with one user more; nil if there is none.
func (h *Host) shared(id string, l *Lender, agent string) *opened {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range h.pool[id] {
		if o.fits(l, agent) {
			o.users++
			return o
		}
	}
	return nil
}

// release closes a provider that no setup holds any more.
func (h *Host) release(o *opened) error {
	h.mu.Lock()
	o.users--
	last := o.users == 0
	if last {
		h.pool[o.id] = slices.DeleteFunc(h.pool[o.id], func(p *opened) bool { return p == o })
		if len(h.pool[o.id]) == 0 {
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
	})
	if err != nil {
		return nil, fmt.Errorf("provider %s: %w", c.Name, err)
	}
	return p, nil
}
