package toolcall

import (
	"strings"

	"github.com/condensehq/condense/internal/plain"
)

// signs follow the number of a line in the results of tools that show files. A shorter one comes after those that begin with it.
var signs = []string{"→", "\t", " | ", "| ", "|", ": ", ":", "-"}

// Gutter splits off the number that a tool wrote before a line of a file, as in "  12→x", "00012| x", "12 | x", "12\tx", "12: x",
// and "12:x" and "12-x" of a search. Sign is what stands between number and text; it is empty, and text the line, if there is no
// number.
func Gutter(line string) (n int, sign, text string) {
	const most = 7 // digits
	rest := strings.TrimLeft(line, " ")
	digits := 0
	for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
		if digits++; digits > most {
			return 0, "", line
		}
		n = 10*n + int(rest[digits-1]-'0')
	}
	if digits == 0 {
		return 0, "", line
	}
	rest = rest[digits:]
	if rest == " |" { // an empty line
		return n, rest, ""
	}
	for _, sign := range signs {
		if text, ok := strings.CutPrefix(rest, sign); ok {
			return n, sign, text
		}
	}
	return 0, "", line
}

var wrapperForm = plain.Pattern(`^(?:<path>[^<]*</path>|<type>\w+</type>|</?content>|</?file>)$`)

// Wraps reports whether a tool writes the line around the text of a file that it shows.
func Wraps(line string) bool {
	return strings.HasPrefix(line, "<") && wrapperForm().MatchString(strings.TrimRight(line, "\r"))
}
