// Package suggest finds the name that was probably meant by a misspelled one.
package suggest

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// most is the number of names that are compared: of more, none is suggested.
const most = 2000

// Name returns the one of names closest to got, or "" if none is close enough to be a likely typing error: at most a
// third of the letters may differ. Among equally close names it prefers one of the same length: letters are swapped
// more often than added. Case is ignored.
func Name(got string, names []string) string {
	best, bestDistance, bestLonger := "", 0, 0
	if len(names) > most {
		return ""
	}
	g := []rune(strings.ToLower(got))
	for _, c := range names {
		r := []rune(strings.ToLower(c))
		d, longer := distance(g, r), max(len(r)-len(g), len(g)-len(r))
		if d <= max(1, max(len(r), len(g))/3) && (best == "" || d < bestDistance || d == bestDistance && longer < bestLonger) {
			best, bestDistance, bestLonger = c, d, longer
		}
	}
	return best
}

// Key returns the one of names that was probably meant by name, or "": a name that differs only as [Fold] ignores, a
// name with a typing error, or the first that begins with it.
func Key(name string, names []string) string {
	const shortest, longest = 3, 64 // one letter resembles any other; a long text is no typing error
	n := utf8.RuneCountInString(name)
	if n == 0 || n > longest || len(names) > most {
		return ""
	}
	others := slices.Sorted(slices.Values(names))
	others = slices.DeleteFunc(others, func(c string) bool { return c == name || utf8.RuneCountInString(c) > longest })
	for _, c := range others {
		if Fold(c) == Fold(name) {
			return c
		}
	}
	if n < shortest {
		return ""
	}
	if c := Name(name, others); c != "" {
		return c
	}
	for _, c := range others {
		if strings.HasPrefix(c, name) {
			return c // o200k for o200k_base
		}
	}
	return ""
}

// Fold removes common differences between names: it makes max-output, maxOutput and MAX_OUTPUT equal.
func Fold(s string) string {
	return strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "", ".", "").Replace(s))
}

// DidYouMean returns `; did you mean "NAME"?` for the closest of names, or "".
func DidYouMean(got string, names []string) string {
	if n := Name(got, names); n != "" {
		return `; did you mean "` + n + `"?`
	}
	return ""
}

// distance is the number of insertions, deletions, substitutions and swaps of
// neighboring runes between a and b (optimal string alignment).
func distance(a, b []rune) int {
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
