package value

import (
	"context"
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
