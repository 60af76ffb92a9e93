package htmlreport

import (
	"cmp"
	"slices"

	"github.com/condensehq/condense/compare"
)

// Choose returns at most n rows of r whose details are worth to stand in the page, in the
// order of r.Rows. Sessions are taken whole, as the strategies on the same messages are
// what a reader compares and their text is embedded once; every mode gets a session before
// one gets a second, smaller sessions first. Rows without a result are left out.
func Choose(r *compare.Report, n int) []compare.Row {
	rows := map[string][]int{}
	for i := range r.Rows {
		if row := &r.Rows[i]; len(row.KindsAfter) > 0 || row.After > 0 {
			rows[row.Session] = append(rows[row.Session], i)
		}
	}
	byMode := map[string][]compare.SessionInfo{}
	for i := range r.Sessions {
		s := r.Sessions[i]
		if len(rows[s.Name]) > 0 {
			byMode[s.Mode] = append(byMode[s.Mode], s)
		}
	}
	rank := map[string]int{}
	var order []compare.SessionInfo
	for _, list := range byMode {
		slices.SortFunc(list, func(a, b compare.SessionInfo) int {
			return cmp.Or(cmp.Compare(a.Tokens, b.Tokens), cmp.Compare(a.Name, b.Name))
		})
		for i, s := range list {
			rank[s.Name] = i
			order = append(order, s)
		}
	}
	slices.SortFunc(order, func(a, b compare.SessionInfo) int {
		return cmp.Or(rank[a.Name]-rank[b.Name], cmp.Compare(a.Mode, b.Mode), cmp.Compare(a.Name, b.Name))
	})
	var chosen []int
	for _, s := range order {
		if len(chosen)+len(rows[s.Name]) <= n {
			chosen = append(chosen, rows[s.Name]...)
		}
	}
	slices.Sort(chosen)
	out := make([]compare.Row, 0, len(chosen))
	for _, i := range chosen {
		out = append(out, r.Rows[i])
	}
	return out
}
