package report

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/tokens"
)

// A scope holds the tables of one budget and mode.
type scope struct {
	Budget, Mode   string
	Sessions, Cuts int
	Groups         []measureGroup
	Kinds          []tokens.Kind
	KindRows       []kindRow
	Priced         bool
}

// A measureGroup is a table of some measures.
type measureGroup struct {
	ID, Title string
	Measures  []*lab.Measure
	Rows      []measureRow
	Outcomes  bool // it has the columns Failed and Over
}

type measureRow struct {
	name
	Cells                        []cell
	Sessions, Cuts, Failed, Over int
}

// groups are the tables of measures. The last has all measures that the others do not name.
var groups = []struct{ id, title, measures string }{
	{"kept", "What is kept", "panel far cfrr fnr4 rw grounded plain user artefacts errors recent"},
	{"going-on", "Going on", "gain anchors decisions reachable torn legible"},
	{"cost", "Size, time and cost", "kept size own ms calls usd payback head_messages head_bytes"},
	{"safety", "Safety", ""},
}

func (b *builder) scope(t *lab.Table) scope {
	s := scope{Budget: t.Budget, Mode: t.Mode}
	for i := range t.Lines {
		s.Sessions, s.Cuts = max(s.Sessions, t.Lines[i].Sessions), max(s.Cuts, t.Lines[i].Cuts)
		s.Priced = s.Priced || t.Lines[i].Usage.Calls > 0
	}
	var named []string
	for _, g := range groups {
		named = append(named, strings.Fields(g.measures)...)
	}
	for _, g := range groups {
		out := measureGroup{ID: g.id, Title: g.title, Outcomes: g.measures == ""}
		for i := range b.report.Measures {
			m := &b.report.Measures[i]
			if slices.Contains(strings.Fields(g.measures), m.Name) || g.measures == "" && !slices.Contains(named, m.Name) {
				out.Measures = append(out.Measures, m)
			}
		}
		for i := range t.Lines {
			x := &t.Lines[i]
			row := measureRow{name: b.name(x.Strategy, x.Bound), Sessions: x.Sessions, Cuts: x.Cuts, Failed: x.Failed, Over: x.Over}
			row.Cells = append(row.Cells, plain.Each(out.Measures, func(m *lab.Measure) cell { return estimate(m, x.Values) })...)
			out.Rows = append(out.Rows, row)
		}
		s.Groups = append(s.Groups, out)
	}
	s.Kinds, s.KindRows = b.kinds(t)
	return s
}

// A kindRow is a row of the table of kinds.
type kindRow struct {
	name
	Cells []kindCell
	Total kindCell
}

// A kindCell is the number of tokens of a kind that are left.
type kindCell struct {
	Defined bool
	Tokens  string
	Left    string // percent of the tokens before
	Value   string // to sort by
}

// kinds returns the kinds that occur and the tokens of each that every strategy leaves. Cuts at which a strategy
// failed are not counted.
func (b *builder) kinds(t *lab.Table) ([]tokens.Kind, []kindRow) {
	var kinds []tokens.Kind
	for _, k := range tokens.Kinds() {
		for i := range t.Lines {
			if t.Lines[i].KindsBefore[k] > 0 || t.Lines[i].KindsAfter[k] > 0 {
				kinds = append(kinds, k)
				break
			}
		}
	}
	var rows []kindRow
	for i := range t.Lines {
		x := &t.Lines[i]
		if x.Failed == x.Cuts {
			continue
		}
		row := kindRow{name: b.name(x.Strategy, x.Bound)}
		before, after := 0, 0
		for _, k := range kinds {
			row.Cells = append(row.Cells, left(x.KindsBefore[k], x.KindsAfter[k]))
			before += x.KindsBefore[k]
			after += x.KindsAfter[k]
		}
		row.Total = left(before, after)
		rows = append(rows, row)
	}
	return kinds, rows
}

func left(before, after int) kindCell {
	if before == 0 && after == 0 {
		return kindCell{}
	}
	c := kindCell{Defined: true, Tokens: thousands(after), Value: strconv.Itoa(after)}
	if before > 0 {
		c.Left = strconv.Itoa(int(math.Round(100*float64(after)/float64(before)))) + " %"
	}
	return c
}

// A roundRow is a row of the table of repeated condensations.
type roundRow struct {
	Strategy        string
	Round, Sessions int
	Cells           []cell
}

// roundColumns are the columns of that table.
var roundColumns = []string{"panel", "once", "user", "once_user", "first_user", "first_files"}

func roundRows(r *lab.Report) []roundRow {
	var out []roundRow
	for i := range r.RoundLines {
		l := &r.RoundLines[i]
		row := roundRow{Strategy: l.Strategy, Round: l.Round}
		for _, name := range roundColumns {
			row.Sessions = max(row.Sessions, l.Values[name].Sessions)
			row.Cells = append(row.Cells, estimate(&lab.Measure{Name: name, Unit: "share"}, l.Values))
		}
		out = append(out, row)
	}
	return out
}

// A canaryTable has the surviving shares of planted sentences under one budget.
type canaryTable struct {
	Budget string
	Rounds []int // 1 and up
	Rows   []canaryRow
}

type canaryRow struct {
	Strategy, Type string
	Sessions       int
	Failed         int
	Cells          []cell // kept, by round
	FirstLost      int    // 0: never
	Stale, Misled  cell
}

func canaryTables(r *lab.Report) []canaryTable {
	var out []canaryTable
	for i := range r.CanaryLines {
		l := &r.CanaryLines[i]
		if len(out) == 0 || out[len(out)-1].Budget != l.Budget {
			out = append(out, canaryTable{Budget: l.Budget})
		}
		t := &out[len(out)-1]
		for len(t.Rounds) < len(l.Kept) {
			t.Rounds = append(t.Rounds, len(t.Rounds)+1)
		}
		row := canaryRow{Strategy: l.Strategy, Type: string(l.Type), Failed: l.Failed, FirstLost: l.FirstLost, Stale: shareCell(l.Stale), Misled: shareCell(l.Misled)}
		if len(l.Kept) > 0 {
			row.Sessions = l.Kept[0].Sessions
		}
		for k := range l.Kept {
			row.Cells = append(row.Cells, shareCell(&l.Kept[k]))
		}
		t.Rows = append(t.Rows, row)
	}
	for i := range out { // some strategies have fewer rounds
		for k := range out[i].Rows {
			row := &out[i].Rows[k]
			row.Cells = append(row.Cells, make([]cell, len(out[i].Rounds)-len(row.Cells))...)
		}
	}
	return out
}

func shareCell(e *lab.Estimate) cell {
	if e == nil {
		return cell{}
	}
	return estimate(&lab.Measure{Name: "share", Unit: "share"}, map[string]lab.Estimate{"share": *e})
}

// An evidenceRow has the shares of gold evidence that a strategy keeps, by budget.
type evidenceRow struct {
	Strategy, What string
	Questions      int
	Cells          []cell
}

func evidenceRows(r *lab.Report) []evidenceRow {
	var out []evidenceRow
	for _, row := range r.EvidenceRows() {
		x := evidenceRow{Strategy: row.Strategy, What: row.What, Questions: row.Questions}
		for _, b := range r.EvidenceBudgets() {
			x.Cells = append(x.Cells, estimate(&lab.Measure{Name: b, Unit: "share"}, row.Budgets))
		}
		out = append(out, x)
	}
	return out
}
