package lab

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/canary"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/plain"
)

// A Canary counts, after every round, the surviving canaries of one type in one session: see package canary. Index 0
// of a list is the first round.
type Canary struct {
	Strategy string      `json:"strategy"`
	Budget   string      `json:"budget"`
	Session  string      `json:"session"`
	Source   string      `json:"source"`
	Mode     string      `json:"mode"`
	Run      int         `json:"run,omitempty"` // 2 and up: another run of a strategy that asks a language model
	Format   string      `json:"format"`
	Type     canary.Type `json:"type"`
	Planted  []int       `json:"planted"` // said before the round
	Kept     []int       `json:"kept"`    // of Planted
	Updated  []int       `json:"updated"` // changed before the round
	Stale    []int       `json:"stale"`   // of Updated, those whose old value is still there
	// Misled counts the values in Stale whose new value is missing.
	Misled []int `json:"misled"`
	// Failed is the number of rounds in which a provider of the chain failed, was rejected or could not work. A round
	// without a result leaves the view unchanged.
	Failed int        `json:"failed,omitempty"`
	Error  string     `json:"error,omitempty"` // the first
	Usage  core.Usage `json:"usage,omitzero"`  // of all types together; set for the first type only
}

// A CanaryLine holds the shares of one strategy, budget and type of canary, means over sessions.
type CanaryLine struct {
	Strategy string      `json:"strategy"`
	Budget   string      `json:"budget"`
	Type     canary.Type `json:"type"` // "all" for all that a user says
	// Kept is the surviving share after each round, over the sessions with that many rounds.
	Kept []Estimate `json:"kept"`
	// FirstLost is the first round in which any session lost one; absent if none did.
	FirstLost int `json:"first_lost,omitempty"`
	// Stale is the share of changed values whose old value is still there after the last round, Misled the share
	// whose new value is missing. Absent if none was changed.
	Stale  *Estimate `json:"stale,omitempty"`
	Misled *Estimate `json:"misled,omitempty"`
	// Failed is the number of rounds in which a provider failed, was rejected or could not work.
	Failed int `json:"failed,omitempty"`
}

// Defaults for canaries, and the smallest conversation that is condensed: in a smaller one the planted sentences
// would fill most of the budget.
var canaryBudgets = []Budget{{Share: 10}, {Share: 20}, {Share: 30}}

const (
	canaryRounds = 6
	canaryWindow = 16_000 // tokens
	canaryAll    = canary.Type("all")
)

// shares returns the requested budgets that are shares, or usual if there are none.
func (o *Options) shares(usual []Budget) []Budget {
	out := slices.DeleteFunc(slices.Clone(o.asked), func(b Budget) bool { return b.Share == 0 })
	if len(out) == 0 {
		return usual
	}
	return out
}

func (o *Options) canaryRounds() int { return cmp.Or(max(0, o.Rounds), canaryRounds) }

// windowFor returns the size at which a session is condensed so that it is condensed this many times. Views grow by
// whole turns, and so a little beyond it.
func windowFor(s *score.Session, b Budget, rounds int) int {
	total := core.TotalTokens(s.Messages)
	return max(canaryWindow, int(0.85*float64(total)/(1+float64(rounds-1)*(1-b.Share/100))))
}

// canaries plants canaries in the session, and condenses it with every strategy under every budget.
func (w *sessionWork) canaries(ctx context.Context, name string) ([]Canary, error) {
	var out []Canary
	for _, b := range w.run.opts.shares(canaryBudgets) {
		for i := range w.run.strategies {
			s := &w.run.strategies[i]
			if s.SizeOf != "" {
				continue // it would be as without
			}
			key := func(run int) string { return w.canaryKey(s.Key, b, run) }
			found, err := laps(w, s, key, func() ([]Canary, error) { return w.plantAndRun(ctx, name, s, b) }, func(c *Canary, run int) {
				c.Strategy, c.Session, c.Source, c.Mode, c.Run = s.Name, name, w.session.Source, w.session.Mode, run
			})
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

// plantAndRun returns the surviving canaries of s, by type. The session is played twice, with hostile and neutral
// lines exchanged.
func (w *sessionWork) plantAndRun(ctx context.Context, name string, s *Strategy, b Budget) ([]Canary, error) {
	rounds := w.run.opts.canaryRounds()
	sum := plain.Each(canary.Types, func(t canary.Type) Canary { return Canary{Budget: b.String(), Format: w.fileFormat(), Type: t} })
	window := windowFor(w.session, b, rounds)
	for _, swap := range []bool{false, true} {
		messages, planted := canary.Plant(w.set, w.session.Messages, w.session.ID, window, w.run.opts.Seed, swap)
		core.Measure(w.counter, messages)
		said := map[string]bool{}
		var view []core.Message
		tokens := 0
		for i, round := 0, 1; i < len(messages) && round <= rounds; i++ {
			m := &messages[i]
			if tokens >= window && m.Role == core.RoleAssistant && len(core.Pending(view)) == 0 {
				t := w.trial(name, task{budget: b.String(), cut: score.Cut{Session: w.session}, room: int(b.Share / 100 * float64(window))})
				next, _, err := t.condense(ctx, s, view, round)
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				why := ""
				if err == nil {
					sum[0].Usage = sum[0].Usage.Add(next.Usage)
					_, why, _ = setbacks(next)
					view, err = reread(next.Messages, w.fileFormat(), round, w.counter)
				}
				if err != nil {
					why = err.Error()
				}
				if why != "" {
					sum[0].Failed++
					sum[0].Error = cmp.Or(sum[0].Error, why)
				}
				if err != nil {
					break
				}
				count(sum, view, planted, said, round)
				if tokens = core.TotalTokens(view); tokens >= window {
					break // it would be due again at once
				}
				round++
			}
			view = append(view, *m)
			said[m.ID] = true
			tokens += m.Tokens
		}
	}
	return slices.DeleteFunc(sum, func(c Canary) bool { return len(c.Planted) == 0 && c.Failed == 0 }), nil
}

func (c Canary) lap() (core.Usage, bool) { return c.Usage, c.Failed > 0 }

// count adds the canaries that survive in a view after a round to sum.
func count(sum []Canary, messages []core.Message, planted []canary.Canary, said map[string]bool, round int) {
	view := canary.NewView(messages)
	for i := range sum {
		c := &sum[i]
		if len(c.Planted) < round {
			for _, list := range []*[]int{&c.Planted, &c.Kept, &c.Updated, &c.Stale, &c.Misled} {
				*list = append(*list, make([]int, round-len(*list))...)
			}
		}
	}
	for i := range planted {
		p := &planted[i]
		c := &sum[slices.Index(canary.Types, p.Type)]
		if !said[p.Message] {
			continue
		}
		st := view.State(p, said[p.Update])
		add := func(list []int, yes bool) {
			if yes {
				list[round-1]++
			}
		}
		add(c.Planted, true)
		add(c.Kept, st.Kept)
		add(c.Updated, st.Updated)
		add(c.Stale, st.Stale)
		add(c.Misled, st.Stale && !st.Kept)
	}
}

type canaryPlace struct{ strategy, budget, session string }

// canaryLines returns the means over sessions.
func (a *analysis) canaryLines() []CanaryLine {
	of := map[canaryPlace][]*Canary{}
	var budgets []string
	for i := range a.Canaries {
		c := &a.Canaries[i]
		if !slices.Contains(budgets, c.Budget) {
			budgets = append(budgets, c.Budget)
		}
		k := canaryPlace{c.Strategy, c.Budget, c.Session}
		of[k] = append(of[k], c)
	}
	slices.SortFunc(budgets, func(x, y string) int { return cmp.Or(len(x)-len(y), strings.Compare(x, y)) }) // as numbers
	var out []CanaryLine
	for _, b := range budgets {
		for _, s := range a.compared() {
			for _, t := range append([]canary.Type{canaryAll}, canary.Types...) {
				l := CanaryLine{Strategy: s, Budget: b, Type: t}
				a.canaryLine(&l, of)
				if len(l.Kept) > 0 || l.Failed > 0 {
					out = append(out, l)
				}
			}
		}
	}
	return out
}

// canaryLine fills in the shares of l.
func (a *analysis) canaryLine(l *CanaryLine, of map[canaryPlace][]*Canary) {
	var kept []repeatedly
	var stale, misled repeatedly
	for i := range a.Sessions {
		name := a.Sessions[i].Name
		byRun := map[int][]*Canary{}
		for _, c := range of[canaryPlace{l.Strategy, l.Budget, name}] {
			if c.Type == l.Type || l.Type == canaryAll && slices.Index(canary.Types, c.Type) < canary.Said {
				byRun[c.Run] = append(byRun[c.Run], c)
				l.Failed += c.Failed
			}
		}
		for _, run := range slices.Sorted(maps.Keys(byRun)) {
			n, old, wrong := 0, 0, 0 // of the last round
			rounds := 0
			for _, c := range byRun[run] {
				rounds = max(rounds, len(c.Planted))
			}
			for round := range rounds {
				planted, left := 0, 0
				n, old, wrong = 0, 0, 0
				for _, c := range byRun[run] {
					if round < len(c.Planted) {
						planted, left = planted+c.Planted[round], left+c.Kept[round]
						n, old, wrong = n+c.Updated[round], old+c.Stale[round], wrong+c.Misled[round]
					}
				}
				if planted == 0 {
					continue
				}
				for len(kept) <= round {
					kept = append(kept, repeatedly{})
				}
				kept[round].add(name, run, float64(left)/float64(planted))
				if left < planted && (l.FirstLost == 0 || round+1 < l.FirstLost) {
					l.FirstLost = round + 1
				}
			}
			if n > 0 {
				stale.add(name, run, float64(old)/float64(n))
				misled.add(name, run, float64(wrong)/float64(n))
			}
		}
	}
	for i := range kept {
		e, _ := kept[i].estimate(a.sampler)
		l.Kept = append(l.Kept, e)
	}
	if e, ok := stale.estimate(a.sampler); ok {
		m, _ := misled.estimate(a.sampler)
		l.Stale, l.Misled = &e, &m
	}
}

// priceCanaries adds the cost of the rounds with canaries to p: every round condenses a view of the size of the
// window.
func (w *sessionWork) priceCanaries(ctx context.Context, name string, p *Plan, silent map[string]bool) (int, error) {
	n := 0
	for _, b := range w.run.opts.shares(canaryBudgets) {
		window := windowFor(w.session, b, w.run.opts.canaryRounds())
		at, tokens, rounds := 0, 0, 0
		for i := range w.session.Messages {
			if w.session.Messages[i].Role == core.RoleAssistant && tokens >= window {
				if rounds++; at == 0 {
					at = i
				}
				tokens = int(b.Share / 100 * float64(window))
			}
			tokens += w.session.Messages[i].Tokens
		}
		rounds = min(rounds, w.run.opts.canaryRounds())
		n += rounds
		for i := range w.run.strategies {
			s := &w.run.strategies[i]
			t := w.trial(name, task{budget: b.String(), cut: score.Cut{Session: w.session, At: at}, room: int(b.Share / 100 * float64(window))})
			err := priceLaps[Canary](w, s, p, func(run int) string { return w.canaryKey(s.Key, b, run) }, func() error {
				for range 2 * rounds {
					if err := w.spend(ctx, t, s, p, silent); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return n, err
			}
		}
	}
	return n, nil
}
