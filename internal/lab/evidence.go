package lab

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/tokens"
	"github.com/condensehq/condense/transcript"
)

// evidencePrefix before a path marks its files as conversations with gold evidence.
const evidencePrefix = "evidence:"

// evidenceKept is the share of the 3-grams of a gold turn that a result must have to keep it.
const evidenceKept = 0.80

// A goldFile is a conversation with questions, each with the messages that answer it. docs/comparing.md documents it.
type goldFile struct {
	ID       string `json:"id"`
	Messages []struct {
		ID      string    `json:"id"`
		Role    core.Role `json:"role"`
		Time    string    `json:"time,omitempty"`
		Session string    `json:"session,omitempty"`
		Text    string    `json:"text"`
		Calls   []struct {
			ID   string `json:"id"`
			Name string `json:"name"`
			Args string `json:"args"`
		} `json:"calls,omitempty"` // of an assistant's message
		ResultOf string `json:"result_of,omitempty"` // the text is the result of this call
	} `json:"messages"`
	Questions []struct {
		ID       string   `json:"id"`
		Ability  string   `json:"ability"`
		Text     string   `json:"text,omitempty"`
		Evidence []string `json:"evidence,omitempty"`
		Lines    []string `json:"lines,omitempty"` // instead of messages: lines that must be left
	} `json:"questions"`
}

// A gold is a goldFile prepared for measuring.
type gold struct {
	session   *score.Session
	hash      string
	questions []goldQuestion
	sittings  map[string]string // in which messages were written, by ID; for conversations of several
}

type goldQuestion struct {
	id, ability, text string
	evidence          []string // IDs
	turns             []goldTurn
}

// A goldTurn is a message or, without 3-grams, a line.
type goldTurn struct {
	role  core.Role
	grams []string
	line  string
}

// folded returns text with a space for each run of white space, and one at either end.
func folded(text string) string { return " " + strings.Join(strings.Fields(text), " ") + " " }

// gold reads a conversation with gold evidence. Its messages are measured with c.
func (it Item) gold(c core.Counter) (*gold, error) {
	f, err := it.Open()
	if err != nil {
		return nil, err
	}
	data, err := transcript.ReadAll(f, maxSession)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	var in goldFile
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("no conversation with evidence: %w", err)
	}
	if len(in.Messages) == 0 || len(in.Questions) == 0 {
		return nil, errors.New(`no conversation with evidence: it needs "messages" and "questions"`)
	}
	sum := sha256.Sum256(data)
	out := &gold{hash: hex.EncodeToString(sum[:]), session: &score.Session{}, sittings: map[string]string{}}
	out.session.ID, out.session.Source = called(strings.TrimPrefix(it.Name, evidencePrefix))
	out.session.ID = cmp.Or(in.ID, out.session.ID)
	turns := map[string]goldTurn{}
	for i, m := range in.Messages {
		switch _, twice := turns[m.ID]; {
		case m.Role != core.RoleUser && m.Role != core.RoleAssistant:
			return nil, fmt.Errorf("message %d: role %q, want user or assistant", i+1, m.Role)
		case m.ID == "" || twice:
			return nil, fmt.Errorf("message %d: id %q is empty or not unique", i+1, m.ID)
		case strings.TrimSpace(m.Text) == "" && len(m.Calls) == 0 && m.ResultOf == "":
			return nil, fmt.Errorf("message %q has no text", m.ID)
		}
		turns[m.ID] = goldTurn{role: m.Role, grams: evidenceGrams(m.Text, false)}
		out.sittings[m.ID] = m.Session
		text := m.Text
		if m.Time != "" {
			text = "[" + m.Time + "] " + text
		}
		parts := []core.Part{core.Text(text)}
		if m.ResultOf != "" {
			parts = []core.Part{core.ToolResult{CallID: m.ResultOf, Content: parts}}
		} else if strings.TrimSpace(text) == "" {
			parts = nil
		}
		for _, c := range m.Calls {
			parts = append(parts, core.ToolCall{ID: c.ID, Name: c.Name, Args: c.Args})
		}
		out.session.Messages = append(out.session.Messages, core.Message{ID: m.ID, Role: m.Role, Parts: parts})
	}
	asked := map[string]bool{}
	for i, q := range in.Questions {
		switch {
		case q.ID == "" || asked[q.ID]:
			return nil, fmt.Errorf("question %d: id %q is empty or not unique", i+1, q.ID)
		case len(q.Evidence)+len(q.Lines) == 0:
			return nil, fmt.Errorf("question %q has no evidence", q.ID)
		}
		asked[q.ID] = true
		g := goldQuestion{id: q.ID, ability: q.Ability, text: q.Text, evidence: q.Evidence}
		for _, id := range q.Evidence {
			turn, ok := turns[id]
			if !ok {
				return nil, fmt.Errorf("question %q: there is no message %q", q.ID, id)
			}
			g.turns = append(g.turns, turn)
		}
		for _, line := range q.Lines {
			g.turns = append(g.turns, goldTurn{role: core.RoleTool, line: folded(line)})
		}
		out.questions = append(out.questions, g)
	}
	core.Measure(c, out.session.Messages)
	return out, nil
}

// evidenceGrams returns the runs of three words of text, made of letters and digits, in lower case. A shorter text is
// one run. With short, runs of two words and of one are returned, too.
func evidenceGrams(text string, short bool) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	var out []string
	for n := 3; n > 0; n-- {
		if n > len(words) || n < 3 && !short && len(out) > 0 {
			continue
		}
		for i := range len(words) - n + 1 {
			out = append(out, strings.Join(words[i:i+n], " "))
		}
	}
	return out
}

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

// evidence condenses a conversation with every strategy under every budget, and looks for its gold turns.
func (w *sessionWork) evidence(ctx context.Context, name string, g *gold) ([]Evidence, error) {
	var out []Evidence
	for _, budget := range w.opts.evidenceShares() {
		after := map[string]int{} // by strategy
		for i := range w.strategies {
			s := &w.strategies[i]
			t := evidenceTask(w.session, budget)
			if s.SizeOf != "" {
				if t.room = after[s.SizeOf]; t.room == 0 {
					continue
				}
			}
			runs, err := laps(w, s, func(run int) string {
				return evidenceKey(w.hash, s.Key, w.opts.Encoding, t.room, run)
			}, func() ([]Evidence, error) {
				e, err := w.keptEvidence(ctx, name, s, t, g)
				return []Evidence{e}, err
			})
			if err != nil {
				return nil, err
			}
			for run, found := range runs {
				for _, e := range found {
					e.Strategy, e.Budget, e.Session, e.Source = s.Name, t.budget, name, w.session.Source
					if run > 0 {
						e.Run = run + 1
					}
					after[s.Name] = cmp.Or(after[s.Name], e.After)
					out = append(out, e)
				}
			}
		}
	}
	return out, nil
}

// evidenceShares returns the budgets for conversations with evidence: the requested budgets that are shares.
func (o *Options) evidenceShares() []Budget {
	out := slices.DeleteFunc(slices.Clone(o.asked), func(b Budget) bool { return b.Share == 0 })
	if len(out) == 0 {
		return []Budget{{Share: 10}, {Share: 25}, {Share: 50}}
	}
	return out
}

// evidenceTask is the task of condensing all of s.
func evidenceTask(s *score.Session, b Budget) task {
	cut := score.Cut{Session: s, At: len(s.Messages), End: len(s.Messages), Compaction: -1}
	for i := range s.Messages {
		cut.Tokens += s.Messages[i].Tokens
	}
	return task{budget: b.String(), cut: cut, room: int(math.Round(float64(cut.Tokens) * b.Share / 100))}
}

func (w *sessionWork) keptEvidence(ctx context.Context, name string, s *Strategy, t task, g *gold) (Evidence, error) {
	e := Evidence{Before: t.cut.Tokens, Room: t.room}
	out, _, err := w.trial(name, t).condense(ctx, s, w.session.Messages, 1)
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
	have := map[string]struct{}{}
	var text strings.Builder
	for i := range out.Messages {
		e.After += core.MessageTokens(w.counter, out.Messages[i])
		all := shownText(out.Messages[i].Parts)
		for _, h := range evidenceGrams(all, true) {
			have[h] = struct{}{}
		}
		text.WriteString(folded(all))
	}
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

// shownText returns the texts of parts, and those of results.
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
			for _, ability := range abilities {
				lines = append(lines, EvidenceLine{Ability: ability})
			}
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

// evidenceKey is cacheKey for a conversation with evidence.
func evidenceKey(session, strategy, encoding string, room, run int) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s\nevidence 2 %d %d\n%s\n%q\n%s", cacheVersion, room, run, session, strategy, encoding)
	return hex.EncodeToString(h.Sum(nil))
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
	return &sessionWork{runner: r, session: g.session, counter: counter, hash: g.hash}, g, nil
}

// priceGold adds the cost of the conversation to p, and returns the number of its budgets.
func (r *runner) priceGold(ctx context.Context, it Item, p *Plan, silent map[string]bool) (int, error) {
	w, g, err := r.goldWork(it)
	if err != nil {
		return 0, ctx.Err()
	}
	budgets := w.opts.evidenceShares()
	for _, b := range budgets {
		t := evidenceTask(g.session, b)
		for i := range w.strategies {
			s := &w.strategies[i]
			err := priceLaps[Evidence](w, s, p, func(run int) string {
				return evidenceKey(w.hash, s.Key, w.opts.Encoding, t.room, run)
			}, func() error { return w.spend(ctx, w.trial(it.Name, t), s, p, silent) })
			if err != nil {
				return 0, err
			}
		}
	}
	return len(budgets), nil
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
	rank := map[string]int{}
	for i := range r.Strategies {
		rank[r.Strategies[i].Name] = i
	}
	slices.SortStableFunc(out, func(a, b EvidenceRow) int { return rank[a.Strategy] - rank[b.Strategy] })
	return out
}
