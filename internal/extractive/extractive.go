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
	"container/heap"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
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

// weights are added to the score of a sentence's words. They follow Edmundson's order:
// cue words before place before frequency alone.
var (
	cues = []string{
		"must", "never", "always", "don't", "decided", "because", "instead", "important", "error", "failed",
		"fixed", "bug", "todo", "next", "remaining", "done", "works", "need", "should",
	}
	byRole = map[core.Role]float64{core.RoleUser: 2, core.RoleAssistant: 1, core.RoleSystem: 1, core.RoleTool: 0.25}
)

const (
	cueBonus    = 1.5
	firstBonus  = 1.5 // the first sentence of a message gives its subject
	leadBonus   = 2   // for the first message, which gives the task
	recentBonus = 2   // at the end, falling to 1 over the newest quarter
	recentShare = 0.25
	// rough is the factor for text that is not prose: code, a path, a line of a log, which
	// any author may write. Prose has fewWords words, and prosaic of it are letters and
	// spaces.
	rough    = 0.2
	prosaic  = 0.8
	fewWords = 4
	// said is the factor for a word that was already used; SumBasic squares its probability.
	said = 0.3
	// stale is the share of its value below which a sentence is a repetition.
	stale = 0.1
)

// A candidate is a sentence that may be picked.
type candidate struct {
	index  int
	words  []int32 // distinct
	weight float64
	value  float64 // per token, when it was last looked at
	alone  float64 // value before anything was picked
}

// pick returns the indices, ascending, of the sentences that say most in room tokens.
// Values only ever fall, so that a sentence that is still the best after it was looked at
// again is the best of all: the accelerated greedy algorithm of M. Minoux (1978).
func pick(ctx context.Context, sentences []sentence, room int) ([]int, error) {
	queue, worth := rate(sentences)
	heap.Init(&queue)
	var picked []int
	for steps := 0; len(queue) > 0; steps++ {
		if steps%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		best := &queue[0]
		if now := best.valueOf(sentences, worth); now < best.value {
			best.value = now
			heap.Fix(&queue, 0)
			continue
		}
		c, _ := heap.Pop(&queue).(candidate)
		s := &sentences[c.index]
		need := s.cost + headingCost // wherever it will be
		if room < smallest {
			break
		}
		if c.value <= stale*c.alone || need > room {
			continue
		}
		room -= need
		for _, w := range c.words {
			worth[w] *= said
		}
		picked = append(picked, c.index)
	}
	slices.Sort(picked)
	return picked, nil
}

const (
	headingCost = 4 // the most that a line with the author costs
	smallest    = 6 // tokens of the shortest sentence
)

func (c *candidate) valueOf(sentences []sentence, worth []float64) float64 {
	sum := 0.0
	for _, w := range c.words {
		sum += worth[w]
	}
	return c.weight * sum / float64(sentences[c.index].cost)
}

// rate returns the sentences as candidates, and the value of each word: by how often it occurs, but little if it is
// in many sentences.
func rate(sentences []sentence) (queue, []float64) {
	number := map[string]int32{}
	var in []int // sentences with the word
	all := make(queue, len(sentences))
	last := sentences[len(sentences)-1].message
	for i := range sentences {
		s := &sentences[i]
		c := candidate{index: i, weight: weigh(s, last)}
		for w := range words(s.text) {
			n, ok := number[w]
			if !ok {
				n = int32(len(in))
				number[strings.Clone(w)] = n
				in = append(in, 0)
			}
			if !slices.Contains(c.words, n) {
				c.words = append(c.words, n)
				in[n]++
			}
			for _, cue := range cues {
				if w == cue {
					c.weight *= cueBonus
				}
			}
		}
		all[i] = c
	}
	worth := plain.Each(in, func(n int) float64 { return math.Log1p(float64(n)) * math.Log(float64(len(sentences)+1)/float64(n)) })
	for i := range all {
		all[i].value = all[i].valueOf(sentences, worth)
		all[i].alone = all[i].value
	}
	return all, worth
}

// weigh returns the factor for the place of a sentence.
func weigh(s *sentence, last int) float64 {
	w, ok := byRole[s.role]
	if !ok {
		w = byRole[core.RoleUser]
	}
	if s.first {
		w *= firstBonus
	}
	if !prose(s.text) {
		w *= rough
	}
	if s.message == 0 {
		w *= leadBonus
	}
	if last > 0 {
		if age := float64(last-s.message) / float64(last); age < recentShare {
			w *= recentBonus - (recentBonus-1)*age/recentShare
		}
	}
	return w
}

// prose reports whether s looks like a sentence that somebody wrote for a reader.
func prose(s string) bool {
	letters, all, spaces := 0, 0, 0
	for _, r := range s {
		all++
		switch {
		case r == ' ':
			spaces++
		case unicode.IsLetter(r):
			letters++
		}
	}
	dense := letters > 0 && spaces == 0 && s[0] >= utf8.RuneSelf // a script without spaces
	code := strings.ContainsRune(";{}(,\\<>[]", rune(s[len(s)-1])) || strings.HasPrefix(s, "//")
	return !code && (spaces >= fewWords-1 || dense) && float64(letters+spaces) >= prosaic*float64(all)
}

// words yields the words of s in lower case. Numbers are none: every line of a log has its
// own.
func words(s string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for w := range strings.FieldsFuncSeq(strings.ToLower(s), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '\''
		}) {
			if len(w) > 1 && strings.Trim(w, "0123456789") != "" && !yield(w) {
				return
			}
		}
	}
}

// A queue has the best candidate in front; of equals, the first in the conversation.
type queue []candidate

// Len is part of [heap.Interface], as are the next four.
func (q *queue) Len() int { return len(*q) }

// Less reports whether the candidate at i comes first.
func (q *queue) Less(i, j int) bool {
	a, b := (*q)[i], (*q)[j]
	if a.value != b.value {
		return a.value > b.value
	}
	return a.index < b.index
}

// Swap swaps two candidates.
func (q *queue) Swap(i, j int) { (*q)[i], (*q)[j] = (*q)[j], (*q)[i] }

// Push adds a candidate.
func (q *queue) Push(x any) {
	c, _ := x.(candidate)
	*q = append(*q, c)
}

// Pop removes the last sentence.
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}
