// Package extractive implements a model without a language model: it picks sentences from its prompt instead of
// writing its own. It needs no key and no network and is deterministic, so that features that need a model can be
// tried, tested, and shown to work offline. Its answers are labelled as extracts.
//
// Sentences are rated by their words, as H. P. Luhn did first (The Automatic Creation of Literature Abstracts, 1958),
// by their place and by cue words, as H. P. Edmundson did (New Methods in Automatic Extracting, 1969), and are chosen
// one after the other, with repeated words counting less, as in SumBasic (A. Nenkova, L. Vanderwende, The Impact of
// Frequency on Summarization, 2005).
package extractive

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/model"
)

// Label is the first line of every answer.
const Label = "[Extract: sentences of the conversation, picked by a program. No language model has written this summary.]"

// Name is the name of the model.
const Name = "extractive"

// window is far more than any conversation has, and not so large that sums overflow.
const window = 1_000_000_000

// defaultOutput is the longest answer, in tokens, of a prompt that sets none.
const defaultOutput = 2000

// New returns the model. It is free, and it is never unavailable.
func New() model.Generator { return extractor{} }

type extractor struct{}

// Info says that the model costs nothing and reads whatever it is given.
func (extractor) Info() model.Info { return model.Info{Name: Name, Window: window, Free: true} }

// Generate answers with sentences from the messages of p, in their order, in no more than
// p.MaxOutput tokens. The last message is taken for the instruction and only read if it is
// the only one; the system prompt is not. The error wraps [model.ErrNoText] if there is
// nothing to pick from. No usage is reported, because no model was called.
func (extractor) Generate(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	if p.Schema != "" {
		return nil, fmt.Errorf("%s: it writes no JSON: %w", Name, errors.ErrUnsupported)
	}
	limit := p.MaxOutput
	if limit <= 0 {
		limit = defaultOutput
	}
	read := p.Messages
	if len(read) > 1 {
		read = read[:len(read)-1]
	}
	sentences := split(read)
	if len(sentences) == 0 {
		return nil, fmt.Errorf("%s: %w: there is nothing to pick from", Name, model.ErrNoText)
	}
	room := limit - cost(Label)
	picked, err := pick(ctx, sentences, room)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	if len(picked) == 0 {
		return nil, fmt.Errorf("%s: %w: no sentence fits %d tokens", Name, model.ErrNoText, limit)
	}
	return &model.Answer{Text: write(sentences, picked)}, nil
}

// headings introduce a text by its author.
var headings = map[core.Role]string{
	core.RoleUser: "User:", core.RoleAssistant: "Assistant:", core.RoleTool: "Tool:", core.RoleSystem: "System:",
}

func heading(r core.Role) string {
	if h, ok := headings[r]; ok {
		return h
	}
	return headings[core.RoleUser]
}

// write puts the sentences picked, ascending, under headings.
func write(sentences []sentence, picked []int) string {
	var b strings.Builder
	b.WriteString(Label)
	last := core.Role("nobody")
	for _, i := range picked {
		s := &sentences[i]
		if s.role != last {
			b.WriteString("\n\n" + heading(s.role))
			last = s.role
		}
		b.WriteString("\n- " + s.text)
	}
	b.WriteByte('\n')
	return b.String()
}

// Embed implements [model.Embedder]: it counts words in place of meanings, which is enough for trials.
func (extractor) Embed(ctx context.Context, texts []string) ([][]float32, core.Usage, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		vectors[i] = make([]float32, dimensions)
		for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			h := fnv.New32a()
			_, _ = h.Write([]byte(word))
			vectors[i][h.Sum32()%dimensions]++
		}
	}
	return vectors, core.Usage{}, ctx.Err()
}

const dimensions = 256

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
