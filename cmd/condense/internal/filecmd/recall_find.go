package filecmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/transcript"
)

// A recall searches a conversation and its files of originals.
type recall struct {
	condensation string
	lines        lineRange

	path  string
	own   *recallSource
	parts []*recallSource   // originals, read on demand
	tools map[string]string // by the ID of a call
}

// A recallSource is a file with messages.
type recallSource struct {
	*transcript.Document

	file    string          // of originals; empty for the conversation itself
	entries []history.Entry // of the conversation, then those that rewinds dropped
	dropped int             // index of the first dropped entry
	at      map[string]int  // index in entries, by message ID
}

// open prepares a document for searching.
func (r *recall) open(file string, d *transcript.Document) *recallSource {
	if r.tools == nil {
		r.tools = map[string]string{}
	}
	s := &recallSource{Document: d, file: file, entries: d.Journal.Timeline(), at: map[string]int{}}
	s.dropped = len(s.entries)
	s.entries = append(s.entries, d.Journal.Dropped()...)
	for i, e := range s.entries {
		s.at[e.Message.ID] = i
		for _, p := range e.Original.Parts {
			if c, ok := p.(core.ToolCall); ok {
				r.tools[c.ID] = c.Name
			}
		}
	}
	return s
}

// A piece is content to print.
type piece struct {
	handle string
	part   core.Part
	what   string             // description, such as "result of read_file"
	places []history.Recalled // where it appears; at least one
	hidden []string           // condensations that hide the first place
	file   string             // of originals; empty for the conversation itself
}

var partForm = regexp.MustCompile(`^part-[0-9]+(\.jsonl)?$`)

// named returns the pieces that the arguments name, or an error for each that names none.
func (r *recall) named(names []string) ([]piece, error) {
	var (
		found []piece
		errs  []error
	)
	for _, name := range names {
		pieces, err := r.find(name)
		errs = append(errs, err)
		for _, p := range pieces {
			if !slices.ContainsFunc(found, func(q piece) bool {
				return q.handle == p.handle && core.EqualParts([]core.Part{q.part}, []core.Part{p.part})
			}) {
				found = append(found, p)
			}
		}
	}
	return found, errors.Join(errs...)
}

func (r *recall) find(name string) ([]piece, error) {
	if i, ok := r.own.at[name]; ok {
		return r.message(r.own, i), nil
	}
	if partForm.MatchString(name) {
		return r.wholePart(strings.TrimSuffix(name, ".jsonl"))
	}
	if handle, ok := history.ParseHandle(name); ok {
		if pieces := r.content(r.own, handle); pieces != nil {
			return pieces, nil
		}
		if err := r.readParts(); err != nil {
			return nil, err
		}
		for _, p := range r.parts {
			if pieces := r.content(p, handle); pieces != nil {
				return pieces, nil
			}
		}
		if len(r.own.Journal.Condensations()) == 0 {
			return nil, fmt.Errorf("no content with the handle %s, and this file records no condensation: try the file that was condensed", handle)
		}
		return nil, fmt.Errorf("no content with the handle %s; 'condense recall FILE --hidden' lists what is hidden", handle)
	}
	id, err := messageNamed(r.own.Document, name)
	if err != nil {
		return nil, fmt.Errorf("%w; a handle has ten digits of 0-9 and a-f", err)
	}
	return r.message(r.own, r.own.at[id]), nil
}

// content returns the content with a handle: one piece, unless two contents share the handle.
func (r *recall) content(from *recallSource, handle string) []piece {
	var pieces []piece
	for _, f := range from.Journal.Recall(handle) {
		same := slices.IndexFunc(pieces, func(p piece) bool { return sameContent(p.part, f.Part) })
		if same < 0 {
			pieces = append(pieces, r.piece(from, handle, &f))
			same = len(pieces) - 1
		}
		pieces[same].places = append(pieces[same].places, f)
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

// message returns the original parts of the i-th message.
func (r *recall) message(from *recallSource, i int) []piece {
	e := &from.entries[i]
	there := map[string]bool{}
	if len(e.HiddenBy) == 0 && i < from.dropped {
		for h := range history.Handles(e.Message.Parts) {
			there[h] = true
		}
	}
	var pieces []piece
	for _, part := range e.Original.Parts {
		handle := core.Handle(part)
		place := history.Recalled{Part: part, Message: e.Original, InsertedBy: e.InsertedBy, Dropped: i >= from.dropped, InView: there[handle]}
		p := r.piece(from, handle, &place)
		p.places = []history.Recalled{place}
		pieces = append(pieces, p)
	}
	return pieces
}

// piece returns the piece for content found at a place, without the place.
func (r *recall) piece(from *recallSource, handle string, at *history.Recalled) piece {
	p := piece{handle: handle, part: at.Part, file: from.file}
	if i, ok := from.at[at.Message.ID]; ok {
		p.hidden = from.entries[i].HiddenBy
	}
	switch c := at.Part.(type) {
	case core.Text:
		p.what = string(at.Message.Role) + " text"
	case core.ToolCall:
		p.what = "call of " + c.Name
	case core.ToolResult:
		p.what = "result of " + r.tool(c.CallID)
		if c.IsError {
			p.what = "error of " + r.tool(c.CallID)
		}
	case core.Image:
		p.what = "image"
	case core.Reasoning:
		p.what = "reasoning"
	case core.Opaque:
		p.what = c.Kind
	}
	return p
}

func (r *recall) tool(call string) string {
	if name := r.tools[call]; name != "" {
		return name
	}
	return "a tool"
}

// readParts reads the files of originals of the conversation.
func (r *recall) readParts() error {
	if r.parts != nil || r.path == "-" {
		return nil
	}
	paths, err := filepath.Glob(filepath.Join(globEscape(originalsDir(r.path)), "part-*.jsonl"))
	if err != nil {
		return err
	}
	for _, c := range r.own.Journal.Condensations() {
		if _, err := os.Stat(c.Originals); err == nil && c.Originals != "" && !slices.Contains(paths, c.Originals) {
			paths = append(paths, c.Originals)
		}
	}
	for _, path := range paths {
		d, err := r.readPart(path)
		if err != nil {
			return err
		}
		r.parts = append(r.parts, d)
	}
	return nil
}

func (r *recall) readPart(path string) (*recallSource, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	d, err := originals(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r.open(path, d), nil
}

// globEscape escapes a path for use in a pattern.
func globEscape(path string) string {
	return regexp.MustCompile(`[*?\[\\]`).ReplaceAllString(path, `\$0`)
}

// wholePart returns the content of a file of originals.
func (r *recall) wholePart(name string) ([]piece, error) {
	path := filepath.Join(originalsDir(r.path), name+".jsonl")
	d, err := r.readPart(path)
	if err != nil {
		return nil, err
	}
	var pieces []piece
	for i := range d.entries {
		pieces = append(pieces, r.message(d, i)...)
	}
	return pieces, nil
}

// lost returns what is hidden or rewritten, by one condensation if one is named.
func (r *recall) lost() ([]piece, error) {
	var by string
	touched := map[string]bool{}
	if r.condensation != "" {
		all := r.own.Journal.Condensations()
		id, err := condensationNamed(all, r.condensation, r.own.Format)
		if err != nil {
			return nil, err
		}
		by = id
		c := all[slices.IndexFunc(all, func(c history.Condensation) bool { return c.ID == id })]
		for _, id := range c.Edit.Hide {
			touched[id] = true
		}
		for i := range c.Edit.Rewrite {
			touched[c.Edit.Rewrite[i].ID] = true
		}
	}
	var pieces []piece
	whole := r.own.Format == formatOriginals // all of whose messages are hidden
	for i, e := range r.own.entries {
		if by != "" && !touched[e.Message.ID] || !whole && len(e.HiddenBy) == 0 && e.RewrittenBy == "" && i < r.own.dropped {
			continue
		}
		for _, p := range r.message(r.own, i) {
			if whole || !p.places[0].InView {
				pieces = append(pieces, p)
			}
		}
	}
	return pieces, nil
}

// leftHandle matches a handle in the stubs of the built-in strategies.
var leftHandle = regexp.MustCompile(`\bh:([0-9a-f]{10})\b`)

// elsewhere returns the handles in the view whose content is neither in the conversation nor in its
// files of originals, because it was removed before the file was written. Each is listed once.
func (r *recall) elsewhere() []string {
	here := map[string]bool{}
	note := func(s *recallSource) {
		for i := range s.entries {
			for h := range history.Handles(s.entries[i].Original.Parts) {
				here[h] = true
			}
			for h := range history.Handles(s.entries[i].Message.Parts) {
				here[h] = true
			}
		}
	}
	note(r.own)
	if r.readParts() == nil {
		for _, p := range r.parts {
			note(p)
		}
	}
	condensed := len(r.own.Journal.Condensations()) > 0
	var found []string
	for _, m := range r.own.Journal.View() {
		for _, p := range m.Parts {
			for _, at := range leftHandle.FindAllStringSubmatch(textOf(p), -1) {
				// Only the journal knows intermediate forms.
				if h := at[1]; !here[h] && (!condensed || r.own.Journal.Recall(h) == nil) {
					found = append(found, h)
					here[h] = true
				}
			}
		}
	}
	return found
}
