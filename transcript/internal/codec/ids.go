package codec

import "strconv"

// IDs gives out the IDs of the messages of one file. The same file gives the same IDs,
// and so does its beginning: messages that are appended later change none.
//
// The value of an ID is the suffix to try next: were it always the first, a file with n
// equal IDs would take n² steps.
type IDs map[string]int

// Next returns the ID for the nth message, the first is 1: own, the one that the source
// gives it, or else its position; with a suffix if another message has it already.
func (t IDs) Next(n int, own string) string {
	base := own
	if base == "" {
		base = "m" + strconv.Itoa(n)
	}
	id := base
	for t[id] > 0 {
		t[base] = max(t[base], 1) + 1
		id = base + "#" + strconv.Itoa(t[base])
	}
	t[id] = 1
	return id
}
