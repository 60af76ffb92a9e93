package lab

import (
	"errors"
	"fmt"
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
	// Modes are those whose sessions are compared; default all.
	Modes []string
	// ModeOf are rules that give sessions a mode: the first that applies holds, before what
	// a session says of itself.
	ModeOf []ModeRule
	// Encoding counts tokens, see package tokens; default the exact o200k_base.
	Encoding string
	// Seed of everything that is drawn at random: the same seed, the same report.
	Seed uint64
	// Jobs is how many sessions are worked on at a time; default 1.
	Jobs int
	// Rounds is how often a long session is condensed along its way, to see what is left
	// in the end; zero means not at all. See [Round].
	Rounds int
	// Cache is a folder for what was measured; empty means none. See [Strategy.Key].
	Cache string
	// Shard is the part of the sessions to take; zero means all. See [Merge].
	Shard Shard
	// MaxUSD stops the run when model calls have cost this much, as far as prices are
	// known; zero means no bound. Calls that are under way are not broken off, so a little
	// more may be spent. What is finished is kept.
	MaxUSD float64
	// Progress is called after every session, by one goroutine at a time.
	Progress func(Progress)
	// Now is the clock; default time.Now. With a clock that does not move two runs give the
	// same report, byte for byte.
	Now func() time.Time
}

// A Shard is a part of the sessions: those whose position in the list, counted from zero,
// leaves Index-1 when divided by Count.
type Shard struct {
	Index int `json:"index"` // from 1
	Count int `json:"count"`
}

// ParseShard reads "i/n".
func ParseShard(s string) (Shard, error) {
	var sh Shard
	if n, err := fmt.Sscanf(s, "%d/%d", &sh.Index, &sh.Count); err != nil || n != 2 || s != sh.String() || sh.check() != nil {
		return Shard{}, fmt.Errorf("shard %q: want i/n with i from 1 to n", s)
	}
	return sh, nil
}

// String returns s as ParseShard reads it.
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Count) }

func (s Shard) check() error {
	if s != (Shard{}) && (s.Count < 1 || s.Index < 1 || s.Index > s.Count) {
		return fmt.Errorf("shard %s: want i/n with i from 1 to n", s)
	}
	return nil
}

func (s Shard) has(i int) bool { return s.Count < 2 || i%s.Count == s.Index-1 }

// A Progress says how far a run is.
type Progress struct {
	Done, Total int // sessions
	Session     string
	Elapsed     time.Duration
	Left        time.Duration // estimated; zero before the first session is done
	Rows        int           // measured so far, those of the cache included
	Cached      int           // of Rows
	USD         float64       // spent so far
}

// ErrMaxCost means that a run was stopped because it had spent [Options.MaxUSD].
var ErrMaxCost = errors.New("the most that may be spent is spent")

// settled returns o with defaults in place of zeros, checked.
func (o *Options) settled() (Options, *tokens.Encoding, error) {
	var out Options
	if o != nil {
		out = *o
	}
	if len(out.Budgets) == 0 {
		out.Budgets = []Budget{{Share: 10}, {Share: 25}, {Share: 50}}
	}
	if out.Encoding == "" {
		out.Encoding = tokens.O200kBase
	}
	out.Jobs = max(1, out.Jobs)
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
	return out, e, errors.Join(err, out.Shard.check())
}

// A Strategy is what is compared: one provider or a chain of them.
type Strategy struct {
	Name string // unique; what tables call it
	// Provider condenses. It is called for several conversations at a time.
	Provider core.CondensationProvider
	// Chain, if Provider is nil, is asked in order until the conversation is on target.
	Chain []core.NamedProvider
	// About says in a line what it is: the strategy and its settings.
	About string
	// Key names the strategy, its version and its settings: what was measured of another
	// one with the same key is not measured again. Empty means to measure always.
	Key string
}

// The strategies that are in every table. Oracle knows the future and is the upper
// bound; the others are what costs nothing to write.
const (
	Oracle   = "oracle"
	KeepLast = "keep_last"
	Random   = "random_lines"
)

var bounds = []StrategyInfo{
	{Name: Oracle, Bound: true, About: "upper bound: the lines worth most to the panel, chosen with knowledge of the future"},
	{Name: KeepLast, Bound: true, About: "baseline: the newest tool groups that fit, the oldest of them cut to its end"},
	{Name: Random, Bound: true, About: "baseline: lines chosen at random"},
}

// A StrategyInfo describes a strategy in a [Report].
type StrategyInfo struct {
	Name  string `json:"name"`
	About string `json:"about,omitempty"`
	Key   string `json:"key,omitempty"`
	// Bound strategies are no candidates: they say what is possible and what is easy.
	Bound bool `json:"bound,omitempty"`
}

func (s *Strategy) candidates() []core.NamedProvider {
	if s.Provider != nil {
		return []core.NamedProvider{{Name: s.Name, Provider: s.Provider}}
	}
	return s.Chain
}

// estimates reports whether a provider of s says what it would spend on models.
func (s *Strategy) estimates() bool {
	return slices.ContainsFunc(s.candidates(), func(c core.NamedProvider) bool {
		_, ok := c.Provider.(core.CostEstimator)
		return ok
	})
}

// open returns a chain of s that gives new messages the same IDs every time; round keeps
// those of one run apart from those of the next.
func (s *Strategy) open(round int, now func() time.Time) (*core.Chain, error) {
	n := 0
	c, err := core.NewChain(s.candidates(), &core.ChainOptions{Now: now, NewID: func() string {
		n++
		return "new-" + strconv.Itoa(round) + "-" + strconv.Itoa(n)
	}})
	if err != nil {
		return nil, fmt.Errorf("strategy %s: %w", s.Name, err)
	}
	return c, nil
}

// checkStrategies reports the first fault of a list of strategies.
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
		case len(s.candidates()) == 0:
			return fmt.Errorf("strategy %q has neither a provider nor a chain", s.Name)
		}
		seen[s.Name] = true
		if _, err := s.open(0, nil); err != nil {
			return err
		}
	}
	return nil
}
