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
