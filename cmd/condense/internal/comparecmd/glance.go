package comparecmd

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/internal/lab"
)

// A Glance is a short measurement of some sessions: where their tokens are, and what condensing them would have done.
type Glance struct {
	Spending  lab.Spending
	Compared  int     // sessions that were long enough to be cut
	Kept, Cut float64 // the share of the needed text that the default strategy and truncation keep in a quarter of the tokens
	Played    int     // sessions that were played whole
	Epochs    int     // their condensations by the rule of the gateway
	Was       float64 // their cost in US dollars as they were sent
	Would     float64 // and by that rule
	Left, Own float64 // the share that a condensation left on average, and one of the agents themselves; 0 if there was none
	Prices    string
	Unread    []lab.Skipped
	Late      [2]bool // reading, and playing whole sessions, ended before all sessions were finished
}

// Patience is how long each of the two measurements may take; then the finished sessions count.
const Patience = 20 * time.Second

// Look measures sessions. It calls no model and writes nothing, not even the cache.
func Look(a *cli.App, cmd *cobra.Command, paths []string) (*Glance, error) {
	c := &comparison{
		strategies: []string{byDefault, "slidingwindow"}, budgets: []string{learnedBudget},
		builtin: true, output: "table", cache: "none", seed: 1, jobs: runtime.NumCPU(), price: tariffs[0],
	}
	opts, _, err := c.options(cmd)
	if err != nil {
		return nil, err
	}
	items, err := lab.Find(paths...)
	if err != nil {
		return nil, err
	}
	h, set, err := openStrategies(a, cmd, c, &peerList{})
	if err != nil {
		return nil, err
	}
	defer h.Close()
	g := &Glance{Prices: c.price}
	opts.Spending = true
	g.Late[0], err = within(a, cmd, "reading: ", opts, func(ctx context.Context) error {
		r, err := lab.Run(ctx, items, set.Strategies, opts)
		if r != nil {
			g.read(r)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return g, g.play(a, cmd, c, items, opts)
}

// within runs a measurement with its progress, and ends it after a while. It reports whether it did.
func within(a *cli.App, cmd *cobra.Command, doing string, opts *lab.Options, f func(context.Context) error) (late bool, err error) {
	ctx, cancel := context.WithTimeout(cmd.Context(), Patience)
	defer cancel()
	end := showProgress(a, false, doing, opts)
	err = f(ctx)
	end()
	if ctx.Err() != nil && cmd.Context().Err() == nil {
		return err != nil, nil
	}
	return false, err
}

func (g *Glance) read(r *lab.Report) {
	g.Unread = slices.DeleteFunc(r.Skipped, func(s lab.Skipped) bool { return !s.Unread })
	if len(r.Spending) > 0 {
		g.Spending = r.Spending[0]
	}
	for _, t := range r.Tables {
		for _, l := range t.Lines {
			switch kept := l.Values[lab.MeasurePanel].Mean; {
			case t.Mode != "" || l.Bound:
			case l.Strategy == byDefault:
				g.Compared, g.Kept = l.Sessions, kept
			default:
				g.Cut = kept
			}
		}
	}
}

// play plays the sessions as they were, and with the rule of the gateway.
func (g *Glance) play(a *cli.App, cmd *cobra.Command, c *comparison, items []lab.Item, opts *lab.Options) error {
	h, open, err := opener(a, cmd, c)
	if err != nil {
		return err
	}
	defer h.Close()
	policies, err := open.Policies(cmd.Context(), []string{"recorded", byGateway + "=" + byDefault + "@money"})
	if err != nil {
		return err
	}
	tariff, err := lab.ParseTariff(c.price)
	if err != nil {
		return err
	}
	o := &lab.ReplayOptions{Options: *opts, Window: replayWindow, Fixed: lab.AssumedFixed, Tariffs: []lab.Tariff{tariff}}
	g.Late[1], err = within(a, cmd, "playing whole sessions: ", &o.Options, func(ctx context.Context) error {
		r, err := lab.Replay(ctx, items, policies, o)
		if r == nil {
			return err
		}
		for _, l := range r.Lines {
			switch {
			case l.Scope != lab.ScopeAll:
			case l.Policy == "recorded":
				g.Was, g.Own = l.USD, l.Values["depth"].Mean
			case l.Policy == byGateway:
				g.Played, g.Epochs, g.Would, g.Left = l.Sessions, l.Epochs, l.USD, l.Values["depth"].Mean
			}
		}
		return err
	})
	return err
}
