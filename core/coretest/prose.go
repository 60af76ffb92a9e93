package coretest

import "strings"

var words = strings.Fields(`the parser reads a line and returns it with its number before the
next one is asked for so the last line of a file that does not end in a newline is lost when
the scanner stops early return nil err != nil func (p *Parser) Next() { if p.done } 404 lines
of output were written to build/out.log in 1.8 s tests passed failed skipped see issue #12
naïve café 日本語 🙂`)

// prose returns n words, the same for the same n.
func prose(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[(i*7+n)%len(words)])
	}
	return b.String()
}
