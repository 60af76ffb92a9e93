package outline

// until is the index of the next comma, or after the end of the statement.
func (p *script) until(k, n int) int { return p.stop(k, k, n, true) }

// end is the index after the statement or member that begins at k.
func (p *script) end(k, n int) int { return p.stop(k, k+1, n, false) }

// rest is the index after the statement or member that k may still be in.
func (p *script) rest(k, n int) int { return p.stop(k, k, n, false) }

// stop looks for the end of a statement, from token least on.
func (p *script) stop(k, least, n int, comma bool) int {
	for k < n {
		c := p.kind(k)
		if k >= least && p.toks[k].nl && p.ends(k) {
			return k
		}
		switch c {
		case ';':
			return k + 1
		case ',':
			if comma {
				return k
			}
		case '}':
			return k + 1
		case '(', '[', '{':
			k = p.after(k)
			continue
		}
		k++
	}
	return n
}

// ends reports whether a statement can end before token k, which begins a line.
func (p *script) ends(k int) bool {
	switch c := p.kind(k - 1); c {
	case word:
		if jsOpen[p.text(k-1)] {
			return false
		}
	case literal, ')', ']', '}', '!', ';':
	case '>':
		if p.is(k-2, "=>") {
			return false
		}
	case '+', '-':
		if p.kind(k-2) != c {
			return false
		}
	default:
		return false
	}
	switch p.kind(k) {
	case word:
		return !jsContinues[p.text(k)]
	case literal, '}', '@', '#', '{', '!', '~':
		return p.src[p.toks[k].pos] != '`'
	case '[', '(', '*':
		return true
	}
	return false
}
