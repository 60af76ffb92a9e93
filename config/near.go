package config

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/condensehq/condense/internal/suggest"
)

// nearest returns the candidate that was probably meant by name, or "": one that is spelled
// alike, one with a slip of the pen, or the first that begins so.
func nearest(name string, candidates []string) string {
	const shortest, longest = 3, 64 // one letter resembles any other; a long text is no typing error
	n := utf8.RuneCountInString(name)
	if n == 0 || n > longest {
		return ""
	}
	others := slices.Sorted(slices.Values(candidates))
	others = slices.DeleteFunc(others, func(c string) bool { return c == name || utf8.RuneCountInString(c) > longest })
	for _, c := range others {
		if fold(c) == fold(name) {
			return c
		}
	}
	if n < shortest {
		return ""
	}
	if c := suggest.Name(name, others); c != "" {
		return c
	}
	for _, c := range others {
		if strings.HasPrefix(c, name) {
			return c // o200k for o200k_base
		}
	}
	return ""
}

// fold makes spellings alike that people confuse: max-output, maxOutput, MAX_OUTPUT.
func fold(s string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if strings.ContainsRune("-_ .", r) {
			return -1
		}
		return r
	}, s))
}
