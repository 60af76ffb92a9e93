package lab

import (
	"strconv"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/tokens"
)

// liveBudget is the budget of rows of [Judge].
const liveBudget = "live"

// A View is a strategy's result for the messages before a cut.
type View struct {
	Strategy string
	Messages []core.Message
}

// Judge measures views of the messages of s before index at by the messages after it, as [Run] does except for the
// measures of [score.Continuation]. It returns a row for each view, and the needs that the first view was measured
// by, by falling weight. The budget of all is the size of the first view. It returns nothing if too little follows.
func Judge(s *score.Session, at int, views []View, c *tokens.Counter) ([]Row, []score.Need) {
	cut, ok := score.CutAt(s, strconv.Itoa(at), at)
	if !ok || len(views) == 0 {
		return nil, nil
	}
	b := &trial{session: s, name: s.ID, counter: c, scorer: score.NewScorer(cut, score.Common()), task: task{cut: cut, budget: liveBudget}}
	for i := range views[0].Messages {
		b.task.room += core.MessageTokens(c, views[0].Messages[i])
	}
	b.task.room = max(1, b.task.room)
	var rows []Row
	for _, v := range views {
		r := b.row(v.Strategy)
		r.Outcome = core.OutcomeApplied
		b.measure(&r, v.Messages)
		rows = append(rows, r)
	}
	return rows, b.scorer.Needs(views[0].Messages)
}
