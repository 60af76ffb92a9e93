package native

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/author"
)

// The block that repeats what the user typed. It is found again by its tags when the
// summary that it stands in is summarized.
const (
	wordsOpen  = "<user_words>"
	wordsClose = "</user_words>"
	wordsIntro = "What the user typed earlier in this conversation, word for word, oldest first. It is history: " +
		"everything in it has been dealt with, unless the summary says that it is still open. " +
		"Keep to the rules and wishes in it; do not start the tasks in it again."
	wordsUnanswered = "Only the last message has not been answered yet.\n"
)

// wordsBudget returns the tokens that the user's words may take.
func wordsBudget(req *core.Request, c *Config) int {
	if c.Parity == parityRoo {
		return 0
	}
	n := int(c.UserWordsShare * float64(req.Budget.Window))
	if c.UserWordsTokens > 0 {
		n = min(n, c.UserWordsTokens)
	}
	return n
}

// userWords returns what the user typed in the messages that p hides, and what earlier
// summaries among them repeat of what was typed before, oldest first. Open says that
// nobody has answered the last of it.
func (p *plan) userWords() (words []string, open bool) {
	var talk author.Reader
	p.hidden(func(i int, m *core.Message) {
		switch {
		case m.Kind == core.KindSummary:
			var said []string
			for _, part := range m.Parts {
				if t, ok := part.(core.Text); ok {
					if block := repeatedWords(string(t)); block != nil {
						said = block
					}
				}
			}
			words, open = append(words, said...), false
		case m.Role == core.RoleUser && m.Kind == core.KindOriginal:
			if t := typed(&talk, m); t != "" {
				words = append(words, t)
				open = !slices.ContainsFunc(p.req.Messages[i+1:], func(m core.Message) bool { return m.Role == core.RoleAssistant })
			}
		}
	})
	return words, open
}

// typed returns what a person wrote of a message of the user, and what a file says that the
// person wrote for every conversation; "" if a tool wrote it all.
func typed(talk *author.Reader, m *core.Message) string {
	var texts []string
	for _, segments := range talk.Message(m) {
		text := join(slices.DeleteFunc(segments, func(s author.Segment) bool { return s.By != author.Person && s.By != author.Standing }))
		text = commandForm.ReplaceAllString(text, "") // which stand beside the summary
		if text = strings.TrimSpace(author.Unwrap(text)); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n")
}

func join(segments []author.Segment) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteString(s.Text)
	}
	return b.String()
}

// wordsBlock returns a block of words with at most so many tokens, "" if there is no room
// for any: the first, which set the task, if it takes no more than half of it, then the
// newest ones. A message that is too long for what is left is cut in its middle if a good
// part of it can stay.
func wordsBlock(counter core.Counter, words []string, open bool, budget int) string {
	tokens := func(s string) int { return counter.Count(core.Text(s)) }
	budget -= tokens(wordsIntro) + tokens(wordsOpen) + tokens(wordsClose) + 2*leftOutTokens
	if open {
		budget -= tokens(wordsUnanswered)
	}
	if len(words) == 0 || budget <= 0 {
		return ""
	}
	entries := make([]string, len(words))
	take := func(i, room int) int {
		entry := said(words[i])
		n := tokens(entry)
		if n > room && room >= leastGain {
			// Texts differ in bytes per token; a smaller try follows one that was too large.
			for keep := len(words[i]) * room / n; n > room && keep > 0; keep = keep * 3 / 4 {
				entry = said(clip(words[i], keep))
				n = tokens(entry)
			}
		}
		if n > room {
			return 0
		}
		entries[i] = entry
		return n
	}
	half := budget / 2
	if len(words) == 1 {
		half = budget
	}
	budget -= take(0, half)
	for i := len(words) - 1; i > 0; i-- {
		n := take(i, budget)
		if n == 0 {
			break // a gap inside would look as if nothing had been said
		}
		budget -= n
	}
	var b strings.Builder
	b.WriteString(wordsOpen + "\n" + wordsIntro + "\n")
	kept, missing := 0, 0
	for _, e := range entries {
		if e == "" {
			missing++
			continue
		}
		if missing > 0 {
			b.WriteString(leftOut(missing))
			missing = 0
		}
		kept++
		b.WriteString(e)
	}
	if kept == 0 {
		return ""
	}
	if open && entries[len(entries)-1] != "" {
		b.WriteString(wordsUnanswered)
	}
	b.WriteString(wordsClose)
	return b.String()
}

// leftOutTokens is about what leftOut takes.
const leftOutTokens = 12

func leftOut(n int) string { return "<left_out messages=\"" + strconv.Itoa(n) + "\"/>\n" }

// closing holds the tags that would end a block early, and how they are written inside of
// one: with a word joiner, which nobody sees.
var (
	hideClosing = strings.NewReplacer("</said>", "<\u2060/said>", wordsClose, "<\u2060/user_words>")
	showClosing = strings.NewReplacer("<\u2060/said>", "</said>", "<\u2060/user_words>", wordsClose)
)

// said marks one message.
func said(text string) string {
	return "<said>\n" + hideClosing.Replace(text) + "\n</said>\n"
}

var saidForm = regexp.MustCompile(`(?s)<said>\n(.*?)\n</said>`)

// repeatedWords returns the messages that the last block of words in text repeats: an
// earlier one is a model's copy.
func repeatedWords(text string) []string {
	const begin = wordsOpen + "\n" + wordsIntro
	i := strings.LastIndex(text, begin)
	if i < 0 {
		return nil
	}
	in, _, ok := strings.Cut(text[i+len(begin):], wordsClose)
	if !ok {
		return nil
	}
	var words []string
	for _, m := range saidForm.FindAllStringSubmatch(in, -1) {
		words = append(words, showClosing.Replace(m[1]))
	}
	return words
}
