// Package near finds the name that somebody probably meant.
package near

import "strings"

// Name returns the candidate closest to got, or "" if none is close enough to be a
// likely slip of the pen: at most a third of its letters differ. Case does not count.
func Name(got string, candidates []string) string {
	best, bestDistance := "", 0
	g := []rune(strings.ToLower(got))
	for _, c := range candidates {
		r := []rune(strings.ToLower(c))
		d := distance(g, r)
		if d <= max(1, max(len(r), len(g))/3) && (best == "" || d < bestDistance) {
			best, bestDistance = c, d
		}
	}
	return best
}

// DidYouMean returns `; did you mean "NAME"?` for the closest candidate, or "".
func DidYouMean(got string, candidates []string) string {
	if n := Name(got, candidates); n != "" {
		return `; did you mean "` + n + `"?`
	}
	return ""
}

// distance is the number of insertions, deletions, substitutions and swaps of
// neighbours between a and b (optimal string alignment).
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
