package value

import (
	"strings"

	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/toolcall"
)

// Fields of calls. The text that an edit replaces is gone; the text that it inserts is in the file.
const (
	fieldNone = iota
	fieldOld
	fieldNew
	fieldCommand
	fieldWhere
	fieldWhy
	fieldOther
	fieldCount
)

// fieldRoles are the kinds of fields by the roles of a parameter: the first that fits.
var fieldRoles = []struct {
	roles toolcall.Role
	field uint8
}{
	{toolcall.Prose, fieldWhy},
	{toolcall.Old, fieldOld},
	{toolcall.New | toolcall.Whole | toolcall.Patch, fieldNew},
	{toolcall.Command, fieldCommand},
	{toolcall.Path | toolcall.Folder | toolcall.Query, fieldWhere},
}

func fieldOf(key string) uint8 {
	role := toolcall.RoleOf(key)
	for _, f := range fieldRoles {
		if role&f.roles != 0 {
			return f.field
		}
	}
	return fieldOther
}

// fieldIn returns the field that a line of a former extract names; fieldOther if it names none.
func fieldIn(line string) uint8 {
	key, _, ok := strings.Cut(line, ": ")
	if !ok {
		return fieldOther
	}
	return fieldOf(key)
}

var families = map[dialog.Family]uint8{
	dialog.FamilyUnknown: 0, dialog.FamilyRead: 1, dialog.FamilyWrite: 2, dialog.FamilyEdit: 3, dialog.FamilyList: 4, dialog.FamilySearch: 5, dialog.FamilyCommand: 6,
	dialog.FamilyWeb: 7, dialog.FamilyPlan: 8, dialog.FamilyDone: 9, dialog.FamilyAsk: 10, dialog.FamilyDelegate: 11,
}

const familyCount = 12

// reuseShares are the steps of the share of a passage's new terms that the user or the agent wrote again later.
var reuseShares = []float64{0.001, 0.02, 0.05, 0.1, 0.2}

const reuseSteps = 7 // one step each for no new terms and for none used, and the steps above

// findReuse computes the share of each passage's new terms that was used since.
func (c *Conversation) findReuse() {
	said := make([]bool, len(c.terms))
	for p := range c.Passages {
		pass := &c.Passages[p]
		first, used := 0, 0
		for l := pass.Lines.Start; l < pass.Lines.End; l++ {
			for _, n := range c.TermsOf(l) {
				if said[n] {
					continue
				}
				said[n] = true
				first++
				if int(c.terms[n].lastByUs) > pass.Message {
					used++
				}
			}
		}
		if first > 0 {
			pass.reuse = uint8(1 + thresholds(float64(used)/float64(first), reuseShares))
		}
	}
}

// findHot finds, for every line, when the user or the agent last wrote one of its rare terms: such lines are about
// the current work.
func (c *Conversation) findHot() {
	rare := int32(max(3, c.messages/5))
	for l := range c.Lines {
		line := &c.Lines[l]
		line.hot = [2]int32{-1, -1}
		for _, n := range c.TermsOf(l) {
			t := &c.terms[n]
			if t.messages > rare {
				continue
			}
			switch at := t.lastByUs; {
			case at > line.hot[0]:
				line.hot[1], line.hot[0], line.hotTerm = line.hot[0], at, n
			case at > line.hot[1]:
				line.hot[1] = at
			}
		}
	}
}

// findWork finds when each file was last changed and each term last planned.
func (c *Conversation) findWork() {
	for p := range c.Passages {
		pass := &c.Passages[p]
		if pass.Kind != dialog.KindToolCall {
			continue
		}
		switch pass.family {
		case families[dialog.FamilyWrite], families[dialog.FamilyEdit]:
			if pass.file >= 0 {
				c.terms[pass.file].edited = int32(pass.Message)
			}
		case families[dialog.FamilyPlan]:
			for l := pass.Lines.Start; l < pass.Lines.End; l++ {
				for _, n := range c.TermsOf(l) {
					c.terms[n].planned = int32(pass.Message)
				}
			}
		}
	}
}

// reach is the distance in lines within which a line is close by.
const reach = 4

// findNear finds, for every line, when the user or the agent last wrote a rare term of a line close by that is not
// the line's own.
func (c *Conversation) findNear() {
	for p := range c.Passages {
		pass := &c.Passages[p]
		for l := pass.Lines.Start; l < pass.Lines.End; l++ {
			c.Lines[l].near = -1
			for k := max(pass.Lines.Start, l-reach); k < min(pass.Lines.End, l+reach+1); k++ {
				if k != l {
					c.Lines[l].near = max(c.Lines[l].near, c.Lines[k].hot[0])
				}
			}
		}
	}
}

const laterSteps = 7

// countLater counts, for every passage, the following passages of its kind and tool.
func (c *Conversation) countLater() {
	type key struct {
		kind dialog.Kind
		name string
	}
	n := map[key]int{}
	for p := len(c.Passages) - 1; p >= 0; p-- {
		pass := &c.Passages[p]
		k := key{pass.Kind, pass.Name}
		pass.later = uint8(steps2(n[k], laterSteps))
		n[k]++
	}
}

// nearAge is the age, in steps, of the last use of a rare term close by; the last step is never.
func (c *Conversation) nearAge(l *Line) int {
	if l.near < 0 {
		return ages - 1
	}
	return steps2(c.messages-1-int(l.near), ages-1)
}

// hotAge is the age, in steps, of the last use by the user or the agent of a rare term of line l other than n; the
// last step is never.
func (c *Conversation) hotAge(l *Line, n int32) int {
	at := l.hot[0]
	if n >= 0 && l.hotTerm == n {
		at = l.hot[1]
	}
	if at < 0 {
		return ages - 1
	}
	return steps2(c.messages-1-int(at), ages-1)
}

// A term that is written again after this many messages without it came back (far: from far). Somebody had to
// remember it.
const (
	backAfter = 2
	farAfter  = 8
)

// cameBack records that the user or the agent writes term t again, in message msg.
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

// farLine is the distance for lines that are farther or missing.
const farLine = 1000

// findBacks finds, for every line, the distance up and down to the nearest line of its passage from which a term came
// back.
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

// A part is a word within a name: parse and header in parseHeader. A name that was only seen
// is more likely to be used if its parts occur in names that are in use.
type part struct {
	names int32 // names that have it
	name  int32 // of these names, the one that the user or the agent wrote last
	last  int32 // the message in which they wrote it; -1 if none
	other int32 // the last message in which they wrote another name with this part
}

// Bounds of parts. A part that sharedParts names share counts half as much as a rare one.
const (
	minPart     = 3 // bytes
	maxParts    = 5 // of a name
	sharedParts = 30
)

// takeApart numbers the parts of the name s, and returns the position of their numbers.
func (c *Conversation) takeApart(s string) (from int32, count uint8) {
	from = int32(len(c.termParts))
	start := 0
	add := func(end int) {
		if end-start < minPart || count == maxParts {
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

// findPartUse finds when each part was last written by the user or the agent.
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

// partFocus returns how much the parts of term n are in focus through other names: the mean and the maximum.
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
