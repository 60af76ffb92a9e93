package main

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/value"
)

// minProjects is the fewest projects of a common term.
const minProjects = 2

// A vocabulary says which projects have which terms.
type vocabulary struct {
	terms map[string]map[uint64]bool // of each project
	count map[uint64]int             // projects that have a term
	names map[uint64]string          // spellings, as terms have only hashes
}

// newVocabulary reads the conversations of projects.
func newVocabulary(projects map[string][][]core.Message) *vocabulary {
	v := &vocabulary{terms: map[string]map[uint64]bool{}, count: map[uint64]int{}, names: map[uint64]string{}}
	for _, name := range slices.Sorted(maps.Keys(projects)) {
		seen := map[uint64]bool{}
		for _, messages := range projects[name] {
			c := value.Read(messages)
			for n := range c.Terms() {
				if t := c.Term(n); t.Messages > 0 && !seen[t.Key] {
					seen[t.Key] = true
					v.count[t.Key]++
				}
			}
			for i := range c.Lines {
				nameTerms(c.Lines[i].Text, v.count, v.names)
			}
		}
		v.terms[name] = seen
	}
	return v
}

// common returns the terms that several projects have, in the form of common.txt. The named project is not counted,
// so that weights fitted to it meet its terms as they will meet an unknown project's.
func (v *vocabulary) common(without string) string {
	all := len(v.terms)
	if _, ok := v.terms[without]; ok {
		all--
	}
	byCount := map[int][]string{}
	for h, n := range v.count {
		if v.terms[without][h] {
			n--
		}
		if n >= minProjects && v.names[h] != "" {
			byCount[n] = append(byCount[n], v.names[h])
		}
	}
	var b strings.Builder
	for _, n := range slices.Sorted(maps.Keys(byCount)) {
		slices.Sort(byCount[n])
		fmt.Fprintf(&b, "%d/%d: %s\n", n, all, strings.Join(byCount[n], " "))
	}
	return b.String()
}

// nameTerms adds to names the spellings of counted terms in line.
func nameTerms(line string, counts map[uint64]int, names map[uint64]string) {
	for s := range strings.FieldsFuncSeq(line, func(r rune) bool { return !wordRune(r) }) {
		for _, cand := range []string{s, strings.Trim(s, ".-_"), strings.TrimPrefix(s, "v")} {
			noteName(cand, counts, names)
		}
		for part := range strings.SplitSeq(s, ".") {
			noteName(strings.Trim(part, "-_"), counts, names)
		}
	}
}

func noteName(s string, counts map[uint64]int, names map[uint64]string) {
	if len(s) < 3 || len(s) > 32 {
		return
	}
	if h := keyOf(s); counts[h] > 0 && names[h] == "" {
		names[h] = s
	}
}

// keyOf returns the key of the term with the spelling s.
func keyOf(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return h.Sum64()
}

// wordRune reports whether r may be inside a name.
func wordRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '.' || r == '-'
}
