package need

// A part is a word that names are made of: parse and header in parseHeader. A name that
// was only seen says more of what comes if its parts stand in names that are in use.
type part struct {
	names int32 // that have it
	name  int32 // the one of them that the person or the agent wrote last
	last  int32 // the message in which they did; -1 if none
	other int32 // the last message in which they wrote another one
}

// Bounds of parts, and how many names share a part that says half of what a rare one does.
const (
	leastPart   = 3 // bytes
	mostParts   = 5 // of a name
	sharedParts = 30
)

// takeApart notes the parts of the name s, and returns where their numbers stand.
func (c *Conversation) takeApart(s string) (from int32, count uint8) {
	from = int32(len(c.termParts))
	start := 0
	add := func(end int) {
		if end-start < leastPart || count == mostParts {
			return
		}
		n := c.partAt.number(hashFolded(s[start:end]))
		if int(n) == len(c.parts) {
			c.parts = append(c.parts, part{last: -1, other: -1})
		}
		c.parts[n].names++
		c.termParts = append(c.termParts, n)
		count++
	}
	for i := range len(s) {
		switch b := bytesOf[s[i]]; {
		case b&(isLower|isUpper) == 0:
			add(i)
			start = i + 1
		case b == isUpper && i > 0 && bytesOf[s[i-1]] == isLower:
			add(i)
			start = i
		}
	}
	add(len(s))
	return from, count
}

// partsOf returns the numbers of the parts of t.
func (c *Conversation) partsOf(t *term) []int32 {
	return c.termParts[t.parts : t.parts+int32(t.partCount)]
}

// findPartUse finds when each part was last written by the person or the agent.
func (c *Conversation) findPartUse() {
	for n := range c.terms {
		t := &c.terms[n]
		if t.messages == 0 || t.lastByUs < 0 {
			continue
		}
		for _, k := range c.partsOf(t) {
			switch p := &c.parts[k]; {
			case t.lastByUs > p.last:
				p.other, p.last, p.name = p.last, t.lastByUs, int32(n)
			case t.lastByUs > p.other && p.name != int32(n):
				p.other = t.lastByUs
			}
		}
	}
}

// partFocus returns how much the parts of term n are in focus by other names: the mean, and
// the most of one.
func (c *Conversation) partFocus(n int) (mean, best float32) {
	t := &c.terms[n]
	for _, k := range c.partsOf(t) {
		p := &c.parts[k]
		at := p.last
		if p.name == int32(n) {
			at = p.other
		}
		if at < 0 {
			continue
		}
		v := c.fading(at) / (1 + float32(p.names)/sharedParts)
		mean += v
		best = max(best, v)
	}
	return mean / float32(max(1, t.partCount)), best
}

func hashFolded(s string) uint64 {
	h := uint64(hashSeed)
	for i := range len(s) {
		h = (h ^ uint64(fold[s[i]])) * hashPrime
	}
	return h
}
