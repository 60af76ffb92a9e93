package value

import (
	"sort"

	"github.com/condensehq/condense/core"
)

const (
	// overshoot is the share of the room up to which lines are chosen: their estimated cost is mostly too high.
	overshoot = 1.08
	// reserve is the additional share that is chosen to fill room left at the end; minReserve is its minimum in
	// tokens.
	reserve    = 0.17
	minReserve = 300
)

// An extraction is what the first k picks of a choice make.
type extraction struct {
	r *reading
	w *choice
	k int32
}

func (w *choice) upTo(k int32) extraction { return extraction{w.r, w, max(k, 1)} }

// extract returns the messages with as many of w's picks as the room allows.
func extract(w *choice) Result {
	out, tokens, pick := w.fit()
	x := w.upTo(pick)
	return Result{Messages: out, Tokens: tokens, Lost: x.lostWords(), Cut: pick < w.requested || len(w.v.words.large) > 0, Kinds: x.account()}
}

// fit returns the messages with as many picks as the room allows, their tokens, and the last of these picks.
func (w *choice) fit() (messages []core.Message, tokens int, pick int32) {
	last := int32(len(w.picks) - 1)
	k := w.pickAt(float64(w.r.o.Room), last)
	var best []core.Message
	size, bestK := 0, int32(-1)
	high := last + 1 // the fewest picks known to be too many
	scale := 1.0     // of actual to estimated tokens
	for range 8 {
		out, tokens := w.upTo(k).render()
		if tokens <= w.r.o.Room && k > bestK {
			best, size, bestK = out, tokens, k
		}
		if tokens > w.r.o.Room {
			high = min(high, k)
		}
		scale = float64(tokens) / max(1, w.picks[k])
		next := w.pickAt(float64(w.r.o.Room)*0.999/scale, last)
		if tokens > w.r.o.Room && next >= k {
			next = k - max(1, k/100)
		}
		next = min(next, high-1)
		if next <= bestK || next < 0 {
			break
		}
		k = next
	}
	if bestK < w.worded {
		if best, size, bestK = w.fitWords(); bestK < w.worded || size > w.r.o.Room {
			return best, size, bestK
		}
		scale = float64(size) / max(1, w.picks[bestK])
	}
	if bestK < 0 {
		best, size = w.upTo(1).render()
		return best, size, 1
	}
	best, size = w.topUp(best, size, bestK, scale)
	return best, size, bestK
}

// pickAt returns the last pick that ends within an estimated size tokens.
func (w *choice) pickAt(size float64, last int32) int32 {
	return int32(sort.Search(int(last), func(k int) bool { return w.picks[k+1] > size }))
}

// topUp fills the remaining room with later picks that are small enough. Without any it returns its arguments.
func (w *choice) topUp(best []core.Message, size int, k int32, scale float64) ([]core.Message, int) {
	const tries, look = 6, 300 // picks
	later := make([][]int32, min(look, len(w.picks)-1-int(k)))
	for l := range w.lines {
		if i := int(w.lines[l].at - k - 1); i >= 0 && i < len(later) && !w.headless(l, k) {
			later[i] = append(later[i], int32(l))
		}
	}
	share := 1.0 // share of the remaining room to use: an estimate may be too low
	for range tries {
		if w.r.o.Room-size < max(8, w.r.o.Room/200) {
			break // not worth another rendering
		}
		left := share * float64(w.r.o.Room-size) / scale
		var taken []int
		for i, lines := range later {
			at := int(k) + 1 + i
			if cost := max(0, w.picks[at]-w.picks[at-1]); len(lines) > 0 && cost <= left {
				left -= cost
				taken = append(taken, i)
			}
		}
		if len(taken) == 0 {
			break
		}
		give := func(at func(i int) int32) {
			for _, i := range taken {
				for _, l := range later[i] {
					w.lines[l].at = at(i)
				}
			}
		}
		give(func(int) int32 { return k })
		out, tokens := w.upTo(k).render()
		if tokens > w.r.o.Room {
			give(func(i int) int32 { return k + 1 + int32(i) })
			share /= 2
			continue
		}
		for _, i := range taken {
			later[i] = nil
		}
		best, size = out, tokens
	}
	return best, size
}
