package tree

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/plain"
)

// A Path is a key, one name for each level. Names may contain any character except control
// characters. Since they may contain dots, a path is never handled as a dotted string.
type Path []string

// Sep joins the names of a path into a map key. Names with control characters are refused, so
// none contains it.
const Sep = "\x1f"

// ID returns p as a key of a map.
func (p Path) ID() string { return strings.Join(p, Sep) }

// With returns p and one more name, in new memory.
func (p Path) With(name string) Path {
	q := make(Path, len(p), len(p)+1)
	copy(q, p)
	return append(q, name)
}

var plainName = plain.Pattern(`^[A-Za-z0-9_-]+$`)

// String returns p as users write it: profiles."gpt-4.1".threshold, chain[0].
func (p Path) String() string {
	var b strings.Builder
	before := ""
	for i, name := range p {
		n, err := strconv.Atoi(name)
		inList := err == nil && (before == "chain" || before == "env" || before == "modes" && i == 2) // serve.modes
		before = name
		if inList {
			fmt.Fprintf(&b, "[%d]", n)
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}
		if plainName().MatchString(name) {
			b.WriteString(name)
		} else {
			b.WriteString(strconv.Quote(name))
		}
	}
	return b.String()
}
