package value

import (
	"math"
)

// steps2 returns the step of n on a scale of powers of two: 0, 1, 2 to 4, 5 to 8 and so on.
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
	{"class and last kind", int(classes) * kinds},
	{"class and age", int(classes) * ages},
	{"class and messages", int(classes) * 8},
	{"age and last kind", ages * kinds},
	{"share since", shares},
	{"share since and messages", shares * 5},
	{"age and messages", ages * 8},
	{"age of own use and own uses", ages * counts},
	{"first kind and last kind", kinds * kinds},
	{"first age", ages},
	{"by human", 3 * int(classes)},
	{"by agent", counts},
	{"in calls", counts},
	{"in results and own uses", counts * counts},
	{"share of messages", 8},
	{"in a failure", 2},
	{"head", 7 * kinds},
	{"lines of the passage", 6 * kinds},
	{"use of the file", usedSteps * 2},
	{"shape", shapes * kinds},
	{"terms of the line", 5},
	{"family and last kind", familyCount * kinds},
	{"field and class", fieldCount * int(classes)},
	{"field and age", fieldCount * ages},
	{"reuse of the passage", reuseSteps * kinds},
	{"reuse and age", reuseSteps * ages},
	{"hot line and age", ages * ages},
	{"hot line and last kind", ages * kinds},
	{"asked", ages},
	{"near and age", ages * ages},
	{"near and last kind", ages * kinds},
	{"later and family", laterSteps * familyCount},
	{"later and last kind", laterSteps * kinds},
}

// TermSteps returns the step of every feature of term n, in buf. A term's step k is the weight
// number k of all features in order.
func (v *Evidence) TermSteps(n int, buf *Steps) []uint16 {
	c, rarity := v.c, int(v.rarity[n])
	t := &c.terms[n]
	line := &c.Lines[t.lastLine]
	p := &c.Passages[line.Passage]
	age := steps2(c.messages-1-int(t.last), ages)
	share := thresholds(float64(c.bytes-line.start)/float64(c.bytes+1), ageShares)
	own := int(t.by[byUser] + t.by[byAgent] + t.by[byCall])
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
	steps := [...]int{
		cl,
		cl*rarities + rarity,
		cl*6 + thresholds(float64(t.size), []float64{5, 7, 10, 14, 20}),
		cl*kinds + last,
		cl*ages + age,
		cl*8 + msgs,
		age*kinds + last,
		share,
		share*5 + min(msgs, 4),
		age*8 + msgs,
		ownAge*counts + min(own, counts-1),
		int(t.firstKind)*kinds + last,
		steps2(c.messages-1-int(t.first), ages),
		min(int(t.by[byUser]), 2)*int(classes) + cl,
		steps2(int(t.by[byAgent]), counts),
		steps2(int(t.by[byCall]), counts),
		steps2(int(t.by[byTool]), counts)*counts + min(own, counts-1),
		thresholds(float64(t.messages)/float64(c.messages), []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5}),
		flag(t.inFailure),
		steps2(int(t.head), 7)*kinds + last,
		p.lengthStep()*kinds + last,
		c.usedStep(p)*2 + flag(p.old),
		int(line.shape)*kinds + last,
		steps2(line.mentions.End-line.mentions.Start, 6) - 1,
		int(p.family)*kinds + last,
		int(line.field)*int(classes) + cl,
		int(line.field)*ages + age,
		int(p.reuse)*kinds + last,
		int(p.reuse)*ages + age,
		c.hotAge(line, int32(n))*ages + age,
		c.hotAge(line, int32(n))*kinds + last,
		askedAge,
		c.nearAge(line)*ages + age,
		c.nearAge(line)*kinds + last,
		int(p.later)*familyCount + int(p.family),
		int(p.later)*kinds + last,
	}
	return pack(termFeatures, steps[:], buf)
}

var phraseFeatures = []Feature{
	{"content", 3},
	{"last kind and content", kinds * 3},
	{"messages and own", 4 * 4},
	{"age and last kind", ages * kinds},
	{"share since", shares},
	{"share since and messages", shares * 4},
	{"age of own use", ages},
	{"first kind and last kind", kinds * kinds},
	{"head", 7 * kinds},
	{"lines of the passage", 6 * kinds},
	{"use of the file", usedSteps * 2},
	{"shape", shapes * kinds},
	{"use of the file and shape", usedSteps * shapes},
	{"best term", 6},
	{"family and last kind", familyCount * kinds},
	{"field and age", fieldCount * ages},
	{"field and content", fieldCount * 3},
	{"reuse of the passage", reuseSteps * kinds},
	{"reuse and age", reuseSteps * ages},
	{"hot line and age", ages * ages},
	{"hot line and last kind", ages * kinds},
	{"near and age", ages * ages},
	{"near and last kind", ages * kinds},
	{"later and family", laterSteps * familyCount},
	{"later and last kind", laterSteps * kinds},
}

// PhraseSteps is like TermSteps for phrase n.
func (v *Evidence) PhraseSteps(n int, buf *Steps) []uint16 {
	c := v.c
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
	steps := [...]int{
		content,
		last*3 + content,
		msgs*4 + min(int(f.ours), 3),
		age*kinds + last,
		share,
		share*4 + msgs,
		ownAge,
		int(f.first)*kinds + last,
		steps2(int(f.lastLine)-p.Lines.Start, 7)*kinds + last,
		p.lengthStep()*kinds + last,
		used*2 + flag(p.old),
		int(line.shape)*kinds + last,
		used*shapes + int(line.shape),
		thresholds(float64(v.best[f.lastLine]), []float64{0.005, 0.01, 0.03, 0.08, 0.2}),
		int(p.family)*kinds + last,
		int(line.field)*ages + age,
		int(line.field)*3 + content,
		int(p.reuse)*kinds + last,
		int(p.reuse)*ages + age,
		c.hotAge(line, -1)*ages + age,
		c.hotAge(line, -1)*kinds + last,
		c.nearAge(line)*ages + age,
		c.nearAge(line)*kinds + last,
		int(p.later)*familyCount + int(p.family),
		int(p.later)*kinds + last,
	}
	return pack(phraseFeatures, steps[:], buf)
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

func (p *Passage) lengthStep() int {
	return thresholds(float64(p.Lines.End-p.Lines.Start), []float64{2, 6, 21, 61, 151})
}

// usedStep grades the last use of the file of p after p showed it: 0 without a file, 1 if it was not used since, else
// by age.
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

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// never is the age of an event that did not happen: greater than any real age.
const never = 1e5

// Sizes of the trees' inputs for a line and for a term.
const (
	lineSize = 34
	termSize = lineSize + 23
	fileAt   = 30 // where the inputs about the file of a passage begin
)

// A focus holds the terms that the user and the agent use at the end of a conversation.
type focus struct {
	terms    []float32 // the focus of each term
	lines    []float32 // for each line, the sum over its terms
	best     []float32 // for each line, the maximum over its terms
	passages []float32 // for each passage, the mean over its terms
}

// focusReach is the age in messages at which a term counts half.
const focusReach = 12

func focusOf(c *Conversation) *focus {
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

// fading returns the weight in the focus of a term that was written in message m.
func (c *Conversation) fading(m int32) float32 {
	d := float32(c.messages-int(m)) / focusReach
	return 1 / (1 + d*d)
}

// since returns the age of message m in messages; never if m is -1.
func (c *Conversation) since(m int32) float32 {
	if m < 0 {
		return never
	}
	return float32(c.messages - 1 - int(m))
}

// around is how many lines above and below a line are inputs of the trees.
const around = 3

// LineVector fills x, of [LineSize] elements, with the trees' inputs for line l.
func (v *Evidence) LineVector(l int, x []float32) {
	c, f, best := v.c, v.focus, v.best[l]
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
	seen := [lineSize]float32{
		float32(after),
		float32(after) / float32(c.bytes+1),
		float32(c.messages - 1 - p.Message),
		float32(l - p.Lines.Start),
		float32(p.Lines.End - 1 - l),
		float32(p.Lines.End - p.Lines.Start),
		float32(c.usedStep(p)),
		float32(flag(p.old)),
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
		never, 0, never, 0, // of its file, if it has one
	}
	if p.file >= 0 {
		t := &c.terms[p.file]
		seen[fileAt], seen[fileAt+1] = c.since(t.lastByUs), float32(t.by[byCall])
		seen[fileAt+2], seen[fileAt+3] = c.since(t.edited), float32(int(t.edited)-p.Message)
	}
	copy(x, seen[:])
}

// ofTerm adds the inputs for term n to the inputs for its last line.
func (v *Evidence) ofTerm(n int, x []float32) {
	c, rarity, odds := v.c, int(v.rarity[n]), float32(sigmoid(v.odds[n]))
	t := &c.terms[n]
	line := &c.Lines[t.lastLine]
	partMean, partBest := c.partFocus(n)
	hot := line.hot[0]
	if line.hotTerm == int32(n) {
		hot = line.hot[1]
	}
	seen := [termSize - lineSize]float32{
		float32(t.class),
		float32(rarity),
		float32(t.size),
		float32(t.firstKind),
		float32(t.messages),
		float32(t.messages) / float32(c.messages),
		float32(t.by[byUser]),
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
	copy(x[lineSize:], seen[:])
}
