package core

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/plain"
)

// Cut shortens the messages of one tool group to room tokens and returns them with their tokens. The largest pieces
// of content shrink most: all are cut to one common size, the largest with which the group fits, and a note in each
// describes the omission. The result breaks none of the [Rules], unless the group holds what cannot be removed: see
// [FixedGroup.Cut]. If the notes alone are too large, the notes of
// neighboring texts, images and blocks are merged. A group that cannot fit is returned as small as possible. The
// messages must be measured by c; they are not modified.
func Cut(c Counter, messages []Message, room int) (out []Message, tokens int) {
	return cutAround(c, messages, make([]hold, len(messages)), room)
}

// cutAround is [Cut], but leaves of each message what holds says.
func cutAround(c Counter, messages []Message, holds []hold, room int) (out []Message, tokens int) {
	if out, tokens = newPieces(c, messages, holds).fit(room); tokens > room {
		if merged, ok := mergePieces(c, messages, holds); ok {
			if less, n := newPieces(c, merged, holds).fit(room); n < tokens {
				return less, n
			}
		}
	}
	return out, tokens
}

// mergePieces returns the messages with one text for neighboring texts, images and blocks. It reports whether there were any.
func mergePieces(c Counter, messages []Message, holds []hold) ([]Message, bool) {
	out, merged := slices.Clone(messages), false
	for i := range out {
		if holds[i] != holdNothing {
			continue
		}
		if parts, ok := mergeParts(c, out[i].Parts); ok {
			out[i].Parts, merged = parts, true
			out[i].Tokens = MessageTokens(c, out[i])
		}
	}
	return out, merged
}

func mergeParts(c Counter, parts []Part) (out []Part, merged bool) {
	for i := 0; i < len(parts); {
		if r, ok := parts[i].(ToolResult); ok {
			content, ok := mergeParts(c, r.Content)
			r.Content, merged = content, merged || ok
			out = append(out, r)
			i++
			continue
		}
		var texts []string
		media, tokens, from := 0, 0, i
		for ; i < len(parts); i++ {
			t, isText := parts[i].(Text)
			if !isText && !isMedia(parts[i]) {
				break
			}
			if isText {
				texts = append(texts, string(t))
			} else {
				media++
				tokens += c.Count(parts[i])
			}
		}
		if i-from < 2 { // nothing to merge, and perhaps a call or reasoning
			i = from + 1
			out = append(out, parts[from])
			continue
		}
		merged = true
		if len(texts) > 0 {
			out = append(out, Text(strings.Join(texts, "\n")))
		}
		if media > 0 {
			out = append(out, Text(fmt.Sprintf("[… %d images or blocks of about %d tokens left out to fit the context window]", media, tokens)))
		}
	}
	return out, merged
}

// unlimited is a size that no piece reaches.
const unlimited = math.MaxInt / 2

// pieces are the contents of a group that can be made smaller.
type pieces struct {
	counter  Counter
	messages []Message
	holds    []hold
	sizes    []int // tokens of every piece, sorted
	rest     int   // tokens of content that cannot be cut
}

func newPieces(counter Counter, messages []Message, holds []hold) *pieces {
	p := &pieces{counter: counter, messages: messages, holds: holds}
	for i := range messages {
		p.rest += messages[i].Tokens
		p.collect(messages[i].Parts, holds[i])
	}
	slices.Sort(p.sizes)
	for _, n := range p.sizes {
		p.rest -= n
	}
	return p
}

func (p *pieces) collect(parts []Part, holds hold) {
	for _, part := range parts {
		r, ok := part.(ToolResult)
		switch {
		case holds == holdAll || holds == holdWords && !ok:
			continue
		case ok:
			p.collect(r.Content, holdNothing)
			continue
		case isNote(part):
			continue
		}
		p.sizes = append(p.sizes, p.counter.Count(part))
	}
}

// fit cuts the pieces until the group has room tokens, or can have no less.
func (p *pieces) fit(room int) (out []Message, tokens int) {
	for size := p.size(room); ; size = size * 7 / 8 {
		out := p.cut(size)
		tokens := TotalTokens(out)
		if tokens <= room || size == 0 {
			return out, tokens
		}
	}
}

// size returns the common size to which pieces must be cut for the group to have room
// tokens; 0 if none is small enough.
func (p *pieces) size(room int) int {
	left := room - p.rest
	if left < 0 {
		return 0
	}
	for i, n := range p.sizes {
		if share := left / (len(p.sizes) - i); n > share {
			return share
		}
		left -= n
	}
	return unlimited
}

// cut returns the messages with no piece above size.
func (p *pieces) cut(size int) []Message {
	out := slices.Clone(p.messages)
	for i, m := range p.messages {
		parts := p.cutParts(m.Parts, size, p.holds[i])
		if EqualParts(parts, m.Parts) {
			continue
		}
		if (Message{Parts: parts}).Blank() && !m.Blank() {
			parts = []Part{Text("[… reasoning left out to fit the context window]")}
		}
		out[i].Parts = parts
		out[i].Tokens = MessageTokens(p.counter, out[i])
	}
	return out
}

func (p *pieces) cutParts(parts []Part, size int, holds hold) []Part {
	if holds == holdAll {
		return parts
	}
	out := make([]Part, 0, len(parts))
	for _, part := range parts {
		if r, ok := part.(ToolResult); ok {
			r.Content = p.cutParts(r.Content, size, holdNothing)
			out = append(out, r)
			continue
		}
		n := p.counter.Count(part)
		if holds == holdWords || n <= size || isNote(part) {
			out = append(out, part)
			continue
		}
		if short := p.cutPart(part, n, size); short != nil {
			if p.counter.Count(short) >= n {
				short = part // the note would cost as much as it saves
			}
			out = append(out, short)
		}
	}
	return out
}

// cutPart returns a replacement of a part of n tokens, with size tokens if possible; nil
// if the part is dropped.
func (p *pieces) cutPart(part Part, n, size int) Part {
	switch part := part.(type) {
	case Text:
		return Text(p.cutText(string(part), n, size))
	case ToolCall:
		part.Args = p.cutArgs(part.Args, n, size)
		return part
	case Image:
		return Text(fmt.Sprintf("[… image of about %d tokens left out to fit the context window]", n))
	case Opaque:
		return Text(fmt.Sprintf("[… %s of %d tokens left out to fit the context window]", noun(part.Kind), n))
	case Reasoning, ToolResult:
		// Reasoning is kept verbatim or dropped; results are cut through their content.
	}
	return nil
}

// isNote reports whether part is nothing but a note about an omission. A note about a note would say nothing of what is missing.
func isNote(part Part) bool {
	t, ok := part.(Text)
	return ok && len(t) > 0 && len(t) <= maxMark && new(shortening).mark(string(t)) == len(t)
}

// noun returns the name of a block of that kind. Other kinds are not named, because a note
// may only hold the words that [Shortens] allows.
func noun(kind string) string {
	for word := range strings.FieldsSeq("document file audio video image") {
		if strings.Contains(kind, word) {
			return word
		}
	}
	return "block"
}

// cutText returns the head and the tail of s with a note between them, in at most size
// tokens if the note alone leaves room for any, where s has n tokens.
func (p *pieces) cutText(s string, n, size int) string {
	note := func(kept int) string {
		return fmt.Sprintf("\n[… %d of %d bytes, about %d of %d tokens, left out here to fit the context window …]\n",
			len(s)-kept, len(s), n-int(float64(n)*float64(kept)/float64(len(s))), n)
	}
	// The share of bytes only estimates the share of tokens, so measure and correct. Each
	// round is shorter than the last.
	room := size - p.counter.Count(Text(note(len(s)/2)))
	keep := int(float64(len(s)) * float64(room) / float64(n))
	for keep > 0 {
		head, tail := ends(s, keep)
		out := head + note(len(head)+len(tail)) + tail
		got := p.counter.Count(Text(out))
		if got <= size {
			return out
		}
		keep = min(keep*15/16, int(float64(keep)*float64(size)/float64(got)))
	}
	return strings.TrimSpace(note(0))
}

// ends returns the first and last bytes of s, keep in all, without splitting a rune.
func ends(s string, keep int) (head, tail string) {
	return s[:plain.Back(s, keep-keep/2)], s[plain.On(s, len(s)-keep/2):]
}

// cutArgs shortens the arguments of a call. They remain a JSON object, as the vendors' APIs
// require.
func (p *pieces) cutArgs(args string, n, size int) string {
	wrap := func(s string) string {
		text, err := marshal(map[string]string{"shortened": s})
		if err != nil {
			return "{}"
		}
		return string(text)
	}
	// Escaping the quotes once more costs tokens.
	for budget := size; budget > 16; budget /= 2 {
		out := wrap(p.cutText(args, n, budget-8))
		if p.counter.Count(ToolCall{Args: out}) <= size {
			return out
		}
	}
	return "{}"
}
