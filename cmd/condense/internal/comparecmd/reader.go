package comparecmd

import (
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/size"
)

// readerBudget is the default budget, without --budgets and --windows.
const readerBudget = "12%"

// interview compares strategies by the questions that a reader can still answer.
func interview(a *cli.App, cmd *cobra.Command, c *comparison, paths []string) error {
	for flag, set := range map[string]bool{
		"rounds": c.rounds > 0, "write-modes": c.writeModes != "", "against": c.against != "", "fail-on": c.failOn != "",
		"repeat": cmd.Flags().Changed("repeat"), "per-mode": c.perMode, "by-folder": c.byFolder,
	} {
		if set {
			return cli.Usage(cmd, "--%s has no meaning with --reader", flag)
		}
	}
	if c.asked.reader == "" {
		return cli.Usage(cmd, "--author and --recall need --reader")
	}
	recall, ok := size.Parse(c.asked.recall)
	if !ok || recall > 0 && recall < lab.LeastRecall {
		return cli.Usage(cmd, "--recall: got %q; want the most tokens of a session, at least %d, as %s; 0 is no recall", c.asked.recall, lab.LeastRecall, size.Units)
	}
	if len(c.budgets) == 0 && len(c.windows) == 0 {
		c.budgets = []string{readerBudget}
	}
	switch c.output {
	case "table", "md", "json":
	default:
		return cli.Usage(cmd, "--output: with --reader there are table, md and json")
	}
	opts, _, err := c.options(cmd)
	if err != nil {
		return err
	}
	items, err := sessionsAt(cmd, paths)
	if err != nil {
		return err
	}
	h, open, err := opener(a, cmd, c)
	if err != nil {
		return err
	}
	defer h.Close()
	set, err := open.Open(cmd.Context(), c.strategies)
	if err != nil {
		return cli.Usage(cmd, "--strategies: %w", err)
	}
	o := &lab.ReaderOptions{Options: *opts, Recall: int(recall)}
	if o.Reader, err = open.Models.Model("", c.asked.reader); err != nil {
		return cli.Usage(cmd, "--reader: %w", err)
	}
	o.Author = o.Reader
	if c.asked.author != "" {
		if o.Author, err = open.Models.Model("", c.asked.author); err != nil {
			return cli.Usage(cmd, "--author: %w", err)
		}
	}
	if err := agreeToRead(a, cmd, c, items, set.Strategies, o); err != nil {
		return err
	}
	p := newProgress(a, c.quiet)
	o.Progress = p.show
	r, err := lab.Interview(cmd.Context(), items, set.Strategies, o)
	p.end()
	if r == nil {
		return err
	}
	if err == nil && r.Sessions == 0 {
		err = errors.New("no session could be read")
	}
	for _, s := range r.Skipped {
		term.Printf(a.Stderr, "skipped %s: %s\n", s.Name, s.Reason)
	}
	var b strings.Builder
	if c.output == "json" {
		err = errors.Join(err, r.WriteJSON(&b))
	} else if r.Sessions > 0 {
		writeReader(&b, r, c, term.Width(a.Stdout))
	}
	text := b.String()
	if c.output == "json" {
		text = rawjson.Visible(text)
	}
	if c.save != "" {
		var all strings.Builder
		err = errors.Join(err, r.WriteJSON(&all), cli.WriteFile(c.save, []byte(all.String()), cli.PrivateMode))
	}
	_, printed := io.WriteString(a.Stdout, text)
	return errors.Join(err, printed)
}

// agreeToRead prints the maximum cost of the questions and answers, and asks for agreement if it is not zero.
func agreeToRead(a *cli.App, cmd *cobra.Command, c *comparison, items []lab.Item, strategies []lab.Strategy, o *lab.ReaderOptions) error {
	n, u, err := lab.PlanInterview(cmd.Context(), items, strategies, o)
	if err != nil || u.Calls == 0 {
		return err
	}
	term.Printf(a.Stderr, "%s to read: at most %s\n", size.Plural(n, "session"), cli.UsageText(u))
	if u.USD == 0 && u.Unpriced == 0 || c.yes || c.maxUSD > 0 {
		return nil
	}
	if !term.IsTerminal(a.Stdin) {
		return cli.Usage(cmd, "a reader would spend money: agree with --yes, or limit it with --max-cost")
	}
	if !term.Confirm(a.Stdin, a.Stderr, "continue?") {
		return errors.New("not agreed; nothing was spent")
	}
	return nil
}

// writeReader writes a table for every budget.
func writeReader(w io.Writer, r *lab.ReaderReport, c *comparison, width int) {
	for _, budget := range r.Budgets {
		heads, rows := r.Table(budget)
		table := term.NewTable(heads...)
		for _, row := range rows {
			table.Row(row...)
		}
		printTable(w, table, "budget "+budget+": questions answered", c.output == "md", width)
	}
	term.Printf(w, "%s; %s asked and graded, %s read; %s. A right answer is a point, one that is half right half a point; wrong counts answers that\nclaim something else. In brackets a 95 %% interval over sessions; one reader a view: differences\nunder 0.05 are noise.\n",
		size.Plural(r.Sessions, "session"), plain.Line(r.Author), plain.Line(r.Reader), cli.UsageText(r.Usage))
	if c.asked.recall != "0" {
		term.Printf(w, "+ recall: may recall up to %s tokens of a session; recalled is their mean, in vain are recalls that returned nothing. Views without numbers have none.\n", c.asked.recall)
	}
	for i := range r.Answers {
		if x := &r.Answers[i]; x.Hinder != "" {
			term.Printf(w, "hindered by %s in %s: %s\n", x.Strategy, plain.Line(x.Session), plain.Line(x.Hinder))
		}
	}
}
