package htmlreport

import (
	"slices"

	"github.com/condensehq/condense/compare"
)

// cleaned returns a copy of r in which every name and text is visible: names stand in
// attributes and in what the script gets too, and must be the same everywhere.
func cleaned(r *compare.Report) *compare.Report {
	out := *r
	out.Strategies = slices.Clone(r.Strategies)
	for i := range out.Strategies {
		makeVisible(&out.Strategies[i].Name, &out.Strategies[i].About)
	}
	out.Modes = slices.Clone(r.Modes)
	for i := range out.Modes {
		makeVisible(&out.Modes[i])
	}
	out.Sessions = slices.Clone(r.Sessions)
	for i := range out.Sessions {
		s := &out.Sessions[i]
		makeVisible(&s.Name, &s.Source, &s.Mode)
	}
	out.Skipped = slices.Clone(r.Skipped)
	for i := range out.Skipped {
		makeVisible(&out.Skipped[i].Name, &out.Skipped[i].Reason)
	}
	out.Rows = slices.Clone(r.Rows)
	for i := range out.Rows {
		x := &out.Rows[i]
		makeVisible(&x.Strategy, &x.Session, &x.Source, &x.Mode, &x.Cut, &x.Provider, &x.Error)
	}
	out.Rounds = slices.Clone(r.Rounds)
	for i := range out.Rounds {
		makeVisible(&out.Rounds[i].Strategy)
	}
	out.Tables = slices.Clone(r.Tables)
	for i := range out.Tables {
		t := &out.Tables[i]
		makeVisible(&t.Mode)
		t.Lines = slices.Clone(t.Lines)
		for k := range t.Lines {
			makeVisible(&t.Lines[k].Strategy)
		}
	}
	out.Differences = slices.Clone(r.Differences)
	for i := range out.Differences {
		d := &out.Differences[i]
		makeVisible(&d.Mode, &d.A, &d.B)
	}
	out.Verdicts = slices.Clone(r.Verdicts)
	for i := range out.Verdicts {
		v := &out.Verdicts[i]
		makeVisible(&v.Mode, &v.Best, &v.Text)
		v.Ties = slices.Clone(v.Ties)
		for k := range v.Ties {
			makeVisible(&v.Ties[k])
		}
	}
	out.Warnings = slices.Clone(r.Warnings)
	for i := range out.Warnings {
		makeVisible(&out.Warnings[i].Strategy, &out.Warnings[i].Text)
	}
	return &out
}

func makeVisible(texts ...*string) {
	for _, t := range texts {
		*t = visible(*t)
	}
}
