package native

import (
	"fmt"
	"unicode/utf8"
)

// clip returns text without its middle if it has more than keep bytes, with a note of how much is missing: the
// beginning says the subject, the end the outcome. Runes stay whole.
func clip(text string, keep int) string {
	if len(text) <= keep {
		return text
	}
	head, tail := keep*2/3, keep-keep*2/3
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	cut := len(text) - tail
	for cut < len(text) && !utf8.RuneStart(text[cut]) {
		cut++
	}
	return text[:head] + fmt.Sprintf("\n[… %d bytes left out here …]\n", cut-head) + text[cut:]
}
