package servecmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/lab/online"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/live"
)

func statsCommand(a *cli.App) *cobra.Command {
	var file string
	var asJSON bool
	var top int
	cmd := &cobra.Command{
		Use: "stats", Short: "Show what condense saved in agents' conversations", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if top < 0 {
				return cli.Usage(cmd, "--top: %d is negative", top)
			}
			c, err := serving(cmd, a, map[string]string{"serve.store": file})
			if err != nil {
				return err
			}
			path, err := kept(c, "", "nothing is kept; ask the running gateway: /condense/status at its admin address", neverUsed)
			if err != nil {
				return err
			}
			s, err := live.StoredStats(cmd.Context(), path)
			if err != nil {
				return err
			}
			conversations, err := online.Stored(cmd.Context(), path)
			if err != nil {
				return err
			}
			modes := online.Modes(conversations)
			if asJSON {
				return term.PrintJSON(a.Stdout, struct {
					live.Stats

					Modes         []online.Mode      `json:"modes"`
					Conversations []*online.Evidence `json:"conversations"` // with epochs
				}{s, modes, conversations})
			}
			printStats(a.Stdout, &s, top)
			printModes(a.Stdout, modes)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "store", "", "`file` or database that the gateways keep their state in (default: serve.store)")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.IntVar(&top, "top", 10, "how many kinds of recalled content to list; 0 lists all")
	return cmd
}

func printStats(w io.Writer, s *live.Stats, top int) {
	if s.Requests == 0 && s.Recalls == 0 {
		term.Printf(w, "no requests in the last 30 days\n")
		return
	}
	t := &s.Tokens
	term.Printf(w, "since %s%s: %s, %s, %s\n", s.Since.Format("2006-01-02 15:04"), asOf(s), size.Plural(s.Requests, "request"), size.Plural(s.EpochCount, "condensation"), size.Plural(s.Recalls, "recall"))
	table := term.NewTable("", ">tokens")
	table.Row("received, at most a window each", t.Received)
	table.Row("sent to vendors", t.Sent)
	table.Row("saved", t.Saved)
	table.Row("recalled", t.Recalled)
	table.Row("saved, less recalled", t.Net)
	table.Row("read from caches", t.CacheRead)
	table.Row("written to caches", t.CacheWrite)
	table.Row("answered", t.Output)
	_ = term.PrintText(w, "\n"+table.Text("  ")+"\n") // like Printf, it ignores a broken pipe
	if faults := slices.Concat(remarks(s), unsure(s.Windows), failures(s.Attempts), unreachable(s.Unreachable)); len(faults) > 0 {
		_ = term.PrintText(w, "\n  "+strings.Join(faults, "\n  ")+"\n")
	}
	if len(s.Recalled) == 0 {
		return
	}
	table = term.NewTable("recalled most", "left out by", ">times", ">tokens")
	for i, r := range s.Recalled {
		if top > 0 && i == top {
			break
		}
		table.Row(r.What, cmp.Or(r.Pass, "not known"), r.Count, r.Tokens)
	}
	_ = term.PrintText(w, "\n"+table.Text("  ")+"\n") // like Printf, it ignores a broken pipe
	if more := len(s.Recalled) - top; top > 0 && more > 0 {
		term.Printf(w, "  and %s more; --top 0 lists all\n", size.Plural(more, "kind"))
	}
}

// asOf says when the latest numbers were saved.
func asOf(s *live.Stats) string {
	if s.AsOf.IsZero() {
		return ""
	}
	return ", as of " + s.AsOf.Format("2006-01-02 15:04:05")
}

// remarks are remarks below the table: missing numbers, and numbers that no vendor reported.
func remarks(s *live.Stats) []string {
	var lines []string
	if o := s.Observed; o != nil {
		lines = append(lines, fmt.Sprintf("only observed, nothing was changed: %s would have been made, and %s tokens and %s saved", size.Plural(o.Epochs, "condensation"), size.Group(o.Saved), size.Dollars(o.CostSaved, 2)))
	}
	if s.Unpriced > 0 {
		lines = append(lines, size.Plural(s.Unpriced, "request")+" to models of unknown price")
	}
	if s.Estimated > 0 {
		lines = append(lines, size.Plural(s.Estimated, "request")+" estimated, because the vendor did not report tokens")
	}
	if s.Accounts != nil {
		lines = append(lines, accounts(s.Accounts))
	}
	return lines
}

// printModes prints the results of epochs, by mode.
func printModes(w io.Writer, modes []online.Mode) {
	worth := term.NewTable("epochs of", ">number", ">tokens before", ">after", ">turns to pay", ">measured", ">have paid", ">saved", ">recalls")
	for i := range modes {
		m := &modes[i]
		if m.Epochs == 0 {
			continue
		}
		name := cmp.Or(m.Mode, "all modes")
		if m.Observed {
			name += ", only observed"
		}
		paid, saved := "-", "-"
		if priced := m.Epochs - m.Unpriced; priced > 0 {
			paid, saved = fmt.Sprintf("%d of %d", m.Paid, priced), size.Dollars(m.Saved, 4)
		}
		if m.Observed && saved != "-" {
			saved = "would be " + saved
		}
		worth.Row(name, m.Epochs, m.Before, m.After, turns(m.Predicted), turns(m.PaidAfter), paid, saved, m.Recalls)
	}
	if !slices.ContainsFunc(modes, func(m online.Mode) bool { return m.Epochs > 0 }) {
		return
	}
	_ = term.PrintText(w, "\n"+worth.Text("  ")+"\n")
}

func turns(n float64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", n)
}
