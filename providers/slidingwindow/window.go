package slidingwindow

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/value"
)

// A window is the view with the groups to keep.
type window struct {
	req    *core.Request
	groups []group
	room   int // tokens that the messages may have
	marker int // tokens of the largest marker
	named  int // media that a marker names at most
}

// A group is a tool group of the view.
type group struct {
	*core.FixedGroup
	keep bool
	cut  []core.Message // replaces the group if it was too large; nil if it was not
}

func (g *group) messages() int { return g.End - g.Start }

func newWindow(req *core.Request) *window {
	fixed := core.FixedGroups(req)
	w := &window{req: req, groups: make([]group, len(fixed))}
	for k := range fixed {
		w.groups[k] = group{FixedGroup: &fixed[k], keep: fixed[k].Pinned}
	}
	const maxNamed, share = 8, 200 // a name takes some ten tokens
	w.named = max(0, min(maxNamed, req.Budget.Room()/share))
	if w.reserve(); w.left() < 0 { // the limit has no room for names
		w.named = 0
		w.reserve()
	}
	return w
}

// allow sets the room: that of the target or, if more is fixed, as much as that and extra tokens take. Fixed tokens do not
// exceed the limit: the host has checked that. A larger target never means less room.
func (w *window) allow(extra int) {
	w.room = 0
	most := w.req.Budget.Limit - w.req.Budget.Overhead
	w.room = max(w.req.Budget.Room(), min(most, extra-w.left()))
}

// maxMarker is above the tokens of any marker that is made here.
const maxMarker = 256

// reserve sets the room, and in it that for the largest marker that can be needed, or that an earlier run has left.
func (w *window) reserve() {
	all, left := tally{again: true}, 0
	for i := range w.req.Messages {
		m := &w.req.Messages[i]
		all.add(m)
		if m.Kind == core.KindMarker {
			left = max(left, min(m.Tokens, maxMarker))
		}
	}
	all.messages = max(all.messages, 2)                                                            // the plural is the longer
	slices.SortStableFunc(all.media, func(a, b string) int { return cmp.Compare(len(a), len(b)) }) // the longest are named
	w.marker = max(left, core.MessageTokens(w.req.Counter, all.marker(w.named))+min(w.named, len(all.media)))
	w.allow(0)
}

// left is the room that the marker and the kept groups leave.
func (w *window) left() int {
	n := w.room - w.marker
	for i := range w.groups {
		switch g := &w.groups[i]; {
		case g.cut != nil:
			n -= core.TotalTokens(g.cut)
		case g.keep:
			n -= g.Tokens
		default:
			n -= g.Least // reserved: an open group must stay
		}
	}
	return n
}

func (w *window) hides() bool {
	return slices.ContainsFunc(w.groups, func(g group) bool { return !g.keep || g.cut != nil })
}

// keepWords keeps what the user typed, before anything else is kept: the first message, unless first is false, and the last
// two, or as much of each as there is room for, and then the others, the newest first. It reports whether nothing is missing.
func (w *window) keepWords(first bool) bool {
	var said []int // groups, newest first
	for k := range slices.Backward(w.groups) {
		g := &w.groups[k]
		if !g.keep && slices.ContainsFunc(w.req.Messages[g.Start:g.End], func(m core.Message) bool { return w.req.FromUser(&m) }) {
			said = append(said, k)
		}
	}
	const always = 2
	n := min(always, len(said))
	if last := len(said) - 1; first && last >= n {
		said = slices.Insert(said[:last], n, said[last])
		n++
	}
	sizes, extra := map[int]int{}, 0
	for _, k := range said[:n] {
		sizes[k] = w.groups[k].Words(w.req)
		extra += sizes[k]
	}
	if most := w.req.Budget.Limit - w.req.Budget.Overhead; extra <= most/4 {
		w.allow(extra)
	}
	left := w.left()
	short := slices.SortedStableFunc(slices.Values(said[:n]), func(a, b int) int { return cmp.Compare(sizes[a], sizes[b]) })
	whole := true
	for i, k := range short {
		tokens, ok := w.keepSaid(&w.groups[k], left/(n-i), left)
		left -= tokens
		whole = whole && ok
	}
	for i := n; i < len(said) && whole; i++ {
		var tokens int
		tokens, whole = w.keepSaid(&w.groups[said[i]], left, left)
		left -= tokens
	}
	return whole
}

// Sizes of messages in tokens: from longPart on they are cut, shorter ones are kept whole or not at all, since the note that
// describes a cut takes about 30. A cut leaves no less than shortPart.
const (
	longPart  = 128
	shortPart = 64
)

// keepSaid keeps what the user typed in a group in up to share tokens more than are reserved for it, cut if need be, or a short text
// in all that are left. It returns how many it takes, and whether it is whole.
func (w *window) keepSaid(g *group, share, left int) (tokens int, whole bool) {
	if tokens, ok := g.HoldWords(w.req, max(share, min(left, longPart))); ok {
		return tokens, true
	}
	if !g.Open && (g.Tokens < longPart || share < shortPart) {
		return 0, false
	}
	return w.shrinkSaid(g, g.Least+share) - g.Least, false
}

// shrinkSaid is shrink for a group whose words alone are too large: nothing is left of the results next to them.
func (w *window) shrinkSaid(g *group, size int) int {
	words, bare := *g.FixedGroup, *w.req
	words.HoldWords(w.req, math.MaxInt)
	bare.Messages, _ = words.Cut(w.req, 0)
	fixed := *g.FixedGroup
	fixed.Span = core.Span{End: len(bare.Messages)}
	out, tokens := fixed.Cut(&bare, size)
	if tokens > size && !g.Open {
		return 0
	}
	g.cut, g.keep = out, true
	return tokens
}

// fill keeps the user's words, and uses the room that they leave: for what head keeps, and for the newest groups. If words are
// missing, nothing else is kept but what must stay. It returns false, and changes nothing, if the conversation fits: so a second run
// leaves what a first has kept above the target.
func (w *window) fill(first bool, head func()) bool {
	whole := w.keepWords(first)
	if core.TotalTokens(w.req.Messages) <= w.room {
		return false
	}
	room := 0
	if whole {
		head()
		room = w.left()
	}
	w.keepTail(room)
	return true
}

// keepFirst keeps the groups of the first n messages, which usually set the task, while they
// take at most a quarter of the room.
func (w *window) keepFirst(n int) {
	allowed := w.left() / 4
	for i := range w.groups {
		g := &w.groups[i]
		if n <= 0 {
			return
		}
		if g.Pinned {
			continue // a system prompt does not count as the first message
		}
		if n -= g.messages(); g.keep || g.Least == g.Tokens {
			continue
		}
		if allowed -= g.Tokens - g.Least; allowed < 0 {
			return
		}
		g.keep = true
	}
}

// keepTail keeps the newest groups that fit into the room given, without a gap. A group
// that does not fit is cut inside if it is the newest, if a quarter of the room would be
// empty without it, or if it must stay.
func (w *window) keepTail(room int) {
	whole := room
	newest, full := true, false
	for i := len(w.groups) - 1; i >= 0; i-- {
		g := &w.groups[i]
		if !g.keep {
			room += g.Least
		}
		switch {
		case g.keep:
			newest = newest && g.Pinned && w.req.Messages[g.Start].Role == core.RoleSystem
			continue
		case full && !g.Open:
			continue
		case g.Tokens <= room:
			g.keep = true
			room -= g.Tokens
		default:
			full = true
			if newest || g.Open || room > whole/4 {
				room -= w.shrink(g, room)
			}
		}
		newest = false
	}
}

// shrink cuts a group to the size given and returns its tokens. A group that cannot be
// cut so far is hidden, unless it must stay.
func (w *window) shrink(g *group, size int) int {
	out, tokens := g.Cut(w.req, size)
	if tokens > size && !g.Open {
		return 0
	}
	g.cut, g.keep = out, true
	return tokens
}

// result returns the messages that stay, with a marker where the first ones are hidden.
func (w *window) result() []core.Message {
	var gone tally
	for i := range w.groups {
		if g := &w.groups[i]; !g.keep {
			for j := g.Start; j < g.End; j++ {
				gone.add(&w.req.Messages[j])
			}
		}
	}
	out := make([]core.Message, 0, len(w.req.Messages)-gone.messages+1)
	marked := gone.messages == 0 && !gone.again
	for i := range w.groups {
		g := &w.groups[i]
		switch {
		case g.keep && g.cut != nil:
			out = append(out, g.cut...)
		case g.keep:
			out = append(out, w.req.Messages[g.Start:g.End]...)
		case !marked:
			m := gone.marker(w.named)
			m.Tokens = core.MessageTokens(w.req.Counter, m)
			out = append(out, m)
			marked = true
		}
	}
	return out
}

// A tally counts hidden content.
type tally struct {
	messages, calls int
	again           bool     // a marker or summary of an earlier condensation is among it
	media           []string // what each was
}

func (t *tally) add(m *core.Message) {
	if m.Kind != core.KindOriginal {
		t.again = true
	} else {
		t.messages++
	}
	t.parts(m, m.Parts)
}

func (t *tally) parts(m *core.Message, parts []core.Part) {
	for _, p := range parts {
		switch p := p.(type) {
		case core.ToolCall:
			t.calls++
		case core.ToolResult:
			t.parts(m, p.Content)
		case core.Text:
			if _, names, ok := strings.Cut(string(p), leftOut+": "); ok && m.Kind == core.KindMarker {
				t.media = append(t.media, strings.Split(strings.TrimSuffix(names, "]"), "; ")...)
			}
		case core.Image, core.Opaque, core.Reasoning:
			if name, medium := value.Label(p); medium {
				t.media = append(t.media, name)
			}
		}
	}
}

// leftOut ends what a marker says, but for the names of media.
const leftOut = " left out here to fit the context window"

// marker returns the message that describes the hidden messages, and names the newest media in them.
func (t *tally) marker(named int) core.Message {
	var b strings.Builder
	b.WriteString("[… ")
	if t.messages > 0 {
		b.WriteString(plural(t.messages, "earlier message"))
		if t.calls > 0 {
			b.WriteString(", with " + plural(t.calls, "tool call") + ",")
		}
		if t.again {
			b.WriteString(" and ")
		}
	}
	if t.again {
		b.WriteString("what an earlier note like this stood for")
	}
	b.WriteString(leftOut)
	if names := t.media[max(0, len(t.media)-named):]; len(names) > 0 {
		b.WriteString(": " + strings.Join(names, "; "))
	}
	b.WriteByte(']')
	return core.Message{Role: core.RoleUser, Kind: core.KindMarker, Parts: []core.Part{core.Text(b.String())}}
}

// plural writes a count of one or more.
func plural(n int, thing string) string {
	return fmt.Sprint(n, " ", thing, strings.Repeat("s", min(1, n-1)))
}
