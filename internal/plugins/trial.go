package plugins

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/extractive"
	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/internal/resolver"
	"github.com/condensehq/condense/internal/wire/caller"
	"github.com/condensehq/condense/model"
)

// A Trial runs a plugin for its author: unapproved, because it changes all the time, unless a policy lists plugins; and
// with [StandIn] under every name, because trying must cost nothing.
type Trial struct {
	Plugin config.Provider                                      // Name, Plugin, Folder, Env and Settings count
	Model  func(*core.Request, string) (model.Generator, error) // instead of [StandIn]; optional
	Output *slog.Logger                                         // receives the output of the process and its end; may be nil
	Calls  *slog.Logger                                         // receives the plugin's log of calls; nil means Output
	// Persistent restarts the process immediately however often it ended, so that a failing call does not affect the
	// next.
	Persistent bool
}

// Open returns the plugin. Its process starts with the first call.
func (t *Trial) Open() (*supervise.Process, error) {
	sum, err := config.AllowPlugin(t.Plugin.Name, func() (string, error) { return Digest(t.Plugin) })
	if err != nil {
		return nil, err
	}
	s := spec(t.Plugin, sum)
	s.Unpinned = sum == ""
	opts := &supervise.Options{Logger: t.Output}
	opts.Client.Host, opts.Client.Logger = host(), t.Calls
	if e, ok := extractive.New().(model.Embedder); ok {
		opts.Client.Embedder = func() (model.Embedder, error) { return e, nil }
	}
	reg, err := resolver.Strategies()
	if err != nil {
		return nil, err
	}
	opts.Client.Run = resolver.RunnerOf(reg)
	if opts.Client.Model = t.Model; t.Model == nil {
		opts.Client.Model = func(*core.Request, string) (model.Generator, error) { return StandIn(), nil }
	}
	if t.Persistent {
		opts.Restart = supervise.Restart{Min: time.Millisecond, Max: time.Millisecond, Crashes: 1_000_000}
		opts.Breaker = supervise.Breaker{Failures: 1_000_000}
	}
	return open(s, opts)
}

// StandIn returns the extractive model in a form that always answers, as a language model does: what it cannot do is not the plugin's fault.
func StandIn() model.Generator { return standIn{extractive.New()} }

type standIn struct{ model.Generator }

// Generate implements [model.Generator].
func (s standIn) Generate(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	a, err := s.Generator.Generate(ctx, p)
	if errors.Is(err, model.ErrNoText) {
		return &model.Answer{Text: "Nothing.", Truncated: true}, nil
	}
	return a, err
}

// Remember keeps a description that the plugin gave, for [Known]: so 'trust' can show it before it is approved.
func (t *Trial) Remember(d *caller.Description) {
	if digest, err := Digest(t.Plugin); err == nil {
		Remember(digest, d)
	}
}

// Describe starts the plugin, requests its description, and stops it. Its settings may be wrong.
func (t *Trial) Describe(ctx context.Context) (_ *caller.Description, err error) {
	p, err := t.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	d, err := p.Describe(ctx)
	if bad, refused := errors.AsType[*caller.SettingsError](err); refused && bad.About != nil {
		return bad.About, nil
	}
	return d, err
}

// A cancelled call returns to the host at once, whatever the plugin does. Whether the
// plugin stops working is visible when it is asked to exit: it takes until the work is
// done, or is killed after some seconds.
const (
	// The call is cancelled when the plugin has surely received it, on a busy machine too.
	cancelAfter = 300 * time.Millisecond
	// Promptness is how much longer the exit may take than without a call. SDKs wait a
	// second for calls.
	promptness = 700 * time.Millisecond
	// A busy machine may delay anything once, so the plugin must be late every time.
	cancelTries = 3
)

// WorkAfterCancel cancels a call of the plugin and returns how long the plugin works on; 0
// if it stops promptly.
func (t *Trial) WorkAfterCancel(ctx context.Context, req *core.Request) (time.Duration, error) {
	busy, idle := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for range cancelTries {
		d, err := t.exitTime(ctx, func(p *supervise.Process) {
			ctx, cancel := context.WithTimeout(ctx, cancelAfter)
			defer cancel()
			_, _ = p.Condense(ctx, req) // an answer in time is judged elsewhere
		})
		if err != nil || d < promptness {
			return 0, err
		}
		busy = min(busy, d)
		if d, err = t.exitTime(ctx, func(*supervise.Process) {}); err != nil {
			return 0, err
		}
		idle = min(idle, d)
	}
	if busy-idle < promptness {
		return 0, nil
	}
	return busy - idle, nil
}

// exitTime starts the plugin, makes a call, and returns how long the plugin takes to exit.
func (t *Trial) exitTime(ctx context.Context, call func(*supervise.Process)) (time.Duration, error) {
	p, err := t.Open()
	if err != nil {
		return 0, err
	}
	if err := p.Ping(ctx); err != nil {
		return 0, errors.Join(err, p.Close())
	}
	call(p)
	begun := time.Now()
	err = p.Close()
	return time.Since(begun), err
}
