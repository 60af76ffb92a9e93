package dialog

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
)

// An aiderReader detects the texts that aider wrote. Aider records its own notices, and the
// output of commands that the user runs with /run, as if the user had typed them. The reader
// must get every text of the user, in order. It knows aider's notices from its sources (io.py
// and commands.py) and from recorded sessions.
type aiderReader struct {
	is     bool   // a notice of aider was read
	ran    bool   // the previous text of the message runs a command
	output string // the first line of the last command's output
}

// minOutput is the least size in bytes of a first line by which repeated output is
// recognized.
const minOutput = 12

// wrote reports whether aider, or a command that it ran, wrote text.
func (r *aiderReader) wrote(text string) bool {
	text = strings.TrimSpace(text)
	ran := r.ran
	r.ran = false
	switch {
	case text == "":
		r.ran = ran
		return false
	case announces(text):
		r.is = true
		return true
	case !r.is || text[0] == '<':
		return false
	case text[0] == '/' || text[0] == '!':
		if runs(text) {
			r.ran, r.output = true, ""
		}
		return false
	case ran: // text after the command
		r.output, _, _ = strings.Cut(text, "\n")
		return true
	}
	return len(r.output) >= minOutput && strings.HasPrefix(text, r.output)
}

// runs reports whether the last of the commands in text runs a program.
func runs(text string) bool {
	text = text[strings.LastIndexByte(text, '\n')+1:]
	name, _, _ := strings.Cut(text, " ")
	switch name {
	case "/run", "/test", "/git", "/lint":
		return true
	}
	return strings.HasPrefix(text, "!")
}

// notice matches the beginning of a notice of aider.
var notice = plain.Pattern(`^(?:` + strings.Join([]string{
	`Tokens: [\d.,]+k? sent, `, `Aider v\d`, `Applied edit to \S`, `Commit [0-9a-f]{7} `, `Committing \S+ before applying edits`,
	`Removed: [0-9a-f]{7} `, `Removed \S+ from the chat$`, `Added \S+ to the chat\.?$`, `\^C again to exit$`, `\^C KeyboardInterrupt$`,
	`Add the output to the chat\?`, `Add these files to the chat\?`, `Add \S+ tokens of command output to the chat\?`,
	`The LLM did not conform to the edit format\.`, `Diff since [0-9a-f]{7}\.\.\.`,
}, "|") + `)`)

// announces reports whether one of the first lines of text is a notice. A command line or the
// name of a file may come before it.
func announces(text string) bool {
	const first = 3
	n := 0
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) < 1000 && notice().MatchString(line) {
			return true
		}
		if n++; n == first {
			break
		}
	}
	return false
}

// inserted are the first words of texts that the strategies of this module, and Roo-Code, insert into a conversation.
// They are the only evidence in formats that do not record the author of a text.
var inserted = []string{
	"[Extract of the conversation so far", // smart
	"[Digest of the conversation so far",
	"## Conversation Summary\n",                             // Roo-Code, and native for it
	"Summary of the conversation so far:\n",                 // native, before its summaries had a frame
	"[Condensed ",                                           //
	"The messages that this summary stands for can be read", //
	WordsOpen,                                                      //
	"(The conversation begins here.)",                              // transcript, where a format needs a user first
	"From the result of tool call ",                                // transcript, with images of a result
	"[The conversation begins before this point.]",                 //
	"[Sliding window truncation",                                   // Roo-Code
	"[reasoning left out to fit the context window]",               // slidingwindow, in its former words
	"This session is being continued from a previous conversation", // Claude Code
}

// Inserted reports whether a condensation wrote all of text: by the host's frame, or by the first words of the
// built-in strategies' insertions.
func Inserted(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return core.Framed(text) || slices.ContainsFunc(inserted, func(begin string) bool { return strings.HasPrefix(text, begin) })
}

// stubStart begins the mark that a condensation leaves where it took content out.
const stubStart = "[… "

// cutStub cuts the mark off that text begins with. A mark of hidden messages may have a summary
// below it, which it takes with it.
func cutStub(text string) (stub, rest string) {
	line, _, _ := strings.Cut(text, "\n")
	end := strings.IndexByte(line, ']') + 1
	if end == 0 || strings.Contains(line[:end], " message") {
		return text, ""
	}
	return text[:end], text[end:]
}

// HoldsInserted reports whether m begins with a text that a condensation wrote.
func HoldsInserted(m *core.Message) bool {
	for _, p := range m.Parts {
		if t, ok := p.(core.Text); ok {
			return Inserted(string(t))
		}
	}
	return false
}

// AllInserted reports whether a condensation wrote all of m: by its kind or, if the format records none, by its
// beginning. A message with additional words of the user, or with content that no condensation writes, does not
// count.
func AllInserted(m *core.Message) bool {
	if m.Kind != core.KindOriginal {
		return true
	}
	if !HoldsInserted(m) {
		return false
	}
	if m.Role == core.RoleUser {
		var r AuthorReader
		for _, segments := range r.Message(m) {
			for _, s := range segments {
				if s.Kind == KindUser {
					return false
				}
			}
		}
	}
	return !slices.ContainsFunc(m.Parts, func(p core.Part) bool { _, ok := p.(core.Text); return !ok })
}

// The block in which a summary repeats the user's words. It names its own content by a digest, which no model can
// make up, and nothing in it can end it or begin another.
const (
	// WordsOpen begins the block.
	WordsOpen  = "<user_words"
	wordsClose = "</user_words>"
	// A block of a former version has no digest and begins so.
	formerWords = "<user_words>\nWhat the user typed earlier in this conversation, word for word, oldest first."
)

// Repeat returns a block of intro, entries and end. Entries are results of [Entry], or marks for missing ones between
// them.
func Repeat(intro string, entries []string, end string) string {
	in := intro + "\n" + strings.Join(entries, "") + end
	return WordsOpen + ` id="` + core.Handle(core.Text(in)) + "\">\n" + in + wordsClose
}

// Entry returns the user's text in the form for a block of [Repeat].
func Entry(text string) string { return "<said>\n" + HideTags(text) + "\n</said>\n" }

var (
	tagForm    = plain.Pattern(`(?i)<([\x{2060}\s]*/?[\x{2060}\s]*(?:said|user_words|left_out))`)
	hiddenForm = plain.Pattern(`(?i)<\x{2060}([\x{2060}\s]*/?[\x{2060}\s]*(?:said|user_words|left_out))`)
	saidForm   = plain.Pattern(`(?s)<said>\n(.*?)\n</said>`)
	openForm   = plain.Pattern(WordsOpen + ` id="([0-9a-f]{10})">\n`)
)

// HideTags returns text without tags of blocks of words: each gets a word joiner, which is invisible, after its first
// character. Reading the block removes it.
func HideTags(text string) string { return tagForm().ReplaceAllString(text, "<\u2060$1") }

// Repeated returns the user's texts in the last block of words in text, oldest first. A block that was changed, or
// written by somebody else, does not count. Former blocks cannot be verified: they count if trusted is set.
func Repeated(text string, trusted bool) []string {
	if !strings.Contains(text, WordsOpen) {
		return nil
	}
	opens := openForm().FindAllStringSubmatchIndex(text, -1)
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
	return plain.Each(saidForm().FindAllStringSubmatch(in, -1), func(m []string) string { return hiddenForm().ReplaceAllString(m[1], "<$1") })
}
