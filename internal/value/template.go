package value

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/value/parallel"
)

// A log repeats lines of one shape with another name in each: "Generated oban_web app", "PASS checkpoint-queue".
// Every such name is rare, yet few are written again. The values were not learned.
const (
	templateLines = 8    // of one shape, at least
	templateRare  = 3    // a word in fewer lines of the passage differs from line to line
	templateWord  = 6    // bytes: a longer one with digits is a name, not a number
	templateLong  = 120  // bytes: a longer line says more
	templateMany  = 4096 // words that justify new maps
)

// findTemplates finds the lines of results that repeat a shape.
func (c *Conversation) findTemplates() {
	const least = 64 // passages that are worth a goroutine
	parallel.Ranges(len(c.Passages), least, c.findTemplatesIn)
}

// findTemplatesIn finds the templates of the passages between from and to.
func (c *Conversation) findTemplatesIn(from, to int) {
	often, count := map[string]int{}, map[uint64]int{}
	var shapes []uint64
	for p := from; p < to; p++ {
		pass := &c.Passages[p]
		lines := c.Lines[pass.Lines.Start:pass.Lines.End]
		if len(lines) < templateLines || !pass.answers() {
			continue
		}
		if len(often) > templateMany { // clearing takes as long as the largest so far
			often, count = map[string]int{}, map[uint64]int{}
		}
		clear(often)
		clear(count)
		shapes = shapes[:0]
		for l := range lines {
			for w := range strings.FieldsSeq(lines[l].Text) {
				often[w]++
			}
		}
		for l := range lines {
			shape := uint64(0)
			if text := lines[l].Text; !lines[l].flat && len(text) < templateLong && !hasNumber(text) {
				shape = shapeIn(text, often)
			}
			shapes = append(shapes, shape)
			count[shape]++
		}
		for l := range lines {
			lines[l].template = shapes[l] != 0 && count[shapes[l]] >= templateLines
		}
	}
}

// shapeIn returns a hash of a line without its numbers and rare words; 0 if nothing is left, if the difference is a
// place or a value, or if the line reports a failure.
func shapeIn(line string, often map[string]int) uint64 {
	shape, stays, differs := uint64(hashSeed), false, false
	for w := range strings.FieldsSeq(line) {
		digit := hasDigit(w)
		rare := often[w] < templateRare
		switch {
		case !rare && !digit:
			if shape == hashSeed && strings.HasSuffix(w, ":") {
				return 0 // the name of a value
			}
			stays = stays || len(w) > 1
			shape ^= hashOf(w)
		case strings.ContainsAny(w, "/\\:=\"'`(){};,"), rare && !digit && strings.Contains(w, "."), rare && digit && len(w) >= templateWord:
			return 0
		default:
			differs = true
		}
		shape *= hashPrime
	}
	if !stays || !differs || saysFailure(line) {
		return 0
	}
	return shape
}

func hasDigit(s string) bool {
	for i := range len(s) {
		if bytesOf[s[i]] == isDigit {
			return true
		}
	}
	return false
}

func saysFailure(line string) bool {
	low := strings.ToLower(line)
	return slices.ContainsFunc([]string{"error", "fail", "warn", "panic"}, func(w string) bool { return strings.Contains(low, w) })
}

// discountTemplates removes the value of terms and phrases that only template lines have.
func (v *rating) discountTemplates() {
	if !slices.ContainsFunc(v.r.c.Lines, func(l Line) bool { return l.template }) {
		return
	}
	terms, phrases := make([]bool, v.r.c.Terms()), make([]bool, len(v.r.c.phrases)) // terms and phrases of other lines
	for l := range v.r.c.Lines {
		if v.r.c.Lines[l].template {
			continue
		}
		for _, n := range v.r.c.TermsOf(l) {
			terms[n] = true
		}
		for _, n := range v.r.c.phrasesOf(l) {
			phrases[max(n, ^n)] = true
		}
	}
	e := v.estimate
	for n, other := range terms {
		if !other {
			e.Names[n], e.Words[n] = 0, 0
		}
	}
	for n, other := range phrases {
		if !other {
			e.Phrases[n] = 0
		}
	}
}
