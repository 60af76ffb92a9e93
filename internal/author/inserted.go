package author

import (
	"strings"

	"github.com/condensehq/condense/core"
)

// inserted are the first words of what the strategies of this module, and Roo-Code, write and
// put into a conversation. Formats that do not record who wrote a text keep only these.
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

// Inserted reports whether a condensation wrote text, all of it: by the frame that the host
// gives it, or by the first words of what the built-in strategies insert.
func Inserted(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	if core.Framed(text) {
		return true
	}
	for _, begin := range inserted {
		if strings.HasPrefix(text, begin) {
			return true
		}
	}
	return false
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

// Holds reports whether m begins with a text that a condensation wrote.
func Holds(m *core.Message) bool {
	for _, p := range m.Parts {
		if t, ok := p.(core.Text); ok {
			return Inserted(string(t))
		}
	}
	return false
}

// Written reports whether a condensation wrote m, all of it: by its kind or, where a format
// records none, by what it begins with. A message that also holds words of the person, or
// what no condensation writes, is not.
func Written(m *core.Message) bool {
	if m.Kind != core.KindOriginal {
		return true
	}
	if !Holds(m) {
		return false
	}
	if m.Role == core.RoleUser {
		var r Reader
		for _, segments := range r.Message(m) {
			for _, s := range segments {
				if s.By == Person {
					return false
				}
			}
		}
	}
	for _, p := range m.Parts {
		if _, ok := p.(core.Text); !ok {
			return false
		}
	}
	return true
}
