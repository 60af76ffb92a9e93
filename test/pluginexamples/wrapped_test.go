package pluginexamples_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/judge"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/plugin-sdk/sdktest"
	"github.com/condensehq/condense/providers"
	"github.com/condensehq/condense/providers/slidingwindow"
	"github.com/condensehq/condense/providers/smart"
	"github.com/condensehq/condense/registry"
)

// TestWrapped: a built-in strategy served as a plugin is as good as itself in every measure, before truncation and after it, and when its
// own views are condensed again. What the host's signature costs is all that it has more.
func TestWrapped(t *testing.T) {
	t.Parallel()
	testkit.Slow(t)
	itself, err := smart.New(smart.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	window := slidingwindow.New(slidingwindow.DefaultConfig())
	wrapped := sdktest.Loopback(t, smart.Strategy(), nil)
	chain := func(name string, providers ...core.CondensationProvider) lab.Strategy {
		s := lab.Strategy{Name: name}
		for i, p := range providers {
			s.Chain = append(s.Chain, core.NamedProvider{Name: []string{"smart", "truncation"}[i], Provider: p})
		}
		if len(providers) > 1 {
			s.Truncation = "truncation"
		}
		return s
	}
	r, err := lab.Run(t.Context(), lab.Demo(), []lab.Strategy{
		chain("itself", itself), chain("wrapped", wrapped), chain("itself, truncation", itself, window), chain("wrapped, truncation", wrapped, window),
	}, &lab.Options{Budgets: []lab.Budget{{Share: 10}, {Share: 25}}, Jobs: 2, Rounds: 3, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	sizes := []string{"ms", "gain", "kept", "size", "payback"} // which measure tokens
	compared := 0
	for i := range r.Tables {
		if r.Tables[i].Mode != "" {
			continue // a few sessions each
		}
		lines := map[string]map[string]lab.Estimate{}
		for _, l := range r.Tables[i].Lines {
			lines[l.Strategy] = l.Values
		}
		for pair, within := range map[string]float64{"": 0, ", truncation": 0.005} {
			for name, want := range lines["itself"+pair] {
				got, ok := lines["wrapped"+pair][name]
				if d := math.Abs(got.Mean - want.Mean); !ok || !slices.Contains(sizes, name) && d > within || name == lab.MeasureKept && d > 0.01 {
					t.Errorf("%s, %s: %v wrapped%s, %v itself", r.Tables[i].Budget, name, got.Mean, pair, want.Mean)
				}
				compared++
			}
		}
	}
	if compared < 80 {
		t.Errorf("only %d measures were compared", compared)
	}
	words := map[string]float64{}
	rounds := func(r *lab.Round) string { return fmt.Sprint(r.Session, " ", r.Round) }
	for i := range r.Rounds {
		if x := &r.Rounds[i]; x.Strategy == "itself" && x.User != nil {
			words[rounds(x)] = *x.User
		}
	}
	later := 0
	for i := range r.Rounds {
		x := &r.Rounds[i]
		want, ok := words[rounds(x)]
		if x.Strategy != "wrapped" || !ok {
			continue
		}
		if x.User == nil {
			t.Errorf("%s: %s", rounds(x), x.Error)
		} else if *x.User < want-0.05 {
			t.Errorf("%s: %v of the user's words are left, %v by itself", rounds(x), *x.User, want)
		}
		later = max(later, x.Round)
	}
	if later < 3 {
		t.Errorf("only %d rounds were compared", later)
	}
}

// A measured plugin is one that a judge can watch.
type measured struct {
	core.CondensationProvider

	may core.Abilities
}

func (m measured) Abilities() core.Abilities { return m.may }
func (measured) PeakMemory() int64           { return 0 }

// TestWrappedIsJudged: the first line of the judge says that a built-in strategy as a plugin works, and nothing says that it is worse than
// itself: alone and as the first link of a chain.
func TestWrappedIsJudged(t *testing.T) {
	t.Parallel()
	testkit.Slow(t)
	builtin, err := registry.New(providers.Builtin()...)
	if err != nil {
		t.Fatal(err)
	}
	itself, err := smart.New(smart.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	window := slidingwindow.New(slidingwindow.DefaultConfig())
	rest := &lab.Strategy{Name: "smart", Truncation: "truncation", Chain: []core.NamedProvider{
		{Name: "smart", Provider: itself}, {Name: "truncation", Provider: window},
	}}
	items, err := lab.Find("demo:entire", "demo:roo")
	if err != nil {
		t.Fatal(err)
	}
	for _, rest := range []*lab.Strategy{nil, rest} {
		w := &judge.Watch{Plugin: measured{sdktest.Loopback(t, smart.Strategy(), nil), smart.Strategy().Abilities}, Rest: rest}
		list, _, err := w.Strategies(t.Context(), builtin)
		if err != nil {
			t.Fatal(err)
		}
		card, opts := &judge.Card{Abilities: smart.Strategy().Abilities}, judge.Options
		if err := card.Run(t.Context(), w, items, list, &opts); err != nil {
			t.Fatal(err)
		}
		if !card.Passed || card.Verdict != "works" || len(card.Worse) > 0 || strings.Contains(card.Why, "worse") {
			t.Errorf("with a rest: %v: got %s: %s, worse in %v", rest != nil, card.Verdict, card.Why, card.Worse)
		}
	}
}
