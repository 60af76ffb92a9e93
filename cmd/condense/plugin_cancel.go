package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/supervise"
)

// The host has its answer when it gives a call up, whatever the plugin does. That the plugin
// stops too is seen when it is asked to end: a process that still works takes until it is
// done, or is killed after some seconds.
const (
	// The call is given up when the plugin surely has it, on a busy machine too.
	cancelAfter = 300 * time.Millisecond
	// cancelPrompt is how much longer it may take than a process without calls. SDKs wait a
	// second for calls.
	cancelPrompt = 700 * time.Millisecond
	// cancelTries is how often a plugin must be late: on a busy machine anything may be once.
	cancelTries = 3
)

// cancelFinding gives up a call of a plugin that works on a long conversation. It returns a
// finding if the plugin works on.
func cancelFinding(ctx context.Context, spec supervise.Spec, opts *supervise.Options) ([]finding, error) {
	req := coretest.HalfRequest(longSession())
	busy, idle := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for range cancelTries {
		d, err := closing(ctx, spec, opts, func(p *supervise.Process) {
			ctx, cancel := context.WithTimeout(ctx, cancelAfter)
			defer cancel()
			_, _ = p.Condense(ctx, req) // what it answered in time is judged elsewhere
		})
		if err != nil || d < cancelPrompt {
			return nil, err
		}
		busy = min(busy, d)
		if d, err = closing(ctx, spec, opts, func(*supervise.Process) {}); err != nil {
			return nil, err
		}
		idle = min(idle, d)
	}
	longer := busy - idle
	if longer < cancelPrompt {
		return nil, nil
	}
	return []finding{{
		fault{"heed-context", fmt.Sprintf("it still worked %.1f s after its call was given up", longer.Seconds())},
		"a call that is given up", "a long session; the plugin is asked to end at once after",
	}}, nil
}

// closing starts a plugin, makes a call, and returns how long the plugin takes to end.
func closing(ctx context.Context, spec supervise.Spec, opts *supervise.Options, call func(*supervise.Process)) (time.Duration, error) {
	p, err := supervise.Open(spec, opts)
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

// longSession is the session that comes with condense, forty times.
func longSession() []core.Message {
	var long []core.Message
	for range 40 {
		for _, m := range coretest.Session() {
			m.ID = ""
			long = append(long, m)
		}
	}
	return coretest.Conversation(long...)
}
