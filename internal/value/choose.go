package value

import (
	"context"
	"sync"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/value/parallel"
)

// Once the room is full, lines that add less per token to the other kept lines than this share of the last pick's value
// per token are dropped to make room for others, in so many rounds.
const (
	enough = 0.9
	rounds = 2
)

// choose picks lines, best first, until the room is used. Then it drops lines that later picks made redundant, and
// fills the room again.
func (w *choice) choose(ctx context.Context) error {
	w.threshold = 0
	from := int32(len(w.picks) - 1)
	q := newQueue(w.candidates(0, len(w.passages), w.eligible))
	limit := overshoot * float64(w.r.o.Room)
	last, err := w.fill(ctx, q, limit)
	for n := 0; n < rounds && last > 0 && err == nil; n++ {
		for _, l := range w.prune(from, enough*last) {
			w.offer(q, core.Span{Start: l, End: l + 1}, 0)
		}
		w.threshold = last
		last, err = w.fill(ctx, q, limit)
	}
	if last > 0 {
		w.threshold = last
	}
	if err == nil {
		_, err = w.fill(ctx, q, w.most())
	}
	return err
}

// rest fills the remaining room with lines that add nothing to the others: those with the highest value of their own
// first, the newest of equal ones. A line that is also kept elsewhere comes last.
func (w *choice) rest(ctx context.Context) error {
	limit := w.most()
	if w.spent() >= limit {
		return nil
	}
	w.filling = true
	var all []candidate
	for p := range w.r.c.Passages {
		if !w.eligible(p) {
			continue
		}
		lines := w.r.c.Passages[p].Lines
		for l := lines.Start; l < lines.End; l++ {
			if w.lines[l].at == 0 && !w.gone(l) {
				r := max(w.v.alone(l)*w.v.weight(core.Span{Start: l, End: l + 1})/w.lines[l].tokens, 1e-9)
				all = append(all, candidate{r, int32(l), int32(l + 1)})
			}
		}
	}
	for q, n := newQueue(all), 0; w.spent() < limit; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		top, ok := q.top()
		if !ok {
			break
		}
		q.pop()
		if l := int(top.start); w.lines[l].at == 0 {
			s := core.Span{Start: l, End: l + 1}
			if w.r.blocks[l] > 0 {
				s = w.unit(l)
			}
			w.take(s, w.cost(s))
		}
	}
	return nil
}

// most is the number of tokens to choose in all; the excess is dropped when the extract is written.
func (w *choice) most() float64 { return (overshoot+reserve)*float64(w.r.o.Room) + minReserve }

// eligible reports whether lines of passage p may be chosen: the passage is not kept whole, and no newer version of
// its rules is to be kept.
func (w *choice) eligible(p int) bool {
	return w.passages[p].mode == modeOpen || w.passages[p].mode == modeExtract && !w.r.c.Passages[p].outdated
}

// candidates returns the initial candidates from the wanted passages between from and to. The order of a queue does not depend on theirs.
func (w *choice) candidates(from, to int, wanted func(p int) bool) (all []candidate) {
	const least = 64 // passages that are worth a goroutine
	var mu sync.Mutex
	parallel.Ranges(to-from, least, func(start, end int) {
		var list []candidate
		for p := from + start; p < from+end; p++ {
			if !wanted(p) {
				continue
			}
			lines := w.r.c.Passages[p].Lines
			w.spans(lines, lines, func(s core.Span) {
				if r := w.rate(s); r > 0 {
					list = append(list, candidate{r, int32(s.Start), int32(s.End)})
				}
			})
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, list...)
	})
	return all
}

// fill picks the best candidates of q until limit tokens are used. It returns the value per token of the last pick; 0
// if there was none.
func (w *choice) fill(ctx context.Context, q *queue, limit float64) (last float32, err error) {
	for n := 0; w.spent() < limit; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return last, ctx.Err()
		}
		top, ok := q.top()
		if !ok {
			break
		}
		s := core.Span{Start: int(top.start), End: int(top.end)}
		r := w.rate(s)
		if r <= 0 {
			q.pop()
			continue
		}
		if r < top.rate*0.999 {
			q.worsen(r)
			continue
		}
		q.pop()
		w.take(s, w.cost(s))
		last = r
		// Lines next to kept ones became cheaper, and their value rose.
		w.offer(q, s, 2)
	}
	return last, nil
}

// offer adds to q the candidates around the lines of s and up to more lines on each side.
func (w *choice) offer(q *queue, s core.Span, more int) {
	pass := w.r.c.Passages[w.lines[s.Start].passage].Lines
	w.spans(core.Span{Start: max(pass.Start, s.Start-more), End: min(pass.End, s.End+more)}, pass, func(s core.Span) {
		if r := w.rate(s); r > 0 {
			q.push(candidate{r, int32(s.Start), int32(s.End)})
		}
	})
}

// spans yields the candidates around the lines of near: each line by itself and with its neighbours; for results,
// units and blocks.
func (w *choice) spans(near, pass core.Span, yield func(core.Span)) {
	for l := near.Start; l < near.End; l++ {
		if w.lines[l].at != 0 || w.gone(l) {
			continue
		}
		if w.r.blocks[l] > 0 {
			if line := &w.lines[l]; line.terms == line.end {
				continue // worth nothing
			}
			s := w.unit(l)
			yield(s)
			if block := w.v.blockOf(l); l == block.Start || block.End-block.Start <= 2*unitLines {
				yield(block)
			}
			continue
		}
		yield(core.Span{Start: l, End: l + 1})
		if s := (core.Span{Start: max(pass.Start, l-1), End: min(pass.End, l+2)}); s.End-s.Start > 1 {
			yield(s)
		}
	}
}

func (w *choice) spent() float64 { return w.picks[len(w.picks)-1] }

// rate returns the value per token of picking s; 0 if it has no value.
func (w *choice) rate(s core.Span) float32 {
	gain := w.gain(s)
	if gain <= 0 {
		return 0
	}
	return gain * w.v.weight(s) / float32(w.cost(s))
}

// cost returns the tokens that picking s adds: its lines that are not kept yet, and headers and marks around them.
func (w *choice) cost(s core.Span) float64 {
	n := 0.0
	for l := s.Start; l < s.End; l++ {
		if line := &w.lines[l]; line.at == 0 && !w.gone(l) {
			n += float64(line.tokens)
		}
	}
	start, end := &w.lines[s.Start], &w.lines[s.End-1]
	if pass := &w.passages[start.passage]; pass.opened == 0 {
		n += float64(pass.opens)
		if first := w.heading(s.Start); first >= 0 && first < s.Start {
			n += float64(w.lines[first].tokens)
		}
	}
	before := start.first || w.lines[s.Start-1].at != 0
	after := end.last || w.lines[s.End].at != 0
	switch {
	case !before && !after:
		n += gapTokens
	case before && after && !start.first && !end.last:
		n -= gapTokens
	}
	return max(n, 1)
}

// forget marks all terms and phrases as missing from the kept lines.
func (w *choice) forget() {
	for n := range w.terms {
		w.terms[n] = termState{name: w.v.estimate.Names[n], word: w.v.estimate.Words[n]}
	}
	copy(w.phrases, w.v.estimate.Phrases)
}

// lineCredit is the share of its names' value that line l earns if the lines of s are kept.
func (w *choice) lineCredit(l int, s core.Span) float32 {
	credit := w.r.o.Shares.Line
	if w.lines[l].first || within(l-1, s) || w.lines[l-1].at != 0 {
		credit += w.r.o.Shares.Adjacent
	}
	if w.lines[l].last || within(l+1, s) || w.lines[l+1].at != 0 {
		credit += w.r.o.Shares.Adjacent
	}
	return float32(credit)
}

// keptAbove and keptBelow report whether the line next to line l belongs to its passage and is kept.
func (w *choice) keptAbove(l int) bool { return !w.lines[l].first && w.lines[l-1].at != 0 }
func (w *choice) keptBelow(l int) bool { return !w.lines[l].last && w.lines[l+1].at != 0 }

func within(l int, s core.Span) bool { return l >= s.Start && l < s.End }

// gain returns the value that keeping the lines of s adds.
func (w *choice) gain(s core.Span) float32 {
	gain := float32(0)
	from, to := w.adjacent(s)
	for l := from; l < to; l++ {
		line := &w.lines[l]
		if line.at == 0 && !within(l, s) {
			continue
		}
		fresh := line.at == 0
		credit := w.lineCredit(l, s)
		for _, n := range w.v.termsOf(line) {
			if t := &w.terms[n]; t.name > 0 {
				if d := credit - t.credit; d > 0 {
					gain += d * t.name
				}
			} else if fresh && t.credit == 0 {
				gain += t.word
			}
		}
		carries := w.keptAbove(l) || !line.first && within(l-1, s)
		for _, n := range w.v.phrasesOf(line) {
			if n >= 0 {
				if fresh {
					gain += w.phrases[n]
				}
			} else if carries {
				gain += w.phrases[^n]
			}
		}
	}
	return gain
}

// adjacent returns s extended by the lines next to it in the same passage.
func (w *choice) adjacent(s core.Span) (from, to int) {
	from, to = s.Start, s.End
	if !w.lines[from].first {
		from--
	}
	if !w.lines[to-1].last {
		to++
	}
	return from, to
}

// take keeps the lines of s at the given cost.
func (w *choice) take(s core.Span, cost float64) {
	at := w.pick(cost)
	pass := &w.passages[w.lines[s.Start].passage]
	if first := w.heading(s.Start); first >= 0 && pass.opened == 0 && first < s.Start {
		w.lines[first].at = at
		pass.opened++
		w.settle(w.adjacent(core.Span{Start: first, End: first + 1}))
	}
	for l := s.Start; l < s.End; l++ {
		if w.lines[l].at == 0 && !w.gone(l) {
			w.lines[l].at = at
			pass.opened++
		}
	}
	w.settle(w.adjacent(s))
}

// heading returns the first line of the command or of the user's text that contains line l, if it may be chosen; else
// -1. The purpose of a command, or a line of a script, is meaningless without it, and the user's last sentence may say
// the opposite without the first.
func (w *choice) heading(l int) int {
	p := w.lines[l].passage
	pass := &w.r.c.Passages[p]
	first := pass.Lines.Start
	if pass.Kind == dialog.KindUser && w.eligible(int(p)) && w.lines[first].at == 0 {
		return first
	}
	if pass.Kind != dialog.KindToolCall || pass.family != families[dialog.FamilyCommand] || w.passages[p].mode != modeExtract || w.lines[first].at != 0 || w.gone(first) || w.lines[first].tokens > headingLong {
		return -1
	}
	return first
}

// headless reports whether line l is of a text of the user of which the first line is not among the first k picks, and
// was not picked together with l.
func (w *choice) headless(l int, k int32) bool {
	pass := &w.r.c.Passages[w.lines[l].passage]
	first := w.lines[pass.Lines.Start].at
	return pass.Kind == dialog.KindUser && (first == 0 || first > k && first != w.lines[l].at)
}

// headingLong is the most tokens that the first line of a command may have to be kept with its other lines.
const headingLong = 60

// pick records a choice with its cost, and returns its number.
func (w *choice) pick(cost float64) int32 {
	at := int32(len(w.picks))
	if at == 1 {
		at = 2 // 1 marks lines that are kept without a pick
		w.picks = append(w.picks, w.picks[0])
	}
	w.picks = append(w.picks, w.spent()+cost)
	return at
}

// settle adds the terms and phrases of the kept lines between from and to.
func (w *choice) settle(from, to int) {
	for l := from; l < to; l++ {
		line := &w.lines[l]
		if line.at == 0 {
			continue
		}
		credit := w.lineCredit(l, core.Span{})
		for _, n := range w.v.termsOf(line) {
			w.terms[n].credit = max(w.terms[n].credit, credit)
		}
		carries := w.keptAbove(l)
		for _, n := range w.v.phrasesOf(line) {
			if n >= 0 {
				w.phrases[n] = 0
			} else if carries {
				w.phrases[^n] = 0
			}
		}
	}
}
