package main

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"path/filepath"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
)

// A summary is arena.json. Numbers are absent if they were not measured.
type summary struct {
	Format   int              `json:"format"`   // 1
	Sessions map[string]int   `json:"sessions"` // by step
	Rows     []entry          `json:"rows"`     // ours, then the programs
	Pairs    []comparison     `json:"pairs"`    // programs less ours
	Losses   []comparison     `json:"losses"`   // of Pairs, those that are shown to be above zero
	Real     map[string]entry `json:"real"`     // at recorded compactions, at their size
	Second   []second         `json:"second"`
}

// An entry has the means of a program.
type entry struct {
	lab.Peer
	Left     *float64 `json:"left,omitempty"`     // share of the tokens, at cuts
	Needed   *float64 `json:"needed,omitempty"`   // panel
	User     *float64 `json:"user,omitempty"`     // user's words
	Wrong    *float64 `json:"wrong,omitempty"`    // share of what stands as the user's that is somebody else's
	Replaced *float64 `json:"replaced,omitempty"` // share of the lines of files that are shown only as they were
	Outcomes *float64 `json:"outcomes,omitempty"` // identifiers of what was started or created that are kept
	Anchors  *float64 `json:"anchors,omitempty"`  // lines of the next edits
	Evidence *float64 `json:"evidence,omitempty"` // gold turns
	Canaries *float64 `json:"canaries,omitempty"` // after the last round
	Rounds   *float64 `json:"rounds,omitempty"`   // panel after three rounds
	Faults   *float64 `json:"faults,omitempty"`   // share of the results that an API would refuse
	Nothing  int      `json:"nothing,omitempty"`  // cuts without a result
	Saved    *float64 `json:"saved,omitempty"`    // share of the cost of a whole session
	There    *float64 `json:"there,omitempty"`    // share of the used content that was there when it was used
}

// A comparison is a program less ours, paired, mean over projects with a 95 % interval.
type comparison struct {
	Measure  string  `json:"measure"`
	Peer     string  `json:"peer"`
	Ours     string  `json:"ours"` // with ~, at the size that the program left
	Own      float64 `json:"own"`  // mean of ours over sessions
	Mean     float64 `json:"mean"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Sessions int     `json:"sessions"`
	Projects int     `json:"projects"`
	Ahead    int     `json:"ahead"` // 1: the program; -1: ours; 0: no difference shown
}

// values are by session and place, for each strategy.
type values map[string]map[[2]string]float64

func (v values) put(strategy, session, place string, x float64) {
	if v[strategy] == nil {
		v[strategy] = map[[2]string]float64{}
	}
	v[strategy][[2]string{session, place}] = x
}

// mean returns the mean over sessions; nil if there is none.
func (v values) mean(strategy string) *float64 {
	by := map[string][]float64{}
	for k, x := range v[strategy] {
		by[k[0]] = append(by[k[0]], x)
	}
	if len(by) == 0 {
		return nil
	}
	m := mean(slices.Collect(maps.Values(meansOf(by))))
	return &m
}

func meansOf(by map[string][]float64) map[string]float64 {
	out := map[string]float64{}
	for k, xs := range by {
		out[k] = mean(xs)
	}
	return out
}

func mean(xs []float64) float64 {
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(max(1, len(xs)))
}

// less returns a less b, with the interval of [interval] over projects.
func (v values) less(a, b string) (comparison, bool) {
	by := map[string][]float64{}
	for k, x := range v[a] {
		if y, ok := v[b][k]; ok {
			by[k[0]] = append(by[k[0]], x-y)
		}
	}
	c := comparison{Peer: a, Ours: b, Sessions: len(by)}
	if len(by) == 0 {
		return c, false
	}
	projects := map[string][]float64{}
	for session, x := range meansOf(by) {
		projects[projectOf(session)] = append(projects[projectOf(session)], x)
	}
	var xs []float64
	means := meansOf(projects)
	for _, k := range slices.Sorted(maps.Keys(means)) {
		xs = append(xs, means[k])
	}
	c.Projects, c.Mean = len(xs), mean(xs)
	c.Low, c.High = interval(xs)
	if c.Projects >= 6 && c.Low > 1e-9 {
		c.Ahead = 1
	} else if c.Projects >= 6 && c.High < -1e-9 {
		c.Ahead = -1
	}
	return c, true
}

// projectOf returns the project in the name of a session's file, PROJECT--NAME, else its name.
func projectOf(session string) string {
	base := filepath.Base(session)
	project, _, _ := strings.Cut(base, "--")
	return cmp.Or(project, base)
}

// interval returns the 95 % interval of the centre of xs, which are in the order of their projects. It is exact for symmetric
// distributions and draws nothing: of n values, the centre is equally likely in each of the 2^n gaps between the means of all subsets
// that are not empty (J. Hartigan, "Using subsample values as typical values", 1969). Projects beyond 14 share groups.
func interval(xs []float64) (low, high float64) {
	n := min(len(xs), most)
	groups := make([][]float64, n)
	for i, x := range xs {
		groups[i%n] = append(groups[i%n], x)
	}
	sums, means := make([]float64, 1<<n), make([]float64, 0, 1<<n)
	for set := 1; set < 1<<n; set++ {
		sums[set] = sums[set&(set-1)] + mean(groups[bits.TrailingZeros(uint(set))])
		means = append(means, sums[set]/float64(bits.OnesCount(uint(set))))
	}
	slices.Sort(means)
	k := max(1, (1<<n)/40)
	return means[k-1], means[len(means)-k]
}

// evidenceValues returns the kept shares of questions.
func evidenceValues(r *lab.Report) values {
	out := values{}
	for _, e := range r.Evidence {
		for _, q := range e.Questions {
			gold, kept := 0, 0
			for _, role := range []core.Role{core.RoleUser, core.RoleAssistant, core.RoleTool} {
				gold, kept = gold+q.Gold[role], kept+q.Kept[role]
			}
			if gold > 0 {
				out.put(e.Strategy, e.Session, q.ID, float64(kept)/float64(gold))
			}
		}
	}
	return out
}

func summarize(r *reports) *summary {
	s := &summary{Format: 1, Real: map[string]entry{}, Sessions: map[string]int{
		"cuts": len(r.cuts.Sessions), "anchors": len(r.anchors.Sessions), "evidence": len(r.evidence.Sessions),
		"canaries": len(r.canaries.Sessions), "recorded": len(r.recorded.Sessions), "money": len(r.money.Sessions),
	}}
	measured := map[string]values{
		"anchors": evidenceValues(&r.anchors), "evidence": evidenceValues(&r.evidence),
		"rounds": roundValues(&r.cuts), "canaries": canaryValues(&r.canaries),
	}
	measured["saved"], measured["there"] = moneyValues(&r.money)
	for _, m := range []string{"panel", "user", "wrong_author", "superseded", "outcomes", "gain", "artefacts", "errors", "recent", "kept", "faults"} {
		measured[m] = values{}
		for i := range r.cuts.Rows {
			row := &r.cuts.Rows[i]
			x, ok := row.Values[m]
			if m == "faults" { // absent for none
				x, ok = min(1, x), true
			}
			if ok {
				measured[m].put(row.Strategy, row.Session, row.Cut, x)
			}
		}
	}
	add := func(p lab.Peer) {
		of := func(measure string) *float64 { return measured[measure].mean(p.Name) }
		e := entry{
			Peer: p, Left: of("kept"), Needed: of("panel"), User: of("user"), Faults: of("faults"), Anchors: of("anchors"), Evidence: of("evidence"),
			Wrong: of("wrong_author"), Replaced: of("superseded"), Outcomes: of("outcomes"),
			Rounds: of("rounds"), Canaries: of("canaries"), Saved: of("saved"), There: of("there"),
		}
		for i := range r.cuts.Rows {
			row := &r.cuts.Rows[i]
			if row.Strategy == p.Name && (row.Outcome == core.OutcomeFailed || row.Outcome == core.OutcomeRejected) {
				e.Nothing++
			}
		}
		s.Rows = append(s.Rows, e)
	}
	for _, name := range []string{ours, "smart/headtail"} {
		add(lab.Peer{Name: name, Program: "condense", Version: "this commit", Had: "here"})
	}
	for _, p := range r.cuts.Peers {
		p.Command = nil // paths of this machine
		add(p)
		if p.Missing != "" {
			continue
		}
		for _, m := range []string{"panel", "anchors", "evidence", "user", "gain", "artefacts", "errors", "recent"} {
			s.pair(m, measured[m], p.Name, ours+"~"+p.Name)
		}
		for _, m := range []string{"canaries", "rounds", "saved", "there"} {
			s.pair(m, measured[m], p.Name, ours)
		}
	}
	slices.SortFunc(s.Losses, func(x, y comparison) int { return cmp.Compare(y.Mean, x.Mean) })
	s.real(&r.recorded)
	return s
}

func (s *summary) pair(measure string, v values, peer, own string) {
	c, ok := v.less(peer, own)
	if !ok {
		return
	}
	c.Measure, c.Own = measure, *v.mean(own)
	s.Pairs = append(s.Pairs, c)
	if c.Ahead > 0 {
		s.Losses = append(s.Losses, c)
	}
}

func roundValues(r *lab.Report) values {
	out := values{}
	for _, x := range r.Rounds {
		if x.Round == 3 && x.Panel != nil {
			out.put(x.Strategy, x.Session, "", *x.Panel)
		}
	}
	return out
}

// canaryValues returns the shares of the planted sentences after the last round, without hostile and neutral ones.
func canaryValues(r *lab.Report) values {
	sums := map[[2]string][2]float64{}
	for _, c := range r.Canaries {
		n := len(c.Planted)
		if n == 0 || strings.Contains(string(c.Type), "hostile") || strings.Contains(string(c.Type), "neutral") {
			continue
		}
		k := [2]string{c.Strategy, c.Session}
		x := sums[k]
		sums[k] = [2]float64{x[0] + float64(c.Kept[n-1]), x[1] + float64(c.Planted[n-1])}
	}
	out := values{}
	for k, x := range sums {
		if x[1] > 0 {
			out.put(k[0], k[1], "", x[0]/x[1])
		}
	}
	return out
}

// moneyValues returns the saved shares of the cost of whole sessions, and the shares of the used content that was there then.
func moneyValues(r *lab.ReplayReport) (saved, there values) {
	saved, there = values{}, values{}
	for i := range r.Plays {
		p := &r.Plays[i]
		if p.Untouched > 0 {
			saved.put(p.Policy, p.Session, "", 1-p.USD/p.Untouched)
		}
		if p.Had != nil {
			there.put(p.Policy, p.Session, "", *p.Had)
		}
	}
	return saved, there
}

// real adds the means at recorded compactions.
func (s *summary) real(r *lab.Report) {
	panel, user, kept := values{}, values{}, values{}
	for i := range r.Rows {
		row := &r.Rows[i]
		for name, v := range map[string]values{"panel": panel, "user": user, "kept": kept} {
			if x, ok := row.Values[name]; ok {
				v.put(row.Strategy, row.Session, row.Cut, x)
			}
		}
	}
	for name := range panel {
		s.Real[name] = entry{Left: kept.mean(name), Needed: panel.mean(name), User: user.mean(name)}
	}
}

func number(x *float64) string {
	if x == nil {
		return "–"
	}
	return fmt.Sprintf("%.3f", *x)
}
