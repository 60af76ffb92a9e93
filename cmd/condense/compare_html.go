package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/condensehq/condense/compare"
	"github.com/condensehq/condense/compare/htmlreport"
)

// shownRows is how many results a page shows message by message.
const shownRows = 300

// writeHTML writes r as a page. The evidence says where its sessions are; without it, as of
// shards that were put together, the page has numbers only.
func (a *app) writeHTML(ctx context.Context, w io.Writer, r *compare.Report, e *evidence) error {
	var details []*compare.Detail
	if e != nil && ctx.Err() == nil { // who interrupts does not want to wait
		var err error
		if details, err = e.details(ctx, r); err != nil {
			return err
		}
	}
	return htmlreport.Write(w, r, details, &htmlreport.Options{Command: commandLine(os.Args)})
}

// details condenses the chosen results once more. Those of strategies that ask a language
// model are left out: to show them would be to pay for them again.
func (e *evidence) details(ctx context.Context, r *compare.Report) ([]*compare.Detail, error) {
	items := map[string]compare.Item{}
	for _, it := range e.items {
		items[it.Name] = it
	}
	strategies := map[string]compare.Strategy{}
	for _, s := range e.strategies {
		strategies[s.Name] = s
	}
	for _, s := range r.Strategies {
		if s.Bound {
			strategies[s.Name] = compare.Strategy{Name: s.Name}
		}
	}
	var out []*compare.Detail
	for _, row := range htmlreport.Choose(r, shownRows) {
		if row.Usage.Calls > 0 {
			continue
		}
		d, err := compare.Examine(ctx, items[row.Session], strategies[row.Strategy], row.Budget, row.Cut, e.opts)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", row.Session, row.Strategy, err)
		}
		out = append(out, d)
	}
	return out, nil
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
