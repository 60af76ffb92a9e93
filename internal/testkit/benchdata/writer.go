package benchdata

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"strings"
)

// A writer makes text with realistic statistics for a token counter and a search for
// repetitions: common words in changing order, identifiers made of them, and
// punctuation and indentation as in a source file.
type writer struct {
	rand  *rand.Rand
	reads []read // that are not repetitions, oldest first
}

func (w *writer) pick(words []string) string { return words[w.rand.IntN(len(words))] }

// around returns a size that differs from the mean by at most half of it.
func (w *writer) around(mean int) int { return mean/2 + w.rand.IntN(mean+1) }

// prose returns sentences of about the given number of bytes on average.
func (w *writer) prose(mean int) string {
	var b strings.Builder
	for size := w.around(mean - 30); b.Len() < size; {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.sentence())
	}
	return b.String()
}

func (w *writer) sentence() string {
	s := fmt.Sprintf(w.pick(sentences), w.pick(verbs), w.pick(adjectives), w.pick(nouns), w.pick(nouns))
	return strings.ToUpper(s[:1]) + s[1:]
}

// source returns lines of a source file of about the given number of bytes on average.
func (w *writer) source(mean int) string {
	var b strings.Builder
	for size := w.around(mean - 75); b.Len() < size; {
		name := w.pick(verbs) + title(w.pick(nouns))
		arg := w.pick(nouns)
		fmt.Fprintf(&b, "// %s %s\n", name, w.sentence())
		fmt.Fprintf(&b, "func (%s *%s) %s(ctx context.Context, %s string) error {\n", arg[:1], title(w.pick(nouns)), name, arg)
		for range 1 + w.rand.IntN(3) {
			fmt.Fprintf(&b, w.pick(statements), arg, w.pick(verbs), title(w.pick(nouns)), w.rand.IntN(100))
		}
		b.WriteString("\treturn nil\n}\n\n")
	}
	return b.String()
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// Each takes a verb, an adjective and two nouns.
var sentences = []string{
	"please %s the %s %s before anything else touches the %s.",
	"I would %[1]s the %[3]s first, because the %[2]s %[4]s depends on it.",
	"the tests %[1]s a %[2]s %[3]s and expect that the %[4]s does not change.",
	"when we %[1]s the %[3]s, the %[4]s is no longer %[2]s, and that is the reason for the failure.",
	"this function does not %[1]s the %[2]s %[3]s; it only looks at the %[4]s.",
	"there is a %[2]s %[3]s in the %[4]s that nobody has tried to %[1]s.",
	"after the change we can %[1]s every %[3]s in the %[4]s, even a %[2]s one.",
	"it is not %[2]s to %[1]s the %[3]s while the %[4]s is still in use.",
}

// Each takes a name, a verb, a noun with a capital and a number.
var statements = []string{
	"\tif err := %[1]s.%[2]s%[3]s(ctx); err != nil {\n\t\treturn fmt.Errorf(\"%[2]s %[1]s: %%w\", err)\n\t}\n",
	"\tresult, err := %[2]s%[3]s(ctx, %[1]s, %[4]d)\n",
	"\tfor _, value := range %[1]s.%[3]s {\n\t\t%[2]s(value)\n\t}\n",
	"\tlogger.InfoContext(ctx, \"%[2]s the %[1]s\", \"count\", %[4]d)\n",
	"\tdefer %[1]s.%[3]s.Close() // we %[2]s it no longer\n",
}

// words are verbs, adjectives and nouns, with an empty line between them.
//
//go:embed words.txt
var words string

var parts = strings.Split(words, "\n\n")

var verbs, adjectives, nouns = strings.Fields(parts[0]), strings.Fields(parts[1]), strings.Fields(parts[2])
