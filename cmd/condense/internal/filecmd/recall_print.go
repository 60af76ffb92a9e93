package filecmd

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/size"
)

// A lineRange is a range of lines, counted from 1; 0 is an open end.
type lineRange struct{ from, to int }

func (r *lineRange) parse(text string) error {
	if text == "" {
		return nil
	}
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	for _, end := range []struct {
		text string
		n    *int
	}{{from, &r.from}, {to, &r.to}} {
		if end.text == "" {
			continue
		}
		n, err := strconv.Atoi(end.text)
		if err != nil || n < 1 {
			return fmt.Errorf("%q: want lines such as 10-40, counted from 1", text)
		}
		*end.n = n
	}
	if from == "" && to == "" || r.to > 0 && r.to < r.from {
		return fmt.Errorf("%q: want lines such as 10-40, counted from 1", text)
	}
	return nil
}

// cut returns the lines of text in the range; all of it if no range was given.
func (r *lineRange) cut(text string) (string, error) {
	if *r == (lineRange{}) {
		return text, nil
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	from, to := max(r.from, 1), r.to
	if to == 0 || to > len(lines) {
		to = len(lines)
	}
	if from > len(lines) {
		return "", fmt.Errorf("--lines: the text has %s", size.Plural(len(lines), "line"))
	}
	return strings.Join(lines[from-1:to], ""), nil
}

// textOf returns content as text, for users and models.
func textOf(p core.Part) string {
	switch p := p.(type) {
	case core.Text:
		return string(p)
	case core.ToolCall:
		return p.Args
	case core.ToolResult:
		var texts []string
		for _, c := range p.Content {
			texts = append(texts, textOf(c))
		}
		return strings.Join(texts, "\n")
	case core.Image:
		if p.URL != "" {
			return p.URL
		}
		return fmt.Sprintf("[%s, %s bytes of base64; --json prints them]", p.MediaType, size.Group(len(p.Data)))
	case core.Reasoning:
		if p.Text == "" {
			return fmt.Sprintf("[encrypted, %s bytes; --json prints them]", size.Group(len(p.Encrypted)))
		}
		return p.Text
	case core.Opaque:
		return p.JSON
	}
	return ""
}

func countLines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

// heading describes a piece and its places.
func (p *piece) heading() string {
	var ids []string
	for _, at := range p.places {
		ids = append(ids, at.Message.ID)
	}
	s := fmt.Sprintf("%s %s, %s, %s", strings.Join(ids, " "), p.what, p.handle, size.Plural(countLines(textOf(p.part)), "line"))
	switch at := p.places[0]; {
	case at.Dropped:
		s += ", dropped by a rewind"
	case len(p.hidden) > 0:
		s += ", hidden by " + p.hidden[len(p.hidden)-1]
	case at.RewrittenBy != "":
		s += ", as rewritten by " + at.RewrittenBy
	}
	if p.file != "" {
		s += ", from " + p.file
	}
	return s
}

// printPieces prints the text of a single piece alone; several pieces have headings.
func printPieces(a *cli.App, pieces []piece, lines *lineRange) error {
	if len(pieces) == 0 {
		return errors.New("nothing to print: the message is empty, or nothing was hidden")
	}
	for i := range pieces {
		p := &pieces[i]
		text, err := lines.cut(textOf(p.part))
		if err != nil {
			return fmt.Errorf("%s: %w", p.heading(), err)
		}
		if len(pieces) == 1 {
			term.Printf(a.Stderr, "%v\n", p.heading())
			return term.PrintData(a.Stdout, []byte(text))
		}
		term.Printf(a.Stdout, "--- %s\n", p.heading())
		if err := term.PrintData(a.Stdout, []byte(strings.TrimSuffix(text, "\n")+"\n")); err != nil {
			return err
		}
	}
	return nil
}

// printLost lists pieces, one per line, and reports handles whose content is elsewhere.
func printLost(a *cli.App, pieces []piece, r *recall) {
	if elsewhere := r.elsewhere(); len(elsewhere) > 0 {
		defer term.Printf(a.Stderr, "%s: %s, such as h:%s, to content that is not in this file: try the file that was condensed\n",
			r.path, leads(len(elsewhere)), elsewhere[0])
	}
	if len(pieces) == 0 {
		if format := r.own.Format; cli.RecordCondensations[format] || format == formatOriginals {
			term.Printf(a.Stdout, "nothing is hidden, rewritten or dropped\n")
		} else {
			term.Printf(a.Stdout, "the format %s does not record what was condensed away, so nothing can be listed\n", format)
		}
		return
	}
	t := term.NewTable("message", "handle", "what", ">lines", ">bytes", "begins")
	for i := range pieces {
		p := &pieces[i]
		text, what := textOf(p.part), p.what
		if p.places[0].Dropped {
			what += " (dropped)"
		}
		t.Row(p.places[0].Message.ID, p.handle, what, countLines(text), len(text), excerpt(text))
	}
	_ = term.PrintText(a.Stdout, t.Text("  ")+"\n")
}

func leads(n int) string {
	if n == 1 {
		return "one handle in the text leads"
	}
	return size.Group(n) + " handles in the text lead"
}

// A pieceListing is a piece as JSON.
type pieceListing struct {
	Handle string         `json:"handle"`
	What   string         `json:"what"`
	Lines  int            `json:"lines"`
	Bytes  int            `json:"bytes"` // of the text
	File   string         `json:"file,omitempty"`
	Places []placeListing `json:"places"`
	Hidden []string       `json:"hidden_by,omitempty"`
	Text   *string        `json:"text,omitempty"`
	// Content is a message whose only part is the piece.
	Content *core.Message `json:"content,omitempty"`
}

type placeListing struct {
	Message     string    `json:"message"`
	Role        core.Role `json:"role"`
	InsertedBy  string    `json:"inserted_by,omitempty"`
	RewrittenBy string    `json:"rewritten_by,omitempty"`
	Dropped     bool      `json:"dropped,omitempty"` // by a rewind
	InView      bool      `json:"in_view"`
}

func pieceListings(pieces []piece, full bool) []pieceListing {
	list := []pieceListing{}
	for _, p := range pieces {
		text := textOf(p.part)
		l := pieceListing{Handle: p.handle, What: p.what, Lines: countLines(text), Bytes: len(text), File: p.file, Hidden: p.hidden, Places: []placeListing{}}
		for _, at := range p.places {
			l.Places = append(l.Places, placeListing{at.Message.ID, at.Message.Role, at.InsertedBy, at.RewrittenBy, at.Dropped, at.InView})
		}
		if full {
			m := p.places[0].Message
			l.Text, l.Content = &text, &core.Message{ID: m.ID, Role: m.Role, Kind: m.Kind, Time: m.Time, Parts: []core.Part{p.part}}
		}
		list = append(list, l)
	}
	return list
}
