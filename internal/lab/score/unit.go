package score

import (
	"strings"

	"github.com/condensehq/condense/internal/plain"
)

// A UnitKind is a kind of name.
type UnitKind byte

// The kinds of units.
const (
	UnitPath       UnitKind = 'p' // file path: its base name, or its last two parts
	UnitIdentifier UnitKind = 'i' // camelCase, snake_case, kebab-case, or with a digit; four letters or more
	UnitNumber     UnitKind = 'n' // three digits or more, a version, the first seven digits of a hash
	UnitQuoted     UnitKind = 'q' // a quoted phrase of two to eight words
	UnitName       UnitKind = 'c' // a capitalised name inside a sentence
)

// weight returns the weight of a unit of the kind.
func (k UnitKind) weight() float64 {
	if k == UnitName {
		return 0.5
	}
	return 1
}

// A unit is a name in a line.
type unit struct {
	hash       uint64
	kind       UnitKind
	start, end int // in the line
}

func makeUnit(kind UnitKind, s string, start, end int) unit {
	return unit{hash: hashString(hashByte(fnvOffset, byte(kind)), s), kind: kind, start: start, end: end}
}

// appendUnits appends the units of line.
func appendUnits(units []unit, line string) []unit {
	for i := 0; i < len(line); {
		if class[line[i]]&isChunk == 0 {
			i++
			continue
		}
		start := i
		for i < len(line) && class[line[i]]&isChunk != 0 {
			i++
		}
		units = appendChunk(units, line, start, i)
	}
	return appendQuotes(units, line)
}

// appendChunk appends the units of line[start:end], a run of characters of paths and identifiers.
func appendChunk(units []unit, line string, start, end int) []unit {
	for end > start && strings.IndexByte(`.:-#+@\~`, line[end-1]) >= 0 {
		end--
	}
	for end > start && strings.IndexByte(`:-#+@`, line[start]) >= 0 {
		start++
	}
	s := line[start:end]
	if len(s) < 3 {
		return units
	}
	if u, ok := pathUnit(s, start); ok {
		return append(units, u)
	}
	if isVersion(s) {
		return append(units, makeUnit(UnitNumber, strings.TrimPrefix(s, "v"), start, end))
	}
	for i := 0; i < len(s); {
		j := i
		for j < len(s) && (class[s[j]]&isWord != 0 || s[j] == '-') {
			j++
		}
		if j > i {
			units = appendName(units, line, start+i, start+j)
		}
		i = j + 1
	}
	return units
}

// pathUnit returns the unit of a path, which has a slash or a common extension.
func pathUnit(s string, at int) (unit, bool) {
	end := len(s)
	if i := strings.IndexByte(s, ':'); i > 1 && !strings.HasPrefix(s[i:], "://") {
		end = i // a line number
	} else if i == 1 && strings.HasPrefix(s[i:], `:\`) {
		if j := strings.IndexByte(s[2:], ':'); j >= 0 {
			end = j + 2
		}
	}
	p := strings.TrimRight(s[:end], `/\.`)
	slash := strings.LastIndexAny(p, `/\`)
	base := p[slash+1:]
	if len(base) < 2 || !hasLetter(base) {
		return unit{}, false
	}
	dot := strings.LastIndexByte(base, '.')
	if slash < 0 {
		if dot < 1 || !extensions[base[dot+1:]] {
			return unit{}, false
		}
		return makeUnit(UnitPath, base, at, at+len(p)), true
	}
	if dot > 0 && dot < len(base)-1 && len(base)-dot <= 6 {
		return makeUnit(UnitPath, base, at+slash+1, at+len(p)), true
	}
	before := strings.LastIndexAny(p[:slash], `/\`)
	if before == slash-1 || before < 0 && slash == 0 {
		return makeUnit(UnitPath, base, at+slash+1, at+len(p)), true
	}
	return makeUnit(UnitPath, p[before+1:], at+before+1, at+len(p)), true
}

// isVersion reports whether s is a version like v1.26.0.
func isVersion(s string) bool {
	s = strings.TrimPrefix(s, "v")
	dots := 0
	for i := range len(s) {
		switch {
		case class[s[i]]&isDigit != 0:
		case s[i] == '.' && i > 0 && s[i-1] != '.':
			dots++
		default:
			return false
		}
	}
	return dots > 0 && len(s) >= 3
}

// appendName appends the unit, if any, of line[start:end], which consists of letters, digits, underscores
// and hyphens.
func appendName(units []unit, line string, start, end int) []unit {
	for start < end && line[start] == '-' {
		start++
	}
	for end > start && line[end-1] == '-' {
		end--
	}
	s := line[start:end]
	var upper, low, digit, hex, under, hyphen, camel int
	for i := range len(s) {
		switch c := class[s[i]]; {
		case c&isLower != 0:
			low++
			if s[i] <= 'f' {
				hex++
			}
		case c&isUpper != 0:
			upper++
			if i > 0 && class[s[i-1]]&isLower != 0 {
				camel++
			}
		case c&isDigit != 0:
			digit++
			hex++
		case s[i] == '_' && i > 0 && i < len(s)-1:
			under++
		case s[i] == '-':
			hyphen++
		}
	}
	letters := upper + low
	switch {
	case letters == 0:
		if digit >= 3 && hyphen == 0 && under == 0 {
			return append(units, makeUnit(UnitNumber, s, start, end))
		}
		if digit >= 6 { // a date, for example
			return append(units, makeUnit(UnitNumber, s, start, end))
		}
	case hex == len(s) && digit > 0 && len(s) >= 7 && len(s) <= 64:
		return append(units, makeUnit(UnitNumber, s[:7], start, end))
	case len(s) >= 4 && (under > 0 || camel > 0 || digit > 0 || hyphen > 0):
		return append(units, makeUnit(UnitIdentifier, s, start, end))
	case upper == 1 && class[s[0]]&isUpper != 0 && low >= 2 && !opensSentence(line, start):
		return append(units, makeUnit(UnitName, s, start, end))
	}
	return units
}

// opensSentence reports whether the word at i may be the first of a sentence, where a capital letter says
// nothing. It is not after a word or a comma.
func opensSentence(line string, i int) bool {
	j := i
	for j > 0 && line[j-1] == ' ' {
		j--
	}
	if j == 0 || j == i {
		return true
	}
	return class[line[j-1]]&isWord == 0 && line[j-1] != ','
}

// appendQuotes appends the quoted phrases of two to eight words.
func appendQuotes(units []unit, line string) []unit {
	const longest = 100 // bytes
	for i := 0; i < len(line); i++ {
		q := line[i]
		if q != '"' && q != '\'' && q != '`' || i > 0 && class[line[i-1]]&isWord != 0 {
			continue
		}
		n := strings.IndexByte(line[i+1:min(len(line), i+1+longest)], q)
		if n < 3 {
			continue
		}
		var buf [16]word
		words := appendWords(buf[:0], line[i+1:i+1+n])
		if len(words) >= 2 && len(words) <= 8 {
			h := hashByte(fnvOffset, byte(UnitQuoted))
			for _, w := range words {
				h = hashUint(h, w.hash)
			}
			units = append(units, unit{hash: h, kind: UnitQuoted, start: i + 1, end: i + 1 + n})
			i += n + 1
		}
	}
	return units
}

func hasLetter(s string) bool {
	for i := range len(s) {
		if class[s[i]]&(isLower|isUpper) != 0 {
			return true
		}
	}
	return false
}

var extensions = plain.Words(`go py js ts tsx jsx mjs cjs rs c h cc cpp hpp cs java kt swift rb php pl sh bash zsh fish ps1 bat lua r jl scala clj ex exs erl hs ml
		md txt rst json jsonl yaml yml toml ini cfg conf xml html htm css scss less svg csv tsv sql proto graphql vue svelte ipynb tf lock log env
		mod sum gz zip tar png jpg jpeg gif pdf patch diff snap tmpl tpl mk cmake gradle dockerfile omp`)
