package comparecmd

import (
	"cmp"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
)

// readerBudget is the default budget, without --budgets and --windows.
const readerBudget = "12%"

// readers are the strategies that readers are asked about by default, after those of the configuration.
var readers = []string{"smart/balanced", "headtail", lab.Recorded, "native", "handover"}

var markdownMark = plain.Pattern("[][\\\\`*_{}<>()#|!&~:@]")

// interview compares strategies by the questions that a reader can still answer.
func interview(a *cli.App, cmd *cobra.Command, c *comparison, paths []string) error {
	opts, err := c.interviewOptions(cmd)
	if err != nil {
		return err
	}
	items, err := sessionsAt(cmd, paths)
	if err != nil {
		return err
	}
	a.Model = cmp.Or(a.Model, c.asked.Reader)
	h, open, err := opener(a, cmd, c)
	if err != nil {
		return err
	}
	defer h.Close()
	o := &lab.ReaderOptions{Options: *opts}
	if err := c.asked.Options(cmd, open.Models, o); err != nil {
		return err
	}
	open.Usual = readers
	set, err := open.Open(cmd.Context(), c.strategies)
	if err != nil {
		return cli.Usage(cmd, "--strategies: %w", err)
	}
	if err := c.asked.Agree(a, cmd, items, set.Strategies, o); err != nil {
		return err
	}
	end := showProgress(a, c.quiet, "", &o.Options)
	r, err := lab.Interview(cmd.Context(), items, set.Strategies, o)
	end()
	if r == nil {
		return err
	}
	if err != nil {
		err = stopped(err, r.Sessions, opts)
	} else if len(r.Answers) == 0 {
		err = errors.New("no session could be read")
	}
	c.asked.SkippedBy(a, r)
	var b strings.Builder
	if c.output == "json" {
		err = errors.Join(err, r.WriteJSON(&b))
	} else if len(r.Answers) > 0 {
		writeReader(&b, r, c, term.Width(a.Stdout))
	}
	return errors.Join(err, c.saved(r), c.printed(a, b.String()))
}

// interviewOptions returns the checked options of the flags.
func (c *comparison) interviewOptions(cmd *cobra.Command) (*lab.Options, error) {
	for flag, set := range map[string]bool{
		"rounds": c.rounds > 0, "write-modes": c.writeModes != "", "against": c.against != "", "fail-on": c.failOn != "",
		"repeat": cmd.Flags().Changed("repeat"), "per-mode": c.perMode, "by-folder": c.byFolder,
		"peers": c.others.peers != "", "outputs": c.others.outputs != "",
	} {
		if set {
			return nil, cli.Usage(cmd, "--%s has no meaning with --reader", flag)
		}
	}
	if len(c.budgets) == 0 && len(c.windows) == 0 {
		c.budgets = []string{readerBudget}
	}
	switch c.output {
	case "table", "md", "json":
	default:
		return nil, cli.Usage(cmd, "--output: with --reader there are table, md and json")
	}
	opts, _, err := c.options(cmd)
	return opts, err
}

// writeReader writes a table for every budget.
func writeReader(w io.Writer, r *lab.ReaderReport, c *comparison, width int) {
	for _, budget := range r.Budgets {
		heads, rows := r.Table(budget)
		printTable(w, term.NewTable(heads...).Rows(rows), "budget "+budget+": questions answered", c.output == "md", width)
		for _, line := range r.Paired(budget) {
			term.Printf(w, "%s\n", line)
		}
	}
	term.Printf(w, "%s; %s asked and graded, %s read; %s. A right answer is a point, one that is half right half a point; wrong counts answers that\nclaim something else. In brackets a 95 %% interval over sessions; one reader a view: differences\nunder 0.05 are noise.\n",
		size.Plural(r.Sessions, "session"), plain.Line(r.Author), plain.Line(r.Reader), cli.UsageText(r.Usage))
	if c.asked.Recall != "0" {
		term.Printf(w, "+ recall: up to %s tokens of a session, of views with numbers; recalled is the mean, in vain are recalls\n"+
			"that returned nothing.\n", c.asked.Recall)
	}
	for i := range r.Answers {
		if x := &r.Answers[i]; x.Hinder != "" {
			line := plain.Line(x.Hinder)
			if c.output == "md" { // no link, image or heading
				line = markdownMark().ReplaceAllString(line, `\$0`)
			}
			term.Printf(w, "hindered by %s in %s: %s\n", x.Strategy, plain.Line(x.Session), line)
		}
	}
}
