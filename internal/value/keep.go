package value

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// keepNamed serves conversations in which only results may be shortened. It keeps lines with names of the goal: the
// last message of the user, the last text of the agent, and the call. A name in many lines, such as a search pattern,
// does not count. The room grows if these lines need more. Before them it keeps some lines of both ends, where a
// reader looks first.
func keepNamed(_ context.Context, w *choice) error {
	if w.r.o.Only == nil {
		return nil
	}
	const many = 60 // lines of a result
	named := map[int32]bool{}
	name := func(p int) {
		for l := w.r.c.Passages[p].Lines.Start; l < w.r.c.Passages[p].Lines.End; l++ {
			for _, n := range w.r.c.TermsOf(l) {
				named[n] = true
			}
		}
	}
	from, open := w.spent(), 0
	for p := range w.passages {
		if w.passages[p].mode == modeOpen {
			open++
		}
	}
	const (
		ends   = 0.15 // of the room
		minEnd = 40   // tokens that the first and the last line may always have
	)
	each := ends * (float64(w.r.o.Room) - from) / float64(max(1, open))
	for p := range w.r.c.Passages {
		if w.passages[p].mode != modeOpen {
			continue
		}
		lines := w.r.c.Passages[p].Lines
		for _, l := range []int{lines.Start, lines.End - 1} {
			w.takeLine(l, w.spent()+max(each, minEnd))
		}
		w.takeEnds(lines, each)
		clear(named)
		var said [kinds]bool
		for q := p - 1; q >= 0; q-- {
			switch pass := &w.r.c.Passages[q]; {
			case pass.Kind == dialog.KindToolCall && pass.call == w.r.c.Passages[p].call:
				name(q)
			case (pass.Kind == dialog.KindUser || pass.Kind == dialog.KindAssistant) && !said[pass.Kind]:
				said[pass.Kind] = true
				name(q)
			}
			if said[dialog.KindUser] {
				break
			}
		}
		in := map[int32]int{}
		for l := lines.Start; l < lines.End; l++ {
			for _, n := range w.r.c.TermsOf(l) {
				if named[n] {
					in[n]++
				}
			}
		}
		for l := lines.Start; l < lines.End; l++ {
			if slices.ContainsFunc(w.r.c.TermsOf(l), func(n int32) bool { return named[n] && in[n] <= many }) {
				w.takeLine(l, math.Inf(1))
			}
		}
	}
	const most = 0.5 // share of the results' room for these lines, before it grows
	if least := w.picks[0] + (w.spent()-from)/most; least > float64(w.r.o.Room) {
		w.r.o.Room = int(least)
	}
	return nil
}

// keepPasted keeps what the user pasted, up to the user's share of the room: first the tasks, then the newest. A text
// that fits is kept whole. The others are then cut, in rounds that leave something for each.
func keepPasted(_ context.Context, w *choice) error {
	if w.r.talks {
		return nil // keepTalk kept them
	}
	var order []int
	for p := range w.r.c.Passages {
		if w.r.c.Passages[p].Kind == dialog.KindUser && w.passages[p].mode != modeFixed && w.alive(w.r.c.Passages[p].Lines) {
			order = append(order, p)
		}
	}
	if len(order) == 0 {
		return nil
	}
	slices.Reverse(order[1:])
	room := w.r.o.Shares.Human * float64(w.r.o.Room)
	start := w.spent()
	limit := start + room
	large := order[:0:0]
	for _, p := range order {
		lines := w.r.c.Passages[p].Lines
		if cost := w.cost(lines); cost > w.r.o.Shares.Whole*room || w.spent()+cost > limit {
			large = append(large, p)
		} else {
			w.take(lines, cost)
		}
	}
	limit = min(limit, max(w.spent(), start+w.r.o.Shares.Cut*float64(w.r.o.Room)))
	for _, part := range []float64{w.r.o.Shares.Each, 1} {
		for _, p := range large {
			left := max(w.r.o.Shares.Each*room, 2*part*w.r.o.Shares.Each*(limit-w.spent()))
			if part == 1 {
				left = limit - w.spent()
			}
			takeSaid(w, w.r.c.Passages[p].Lines, min(w.spent()+left, limit))
		}
	}
	return nil
}

// alive reports whether any line of a passage may still be kept.
func (w *choice) alive(lines core.Span) bool {
	for l := lines.Start; l < lines.End; l++ {
		if w.lines[l].at == 0 && !w.gone(l) {
			return true
		}
	}
	return false
}

// takeSaid keeps the head of an oversized passage of the user, then the prose in the rest, up to the limit. The rest
// of the pasted text competes with all other lines.
func takeSaid(w *choice, lines core.Span, limit float64) {
	head := w.spent() + w.r.o.Shares.Head*(limit-w.spent())
	l := lines.Start
	for ; l < lines.End && w.takeLine(l, head); l++ { //nolint:revive // takeLine keeps the lines
	}
	for ; l < lines.End; l++ {
		if w.r.c.Lines[l].prose() {
			w.takeLine(l, limit)
		}
	}
}

// keepAsked serves messages that await an answer and are too large to be kept whole, newest first: the beginning and
// the end of each text that is not the user's, and the best of all other lines.
func keepAsked(ctx context.Context, w *choice) error {
	limit := w.spent() + w.r.o.Shares.Asked*w.lay.asking
	first := w.r.passageOf(w.r.unread)
	for p := len(w.passages) - 1; p >= first; p-- {
		pass := &w.r.c.Passages[p]
		if w.lay.cut[pass.Message] && w.passages[p].mode == modeOpen && pass.Kind != dialog.KindUser && pass.rules == "" {
			w.takeEnds(pass.Lines, (limit-w.spent())/4)
		}
	}
	return fillFrom(ctx, w, first, limit, func(p int) bool { return w.lay.cut[w.r.c.Passages[p].Message] && w.eligible(p) })
}

// takeEnds keeps lines from both ends of a passage, up to room tokens.
func (w *choice) takeEnds(lines core.Span, room float64) {
	const head, tail = 0.4, 0.3 // of the room
	from := w.spent()
	l := lines.Start
	for ; l < lines.End && w.takeLine(l, from+head*room); l++ { //nolint:revive // takeLine keeps the lines
	}
	end := w.spent() + tail*room
	for k := lines.End - 1; k >= l && w.takeLine(k, end); k-- { //nolint:revive // takeLine keeps the lines
	}
}

// takeLine keeps line l unless that would exceed the limit. It reports whether the caller can go on: the line is
// kept, or is not to be chosen anyway.
func (w *choice) takeLine(l int, limit float64) bool {
	if w.lines[l].at != 0 || w.gone(l) {
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

// Bounds of the project's rules: a share of the room, and tokens that they may always have. Without the share, half
// of a view of 10 % was rules.
const (
	rulesShare = 0.15
	rulesLeast = 600
)

// rulesRoom returns the tokens that the project's rules may have.
func (r *reading) rulesRoom() float64 { return max(rulesShare*float64(r.o.Room), rulesLeast) }

// keepRules keeps the newest version of each of the project's rules: whole if there is room, else first the sentences
// that forbid or require something. The rest competes with all other lines.
func keepRules(_ context.Context, w *choice) error {
	limit := w.spent() + w.r.rulesRoom()
	for _, imperative := range []bool{true, false} {
		for p := range w.r.c.Passages {
			pass := &w.r.c.Passages[p]
			if pass.rules == "" || pass.outdated || w.passages[p].mode == modeFixed {
				continue
			}
			whole := w.spent()+w.cost(pass.Lines) <= limit
			for l := pass.Lines.Start; l < pass.Lines.End; l++ {
				if text := w.r.c.Lines[l].Text; whole || !imperative || l == pass.Lines.Start || dialog.DemandOf(strings.TrimLeft(text, " \t-*+#>")) > dialog.Prefers {
					w.takeLine(l, limit)
				}
			}
		}
	}
	return nil
}

// keepUnread keeps the best lines of results after the model's last message, up to their share, then lines of other
// wanted passages within it. The model asked for these results, and earlier use does not predict their use.
func keepUnread(ctx context.Context, w *choice) error {
	first := w.r.passageOf(w.r.unread)
	limit := w.spent() + w.r.o.Shares.Unread*float64(w.r.o.Room)
	err := fillFrom(ctx, w, first, limit, w.answers)
	for p := len(w.passages) - 1; p >= first && err == nil; p-- {
		if w.answers(p) {
			w.takeEnds(w.r.c.Passages[p].Lines, limit-w.spent())
		}
	}
	return err
}

// answers reports whether passage p is a result that may be shortened.
func (w *choice) answers(p int) bool { return w.eligible(p) && w.r.c.Passages[p].answers() }

// keepRecent keeps the best line of each of the newest results, newest first, up to their share of the room.
func keepRecent(ctx context.Context, w *choice) error {
	limit := w.spent() + w.r.o.Shares.Recent*float64(w.r.o.Room)
	for p := len(w.passages) - 1; p >= 0 && w.r.c.Passages[p].Message >= w.r.recent; p-- {
		if !w.answers(p) || w.passages[p].mode != modeOpen || w.passages[p].opened > 0 {
			continue
		}
		if w.spent() >= limit {
			break
		}
		if _, err := w.fill(ctx, newQueue(w.candidates(p, p+1, w.eligible)), w.spent()+1); err != nil {
			return err
		}
		if lines := w.r.c.Passages[p].Lines; w.passages[p].opened == 0 {
			w.takeLine(lines.Start, limit)
			w.takeLine(lines.End-1, limit)
		}
	}
	return nil
}

// fillFrom keeps the best lines of the wanted passages from first on, up to limit tokens.
func fillFrom(ctx context.Context, w *choice, first int, limit float64, wanted func(p int) bool) error {
	_, err := w.fill(ctx, newQueue(w.candidates(first, len(w.passages), wanted)), limit)
	return err
}

// Bounds of the marks of pictures and other media, in all: of a hundred screenshots the newest are mentioned. In
// little room one or two may exceed the share. These values were not learned.
const (
	mediaShare  = 0.03
	mediaTokens = 24   // tokens that they may always have,
	mediaMost   = 0.25 // but no more than this share
)

// keepMedia keeps the marks of content without lines: pictures first, newest first. They come after the words of the
// user, and are the first to go if the result is too large.
func keepMedia(_ context.Context, w *choice) error {
	hidden := w.lay.hidden()
	room := float64(w.r.o.Room)
	left := min(max(mediaShare*room, mediaTokens), mediaMost*room)
	for _, images := range []bool{true, false} {
		for k := len(w.r.c.Media) - 1; k >= 0; k-- {
			m := &w.r.c.Media[k]
			if m.image() != images || !hidden[m.by.Message] || w.mediaAt[k] != 0 {
				continue
			}
			if left < minMark {
				return nil
			}
			left -= mark(w, k, left)
		}
	}
	return nil
}

// mark keeps the mark of medium k, unless it has more than most tokens. It returns its tokens.
func mark(w *choice, k int, most float64) float64 {
	w.marks[k] = w.r.c.Media[k].line(!w.r.o.NoHandles)
	cost := float64(w.r.o.Counter.Count(core.Text(w.marks[k])) + 1)
	if cost > most {
		return 0
	}
	w.mediaAt[k] = w.pick(cost)
	return cost
}

// minMark is less than the cost of any mark, in tokens: with less room, none is made.
const minMark = 6

// renderMedia writes the marks of message i before passage p that were not written yet, each under the header of its
// passage.
func (x extraction) renderMedia(b *extractWriter, i, p int) {
	for ; b.media < len(x.r.c.Media); b.media++ {
		m := &x.r.c.Media[b.media]
		if m.by.Message > i || m.by.Message == i && m.before > p {
			return
		}
		if at := x.w.mediaAt[b.media]; m.by.Message < i || at == 0 || at > x.k {
			continue
		}
		if u := b.under; u == nil || u.Message != i || u.Kind != m.by.Kind || u.Name != m.by.Name || u.Target != m.by.Target {
			b.open(&m.by, "", false)
		}
		b.text.WriteByte('\n')
		b.text.WriteString(x.w.marks[b.media])
	}
}
