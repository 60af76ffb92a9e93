package filecmd

import (
	"errors"
	"fmt"
	"strings"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/recall"
	"github.com/condensehq/condense/internal/size"
)

// printPieces prints the text of a single piece alone; several pieces have headings.
func printPieces(a *cli.App, pieces []recall.Piece, lines recall.Lines) error {
	if len(pieces) == 0 {
		return errors.New("nothing to print: the message is empty, or nothing was hidden")
	}
	for i := range pieces {
		p := &pieces[i]
		text, _, err := lines.Cut(p.Text())
		if err != nil {
			return fmt.Errorf("%s: --lines: %w", p.Heading(), err)
		}
		if len(pieces) == 1 {
			term.Printf(a.Stderr, "%v\n", p.Heading())
			return term.PrintData(a.Stdout, []byte(text))
		}
		term.Printf(a.Stdout, "--- %s\n", p.Heading())
		if err := term.PrintData(a.Stdout, []byte(strings.TrimSuffix(text, "\n")+"\n")); err != nil {
			return err
		}
	}
	return nil
}

// printLost lists pieces, one per line, and reports handles whose content is elsewhere.
func printLost(a *cli.App, pieces []recall.Piece, r *recalling) {
	if elsewhere := r.elsewhere(); len(elsewhere) > 0 {
		defer term.Printf(a.Stderr, "%s: %s, such as h:%s, to content that is not in this file: try the file that was condensed\n",
			r.path, leads(len(elsewhere)), elsewhere[0])
	}
	if len(pieces) == 0 {
		if format := r.format; cli.RecordCondensations[format] || format == formatOriginals {
			term.Printf(a.Stdout, "nothing is hidden, rewritten or dropped\n")
		} else {
			term.Printf(a.Stdout, "the format %s does not record what was condensed away, so nothing can be listed\n", format)
		}
		return
	}
	t := term.NewTable("message", "handle", "what", ">lines", ">bytes", "begins")
	for i := range pieces {
		p := &pieces[i]
		text, what := p.Text(), p.What
		if p.Places[0].Dropped {
			what += " (dropped)"
		}
		t.Row(p.Places[0].Message.ID, p.Handle, what, dialog.CountLines(text), len(text), excerpt(text))
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

func pieceListings(pieces []recall.Piece, full bool) []pieceListing {
	list := []pieceListing{}
	for _, p := range pieces {
		text := p.Text()
		l := pieceListing{
			Handle: p.Handle, What: p.What, Lines: dialog.CountLines(text), Bytes: len(text),
			File: p.File, Hidden: p.Hidden, Places: []placeListing{},
		}
		for _, at := range p.Places {
			l.Places = append(l.Places, placeListing{at.Message.ID, at.Message.Role, at.InsertedBy, at.RewrittenBy, at.Dropped, at.InView})
		}
		if full {
			m := p.Places[0].Message
			l.Text, l.Content = &text, &core.Message{ID: m.ID, Role: m.Role, Kind: m.Kind, Time: m.Time, Parts: []core.Part{p.Part}}
		}
		list = append(list, l)
	}
	return list
}
