package report

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/tokens"
)

// data is the JSON for the script of a comparison. Rows are stored by column, as there may be a hundred
// thousand of them.
type data struct {
	Kind       string           `json:"kind"` // comparison
	Strategies []strategyData   `json:"strategies"`
	Budgets    []string         `json:"budgets"`
	Modes      []string         `json:"modes"`
	Measures   []lab.Measure    `json:"measures"`
	Kinds      []tokens.Kind    `json:"kinds"`
	Folder     string           `json:"folder"` // common to all sessions and left out of their names
	Sessions   []sessionData    `json:"sessions"`
	Tables     []lab.Table      `json:"tables"`
	Pairs      []lab.Difference `json:"pairs"`
	Rounds     []roundData      `json:"rounds"`
	Rows       columns          `json:"rows"`
	RowsTotal  int              `json:"rows_total"`
	// Blocks maps a row to the ID of the element with the messages of its session.
	Blocks map[int]string `json:"blocks"`
}

type strategyData struct {
	Name  string `json:"name"`
	About string `json:"about,omitempty"`
	Bound bool   `json:"bound,omitempty"`
	Unfit bool   `json:"unfit,omitempty"`
}

type sessionData struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	Mode   string `json:"mode"`
}

type columns struct {
	Strategy []int                 `json:"strategy"` // index of data.Strategies, and so on
	Budget   []int                 `json:"budget"`
	Session  []int                 `json:"session"`
	Cut      []string              `json:"cut"`
	At       []int                 `json:"at"`
	Before   []int                 `json:"before"`
	Room     []int                 `json:"room"`
	After    []int                 `json:"after"`
	Outcome  []string              `json:"outcome"`
	Provider []string              `json:"provider"`
	Error    map[int]string        `json:"error"`
	Values   map[string][]*float64 `json:"values"`
}

// newData returns the data of r with at most maxRows rows, of complete sessions. The sessions in keep come
// first.
func newData(r *lab.Report, maxRows int, keep map[string]bool) *data {
	d := &data{
		Kind: "comparison", Strategies: []strategyData{}, Budgets: r.Budgets, Measures: r.Measures, Kinds: tokens.Kinds(),
		Tables: r.Tables, Pairs: r.Differences, Rounds: rounds(r), RowsTotal: len(r.Rows), Blocks: map[int]string{},
		Rows: columns{Error: map[int]string{}, Values: map[string][]*float64{}},
	}
	unfit := unfitStrategies(r)
	strategy, budget, session := map[string]int{}, map[string]int{}, map[string]int{}
	for i := range r.Strategies {
		s := &r.Strategies[i]
		strategy[s.Name] = i
		d.Strategies = append(d.Strategies, strategyData{s.Name, s.About, s.Bound, unfit[s.Name]})
	}
	for i, b := range r.Budgets {
		budget[b] = i
	}
	d.Modes = append(d.Modes, r.Modes...)
	d.Folder = folder(r)
	for i := range r.Sessions {
		s := &r.Sessions[i]
		session[s.Name] = i
		d.Sessions = append(d.Sessions, sessionData{strings.TrimPrefix(s.Name, d.Folder), s.Source, s.Mode})
	}
	chosen := wholeSessions(r, maxRows, keep)
	c := &d.Rows
	n := 0
	for i := range r.Rows {
		row := &r.Rows[i]
		if !chosen[row.Session] {
			continue
		}
		c.Strategy = append(c.Strategy, strategy[row.Strategy])
		c.Budget = append(c.Budget, budget[row.Budget])
		c.Session = append(c.Session, session[row.Session])
		c.Cut = append(c.Cut, row.Cut)
		c.At, c.Before = append(c.At, row.At), append(c.Before, row.Before)
		c.Room, c.After = append(c.Room, row.Room), append(c.After, row.After)
		c.Outcome, c.Provider = append(c.Outcome, string(row.Outcome)), append(c.Provider, row.Provider)
		if row.Error != "" {
			c.Error[n] = line(row.Error, 500)
		}
		for k := range r.Measures {
			name := r.Measures[k].Name
			var v *float64
			if x, ok := row.Values[name]; ok {
				x = significant(x)
				v = &x
			}
			c.Values[name] = append(c.Values[name], v)
		}
		n++
	}
	return d
}

// folder returns the common folder of the sessions.
func folder(r *lab.Report) string {
	names := make([]string, 0, len(r.Sessions))
	names = append(names, plain.Each(r.Sessions, func(x lab.SessionInfo) string { return x.Name })...)
	return commonFolder(names)
}

// commonFolder returns the longest common folder of names, or "" for a single one.
func commonFolder(names []string) string {
	if len(names) < 2 {
		return ""
	}
	common := names[0]
	for _, name := range names {
		for !strings.HasPrefix(name, common) {
			common = common[:len(common)-1]
		}
	}
	return common[:strings.LastIndexAny(common, `/\:`)+1]
}

// wholeSessions returns the sessions whose rows are included.
func wholeSessions(r *lab.Report, maxRows int, keep map[string]bool) map[string]bool {
	count := map[string]int{}
	for i := range r.Rows {
		count[r.Rows[i].Session]++
	}
	chosen, n := map[string]bool{}, 0
	for _, first := range []bool{true, false} {
		for i := range r.Sessions {
			name := r.Sessions[i].Name
			if keep[name] == first && n+count[name] <= maxRows {
				chosen[name] = true
				n += count[name]
			}
		}
	}
	return chosen
}

func unfitStrategies(r *lab.Report) map[string]bool {
	out := map[string]bool{}
	for _, w := range r.Warnings {
		if w.Unfit {
			out[w.Strategy] = true
		}
	}
	return out
}

// significant rounds x to five significant digits, more than a page shows.
func significant(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return 0
	}
	scale := math.Pow(10, 4-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*scale) / scale
}

// A roundData holds the means over the sessions that reached the round.
type roundData struct {
	Strategy string             `json:"strategy"`
	Round    int                `json:"round"`
	Sessions int                `json:"sessions"`
	Values   map[string]float64 `json:"values"` // panel, once, user, once_user, first_user, first_files
}

func rounds(r *lab.Report) []roundData {
	out := []roundData{}
	for i := range r.RoundLines {
		l := &r.RoundLines[i]
		d := roundData{Strategy: l.Strategy, Round: l.Round, Values: map[string]float64{}}
		for name, e := range l.Values {
			d.Values[name] = e.Mean
			d.Sessions = max(d.Sessions, e.Sessions)
		}
		out = append(out, d)
	}
	return out
}

// Choose returns at most n rows of r for details in the page, in the order of r.Rows. It keeps the rows of all
// strategies for the same cut and budget together, as these are compared. Every mode, then every session, gets one
// such group before any gets a second. Smaller sessions come first, and budgets take turns. Rows without a result are
// left out.
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
	out = append(out, plain.Each(chosen, func(i int) lab.Row { return r.Rows[i] })...)
	return out
}

// A rowGroup holds the rows of all strategies for one cut and budget.
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
			// Begin in the middle, as budgets are usually sorted by size, and shift by one for
			// every session.
			g := list[(len(list)/2+rank+turn)%len(list)]
			g.rank, g.turn = rank, turn
			out = append(out, g)
		}
	}
	return out
}
