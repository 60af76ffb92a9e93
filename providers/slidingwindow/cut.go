package slidingwindow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/condensehq/condense/core"
)

// pieces are the contents of a group that can be made smaller.
type pieces struct {
	counter  core.Counter
	messages []core.Message
	sizes    []int // tokens of every piece, sorted
	rest     int   // tokens of what cannot be cut
}

func newPieces(counter core.Counter, messages []core.Message) *pieces {
	p := &pieces{counter: counter, messages: messages}
	total := 0
	for i := range messages {
		total += messages[i].Tokens
		p.collect(messages[i].Parts)
	}
	slices.Sort(p.sizes)
	p.rest = total
	for _, n := range p.sizes {
		p.rest -= n
	}
	return p
}

func (p *pieces) collect(parts []core.Part) {
	for _, part := range parts {
		if r, ok := part.(core.ToolResult); ok {
			p.collect(r.Content)
			continue
		}
		p.sizes = append(p.sizes, p.counter.Count(part))
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
func (p *pieces) cut(size int) []core.Message {
	out := make([]core.Message, len(p.messages))
	for i, m := range p.messages {
		out[i] = m
		parts := p.cutParts(m.Parts, size)
		if core.EqualParts(parts, m.Parts) {
			continue
		}
		if (core.Message{Parts: parts}).Blank() && !m.Blank() {
			parts = []core.Part{core.Text("[… reasoning left out to fit the context window]")}
		}
		out[i].Parts = parts
		out[i].Tokens = core.MessageTokens(p.counter, out[i])
	}
	return out
}

func (p *pieces) cutParts(parts []core.Part, size int) []core.Part {
	out := make([]core.Part, 0, len(parts))
	for _, part := range parts {
		if r, ok := part.(core.ToolResult); ok {
			r.Content = p.cutParts(r.Content, size)
			out = append(out, r)
			continue
		}
		n := p.counter.Count(part)
		if n <= size {
			out = append(out, part)
			continue
		}
		if short := p.cutPart(part, n, size); short != nil {
			if p.counter.Count(short) >= n {
				short = part // the note would cost what it saves
			}
			out = append(out, short)
		}
	}
	return out
}

// cutPart returns what stands for a part of n tokens, in size tokens if that is possible;
// nil if nothing does.
func (p *pieces) cutPart(part core.Part, n, size int) core.Part {
	switch part := part.(type) {
	case core.Text:
		return core.Text(p.cutText(string(part), n, size))
	case core.ToolCall:
		part.Args = p.cutArgs(part.Args, n, size)
		return part
	case core.Image:
		return core.Text(fmt.Sprintf("[… image of about %d tokens left out to fit the context window]", n))
	case core.Opaque:
		return core.Text(fmt.Sprintf("[… %s of %d tokens left out to fit the context window]", noun(part.Kind), n))
	case core.Reasoning, core.ToolResult:
		// Reasoning stays verbatim or goes; results are cut by what they hold.
	}
	return nil
}

// noun returns what a block of that kind is called. Any other name would be a word that the user
// did not say.
func noun(kind string) string {
	switch kind {
	case "document", "file", "audio", "image":
		return kind
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
	// The share of bytes is only a guess at the share of tokens; a few rounds of
	// measuring find one that fits, each no longer than the last.
	room := size - p.counter.Count(core.Text(note(len(s)/2)))
	keep := int(float64(len(s)) * float64(room) / float64(n))
	for keep > 0 {
		head, tail := ends(s, keep)
		out := head + note(len(head)+len(tail)) + tail
		got := p.counter.Count(core.Text(out))
		if got <= size {
			return out
		}
		keep = min(keep*15/16, int(float64(keep)*float64(size)/float64(got)))
	}
	return strings.TrimSpace(note(0))
}

// ends returns the first and last bytes of s, keep in all, without splitting a rune.
func ends(s string, keep int) (head, tail string) {
	i, j := keep-keep/2, len(s)-keep/2
	for i > 0 && !utf8.RuneStart(s[i]) {
		i--
	}
	for j < len(s) && !utf8.RuneStart(s[j]) {
		j++
	}
	return s[:i], s[j:]
}

// cutArgs shortens the arguments of a call. They stay a JSON object, which the vendors'
// APIs demand.
func (p *pieces) cutArgs(args string, n, size int) string {
	wrap := func(s string) string {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(map[string]string{"shortened": s}); err != nil {
			return "{}"
		}
		return strings.TrimSuffix(b.String(), "\n")
	}
	// Quotes are escaped once more inside the string, which costs tokens.
	for budget := size; budget > 16; budget /= 2 {
		out := wrap(p.cutText(args, n, budget-8))
		if p.counter.Count(core.ToolCall{Args: out}) <= size {
			return out
		}
	}
	return "{}"
}
