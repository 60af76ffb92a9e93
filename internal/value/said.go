package value

import (
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// Said returns how many tokens of the user's words, by counter, are in before, quotes by former condensations included,
// and how many of these are also in after, estimated from their length. The cost is linear.
func Said(before, after []core.Message, counter core.Counter) (was, left int) {
	still := map[string]int{}
	for line := range linesOfUser(after) {
		for w := range wordsIn(line) {
			still[w]++
		}
	}
	all, gone := 0, 0
	for line := range linesOfUser(before) {
		was += counter.Count(core.Text(line))
		for w := range wordsIn(line) {
			all += len(w)
			if still[w]--; still[w] < 0 {
				gone += len(w)
			}
		}
	}
	if gone == 0 {
		return was, was
	}
	return was, int(int64(was) * int64(all-gone) / int64(all))
}

// linesOfUser yields the lines of the user in messages.
func linesOfUser(messages []core.Message) iter.Seq[string] {
	c := &Conversation{termAt: newTable(0)}
	r := reader{c: c}
	d := new(dialog.Reader).Read(messages)
	for i := range messages {
		r.message(i, &messages[i], d.Messages[i])
	}
	return func(yield func(string) bool) {
		for p := range c.Passages {
			if c.Passages[p].Kind != dialog.KindUser {
				continue
			}
			for _, l := range c.Lines[c.Passages[p].Lines.Start:c.Passages[p].Lines.End] {
				if !yield(l.Text) {
					return
				}
			}
		}
	}
}

// wordsIn yields the words of a line, and each sign of a script without spaces.
func wordsIn(line string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for w := range strings.FieldsSeq(strings.Trim(line, GapMark)) {
			for w != "" {
				r, n := utf8.DecodeRuneInString(w)
				if !unspaced(r) {
					if n = strings.IndexFunc(w, unspaced); n < 0 {
						n = len(w)
					}
				}
				if !yield(w[:n]) {
					return
				}
				w = w[n:]
			}
		}
	}
}
