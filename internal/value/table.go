package value

import (
	"context"
	"math"
	"slices"
	"math/bits"
	"runtime"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// A table numbers hashes in the order in which they come. It is twice as fast as a map, which would hash the hashes
// again.
type table struct {
	slots []slot
	keys  []uint64
	shift uint // the highest bits of a product are the slot
}

type slot struct {
	tag    uint32 // some bits of the key, to avoid most comparisons with other keys
	number int32  // plus one; 0 if the slot is empty
}

func newTable(capacity int) table {
	t := table{}
	t.grow(max(1024, capacity))
	t.keys = make([]uint64, 0, capacity/2)
	return t
}

// grow makes room for n slots at least, and puts the keys in place.
func (t *table) grow(n int) {
	log := bits.Len(uint(n - 1))
	t.slots, t.shift = make([]slot, 1<<log), uint(64-log)
	for i, key := range t.keys {
		*t.slot(key) = slot{uint32(key), int32(i + 1)}
	}
}

func (t *table) slot(h uint64) *slot {
	mask := uint64(len(t.slots) - 1)
	for i := t.home(h); ; i = (i + 1) & mask {
		if s := &t.slots[i]; s.number == 0 || s.tag == uint32(h) && t.keys[s.number-1] == h {
			return s
		}
	}
}

// find returns the number of h; -1 if it has none.
func (t *table) find(h uint64) int32 { return t.slot(h).number - 1 }

// number returns the number of h, a new one if it had none.
func (t *table) number(h uint64) int32 {
	s := t.slot(h)
	if s.number > 0 {
		return s.number - 1
	}
	t.keys = append(t.keys, h)
	n := int32(len(t.keys))
	*s = slot{uint32(h), n}
	if 2*len(t.keys) > len(t.slots) {
		t.grow(2 * len(t.slots))
	}
	return n - 1
}

// numbers adds the numbers of list to out. The processor can fetch many slots concurrently if no decision depends on
// them, so slots are read twice, and so are the keys, which most slots have.
func (t *table) numbers(list []found, out []int32) []int32 {
	start := len(out)
	for i := range list {
		out = append(out, t.slots[t.home(list[i].hash)].number)
	}
	read := uint64(0)
	for _, n := range out[start:] {
		if n > 0 {
			read |= t.keys[n-1]
		}
	}
	runtime.KeepAlive(read)
	out = out[:start]
	for i := range list {
		out = append(out, t.number(list[i].hash))
	}
	return out
}

// home is the preferred slot of h.
func (t *table) home(h uint64) uint64 { return h * 0x9E3779B97F4A7C15 >> (t.shift & 63) }

// The user's words go last: as long as anything else can go, none of them does. If the room forces a loss, long texts go
// before short ones, and of each kind the oldest first; the newest request and the first message stay longest. The order
// does not depend on the room, so a larger room never keeps fewer words.

const (
	// pasted is the size in tokens of a text of the user above which it counts as pasted, unless it belongs to the newest
	// request and fits: few type 1,500 words in one go, and one log must not be all that is left of a conversation.
	pasted = 2000
	// brief is the size up to which a text outlives longer ones: many a rule has less, and few files.
	brief = 200
	// headerTokens is the usual cost of a passage's header in an extract.
	headerTokens = 4
)

// The words of the user, in the order in which they are kept.
type words struct {
	order    []int     // passages, the most important first
	requests int       // how many of them, at the beginning, are of the newest request
	from     int       // the first message of the newest request
	large    []int     // passages of the newest request that do not fit
	tasks    []int     // pasted passages of the first message and the one before the newest
	tokens   []float64 // of the passages in order, by message
	sum      float64
}

// findWords ranks the user's words. The newest request is what the user said after the model's last message, or else
// the user's last message. An extract says whether it has that: it may have lost it.
func (v *rating) findWords() words {
	out := words{tokens: make([]float64, len(v.r.messages)), from: len(v.r.messages)}
	var said [][]int // passages by message; those of an extract one by one
	known, last := true, &Passage{}
	for p := range v.r.c.Passages {
		pass := &v.r.c.Passages[p]
		if pass.Kind != dialog.KindUser {
			continue
		}
		if !pass.demands {
			known, last = !pass.partial || pass.newest, pass
			pass.newest = false
		}
		if n := len(said); n == 0 || pass.partial || v.r.c.Passages[said[n-1][0]].Message != pass.Message {
			said = append(said, nil)
		}
		said[len(said)-1] = append(said[len(said)-1], p)
	}
	last.newest = known
	must, fixed := v.r.musts()
	left := float64(v.r.o.Limit) - v.emptyExtract() - fixed // for the newest request
	add := func(k int, request, task bool, above, most float64) {
		for _, p := range said[k] {
			pass := &v.r.c.Passages[p]
			n := float64(headerTokens)
			for l := pass.Lines.Start; l < pass.Lines.End; l++ {
				n += float64(v.lines[l].tokens)
			}
			if n <= above || n > most {
				continue
			}
			// A request beside what must stay is in fixed, and is never cut.
			needs := request && !must[slices.IndexFunc(v.r.groups, func(g core.Span) bool { return pass.Message < g.End })]
			if request {
				if !pass.partial { // the sum of lines is more than their text
					n = min(n, float64(v.r.messages[pass.Message].Tokens))
				}
				out.from = pass.Message
			}
			if needs {
				left -= n
			}
			switch {
			case needs && left < 0:
				left += n
				out.large = append(out.large, p)
			case n <= pasted || request:
				out.order = append(out.order, p)
				out.tokens[pass.Message] += n
				out.sum += n
			case task:
				out.tasks = append(out.tasks, p)
			}
		}
	}
	end := len(said)
	for end > 0 && (end == len(said) && known || v.r.c.Passages[said[end-1][0]].Message >= v.r.unread) {
		end--
		add(end, true, false, 0, math.Inf(1))
	}
	out.requests = len(out.order)
	if end > 0 {
		add(0, false, true, 0, math.Inf(1))
	}
	for _, size := range [][2]float64{{0, brief}, {brief, math.Inf(1)}} {
		for k := end - 1; k > 0; k-- {
			add(k, false, k >= len(said)-2, size[0], size[1])
		}
	}
	return out
}

// emptyExtract returns the tokens of an extract that quotes nothing.
func (v *rating) emptyExtract() float64 {
	return float64(core.MessageTokens(v.r.o.Counter, core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text(Extract("", nil, false))}}))
}

// keepWords keeps the user's words, each passage from its first sentence on. It records which picks are of the newest
// request, and which of any words: [extraction.fit] drops them last.
func keepWords(_ context.Context, w *choice) error {
	w.mediaAt, w.marks = make([]int32, len(w.r.c.Media)), make([]string, len(w.r.c.Media))
	takeMost(w, w.v.words.large)
	for i, p := range w.v.words.order {
		for l := w.r.c.Passages[p].Lines.Start; l < w.r.c.Passages[p].Lines.End; l++ {
			if w.lines[l].at == 0 {
				s := core.Span{Start: l, End: l + 1}
				w.take(s, w.cost(s))
			}
		}
		if i == w.v.words.requests-1 {
			w.requested = int32(len(w.picks) - 1)
			markRequest(w)
		}
	}
	w.worded = int32(len(w.picks) - 1)
	return nil
}

// keepTasks keeps what the user pasted into the first message and the one before the newest, before anything that is not
// the user's.
func keepTasks(_ context.Context, w *choice) error {
	takeMost(w, w.v.words.tasks)
	return nil
}

// takeMost keeps passages, or the beginning, the end and the prose of each, in up to the user's share of what is left.
func takeMost(w *choice, passages []int) {
	limit := w.spent() + w.r.o.Shares.Human*max(0, float64(w.r.o.Room)-w.spent())
	for _, p := range passages {
		lines := w.r.c.Passages[p].Lines
		if cost := w.cost(lines); w.spent()+cost <= limit && w.alive(lines) {
			w.take(lines, cost)
			continue
		}
		w.takeEnds(lines, limit-w.spent())
		for l := lines.Start; l < lines.End; l++ {
			if w.r.c.Lines[l].prose() {
				w.takeLine(l, limit)
			}
		}
	}
}

// markRequest keeps the marks of the newest pictures in the newest request.
func markRequest(w *choice) {
	const most = 4
	hidden := w.lay.hidden()
	for k, n := len(w.r.c.Media)-1, 0; k >= 0 && n < most && w.r.c.Media[k].by.Message >= w.v.words.from; k-- {
		if by := &w.r.c.Media[k].by; hidden[by.Message] && by.Kind == dialog.KindUser && (by.newest || !by.partial) {
			mark(w, k, float64(w.r.o.Room))
			n++
		}
	}
}

// lostWords returns the tokens of the user's words that are missing.
func (x extraction) lostWords() (n float64) {
	for _, p := range x.w.v.words.order {
		for l := x.r.c.Passages[p].Lines.Start; l < x.r.c.Passages[p].Lines.End; l++ {
			if !x.kept(l) {
				n += float64(x.w.lines[l].tokens)
			}
		}
	}
	return n
}

// fitWords returns the most picks of the user's words that fit, and if all do, of all picks. Every step of the search
// takes a larger room at least as far as a smaller one.
func (w *choice) fitWords() (messages []core.Message, tokens int, pick int32) {
	low := int32(0)
	if w.requested > 0 {
		if out, n := w.upTo(w.requested).render(); n <= w.r.o.Limit {
			messages, tokens, low = out, n, w.requested
		}
	}
	if low == 0 {
		messages, tokens = w.upTo(0).render()
	}
	search := func(high int32, room int) {
		for low < high {
			k := high - (high-low)/2
			if out, n := w.upTo(k).render(); n <= room {
				messages, tokens, low = out, n, k
			} else {
				high = k - 1
			}
		}
	}
	search(w.worded, w.r.o.Words)
	if low == w.worded {
		search(int32(len(w.picks)-1), w.r.o.Room)
	}
	return messages, tokens, low
}
