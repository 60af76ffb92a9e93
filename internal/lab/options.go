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
	"github.com/condensehq/condense/tokens"
)

// Options adjust [Run]. A nil pointer and the zero value of every field mean the defaults.
type Options struct {
	// Budgets; default 10 %, 25 % and 50 % of the prefix.
	Budgets []Budget
	// Modes selects the sessions of these modes; default all.
	Modes []string
	// ModeOf are rules that give sessions a mode. The first that applies is used, and takes precedence over the mode
	// recorded in the session.
	ModeOf []ModeRule
	// Encoding counts tokens: see package tokens. Default o200k_base, exact.
	Encoding string
	// Seed of all random draws. The same seed gives the same report.
	Seed uint64
	// Jobs is the number of sessions that are processed at a time; default 1.
	Jobs int
	// Rounds is how often a long session is condensed as it grows; zero means never. See [Round].
	Rounds int
	// RoundsFormat is the transcript format in which the view is written and read again after every round; default
	// the session's own, or anthropic if that is only read.
	RoundsFormat string
	// Repeat is how often a strategy that asks a language model runs at every cut and budget; default 3.
	// Rows have the means. Other strategies are deterministic and run once; so do rounds and canaries.
	Repeat int
	// ByFolder makes folders of sessions the samples, not sessions: sessions of one project are alike. Intervals of
	// tables, differences and verdicts are then over folders; means stay over sessions.
	ByFolder bool
	// Spending asks for [Report.Spending].
	Spending bool
	// Cache is a folder for results; empty means none. See [Strategy.Key].
	Cache string
	// Peers are the other programs among the strategies, for [Report.Peers]. With any, sessions are measured without the model's reasoning.
	Peers []Peer
	// Outputs gets every session and result at cuts and with gold evidence, as lines of JSON; nil means nobody does.
	// Results from the cache are not written.
	Outputs io.Writer
	// MaxUSD stops the run when model calls have cost this much, as far as prices are known; zero
	// means no limit. Running calls finish, so a little more may be spent. Finished sessions are
	// reported.
	MaxUSD float64
	// Progress is called after every session, by one goroutine at a time.
	Progress func(Progress)
	asked    []Budget // Budgets as given
	// Now is the clock; default time.Now. With a constant clock two runs give the same report byte
	// for byte.
	Now func() time.Time
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

// A Strategy is one provider or a chain of them, to be compared.
type Strategy struct {
	Name string // unique; shown in tables
	// Provider condenses. It may be called for several conversations at a time.
	Provider core.CondensationProvider
	// Chain is used if Provider is nil. Its providers are called in order until the target is met.
	Chain []core.NamedProvider
	// About describes the strategy and its settings in one line.
	About string
	// Key identifies the strategy, its version and its settings in the cache: results with the same
	// key are not measured again. Empty means no caching.
	Key string
	// Unchecked measures the provider's result even if it breaks rules, and does not run it a second time: for
	// programs of others. There is no chain.
	Unchecked bool
	// Truncation is the name of the provider in Chain that truncates the result of the others; empty if none does.
	// Its savings do not count as the strategy's own.
	Truncation string
	// SizeOf is the name of a strategy earlier in the list. Its result is the budget, so that both are compared at the
	// same size; empty means the budget of the run. It does not run in rounds and with canaries.
	SizeOf string
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
	seen := map[string]bool{}
	for _, b := range bounds {
		seen[b.Name] = true
	}
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
