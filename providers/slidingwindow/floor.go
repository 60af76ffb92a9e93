package slidingwindow

import "github.com/condensehq/condense/core"

// Floor returns the tokens of messages that truncation cannot go below: system and
// protected messages with the tool groups that they are in, a turn with calls whose
// results are still to come and a request that nobody has answered, as short as they get,
// and a note of what is missing. The messages must be measured by the counter. The cost is
// linear.
func Floor(counter core.Counter, messages []core.Message) int {
	if !mustKeep(messages) {
		return min(size(messages), max(largestMarker(counter, messages), leastNote))
	}
	return newWindow(&core.Request{Messages: messages, Counter: counter}).floor()
}

// leastNote is the room, in tokens, that a note is given when nothing is known yet of what
// it will say. It also keeps a handful of short messages from being replaced by a note.
const leastNote = 64

// mustKeep reports whether some of the messages must stay, so that it matters which are of
// one group.
func mustKeep(messages []core.Message) bool {
	for i := range messages {
		if isPinned(&messages[i]) {
			return true
		}
	}
	return openTurn(messages) < len(messages)
}

// floor is [Floor] for whatever must stay.
func (w *window) floor() int {
	floor, all := 0, 0
	for i := range w.groups {
		g := &w.groups[i]
		all += g.tokens
		switch {
		case g.pinned:
			floor += g.tokens
		case g.open:
			floor += g.least
		}
	}
	return min(all, floor+max(w.marker, leastNote))
}
