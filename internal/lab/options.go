package lab

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/tokens"
)

// Options adjust [Run]. A nil pointer and the zero value of every field mean the defaults. Package compare documents the first fields.
type Options struct {
	InUse        bool // messages and calls get IDs as in use
	Budgets      []Budget
	Modes        []string
	Encoding     string
	Seed         uint64
	Jobs, Rounds int
	Repeat       int
	ByFolder     bool
	Cache        string
	MaxUSD       float64
	Now          func() time.Time

	// ModeOf are rules that give sessions a mode. The first that applies is used, and takes precedence over the mode
	// recorded in the session.
	ModeOf []ModeRule
	// RoundsFormat is the transcript format in which the view is written and read again after every round; default
	// the session's own, or anthropic if that is only read.
	RoundsFormat string
	// Unverified leaves out that a verdict must hold in both halves of the sessions.
	Unverified bool
	// Spending asks for [Report.Spending].
	Spending bool
	// Peers are the other programs among the strategies, for [Report.Peers]. With any, sessions are measured without the model's reasoning.
	Peers []Peer
	// Outputs gets every session and result at cuts and with gold evidence, as lines of JSON; nil means nobody does.
	// Results from the cache are not written.
	Outputs io.Writer
	// Progress is called after every session, by one goroutine at a time.
	Progress func(Progress)
	asked    []Budget // Budgets as given
}

// A Progress is the state of a run.
type Progress struct {
	Done, Total int // sessions
	Session     string
	Elapsed     time.Duration
	Left        time.Duration // estimated; zero before the first session is done
	Rows        int           // measured so far or found in the cache; each run counts
	Cached      int           // of Rows
	USD         float64       // spent so far
}

// ErrMaxCost means that a run stopped because it had spent [Options.MaxUSD].
var ErrMaxCost = errors.New("the cost limit is reached")

// settled returns o, checked, with defaults in place of zeros.
func (o *Options) settled() (Options, *tokens.Encoding, error) {
	var out Options
	if o != nil {
		out = *o
	}
	out.asked = out.Budgets
	if len(out.Budgets) == 0 {
		out.Budgets = []Budget{{Share: 10}, {Share: 25}, {Share: 50}}
	}
	out.Encoding = cmp.Or(out.Encoding, tokens.O200kBase)
	out.Jobs = max(1, out.Jobs)
	out.Repeat = cmp.Or(out.Repeat, defaultRepeat)
	if out.Repeat < 0 {
		return out, nil, fmt.Errorf("repeat %d: want the number of runs, 1 or more", out.Repeat)
	}
	if out.Now == nil {
		out.Now = time.Now
	}
	if out.Progress == nil {
		out.Progress = func(Progress) {}
	}
	seen := map[string]bool{}
	for _, b := range out.Budgets {
		if seen[b.String()] {
			return out, nil, fmt.Errorf("budget %s appears twice", b)
		}
		seen[b.String()] = true
	}
	e, err := tokens.Open(out.Encoding)
	return out, e, errors.Join(err, checkRoundsFormat(out.RoundsFormat))
}

// A Strategy is one provider or a chain of them, to be compared. Package compare documents its fields.
type Strategy struct {
	Name       string
	Provider   core.CondensationProvider
	Chain      []core.NamedProvider
	About, Key string
	Unchecked  bool
	Truncation string
	SizeOf     string
}

// The bounds, which are in every table: baselines, which a strategy should be above.
const (
	KeepLast = "keep_last"
	Random   = "random_lines"
)

var bounds = []StrategyInfo{
	{Name: KeepLast, Bound: true, About: "baseline: the newest tool groups that fit, the oldest of them cut to its end"},
	{Name: Random, Bound: true, About: "baseline: lines chosen at random"},
}

// A StrategyInfo describes a strategy in a [Report].
type StrategyInfo struct {
	Name  string `json:"name"`
	About string `json:"about,omitempty"`
	Key   string `json:"key,omitempty"`
	// Bound reports whether it is a bound, for reference only.
	Bound bool `json:"bound,omitempty"`
	// Apart reports whether the strategy is never named as the best: another program, or a strategy with a budget of
	// its own.
	Apart bool `json:"apart,omitempty"`
	// SizeOf is [Strategy.SizeOf].
	SizeOf string `json:"size_of,omitempty"`
}

func (s *Strategy) providers() []core.NamedProvider {
	if s.Provider != nil {
		return []core.NamedProvider{{Name: s.Name, Provider: s.Provider}}
	}
	return s.Chain
}

// estimates reports whether a provider of s can estimate its spending on models.
func (s *Strategy) estimates() bool {
	return slices.ContainsFunc(s.providers(), func(c core.NamedProvider) bool {
		_, ok := c.Provider.(core.CostEstimator)
		return ok
	})
}

// open returns a chain of s that gives new messages the same IDs every time. The round is a part of the IDs, so that
// successive condensations have different ones.
func (s *Strategy) open(round int, now func() time.Time) (*core.Chain, error) {
	return s.chain(s.providers(), round, now)
}

// openFor is open for req. Where what must stay exceeds its target, truncation cannot help: as in a host, it then does not take from a
// result that is within the limit.
func (s *Strategy) openFor(req *core.Request, round int, now func() time.Time) (*core.Chain, error) {
	list := s.providers()
	if n := len(list); n > 1 && s.Truncation != "" && core.FixedTokens(req) > req.Budget.Room() {
		list = slices.Clone(list)
		list[n-1].Fallback = true
	}
	return s.chain(list, round, now)
}

func (s *Strategy) chain(list []core.NamedProvider, round int, now func() time.Time) (*core.Chain, error) {
	n := 0
	c, err := core.NewChain(list, &core.ChainOptions{Now: now, NewID: func() string {
		n++
		return "new-" + strconv.Itoa(round) + "-" + strconv.Itoa(n)
	}})
	if err != nil {
		return nil, fmt.Errorf("strategy %s: %w", s.Name, err)
	}
	return c, nil
}

// checkStrategies returns an error for the first invalid strategy.
func checkStrategies(strategies []Strategy) error {
	seen := plain.Set(plain.Each(bounds, func(b StrategyInfo) string { return b.Name }))
	for i := range strategies {
		s := &strategies[i]
		switch {
		case s.Name == "":
			return fmt.Errorf("strategy %d has no name", i+1)
		case seen[s.Name]:
			return fmt.Errorf("strategy %q: the name is taken", s.Name)
		case s.SizeOf != "" && !slices.ContainsFunc(strategies[:i], func(o Strategy) bool { return o.Name == s.SizeOf }):
			return fmt.Errorf("strategy %q is to have the size of %q, which is not before it in the list", s.Name, s.SizeOf)
		case len(s.providers()) == 0:
			return fmt.Errorf("strategy %q has neither a provider nor a chain", s.Name)
		}
		seen[s.Name] = true
		if _, err := s.open(0, nil); err != nil {
			return err
		}
	}
	return nil
}
