package score

// A reader collects the needed content of a view.
type reader struct {
	s       *Scorer
	present []bool
	credit  []float64
	words   []bool
	grams   []bool
	have    map[uint64]struct{} // lines of errors and artefacts
	names   map[uint64]struct{} // paths of artefacts
	told    map[uint64]struct{} // 4-grams of the future
	sound   []bool              // units in a line that was not replaced later
	stale   map[int32][]uint64  // units in a replaced line, with its replacement

	// scratch space for one block
	lines  []readLine
	word   []word
	units  []unit
	inTri  []bool
	runEnd []int
}

type readLine struct {
	hash uint64
	text string
	at   []int32 // its places in the prefix; nil if it has none
}

// block reads one text.
func (r *reader) block(text string) {
	r.lines = r.lines[:0]
	lines(text, func(text string) {
		var g grams
		h := lineHash(text)
		l := readLine{hash: h, text: text}
		if h != 0 {
			l.at = r.s.prefix.positions[h]
		}
		r.word = appendWords(r.word[:0], text)
		for _, w := range r.word {
			if h, ok := g.push(w.hash); ok {
				if at, ok := r.s.gramAt[h]; ok {
					r.grams[at] = true
				} else if _, ok := r.s.unseen[h]; ok {
					r.told[h] = struct{}{}
				}
			}
		}
		if h == 0 {
			return
		}
		r.have[h] = struct{}{}
		if l.at == nil {
			r.other(text)
		}
		r.lines = append(r.lines, l)
	})
	for i := range r.lines {
		r.verbatim(i)
	}
}

// The credit of a unit by the text that it is in.
const (
	creditLine      = 0.5  // an unchanged line
	creditNeighbour = 0.25 // for each of the line before and the line after it
	creditRun       = 0.25 // the shortest run of unchanged words
	creditLongRun   = 0.75 // added for a run that is longer by longRun words
	shortestRun     = 6    // words
	longRun         = 16   // words
	creditSentence  = 1    // a natural sentence about it
)

// verbatim gives credit for line i of the block if it is a line of the prefix.
func (r *reader) verbatim(i int) {
	l := &r.lines[i]
	if l.at == nil {
		return
	}
	p := &r.s.prefix
	for _, w := range p.words[l.hash] {
		r.words[w] = true
	}
	for _, n := range p.names[l.hash] {
		r.names[n] = struct{}{}
	}
	units := p.units[l.hash]
	if len(units) == 0 {
		return
	}
	best := p.lines[l.at[0]].long
	for _, at := range l.at {
		c := creditLine
		if p.lines[at].first || i > 0 && r.lines[i-1].hash == p.lines[at-1].hash {
			c += creditNeighbour
		}
		if p.lines[at].last || i+1 < len(r.lines) && r.lines[i+1].hash == p.lines[at+1].hash {
			c += creditNeighbour
		}
		best = max(best, c)
	}
	now, replaced := r.s.reachable().replaced[l.hash]
	for _, u := range units {
		if replaced {
			r.stale[u] = append(r.stale[u], now)
		}
		r.give(u, best, !replaced)
	}
}

func (r *reader) give(u int32, credit float64, sound bool) {
	r.present[u] = true
	r.sound[u] = r.sound[u] || sound
	r.credit[u] = max(r.credit[u], credit)
}

// other gives credit for a line that is not in the prefix. Its words are in r.word.
func (r *reader) other(text string) {
	words := r.word
	n := len(words)
	r.units = appendUnits(r.units[:0], text)
	r.inTri, r.runEnd = resize(r.inTri, n), resize(r.runEnd, n)
	for i := 2; i < n; i++ {
		if _, ok := r.s.prefix.tri[trigram(words[i-2].hash, words[i-1].hash, words[i].hash)]; ok {
			r.inTri[i-2], r.inTri[i-1], r.inTri[i] = true, true, true
			r.runEnd[i] = 1
		}
	}
	for i, w := range words {
		if r.inTri[i] {
			if at, ok := r.s.wordAt[w.hash]; ok && w.plain {
				r.words[at] = true
			}
		}
	}
	needed := false
	for _, u := range r.units {
		if u.kind == UnitPath {
			r.names[u.hash] = struct{}{}
		}
		if at, ok := r.s.unitAt[u.hash]; ok {
			r.present[at] = true
			needed = true
		}
	}
	if needed {
		for i := 2; i < n; i++ {
			if r.runEnd[i] == 0 {
				continue
			}
			start := i - 2
			for i+1 < n && r.runEnd[i+1] != 0 {
				i++
			}
			if length := i - start + 1; length >= shortestRun {
				r.run(words[start].start, words[i].end, length)
			}
		}
	}
	if n >= 8 {
		sentences(text, r.sentence)
	}
}

// runCredit returns the credit of a run of that many words.
func runCredit(words int) float64 {
	if words < shortestRun {
		return 0
	}
	return creditRun + creditLongRun*min(1, float64(words-shortestRun)/longRun)
}

// run gives credit for the units between start and end, which is a run of words of the prefix.
func (r *reader) run(start, end, words int) {
	credit := runCredit(words)
	for _, u := range r.units {
		if u.start >= start && u.end <= end {
			if at, ok := r.s.unitAt[u.hash]; ok {
				r.give(at, credit, true)
			}
		}
	}
}

// Limits that distinguish a natural sentence about a unit from a list of names.
const (
	naturalWords    = 8   // fewest words
	naturalUnits    = 0.5 // maximum share of the words
	naturalFunction = 8   // maximum number of words per function word
	naturalNear     = 2   // fewest words that are near the unit in the prefix
)

// sentence gives credit for the units of a natural sentence between start and end.
func (r *reader) sentence(start, end int) {
	var total, function, inUnits int
	u := 0
	for _, w := range r.word {
		if w.start < start || w.end > end {
			continue
		}
		total++
		if isFunctionWord(w.hash) {
			function++
		}
		for u < len(r.units) && r.units[u].end <= w.start {
			u++
		}
		if u < len(r.units) && r.units[u].start <= w.start {
			inUnits++
		}
	}
	if total < naturalWords || float64(inUnits) > naturalUnits*float64(total) || function*naturalFunction < total {
		return
	}
	for _, w := range r.word {
		if at, ok := r.s.wordAt[w.hash]; ok && w.plain && w.start >= start && w.end <= end {
			r.words[at] = true
		}
	}
	for _, u := range r.units {
		if u.start < start || u.end > end {
			continue
		}
		at, ok := r.s.unitAt[u.hash]
		if !ok {
			continue
		}
		near := 0
		for _, w := range r.word {
			if w.start < start || w.end > end || w.start >= u.start && w.end <= u.end || isFunctionWord(w.hash) {
				continue
			}
			if _, ok := r.s.units[at].near[w.hash]; ok {
				near++
			}
		}
		if near >= naturalNear {
			r.give(at, creditSentence, true)
		}
	}
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}
