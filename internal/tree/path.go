package tree

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A path is a key, one name after the other. Names may contain any character but control
// characters, dots included; a path is therefore never handled as a dotted string.
type Path []string

// sep joins the segments of a path into a map key. No name can contain it: names with
// control characters are refused.
const Sep = "\x1f"

func (p Path) ID() string { return strings.Join(p, Sep) }

// with returns p and one more name, never sharing memory with another path.
func (p Path) With(name string) Path {
	q := make(Path, len(p), len(p)+1)
	copy(q, p)
	return append(q, name)
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// String returns p as users write it: profiles."gpt-4.1".threshold, chain[0].
func (p Path) String() string {
	var b strings.Builder
	before := ""
	for i, name := range p {
		n, err := strconv.Atoi(name)
		inList := err == nil && (before == "chain" || before == "env")
		before = name
		if inList {
			fmt.Fprintf(&b, "[%d]", n)
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}
		if plainName.MatchString(name) {
			b.WriteString(name)
		} else {
			b.WriteString(strconv.Quote(name))
		}
	}
	return b.String()
}
