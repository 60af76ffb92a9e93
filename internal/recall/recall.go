// Package recall finds content of a conversation that is hidden, shortened or replaced: by its
// handle or number, by its message, by its file, by a line or by words. It serves the command line,
// agents and the gateway, and reads no files.
package recall

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/media"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
)

// A Conversation is the content that can be recalled: a journal, and other journals with messages of the same
// conversation. It is safe for concurrent use while nothing is added.
type Conversation struct {
	// Own is the conversation itself, Others are the added journals.
	Own    *Source
	Others []*Source

	calls map[string]call // by ID
}

// A call is a tool call's name and subject.
type call struct {
	tool, path string
	lines      dialog.LineRange
}

// A Source is a journal in a conversation. It has the state of the journal at the time of [New] or
// [Conversation.Add].
type Source struct {
	Journal *history.Journal
	// File is the name of a file of originals; empty for the conversation itself.
	File string
	// Hidden is set if no message is in the view, whatever the journal says.
	Hidden bool
	// Later is how many of the last messages have no number, because some before them are missing.
	Later int

	of      *Conversation
	entries []history.Entry // of the conversation, then entries that rewinds dropped
	dropped int             // index of the first dropped entry
	at      map[string]int  // index in entries, by message ID
	order   []int           // index in entries of the messages that have numbers, and of the later ones
}

// New returns a conversation with one journal.
func New(j *history.Journal) *Conversation {
	c := &Conversation{calls: map[string]call{}}
	c.Own = c.open("", j)
	return c
}

// First returns the first of all conversations that has what is looked for; nil if none has. All may be nil.
func First(all func() iter.Seq[*history.Journal], has func(*Conversation) bool) *Conversation {
	if all != nil {
		for j := range all() {
			if c := New(j); has(c) {
				return c
			}
		}
	}
	return nil
}

// Add adds originals of the conversation, which were read from a file.
func (c *Conversation) Add(file string, j *history.Journal) *Source {
	s := c.open(file, j)
	c.Others = append(c.Others, s)
	return s
}

func (c *Conversation) open(file string, j *history.Journal) *Source {
	s := &Source{Journal: j, File: file, Hidden: file != "", of: c, entries: j.Timeline(), at: map[string]int{}}
	s.dropped = len(s.entries)
	s.entries = append(s.entries, j.Dropped()...)
	for i, e := range s.entries {
		s.at[e.Message.ID] = i
		if e.InsertedBy == "" && i < s.dropped {
			s.order = append(s.order, i)
		}
		for _, p := range e.Original.Parts {
			if p, ok := p.(core.ToolCall); ok {
				info := dialog.ParseCall(p.Name, p.Args)
				about := call{tool: p.Name}
				if len(info.Files) > 0 {
					about.path, about.lines = info.Files[0].Path, info.Files[0].Range
				}
				c.calls[p.ID] = about
			}
		}
	}
	return s
}

// Unnumbered takes the numbers from messages that are found by their index in the journal.
func (s *Source) Unnumbered(without func(i int) bool) {
	s.order = slices.DeleteFunc(s.order, without)
	s.Later = min(s.Later, len(s.order))
}

// holds reports whether a part, or the content of a result, has a handle.
func holds(p core.Part, handle string) bool {
	for h := range history.Handles([]core.Part{p}) {
		if h == handle {
			return true
		}
	}
	return false
}

// A Piece is content that was found: a part of a message, or of a tool result.
type Piece struct {
	Handle  string
	Part    core.Part
	What    string             // a description, such as "result of read_file"
	Path    string             // the file that the tool call was about, and which of its lines
	Range   dialog.LineRange   //
	Places  []history.Recalled // where the content is; at least one
	Numbers []string           // of the places, such as m41.2; empty for one without
	Hidden  []string           // condensations that hide the first place
	File    string             // of originals; empty for the conversation itself
	Decoded string             // the text of a call whose arguments are decoded; empty for any other piece
	Context bool               // it is the call that the next piece answers
}

// Sealed reports whether only the vendor can read the content.
func (p *Piece) Sealed() bool {
	r, is := p.Part.(core.Reasoning)
	return is && r.Text == ""
}

// Text returns the content as text, for users and models.
func (p *Piece) Text() string {
	if p.Decoded != "" {
		return p.Decoded
	}
	return textOf(p.Part)
}

// Heading describes the piece and its places.
func (p *Piece) Heading() string {
	ids := plain.Each(p.Places, func(at history.Recalled) string { return at.Message.ID })
	s := fmt.Sprintf("%s %s, %s, %s", strings.Join(ids, " "), p.What, p.Handle, size.Plural(dialog.CountLines(p.Text()), "line"))
	if state := p.State(); state != "" {
		s += ", " + state
	}
	if p.File != "" {
		s += ", from " + p.File
	}
	return s
}

// State says why the piece is not in the view; empty if it is, or if it is in a file of originals.
func (p *Piece) State() string {
	switch at := p.Places[0]; {
	case at.Dropped:
		return "dropped by a rewind"
	case len(p.Hidden) > 0:
		return "hidden by " + p.Hidden[len(p.Hidden)-1]
	case at.RewrittenBy != "":
		return "as rewritten by " + at.RewrittenBy
	}
	return ""
}

// Handle returns the content with a handle: one piece, unless two contents share it. Content that the conversation
// itself does not have is taken from the first of the others that has it. If none has it, the result is nil.
func (c *Conversation) Handle(handle string) []Piece {
	if pieces := c.Own.handle(handle); pieces != nil {
		return pieces
	}
	for _, s := range c.Others {
		if pieces := s.handle(handle); pieces != nil {
			return pieces
		}
	}
	return nil
}

// handle is [Conversation.Handle] for one journal.
func (s *Source) handle(handle string) []Piece {
	var pieces []Piece
	for _, f := range s.Journal.Recall(handle) {
		same := slices.IndexFunc(pieces, func(p Piece) bool { return sameContent(p.Part, f.Part) })
		if same < 0 {
			pieces = append(pieces, s.piece(handle, &f))
			same = len(pieces) - 1
		}
		f.InView = f.InView && !s.Hidden
		pieces[same].Places = append(pieces[same].Places, f)
		number := ""
		if i, ok := s.at[f.Message.ID]; ok {
			number = s.number(i, slices.IndexFunc(f.Message.Parts, func(p core.Part) bool { return holds(p, handle) }))
		}
		pieces[same].Numbers = append(pieces[same].Numbers, number)
	}
	return pieces
}

// Named returns the content to which r refers, oldest first; nil if there is none.
func (c *Conversation) Named(r Ref) []Piece {
	switch {
	case r.Handle == "":
		pieces, _ := c.Own.Numbered(r)
		return pieces
	case !r.Onward:
		return c.Handle(r.Handle)
	}
	for _, s := range append([]*Source{c.Own}, c.Others...) {
		if pieces := s.from(r.Handle); pieces != nil {
			return pieces
		}
	}
	return nil
}

// from returns the text of original parts from the first with this handle on.
func (s *Source) from(handle string) []Piece {
	var pieces []Piece
	for i := range s.entries {
		if i == s.dropped && pieces != nil {
			break
		}
		if s.entries[i].InsertedBy != "" {
			continue
		}
		for _, p := range s.message(i) {
			if pieces == nil && p.Handle == handle || pieces != nil && strings.TrimSpace(p.Text()) != "" {
				pieces = append(pieces, p)
			}
		}
	}
	return pieces
}

// sameContent reports whether two parts with the same handle are equal but for their IDs.
func sameContent(a, b core.Part) bool {
	x, ok := a.(core.ToolResult)
	y, ok2 := b.(core.ToolResult)
	if ok && ok2 {
		return core.EqualParts(x.Content, y.Content)
	}
	c, ok := a.(core.ToolCall)
	d, ok2 := b.(core.ToolCall)
	if ok && ok2 {
		return c.Name == d.Name && c.Args == d.Args
	}
	return core.EqualParts([]core.Part{a}, []core.Part{b})
}

// Message returns the original parts of the message with this ID, dropped or not. It reports false
// if there is no such message.
func (s *Source) Message(id string) ([]Piece, bool) {
	i, ok := s.at[id]
	if !ok {
		return nil, false
	}
	return s.message(i), true
}

// All returns the original parts of every message.
func (s *Source) All() (pieces []Piece) {
	for i := range s.entries {
		pieces = append(pieces, s.message(i)...)
	}
	return pieces
}

// Lost returns the hidden, rewritten or dropped content of the messages in only; a nil only means every message.
func (s *Source) Lost(only map[string]bool) []Piece {
	var pieces []Piece
	for i, e := range s.entries {
		if only != nil && !only[e.Message.ID] || !s.Hidden && len(e.HiddenBy) == 0 && e.RewrittenBy == "" && i < s.dropped {
			continue
		}
		pieces = append(pieces, plain.Only(s.message(i), func(p Piece) bool { return s.Hidden || !p.Places[0].InView })...)
	}
	return pieces
}

func (s *Source) message(i int) []Piece {
	e := &s.entries[i]
	there := map[string]bool{}
	if len(e.HiddenBy) == 0 && i < s.dropped {
		for h := range history.Handles(e.Message.Parts) {
			there[h] = true
		}
	}
	var pieces []Piece
	for k, part := range e.Original.Parts {
		handle := core.Handle(part)
		place := history.Recalled{Part: part, Message: e.Original, InsertedBy: e.InsertedBy, Dropped: i >= s.dropped, InView: there[handle] && !s.Hidden}
		p := s.piece(handle, &place)
		p.Places, p.Numbers = []history.Recalled{place}, []string{s.number(i, k)}
		pieces = append(pieces, p)
	}
	return pieces
}

// piece returns the piece for content found at a place, without the place.
func (s *Source) piece(handle string, at *history.Recalled) Piece {
	p := Piece{Handle: handle, Part: at.Part, File: s.File}
	if i, ok := s.at[at.Message.ID]; ok {
		p.Hidden = s.entries[i].HiddenBy
	}
	about := func(id, what string) {
		c, ok := s.of.calls[id]
		if !ok || c.tool == "" {
			c.tool = "a tool"
		}
		p.What, p.Path, p.Range = what+c.tool, c.path, c.lines
	}
	switch c := at.Part.(type) {
	case core.Text:
		p.What = string(at.Message.Role) + " text"
	case core.ToolCall:
		about(c.ID, "call of ")
		p.What = "call of " + c.Name
	case core.ToolResult:
		if c.IsError {
			about(c.CallID, "error of ")
		} else {
			about(c.CallID, "result of ")
		}
	case core.Image:
		p.What = "image"
	case core.Reasoning:
		p.What = "reasoning"
	case core.Opaque:
		p.What = c.Kind
	}
	return p
}

// Elsewhere returns the handles in the view whose content is nowhere in the conversation, because it was removed
// before the conversation was recorded. Each is listed once.
func (c *Conversation) Elsewhere() []string {
	here := map[string]bool{}
	for _, s := range append([]*Source{c.Own}, c.Others...) {
		for i := range s.entries {
			for h := range history.Handles(s.entries[i].Original.Parts) {
				here[h] = true
			}
			for h := range history.Handles(s.entries[i].Message.Parts) {
				here[h] = true
			}
		}
	}
	own := c.Own.Journal
	condensed := len(own.Condensations()) > 0
	var found []string
	for _, r := range mentioned(own.View()) {
		h := r.Handle
		// Only the journal knows intermediate forms.
		if h != "" && !here[h] && (!condensed || own.Recall(h) == nil) {
			found = append(found, h)
			here[h] = true
		}
	}
	return found
}

// textOf returns content as text, for users and models.
func textOf(p core.Part) string {
	switch p := p.(type) {
	case core.Text:
		return string(p)
	case core.ToolCall:
		return p.Args
	case core.ToolResult:
		texts := plain.Each(p.Content, textOf)
		return strings.Join(texts, "\n")
	case core.Image:
		if p.URL != "" {
			return p.URL
		}
		return fmt.Sprintf("[%s, %s bytes of base64; condense recall --json prints them]", p.MediaType, size.Group(len(p.Data)))
	case core.Reasoning:
		if p.Text == "" {
			return fmt.Sprintf("[encrypted, %s bytes; condense recall --json prints them]", size.Group(len(p.Encrypted)))
		}
		return p.Text
	case core.Opaque:
		return blockText(p.JSON)
	}
	return ""
}

// blockText returns a block as text: a document that is text as its text, other media in a few words.
func blockText(raw string) string {
	all := media.Find([]byte(raw))
	if len(all) == 0 || len(raw) < dialog.BriefBytes {
		return raw
	}
	if b, ok := all[0].Text(); ok {
		return string(b)
	}
	return fmt.Sprintf("[%s, %s bytes of base64; condense recall --json prints them]", all[0], size.Group(len(raw)))
}
