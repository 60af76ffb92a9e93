package value

import (
	"context"
	_ "embed"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/toolcall"
)

// A reader who continues the work needs the assistant's decisions and findings and the outcomes of checks, but seldom
// quotes them, so their use does not show. They are found by their form, newest first.
const (
	decisionShare = 0.15 // of the room
	decisionLong  = 50   // the most tokens of a paragraph that is kept whole
	outcomeShare  = 0.04 // of the room
	faultsEach    = 4    // lines of one result
	outcomeLong   = 200  // bytes
	reportShare   = 0.12 // of the room
	reportEach    = 0.04
	closingShare  = 0.12 // of the room
	closingEach   = 0.05
	questionShare = 0.03 // of the room
	questionLong  = 150  // the most tokens of a question
	answerLong    = 300  // bytes up to which a message of the user is an answer rather than a request
	newestShare   = 0.08 // of the room
	newestEach    = 0.04
)

//go:embed decisions.txt
var decisions string

// decisionForm matches sentences that give a cause, a choice or a finding, hanForm those in Chinese, and measureForm a number with a unit.
var (
	decisionForm = dialog.ReadForm(`(?i)\b(?:`, decisions, `)\b`)
	hanForm      = dialog.NewForm(`原因|决定|改用|因为|原来|根源|选择|打算|所以|考虑到|只有`)
	measureForm  = plain.Pattern(`(?i)\b\d[\d.,]* ?(?:%|ms\b|µs\b|s\b|[kKMG]i?B\b)`)
)

// decides reports whether text gives a cause, a choice or a finding.
func decides(text string) bool {
	return decisionForm.Match(text) || hanForm.Match(text) || strings.ContainsAny(text, "0123456789") && measureForm().MatchString(text)
}

// outcomeForm matches lines that say how a test, a build or a check ended.
var outcomeForm = dialog.NewForm(`(?i)\b\d+ (?:tests?|specs?|passed|passing|failed|failing|failures?|errors?|warnings?|problems?|skipped)\b|\btests?:? +(?:passed|failed|\d)|` +
	`\ball (?:\w+ )?(?:tests? |checks? )?pass|\bbuild (?:succeeded|failed|complete)|\bBUILD (?:SUCCESS|FAIL)|^(?:PASS|FAIL|ok)\b|\btest result:|\bcompiled? (?:successfully|with)`)

// keepReports keeps the prose of other agents' reports, newest first: nothing else in the conversation has it.
func keepReports(_ context.Context, w *choice) error {
	limit := w.spent() + reportShare*float64(w.r.o.Room)
	for p, pass := range slices.Backward(w.r.c.Passages) {
		if pass.Kind != dialog.KindInjected || pass.rules != "" || w.passages[p].mode != modeExtract || !w.r.reports(&pass) {
			continue
		}
		each := reportEach * float64(w.r.o.Room)
		if cost := w.cost(pass.Lines); cost <= each && w.spent()+cost <= limit && w.alive(pass.Lines) {
			w.take(pass.Lines, cost)
			continue
		}
		if limit-w.spent() < each/2 {
			return nil
		}
		w.takeEnds(pass.Lines, min(each, limit-w.spent()))
	}
	return nil
}

// reports tells whether an injected text is another agent's report, not a notice in JSON.
func (r *reading) reports(pass *Passage) bool {
	e, ok := toolcall.Opens(r.c.Lines[pass.Lines.Start].Text)
	return ok && e.By == toolcall.Agent && !slices.ContainsFunc(r.c.Lines[pass.Lines.Start:pass.Lines.End], func(l Line) bool { return l.flat || strings.HasPrefix(l.Text, "{\"") })
}

// keepDecisions keeps sentences of the assistant that give a cause, a choice or a finding.
func keepDecisions(_ context.Context, w *choice) error {
	limit := w.spent() + decisionShare*float64(w.r.o.Room)
	for p, pass := range slices.Backward(w.r.c.Passages) {
		if pass.Kind != dialog.KindAssistant || w.passages[p].mode != modeExtract {
			continue
		}
		for l := pass.Lines.End - 1; l >= pass.Lines.Start; l-- {
			if w.lines[l].at != 0 || w.r.c.Lines[l].shape != shapeProse || w.spent()+least(w, l) > limit ||
				!decides(w.r.c.Lines[l].Text) { // last, because it takes longest
				continue
			}
			s := w.v.blockOf(l)
			cost := w.cost(s)
			if cost > decisionLong {
				s = core.Span{Start: l, End: l + 1}
				cost = w.cost(s)
			}
			if w.spent()+cost > limit {
				continue // a shorter one may fit
			}
			w.take(s, cost)
		}
	}
	return nil
}

// keepClosings keeps the best lines of the texts with which the assistant ended its turns, newest first: they say what was found and done,
// and what can be done next.
func keepClosings(ctx context.Context, w *choice) error {
	room := float64(w.r.o.Room)
	limit := w.spent() + closingShare*room
	ended := false
	for p, pass := range slices.Backward(w.r.c.Passages) {
		switch {
		case pass.Kind == dialog.KindUser && !pass.partial:
			ended = true
		case pass.Kind == dialog.KindToolCall || pass.answers():
			ended = false
		case ended && pass.Kind == dialog.KindAssistant && w.passages[p].mode == modeExtract:
			ended = false
			if _, err := w.fill(ctx, newQueue(w.candidates(p, p+1, w.eligible)), min(limit, w.spent()+closingEach*room)); err != nil {
				return err
			}
		}
	}
	return nil
}

// least returns a lower bound of the cost of any lines with l among them.
func least(w *choice, l int) float64 {
	if w.gone(l) {
		return 1
	}
	return max(1, float64(w.lines[l].tokens)-gapTokens)
}

// keepQuestions keeps, newest first, the questions that the assistant asked by a tool, with what there was to choose from, and its last
// words before a short message of the user: a "yes" answers something.
func keepQuestions(_ context.Context, w *choice) error {
	limit := w.spent() + questionShare*float64(w.r.o.Room)
	for p, pass := range slices.Backward(w.r.c.Passages) {
		if pass.Kind == dialog.KindToolCall && pass.family == families[dialog.FamilyAsk] && w.passages[p].mode == modeExtract {
			most := min(limit, w.spent()+questionLong)
			for l := pass.Lines.Start; l < pass.Lines.End && w.takeLine(l, most); l++ { //nolint:revive // takeLine keeps the lines
			}
		}
		if p == 0 || pass.Kind != dialog.KindUser || pass.partial || w.r.size(pass.Lines) > answerLong {
			continue
		}
		q := p - 1
		for q > 0 && w.r.c.Passages[q].Kind == dialog.KindUser && w.r.c.Passages[q].Message == pass.Message {
			q--
		}
		if w.r.c.Passages[q].Kind != dialog.KindAssistant || w.passages[q].mode != modeExtract {
			continue
		}
		lines := w.r.c.Passages[q].Lines
		most := min(limit, w.spent()+questionLong)
		for l := lines.End - 1; l >= lines.Start && w.takeLine(l, most); l-- { //nolint:revive // takeLine keeps the lines
		}
	}
	return nil
}

// keepNewestResults keeps the newest results whole, newest first: the next step needs them.
func keepNewestResults(_ context.Context, w *choice) error {
	room := float64(w.r.o.Room)
	limit := w.spent() + newestShare*room
	for p := len(w.passages) - 1; p >= 0 && w.r.c.Passages[p].Message >= w.r.recent; p-- {
		if !w.answers(p) || w.passages[p].mode != modeOpen {
			continue
		}
		lines := w.r.c.Passages[p].Lines
		if cost := w.cost(lines); cost <= newestEach*room && w.spent()+cost <= limit && w.alive(lines) {
			w.take(lines, cost)
		}
	}
	return nil
}

// keepOutcomes keeps, for each command that checks something, the line with its outcome, and before it the lines that
// report failures.
func keepOutcomes(_ context.Context, w *choice) error {
	limit := w.spent() + outcomeShare*float64(w.r.o.Room)
	for p, pass := range slices.Backward(w.r.c.Passages) {
		if !pass.answers() || pass.family != families[dialog.FamilyCommand] || w.passages[p].mode == modeFixed || dialog.CommandKey(pass.Target) == "" {
			continue
		}
		takeFaults(w, pass.Lines, limit)
		for l, n := pass.Lines.Start, 0; l < pass.Lines.End && n < faultsEach; l++ {
			if text := w.r.c.Lines[l].Text; len(text) <= outcomeLong/2 && dialog.Counts(text) && w.takeLine(l, limit) {
				n++
			}
		}
		for l := pass.Lines.End - 1; l >= pass.Lines.Start; l-- {
			if text := w.r.c.Lines[l].Text; len(text) <= outcomeLong && (outcomeForm.Match(text) || dialog.NamesExit(text)) {
				if dialog.NamesExit(text) { // an exit code gives no reason
					takeReason(w, pass.Lines, limit)
				}
				if !w.takeLine(l, limit) {
					return nil
				}
				break
			}
		}
	}
	return nil
}

// takeFaults keeps the first lines that are in the form of a failure.
func takeFaults(w *choice, lines core.Span, limit float64) {
	n := 0
	for l := lines.Start; l < lines.End && n < faultsEach && w.spent() < limit; l++ {
		if text := w.r.c.Lines[l].Text; len(text) <= outcomeLong && dialog.FaultOf(text) == dialog.SureFault && !dialog.NamesExit(text) && w.takeLine(l, limit) {
			n++
		}
	}
}

// takeReason keeps the first of the lines that gives the reason of a failure.
func takeReason(w *choice, lines core.Span, limit float64) {
	for l := lines.Start; l < lines.End; l++ {
		if text := w.r.c.Lines[l].Text; len(text) <= outcomeLong && hasWord(text) && dialog.FaultOf(text) != dialog.NoFault && !dialog.NamesExit(text) {
			w.takeLine(l, limit)
			return
		}
	}
}
