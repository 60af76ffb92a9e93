package need

import "math"

// steps2 returns the step of n on a scale of powers of two: 0, 1, 2, 3-4, 5-8 and so on.
func steps2(n, most int) int {
	s := 0
	for v := n; v > 0; v >>= 1 {
		s++
	}
	if n > 2 && n&(n-1) == 0 {
		s--
	}
	return min(s, most-1)
}

// thresholds returns how many of the ascending numbers v reaches.
func thresholds(v float64, at []float64) int {
	for i, t := range at {
		if v < t {
			return i
		}
	}
	return len(at)
}

var ageShares = []float64{0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 0.8}

const (
	ages      = 11 // steps of messages since
	shares    = 11 // steps of the share of bytes since
	counts    = 5
	usedSteps = 5
)

var termFeatures = []Feature{
	{"class", int(classes)},
	{"class and rarity", int(classes) * rarities},
	{"class and length", int(classes) * 6},
	{"class and last kind", int(classes) * int(kinds)},
	{"class and age", int(classes) * ages},
	{"class and messages", int(classes) * 8},
	{"age and last kind", ages * int(kinds)},
	{"share since", shares},
	{"share since and messages", shares * 5},
	{"age and messages", ages * 8},
	{"age of own use and own uses", ages * counts},
	{"first kind and last kind", int(kinds) * int(kinds)},
	{"first age", ages},
	{"by human", 3 * int(classes)},
	{"by agent", counts},
	{"in calls", counts},
	{"in results and own uses", counts * counts},
	{"share of messages", 8},
	{"in a failure", 2},
	{"head", 7 * int(kinds)},
	{"lines of the passage", 6 * int(kinds)},
	{"use of the file", usedSteps * 2},
	{"shape", shapes * int(kinds)},
	{"terms of the line", 5},
	{"family and last kind", familyCount * int(kinds)},
	{"field and class", fieldCount * int(classes)},
	{"field and age", fieldCount * ages},
	{"reuse of the passage", reuseSteps * int(kinds)},
	{"reuse and age", reuseSteps * ages},
	{"hot line and age", ages * ages},
	{"hot line and last kind", ages * int(kinds)},
	{"asked", ages},
	{"near and age", ages * ages},
	{"near and last kind", ages * int(kinds)},
	{"later and family", laterSteps * familyCount},
	{"later and last kind", laterSteps * int(kinds)},
}

// termSteps writes the step of every feature of term n.
func (c *Conversation) termSteps(n int, rarity int, out *Steps) []uint16 {
	t := &c.terms[n]
	line := &c.Lines[t.lastLine]
	p := &c.Passages[line.Passage]
	age := steps2(c.messages-1-int(t.last), ages)
	share := thresholds(float64(c.bytes-line.start)/float64(c.bytes+1), ageShares)
	own := int(t.by[byHuman] + t.by[byAgent] + t.by[byCall])
	ownAge := ages - 1
	if t.lastByUs >= 0 {
		ownAge = steps2(c.messages-1-int(t.lastByUs), ages-1)
	}
	askedAge := ages - 1
	if t.asked >= 0 {
		askedAge = steps2(c.messages-1-int(t.asked), ages-1)
	}
	cl, last := int(t.class), int(t.lastKind)
	msgs := steps2(int(t.messages), 9) - 1
	v := [...]int{
		cl,
		cl*rarities + rarity,
		cl*6 + thresholds(float64(t.size), []float64{5, 7, 10, 14, 20}),
		cl*int(kinds) + last,
		cl*ages + age,
		cl*8 + msgs,
		age*int(kinds) + last,
		share,
		share*5 + min(msgs, 4),
		age*8 + msgs,
		ownAge*counts + min(own, counts-1),
		int(t.firstKind)*int(kinds) + last,
		steps2(c.messages-1-int(t.first), ages),
		min(int(t.by[byHuman]), 2)*int(classes) + cl,
		steps2(int(t.by[byAgent]), counts),
		steps2(int(t.by[byCall]), counts),
		steps2(int(t.by[byTool]), counts)*counts + min(own, counts-1),
		thresholds(float64(t.messages)/float64(c.messages), []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5}),
		flag(t.inFailure),
		steps2(int(t.head), 7)*int(kinds) + last,
		c.lengthStep(p)*int(kinds) + last,
		c.usedStep(p)*2 + flag(c.superseded(p)),
		int(line.shape)*int(kinds) + last,
		steps2(line.mentions.End-line.mentions.Start, 6) - 1,
		int(p.family)*int(kinds) + last,
		int(line.field)*int(classes) + cl,
		int(line.field)*ages + age,
		int(p.reuse)*int(kinds) + last,
		int(p.reuse)*ages + age,
		c.hotAge(line, int32(n))*ages + age,
		c.hotAge(line, int32(n))*int(kinds) + last,
		askedAge,
		c.nearAge(line)*ages + age,
		c.nearAge(line)*int(kinds) + last,
		int(p.later)*familyCount + int(p.family),
		int(p.later)*int(kinds) + last,
	}
	return pack(termFeatures, v[:], out)
}

var phraseFeatures = []Feature{
	{"content", 3},
	{"last kind and content", int(kinds) * 3},
	{"messages and own", 4 * 4},
	{"age and last kind", ages * int(kinds)},
	{"share since", shares},
	{"share since and messages", shares * 4},
	{"age of own use", ages},
	{"first kind and last kind", int(kinds) * int(kinds)},
	{"head", 7 * int(kinds)},
	{"lines of the passage", 6 * int(kinds)},
	{"use of the file", usedSteps * 2},
	{"shape", shapes * int(kinds)},
	{"use of the file and shape", usedSteps * shapes},
	{"best term", 6},
	{"family and last kind", familyCount * int(kinds)},
	{"field and age", fieldCount * ages},
	{"field and content", fieldCount * 3},
	{"reuse of the passage", reuseSteps * int(kinds)},
	{"reuse and age", reuseSteps * ages},
	{"hot line and age", ages * ages},
	{"hot line and last kind", ages * int(kinds)},
	{"near and age", ages * ages},
	{"near and last kind", ages * int(kinds)},
	{"later and family", laterSteps * familyCount},
	{"later and last kind", laterSteps * int(kinds)},
}

func (c *Conversation) phraseSteps(n int, best float32, out *Steps) []uint16 {
	f := &c.phrases[n]
	line := &c.Lines[f.lastLine]
	p := &c.Passages[line.Passage]
	age := steps2(c.messages-1-int(f.last), ages)
	share := thresholds(float64(c.bytes-line.start)/float64(c.bytes+1), ageShares)
	last := int(p.Kind)
	msgs := min(int(f.messages), 4) - 1
	ownAge := ages - 1
	if f.lastOurs >= 0 {
		ownAge = steps2(c.messages-1-int(f.lastOurs), ages-1)
	}
	content := int(f.content) - 2
	used := c.usedStep(p)
	v := [...]int{
		content,
		last*3 + content,
		msgs*4 + min(int(f.ours), 3),
		age*int(kinds) + last,
		share,
		share*4 + msgs,
		ownAge,
		int(f.first)*int(kinds) + last,
		steps2(int(f.lastLine)-p.Lines.Start, 7)*int(kinds) + last,
		c.lengthStep(p)*int(kinds) + last,
		used*2 + flag(c.superseded(p)),
		int(line.shape)*int(kinds) + last,
		used*shapes + int(line.shape),
		thresholds(float64(best), []float64{0.005, 0.01, 0.03, 0.08, 0.2}),
		int(p.family)*int(kinds) + last,
		int(line.field)*ages + age,
		int(line.field)*3 + content,
		int(p.reuse)*int(kinds) + last,
		int(p.reuse)*ages + age,
		c.hotAge(line, -1)*ages + age,
		c.hotAge(line, -1)*int(kinds) + last,
		c.nearAge(line)*ages + age,
		c.nearAge(line)*int(kinds) + last,
		int(p.later)*familyCount + int(p.family),
		int(p.later)*int(kinds) + last,
	}
	return pack(phraseFeatures, v[:], out)
}

func pack(features []Feature, v []int, out *Steps) []uint16 {
	base := 0
	for i := range features {
		s := min(max(v[i], 0), features[i].Steps-1)
		out[i] = uint16(base + s)
		base += features[i].Steps
	}
	return out[:len(features)]
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (c *Conversation) lengthStep(p *Passage) int {
	return thresholds(float64(p.Lines.End-p.Lines.Start), []float64{2, 6, 21, 61, 151})
}

// usedStep says how the file that p is about was used by the agent after it was shown: 0
// if p is about none, 1 if not since, else by how long ago.
func (c *Conversation) usedStep(p *Passage) int {
	if p.file < 0 {
		return 0
	}
	t := &c.terms[p.file]
	switch since := c.messages - 1 - int(t.lastByUs); {
	case int(t.lastByUs) <= p.Message:
		return 1
	case since > 60:
		return 2
	case since > 15:
		return 3
	}
	return 4
}

// rarities are the steps of how many other projects have a term: none, 1, 2, 3, more.
const rarities = 5

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
