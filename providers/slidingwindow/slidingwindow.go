// Package slidingwindow truncates: it hides old messages and keeps new ones. It calls no
// model and is deterministic. In mode budget its result is on target for every conversation
// whose fixed tokens fit, or as little above it as these and the first and last words of the user take, and always
// within the limit; that is why every chain ends with it.
package slidingwindow

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/registry"
)

// Name is the name of the strategy.
const Name = "slidingwindow"

// The modes.
const (
	ModeBudget    = "budget"
	ModeHalf      = "half"
	ModeRecent    = "recent"
	ModeMiddleOut = "middle_out"
)

const doc = `Hides old messages and keeps new ones, in whole tool groups. No model, no cost.
The mode "budget" keeps what the user said: the first message, the last two, and the others,
newest first; then, if no word of the user is missing, the newest groups that fit the target.
A group that alone is too large is cut inside, with a note of what is missing. What the user
said last is kept whole if it has no answer yet and fits the limit. "half" is
Roo-Code's sliding window: it keeps the first message and hides the older half of the
rest, whatever their size. "recent" keeps only what is new, by tokens (the user's words
first) or by number of messages. "middle_out" keeps both ends, after the user's words. A marker
replaces the hidden messages.`

// Config are the settings of a [Provider].
type Config struct {
	Mode      string  `json:"mode" enum:"budget|half|recent|middle_out" doc:"what is hidden"`
	KeepFirst int     `json:"keep_first" doc:"budget: messages kept at the beginning: the first of the user before its other words, others only if they take no more than a quarter of the room that is left"`
	Fraction  float64 `json:"fraction" doc:"half: share of the messages after the first to hide, rounded down to an even number"`
	Messages  int     `json:"messages" doc:"recent: number of newest messages to keep; 0 means as many as fit the target"`
	HeadShare float64 `json:"head_share" doc:"middle_out: share of the room for the beginning"`
}

// DefaultConfig returns the default settings: mode budget, the first message kept.
func DefaultConfig() Config {
	return Config{Mode: ModeBudget, KeepFirst: 1, Fraction: 0.5, HeadShare: 0.5}
}

// Validate reports every setting that is out of range.
func (c *Config) Validate() error {
	var errs []error
	if _, ok := modes[c.Mode]; !ok {
		errs = append(errs, fmt.Errorf("mode: %q is none of budget, half, recent, middle_out", c.Mode))
	}
	if c.KeepFirst < 0 {
		errs = append(errs, fmt.Errorf("keep_first: %d is negative", c.KeepFirst))
	}
	if c.Messages < 0 {
		errs = append(errs, fmt.Errorf("messages: %d is negative", c.Messages))
	}
	if !(c.Fraction > 0 && c.Fraction <= 1) {
		errs = append(errs, fmt.Errorf("fraction: %v is not above 0 and at most 1", c.Fraction))
	}
	if !(c.HeadShare >= 0 && c.HeadShare <= 1) {
		errs = append(errs, fmt.Errorf("head_share: %v is not between 0 and 1", c.HeadShare))
	}
	return errors.Join(errs...)
}

// Strategy returns the strategy, for a registry.
func Strategy() registry.Strategy {
	return registry.Define(Name, doc, DefaultConfig,
		func(_ context.Context, c Config, _ registry.Env) (core.CondensationProvider, error) {
			return New(c), nil
		}).Only(core.Hides | core.Rewrites | core.Inserts)
}

// A Provider truncates conversations. It is safe for concurrent use.
type Provider struct{ c Config }

// New returns a provider with settings that are valid.
func New(c Config) *Provider { return &Provider{c} }

// Condense implements [core.CondensationProvider]. The modes budget, recent by tokens, and
// middle_out do not change a conversation that is on target. The cost is linear in the number
// of messages.
func (p *Provider) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if req.Counter == nil {
		return nil, fmt.Errorf("%w: no counter", core.ErrInvalidRequest)
	}
	w := newWindow(req)
	if !modes[p.c.Mode](w, p.c) {
		return &core.Result{Messages: req.Messages}, nil
	}
	out := w.result()
	if core.TotalTokens(out) >= core.TotalTokens(req.Messages) {
		return &core.Result{Messages: req.Messages}, nil // the note would cost as much as it saves
	}
	return &core.Result{Messages: out}, nil
}

// Frames implements [core.Framer]: every new text begins with words that package dialog knows.
func (p *Provider) Frames() bool { return true }

// modes decide which groups of a window are kept. They return false to change nothing.
var modes = map[string]func(*window, Config) bool{ModeBudget: budget, ModeHalf: half, ModeRecent: recent, ModeMiddleOut: middleOut}

func budget(w *window, c Config) bool {
	return w.fill(c.KeepFirst > 0, func() { w.keepFirst(c.KeepFirst) })
}

func recent(w *window, c Config) bool {
	if c.Messages == 0 {
		return w.fill(false, func() {})
	}
	kept := 0
	for i := len(w.groups) - 1; i >= 0 && kept < c.Messages; i-- {
		w.groups[i].keep = true
		kept += w.groups[i].messages()
	}
	for i := range w.groups {
		w.groups[i].keep = w.groups[i].keep || w.groups[i].Open
	}
	return w.hides()
}

func middleOut(w *window, c Config) bool {
	return w.fill(true, func() {
		head := int(c.HeadShare * float64(w.left()))
		for i := range w.groups {
			g := &w.groups[i]
			if g.keep {
				continue
			}
			if head -= g.Tokens - g.Least; head < 0 {
				break
			}
			g.keep = true
		}
	})
}

// half is the rule of Roo-Code's truncateConversation, on whole tool groups: of the n
// messages after the first, floor(n * fraction) rounded down to an even number are
// hidden, oldest first. If that number falls inside a group, the group stays, unless it
// would be the only one to go.
func half(w *window, c Config) bool {
	visible := len(plain.Only(w.req.Messages, func(m core.Message) bool { return m.Kind != core.KindMarker }))
	n := int(math.Floor(float64(visible-1) * c.Fraction))
	n -= n % 2
	for i := range w.groups {
		w.groups[i].keep = true
	}
	hidden, first := 0, true
	for i := range w.groups {
		g := &w.groups[i]
		switch {
		case hidden >= n:
			return w.hides()
		case g.Pinned || g.Open || g.messages() == 1 && w.req.Messages[g.Start].Kind == core.KindMarker:
			continue
		case first:
			first = false // the message that set the task
			continue
		}
		if hidden > 0 && hidden+g.messages() > n {
			break
		}
		g.keep = false
		hidden += g.messages()
	}
	return w.hides()
}
