package extractive

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/condensehq/condense/core"
)

// A sentence is a piece of a message that makes sense alone.
type sentence struct {
	text    string
	role    core.Role
	message int  // the index of the message
	first   bool // of its message
	cost    int  // tokens, including the separator
}

const (
	// shortest and longest are the characters of a sentence that is worth picking. A longer one is cut: it is output
	// of a program, or a list without full stops.
	shortest = 12
	longest  = 400
	// maxLines are the sentences read of one text: of a log, only its two ends are worth
	// rating.
	maxLines = 400
)

// split returns the sentences of messages. Results of tools are read by line, because that is how programs write;
// arguments of calls are left out.
func split(messages []core.Message) []sentence {
	var all []sentence
	for i := range messages {
		m := &messages[i]
		begun := len(all)
		for _, p := range m.Parts {
			switch p := p.(type) {
			case core.Text:
				all = addText(all, string(p), m.Role, i)
			case core.ToolResult:
				for _, q := range p.Content {
					if t, ok := q.(core.Text); ok {
						all = addText(all, string(t), core.RoleTool, i)
					}
				}
			case core.ToolCall, core.Image, core.Reasoning, core.Opaque:
			}
		}
		if len(all) > begun {
			all[begun].first = true
		}
	}
	return all
}

func addText(all []sentence, text string, role core.Role, message int) []sentence {
	begun := len(all)
	for line := range strings.Lines(text) {
		for s := strings.TrimSpace(line); s != ""; {
			end := sentenceEnd(s)
			one := strings.TrimLeft(strings.TrimSpace(s[:end]), "-*#>•=+| \t") // marks of lists and headings
			s = strings.TrimSpace(s[end:])
			if len(one) < shortest {
				continue
			}
			one = cut(one)
			all = append(all, sentence{text: one, role: role, message: message, cost: cost(one) + 2})
		}
		if n := len(all) - begun; n > 2*maxLines { // keep the head, and make room for the tail
			copy(all[begun+maxLines/2:], all[len(all)-maxLines:])
			all = all[:begun+maxLines/2+maxLines]
		}
	}
	return all
}

// sentenceEnd returns where the first sentence of s ends.
func sentenceEnd(s string) int {
	for i, r := range s {
		end := i + utf8.RuneLen(max(r, 0))
		switch r {
		case '。', '！', '？': // no space follows
			return end
		case '.', '!', '?':
			next, _ := utf8.DecodeRuneInString(s[end:])
			if end == len(s) || next == ' ' && i >= shortest {
				return end
			}
		}
	}
	return len(s)
}

// cut returns s without the part beyond the longest sentence.
func cut(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	n := 0
	for i, r := range s {
		if n++; n > longest && (unicode.IsSpace(r) || n > longest+40) {
			return s[:i] + " …"
		}
	}
	return s
}

// cost returns an upper bound of the tokens of s for every common vocabulary: words have one for three letters, other
// characters have one each, as has every character of a number or a hash, and scripts other than Latin have up to two
// a character. The usual count is a quarter to a half less, which is the price of never exceeding a limit.
func cost(s string) int {
	thirds, number := 0, false
	for _, r := range s {
		digit := r >= '0' && r <= '9'
		letter := r < utf8.RuneSelf && unicode.IsLetter(r)
		number = digit || number && letter
		switch {
		case r == ' ':
		case letter && !number:
			thirds++
		case r < 0x250: // Latin, digits, signs
			thirds += 3
		default:
			thirds += 6
		}
	}
	return thirds/3 + 1
}
