package need

// What is written again after so many messages without it came back, or came back from afar:
// it had to be remembered.
const (
	backAfter = 2
	farAfter  = 8
)

// cameBack notes that the person or the agent writes term t again, in message msg.
func (c *Conversation) cameBack(t *term, msg int32) {
	away := msg - t.last
	if away < backAfter {
		return
	}
	t.back++
	if away >= farAfter {
		t.far++
	}
	line := &c.Lines[t.lastLine]
	line.back = true
	c.Passages[line.Passage].back++
}

// farLine is how far a line is taken to be if there is none, or it is farther.
const farLine = 1000

// findBacks finds for every line how many lines above and below it in its passage the
// nearest one is that something came back from.
func (c *Conversation) findBacks() {
	for p := range c.Passages {
		s := c.Passages[p].Lines
		away := uint16(farLine)
		for l := s.Start; l < s.End; l++ {
			line := &c.Lines[l]
			line.backAbove = away
			if line.back {
				away = 0
			}
			away = min(farLine, away+1)
		}
		away = farLine
		for l := s.End - 1; l >= s.Start; l-- {
			line := &c.Lines[l]
			line.backBelow = away
			if line.back {
				away = 0
			}
			away = min(farLine, away+1)
		}
	}
}
