package dialog

import "slices"

// Demands are found in four steps: a sentence is cut into words; its languages are those with the most marks in it;
// phrases that demand nothing are removed; the patterns of the languages are looked up by their first word, and the
// strongest match counts. The cost is linear in the sentence: a pattern has at most one gap.

// gapLong is the most words that a gap in a pattern can be.
const gapLong = 9

// of returns the demand of s. Of a question, weak patterns do not count.
func (x *lexicon) of(s string, asked bool) Demand {
	var room [maxDemandWords]token
	w, in := x.read(s, room[:0])
	for i := range w {
		for k := range x.excuses[w[i].id] {
			x.excuse(&x.excuses[w[i].id][k], w, i, in)
		}
	}
	best, bestWeak, hedged := NoDemand, NoDemand, asked
	for i := range w {
		if w[i].idle {
			continue
		}
		if list := x.others[w[i].id]; list != nil {
			for k := range list {
				p := &list[k]
				if in>>p.tongue&1 == 0 || p.role == roleDemand && p.is <= best || p.role == roleHedge && hedged {
					continue
				}
				if _, ok := x.match(p, w, i); !ok {
					continue
				}
				switch p.role {
				case roleAsk:
					if i == 0 || softened(w[:i], p.tongue, x) {
						return NoDemand
					}
				case roleHedge:
					hedged = true
				case roleExcuse: // they are in a list of their own
				case roleDemand:
					if p.weak {
						bestWeak = max(bestWeak, p.is)
					} else {
						best = max(best, p.is)
					}
				}
			}
		}
	}
	if !hedged {
		best = max(best, bestWeak)
	}
	return best
}

// softened reports whether words say nothing by themselves.
func softened(w []token, tongue int, x *lexicon) bool {
	return !slices.ContainsFunc(w, func(t token) bool { return x.soft[t.id]>>tongue&1 == 0 })
}

// excuse marks the words that p matches at i.
func (x *lexicon) excuse(p *pattern, w []token, i int, in uint16) {
	if in>>p.tongue&1 == 0 {
		return
	}
	if end, ok := x.match(p, w, i); ok {
		for k := i; k < end; k++ {
			w[k].idle = true
		}
	}
}

// match reports whether p, whose first word is w[i], matches, and where it ends.
func (x *lexicon) match(p *pattern, w []token, i int) (end int, ok bool) {
	switch p.at {
	case anywhere:
	case atClause:
		if w[i].begins>>p.tongue&1 == 0 {
			return 0, false
		}
	case noSubject:
		if i > 0 && !w[i].border && x.subjects[w[i-1].id]>>p.tongue&1 == 1 {
			return 0, false
		}
	}
	return match(p.rest, w, i+1, false)
}

// match matches slots at w[at]. Over a border it goes only where border says so.
func match(slots []slot, w []token, at int, border bool) (end int, ok bool) {
	for k := range slots {
		s := &slots[k]
		switch s.kind {
		case slotOne, slotSet, slotNot, slotSuffix:
		case slotEnd:
			if at < len(w) {
				return 0, false
			}
			continue
		case slotBorder:
			if at >= len(w) || !w[at].border {
				return 0, false
			}
			border = true
			continue
		case slotGap:
			for n := range gapLong + 1 {
				if end, ok = match(slots[k+1:], w, at+n, border); ok {
					return end, true
				}
				if at+n >= len(w) || w[at+n].border && !border {
					break
				}
			}
			return 0, false
		}
		if at >= len(w) || w[at].border && !border || w[at].idle || !s.takes(&w[at]) {
			return 0, false
		}
		border = false
		at++
	}
	return at, true
}

func (s *slot) takes(w *token) bool {
	switch s.kind {
	case slotOne:
		return w.id == s.one
	case slotSet:
		return s.set.has(w.id)
	case slotNot:
		return !s.set.has(w.id)
	case slotSuffix:
		n := len(w.text) - len(s.suffix) // "feed" is not of the kind of "added"
		return n > 1 && w.text[n:] == s.suffix && w.text[n-1] != s.suffix[0]
	case slotGap, slotBorder, slotEnd:
	}
	return false
}
