package report

import (
	"slices"

	"github.com/condensehq/condense/internal/lab"
)

// cleaned returns a copy of r in which every name and text is visible: names are in
// attributes and in what the script gets too, and must be the same everywhere.
func cleaned(r *lab.Report) *lab.Report {
	out := *r
	out.Strategies = each(r.Strategies, func(s *lab.StrategyInfo) { makeVisible(&s.Name, &s.About) })
	out.Modes = each(r.Modes, func(s *string) { makeVisible(s) })
	out.Sessions = each(r.Sessions, func(s *lab.SessionInfo) { makeVisible(&s.Name, &s.Source, &s.Mode) })
	out.Skipped = each(r.Skipped, func(s *lab.Skipped) { makeVisible(&s.Name, &s.Reason) })
	out.Rows = each(r.Rows, func(x *lab.Row) {
		makeVisible(&x.Strategy, &x.Session, &x.Source, &x.Mode, &x.Cut, &x.Provider, &x.Error)
	})
	out.Rounds = each(r.Rounds, func(x *lab.Round) { makeVisible(&x.Strategy) })
	out.Tables = each(r.Tables, func(t *lab.Table) {
		makeVisible(&t.Mode)
		t.Lines = each(t.Lines, func(l *lab.Line) { makeVisible(&l.Strategy) })
	})
	out.Differences = each(r.Differences, func(d *lab.Difference) { makeVisible(&d.Mode, &d.A, &d.B) })
	out.Verdicts = each(r.Verdicts, func(v *lab.Verdict) {
		makeVisible(&v.Mode, &v.Best, &v.Text)
		v.Ties = each(v.Ties, func(s *string) { makeVisible(s) })
	})
	out.Warnings = each(r.Warnings, func(x *lab.Warning) { makeVisible(&x.Strategy, &x.Text) })
	return &out
}

// each returns a copy of list in which clean changed every item.
func each[T any](list []T, clean func(*T)) []T {
	out := slices.Clone(list)
	for i := range out {
		clean(&out[i])
	}
	return out
}

func makeVisible(texts ...*string) {
	for _, t := range texts {
		*t = visible(*t)
	}
}
