package comparecmd

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/strategies"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
)

// A sizing is when to condense, and how far, in the words of condense.yaml.
type sizing struct {
	name   string
	max    int     // max_context_tokens
	target float64 // percent of the window
}

// sizings are policies to compare with the gateway's default, for a window. Below half of max_context_tokens money is
// no reason.
func sizings(window int) []sizing {
	var out []sizing
	for _, most := range []int{60_000, 100_000, 150_000} {
		for _, target := range []int{30_000, 45_000} {
			if percent := 100 * float64(target) / float64(window); most < window*4/5 && target < most*3/5 {
				out = append(out, sizing{fmt.Sprintf("%dk to %dk", most/1000, target/1000), most, percent})
			}
		}
	}
	return out
}

// byGateway is the policy that nothing is configured for.
const byGateway = "default"

// replay plays the sessions under a few policies, and adds to the lesson which of them is cheapest.
func (l *lesson) replay(a *cli.App, cmd *cobra.Command, c *comparison, items []lab.Item, opts *lab.Options) error {
	o := &lab.ReplayOptions{Options: *opts, Window: replayWindow, Fixed: lab.AssumedFixed}
	for _, b := range opts.Budgets {
		if b.Window > 0 {
			o.Window = b.Window
		}
	}
	t, err := lab.ParseTariff(c.price)
	if err != nil {
		return cli.Usage(cmd, "--price: %w", err)
	}
	o.Tariffs = []lab.Tariff{t}
	h, open, err := opener(a, cmd, c)
	if err != nil {
		return err
	}
	defer h.Close()
	words := []string{lab.Recorded, strategies.BareWindow, byGateway + "=" + byDefault + "@money"}
	all := sizings(o.Window)
	for _, s := range all {
		words = append(words, fmt.Sprintf("%s=%s@money@max=%d@target=%g", s.name, byDefault, s.max, s.target))
	}
	policies, err := open.Policies(cmd.Context(), words)
	if err != nil {
		return err
	}
	end := showProgress(a, c.quiet, "playing whole sessions: ", &o.Options)
	r, err := lab.Replay(cmd.Context(), items, policies, o)
	end()
	if err != nil {
		return err
	}
	l.Window, l.Prices, l.Costs = o.Window, t.Name, r.Conclusion
	l.Money = slices.DeleteFunc(slices.Clone(r.Lines), func(x lab.ReplayLine) bool { return x.Scope != lab.ScopeAll })
	modes := plain.Each(l.Recommendations, func(r recommendation) string { return r.Mode })
	if len(modes) == 0 {
		modes = []string{""}
	}
	for _, mode := range modes {
		choice := r.Choose(mode, byGateway)
		l.Sizes = append(l.Sizes, choice)
		at := slices.IndexFunc(all, func(s sizing) bool { return s.name == choice.Policy })
		if mode != "" && at >= 0 {
			l.Fragment = withSize(l.Fragment, mode, &all[at], &choice)
		}
	}
	return nil
}

// withSize adds a size to the mode of a fragment of condense.yaml.
func withSize(fragment, mode string, s *sizing, c *lab.Choice) string {
	note := fmt.Sprintf("  # %s: by money, %.0f %% cheaper than untouched (95 %% interval %.0f to %.0f), lost in use %.3f, %s\n",
		plain.Line(mode), 100*c.Cheaper.Mean, 100*c.Cheaper.Low, 100*c.Cheaper.High, c.Lost.Mean, size.Plural(c.Sessions, "session"))
	key := strategies.YAMLName(mode)
	keys := fmt.Sprintf("max_context_tokens: %d, target: %g", s.max, s.target)
	var out []string
	found := false
	for _, line := range strings.SplitAfter(fragment, "\n") {
		if before, has := strings.CutSuffix(line, "}\n"); has && strings.HasPrefix(line, "  "+key+": {") {
			out, found = append(out, note), true
			line = before + ", " + keys + "}\n"
		}
		out = append(out, line)
	}
	if !found {
		if !strings.Contains(fragment, "\nmodes:\n") {
			out = append(out, "modes:\n")
		}
		out = append(out, note, "  "+key+": {"+keys+"}\n")
	}
	return strings.Join(out, "")
}

// writeSizes writes the costs of the policies and the recommended one.
func (l *lesson) writeSizes(w io.Writer, width int) {
	table := term.NewTable("when, and how far", ">USD", ">cheaper, mean", ">dearest", ">epochs", ">lost in use")
	for i := range l.Money {
		x := &l.Money[i]
		table.Row(x.Policy, fmt.Sprintf("%.2f", x.USD), estimate(x, "cheaper", 3), fmt.Sprintf("%.2f", x.Worst), x.Epochs, estimate(x, "lost", 4))
	}
	printTable(w, table, fmt.Sprintf("whole sessions by money, %s, window %s, with %s", l.Prices, size.Group(l.Window), byDefault), false, width)
	term.Printf(w, "%s\n\nwhen to condense\n", l.Costs)
	for i := range l.Sizes {
		x := &l.Sizes[i]
		scope, what := "mode "+clipped(x.Mode), "as it is"
		if x.Mode == "" {
			scope = "all modes together"
		}
		if x.Policy != "" {
			what = "from max_context_tokens " + x.Policy
		}
		term.Printf(w, "  %s (%s): %s\n    %s\n", scope, size.Plural(x.Sessions, "session"), what, x.Why)
		if x.Cheaper != nil && x.Lost != nil {
			term.Printf(w, "    each session as the others choose: %.3f cheaper than untouched (95 %% interval %.3f to %.3f), %.3f more than the default (%.3f to %.3f), lost in use %.4f\n",
				x.Cheaper.Mean, x.Cheaper.Low, x.Cheaper.High, x.More.Mean, x.More.Low, x.More.High, x.Lost.Mean)
		}
	}
}
