package config

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// nearest returns the candidate that was probably meant by name, or "". A third of the
// letters may differ, two at least for names of four letters and more; letters that changed
// places count once (Damerau, restricted).
func nearest(name string, candidates []string) string {
	const longest = 64 // what is longer is no typing error, and the comparison is quadratic
	n := utf8.RuneCountInString(name)
	if n == 0 || n > longest {
		return ""
	}
	limit := max(n/3, min(n/2, 2))
	best, bestDistance := "", limit+1
	for _, c := range slices.Sorted(slices.Values(candidates)) {
		if c == name || utf8.RuneCountInString(c) > longest {
			continue
		}
		if d := distance(fold(name), fold(c)); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	if best == "" && n >= 4 {
		for _, c := range slices.Sorted(slices.Values(candidates)) {
			if c != name && strings.HasPrefix(c, name) {
				return c // o200k for o200k_base
			}
		}
	}
	return best
}

// fold makes spellings alike that people confuse: max-output, maxOutput, MAX_OUTPUT.
func fold(s string) []rune {
	var b strings.Builder
	for _, r := range s {
		if r != '-' && r != '_' && r != ' ' && r != '.' {
			b.WriteRune(r)
		}
	}
	return []rune(strings.ToLower(b.String()))
}

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
