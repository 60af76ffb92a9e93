package value

import (
	"sort"

	"github.com/condensehq/condense/core"
)

const (
	// overshoot is the share of the room up to which lines are chosen: their estimated cost is mostly too high.
	overshoot = 1.08
	// reserve is the additional share that is chosen to fill room left at the end; leastReserve is its minimum in
	// tokens.
	reserve      = 0.17
	leastReserve = 300
)

// An extraction renders a choice.
type extraction struct{ *choice }

// extract returns the messages with as many of w's picks as the room allows.
func extract(w *choice) Result {
	x := extraction{w}
	out, tokens, pick := x.fit()
	return Result{
		Messages: out, Tokens: tokens, Lost: w.lostWords(pick), Cut: pick < w.requested || len(w.words.large) > 0, Kinds: x.account(pick),
	}
}

// fit returns the messages with as many picks as the room allows, their tokens, and the last of these picks.
func (w extraction) fit() (messages []core.Message, tokens int, pick int32) {
	last := int32(len(w.picks) - 1)
	k := w.pickAt(float64(w.o.Room), last)
	var best []core.Message
	size, bestK := 0, int32(-1)
	high := last + 1 // the fewest picks known to be too many
	scale := 1.0     // of actual to estimated tokens
	for range 8 {
		out, tokens := w.render(k)
		if tokens <= w.o.Room && k > bestK {
			best, size, bestK = out, tokens, k
		}
		if tokens > w.o.Room {
			high = min(high, k)
		}
		scale = float64(tokens) / max(1, w.picks[k])
		next := w.pickAt(float64(w.o.Room)*0.999/scale, last)
		if tokens > w.o.Room && next >= k {
			next = k - max(1, k/100)
		}
		next = min(next, high-1)
		if next <= bestK || next < 0 {
			break
		}
		k = next
	}
	if bestK < w.worded {
		if best, size, bestK = w.fitWords(); bestK < w.worded || size > w.o.Room {
			return best, size, bestK
		}
		scale = float64(size) / max(1, w.picks[bestK])
	}
	if bestK < 0 {
		best, size = w.render(1)
		return best, size, 1
	}
	best, size = w.topUp(best, size, bestK, scale)
	return best, size, bestK
}

// pickAt returns the last pick that ends within an estimated size tokens.
func (w extraction) pickAt(size float64, last int32) int32 {
	return int32(sort.Search(int(last), func(k int) bool { return w.picks[k+1] > size }))
}

// topUp fills the remaining room with later picks that are small enough. Without any it returns its arguments.
func (w extraction) topUp(best []core.Message, size int, k int32, scale float64) ([]core.Message, int) {
	const tries, look = 6, 300 // picks
	later := make([][]int32, min(look, len(w.picks)-1-int(k)))
	for l := range w.lines {
		if i := int(w.lines[l].at - k - 1); i >= 0 && i < len(later) && !w.headless(l, k) {
			later[i] = append(later[i], int32(l))
		}
	}
	share := 1.0 // share of the remaining room to use: an estimate may be too low
	for range tries {
		if w.o.Room-size < max(8, w.o.Room/200) {
			break // not worth another rendering
		}
		left := share * float64(w.o.Room-size) / scale
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
		out, tokens := w.render(k)
		if tokens > w.o.Room {
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
