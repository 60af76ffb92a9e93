package mcpserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/recall"
	"github.com/condensehq/condense/internal/size"
)

// A word is a string that a model may also write as a number.
type word string

// UnmarshalJSON reads a string or a number.
func (w *word) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(w))
	}
	*w = word(b)
	return nil
}

type recallArgs struct {
	What    word   `json:"what"`
	Of      word   `json:"of"`
	Handle  word   `json:"handle"`
	Message word   `json:"message"`
	File    string `json:"file"`
	At      word   `json:"at"`
	Changes bool   `json:"changes"`
	Lines   word   `json:"lines"`
	Head    int    `json:"head"`
	Tail    int    `json:"tail"`
	Grep    string `json:"grep"`
	Tokens  int    `json:"tokens"`
	Offset  int    `json:"offset"`
}

// names returns the arguments that name content.
func (in *recallArgs) names() []word {
	return slices.DeleteFunc([]word{in.What, in.Handle, in.Message, word(in.File)}, func(w word) bool { return w == "" })
}

// page returns the texts of a page of the selection from pieces.
func (s *State) page(page *recall.Page, pieces []recall.Piece, sel *recall.Selection) (texts []string) {
	returned := 0
	if len(pieces) != 1 {
		page.Chunks = slices.DeleteFunc(page.Chunks, func(c recall.Chunk) bool { return c.Text == "" })
		pieces = nil
		for _, c := range page.Chunks {
			pieces = append(pieces, *c.Piece)
		}
		if n := len(page.Chunks); n == 0 {
			return []string{recalledMark + "no line matches, in lower and upper case; try one word of it, or its stem; " + s.Conversation.Own.Has() + "]"}
		} else if n > maxPlaces && sel.Grep != nil {
			page.Chunks, page.Next = page.Chunks[:maxPlaces], 0
			texts = append(texts, fmt.Sprintf("[condense recall: lines match in %d places or more, these are the first %d; use a pattern that matches fewer]", n, maxPlaces))
		}
	}
	for _, c := range page.Chunks {
		returned += len(c.Text)
		head := recalledMark + where(c.Piece) + "; " + c.What
		switch {
		case c.Text == "" && sel.Grep != nil:
			texts = append(texts, head+", in lower and upper case; try a shorter pattern, grep alone, or lines]")
		case c.Text == "":
			texts = append(texts, head+"; nothing to show]")
		case strings.TrimSpace(c.Text) == "": // APIs refuse a text of white space
			texts = append(texts, fmt.Sprintf("%s; only white space: %+q]", head, c.Text))
		case sel.Grep != nil:
			texts = append(texts, head+"; old content, each line after its number; "+notSaid+"]", c.Text)
		case c.Piece.Decoded != "":
			texts = append(texts, head+"; the arguments, decoded; "+notSaid+"]", c.Text)
		default:
			texts = append(texts, head+"; old content, verbatim; "+notSaid+"]", c.Text)
		}
	}
	if shown := cmp.Or(page.Next, page.Total) - page.Offset; shown < page.Total {
		next := "the end"
		if page.Next > 0 {
			next = fmt.Sprintf("next: offset %d", page.Next)
		}
		texts = append(texts, fmt.Sprintf(recalledMark+"%s of %s bytes; %s]", size.Group(shown), size.Group(page.Total), next))
	}
	if s.Recalled != nil {
		s.Recalled(pieces, returned)
	}
	return texts
}
