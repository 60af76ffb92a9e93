package comparecmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/report"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
)

// agree prints the estimated spending of a comparison on language models, and asks for agreement. Without a terminal
// --yes is required, or --max-cost at known prices.
func agree(a *cli.App, cmd *cobra.Command, c *comparison, items []lab.Item, strategies []lab.Strategy, opts *lab.Options) error {
	if !slices.ContainsFunc(strategies, estimates) {
		return nil
	}
	plan, err := lab.NewPlan(cmd.Context(), items, strategies, opts)
	if err != nil {
		return err
	}
	u := plan.Usage
	if u.Calls == 0 {
		return nil
	}
	term.Printf(a.Stderr, "%s, %s to measure, %s of them in the cache: at most %s\n",
		size.Plural(plan.Sessions, "session"), size.Plural(plan.Rows, "result"), size.Group(plan.Cached), cli.UsageText(u))
	if opts.Repeat > 1 {
		term.Printf(a.Stderr, "strategies that ask a language model run %d times at every cut, in rounds and with canaries (--repeat)\n", opts.Repeat)
	}
	costly, free := priced(plan, strategies)
	without := ""
	if len(free) > 0 {
		without = ", or leave it out: --strategies '" + strings.Join(free, ",") + "'"
	}
	return c.asked.Confirm(a, cmd, u, strings.Join(costly, ", "), without)
}

// priced returns the strategies that would spend money, each with its maximum, and the others.
func priced(plan lab.Plan, strategies []lab.Strategy) (costly, free []string) {
	for i := range strategies {
		name := strategies[i].Name
		switch u := plan.ByStrategy[name]; {
		case u.Calls == 0:
			free = append(free, name)
		case u.Unpriced > 0:
			costly = append(costly, name+" (price unknown)")
		default:
			costly = append(costly, fmt.Sprintf("%s (%.4f USD)", name, u.USD))
		}
	}
	return costly, free
}

// estimates reports whether a provider of s asks language models.
func estimates(s lab.Strategy) bool {
	return slices.ContainsFunc(s.Chain, func(c core.NamedProvider) bool { _, ok := c.Provider.(core.CostEstimator); return ok })
}

// shownRows is the maximum number of results that a page shows message by message.
const shownRows = 300

// writeHTML writes r as a page. Without evidence, as for merged shards, the page has only numbers.
func writeHTML(ctx context.Context, a *cli.App, w io.Writer, c *comparison, r *lab.Report, e *evidence) error {
	var details []*lab.Detail
	if e != nil && ctx.Err() == nil { // an interrupted run ends at once
		// Results of language models are left out: showing them would cost again.
		rows := slices.DeleteFunc(report.Choose(r, shownRows), func(row lab.Row) bool { return row.Usage.Calls > 0 })
		opts := *e.opts
		end := showProgress(a, c.quiet, "making the page: ", &opts)
		var err error
		details, err = lab.Examine(ctx, e.items, e.set.Strategies, rows, &opts)
		end()
		if err != nil {
			return err
		}
	}
	return report.Write(w, r, details, &report.Options{Command: commandLine(os.Args)})
}

// commandLine returns args quoted for a shell.
func commandLine(args []string) string {
	return strings.Join(append([]string{"condense"}, plain.Each(args[1:], cli.Quote)...), " ")
}

// A progress prints how far a comparison is: on a terminal in one line that is overwritten, elsewhere in a
// line every few seconds.
type progress struct {
	w        io.Writer // nil: it is silent
	doing    string    // prefix of the line
	terminal bool
	last     time.Time
	width    int
}

// quietFor is the time between lines where there is no terminal.
const quietFor = 5 * time.Second

// showProgress shows how far a comparison with these options is, unless quiet, until end is called.
func showProgress(a *cli.App, quiet bool, doing string, opts *lab.Options) (end func()) {
	p := &progress{doing: doing}
	if !quiet {
		p.w, p.terminal, p.last = a.Stderr, term.IsTerminal(a.Stderr) && os.Getenv("TERM") != "dumb", time.Now()
	}
	opts.Progress = p.show
	return p.end
}

func (p *progress) show(s lab.Progress) {
	if p.w == nil || !p.terminal && time.Since(p.last) < quietFor {
		return
	}
	p.last = time.Now()
	text := p.doing + fmt.Sprintf("%s of %s", size.Group(s.Done), size.Plural(s.Total, "session"))
	if s.Rows > 0 {
		text += ", " + size.Plural(s.Rows, "result")
	}
	if s.Cached > 0 {
		text += fmt.Sprintf(" (%s in the cache)", size.Group(s.Cached))
	}
	if s.USD > 0 {
		text += fmt.Sprintf(", %.4f USD", s.USD)
	}
	if s.Left > 0 && s.Done < s.Total {
		text += fmt.Sprintf(", about %s left", s.Left.Round(time.Second))
	}
	if !p.terminal {
		term.Printf(p.w, "%s\n", text)
		return
	}
	if width := term.Width(p.w); width > 0 { // what a terminal wraps is not overwritten
		text, p.width = text[:min(len(text), width-1)], min(p.width, width-1)
	}
	term.Printf(p.w, "\r%-*s", p.width, text)
	p.width = len(text)
}

// end clears the line.
func (p *progress) end() {
	if p.terminal && p.width > 0 {
		term.Printf(p.w, "\r%*s\r", p.width, "")
	}
}
