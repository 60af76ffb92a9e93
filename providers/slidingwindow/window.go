package slidingwindow

import (
	"fmt"
	"math"
	"strings"

	"github.com/condensehq/condense/core"
)

// A window is the view under work: its groups, and which of them stay.
type window struct {
	req    *core.Request
	groups []group
	room   int // tokens that the messages may have
	marker int // tokens of the largest marker
}

// A group is a run of messages that stay or go together.
type group struct {
	core.Span
	tokens int
	pinned bool // holds a protected or a system message
	keep   bool
	cut    []core.Message // what stands for the group if it was too large; nil if it was not
}

func (g *group) messages() int { return g.End - g.Start }

func newWindow(req *core.Request) *window {
	w := &window{req: req, room: req.Budget.Room()}
	pinned := 0
	all := tally{again: true}
	for _, span := range core.Groups(req.Messages) {
		g := group{Span: span}
		for i := span.Start; i < span.End; i++ {
			m := &req.Messages[i]
			g.tokens += m.Tokens
			all.add(m)
			if m.Protected || m.Role == core.RoleSystem {
				g.pinned, g.keep = true, true
			}
		}
		if g.pinned {
			pinned += g.tokens
		}
		w.groups = append(w.groups, g)
	}
	w.marker = core.MessageTokens(req.Counter, all.marker())
	// What may not be removed can be more than the target, though never more than the
	// limit, which the host has checked.
	if pinned+w.marker > w.room {
		w.room = max(w.room, req.Budget.Limit-req.Budget.Overhead)
	}
	return w
}

// fits reports whether the conversation is on target as it is.
func (w *window) fits() bool { return w.req.Tokens() <= w.req.Budget.Target }

// left is the room beside the marker and what is kept so far.
func (w *window) left() int {
	n := w.room - w.marker
	for i := range w.groups {
		if w.groups[i].keep {
			n -= w.groups[i].tokens
		}
	}
	return n
}

func (w *window) hides() bool {
	for i := range w.groups {
		if !w.groups[i].keep || w.groups[i].cut != nil {
			return true
		}
	}
	return false
}

func (w *window) isMarker(g *group) bool {
	return g.messages() == 1 && w.req.Messages[g.Start].Kind == core.KindMarker
}

// keepFirst keeps the groups of the first n messages, which usually set the task, while
// they are small beside the room.
func (w *window) keepFirst(n int) {
	allowed := w.left() / 4
	for i := range w.groups {
		g := &w.groups[i]
		if n <= 0 {
			return
		}
		if g.pinned {
			continue // a system prompt is not the first thing that was said
		}
		if allowed -= g.tokens; allowed < 0 {
			return
		}
		g.keep = true
		n -= g.messages()
	}
}

// keepTail keeps the newest groups that fit into the room given, without a gap. A group
// that does not fit is cut inside if it is the newest, or if a quarter of the room would
// be empty without it.
func (w *window) keepTail(room int) {
	whole := room
	newest := true
	for i := len(w.groups) - 1; i >= 0; i-- {
		g := &w.groups[i]
		if g.keep {
			newest = newest && g.pinned && w.req.Messages[g.Start].Role == core.RoleSystem
			continue
		}
		if g.tokens > room {
			if newest || room > whole/4 {
				g.cut = shrink(w.req.Counter, w.req.Messages[g.Start:g.End], room)
				g.keep = g.cut != nil
			}
			return
		}
		room -= g.tokens
		g.keep = true
		newest = false
	}
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
			m := gone.marker()
			m.Tokens = core.MessageTokens(w.req.Counter, m)
			out = append(out, m)
			marked = true
		}
	}
	return out
}

// A tally counts what is hidden.
type tally struct {
	messages, calls int
	again           bool // a marker or summary of an earlier condensation is among it
}

func (t *tally) add(m *core.Message) {
	if m.Kind != core.KindOriginal {
		t.again = true
	} else {
		t.messages++
	}
	for _, p := range m.Parts {
		if _, ok := p.(core.ToolCall); ok {
			t.calls++
		}
	}
}

// marker returns the message that says what is hidden, to the model and to whoever reads
// along.
func (t *tally) marker() core.Message {
	var b strings.Builder
	b.WriteString("[" + plural(t.messages, "earlier message", "earlier messages"))
	if t.calls > 0 {
		b.WriteString(", with " + plural(t.calls, "tool call", "tool calls") + ",")
	}
	if t.again {
		b.WriteString(" and what an earlier note like this stood for")
	}
	b.WriteString(" left out here to fit the context window]")
	return core.Message{
		Role: core.RoleUser, Kind: core.KindMarker, Parts: []core.Part{core.Text(b.String())},
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// shrink cuts the messages of one group so that they fit into room. The largest pieces
// give most: all are cut to one common size, the largest with which the group fits. It
// returns nil if even that is not enough.
func shrink(counter core.Counter, messages []core.Message, room int) []core.Message {
	if room <= 0 {
		return nil
	}
	pieces := newPieces(counter, messages)
	for size := pieces.size(room); ; size = size * 7 / 8 {
		out := pieces.cut(size)
		total := 0
		for i := range out {
			total += out[i].Tokens
		}
		if total <= room {
			return out
		}
		if size == 0 {
			return nil
		}
	}
}

// unlimited is a size that no piece reaches.
const unlimited = math.MaxInt / 2
