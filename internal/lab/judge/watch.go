package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/registry"
)

// The strategies of a judgement. The last two are built-in strategies at the size that the plugin reaches by itself, for a
// comparison without truncation.
const (
	inChain   = "the plugin"
	byItself  = "the plugin by itself"
	atItsSize = " at its size"
)

// rivals are the strategies to compare with.
var rivals = []struct{ name, strategy, settings string }{
	{"smart/balanced", "smart", `{"preset":"balanced"}`},
	{"slidingwindow", "slidingwindow", `{}`},
}

// callTimeout limits a call on a recorded session, which has some 100,000 tokens.
const callTimeout = 20 * time.Second

// Options shorten recorded sessions to a quarter.
var Options = lab.Options{Budgets: []lab.Budget{{Share: 25}}, Seed: 1}

// Strategies returns the plugin and the built-in strategies, and those of them that readers are asked about.
func (w *Watch) Strategies(ctx context.Context, all *registry.Registry) (list, asked []lab.Strategy, err error) {
	open := func(strategy, settings string) (core.CondensationProvider, error) {
		s, err := all.Get(strategy)
		if err != nil {
			return nil, err
		}
		return s.Open(ctx, []byte(settings), registry.Env{})
	}
	truncation, err := open("slidingwindow", "{}")
	if err != nil {
		return nil, nil, err
	}
	const last = "truncation"
	chained := func(name string, p core.CondensationProvider) lab.Strategy {
		return lab.Strategy{Name: name, Truncation: last, Chain: []core.NamedProvider{
			{Name: "plugin", Provider: p, Timeout: callTimeout}, {Name: last, Provider: truncation},
		}}
	}
	list = []lab.Strategy{
		chained(inChain, w),
		{Name: byItself, Chain: []core.NamedProvider{{Name: "plugin", Provider: w, Timeout: callTimeout}}},
	}
	for _, b := range rivals {
		p, err := open(b.strategy, b.settings)
		if err != nil {
			return nil, nil, err
		}
		atSize := chained(b.name+atItsSize, p)
		atSize.SizeOf = byItself
		list = append(list, chained(b.name, p), atSize)
	}
	return list, slices.DeleteFunc(slices.Clone(list), func(s lab.Strategy) bool { return s.Name == byItself || s.SizeOf != "" }), nil
}

// A Plugin is a plugin as package plugins opens it.
type Plugin interface {
	core.CondensationProvider
	core.Declarer
	PeakMemory() int64
}

// A Watch is the plugin with a record of its calls.
type Watch struct {
	Plugin Plugin

	mu     sync.Mutex
	calls  []call
	failed int
	peak   int64 // bytes of memory, of any of its processes
}

// A call is one call.
type call struct {
	bytes int
	took  time.Duration
	err   error
	acted bool
	// truncated: it hid one run of messages, rewrote none, and inserted next to nothing.
	truncated bool
	faults    []Finding
}

// Run examines the plugin that a card names, measures it on recorded sessions, and gives the verdict, without floors. The error is of the
// run: whatever the plugin does is on the card.
func (c *Card) Run(ctx context.Context, w *Watch, items []lab.Item, list []lab.Strategy) error {
	report := coretest.Examine(ctx, w.Plugin)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.conform(report)
	measured, err := lab.Run(ctx, items, list, &Options)
	if err != nil {
		return err
	}
	c.watched(w)
	c.measured(measured)
	c.conclude(w)
	return nil
}

// enoughFailures is how many calls may fail before no more are made: the verdict is certain, and each may take its whole deadline.
const enoughFailures = 3

var errEnough = fmt.Errorf("it failed %d times and is not asked any more: %w", enoughFailures, core.ErrUnavailable)

// Abilities implements [core.Declarer].
func (w *Watch) Abilities() core.Abilities { return w.Plugin.Abilities() }

// Condense implements [core.CondensationProvider].
func (w *Watch) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	w.mu.Lock()
	enough := w.failed >= enoughFailures
	w.mu.Unlock()
	if enough {
		return nil, errEnough
	}
	c := call{}
	for i := range req.Messages {
		c.bytes += core.ContentBytes(req.Messages[i].Parts...)
	}
	begun := time.Now()
	res, err := w.Plugin.Condense(ctx, req)
	c.took = time.Since(begun)
	if c.err = err; err != nil {
		c.faults = Faults(err)
	} else {
		given := *req
		given.Abilities = w.Abilities()
		if err := core.Verify(&given, res); err != nil {
			c.faults = Faults(err)
		} else {
			c.acted, c.truncated = whatWasDone(req, res)
		}
	}
	peak := w.Plugin.PeakMemory()
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.broke() {
		w.failed++
	}
	w.calls, w.peak = append(w.calls, c), max(w.peak, peak)
	return res, err
}

// broke reports whether the call ended without an answer, for no reason that a chain knows.
func (c *call) broke() bool {
	return c.err != nil && len(c.faults) == 0 && !errors.Is(c.err, core.ErrUnavailable) && !errors.Is(c.err, errors.ErrUnsupported)
}

// maxMarker is the most tokens of a message that only says that others are hidden.
const maxMarker = 60

// whatWasDone reports whether a valid result changes the conversation, and whether it is a truncation: one run of messages is hidden,
// except for those that must stay, and nothing is left of them.
func whatWasDone(req *core.Request, res *core.Result) (acted, truncated bool) {
	kept := map[string]*core.Message{}
	inserted, rewritten := 0, false
	for i := range res.Messages {
		if m := &res.Messages[i]; m.ID != "" {
			kept[m.ID] = m
		} else {
			inserted += core.MessageTokens(req.Counter, *m)
		}
	}
	first, last := -1, -1
	for i := range req.Messages {
		m := &req.Messages[i]
		switch is := kept[m.ID]; {
		case is == nil:
			if last = i; first < 0 {
				first = i
			}
		case !core.EqualParts(is.Parts, m.Parts):
			rewritten = true
		}
	}
	acted = first >= 0 || rewritten || inserted > 0
	if first < 0 || rewritten || inserted > maxMarker {
		return acted, false
	}
	for i := first; i <= last; i++ {
		if m := &req.Messages[i]; kept[m.ID] != nil && !m.Protected && m.Role != core.RoleSystem {
			return acted, false
		}
	}
	return acted, true
}

// perMB returns the time for each MB of content at a share of the calls, in milliseconds. Small conversations say little about it.
func (w *Watch) perMB(share float64) float64 {
	const least = 32 << 10
	var all []float64
	for i := range w.calls {
		if c := &w.calls[i]; c.err == nil && c.bytes >= least {
			all = append(all, Millis(c.took)/(float64(c.bytes)/(1<<20)))
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(len(all)-1, int(share*float64(len(all))))]
}
