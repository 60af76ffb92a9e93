package main

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/report"
)

// shownRows is how many results a page shows message by message.
const shownRows = 300

// writeHTML writes r as a page. The evidence says where its sessions are; without it, as of
// shards that were put together, the page has numbers only.
func (a *app) writeHTML(ctx context.Context, w io.Writer, c *comparison, r *lab.Report, e *evidence) error {
	var details []*lab.Detail
	if e != nil && ctx.Err() == nil { // who interrupts does not want to wait
		// What asks a language model is left out: to show it would be to pay for it again.
		rows := slices.DeleteFunc(report.Choose(r, shownRows), func(row lab.Row) bool { return row.Usage.Calls > 0 })
		p := a.newProgress(c.quiet)
		p.doing = "making the page: "
		opts := *e.opts
		opts.Progress = p.show
		var err error
		details, err = lab.Examine(ctx, e.items, e.set.Strategies, rows, &opts)
		p.end()
		if err != nil {
			return err
		}
	}
	return report.Write(w, r, details, &report.Options{Command: commandLine(os.Args)})
}

// commandLine returns args as they could be typed.
func commandLine(args []string) string {
	words := slices.Clone(args)
	words[0] = "condense"
	for i, w := range words {
		if w == "" || strings.ContainsAny(w, " \t\n\"'\\${}()[]<>|&;*?!`#~") {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
