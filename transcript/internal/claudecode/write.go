package claudecode

import (
	"errors"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/jsonl"
	"github.com/condensehq/condense/transcript/internal/session"
)

// write writes the session with the changes by condensations and rewinds:
//
//   - A line whose message is hidden is left out, with the lines that follow from it. Lines
//     that Claude Code's own compaction hides are kept, and so is everything that is not part
//     of the conversation.
//   - A line whose message was rewritten keeps its uuid and all but the content.
//   - A new message gets a line of its own. Its uuid is its ID if that is a UUID, otherwise
//     one made from it.
//   - If the line that parentUuid names is missing, or something new follows it, parentUuid
//     names the line before instead, so that the branch is complete.
//   - A line that cannot be read as a message, and was not part of the conversation, is left
//     out: without its neighbors it could become a part.
//   - The last turn of the assistant no longer reports its token usage: Claude Code takes
//     that for the size of the conversation and would compact again.
//
// The links follow the description of programs that read these files; test/agents tries them with
// Claude Code.
func write(f *codec.File, out *codec.Output) error {
	data, same := f.StartAgain(out)
	if same {
		return nil
	}
	s, err := parseSession(data)
	if err != nil {
		return err
	}
	s.findBranch()
	w := sessionWriter{sessionFile: s, out: out, ending: jsonl.LineBreak(data)}
	if err := w.decide(f, data); err != nil {
		return err
	}
	w.write()
	if len(f.View()) == 0 {
		return w.empty()
	}
	return nil
}

// empty makes a file without messages readable. It returns an error if the last line is a compaction of Claude Code's
// own: the messages that it hides would be the conversation again.
func (w *sessionWriter) empty() error {
	s, err := parseSession(w.out.Bytes())
	if err != nil {
		return err
	}
	s.findBranch()
	if slices.ContainsFunc(s.lines, func(l sessionLine) bool { return l.live && l.said() }) {
		return errors.New("no message would be left, and Claude Code would show the messages again that its compaction hid: undo that first, or keep a message")
	}
	if !detect(w.out.Bytes()) {
		w.out.Add(appendLastPrompt(nil, "", "", lineID("")), w.ending)
	}
	return nil
}

// A sessionWriter writes a session that was changed.
type sessionWriter struct {
	*sessionFile
	out    *codec.Output
	ending []byte
	keep   []bool                 // whether a line is written
	saying map[int]*history.Entry // the current message of a line
	order  []int                  // the lines in the order of writing
	add    map[int][]core.Message // new messages, by the index in order before which they are written
	stale  string                 // message.id of the last turn, whose usage is outdated

	prev    string      // uuid of the line of the branch that was written last
	unnamed bool        // that line has no uuid: only the next line can follow it
	count   int         // of lines of the branch that were written
	written map[int]int // index of such a line to its number
	barrier int         // nothing may follow a line with a lower number
}

// decide determines the lines to write and their messages.
func (w *sessionWriter) decide(f *codec.File, data []byte) error {
	messages, err := w.messages(data)
	if err != nil {
		return err
	}
	was := session.ChangesOf(f, messages)
	w.order = w.reorder(was.Active)
	place := make([]int, len(w.lines)) // in order
	begin := 0                         // only lines from here on are sent
	for at, i := range w.order {
		place[i] = at
		if l := &w.lines[i]; l.boundary && was.Active[l.compactionID()] {
			begin = at + 1
		}
	}
	w.keep = make([]bool, len(w.lines))
	w.saying, w.add = map[int]*history.Entry{}, map[int][]core.Message{}
	entries := f.Journal.Timeline()
	next, last := len(w.lines), none
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		line, ok := was.Line[e.Message.ID]
		hidden := slices.ContainsFunc(e.HiddenBy, func(id string) bool { return !was.Own[id] })
		switch {
		case ok:
			next = place[line]
			w.saying[line] = e
			if w.keep[line] = !hidden; !hidden {
				last = max(last, line)
			}
		case len(e.HiddenBy) == 0:
			at := max(next, begin)
			w.add[at] = append(w.add[at], e.Message)
		}
	}
	for _, m := range w.add {
		slices.Reverse(m)
	}
	gone := map[int]bool{} // the summaries of compactions that are undone, and messages that a rewind dropped
	for i := range messages {
		gone[messages[i].Line] = w.saying[messages[i].Line] == nil
	}
	w.decideOthers(&was, gone, last)
	return nil
}

// decideOthers determines which lines without a message of the conversation are written. Last
// is the last line with one that is.
func (w *sessionWriter) decideOthers(was *session.Changes, gone map[int]bool, last int) {
	// A line that does not name its parent follows the line before it, whatever that is.
	positional := slices.ContainsFunc(w.lines, func(l sessionLine) bool { return l.live && !l.boundary && (l.uuid == "" || !l.linked) })
	damaged := w.damaged()
	for i := range w.lines {
		l := &w.lines[i]
		up := w.up(i)
		switch {
		case damaged[i]:
			w.keep[i] = false
		case w.saying[i] != nil, gone[i]:
		case w.superseded(i) && w.saying[w.last[l.uuid]] != nil: // an older copy
			w.keep[i] = w.keep[w.last[l.uuid]]
		case l.boundary && was.Own[l.compactionID()]:
			w.keep[i] = was.Active[l.compactionID()]
		case !l.inTree():
			w.keep[i] = true
		case l.said() && i > last: // it would end the conversation
		case positional && !l.live:
		default:
			w.keep[i] = up == none || up > i || w.keep[up] || damaged[up]
		}
	}
	for i := len(w.lines) - 1; i >= 0 && w.stale == ""; i-- {
		if w.saying[i] != nil && w.keep[i] {
			w.stale = w.lines[i].turn
		}
	}
}

// damaged returns the lines that are messages by their type but cannot be read as such.
func (w *sessionWriter) damaged() map[int]bool {
	damaged := map[int]bool{}
	for i := range w.lines {
		if l := &w.lines[i]; l.said() && w.saying[i] == nil {
			if _, bad := l.decode(); bad != nil {
				damaged[i] = true
			}
		}
	}
	if n := len(damaged); n > 0 {
		w.out.Warn("", "%s that cannot be read as a message, and not part of the conversation, left out", codec.Count(n, "line"))
	}
	return damaged
}

// up returns the line that line i names as its parent, or none.
func (w *sessionWriter) up(i int) int { return w.resolve(w.lines[i].parent, len(w.lines)) }

func (w *sessionWriter) write() {
	w.written = map[int]int{}
	for at, i := range w.order {
		w.writeNew(at)
		if w.keep[i] {
			w.writeLine(i)
		}
	}
	w.writeNew(len(w.order))
}

// reorder returns all lines in the order in which they are written. The lines that a
// compaction kept are moved to where they are read: they could not be found if they followed a
// new line.
func (w *sessionWriter) reorder(active map[string]bool) []int {
	order := make([]int, 0, len(w.lines))
	if w.kept.boundary == none || !active[w.lines[w.kept.boundary].compactionID()] {
		for i := range w.lines {
			order = append(order, i)
		}
		return order
	}
	moved := func() {
		for i := range w.lines {
			if _, kept := w.kept.set[i]; kept {
				order = append(order, i)
			}
		}
	}
	for i := range w.lines {
		if _, kept := w.kept.set[i]; !kept {
			order = append(order, i)
		}
		if i == w.kept.anchor {
			moved()
		}
	}
	return order
}

func (w *sessionWriter) writeLine(i int) {
	l := &w.lines[i]
	raw := l.Raw
	if e := w.saying[i]; e != nil && e.RewrittenBy != "" && len(e.HiddenBy) == 0 {
		raw = replaceMessage(raw, blocks.PatchMessage(rawjson.Field(raw, "message"), e.Message.Parts))
	}
	if l.live && l.turn != "" && l.turn == w.stale {
		raw = withoutUsage(raw)
	}
	if metadata := rawjson.Field(raw, "compactMetadata"); l.boundary && rawjson.IsObject(metadata) { // the kept messages follow it now
		raw = rawjson.ReplaceValue(raw, metadata, rawjson.CutField(rawjson.CutField(metadata, "preservedSegment"), "preservedMessages"))
	}
	if l.live && l.inTree() {
		raw = w.relink(i, raw)
	}
	w.out.Add(jsonl.Line(raw), w.ending)
}

func replaceMessage(raw, message []byte) []byte {
	return rawjson.ReplaceValue(raw, rawjson.Field(raw, "message"), message)
}

// relink makes line i follow the line that was written before it, if its parent is missing.
func (w *sessionWriter) relink(i int, raw []byte) []byte {
	l := &w.lines[i]
	switch {
	case l.boundary:
		if up := w.resolve(l.logical, i); up != none && !w.keep[up] {
			raw = rawjson.SetField(raw, "logicalParentUuid", rawjson.QuoteOrNull(w.prev))
		}
		w.barrier = w.count
	case l.linked && !w.follows(i) && w.unnamed:
		raw = rawjson.CutField(raw, "parentUuid")
	case l.linked && !w.follows(i):
		raw = rawjson.SetField(raw, "parentUuid", rawjson.QuoteOrNull(w.prev))
	}
	w.written[i] = w.count
	w.count++
	if w.unnamed = l.uuid == ""; !w.unnamed {
		w.prev = l.uuid
	}
	return raw
}

// follows reports whether the parent of line i is still the right one.
func (w *sessionWriter) follows(i int) bool {
	if w.lines[i].parent == "" {
		return w.prev == "" && !w.unnamed
	}
	at, ok := w.written[w.up(i)]
	return ok && at >= w.barrier
}

// withoutUsage returns a line of the assistant with all token counts set to zero, as Claude
// Code is said to do with the lines that a compaction keeps.
func withoutUsage(raw []byte) []byte {
	for _, name := range []string{"input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"} {
		message := rawjson.Field(raw, "message")
		usage := rawjson.Field(message, "usage")
		if n := rawjson.Field(usage, name); rawjson.Int(n) > 0 {
			raw = replaceMessage(raw, rawjson.ReplaceValue(message, usage, rawjson.ReplaceValue(usage, n, []byte("0"))))
		}
	}
	return raw
}
