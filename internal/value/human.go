package value

import (
	"context"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/value/need"
)

// keepHuman takes what the person said: the first message, then the newest, then the rest,
// as far as the share goes.
func (w *work) keepHuman(context.Context) error {
	var order []int
	for p := range w.c.Passages {
		if w.c.Passages[p].Kind == need.Human && w.passages[p].mode != modeFixed {
			order = append(order, p)
		}
	}
	if len(order) == 0 {
		return nil
	}
	slices.Reverse(order[1:])
	room := w.o.Shares.Human * float64(w.o.Room)
	each := w.o.Shares.Each * room
	// What was pasted must not crowd out what was asked: nobody gets more than a part at first.
	for round := range 2 {
		for k, p := range order {
			left := room
			switch {
			case k == 0 && len(order) > 1:
				left *= w.o.Shares.First
			case round == 0:
				left = min(left, each)
			}
			for _, l := range w.said(w.c.Passages[p].Lines, left) {
				span := core.Span{Start: l, End: l + 1}
				cost := w.cost(span)
				if cost > left {
					continue
				}
				w.take(span, cost)
				left -= cost
				room -= cost
			}
		}
	}
	return nil
}

// said returns the lines of a passage of the person that are to stay if there is room for
// them: all that are not kept yet, or, where left tokens are too few for the passage, its
// head and the prose in the rest. What was pasted has to compete with all other lines.
func (w *work) said(pass core.Span, left float64) []int {
	all := float32(0)
	for l := pass.Start; l < pass.End; l++ {
		all += w.lines[l].tokens
	}
	long := float64(all) > left
	head := w.o.Shares.Head * left
	var out []int
	for l := pass.Start; l < pass.End; l++ {
		head -= float64(w.lines[l].tokens)
		if w.lines[l].at == 0 && (!long || head > 0 || w.c.Lines[l].Prose()) {
			out = append(out, l)
		}
	}
	return out
}
