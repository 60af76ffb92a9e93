// Package condense shortens the conversations of a program with a language model when
// they no longer fit the model's context window, and loses nothing by it.
//
// A program opens one [Host], keeps one [Conversation] for each of its conversations, and
// calls [Host.Manage] before every request to the model:
//
//	h, err := condense.Open(ctx, nil)
//	if err != nil {
//		return err
//	}
//	defer h.Close()
//
//	c := condense.NewConversation()
//	err = c.Append(core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text("Hello")}})
//	if err != nil {
//		return err
//	}
//	report, err := h.Manage(ctx, c, condense.Turn{})
//	if err != nil {
//		return err
//	}
//	send(c.View())
//
// Manage counts the tokens of the conversation. If they reach the threshold it asks the
// providers of a chain, one after the other, for a shorter conversation. Every answer is
// checked against the rules of package core. If no provider brings the conversation below
// its limit, [Truncation] does. Messages are hidden, not deleted: [Conversation.View] is
// what to send, [Conversation.Undo] reverts a condensation, and [Conversation.Recall] finds
// hidden content.
//
// A nil *[Options] means the built-in strategies and configuration; no file is read. With
// [Options] a program reads configuration files and follows their changes, adds strategies
// and language models of its own, and observes events.
package condense

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/resolver"
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
	// At most one of Load, Values and Config gives the configuration. Without any
	// it is the built-in one.
	//
	// Load reads files, the environment and flags, as [config.Load] does. The names of
	// strategies, tokenizers and the default chain are filled in where it has none.
	Load *config.Options
	// Values are put over the built-in configuration. Nothing is read.
	Values *config.Values
	// Config is a configuration that the program has made or loaded; see [Load].
	Config *config.Config

	// Watch loads the files of Load again whenever they change, until the host is closed.
	// Invalid files change nothing and are reported to Observe, Logger and [Host.ReloadErr]. What
	// a changed file needs the user's trust for is not used before the user has given it; what
	// [config.Options.Require] demands of it keeps the whole change waiting.
	Watch *config.WatchOptions

	// Strategies are available to the configuration in addition to the built-in ones.
	Strategies []registry.Strategy
	// Models are language models of the program, for providers that name them. They hide
	// models of the configuration with the same name.
	Models map[string]model.Generator
	// Model is the name of the language model for providers whose settings name none: one
	// of Models, of the configuration, or of the built-in table. By default it is the model
	// of the profile if there is a client for it, else the only one that is declared.
	Model string

	Logger *slog.Logger // default: nothing is logged
	// Observe is called with each event, for a user interface or a log: in order, by the
	// goroutine that called the host, or by one of the host's own for changes of files. It
	// should return quickly.
	Observe func(Event)
	// Plugins runs the providers of the configuration that are programs: Plugins of package
	// plugin-sdk/host. If it is nil, a chain with such a provider is an error.
	Plugins Plugins
}

// Load returns the configuration that [Open] uses with these options, for programs that
// inspect it first, or change to it with [Host.Reload].
func Load(opts *Options) (*config.Config, error) {
	o := opts.orDefault()
	reg, err := resolver.Strategies(o.Strategies...)
	if err != nil {
		return nil, err
	}
	return o.load(reg)
}

func (o *Options) orDefault() *Options { return cmp.Or(o, &Options{}) }

func (o *Options) load(reg *registry.Registry) (*config.Config, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	switch {
	case o.Config != nil:
		return o.Config, nil
	case o.Load != nil:
		return config.Load(resolver.Names(reg, *o.Load))
	case o.Values != nil:
		return config.New(*o.Values, resolver.Names(reg, config.Options{}))
	default:
		return config.New(config.Values{}, resolver.Names(reg, config.Options{}))
	}
}

func (o *Options) validate() error {
	switch {
	case o.Load != nil && o.Values != nil, o.Load != nil && o.Config != nil, o.Values != nil && o.Config != nil:
		return errors.New("options: set only one of Load, Values and Config")
	case o.Watch != nil && o.Load == nil:
		return errors.New("options: Watch needs Load, which says what files to watch")
	}
	return nil
}

// A Host manages conversations. It is safe for concurrent use by different conversations:
// a server needs one.
type Host struct {
	reg       *registry.Registry
	opts      Options
	watcher   *config.Watcher // nil unless the files are watched
	stopWatch context.CancelFunc

	mu       sync.Mutex
	current  *setup
	applyErr error             // of the last valid change of the files
	pool     map[string]*shelf // open providers by identity
	counters map[string]*tokens.Counter
}

// Open returns a host. It opens every provider that a chain names, so that a wrong setting
// is an error here and not in the middle of a conversation; the error lists all of them.
// When ctx is done, Open gives up; the host lives until [Host.Close].
func Open(ctx context.Context, opts *Options) (*Host, error) {
	h := &Host{opts: *opts.orDefault(), pool: map[string]*shelf{}, counters: map[string]*tokens.Counter{}}
	h.opts.Logger = cmp.Or(h.opts.Logger, slog.New(slog.DiscardHandler))
	var err error
	if h.reg, err = resolver.Strategies(h.opts.Strategies...); err != nil {
		return nil, err
	}
	if h.opts.Watch != nil {
		err = h.watch(ctx)
	} else {
		err = h.Reload(ctx, nil)
	}
	if err != nil {
		return nil, err
	}
	return h, nil
}

// With opens a host like h with another configuration. It follows no files, and Observe is not
// called. Closing one does not close the other.
func (h *Host) With(ctx context.Context, c *config.Config) (*Host, error) {
	opts := h.opts
	opts.Config, opts.Load, opts.Values, opts.Watch, opts.Observe = c, nil, nil, nil, nil
	return Open(ctx, &opts)
}

// watch loads the configuration and follows the changes of its files.
func (h *Host) watch(ctx context.Context) error {
	if err := h.opts.validate(); err != nil {
		return err
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	on := *h.opts.Watch
	changed, failed := on.Changed, on.Failed
	opened := make(chan struct{}) // the watcher may see a change before the host is open
	on.Changed = func(before, after *config.Config) {
		<-opened
		err := h.apply(life, after)
		h.mu.Lock()
		h.applyErr = err
		h.mu.Unlock()
		if err == nil && changed != nil {
			changed(before, after)
		}
		h.report(life, err) // when all that follows the configuration does so
	}
	on.Failed = func(err error) {
		h.report(life, err)
		if failed != nil {
			failed(err)
		}
	}
	w, err := config.Watch(life, resolver.Names(h.reg, *h.opts.Load), &on)
	if err != nil {
		stop()
		return err
	}
	h.watcher, h.stopWatch = w, stop
	err = h.apply(ctx, w.Current())
	close(opened)
	if err != nil {
		return errors.Join(err, h.Close())
	}
	return nil
}

// report gives the outcome of a change of the files.
func (h *Host) report(ctx context.Context, err error) {
	switch {
	case err == nil:
		h.opts.Logger.InfoContext(ctx, "configuration changed")
	case errors.As(err, new(*config.UntrustedError)):
		h.opts.Logger.WarnContext(ctx, "the changed configuration waits for trust and is not used", "why", err)
	default:
		h.opts.Logger.WarnContext(ctx, "the changed configuration is invalid and not used", "err", err)
	}
	h.observe(Event{Kind: EventReloaded, Err: err})
}

// ReloadErr returns why the watched files are not used as they are: they are invalid, or wait for the
// user's trust ([*config.UntrustedError]). It is nil if they are used, or if nothing is watched.
func (h *Host) ReloadErr() error {
	if h.watcher == nil {
		return nil
	}
	if err := h.watcher.Err(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.applyErr
}

// Config returns the configuration that the next turn will use.
func (h *Host) Config() *config.Config {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.current.config
}

// Reload makes the host use another configuration from the next turn on; if c is nil, that
// of [Options], of which the files are read again. If anything is wrong with it, the host
// keeps the one that it has and the error gives the reason; a plugin is started to see whether it accepts its settings. Turns
// in progress end with the configuration that they began with. Providers for which nothing changed, neither their
// settings nor the models that they use, stay open.
func (h *Host) Reload(ctx context.Context, c *config.Config) error {
	if c == nil && h.watcher != nil {
		if err := h.watcher.Reload(); err != nil {
			return err
		}
		return h.ReloadErr()
	}
	if c == nil {
		var err error
		if c, err = h.opts.load(h.reg); err != nil {
			return err
		}
	}
	return h.apply(ctx, c)
}

func (h *Host) apply(ctx context.Context, c *config.Config) error {
	s, err := h.newSetup(ctx, c)
	if err != nil {
		return err
	}
	for _, claims := range c.Claims() {
		if claims = claims.Skipped(); !claims.Trusted && len(claims.Parts) > 0 {
			h.opts.Logger.WarnContext(ctx, "parts of the configuration are not used", "parts", claims.Names(), "why", claims.Remedy())
		}
	}
	h.mu.Lock()
	old := h.current
	h.mu.Unlock()
	if old != nil {
		if err := s.startable(ctx, old); err != nil {
			return errors.Join(err, s.close())
		}
	}
	h.mu.Lock()
	old = h.current
	h.current = s
	h.mu.Unlock()
	s.activate()
	return h.retire(old)
}

// Close stops watching files and closes the providers. Turns in progress end first. It
// must not be called from Options.Observe.
func (h *Host) Close() error {
	if h.watcher != nil {
		h.stopWatch()
		<-h.watcher.Done()
	}
	h.mu.Lock()
	old := h.current
	h.mu.Unlock()
	return h.retire(old)
}

// use returns the current setup; the caller calls release when it is done with it.
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

// counter returns the counter of an encoding. All conversations share it and the texts it has
// counted.
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
