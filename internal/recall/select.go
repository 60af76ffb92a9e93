package recall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/internal/toolcall"
	"github.com/condensehq/condense/internal/value/ledger"
)

// Lines is a range of lines, counted from 1, both included; 0 is an open end.
type Lines struct{ From, To int }

var linesForm = plain.Pattern(`^(?:(0*[1-9][0-9]{0,17})|(0*[1-9][0-9]{0,17})?-(0*[1-9][0-9]{0,17})?)$`)

// ParseLines reads "10-40", "10-", "-40" or "10". An empty text is the range of all lines.
func ParseLines(text string) (r Lines, err error) {
	if text == "" {
		return r, nil
	}
	if m := linesForm().FindStringSubmatch(text); m != nil {
		r.From, _ = strconv.Atoi(m[1] + m[2]) // empty for an open end
		r.To, _ = strconv.Atoi(m[1] + m[3])
	}
	if r == (Lines{}) || r.To > 0 && r.To < r.From {
		return Lines{}, fmt.Errorf("%q: want lines such as 10-40, counted from 1", text)
	}
	return r, nil
}

// Cut returns the lines of text in the range, and the range that they are, without open ends. It
// is an error if the text is shorter than the range's beginning.
func (r Lines) Cut(text string) (string, Lines, error) {
	all := dialog.CountLines(text)
	if r == (Lines{}) {
		return text, Lines{min(1, all), all}, nil
	}
	is := Lines{max(r.From, 1), r.To}
	if is.To == 0 || is.To > all {
		is.To = all
	}
	if is.From > all {
		return "", is, fmt.Errorf("the text has %s", size.Plural(all, "line"))
	}
	begin := after(text, is.From-1)
	return text[begin : begin+after(text[begin:], is.To-is.From+1)], is, nil
}

// after returns the index at which the first n lines of text end.
func after(text string, n int) int {
	at := 0
	for range n {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return len(text)
		}
		at += i + 1
	}
	return at
}

// A Selection selects lines of a text, of these the ones that match, and of those the first or the last. The zero
// value selects all.
type Selection struct {
	Lines      Lines
	Grep       *Pattern
	Short      bool // of a long line with a match, only what is next to it
	Head, Tail int  // lines; 0 means all
}

// check reports options that exclude each other.
func (s *Selection) check() error {
	switch {
	case s.Head < 0 || s.Tail < 0:
		return errors.New("head and tail are numbers of lines, 1 or more")
	case s.Head > 0 && s.Tail > 0:
		return errors.New("set head or tail, not both")
	}
	return nil
}

// Of returns the selected part of text, and its description, such as "lines 10-40 of 120". Without Grep the result is
// a part of text, byte for byte; with it, each line begins with its number.
func (s *Selection) Of(ctx context.Context, text string) (selected, what string, err error) {
	all := dialog.CountLines(text)
	cut, is, err := s.Lines.Cut(text)
	if err != nil {
		return "", "", err
	}
	if s.Grep == nil {
		if s.Head > 0 && s.Head < is.To-is.From+1 {
			is.To = is.From + s.Head - 1
			cut = cut[:after(cut, s.Head)]
		}
		if n := is.To - is.From + 1; s.Tail > 0 && s.Tail < n {
			is.From = is.To - s.Tail + 1
			cut = cut[after(cut, n-s.Tail):]
		}
		if is.From <= 1 && is.To == all {
			return cut, size.Plural(all, "line"), nil
		}
		return cut, fmt.Sprintf("lines %d-%d of %s", is.From, is.To, size.Group(all)), nil
	}
	matches, err := s.Grep.lines(ctx, cut, is.From, s.Short)
	if err != nil {
		return "", "", err
	}
	what = fmt.Sprintf("%s of %s with a match", size.Group(len(matches)), size.Plural(is.To-is.From+1, "line"))
	switch n := len(matches); {
	case s.Head > 0 && s.Head < n:
		matches, what = matches[:s.Head], what+fmt.Sprintf(", the first %d", s.Head)
	case s.Tail > 0 && s.Tail < n:
		matches, what = matches[n-s.Tail:], what+fmt.Sprintf(", the last %d", s.Tail)
	}
	return strings.Join(matches, ""), what, nil
}

// A Pattern is a regular expression in the syntax of package regexp, which takes time linear in the
// text, whatever the expression is.
type Pattern struct{ re *regexp.Regexp }

// MaxPattern is the length of the longest pattern and of the longest query, in bytes.
const MaxPattern = 1000

// ParsePattern compiles a regular expression.
func ParsePattern(text string) (*Pattern, error) {
	if len(text) > MaxPattern {
		return nil, fmt.Errorf("the pattern has %s bytes; at most %s are allowed", size.Group(len(text)), size.Group(MaxPattern))
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("%w (the syntax is RE2: no back references, no look-around)", err)
	}
	return &Pattern{re}, nil
}

// lines returns the lines of text that match, each with its number; the first line has the number first. It stops
// when ctx is done: a large pattern takes long in a long text, though its time is linear.
func (p *Pattern) lines(ctx context.Context, text string, first int, short bool) ([]string, error) {
	var found []string
	for n := first; text != ""; n++ {
		end := after(text, 1)
		line := text[:end]
		text = text[end:]
		r := &untilDone{ended: ctx.Err, text: strings.TrimRight(line, "\r\n")}
		match := p.re.FindReaderIndex(r)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("the pattern takes too long for this text; use a simpler one, or fewer lines: %w", err)
		}
		if match != nil {
			if !strings.HasSuffix(line, "\n") {
				line += "\n"
			}
			if short {
				line = around(strings.TrimRight(line, "\r\n"), match[0], match[1]) + "\n"
			}
			found = append(found, strconv.Itoa(n)+":"+line)
		}
	}
	return found, nil
}

// around returns a line; of a long one, such as arguments in JSON, what is next to a match.
func around(line string, from, to int) string {
	const long, side = 600, 200 // bytes
	if len(line) <= long {
		return line
	}
	to = plain.On(line, min(len(line), max(from+side, min(to, from+long))+side))
	from = plain.Back(line, max(0, from-side))
	cut := line[from:to]
	if from > 0 {
		cut = "…" + cut
	}
	if to < len(line) {
		cut += "…"
	}
	return cut
}

// untilDone reads text until a context ends.
type untilDone struct {
	ended func() error
	text  string
	read  int
}

// ReadRune implements [io.RuneReader].
func (u *untilDone) ReadRune() (rune, int, error) {
	if u.read++; u.read%64 == 0 && u.ended() != nil || u.text == "" {
		return 0, 0, io.EOF
	}
	r, n := utf8.DecodeRuneInString(u.text)
	u.text = u.text[n:]
	return r, n, nil
}

// A Chunk is a part of the selection from one piece.
type Chunk struct {
	Piece *Piece
	What  string // of the piece was selected
	Text  string
}

// A Page is a part of the selection, no larger than requested.
type Page struct {
	Chunks []Chunk // with text, unless the piece selected has none
	Offset int     // of the page's first byte in everything that was selected
	Next   int     // where the next page begins; 0 if there is none
	Total  int     // bytes that were selected
}

// headSize is the size of the line above a chunk, about.
const headSize = 100

// Select returns the page at an offset of the selections from the pieces, joined, in at most limit bytes with the lines above
// them, a few more if a character would be cut. A page ends with a line if that leaves it at least half full. The texts of all pages,
// joined, are the selection.
func Select(ctx context.Context, pieces []Piece, s *Selection, offset, limit int) (*Page, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	page := &Page{Offset: offset}
	var failed error
	selected := 0
	for i := range pieces {
		text, what, err := s.Of(ctx, pieces[i].Text())
		if ended := ctx.Err(); ended != nil {
			return nil, cmp.Or(err, fmt.Errorf("it takes too long; ask for less: %w", ended))
		}
		if err != nil { // too short: another piece may have these lines
			failed = err
			continue
		}
		selected++
		begin := page.Total
		page.Total += len(text)
		if page.Next > 0 || offset > page.Total || offset == page.Total && text != "" {
			continue
		}
		rest := text[max(offset-begin, 0):]
		if rest != "" && !utf8.RuneStart(rest[0]) && offset > begin {
			return nil, fmt.Errorf("offset %d is inside of a character; use the offset that the page before gave", offset)
		}
		if n := fit(rest, limit); n < len(rest) {
			page.Next = page.Total - len(rest) + n
			rest = rest[:n]
		}
		if rest != "" {
			limit -= len(rest) + headSize
		}
		if limit <= 0 && page.Next == 0 {
			page.Next = page.Total // removed below if nothing follows
		}
		page.Chunks = append(page.Chunks, Chunk{&pieces[i], what, rest})
	}
	switch {
	case selected == 0 && failed != nil:
		return nil, failed
	case offset < 0 || offset > 0 && offset >= page.Total:
		return nil, fmt.Errorf("offset %d: there are %s bytes", offset, size.Group(page.Total))
	case page.Next == page.Total:
		page.Next = 0
	}
	return page, nil
}

// fit returns how many bytes of text fit into limit: whole lines if they are at least half of it.
func fit(text string, limit int) int {
	if len(text) <= limit {
		return len(text)
	}
	n := max(limit, 1)
	if at := strings.LastIndexByte(text[:n], '\n') + 1; at > n/2 {
		return at
	}
	return plain.On(text, n)
}

// A FileAt names a file, or the end of its path.
type FileAt struct {
	Name    string
	At      string // the number of the message after which its text is wanted; empty for the newest text
	Changes bool   // its changes are wanted, in order
}

// Text returns the text of a file as far as the conversation's calls and results show it, or the calls that changed it.
// The error is for a model.
func (s *Source) Text(want *FileAt) ([]Piece, error) {
	all := s.Journal.Messages()
	if want.At != "" {
		refs := ParseRefs(want.At)
		if len(refs) != 1 || refs[0].Handle != "" {
			return nil, fmt.Errorf("at: %q is no number of a message, such as m41", want.At)
		}
		if _, err := s.Numbered(refs[0]); err != nil {
			return nil, err
		}
		all = all[:refs[0].To]
	}
	d, known := dialog.Read(all), new(ledger.Ledger)
	known.Replay(all, d, 0, len(all))
	f, err := fileIn(known, want.Name)
	if err != nil {
		return nil, err
	}
	text, changes := textOfFile(f), []Piece(nil)
	if want.Changes {
		changes = s.changes(all, d, f)
	}
	switch {
	case changes != nil:
		return changes, nil
	case want.Changes:
		return nil, fmt.Errorf("no call that is known changed %s", f.Path)
	case text == "":
		return nil, fmt.Errorf("no text of %s is known there, it was removed or reset; try at with an earlier message, or changes", f.Path)
	}
	m := all[f.Touched]
	p := Piece{
		Part: core.Text(text), What: "file as it is known there,", Path: f.Path, File: s.File,
		Places: []history.Recalled{{Part: core.Text(text), Message: m}}, Numbers: []string{s.number(s.at[m.ID], -1)},
	}
	if slices.ContainsFunc(f.Blocks(), ledger.Block.Past) {
		p.What = fmt.Sprintf("file as it is known there (m%d changed it in a way that is not),", f.Unsure+1)
	}
	return []Piece{p}, nil
}

// ErrSeveral says that a name is that of several files.
var ErrSeveral = errors.New("is the end of several paths")

// fileIn returns the only file whose path ends with a name.
func fileIn(known *ledger.Ledger, name string) (found *ledger.File, err error) {
	name = "/" + toolcall.CleanPath(name)
	var paths, bases, matches []string
	best := 0
	for _, f := range known.Files {
		paths, bases = append(paths, f.Path), append(bases, path.Base(f.Path))
		at, fits := "/"+f.Path, 0
		low := strings.HasSuffix(strings.ToLower(at), strings.ToLower(name))
		for i, is := range []bool{low, strings.HasSuffix(at, name) || strings.HasSuffix(name, at), at == name} {
			if is {
				fits = i + 1
			}
		}
		if fits > best {
			best, matches = fits, nil
		}
		if fits > 0 && fits == best {
			found, matches = f, append(matches, f.Path)
		}
	}
	switch {
	case len(matches) == 1:
		return found, nil
	case len(matches) > 1:
		return nil, fmt.Errorf("%s %w; name one of: %s", name[1:], ErrSeveral, strings.Join(matches, ", "))
	}
	const most = 20
	latest := strings.Join(paths[max(0, len(paths)-most):], ", ")
	return nil, fmt.Errorf("no call read or changed a file %s%s; the latest of %s: %s", name[1:], suggest.DidYouMean(path.Base(name), bases), size.Plural(len(paths), "file"), latest)
}

// textOfFile returns the known lines of a file, and lines in brackets for the others.
func textOfFile(f *ledger.File) string {
	var b strings.Builder
	next := 1
	for _, r := range f.Runs {
		switch {
		case r.First == 0:
			b.WriteString("[from here on: where these lines are is not known]\n")
		case r.First > next:
			fmt.Fprintf(&b, "[lines %d-%d are not known]\n", next, r.First-1)
		}
		for i := range r.Lines {
			b.WriteString(r.Lines[i].Text + "\n")
		}
		next = r.First + len(r.Lines)
	}
	return b.String()
}

// changes returns the calls that changed a file, in order, with the numbers of their results.
func (s *Source) changes(all []core.Message, d *dialog.Dialog, f *ledger.File) (pieces []Piece) {
	replay, done := new(ledger.Ledger), 0
	for i := range all {
		for k, p := range all[i].Parts {
			r, is := p.(core.ToolResult)
			use := d.Messages[i][k].Use
			if !is || use == nil || use.IsError() || use.Info.Family == dialog.FamilyRead {
				continue
			}
			at := s.at[all[i].ID]
			_, call := s.callOf(at, r.CallID)
			if call == nil || !strings.Contains(call.Text(), path.Base(f.Path)) {
				continue
			}
			replay.Replay(all, d, done, i+1)
			if done = i + 1; replay.File(f.Path).Edited == i {
				call.Numbers = []string{s.number(at, k)}
				pieces = append(pieces, *call)
			}
		}
	}
	return pieces
}
