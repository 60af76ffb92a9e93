package value

import (
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/parallel"
	"github.com/condensehq/condense/providers/smart/value/need"
)

// A mode says what may become of a passage.
type mode uint8

const (
	modeExtract mode = iota // its message is hidden; chosen lines stand in an extract
	modeOpen                // its message stays; lines that are not chosen are left out in place
	modeFixed               // it stays as it is
)

// A work is a conversation while lines of it are chosen.
type work struct {
	o        *Options
	messages []core.Message
	groups   []core.Span
	native   []bool // groups whose messages stay
	c        *need.Conversation
	estimate *need.Estimate

	lines    []line
	passages []passage
	picks    []float64 // tokens of all picks up to each; picks[0] is what is there before any
	terms    []term
	phrases  []float32 // what each is worth; 0 if it stands in a kept line
	items    []int32   // numbers of the terms and phrases of all lines that are worth anything

	handles map[*need.Passage]string // of those that were rendered

	marks   []string // of media that an extract may mention
	mediaAt []int32  // the pick that took the mark; 0 if none did
}

// Choosing looks at a line here and a line there, a million times in a long conversation. It
// waits for memory most of the time: what it reads together stands together.

// A line is what choosing reads of one.
type line struct {
	tokens      float32
	at          int32 // the pick that took it; 0 if none did
	passage     int32
	first, last bool // of its passage
	// Where its terms begin in work.items, and its phrases behind them, and where they end.
	terms, phrases, end int32
}

// A passage is what choosing reads of one.
type passage struct {
	opens  float32 // what its first line costs more: its header
	opened int32   // how many of its lines are kept
	mode   mode
}

// A term is what choosing reads of one.
type term struct {
	name, word float32 // what it is worth; one of them is 0
	credit     float32 // the share that the best of the kept lines gives; 0 if it stands in none
}

func newWork(messages []core.Message, o *Options) *work {
	w := &work{
		o: o, messages: messages, groups: core.Groups(messages), c: need.Read(messages),
		handles: map[*need.Passage]string{},
	}
	w.native = make([]bool, len(w.groups))
	w.lines = make([]line, len(w.c.Lines))
	w.passages = make([]passage, len(w.c.Passages))
	w.terms = make([]term, w.c.Terms())
	w.phrases = make([]float32, w.c.Phrases())
	for p := range w.c.Passages {
		lines := w.c.Passages[p].Lines
		for l := lines.Start; l < lines.End; l++ {
			w.lines[l].passage = int32(p)
		}
		w.lines[lines.Start].first, w.lines[lines.End-1].last = true, true
	}
	w.arrange()
	return w
}

// arrange decides by the shares what stays as it is, and takes back all other choices.
func (w *work) arrange() {
	clear(w.native)
	clear(w.passages)
	for l := range w.lines {
		w.lines[l].at = 0
	}
	w.stay()
	w.keepFixed()
}

// count counts the tokens of lines.
func (w *work) count() {
	const least = 256 // lines that are worth a goroutine
	parallel.Ranges(len(w.c.Lines), least, func(from, to int) {
		for l := from; l < to; l++ {
			n := w.o.Counter.Count(core.Text(w.c.Lines[l].Text))
			if !w.c.Lines[l].Joins {
				n++ // its end
			}
			w.lines[l].tokens = float32(n)
		}
	})
}

// stay decides which messages stay: those that must, and the newest.
func (w *work) stay() {
	pending := core.Pending(w.messages)
	first := len(w.messages) // of a turn that is not over
	if len(pending) > 0 {
		first = pending[0]
	}
	base := float64(headTokens)
	left := w.o.Shares.Tail * float64(w.o.Room)
	tail := true
	open := make([]bool, len(w.messages)) // messages whose results may be shortened
	for g := len(w.groups) - 1; g >= 0; g-- {
		group := w.groups[g]
		must := group.End > first
		cost := 0.0
		for i := group.Start; i < group.End; i++ {
			m := &w.messages[i]
			must = must || m.Protected || m.Role == core.RoleSystem
			cost += w.fixedCost(m)
		}
		newest := g == len(w.groups)-1 && cost <= w.o.Shares.Newest*float64(w.o.Room)
		if !must && !newest && (!tail || cost > left) {
			tail = false
			continue
		}
		w.native[g] = true
		for i := group.Start; i < group.End; i++ {
			open[i] = tail && !w.messages[i].Protected && w.messages[i].Role != core.RoleSystem
			if !open[i] {
				cost += float64(w.messages[i].Tokens) - w.fixedCost(&w.messages[i])
			}
		}
		base += cost
		if cost <= left {
			left -= cost
		}
	}
	w.picks = []float64{base}
	hidden := w.hidden()
	for p := range w.c.Passages {
		pass := &w.c.Passages[p]
		switch {
		case hidden[pass.Message]:
			w.passages[p].opens = float32(w.o.Counter.Count(core.Text(need.UsualMark+" "+pass.Header(pass.Kind == need.Call, ""))) + 1)
		case open[pass.Message] && w.long(pass):
			w.passages[p].mode = modeOpen
		default:
			w.passages[p].mode = modeFixed
		}
	}
}

// long reports whether a passage is of a result's text that a mark could be smaller than.
func (w *work) long(pass *need.Passage) bool {
	r, ok := w.messages[pass.Message].Parts[pass.Part].(core.ToolResult)
	if !ok {
		return false
	}
	t, ok := r.Content[pass.Content].(core.Text)
	return ok && w.o.Counter.Count(t) > stubTokens
}

// hidden returns for every message whether it is hidden.
func (w *work) hidden() []bool {
	hidden := make([]bool, len(w.messages))
	for g, group := range w.groups {
		for i := group.Start; i < group.End; i++ {
			hidden[i] = !w.native[g]
		}
	}
	return hidden
}

// What is written around lines, in tokens, before it is counted.
const (
	headTokens = 80
	stubTokens = 14
	gapTokens  = 2
)

// fixedCost returns the tokens of m without the texts of its results.
func (w *work) fixedCost(m *core.Message) float64 {
	n := m.Tokens
	for _, p := range m.Parts {
		if r, ok := p.(core.ToolResult); ok {
			for _, q := range r.Content {
				if t, ok := q.(core.Text); ok {
					n -= max(0, w.o.Counter.Count(t)-stubTokens)
				}
			}
		}
	}
	return float64(n)
}

// keepFixed takes the lines of fixed passages as kept.
func (w *work) keepFixed() {
	for p := range w.c.Passages {
		if w.passages[p].mode != modeFixed {
			continue
		}
		lines := w.c.Passages[p].Lines
		for l := lines.Start; l < lines.End; l++ {
			w.lines[l].at = 1
		}
		w.passages[p].opened = int32(lines.End - lines.Start)
	}
}
