package smart

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/value"
)

// A block holds text in a message: a text part, the arguments of a call, reasoning, or the texts of a tool
// result. Its segments, put together, are its text.
type block struct {
	msg, part  int
	segments   core.Span
	tokens     int    // of the part as it came, its media included
	media      bool   // a result that holds images or blocks of unknown kind
	mediaGone  bool   // those were removed
	result     bool   // it is a result
	users      bool   // it is a text of a user, which core.Shortens limits to pieces of it and marks
	handleText string // the handle of the part as it came; see work.handle
}

// A segment is the unit that passes look at and change: a whole block, or a run of a text
// that holds several things, as Roo-Code's and Cline's do.
type segment struct {
	block  int
	kind   dialog.Kind
	fixed  bool // may not be changed: protected, awaited, or a stub already
	gone   bool // removed without a stub of its own: the stub of the segment before it includes it
	edited bool
	needed bool            // a diff refers to it
	step   int32           // the pass that changed it last
	use    *use            // nil if it is of no call
	of     *dialog.Passage // as it was read
	text   string
	tokens int // exact if the block has one segment, else estimated from its share of the bytes
}

// A use is a call to a tool with its result. Either may be missing.
type use struct {
	*dialog.Use
	call    int       // its segment, if Called
	results core.Span // its segments, all of one block; empty if missing
}

// A work is a conversation while passes shorten it. Passes change segments; settle makes
// messages of them. Nothing of the request is modified.
type work struct {
	req      *core.Request
	reader   *dialog.Reader
	msgs     []core.Message
	hidden   []bool
	blocks   []block
	segments []segment
	uses     []use
	ofMsg    []core.Span    // the blocks of each message
	dirty    []bool         // messages whose segments were changed since they were settled
	head     []core.Message // new, in front of all but system messages

	first []core.Message // the messages of the request
	base  map[string]int // index in first by ID; made on first use

	tokens int // of all messages: exact once settled, before that an estimate
	room   int // the target for tokens
	usage  core.Usage
	dry    bool       // estimate only: no model is called, the cost is added to usage
	step   *core.Step // of the pass that runs
	steps  int32      // how many ran, that one included
	placed bool       // a stub says where the agent can read originals
}

// newWork takes the conversation apart. The cost is linear: only parts that share a message with
// others are counted.
func newWork(req *core.Request, room int, reader *dialog.Reader) *work {
	n := len(req.Messages)
	w := &work{
		req: req, reader: reader, msgs: slices.Clone(req.Messages), room: room,
		hidden: make([]bool, n), ofMsg: make([]core.Span, n), dirty: make([]bool, n),
		blocks: make([]block, 0, n+n/4), segments: make([]segment, 0, n+n/2),
	}
	w.tokens += plain.Sum(w.msgs, func(x core.Message) int { return x.Tokens })
	w.read(reader.Read(w.msgs))
	for _, i := range core.Pending(req.Messages) {
		for _, b := range w.blocks[w.ofMsg[i].Start:w.ofMsg[i].End] {
			for k := b.segments.Start; k < b.segments.End; k++ {
				w.segments[k].fixed = true
			}
		}
	}
	return w
}

// clone returns a copy of w. Changing one does not change the other.
func (w *work) clone() *work {
	c := *w
	c.msgs, c.hidden, c.dirty = slices.Clone(w.msgs), slices.Clone(w.hidden), slices.Clone(w.dirty)
	c.blocks, c.segments, c.head = slices.Clone(w.blocks), slices.Clone(w.segments), slices.Clone(w.head)
	return &c
}

// repeated returns the tokens of all segments whose content a later segment may repeat: the most that
// references can save.
func (w *work) repeated() int {
	type key struct{ name, target, path string }
	about, files, texts := map[key]bool{}, map[string]bool{}, map[uint64]bool{}
	seed := maphash.MakeSeed()
	sum := 0
	for i := len(w.segments) - 1; i >= 0; i-- {
		p := &w.segments[i]
		again := false
		if repeats(p.kind) {
			h := maphash.String(seed, p.text)
			again = texts[h]
			texts[h] = true
		}
		if p.use != nil {
			u := p.use
			path := p.of.File.Path
			if path == "" && p.kind == dialog.KindToolCall && len(u.Info.Files) > 0 {
				path = u.Info.Files[0].Path
			}
			k := key{u.Name, u.Info.Target, path}
			again = again || p.kind == dialog.KindToolResult && about[k] || path != "" && files[path]
			if p.kind == dialog.KindToolResult {
				about[k] = true
			}
			files[path] = true
		}
		if again && !p.fixed {
			sum += p.tokens
		}
	}
	return sum
}

// fits reports whether there is nothing left to do.
func (w *work) fits() bool { return w.tokens <= w.room }

// count returns the tokens of a text.
func (w *work) count(s string) int { return w.req.Counter.Count(core.Text(s)) }

// visited counts segments, or messages of a pass that hides them, that the pass considered: of these, Changed are changed.
func (w *work) visited(n int) { w.step.Looked += n }

// put gives segment i another text, if that is smaller. It reports whether it did.
func (w *work) put(i int, text string) bool {
	p := &w.segments[i]
	if p.fixed || p.gone || len(text) >= 2*len(p.text) || text == p.text {
		return false
	}
	n := w.count(text)
	if n >= p.tokens || n >= w.exact(p) || w.blocks[p.block].users && !core.Shortens(p.text, text, w.req.Originals) {
		return false
	}
	w.book(p, p.tokens-n)
	p.text, p.tokens, p.edited = text, n, true
	return true
}

// exact returns the tokens of a segment, which are an estimate if its block has several.
func (w *work) exact(p *segment) int {
	if b := w.blocks[p.block].segments; b.End-b.Start == 1 {
		return p.tokens
	}
	return w.count(p.text)
}

// book records that n tokens were saved in p.
func (w *work) book(p *segment, n int) {
	w.tokens -= n
	if p.step != w.steps {
		p.step = w.steps
		w.step.Changed++
	}
	w.step.Saved[p.kind.String()] += n
	w.dirty[w.blocks[p.block].msg] = true
}

// leave replaces segment i by a stub; see [stub].
func (w *work) leave(i int, s stub) {
	p := &w.segments[i]
	if p.fixed || p.gone {
		return
	}
	w.describe(i, &s)
	if !w.placed {
		s.originals = w.req.Originals
	}
	text := s.String()
	if e, ok := dialog.First(p.text); ok && p.kind != dialog.KindToolResult && w.blocks[p.block].users && !s.bare && strings.TrimSpace(p.text[e.Close.End:]) == "" {
		text = p.text[e.Open.Start:e.Open.End] + "\n" + text + "\n" + p.text[e.Close.Start:e.Close.End] // the tags say whose words they were
	}
	if w.put(i, text) {
		p.fixed = true // a stub is not stubbed again
		w.placed = true
	}
}

// clear replaces the result of a use, pictures included, by one stub.
func (w *work) clear(u *use) {
	if u.results.Start == u.results.End {
		return
	}
	var s stub
	first := u.results.Start
	b := &w.blocks[w.segments[first].block]
	lines, size, tokens := 0, 0, 0
	for i := u.results.Start; i < u.results.End; i++ {
		if w.segments[i].kind == dialog.KindUser { // the user's words are kept
			for k := u.results.Start; k < u.results.End; k++ {
				if w.segments[k].kind == dialog.KindToolResult {
					w.leave(k, stub{})
				}
			}
			return
		}
	}
	for i := u.results.Start; i < u.results.End; i++ {
		p := &w.segments[i]
		if p.fixed {
			return
		}
		lines, size, tokens = lines+dialog.CountLines(p.text), size+len(p.text), tokens+w.exact(p)
	}
	if b.media && !b.mediaGone {
		label, n := w.mediaOf(b)
		s.media, tokens = label, tokens+n
	}
	s.lines, s.bytes = lines, size
	w.describe(first, &s)
	if !w.placed {
		s.originals = w.req.Originals
	}
	text := s.String()
	n := w.count(text)
	if n >= tokens {
		return
	}
	w.placed = true
	w.book(&w.segments[first], tokens-n)
	for i := u.results.Start; i < u.results.End; i++ {
		p := &w.segments[i]
		p.text, p.tokens, p.gone, p.edited, p.fixed = "", 0, true, true, true
	}
	p := &w.segments[first]
	p.text, p.tokens, p.gone = text, n, false
	b.mediaGone = b.media
}

// mediaOf describes the images and other blocks of a result, and counts their tokens.
func (w *work) mediaOf(b *block) (label string, tokens int) {
	r, _ := w.msgs[b.msg].Parts[b.part].(core.ToolResult)
	var all []string
	for _, p := range r.Content {
		if _, ok := p.(core.Text); !ok {
			one, _ := value.Label(p)
			all, tokens = append(all, one), tokens+w.req.Counter.Count(p)
		}
	}
	if len(all) > 1 {
		return fmt.Sprintf("%s and %d more", all[0], len(all)-1), tokens
	}
	return strings.Join(all, ""), tokens
}

// describe completes the stub of segment i.
func (w *work) describe(i int, s *stub) {
	p := &w.segments[i]
	if s.lines == 0 && s.bytes == 0 {
		s.lines, s.bytes = dialog.CountLines(p.text), len(p.text)
	}
	s.of, s.isError = w.label(p)
	if w.blocks[p.block].users && p.use != nil {
		s.of = "" // its header names the call, and a mark in a user's text must not add names
	}
	if p.use != nil && p.use.Called && dialog.Recalls(p.use.Name, w.segments[p.use.call].text) || s.lines <= 1 && s.bytes < dialog.BriefBytes && s.media == "" {
		return
	}
	s.handle = w.handle(p)
}

// label names the origin of a segment, for a stub.
func (w *work) label(p *segment) (of string, isError bool) {
	u := p.use
	switch {
	case u != nil:
	case p.kind == dialog.KindEnvironment:
		return "stale environment", false
	case p.kind == dialog.KindAssistant:
		return "what was said", false
	default:
		return "text", false
	}
	target := u.Info.Target
	if p.of.File.Path != "" {
		target = p.of.File.Path
	}
	return strings.TrimSpace(u.Name + " " + digest(target)), u.IsError() && p.kind == dialog.KindToolResult
}

// handle returns the handle of the part of p, as it was in the request; "" if nothing can be recalled.
func (w *work) handle(p *segment) string {
	if w.req.NoRecall {
		return ""
	}
	b := &w.blocks[p.block]
	if b.handleText == "" {
		b.handleText = core.Handle(w.originalOf(&w.req.Messages[b.msg], b.part))
	}
	return b.handleText
}

// originalOf returns part j of m as it was in the request.
func (w *work) originalOf(m *core.Message, j int) core.Part {
	part := m.Parts[j]
	if was := w.original(m); was != nil {
		if k := counterpart(was.Parts, part, j, len(m.Parts)); k >= 0 {
			part = was.Parts[k]
		}
	}
	return part
}

// message returns the index of the message that holds segment i.
func (w *work) message(i int) int { return w.blocks[w.segments[i].block].msg }

// settle makes messages of the segments that were changed and measures them.
func (w *work) settle() {
	w.tokens = 0
	for i := range w.msgs {
		if w.dirty[i] {
			w.rebuild(i)
			w.dirty[i] = false
		}
		if !w.hidden[i] {
			w.tokens += w.msgs[i].Tokens
		}
	}
	w.tokens += plain.Sum(w.head, func(x core.Message) int { return x.Tokens })
	w.markers(func(_ int, m core.Message) { w.tokens += m.Tokens })
}

func (w *work) rebuild(i int) {
	was := w.req.Messages[i].Parts
	parts := make([]core.Part, 0, len(was))
	next := w.ofMsg[i].Start
	for j, p := range was {
		if next == w.ofMsg[i].End || w.blocks[next].part != j {
			parts = append(parts, p)
			continue
		}
		b := &w.blocks[next]
		next++
		if !w.edited(b) {
			parts = append(parts, p)
			continue
		}
		text := w.join(b)
		switch p := p.(type) {
		case core.Text:
			if strings.TrimSpace(text) != "" {
				parts = append(parts, core.Text(text))
			}
		case core.ToolCall:
			p.Args = text
			parts = append(parts, p)
		case core.ToolResult:
			p.Content = content(p.Content, text, b.mediaGone)
			parts = append(parts, p)
		case core.Reasoning: // it was dropped
		case core.Image, core.Opaque:
			parts = append(parts, p)
		}
	}
	w.msgs[i].Parts, w.msgs[i].Source = parts, nil
	w.msgs[i].Tokens = core.MessageTokens(w.req.Counter, w.msgs[i])
}

func (w *work) edited(b *block) bool {
	return slices.ContainsFunc(w.segments[b.segments.Start:b.segments.End], func(s segment) bool { return s.edited })
}

func (w *work) join(b *block) string {
	if b.segments.End-b.segments.Start == 1 {
		return w.segments[b.segments.Start].text
	}
	var s strings.Builder
	for k := b.segments.Start; k < b.segments.End; k++ {
		s.WriteString(w.segments[k].text)
	}
	return s.String()
}

// content returns the content of a result whose texts became one text.
func content(was []core.Part, text string, mediaGone bool) []core.Part {
	out := []core.Part{core.Text(text)}
	out = append(out, plain.Only(was, func(p core.Part) bool { _, ok := p.(core.Text); return !ok && !mediaGone })...)
	return out
}

// result returns the conversation as it is now. The work must be settled.
func (w *work) result() []core.Message {
	out := make([]core.Message, 0, len(w.msgs)+len(w.head)+8)
	next := 0
	for ; next < len(w.msgs) && w.msgs[next].Role == core.RoleSystem; next++ {
		out = append(out, w.msgs[next])
	}
	out = append(out, w.head...)
	w.markers(func(before int, m core.Message) {
		for ; next < before; next++ {
			if !w.hidden[next] {
				out = append(out, w.msgs[next])
			}
		}
		out = append(out, m)
	})
	for ; next < len(w.msgs); next++ {
		if !w.hidden[next] {
			out = append(out, w.msgs[next])
		}
	}
	return out
}
