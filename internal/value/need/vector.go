package need

// never stands for the age of what has not happened: more than any that was seen.
const never = 1e5

// What the trees see of a line, and of a term.
const (
	lineSize = 34
	termSize = lineSize + 23
	fileAt   = 30 // what it sees of the file that a passage is about begins here
)

// A focus says what the person and the agent speak of at the end of a conversation.
type focus struct {
	terms    []float32 // how much each term is in it
	lines    []float32 // of the terms of each line, in sum
	best     []float32 // of the terms of each line, the most
	passages []float32 // of the terms of each passage, the mean
}

// focusReach is after how many messages a term counts half.
const focusReach = 12

func (c *Conversation) focus() *focus {
	f := &focus{
		terms: make([]float32, len(c.terms)), lines: make([]float32, len(c.Lines)),
		best: make([]float32, len(c.Lines)), passages: make([]float32, len(c.Passages)),
	}
	for n := range c.terms {
		if t := &c.terms[n]; t.messages > 0 && t.lastByUs >= 0 {
			f.terms[n] = float32(c.weight(n, 0)) * c.fading(t.lastByUs)
		}
	}
	for p := range c.Passages {
		pass := &c.Passages[p]
		sum, count := float32(0), 1
		for l := pass.Lines.Start; l < pass.Lines.End; l++ {
			for _, n := range c.TermsOf(l) {
				f.lines[l] += f.terms[n]
				f.best[l] = max(f.best[l], f.terms[n])
				count++
			}
			sum += f.lines[l]
		}
		f.passages[p] = sum / float32(count)
	}
	return f
}

// fading returns how much of what was written in message m is in focus.
func (c *Conversation) fading(m int32) float32 {
	d := float32(c.messages-int(m)) / focusReach
	return 1 / (1 + d*d)
}

// since returns how many messages ago message m was; never if it is -1.
func (c *Conversation) since(m int32) float32 {
	if m < 0 {
		return never
	}
	return float32(c.messages - 1 - int(m))
}

// around is how many lines above and below the trees look at.
const around = 3

// lineVector writes what the trees see of line l, whose terms are written again with odds
// of at most best.
func (c *Conversation) lineVector(f *focus, l int, best float32, x []float32) {
	line := &c.Lines[l]
	p := &c.Passages[line.Passage]
	above, below := float32(0), float32(0)
	for k := max(p.Lines.Start, l-around); k < l; k++ {
		above = max(above, f.best[k])
	}
	for k := l + 1; k < min(p.Lines.End, l+around+1); k++ {
		below = max(below, f.best[k])
	}
	after := c.bytes - line.start
	v := [lineSize]float32{
		float32(after),
		float32(after) / float32(c.bytes+1),
		float32(c.messages - 1 - p.Message),
		float32(l - p.Lines.Start),
		float32(p.Lines.End - 1 - l),
		float32(p.Lines.End - p.Lines.Start),
		float32(c.usedStep(p)),
		float32(flag(c.superseded(p))),
		float32(line.shape),
		float32(line.mentions.End - line.mentions.Start),
		float32(line.phrases.End - line.phrases.Start),
		float32(len(line.Text)),
		float32(p.family),
		float32(line.field),
		float32(p.reuse),
		c.since(line.hot[0]),
		c.since(line.hot[1]),
		c.since(line.near),
		float32(p.later),
		float32(p.Kind),
		f.lines[l],
		f.best[l],
		above,
		below,
		f.passages[line.Passage],
		best,
		float32(p.back) / float32(p.Lines.End-p.Lines.Start),
		float32(flag(line.back)),
		float32(line.backAbove),
		float32(line.backBelow),
		never, 0, never, 0, // of a file, if it is about one
	}
	if p.file >= 0 {
		t := &c.terms[p.file]
		v[fileAt], v[fileAt+1] = c.since(t.lastByUs), float32(t.by[byCall])
		v[fileAt+2], v[fileAt+3] = c.since(t.edited), float32(int(t.edited)-p.Message)
	}
	copy(x, v[:])
}

// termVector adds what the trees see of term n to what they see of its last line.
func (c *Conversation) termVector(n, rarity int, odds float32, x []float32) {
	t := &c.terms[n]
	line := &c.Lines[t.lastLine]
	partMean, partBest := c.partFocus(n)
	hot := line.hot[0]
	if line.hotTerm == int32(n) {
		hot = line.hot[1]
	}
	v := [termSize - lineSize]float32{
		float32(t.class),
		float32(rarity),
		float32(t.size),
		float32(t.firstKind),
		float32(t.messages),
		float32(t.messages) / float32(c.messages),
		float32(t.by[byHuman]),
		float32(t.by[byAgent]),
		float32(t.by[byCall]),
		float32(t.by[byTool]),
		c.since(t.lastByUs),
		c.since(t.asked),
		c.since(t.first),
		float32(flag(t.inFailure)),
		float32(t.head),
		c.since(hot),
		odds,
		float32(t.back),
		float32(t.far),
		c.since(t.planned),
		partMean,
		partBest,
		float32(t.partCount),
	}
	copy(x[lineSize:], v[:])
}
