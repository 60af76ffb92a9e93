package transcript

import "strconv"

// ids gives out the IDs of the messages of one file. The same file gives the same IDs,
// and so does its beginning: messages that are appended later change none.
type ids map[string]bool

// next returns the ID for the nth message, the first is 1: own, the one that the source
// gives it, or else its position; with a suffix if another message has it already.
func (t ids) next(n int, own string) string {
	base := own
	if base == "" {
		base = "m" + strconv.Itoa(n)
	}
	id := base
	for i := 2; t[id]; i++ {
		id = base + "#" + strconv.Itoa(i)
	}
	t[id] = true
	return id
}
