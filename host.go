// Package condense is the runtime: it puts the configuration, the strategies and the journal
// of a conversation together. A program that talks to a language model opens one [Host],
// keeps one [Conversation] for each of its conversations, and calls [Host.Manage] before
// every request to the model.
package condense

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
	"github.com/condensehq/condense/tokens"
)

// Truncation is the name of the provider that every chain ends with: strategy
// slidingwindow, mode budget. Configuration cannot remove it. Below the limit it acts only
// if the chain names it, or nothing else.
const Truncation = config.Truncation

// Options adjust a [Host]. A nil pointer and the zero value of every field mean the
// defaults.
type Options struct {
	Logger *slog.Logger // default: [slog.DiscardHandler]
	// Observe is told what happens, for a user interface or a log. It is called by the
	// goroutine that called the host, in order, and should return quickly.
	Observe func(Event)
	// Reattach names plugins that run already, in a debugger for instance, and are not to
	// be started: the value of CONDENSE_REATTACH that a plugin prints with -debug.
	Reattach string
	// Models are language models of the program's own, lent to providers by these names.
	// They come before models of the configuration with the same name.
	Models map[string]model.Generator
	// Model is the name of the language model for providers whose settings name none: one
	// of Models, of the configuration, or of the built-in table; see [Lender.Model].
	Model string
	// Adjust may change what was resolved for a profile and mode before it is used: a
	// command line does so for its flags.
	Adjust func(*config.Resolved)
}

// A Host manages conversations. It is safe for concurrent use by different conversations.
type Host struct {
	reg     *registry.Registry
	opts    Options
	watcher *config.Watcher // nil unless opened by [Watch]

	mu       sync.Mutex
	current  *setup
	pool     map[string][]*opened // providers that are open, by what they follow from; they differ in models
	counters map[string]*tokens.Counter
}

// Open returns a host with the given configuration. Every provider that a chain names is
// opened at once, so that a wrong setting is found here and not in the middle of a
// conversation; the error reports all that are wrong.
func Open(ctx context.Context, c *config.Config, reg *registry.Registry, opts *Options) (*Host, error) {
	h := newHost(reg, opts)
	if err := h.Reload(ctx, c); err != nil {
		return nil, err
	}
	return h, nil
}

func newHost(reg *registry.Registry, opts *Options) *Host {
	h := &Host{reg: reg, pool: map[string][]*opened{}, counters: map[string]*tokens.Counter{}}
	if opts != nil {
		h.opts = *opts
	}
	if h.opts.Logger == nil {
		h.opts.Logger = slog.New(slog.DiscardHandler)
	}
	return h
}

// Watch returns a host whose configuration is loaded as [config.Load] does, and loaded
// again whenever its files change, until ctx is done. Files that are wrong change nothing
// but are reported to Options.Observe and the log. What a changed file says that needs the
// user's trust is not used before the user has given it; the log says so.
func Watch(ctx context.Context, where config.Options, reg *registry.Registry, opts *Options, watch *config.WatchOptions) (*Host, error) {
	h := newHost(reg, opts)
	on := config.WatchOptions{}
	if watch != nil {
		on = *watch
	}
	changed, failed := on.Changed, on.Failed
	opened := make(chan struct{}) // the watcher may be quicker than we are
	on.Changed = func(before, after *config.Config) {
		<-opened
		err := h.Reload(ctx, after)
		h.reloaded(ctx, err)
		if err == nil && changed != nil {
			changed(before, after)
		}
	}
	on.Failed = func(err error) {
		h.reloaded(ctx, err)
		if failed != nil {
			failed(err)
		}
	}
	w, err := config.Watch(ctx, where, &on)
	if err != nil {
		return nil, err
	}
	h.watcher = w
	err = h.Reload(ctx, w.Current())
	close(opened)
	if err != nil {
		return nil, err
	}
	return h, nil
}

func (h *Host) reloaded(ctx context.Context, err error) {
	if err != nil {
		h.opts.Logger.WarnContext(ctx, "the changed configuration is wrong; the running one stays", "err", err)
	} else {
		h.opts.Logger.InfoContext(ctx, "configuration changed")
	}
	h.observe(Event{Kind: EventReloaded, Err: err})
}

// Reload makes the host use another configuration from the next turn on. If anything in
// it is wrong, it keeps the one it has and the error says what. Turns under way end with
// the configuration that they began with. Providers for which nothing changed, neither
// their own settings nor the models that they use, stay open.
func (h *Host) Reload(ctx context.Context, c *config.Config) error {
	s, err := h.newSetup(ctx, c)
	if err != nil {
		return err
	}
	for _, claims := range c.Claims() {
		if !claims.Trusted {
			h.opts.Logger.WarnContext(ctx, "parts of the configuration are not used", "parts", claims.Names(), "why", claims.Remedy())
		}
	}
	h.mu.Lock()
	old := h.current
	h.current = s
	h.mu.Unlock()
	s.inForce()
	return h.retire(old)
}

// Refresh loads the files of a host made by [Watch] now, for a program that is told to by
// a signal. The error says what is wrong with them.
func (h *Host) Refresh() error {
	if h.watcher == nil {
		return errors.New("refresh: the host was not opened with host.Watch")
	}
	return h.watcher.Reload()
}

// Config returns the configuration that the next turn will use.
func (h *Host) Config() *config.Config {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current.config
}

// Close releases the providers. Turns under way end first.
func (h *Host) Close() error {
	h.mu.Lock()
	old := h.current
	h.mu.Unlock()
	return h.retire(old)
}

// use returns the current setup; release must be called when it is no longer needed.
func (h *Host) use() (s *setup, release func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s = h.current
	s.users++
	return s, func() error {
		h.mu.Lock()
		s.users--
		last := s.retired && s.users == 0
		h.mu.Unlock()
		if last {
			return s.close()
		}
		return nil
	}
}

// retire closes a setup when its last user is done.
func (h *Host) retire(s *setup) error {
	if s == nil {
		return nil
	}
	h.mu.Lock()
	idle := !s.retired && s.users == 0
	s.retired = true
	h.mu.Unlock()
	if idle {
		return s.close()
	}
	return nil
}

// counter returns the counter of an encoding, one for all conversations: what one has
// counted the others need not.
func (h *Host) counter(tokenizer string) (*tokens.Counter, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
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

func (h *Host) observe(e Event) {
	if h.opts.Observe != nil {
		h.opts.Observe(e)
	}
}
