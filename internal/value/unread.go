package value

import (
	"context"
	"math"
	"slices"
	"sort"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/value/need"
)

// keepAsked takes, of messages that have to be answered and are too large to stay whole, the
// newest first, the beginning, the end and the prose of what the person said, then the beginning
// and the end of the rest, and the best of all other lines.
func (w *work) keepAsked(ctx context.Context) error {
	limit := w.spent() + w.o.Shares.Asked*w.asking
	first := w.passageOf(w.unread)
	for _, human := range []bool{true, false} {
		for p := len(w.passages) - 1; p >= first; p-- {
			pass := &w.c.Passages[p]
			if !w.cut[pass.Message] || w.passages[p].mode != modeOpen || (pass.Kind == need.Human) != human || pass.Rules != "" {
				continue
			}
			left := limit - w.spent()
			if !human {
				left /= 4
			}
			w.takeEnds(pass.Lines, left)
			for l := pass.Lines.Start; human && l < pass.Lines.End; l++ {
				if w.c.Lines[l].Prose() {
					w.takeLine(l, limit)
				}
			}
		}
	}
	return w.fillFrom(ctx, first, limit, func(p int) bool { return w.cut[w.c.Passages[p].Message] && w.eligible(p) })
}

// takeEnds takes lines from the beginning of a passage and from its end, as far as room goes.
func (w *work) takeEnds(lines core.Span, room float64) {
	const head, tail = 0.4, 0.3 // of the room
	from := w.spent()
	l := lines.Start
	for ; l < lines.End && w.takeLine(l, from+head*room); l++ { //nolint:revive // it takes them
	}
	end := w.spent() + tail*room
	for k := lines.End - 1; k >= l && w.takeLine(k, end); k-- { //nolint:revive // it takes them
	}
}

// takeLine takes line l unless so much is spent then. It reports whether it is there.
func (w *work) takeLine(l int, limit float64) bool {
	if w.lines[l].at != 0 {
		return true
	}
	s := core.Span{Start: l, End: l + 1}
	cost := w.cost(s)
	if w.spent()+cost > limit {
		return false
	}
	w.take(s, cost)
	return true
}

// passageOf returns the first passage of message i or a later one.
func (w *work) passageOf(i int) int {
	return sort.Search(len(w.c.Passages), func(p int) bool { return w.c.Passages[p].Message >= i })
}

// keepRules takes the project's rules, the newest version of each: they go only when there
// is nothing else left that could.
func (w *work) keepRules(context.Context) error {
	for p := range w.c.Passages {
		if pass := &w.c.Passages[p]; pass.Rules != "" && !pass.Outdated && w.passages[p].mode != modeFixed {
			for l := pass.Lines.Start; l < pass.Lines.End; l++ {
				w.takeLine(l, math.Inf(1))
			}
		}
	}
	return nil
}

// keepUnread takes the best lines of the results that the model has not read yet, those after
// its last message, as far as the share goes, and then what else there is room for in it. It asked
// for them, and what it will make of them cannot be told by what it used before.
func (w *work) keepUnread(ctx context.Context) error {
	first := w.passageOf(w.unread)
	limit := w.spent() + w.o.Shares.Unread*float64(w.o.Room)
	err := w.fillFrom(ctx, first, limit, w.answers)
	for p := len(w.passages) - 1; p >= first && err == nil; p-- {
		if w.answers(p) {
			w.takeEnds(w.c.Passages[p].Lines, limit-w.spent())
		}
	}
	return err
}

// answers reports whether passage p is of the answer of a tool and may be shortened.
func (w *work) answers(p int) bool {
	k := w.c.Passages[p].Kind
	return w.eligible(p) && (k == need.Output || k == need.Failure)
}

// keepRecent takes the best line of each of the newest results, the newest first, as far as
// the share goes.
func (w *work) keepRecent(ctx context.Context) error {
	limit := w.spent() + w.o.Shares.Recent*float64(w.o.Room)
	for p := len(w.passages) - 1; p >= 0 && w.c.Passages[p].Message >= w.recent; p-- {
		if !w.answers(p) || w.passages[p].mode != modeOpen || w.passages[p].opened > 0 {
			continue
		}
		if w.spent() >= limit {
			break
		}
		if _, err := w.fill(ctx, newQueue(w.candidates(p, p+1, w.eligible)), w.spent()+1); err != nil {
			return err
		}
		if lines := w.c.Passages[p].Lines; w.passages[p].opened == 0 {
			w.takeLine(lines.Start, limit)
			w.takeLine(lines.End-1, limit)
		}
	}
	return nil
}

// keepRest gives what is left of the room to lines that add nothing to the others, the newest
// first: a line that is repeated is left out for want of room alone.
func (w *work) keepRest(context.Context) error {
	limit := w.most()
	for p, pass := range slices.Backward(w.c.Passages) {
		if !w.eligible(p) {
			continue
		}
		for l := pass.Lines.Start; l < pass.Lines.End; l++ {
			if w.spent() >= limit {
				return nil
			}
			w.takeLine(l, math.Inf(1))
		}
	}
	return nil
}

// fillFrom takes the best lines of the passages from first on that are wanted, until so much is
// spent.
func (w *work) fillFrom(ctx context.Context, first int, limit float64, wanted func(p int) bool) error {
	_, err := w.fill(ctx, newQueue(w.candidates(first, len(w.passages), wanted)), limit)
	return err
}
