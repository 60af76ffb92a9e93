package lab

import (
	"fmt"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
)

// An EvidenceLine is the mean share of the gold turns that a strategy keeps, over questions, with an interval over
// conversations.
type EvidenceLine struct {
	Strategy string `json:"strategy"`
	Budget   string `json:"budget"`
	// Ability and Role select questions, or some of their turns; at most one is set.
	Ability   string    `json:"ability,omitempty"`
	Role      core.Role `json:"role,omitempty"`
	Questions int       `json:"questions"`
	Kept      Estimate  `json:"kept"` // its sessions are conversations
	// Left is the remaining share of the tokens; only for all questions together.
	Left *Estimate `json:"left,omitempty"`
	// Failed counts conversations in which a provider failed, Over conversations whose result is above 1.03 of the
	// budget, in all runs.
	Failed int `json:"failed,omitempty"`
	Over   int `json:"over,omitempty"`
}

// evidenceLines returns the means over questions: of all, by role and by ability.
func (a *analysis) evidenceLines() []EvidenceLine {
	if len(a.Evidence) == 0 {
		return nil
	}
	type key struct{ strategy, budget string }
	rows := map[key][]*Evidence{}
	var budgets, abilities []string
	for i := range a.Evidence {
		e := &a.Evidence[i]
		rows[key{e.Strategy, e.Budget}] = append(rows[key{e.Strategy, e.Budget}], e)
		if !slices.Contains(budgets, e.Budget) {
			budgets = append(budgets, e.Budget)
		}
		for k := range e.Questions {
			if ability := e.Questions[k].Ability; ability != "" && !slices.Contains(abilities, ability) {
				abilities = append(abilities, ability)
			}
		}
	}
	slices.Sort(abilities)
	var out []EvidenceLine
	for _, b := range budgets {
		for _, s := range a.compared() {
			of := rows[key{s, b}]
			lines := []EvidenceLine{{}, {Role: core.RoleUser}, {Role: core.RoleAssistant}, {Role: core.RoleTool}}
			lines = append(lines, plain.Each(abilities, func(ability string) EvidenceLine { return EvidenceLine{Ability: ability} })...)
			for i, l := range lines {
				l.Strategy, l.Budget = s, b
				if i == 0 {
					a.evidenceSizes(&l, of)
				}
				if a.evidenceKept(&l, of) || l.Failed > 0 {
					out = append(out, l)
				}
			}
		}
	}
	return out
}

// evidenceWarnings returns a warning for each strategy and budget with conversations in which it failed or missed the
// budget.
func evidenceWarnings(lines []EvidenceLine) []Warning {
	var out []Warning
	for i := range lines {
		l := &lines[i]
		warn := func(n int, what string) {
			if n > 0 {
				out = append(out, Warning{Strategy: l.Strategy, Budget: l.Budget, Text: fmt.Sprintf("budget %s: it %s in %s with evidence", l.Budget, what, size.Plural(n, "conversation"))})
			}
		}
		warn(l.Failed, "failed, or a provider of it did,")
		warn(l.Over, "ended above 1.03 of the budget")
	}
	return out
}

// evidenceSizes sets the numbers of l that do not depend on the question.
func (a *analysis) evidenceSizes(l *EvidenceLine, rows []*Evidence) {
	var left repeatedly
	for _, e := range rows {
		if e.Failed {
			l.Failed++
		}
		if e.Questions != nil {
			left.add(e.Session, e.Run, float64(e.After)/float64(max(1, e.Before)))
			if float64(e.After) > overSize*float64(e.Room) {
				l.Over++
			}
		}
	}
	if e, ok := left.estimate(a.sampler); ok {
		l.Left = &e
	}
}

// evidenceKept sets the mean of l over questions, each the mean of its runs, with an interval over conversations, or
// over their folders if these are the samples. It reports whether there is any.
func (a *analysis) evidenceKept(l *EvidenceLine, rows []*Evidence) bool {
	var values []float64
	var groups []string
	at := map[[2]string]int{}
	byRun := map[int][]float64{}
	count := map[int]int{} // runs of a question
	for _, e := range rows {
		group := e.Session
		if a.ByFolder {
			group = folderOf(group)
		}
		for i := range e.Questions {
			q := &e.Questions[i]
			v, ok := q.share(l.Role)
			if !ok || l.Ability != "" && q.Ability != l.Ability {
				continue
			}
			k, known := at[[2]string{e.Session, q.ID}]
			if !known {
				k = len(values)
				at[[2]string{e.Session, q.ID}] = k
				values, groups = append(values, 0), append(groups, group)
			}
			count[k]++
			values[k] += (v - values[k]) / float64(count[k])
			byRun[max(1, e.Run)] = append(byRun[max(1, e.Run)], v)
		}
	}
	kept, ok := a.sampler.clustered(values, groups)
	if !ok {
		return false
	}
	sessions := map[string]bool{}
	for k := range at {
		sessions[k[0]] = true
	}
	l.Kept, l.Questions = kept, len(values)
	l.Kept.Sessions = len(sessions)
	if !a.ByFolder {
		l.Kept.Folders = 0
	}
	if len(byRun) > 1 {
		var means []float64
		for _, v := range byRun {
			means = append(means, mean(v))
		}
		slices.Sort(means)
		l.Kept.Runs = spreadOf(means)
	}
	return true
}

// An EvidenceRow is a row of a table of evidence: the means of a strategy by budget, for one role, ability or size.
type EvidenceRow struct {
	Strategy  string
	What      string // in words: the questions or turns
	Questions int
	Budgets   map[string]Estimate
}

// EvidenceBudgets returns the budgets of [Report.EvidenceLines], in their order.
func (r *Report) EvidenceBudgets() []string {
	var out []string
	for i := range r.EvidenceLines {
		if b := r.EvidenceLines[i].Budget; !slices.Contains(out, b) {
			out = append(out, b)
		}
	}
	return out
}

// goldOf says in words which turns have a role.
var goldOf = map[core.Role]string{
	core.RoleUser: "turns of the user", core.RoleAssistant: "turns of the assistant", core.RoleTool: "lines",
}

// EvidenceRows returns [Report.EvidenceLines] as rows with a column for every budget, and the remaining tokens as a
// row of their own.
func (r *Report) EvidenceRows() []EvidenceRow {
	var out []EvidenceRow
	add := func(l *EvidenceLine, what string, e Estimate) {
		i := slices.IndexFunc(out, func(x EvidenceRow) bool { return x.Strategy == l.Strategy && x.What == what })
		if i < 0 {
			i = len(out)
			out = append(out, EvidenceRow{Strategy: l.Strategy, What: what, Budgets: map[string]Estimate{}})
		}
		out[i].Questions = max(out[i].Questions, l.Questions)
		out[i].Budgets[l.Budget] = e
	}
	for i := range r.EvidenceLines {
		l := &r.EvidenceLines[i]
		if l.Left != nil {
			add(l, "tokens left", *l.Left)
		}
		switch {
		case l.Questions == 0:
		case l.Role != "":
			add(l, goldOf[l.Role], l.Kept)
		case l.Ability != "":
			add(l, l.Ability, l.Kept)
		default:
			add(l, "all questions", l.Kept)
		}
	}
	rank := ranks(r.Strategies)
	slices.SortStableFunc(out, func(a, b EvidenceRow) int { return rank[a.Strategy] - rank[b.Strategy] })
	return out
}
