package comparecmd

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/plain"
)

// searchEvidence measures the search.
func searchEvidence(a *cli.App, cmd *cobra.Command, c *comparison, paths []string) error {
	for _, name := range []string{"strategies", "budgets", "windows", "reader", "author", "rounds", "against", "fail-on", "save", "write-modes"} {
		if cmd.Flags().Changed(name) {
			return cli.Usage(cmd, "--%s has no meaning with --search", name)
		}
	}
	if c.output != "table" && c.output != "md" && c.output != "json" {
		return cli.Usage(cmd, "--output: with --search there are table, md and json")
	}
	items, err := sessionsAt(cmd, paths)
	if err != nil {
		return err
	}
	r, err := lab.Search(cmd.Context(), items, c.seed)
	if err != nil {
		return err
	}
	for _, s := range r.Skipped {
		term.Printf(a.Stderr, "skipped %s: %s\n", s.Name, plain.Line(s.Reason))
	}
	if c.output == "json" {
		return term.PrintJSON(a.Stdout, r)
	}
	var b strings.Builder
	writeSearch(&b, r, c.output == "md", term.Width(a.Stdout))
	_, printed := io.WriteString(a.Stdout, b.String())
	return errors.Join(err, printed)
}

func writeSearch(w io.Writer, r *lab.SearchReport, markdown bool, width int) {
	cell := func(e *lab.Estimate) string {
		if e == nil {
			return ""
		}
		return fmt.Sprintf("%.3f ±%.3f", e.Mean, (e.High-e.Low)/2)
	}
	t := term.NewTable("ability", ">questions", ">recall at 5", ">at 10", ">session at 1", ">at 5")
	for i := range r.Lines {
		l := &r.Lines[i]
		name := l.Ability
		if name == "" {
			name = "all questions"
		}
		t.Row(name, l.Questions, cell(&l.At5), cell(&l.At10), cell(l.Session1), cell(l.Session5))
	}
	printTable(w, t, "messages that answer questions, found by search", markdown, width)
	term.Printf(w, "\nMeans over questions, with the half width of the 95 %% interval over conversations. Median times: %.1f ms to read a conversation,\n%.1f ms to answer a question.\n", r.Indexed, r.Answered)
}
