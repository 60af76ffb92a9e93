package smart

import (
	"strings"

	"github.com/condensehq/condense/internal/plain"
)

var (
	// matchForm matches a line of grep -n or rg: path, number and text. The path has a letter and a sign of
	// paths, which times do not have, and may begin with the letter of a drive.
	matchForm = plain.Pattern(`^((?:[A-Za-z]:[\\/])?(?:[^:\s]*[A-Za-z][^:\s]*[./\\][^:\s]*|[^:\s]*[./\\][^:\s]*[A-Za-z][^:\s]*)):\d+:`)
	// underForm matches such a line without its path; the sign after the number says whether it is a match or
	// next to one.
	underForm = plain.Pattern(`^\d+([:-])`)
)

// foldMatches writes the results of a search with each path once, on a line above the matches in that file. It reports
// whether that is shorter and unfoldMatches gives the same text.
func foldMatches(s string) (string, bool) {
	lines := strings.Split(s, "\n")
	next := make([]string, len(lines)+1) // the path of the next match
	for i := len(lines) - 1; i >= 0; i-- {
		next[i] = next[i+1]
		if m := matchForm().FindStringSubmatch(lines[i]); m != nil {
			next[i] = m[1]
		}
	}
	if next[0] == "" {
		return "", false
	}
	var out []string
	path := "" // of the line above
	for i, line := range lines {
		found := false
		for _, p := range []string{path, next[i]} {
			rest, ok := strings.CutPrefix(line, p)
			if p == "" || !ok || rest == "" {
				continue
			}
			if m := underForm().FindStringSubmatch(rest[1:]); m == nil || m[1] != rest[:1] {
				continue
			}
			if p != path {
				out, path = append(out, p), p
			}
			out, found = append(out, rest[1:]), true
			break
		}
		if !found {
			out = append(out, line)
		}
	}
	folded := strings.Join(out, "\n")
	return folded, len(folded) < len(s) && unfoldMatches(folded) == s
}

// unfoldMatches returns the text that foldMatches made s of.
func unfoldMatches(s string) string {
	lines := strings.Split(s, "\n")
	var out []string
	path := ""
	for i, line := range lines {
		under := underForm().FindStringSubmatch(line)
		switch {
		case under != nil && path != "":
			out = append(out, path+under[1]+line)
		case under == nil && line != "--" && i+1 < len(lines) && underForm().MatchString(lines[i+1]):
			path = line
		default:
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}
