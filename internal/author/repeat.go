package author

import (
	"regexp"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
)

// The block in which a summary repeats what the user typed. It names its own content by a
// digest, which no model can make up, and nothing in it can end it or begin another.
const (
	// WordsOpen begins the block.
	WordsOpen  = "<user_words"
	wordsClose = "</user_words>"
	// A block of a former version has no digest and begins so.
	formerWords = "<user_words>\nWhat the user typed earlier in this conversation, word for word, oldest first."
)

// Repeat returns a block of intro, entries and what ends it. Entries are what [Entry] returned,
// or marks of what is missing between them.
func Repeat(intro string, entries []string, end string) string {
	in := intro + "\n" + strings.Join(entries, "") + end
	return WordsOpen + ` id="` + core.Handle(core.Text(in)) + "\">\n" + in + wordsClose
}

// Entry returns what the user typed as it may appear in a block of [Repeat].
func Entry(text string) string { return "<said>\n" + HideTags(text) + "\n</said>\n" }

var (
	tagForm    = regexp.MustCompile(`(?i)<([\x{2060}\s]*/?[\x{2060}\s]*(?:said|user_words|left_out))`)
	hiddenForm = regexp.MustCompile(`(?i)<\x{2060}([\x{2060}\s]*/?[\x{2060}\s]*(?:said|user_words|left_out))`)
	saidForm   = regexp.MustCompile(`(?s)<said>\n(.*?)\n</said>`)
	openForm   = regexp.MustCompile(WordsOpen + ` id="([0-9a-f]{10})">\n`)
)

// HideTags returns text in which nothing is a tag of a block of words: each has a word joiner,
// which is not seen, after its first character. What the user typed gets it back when the block
// is read.
func HideTags(text string) string { return tagForm.ReplaceAllString(text, "<\u2060$1") }

// Repeated returns what the last block of words in text says that the user typed, oldest first.
// A block that was changed, or written by somebody else, is none. Former blocks have nothing to
// be known by: they count if trusted is set.
func Repeated(text string, trusted bool) []string {
	if !strings.Contains(text, WordsOpen) {
		return nil
	}
	opens := openForm.FindAllStringSubmatchIndex(text, -1)
	for _, o := range slices.Backward(opens) {
		in, _, ok := strings.Cut(text[o[1]:], wordsClose)
		if ok && core.Handle(core.Text(in)) == text[o[2]:o[3]] {
			return entries(in)
		}
	}
	if i := strings.LastIndex(text, formerWords); trusted && i >= 0 {
		if in, _, ok := strings.Cut(text[i:], wordsClose); ok {
			return entries(in)
		}
	}
	return nil
}

func entries(in string) []string {
	var words []string
	for _, m := range saidForm.FindAllStringSubmatch(in, -1) {
		words = append(words, hiddenForm.ReplaceAllString(m[1], "<$1"))
	}
	return words
}
