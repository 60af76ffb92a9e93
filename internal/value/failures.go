package value

import (
	"cmp"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
)

// A failure is a command that failed when it was last run.
type failure struct {
	entry   string
	passage int // of its result; -1 if only a former extract has it
}

// A trial is the failures that are listed, while commands are looked at from the newest on.
type trial struct {
	out, fixed []failure
	last       map[string]bool // whether the newest run of each key succeeded; see dialog.CommandKeys
	fixedLater map[string]bool // the first keys of fixed
}

// solved reports whether everything that a command runs succeeded later, and whether any of it was run.
func (t *trial) solved(keys []string) (all, some bool) {
	all = true
	for _, key := range keys {
		ok, known := t.last[key]
		all, some = all && ok, some || known
	}
	return all, some
}

// fix lists a command that failed with the error was, and succeeded later.
func (t *trial) fix(shown, key, was string, passage int) {
	if !t.fixedLater[key] && len(t.fixed) < openFixed && dialog.FaultOf(was) != dialog.NoFault {
		t.fixedLater[key] = true
		t.fixed = append(t.fixed, failure{fixedName + oneLine(shown, openLong/2) + " (was: " + oneLine(was, openLong/2) + ")", passage})
	}
}

// failures returns, newest first, the last commands that failed, did not succeed since and were not explained, and the commands that
// were fixed.
func (r *reading) failures() (out, fixed []failure) {
	t := trial{last: map[string]bool{}, fixedLater: map[string]bool{}}
	looked := 0
	for p, pass := range slices.Backward(r.c.Passages) {
		if len(t.out) == openErrors || looked == openLook {
			return t.out, t.fixed
		}
		if !pass.answers() || pass.partial || pass.family != families[dialog.FamilyCommand] {
			continue
		}
		keys, shown := dialog.CommandKeys(pass.Target)
		if len(keys) == 0 {
			continue
		}
		looked++
		text := r.original(&pass)
		line := errorLine(text)
		failed := pass.failed(text)
		if dialog.Refused(text) || failed && slipForm().MatchString(line) {
			continue
		}
		all, some := t.solved(keys)
		switch {
		case failed && all:
			t.fix(shown, keys[0], line, p)
		case failed && some:
		case endMark(text) != "" && dialog.FaultOf(line) == dialog.NoFault && r.saidOpen(keys[0]):
			// a former extract has the error, of which nothing is left here
		default:
			for _, key := range keys {
				if _, known := t.last[key]; !known {
					t.last[key] = !failed
				}
			}
			if !failed || r.explained(p+1, shown+" "+line) {
				continue
			}
			e := errorName + oneLine(shown, openLong/2)
			if line != "" {
				e += errorSign + line
			}
			if h := r.ref(&pass); h != "" && !dialog.Brief(text) {
				e += " " + h
			}
			t.out = append(t.out, failure{e, p})
		}
	}
	for _, line := range slices.Backward(r.c.open) {
		e, ok := strings.CutPrefix(line, errorName)
		command, was, _ := strings.Cut(e, errorSign)
		keys, _ := dialog.CommandKeys(command)
		if !ok || len(keys) == 0 {
			continue
		}
		switch all, some := t.solved(keys); {
		case all:
			was, _ = cutHandle(was)
			t.fix(command, keys[0], was, -1)
		case !some && len(t.out) < openErrors && !r.explained(0, e):
			t.last[keys[0]] = false
			if rest, h := cutHandle(line); h != "" && r.o.NoHandles {
				line = rest
			}
			t.out = append(t.out, failure{line, -1})
		}
	}
	for _, line := range slices.Backward(r.c.open) {
		e, ok := strings.CutPrefix(line, fixedName)
		command, was, _ := strings.Cut(e, " (was: ")
		if key := dialog.CommandKey(command); ok && key != "" {
			if good, known := t.last[key]; good || !known {
				t.fix(command, key, strings.TrimSuffix(was, ")"), -1)
			}
		}
	}
	return t.out, t.fixed
}

// saidOpen reports whether a former extract lists a command with that key as failed.
func (r *reading) saidOpen(key string) bool {
	return slices.ContainsFunc(r.c.open, func(line string) bool {
		e, ok := strings.CutPrefix(line, errorName)
		command, _, _ := strings.Cut(e, errorSign)
		return ok && dialog.CommandKey(command) == key
	})
}

var (
	// slipForm matches the complaint of a shell about how a command was written: nothing ran that could be mended.
	slipForm = plain.Pattern(`^(?:\(eval\)|zsh|bash|sh)(?::\d+|: line \d+)*: ` +
		`(?:no matches found|parse error|syntax error|bad substitution|unmatched|=\S* not found)`)
	// dropForm matches words that give a failure up; causeForm those that explain one, unless promiseForm says that it will be mended.
	dropForm = plain.Pattern(`(?i)\b(?:pre-?existing|unrelated|not related|nothing to do with|(?:is|are|was|were|as) expected|` +
		`expected (?:here|failures?|errors?|since|because)|harmless|false (?:alarm|positive)|not an? (?:\w+ )?(?:problem|fault|bug|issue)|` +
		`unavailable|skip(?:ping)?|ignor(?:e|ing)|without (?:it|them)|giv(?:e|ing) up|leave (?:it|that|this)|known (?:issue|failure|problem)|` +
		`flaky|already (?:failing|broken|failed))\b|\binstead(?:[.,;:!]|$)|(?:\bnot|n't) (?:installed|available|needed|necessary|matter)\b`)
	causeForm   = plain.Pattern(`(?i)\b(?:because|caused by|due to|comes? from|the (?:reason|cause))\b`)
	promiseForm = plain.Pattern(`(?i)\b(?:fix|mend|repair|correct|resolve|retry|again|let me|need|must|should|will|now)\b|'ll\b`)
)

// explained reports whether the agent's next text, from passage p on, explains a failure or gives it up. The text follows it, or names
// something of it.
func (r *reading) explained(p int, failure string) bool {
	near := p > 0
	for ; p < len(r.c.Passages); p++ {
		switch pass := &r.c.Passages[p]; {
		case pass.partial:
		case pass.Kind == dialog.KindToolCall:
			near = false
		case pass.Kind == dialog.KindAssistant:
			text := r.original(pass)
			for name := range names(failure) {
				near = near || dialog.FaultOf(name) == dialog.NoFault && strings.Contains(text, name)
			}
			return near && (dropForm().MatchString(text) || causeForm().MatchString(text) && !promiseForm().MatchString(text))
		}
	}
	return false
}

// crosses begin the lines of programs that report one failure of many.
const crosses = "×✕✖✗✘"

// errorLine returns the line of a result that best describes the failure, shortened: the first in the form of an error, or with a word
// for one, or the last; with the count of all if there is one.
func errorLine(text string) string {
	sure, maybe, last, count := "", "", "", ""
	for line := range strings.SplitSeq(text, "\n") {
		if !hasWord(line) || strings.HasPrefix(line, "Traceback (most recent") || dialog.NamesExit(line) || strings.HasPrefix(line, markStart) || readGap(line) > 0 {
			continue
		}
		switch fault := dialog.FaultOf(line); {
		case dialog.Counts(line):
			count = line
		case fault == dialog.SureFault || strings.IndexAny(line, crosses) == len(line)-len(strings.TrimLeft(line, " \t")):
			sure = cmp.Or(sure, line)
		case fault == dialog.MaybeFault:
			maybe = cmp.Or(maybe, line)
		default:
			last = line
		}
	}
	first := cmp.Or(sure, maybe)
	switch {
	case count == "":
		return oneLine(cmp.Or(first, last), openLong)
	case first == "":
		return oneLine(count, openLong)
	}
	return oneLine(first, openLong*3/4) + " (" + oneLine(count, openLong/4) + ")"
}

// oneLine returns at most n bytes of s on one line, without text that a reader of the block could take for its end.
func oneLine(s string, n int) string {
	cut := len(s) > 4*n
	if cut {
		s = s[:4*n]
	}
	s = strings.Join(strings.FieldsFunc(dialog.WithoutColours(strings.ToValidUTF8(s, "")), func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xa0
	}), " ")
	if len(s) > n {
		s, cut = strings.ToValidUTF8(s[:n], ""), true
	}
	if cut {
		s += GapMark
	}
	return s
}

// Settings of habits. With 0.6 to 0.85 of the tokens as the past, and a prior of 1 to 20, the choice is as good or
// better on sessions and projects that the weights were not fitted to: docs/decisions/0017-line-selection.md.
const (
	habitTokens = 150_000 // tokens at the end of the conversation that are used
	habitKnown  = 0.75    // share of them that is the past; the rest is the future
	habitAfter  = 80      // most messages of the future
	habitPrior  = 3.0     // uses that weigh as much as the model's estimate for a group
	minSide     = 4       // least messages of past and future
)

// The families of estimates.
const (
	ofNames = iota
	ofWords
	ofPhrases
	estimates
)

// habitGroups is the number of groups of passages, one for each kind and family of tools.
const habitGroups = kinds * familyCount

// habits correct the model's estimates by the conversation's own past: for each group of passages, the actual use by
// the user and the agent divided by the expected use. One agent reads files again before it changes them, another
// does not; one project quotes the output of commands, another never does.
type habits [estimates][habitGroups]float32

// habits compares the model's estimates for an earlier part of messages with the use in the messages after it. It is
// nil if either part is too short. Messages must be measured. The cost is bounded.
func (m *Model) habits(messages []core.Message) *habits {
	before, after := habitSides(messages)
	if len(before) < minSide || len(after) < minSide {
		return nil
	}
	from := new(dialog.Reader)
	c := read(before, from.Read(before), false, false)
	e := m.Estimate(c)
	terms, phrases := c.reused(m, &Sequel{Before: before, After: after}, from)
	var want, got [estimates][habitGroups]float64
	for n := range c.terms {
		t := &c.terms[n]
		if t.messages == 0 {
			continue
		}
		f, v := ofNames, e.Names[n]
		if t.class == classWord {
			f, v = ofWords, e.Words[n]
		}
		g := c.habitGroup(t.lastLine)
		want[f][g] += float64(v)
		if terms[n] > 0 {
			got[f][g] += float64(terms[n]) * c.weight(n, m.rarity(c.termAt.keys[n]))
		}
	}
	for n := range c.phrases {
		if p := &c.phrases[n]; p.messages <= phraseMessages {
			g := c.habitGroup(p.lastLine)
			want[ofPhrases][g] += float64(e.Phrases[n])
			got[ofPhrases][g] += float64(phrases[n])
		}
	}
	h := &habits{}
	for f := range h {
		prior := habitPrior
		if f == ofPhrases {
			prior *= 3 // phrases come by the dozen
		}
		allWant, allGot := prior, prior
		for g := range want[f] {
			allWant += want[f][g]
			allGot += got[f][g]
		}
		for g := range h[f] {
			h[f][g] = float32((got[f][g]*allWant/allGot + prior) / (want[f][g] + prior))
		}
	}
	return h
}

// habitSides divides the end of messages into past and future.
func habitSides(messages []core.Message) (before, after []core.Message) {
	from, all := len(messages), 0
	for from > 0 && all < habitTokens {
		from--
		all += messages[from].Tokens
	}
	messages = messages[from:]
	at, known := 0, 0
	for at < len(messages) && (float64(known) < habitKnown*float64(all) || messages[at].Role != core.RoleAssistant) {
		known += messages[at].Tokens
		at++
	}
	return messages[:at:at], messages[at:min(len(messages), at+habitAfter)]
}

func (c *Conversation) habitGroup(line int32) int {
	p := &c.Passages[c.Lines[line].Passage]
	return int(p.Kind)*familyCount + int(p.family)
}

// follow corrects e, the estimate for c, by h; nil changes nothing.
func (e *Estimate) follow(h *habits, c *Conversation) {
	if h == nil {
		return
	}
	follow := func(v []float32, f int, lastLine func(n int) int32) (sum float64) {
		for n := range v {
			if v[n] > 0 {
				v[n] *= h[f][c.habitGroup(lastLine(n))]
				sum += float64(v[n])
			}
		}
		return sum
	}
	lineOfTerm := func(n int) int32 { return c.terms[n].lastLine }
	e.nameSum = follow(e.Names, ofNames, lineOfTerm)
	e.wordSum = follow(e.Words, ofWords, lineOfTerm)
	e.phraseSum = follow(e.Phrases, ofPhrases, func(n int) int32 { return c.phrases[n].lastLine })
}
