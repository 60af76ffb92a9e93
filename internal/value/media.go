package value

import (
	"context"

	"github.com/condensehq/condense/core"
)

// What marks of pictures and the like may take of the room, in all: with a hundred
// screenshots the newest are mentioned. Of little room one or two may have more. Nobody
// learned these.
const (
	mediaShare  = 0.03
	mediaTokens = 24   // what they may have in any case,
	mediaMost   = 0.25 // but for this share
)

// keepMedia takes the marks of what has no lines: pictures first, the newest first. They
// come after what the person said, and are left out before anything is too large.
func (w *work) keepMedia(context.Context) error {
	w.mediaAt = make([]int32, len(w.c.Media))
	w.marks = make([]string, len(w.c.Media))
	hidden := w.hidden()
	room := float64(w.o.Room)
	left := min(max(mediaShare*room, mediaTokens), mediaMost*room)
	for _, images := range []bool{true, false} {
		for k := len(w.c.Media) - 1; k >= 0; k-- {
			m := &w.c.Media[k]
			if m.Image() != images || !hidden[m.By.Message] {
				continue
			}
			if left < leastMark {
				return nil
			}
			w.marks[k] = m.Mark()
			cost := float64(w.o.Counter.Count(core.Text(w.marks[k])) + 1)
			if cost > left {
				continue
			}
			left -= cost
			w.mediaAt[k] = w.pick(cost)
		}
	}
	return nil
}

// leastMark is less than any mark costs, in tokens: below it none need be made.
const leastMark = 6

// renderMedia writes the marks of message i that stand before passage p and were not
// written, each under the header of its passage.
func (w *work) renderMedia(b *extractWriter, i, p int, k int32) {
	for ; b.media < len(w.c.Media); b.media++ {
		m := &w.c.Media[b.media]
		if m.By.Message > i || m.By.Message == i && m.Before > p {
			return
		}
		if at := w.mediaAt[b.media]; m.By.Message < i || at == 0 || at > k {
			continue
		}
		if u := b.under; u == nil || u.Message != i || u.Kind != m.By.Kind || u.Name != m.By.Name || u.Target != m.By.Target {
			b.open(&m.By, "", false)
		}
		b.text.WriteByte('\n')
		b.text.WriteString(w.marks[b.media])
	}
}
