package lab

import (
	"cmp"
	"context"
	"math"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/tokens"
)

// An Evidence is the result of one strategy for one conversation with gold evidence under a budget.
type Evidence struct {
	Strategy string `json:"strategy"`
	Budget   string `json:"budget"`
	Session  string `json:"session"` // [SessionInfo.Name]
	Source   string `json:"source"`
	Run      int    `json:"run,omitempty"` // 2 and up: another run of a strategy that asks a language model
	// Before, Room and After are tokens: of the conversation, of the budget, and of the result.
	Before int `json:"before"`
	Room   int `json:"room"`
	After  int `json:"after"`
	// Questions are absent if there is no result; Error says why.
	Questions []EvidenceQuestion `json:"questions,omitempty"`
	// Failed reports that a provider of the chain failed, was rejected or could not work, even if another provider
	// replaced it.
	Failed bool       `json:"failed,omitempty"`
	Error  string     `json:"error,omitempty"`
	Usage  core.Usage `json:"usage,omitzero"`
}

// An EvidenceQuestion counts the gold turns of a question, and the kept ones, by role.
type EvidenceQuestion struct {
	ID      string            `json:"id"`
	Ability string            `json:"ability"`
	Gold    map[core.Role]int `json:"gold"`
	Kept    map[core.Role]int `json:"kept"`
}

func (e Evidence) lap() (core.Usage, bool) { return e.Usage, e.Failed }

// evidenceKept is the share of the 3-grams of a gold turn that a result must have to keep it.
const evidenceKept = 0.80

// evidence condenses a conversation with every strategy under every budget, and looks for its gold turns.
func (w *sessionWork) evidence(ctx context.Context, name string, g *gold) ([]Evidence, error) {
	var out []Evidence
	for _, budget := range w.run.opts.shares(evidenceBudgets) {
		after := map[string]int{} // by strategy
		for i := range w.run.strategies {
			s := &w.run.strategies[i]
			t := evidenceTask(w.session, budget)
			if s.SizeOf != "" {
				if t.room = after[s.SizeOf]; t.room == 0 {
					continue
				}
			}
			found, err := laps(w, s, w.evidenceKey(s.Key, t.room), func() ([]Evidence, error) {
				e, err := w.keptEvidence(ctx, name, s, t, g)
				return []Evidence{e}, err
			}, func(e *Evidence, run int) {
				e.Strategy, e.Budget, e.Session, e.Source, e.Run = s.Name, t.budget, name, w.session.Source, run
				after[s.Name] = cmp.Or(after[s.Name], e.After)
			})
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

// evidenceBudgets are the usual budgets for conversations with evidence.
var evidenceBudgets = []Budget{{Share: 10}, {Share: 25}, {Share: 50}}

// evidenceTask is the task of condensing all of s.
func evidenceTask(s *score.Session, b Budget) task {
	cut := score.Cut{Session: s, At: len(s.Messages), End: len(s.Messages), Compaction: -1, Tokens: core.TotalTokens(s.Messages)}
	return task{budget: b.String(), cut: cut, room: int(math.Round(float64(cut.Tokens) * b.Share / 100))}
}

func (w *sessionWork) keptEvidence(ctx context.Context, name string, s *Strategy, t task, g *gold) (Evidence, error) {
	e := Evidence{Before: t.cut.Tokens, Room: t.room}
	b := w.trial(name, t)
	out, _, err := b.condense(ctx, s, w.session.Messages, 1)
	if ctx.Err() != nil {
		return e, ctx.Err()
	}
	if err != nil {
		e.Failed, e.Error = true, err.Error()
		return e, nil //nolint:nilerr // a failing strategy is a result
	}
	e.Usage = out.Usage
	r := Row{}
	if r.Outcome, e.Error = outcome(out); !r.measured() {
		e.Failed = true
		return e, nil
	}
	n, first, _ := setbacks(out)
	e.Failed, e.Error = n > 0, first
	e.After = sizeOf(w.counter, out.Messages)
	have := map[string]struct{}{}
	var text strings.Builder
	for i := range out.Messages {
		all := shownText(out.Messages[i].Parts)
		for _, h := range evidenceGrams(all, true) {
			have[h] = struct{}{}
		}
		text.WriteString(folded(all))
	}
	b.outputs.result(b, s.Name, e.After, out.Messages)
	for _, q := range g.questions {
		found := EvidenceQuestion{ID: q.id, Ability: q.ability, Gold: map[core.Role]int{}, Kept: map[core.Role]int{}}
		for _, turn := range q.turns {
			kept := 0
			for _, h := range turn.grams {
				if _, ok := have[h]; ok {
					kept++
				}
			}
			found.Gold[turn.role]++
			isKept := float64(kept) >= evidenceKept*float64(len(turn.grams))
			if turn.line != "" {
				isKept = strings.Contains(text.String(), strings.Trim(turn.line, " "))
			}
			if isKept {
				found.Kept[turn.role]++
			}
		}
		e.Questions = append(e.Questions, found)
	}
	return e, nil
}

// shownText returns the texts of parts, including the texts in results.
func shownText(parts []core.Part) string {
	all := []string{textOf(parts)}
	for _, p := range parts {
		if r, ok := p.(core.ToolResult); ok {
			all = append(all, textOf(r.Content))
		}
	}
	return strings.Join(all, "\n")
}

// share returns the share of the gold turns of a role, or of all roles if it is empty; false if there are none.
func (q *EvidenceQuestion) share(role core.Role) (float64, bool) {
	kept, all := 0, 0
	for r, n := range q.Gold {
		if role == "" || r == role {
			kept, all = kept+q.Kept[r], all+n
		}
	}
	return float64(kept) / float64(max(1, all)), all > 0
}

// evidenceKey returns the keys of the runs for a conversation with evidence.
func (w *sessionWork) evidenceKey(strategy string, room int) func(run int) string {
	return func(run int) string {
		return keyOf(1, "evidence 2 %d %d\n%s\n%q\n%s", room, run, w.hash, strategy, w.run.opts.Encoding)
	}
}

// goldSession compares the strategies on a conversation with gold evidence.
func (r *runner) goldSession(ctx context.Context, it Item) (outcomeOf, error) {
	out := outcomeOf{info: SessionInfo{Name: it.Name}}
	w, g, err := r.goldWork(it)
	if err != nil {
		out.skipped = err.Error()
		return out, ctx.Err()
	}
	out.info = describe(it.Name, g.session)
	out.info.Hash, out.info.Said = evidencePrefix+g.hash, ""
	out.evidence, err = w.evidence(ctx, it.Name, g)
	return out, err
}

func (r *runner) goldWork(it Item) (*sessionWork, *gold, error) {
	counter := tokens.NewCounter(r.encoding)
	g, err := it.gold(counter)
	if err != nil {
		return nil, nil, err
	}
	return &sessionWork{run: r, session: g.session, counter: counter, hash: g.hash}, g, nil
}

// priceGold adds the cost of the conversation to p, and returns the number of its budgets.
func (r *runner) priceGold(ctx context.Context, it Item, p *Plan, silent map[string]bool) (int, error) {
	w, g, err := r.goldWork(it)
	if err != nil {
		return 0, ctx.Err()
	}
	budgets := w.run.opts.shares(evidenceBudgets)
	for _, b := range budgets {
		t := evidenceTask(g.session, b)
		for i := range w.run.strategies {
			s := &w.run.strategies[i]
			price := func() error { return w.spend(ctx, w.trial(it.Name, t), s, p, silent) }
			if err := priceLaps[Evidence](w, s, p, w.evidenceKey(s.Key, t.room), price); err != nil {
				return 0, err
			}
		}
	}
	return len(budgets), nil
}
