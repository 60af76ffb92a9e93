package value

import (
	"context"
	_ "embed"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/toolcall"
	"github.com/condensehq/condense/internal/value/parallel"
)

// A prohibition, requirement, limit or preference of the user holds as long as the conversation goes on, but its use
// does not show: a rule that is obeyed is not mentioned again. Such sentences are found by their form and kept in
// place before everything but the user's other words of common size and the project's rules. Only the user's own words
// count. No sentence replaces another: whether a newer one corrects it cannot be known from words and numbers.

// A said is a sentence of the user.
type said struct {
	line   int
	at     core.Span // in the line
	block  bool      // it is in an extract's block of demands
	demand dialog.Demand
}

// In a longer passage only the first and the last lines are read: the rest was pasted.
const (
	demandHead = 60
	demandTail = 30
)

// demands finds the demands of the user, and splits lines so that each demand has its own.
func (c *Conversation) demands() {
	var all []said
	for p := range c.Passages {
		pass := &c.Passages[p]
		if pass.Kind != dialog.KindUser || pass.rules != "" {
			continue
		}
		for l := pass.Lines.Start; l < pass.Lines.End; l++ {
			if l == pass.Lines.Start+demandHead {
				l = max(l, pass.Lines.End-demandTail)
			}
			for _, at := range dialog.Sentences(c.Lines[l].Text) {
				all = append(all, said{line: l, at: at, block: pass.demands})
			}
		}
	}
	const least = 64 // sentences that justify a goroutine
	parallel.Ranges(len(all), least, func(from, to int) {
		for i := from; i < to; i++ {
			s := &all[i]
			s.read(c.Lines[s.line].Text[s.at.Start:s.at.End])
		}
	})
	c.split(all)
}

func (s *said) read(text string) {
	if !s.block && !spoken(text) {
		return
	}
	s.demand = dialog.DemandOf(text)
	if s.block {
		s.demand = max(s.demand, dialog.Prefers)
	}
}

// spoken reports whether a sentence is made of words, and not of code or data.
func spoken(text string) bool {
	words, signs := 0, 0
	for f := range strings.FieldsSeq(text) {
		f = strings.TrimFunc(f, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		switch {
		case f == "":
		case utf8.RuneCountInString(f) > 3 && strings.IndexFunc(f, unspaced) == 0: // a sentence without spaces
			words += 2
		case strings.IndexFunc(f, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '’' && r != '-' }) < 0:
			words++
		default:
			signs++
		}
	}
	return words >= 2 && words >= signs
}

// unspaced reports whether r is of a script that puts no spaces between words.
func unspaced(r rune) bool { return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) }

// split divides lines that are shortened at the ends of sentences into one line per sentence: long lines, and lines
// with a demand.
func (c *Conversation) split(all []said) {
	const long = 160 // bytes
	split := map[int]bool{}
	for i := range all {
		split[all[i].line] = split[all[i].line] || all[i].demand > 0 || len(c.Lines[all[i].line].Text) > long
	}
	all = slices.DeleteFunc(all, func(s said) bool { return !split[s.line] })
	if len(all) == 0 {
		return
	}
	was := c.Lines
	c.Lines = make([]Line, 0, len(was)+2*len(all))
	next := 0
	for p := range c.Passages {
		pass := &c.Passages[p]
		lines := pass.Lines
		pass.Lines.Start = len(c.Lines)
		for l := lines.Start; l < lines.End; l++ {
			from := 0
			add := func(end int, demand dialog.Demand) {
				if from >= end {
					return
				}
				line := was[l]
				line.Text, line.start = line.Text[from:end], line.start+from
				line.demand = demand
				if from > 0 {
					line.joins, line.Gap = true, 0
				}
				if end < len(was[l].Text) {
					line.after = ""
				}
				c.Lines = append(c.Lines, line)
				from = end
			}
			for ; next < len(all) && all[next].line == l; next++ {
				add(all[next].at.Start, 0)
				add(all[next].at.End, all[next].demand)
			}
			add(len(was[l].Text), 0)
			if len(was[l].Text) == 0 {
				c.Lines = append(c.Lines, was[l])
			}
		}
		pass.Lines.End = len(c.Lines)
	}
}

// keepDemands keeps the demands of the user, up to their share of the room, strongest first and newest first among
// equals.
func keepDemands(_ context.Context, w *choice) error {
	limit := w.spent() + w.r.o.Shares.Demands*float64(w.r.o.Room)
	for demand := dialog.Forbids; demand > 0; demand-- {
		for p, pass := range slices.Backward(w.r.c.Passages) {
			if w.passages[p].mode == modeFixed {
				continue
			}
			for l := pass.Lines.End - 1; l >= pass.Lines.Start; l-- {
				if w.r.c.Lines[l].demand == demand {
					w.takeLine(l, limit)
				}
			}
		}
	}
	return nil
}

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
