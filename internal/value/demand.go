package value

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/parallel"
)

// What the user forbids, requires, limits or prefers is needed as long as the conversation goes on, and never
// shows that: a rule that is obeyed is not mentioned again. So such sentences are found by their form, kept
// before all else but the project's rules, and have a block of their own in an extract. Only the user's words
// count. Of two sentences about the same, the newer one holds, and the older one is left out.

// A said is a sentence of the user.
type said struct {
	line     int
	at       core.Span // in the line
	passage  int
	brief    bool // of a passage with few lines, which was typed and not pasted
	block    bool // it is in the block of an extract
	demand   dialog.Demand
	asks     bool     // it is a question
	changes  bool     // it says that something changed
	strongly bool     // and not only by the word now
	words    []string // that say what it is about, sorted
	numbers  []numbered
	dead     bool // a newer sentence replaces it
}

// A numbered is a number and the word that says what it counts.
type numbered struct{ value, unit string }

// Of a passage with more lines, the first and the last are read: the rest was pasted.
const (
	demandHead = 60
	demandTail = 30
	// A passage of more lines replaces nothing that was said before.
	demandBrief = 12
)

// demands finds the demands of the user, and splits lines so that each is one by itself.
func (c *Conversation) demands() {
	var all []said
	for p := range c.Passages {
		pass := &c.Passages[p]
		if pass.Kind != dialog.KindUser || pass.Rules != "" {
			continue
		}
		for l := pass.Lines.Start; l < pass.Lines.End; l++ {
			if l == pass.Lines.Start+demandHead {
				l = max(l, pass.Lines.End-demandTail)
			}
			for _, at := range dialog.Sentences(c.Lines[l].Text) {
				all = append(all, said{line: l, at: at, passage: p, brief: pass.Demands || pass.Lines.End-pass.Lines.Start <= demandBrief, block: pass.Demands})
			}
		}
	}
	const least = 64 // sentences that are worth a goroutine
	parallel.Ranges(len(all), least, func(from, to int) {
		for i := from; i < to; i++ {
			s := &all[i]
			s.read(c.Lines[s.line].Text[s.at.Start:s.at.End])
		}
	})
	supersede(all)
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
	s.words, s.numbers = about(text)
	if s.asks = strings.HasSuffix(strings.TrimSpace(text), "?"); len(s.words) > 0 && !s.asks {
		s.changes, s.strongly = dialog.Changes(text)
	}
}

// spoken reports whether a sentence is made of words, and not of code or data.
func spoken(text string) bool {
	words, signs := 0, 0
	for f := range strings.FieldsSeq(text) {
		f = strings.Trim(f, "\"'`*_.,:;!?()")
		switch {
		case f == "":
		case strings.IndexFunc(f, func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' && r != '’' && r != '-' }) < 0:
			words++
		default:
			signs++
		}
	}
	return words >= 2 && words >= signs
}

// about returns the words that say what a sentence is about, and the numbers in it.
func about(text string) (words []string, numbers []numbered) {
	before := ""
	fields := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i, f := range fields {
		if f[0] >= '0' && f[0] <= '9' {
			value := strings.TrimRightFunc(f, unicode.IsLetter)
			unit := f[len(value):]
			if unit == "" && i+1 < len(fields) && (!common[fields[i+1]] || units[fields[i+1]]) {
				unit = fields[i+1]
			}
			if unit == "" {
				unit = before
			}
			numbers = append(numbers, numbered{value, stem(unit)})
			continue
		}
		if strings.ContainsFunc(f, unicode.IsDigit) { // a name: vendor1 is another one than vendor2
			if !slices.Contains(words, f) {
				words = append(words, f)
			}
			before = f
			continue
		}
		if w := stem(f); len(f) > 2 && !common[f] && !common[w] && !slices.Contains(words, w) {
			words = append(words, w)
		}
		if !common[f] {
			before = f
		}
	}
	slices.Sort(words)
	return words, numbers
}

// stem returns what forms of a word have in common, mostly: its beginning, without the usual ends.
func stem(w string) string {
	const most = 6 // letters
	for _, end := range []string{"s", "ing", "ed", "er", "e"} {
		if rest, ok := strings.CutSuffix(w, end); ok && len(rest) >= 3 {
			w = rest
		}
	}
	n := 0
	for i := range w {
		if n++; n > most {
			return w[:i]
		}
	}
	return w
}

// common are words that do not say what a sentence is about.
var common = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`the a an and or but not no nor so if then than that this these those there here it its is are was were be been being am i you he she we they me my your our their his her them us
		do does did don doesn didn has have had having can could will would should may might must need needs to of in on at by for from with without into onto over under above below within up out off about as
		never always only ever just also too very more most less least much many any some all each every other another same such own one two first last next before after now again still yet once please ok okay thanks
		let lets make made get got use used using keep go say says said want wants like prefer rather instead longer anymore sure what which who whom whose when where why how because while until unless though
		called call named name know known new old earlier previous changed change wrong correction actually good look see thing things way really anything nothing everything something
		der die das ein eine einen einem und oder aber nicht kein keine ist sind war im in an auf von mit für zu den dem des wir ihr ich du sie es bitte nur nie niemals immer darf jetzt doch ab sofort mehr als
		le la les un une des et ou mais ne pas est sont dans sur de du au aux pour avec je tu nous vous il elle ce cette jamais toujours faut maintenant désormais plus que
		el los las una unos unas y o pero es son en sobre del al para con yo tú nosotros ustedes esta este nunca siempre por favor ahora más que`) {
		m[w] = true
	}
	return m
}()

// units are words that may follow a number as its unit, and do not say what the sentence is about.
var units = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq("s sec second seconds ms millisecond milliseconds min minute minutes h hour hours day days b kb mb gb kib mib gib percent px") {
		m[w], common[w] = true, true
	}
	return m
}()

// supersede marks the sentences that a newer one replaces. What replaces a demand is one.
func supersede(all []said) {
	const look = 60 // newest sentences with a word that are compared
	having := map[string][]int{}
	shared := make([]int32, len(all)) // words, with each older sentence
	rare := make([]bool, len(all))    // shares a word that no other sentence has
	var met []int                     // sentences that share any
	for i := range all {
		s := &all[i]
		if s.brief && (s.changes || len(s.numbers) > 0 || s.demand > 0) {
			for _, w := range s.words {
				list := having[w]
				for _, k := range list[max(0, len(list)-look):] {
					if shared[k]++; shared[k] == 1 {
						met = append(met, k)
					}
					rare[k] = rare[k] || len(list) == 1
				}
			}
		}
		best, most := -1, 0.0
		for _, k := range met {
			n := int(shared[k])
			if old := &all[k]; !old.dead && old.passage != s.passage && s.replaces(old, n, rare[k]) {
				if share := float64(n)/float64(min(len(s.words), len(old.words))) + float64(k)/float64(100*len(all)); share > most {
					best, most = k, share
				}
			}
			shared[k], rare[k] = 0, false
		}
		met = met[:0]
		if best >= 0 {
			all[best].dead = true
			s.demand = max(s.demand, all[best].demand)
		}
		for _, w := range s.words {
			having[w] = append(having[w], i)
		}
	}
}

// replaces reports whether s, which shares so many words with an older sentence, says something newer about
// the same.
func (s *said) replaces(old *said, shared int, rare bool) bool {
	least := min(len(s.words), len(old.words))
	same := shared == len(s.words) && shared == len(old.words)
	switch {
	case same && slices.Equal(s.numbers, old.numbers):
		return s.demand > 0 && s.demand >= old.demand // it is said again
	case s.asks || old.asks:
		return false
	case s.renumbers(old): // "rule 1: …" and "rule 2: …" are two rules
		return shared == least || s.changes && 2*shared >= least
	case !s.changes || old.demand > dialog.Prefers && !s.strongly: // to lose a rule is worse than to keep one too many
		return false
	case shared >= 2:
		return 2*shared >= least || s.strongly && 3*shared >= least
	}
	const short = 14 // words
	return rare && s.strongly && least <= 6 && max(len(s.words), len(old.words)) <= short && (old.demand <= dialog.Prefers || s.demand > 0)
}

// renumbers reports whether s and an older sentence give different numbers of the same.
func (s *said) renumbers(old *said) bool {
	for _, a := range s.numbers {
		for _, b := range old.numbers {
			if a.unit == b.unit && a.value != b.value {
				return true
			}
		}
	}
	return false
}

// split makes lines of the demands and of what is replaced.
func (c *Conversation) split(all []said) {
	all = slices.DeleteFunc(all, func(s said) bool { return s.demand == 0 && !s.dead })
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
			add := func(end int, demand dialog.Demand, dead bool) {
				if from >= end {
					return
				}
				line := was[l]
				line.Text, line.start = line.Text[from:end], line.start+from
				if line.Outdated = dead; !dead {
					line.demand = demand
				}
				if from > 0 {
					line.Joins, line.Gap = true, 0
				}
				c.Lines = append(c.Lines, line)
				from = end
			}
			for ; next < len(all) && all[next].line == l; next++ {
				add(all[next].at.Start, 0, false)
				add(all[next].at.End, all[next].demand, all[next].dead)
			}
			add(len(was[l].Text), 0, false)
			if len(was[l].Text) == 0 {
				c.Lines = append(c.Lines, was[l])
			}
		}
		pass.Lines.End = len(c.Lines)
	}
}

// keepDemands takes the demands of the user, up to their share of the room: the strongest first, and of these the
// newest.
func (w *selection) keepDemands(context.Context) error {
	from := w.spent()
	limit := from + w.o.Shares.Demands*float64(w.o.Room)
	for demand := dialog.Forbids; demand > 0; demand-- {
		for p, pass := range slices.Backward(w.c.Passages) {
			if w.passages[p].mode == modeFixed {
				continue
			}
			for l := pass.Lines.End - 1; l >= pass.Lines.Start; l-- {
				if w.c.Lines[l].demand == demand {
					w.takeLine(l, limit)
				}
			}
		}
	}
	w.demanded = w.spent() - from
	return nil
}

// inBlock reports whether line l, of a passage in an extract, is in the block of the demands.
func (w *selection) inBlock(l int, k int32) bool { return w.c.Lines[l].demand > 0 && w.kept(l, k) }

// renderDemands writes the block: the demands of hidden messages, the oldest first.
func (w *selection) renderDemands(b *extractWriter, k int32) {
	hidden, began := w.hidden(), false
	for p := range w.c.Passages {
		pass := &w.c.Passages[p]
		if !hidden[pass.Message] {
			continue
		}
		for l := pass.Lines.Start; l < pass.Lines.End; l++ {
			if !w.inBlock(l, k) {
				continue
			}
			if !began {
				b.open(&Passage{Kind: dialog.KindUser, Demands: true}, "", true)
				began = true
			}
			b.text.WriteByte('\n')
			text := strings.TrimSpace(w.c.Lines[l].Text)
			if Literal(text) {
				b.marks = append(b.marks, b.text.Len())
				b.text.WriteByte('|')
			}
			b.text.WriteString(text)
		}
	}
}
