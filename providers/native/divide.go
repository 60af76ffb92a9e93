package native

import (
	"cmp"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/condensehq/condense/core"
)

// A piece is not divided further: a group of messages in the form for the model.
type piece struct {
	messages []core.Message
	tokens   int
}

// divide returns messages in parts of at most so many tokens, as the model is shown them.
// Tool groups stay together unless one alone is too large. Each part but the first begins
// with the end of the one before.
func (p *Provider) divide(counter core.Counter, messages []core.Message, room int) [][]core.Message {
	pieces := p.pieces(counter, messages, room)
	repeat := int(overlap * float64(room))
	var parts [][]core.Message
	for start := 0; start < len(pieces); {
		size := 0
		first := start
		// The end of the part before, as far as the first new piece leaves room.
		for len(parts) > 0 && first > 0 && size+pieces[first-1].tokens <= min(repeat, room-pieces[start].tokens) {
			first--
			size += pieces[first].tokens
		}
		end := start
		for end < len(pieces) && (end == start || size+pieces[end].tokens <= room) {
			size += pieces[end].tokens
			end++
		}
		parts = append(parts, joinPieces(pieces[first:end]))
		start = end
	}
	return parts
}

func (p *Provider) pieces(counter core.Counter, messages []core.Message, room int) []piece {
	shape := &shaper{images: p.gen.Info().Images}
	var pieces []piece
	for _, span := range core.Groups(messages) {
		shaped := shape.shape(messages[span.Start:span.End])
		shaped = withoutBeginning(shaped)
		g := piece{shaped, messagesTokens(counter, shaped)}
		if g.tokens <= room {
			if len(shaped) > 0 {
				pieces = append(pieces, g)
			}
			continue
		}
		for _, m := range shaped {
			for _, part := range m.Parts {
				for _, fragment := range fragments(counter, part, room/2) {
					one := core.Message{Role: m.Role, Parts: []core.Part{fragment}}
					pieces = append(pieces, piece{[]core.Message{one}, core.MessageTokens(counter, one)})
				}
			}
		}
	}
	return pieces
}

// withoutBeginning returns shaped messages without the words that shape puts before an
// assistant who speaks first: a piece is not the beginning of anything.
func withoutBeginning(shaped []core.Message) []core.Message {
	if len(shaped) > 1 && shaped[1].Role == core.RoleAssistant && len(shaped[0].Parts) == 1 && shaped[0].Parts[0] == core.Part(beginning) {
		return shaped[1:]
	}
	return shaped
}

// fragments cuts a part into texts of at most so many tokens, at line breaks where there are any. Other content
// is left out if it is larger than that.
func fragments(counter core.Counter, part core.Part, room int) []core.Part {
	n := counter.Count(part)
	if n <= room {
		return []core.Part{part}
	}
	text, ok := part.(core.Text)
	if !ok {
		return []core.Part{core.Text(fmt.Sprintf("[something of %d tokens left out here]", n))}
	}
	var out []core.Part
	rest := string(text)
	for rest != "" {
		size := max(1, len(text)*room/n)
		piece := rest
		for {
			if size < len(rest) {
				piece = rest[:breakAt(rest, size)]
			} else {
				piece = rest
			}
			if size <= 1 || counter.Count(core.Text(piece)) <= room {
				break
			}
			size = size * 3 / 4
		}
		if strings.TrimSpace(piece) != "" {
			out = append(out, core.Text(piece))
		}
		rest = rest[len(piece):]
	}
	return out
}

// breakAt returns where to cut text so that it has at most size bytes, if that is more
// than nothing: after the last line break of the second half, else between two runes.
func breakAt(text string, size int) int {
	if i := strings.LastIndexByte(text[size/2:size], '\n'); i >= 0 {
		return size/2 + i + 1
	}
	cut := size
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return cmp.Or(cut, size)
}

// joinPieces returns the messages of pieces in the form that every model can read.
func joinPieces(pieces []piece) []core.Message {
	var out []core.Message
	for _, p := range pieces {
		for _, m := range p.messages {
			if last := len(out) - 1; last >= 0 && out[last].Role == m.Role {
				out[last].Parts = append(out[last].Parts, m.Parts...)
				continue
			}
			out = append(out, core.Message{Role: m.Role, Parts: append([]core.Part(nil), m.Parts...)})
		}
	}
	return withUserFirst(out)
}
