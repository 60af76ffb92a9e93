package value

import (
	"context"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/value/parallel"
)

// A prohibition, requirement, limit or preference of the user holds as long as the conversation goes on, but its use
// does not show: a rule that is obeyed is not mentioned again. Such sentences are found by their form and kept in
// place before everything but the project's rules. Only the user's own words count. Of two sentences about the same
// subject the newer one holds, and the older one is left out.

// A said is a sentence of the user.
type said struct {
	line     int
	at       core.Span // in the line
	passage  int
	brief    bool // in a short passage, typed rather than pasted
	block    bool // it is in an extract's block of demands
	demand   dialog.Demand
	asks     bool     // it is a question
	changes  bool     // it announces a change
	strongly bool     // and not only by the word now
	words    []string // subject words, sorted
	all      []string // all words, in order
	names    []string // names of several parts
	numbers  []numbered
	dead     bool // a newer sentence replaces it
}

// A numbered is a number with its unit.
type numbered struct{ value, unit string }

// In a longer passage only the first and the last lines are read: the rest was pasted.
const (
	demandHead = 60
	demandTail = 30
	// A passage of more lines replaces no earlier sentence.
	demandBrief = 12
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
				all = append(all, said{line: l, at: at, passage: p, brief: pass.demands || pass.Lines.End-pass.Lines.Start <= demandBrief, block: pass.demands})
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
	s.about(text)
	if s.asks = dialog.Asks(text); len(s.words) > 0 && !s.asks {
		s.changes, s.strongly = dialog.Changes(text)
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

// about extracts the subject of the sentence: its words, numbers and names.
func (s *said) about(text string) {
	before := ""
	low := strings.ToLower(text)
	add := func(w string) {
		if !slices.Contains(s.words, w) {
			s.words = append(s.words, w)
		}
	}
	fields := strings.FieldsFunc(low, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
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
			s.numbers = append(s.numbers, numbered{value, subject(unit)})
			continue
		}
		if r, _ := utf8.DecodeRuneInString(f); unicode.Is(unicode.Han, r) {
			signs := []rune(f) // a script without spaces: a pair of signs is roughly a word
			for k := 0; k+1 < len(signs); k++ {
				if !strings.ContainsRune(helpers, signs[k]) && !strings.ContainsRune(helpers, signs[k+1]) {
					add(string(signs[k : k+2]))
				}
			}
			before = f
			continue
		}
		if strings.ContainsFunc(f, unicode.IsDigit) { // a name: vendor1 is not vendor2
			add(f)
		} else if len(f) > 2 && !common[f] && !common[strings.TrimSuffix(f, "s")] {
			add(subject(f))
		}
		if !common[f] {
			before = f
		}
	}
	slices.Sort(s.words)
	s.all = fields
	if len(fields) > 0 && strings.ContainsFunc(low, func(r rune) bool { return unicode.Is(unicode.Han, r) }) {
		s.all = nil
		for _, f := range fields {
			if r, _ := utf8.DecodeRuneInString(f); unicode.Is(unicode.Han, r) {
				s.all = append(s.all, strings.Split(f, "")...)
			} else {
				s.all = append(s.all, f)
			}
		}
	}
	for f := range strings.FieldsSeq(low) {
		f = strings.TrimFunc(f, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '(' && r != ')' && r != '/'
		})
		if len(f) < nameMost && strings.ContainsAny(f, "/_-.(") {
			s.names = append(s.names, f)
		}
	}
}

// helpers are signs that do not occur in the words of a subject.
const helpers = "的了是在不要请也就都把被和我你他们这那个有改现别更"

const nameMost = 120 // bytes

// sibling reports whether two names differ in one part and agree in another: services/a and services/b.
func sibling(a, b string) bool {
	cut := func(s string) (parts []string, signs string) {
		from := 0
		for i := 0; i < len(s); i++ {
			if strings.IndexByte("/_-.()", s[i]) >= 0 {
				parts, signs, from = append(parts, s[from:i]), signs+s[i:i+1], i+1
			}
		}
		return append(parts, s[from:]), signs
	}
	x, xs := cut(a)
	y, ys := cut(b)
	if len(x) != len(y) || xs != ys {
		return false
	}
	same, other := strings.Contains(xs, "()"), 0
	for i := range x {
		if x[i] != y[i] {
			other++
		} else if len(x[i]) > 1 {
			same = true
		}
	}
	return same && other == 1
}

// frame returns the share of the shorter sentence that the other sentence has in the same words and order.
func frame(a, b []string) float64 {
	short := min(len(a), len(b))
	if short < 4 || short > demandBrief*demandBrief {
		return 0
	}
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			up := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(up, row[j])
			}
			diagonal = up
		}
	}
	return float64(row[len(b)]) / float64(short)
}

// stem returns the beginning of a word without common endings, which is mostly the same in all its forms.
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

// subject returns the stem of a word, or one stem for all words that mean nearly the same.
func subject(w string) string {
	w = stem(w)
	if of, ok := kin[w]; ok {
		return of
	}
	return w
}

// kin maps stems of words with nearly the same meaning to one of them.
var kin = func() map[string]string {
	m := map[string]string{}
	for line := range strings.SplitSeq(`folder directory dir place location
		database db
		configuration config settings
		registry mirror
		answer reply respond response
		limit cap ceiling budget maximum maximal quota tope
		machine box host server computer
		customer client
		begin start first
		release version
		diagram picture drawing draw
		secret credential password
		delete remove erase
		documentation docs doc wiki manual
		demonstration demo audience
		account login user
		flag switch option
		bug crash fault
		colleague contact
		endpoint route
		approve approval sign nod
		row record
		job cron
		ordner verzeichnis
		carpeta directorio sitio
		dossier répertoire
		request call
		second seconds sec
		millisecond milliseconds ms`, "\n") {
		words := strings.Fields(line)
		for _, w := range words {
			m[stem(w)] = stem(words[0])
		}
	}
	return m
}()

// common are words that do not identify a subject.
var common = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`the a an and or but not no nor so if then than that this these those there here it its is are was were be been being am i you he she we they me my your our their his her them us
		do does did don doesn didn has have had having can could will would should may might must need needs to of in on at by for from with without into onto over under above below within up out off about as
		never always only ever just also too very more most less least much many any some all each every other another same such own one two first last next before after now again still yet once please ok okay thanks
		let lets make made get got use used using keep go say says said want wants like prefer rather instead longer anymore sure what which who whom whose when where why how because while until unless though
		called know known sorry wait follow following work works working look looked looking seen update correction mistake confused mixed else somebody someone people new old earlier previous changed change wrong correction actually good look see thing things way really anything nothing everything something
		der die das ein eine einen einem und oder aber nicht kein keine ist sind war im in an auf von mit für zu den dem des wir ihr ich du sie es bitte hätte lieber liebsten gern gerne mir sind doch also nun nur nie niemals immer darf jetzt ab sofort mehr als
		le la les un une des et ou mais ne pas est sont dans sur de du au aux pour avec je tu nous vous il elle ce cette jamais toujours faut maintenant désormais plus que
		el los las una unos unas y o pero es son en sobre del al para con yo tú nosotros ustedes esta este nunca siempre por favor ahora más que`) {
		m[w] = true
	}
	return m
}()

// units are words that may follow a number as its unit and do not identify the subject.
var units = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq("s sec second seconds ms millisecond milliseconds min minute minutes h hour hours day days b kb mb gb kib mib gib percent px") {
		m[w], common[w] = true, true
	}
	return m
}()

// supersede marks sentences that a newer sentence replaces. A sentence that replaces a demand is a demand.
func supersede(all []said) {
	const look = 60 // the newest sentences with a word that are compared
	having := map[string][]int{}
	shared := make([]int, len(all))     // words in common with each older sentence
	weight := make([]float64, len(all)) // of the shared words: the fewer sentences have a word, the greater its weight
	var met []int                       // sentences that share any word
	for i := range all {
		s := &all[i]
		if s.brief && (s.changes || len(s.numbers) > 0 || s.demand > 0) {
			for _, w := range s.words {
				list := having[w]
				weighs := 1 / math.Sqrt(float64(len(list)))
				for _, k := range list[max(0, len(list)-look):] {
					if shared[k]++; shared[k] == 1 {
						met = append(met, k)
					}
					weight[k] += weighs
				}
			}
		}
		best, most := -1, 0.0
		for _, k := range met {
			if old := &all[k]; !old.dead && old.passage != s.passage {
				if score := s.replaces(old, shared[k], weight[k]); score > 0 {
					if score += float64(k) / float64(100*len(all)); score > most {
						best, most = k, score
					}
				}
			}
			shared[k], weight[k] = 0, 0
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

// replaces returns the confidence that s is a newer statement about the subject of old; 0 if it is not. Shared is the
// number of common words, weight their total weight: a word in no other sentence has 1.
func (s *said) replaces(old *said, shared int, weight float64) float64 {
	least := min(len(s.words), len(old.words))
	same := shared == len(s.words) && shared == len(old.words)
	if same && slices.Equal(s.numbers, old.numbers) {
		if s.demand > 0 && s.demand >= old.demand { // it is repeated
			return 10
		}
		return 0
	}
	if s.asks || old.asks || shared == len(s.words) && len(s.numbers) == 0 || shared == len(old.words) && shared <= 2 && len(old.numbers) == 0 {
		return 0 // one has no value that could replace the other's
	}
	score, renumbers := weight, s.renumbers(old)
	if renumbers {
		score++
	}
	if renumbers && (shared == least || s.changes && 2*shared >= least) { // "rule 1: …" and "rule 2: …" are two rules
		return score + 1
	}
	if !s.changes {
		return 0
	}
	kin := slices.ContainsFunc(s.names, func(a string) bool {
		return slices.ContainsFunc(old.names, func(b string) bool { return sibling(a, b) })
	})
	if kin {
		score++
	}
	words := frame(s.all, old.all)
	score += words
	rule := old.demand > dialog.Prefers // losing a rule is worse than keeping one too many
	switch {
	case words >= 0.6 && (s.strongly || !rule || words >= 0.75):
		return score
	case s.strongly && (kin || renumbers) && weight >= 0.5:
		return score
	case kin && weight >= 0.5 && (!rule || s.demand > 0):
		return score
	case rule && !s.strongly:
		return 0
	case rule && s.demand == 0 && !kin && !renumbers, (len(s.numbers) > 0) != (len(old.numbers) > 0): // a number in place of a name
		return 0
	case shared >= 2 && (2*shared >= least || s.strongly && 3*shared >= least):
		return score
	}
	const short = 8 // words
	if weight >= 1 && s.strongly && old.brief && least <= short/2 && max(len(s.words), len(old.words)) <= short && !rule {
		return score
	}
	return 0
}

// renumbers reports whether s and an older sentence give different numbers for the same subject.
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

// split divides lines that are shortened at the ends of sentences into one line per sentence: long lines, and lines
// with a demand or a replaced sentence.
func (c *Conversation) split(all []said) {
	const long = 160 // bytes
	split := map[int]bool{}
	for i := range all {
		split[all[i].line] = split[all[i].line] || all[i].demand > 0 || all[i].dead || len(c.Lines[all[i].line].Text) > long
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
			add := func(end int, demand dialog.Demand, dead bool) {
				if from >= end {
					return
				}
				line := was[l]
				line.Text, line.start = line.Text[from:end], line.start+from
				if line.outdated = dead; !dead {
					line.demand = demand
				}
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

// keepDemands keeps the demands of the user, up to their share of the room, strongest first and newest first among
// equals.
func (w claims) keepDemands(context.Context) error {
	limit := w.spent() + w.o.Shares.Demands*float64(w.o.Room)
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
	return nil
}
