package lab

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/condensehq/condense/core"
)

// A Strategy is what is compared: one provider or a chain of them.
type Strategy struct {
	Name string // unique; what tables call it
	// Provider condenses. It is called for several conversations at a time.
	Provider core.CondensationProvider
	// Chain, if Provider is nil, is asked in order until the conversation is on target.
	Chain []core.Candidate
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

func (s *Strategy) candidates() []core.Candidate {
	if s.Provider != nil {
		return []core.Candidate{{Name: s.Name, Provider: s.Provider}}
	}
	return s.Chain
}

// estimates reports whether a provider of s says what it would spend on models.
func (s *Strategy) estimates() bool {
	return slices.ContainsFunc(s.candidates(), func(c core.Candidate) bool {
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
