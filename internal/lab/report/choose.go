package report

import (
	"cmp"
	"slices"

	"github.com/condensehq/condense/internal/lab"
)

// Choose returns at most n rows of r whose details are worth including in the page, in the
// order of r.Rows. What all strategies made of one cut under one budget is taken together,
// as that is what a reader compares. Every mode and then every session gets one such group
// before one gets a second; smaller sessions come first, and budgets take turns. Rows
// without a result are left out.
func Choose(r *lab.Report, n int) []lab.Row {
	groups := rowGroups(r)
	slices.SortFunc(groups, func(a, b *rowGroup) int {
		return cmp.Or(cmp.Compare(a.turn, b.turn), cmp.Compare(a.rank, b.rank), cmp.Compare(a.rows[0], b.rows[0]))
	})
	var chosen []int
	for _, g := range groups {
		if len(chosen)+len(g.rows) <= n {
			chosen = append(chosen, g.rows...)
		}
	}
	slices.Sort(chosen)
	out := make([]lab.Row, 0, len(chosen))
	for _, i := range chosen {
		out = append(out, r.Rows[i])
	}
	return out
}

// A rowGroup is what the strategies made of a cut under a budget.
type rowGroup struct {
	rows []int // indices of Report.Rows
	rank int   // of the session in its mode, by size
	turn int   // of the group in its session
}

func rowGroups(r *lab.Report) []*rowGroup {
	type place struct{ session, budget, cut string }
	byPlace := map[place]*rowGroup{}
	bySession := map[string][]*rowGroup{}
	for i := range r.Rows {
		row := &r.Rows[i]
		if row.After == 0 && len(row.KindsAfter) == 0 {
			continue
		}
		at := place{row.Session, row.Budget, row.Cut}
		g := byPlace[at]
		if g == nil {
			g = &rowGroup{}
			byPlace[at] = g
			bySession[row.Session] = append(bySession[row.Session], g)
		}
		g.rows = append(g.rows, i)
	}
	sessions := slices.Clone(r.Sessions)
	slices.SortStableFunc(sessions, func(a, b lab.SessionInfo) int { return cmp.Compare(a.Tokens, b.Tokens) })
	ranks := map[string]int{} // by mode
	var out []*rowGroup
	for i := range sessions {
		list := bySession[sessions[i].Name]
		if len(list) == 0 {
			continue
		}
		rank := ranks[sessions[i].Mode]
		ranks[sessions[i].Mode]++
		for turn := range list {
			// From the middle, as budgets are given in order of size, and one further for
			// every session.
			g := list[(len(list)/2+rank+turn)%len(list)]
			g.rank, g.turn = rank, turn
			out = append(out, g)
		}
	}
	return out
}
