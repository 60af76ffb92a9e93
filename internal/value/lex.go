package value

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// A class is the form of a term.
type class uint8

const (
	classWord       class = iota // lower-case letters, five or more
	classCapital                 // one capital, then lower-case letters
	classIdentifier              // letters with an inner capital, digit, underscore or hyphen
	classFile                    // a name with an extension
	classNumber                  // three digits or more, or a version
	classHash                    // hexadecimal digits, seven or more
	classes
)

// A token is a word of a line: letters, digits and underscores, with dots, slashes and
// hyphens between two of them.
type token struct {
	hash   uint64 // without regard to case
	filler bool   // a word that only connects others
}

// A mention is a term in a line.
type mention struct {
	hash  uint64
	class class
	text  string
}

// A lexer takes lines apart. Its slices are overwritten by every line.
type lexer struct {
	tokens   []token
	mentions []mention
	hash     uint64 // of the current token, without regard to case
	size     int    // of the hash, in bytes; 0 if the token has capitals, so that its hash as a term differs
}

const (
	hashSeed  = 0xcbf29ce484222325 // FNV-1a
	hashPrime = 0x100000001b3
)

func hashOf(s string) uint64 {
	h := uint64(hashSeed)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * hashPrime
	}
	return h
}

var fold = func() (t [256]byte) {
	for i := range t {
		t[i] = byte(i)
		if 'A' <= i && i <= 'Z' {
			t[i] += 'a' - 'A'
		}
	}
	return t
}()

const (
	isLower = 1 << iota
	isUpper
	isDigit
	isUnder
	isJoint // between two words it belongs to them
	isWord  = isLower | isUpper | isDigit | isUnder
)

var bytesOf = func() (t [256]uint8) {
	for i := range t {
		switch {
		case 'a' <= i && i <= 'z':
			t[i] = isLower
		case 'A' <= i && i <= 'Z':
			t[i] = isUpper
		case '0' <= i && i <= '9':
			t[i] = isDigit
		case i == '_':
			t[i] = isUnder
		case i == '.' || i == '/' || i == '-':
			t[i] = isJoint
		}
	}
	return t
}()

// read divides a line into tokens and terms.
func (x *lexer) read(line string) {
	x.tokens, x.mentions = x.tokens[:0], x.mentions[:0]
	for i := 0; i < len(line); {
		if b := line[i]; b < utf8.RuneSelf && bytesOf[b]&isWord == 0 {
			i++
			continue
		}
		start, ascii := i, true
		h, seen := uint64(hashSeed), uint8(0)
		for i < len(line) {
			b := line[i]
			class := bytesOf[b]
			if class&isWord != 0 || class == isJoint && i > start && i+1 < len(line) && bytesOf[line[i+1]]&isWord != 0 {
				h = (h ^ uint64(fold[b])) * hashPrime
				seen |= class
				i++
				continue
			}
			if b < utf8.RuneSelf {
				break
			}
			r, size := utf8.DecodeRuneInString(line[i:])
			if !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) {
				break
			}
			ascii = false
			for end := i + size; i < end; i++ {
				h = (h ^ uint64(line[i])) * hashPrime
			}
			if r >= 0x2E80 { // a script without spaces: every character is a word
				break
			}
		}
		if i == start { // a symbol
			_, size := utf8.DecodeRuneInString(line[i:])
			i += size
			continue
		}
		s := line[start:i]
		x.tokens = append(x.tokens, token{hash: h, filler: len(s) <= longestFiller && fillers.find(h) >= 0})
		x.size, x.hash = len(s), h
		if seen&isUpper != 0 {
			x.size = 0
		}
		switch {
		case !ascii:
			if len(s) >= 6 {
				x.mention(s, classWord)
			}
		case seen&isJoint != 0:
			x.chunk(s)
		case seen != isLower:
			x.name(s)
		case len(s) >= 5:
			x.mention(s, classWord)
		}
	}
}

// mention adds s, the current token or a part of it.
func (x *lexer) mention(s string, c class) {
	h := x.hash
	if len(s) != x.size {
		h = hashOf(s)
	}
	for i := range x.mentions {
		if x.mentions[i].hash == h {
			return
		}
	}
	x.mentions = append(x.mentions, mention{hash: h, class: c, text: s})
}

// chunk finds the terms of a token: the components of a path, the names of a qualified
// name.
func (x *lexer) chunk(s string) {
	if len(s) < 3 {
		return
	}
	for s != "" {
		part := s
		if i := strings.IndexByte(s, '/'); i >= 0 {
			part, s = s[:i], s[i+1:]
		} else {
			s = ""
		}
		dot := strings.LastIndexByte(part, '.')
		switch {
		case dot < 0:
			x.name(part)
		case isNumber(part):
			if len(part) >= 3 {
				x.mention(strings.TrimPrefix(part, "v"), classNumber)
			}
		case dot > 0 && extensions[part[dot+1:]]:
			x.mention(part, classFile)
		default:
			for n := range strings.SplitSeq(part, ".") {
				x.name(n)
			}
		}
	}
}

func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "v")
	return s != "" && strings.Trim(s, ".0123456789") == ""
}

// name adds s, which has letters, digits, underscores and hyphens, if it is a term.
func (x *lexer) name(s string) {
	s = strings.Trim(s, "-_")
	if len(s) < 3 {
		return
	}
	var n [isJoint + 1]int
	hex, inner := 0, 0
	for i := range len(s) {
		c := bytesOf[s[i]]
		n[c]++
		if c == isDigit || c == isLower && s[i] <= 'f' {
			hex++
		}
		if c == isUpper && i > 0 && bytesOf[s[i-1]] == isLower {
			inner++
		}
	}
	switch {
	case n[isLower] == len(s):
		if len(s) >= 5 {
			x.mention(s, classWord)
		}
	case n[isDigit] == len(s):
		x.mention(s, classNumber)
	case hex == len(s) && n[isDigit] > 0 && len(s) >= 7:
		x.mention(s[:7], classHash)
	case n[isLower]+n[isUpper] == 0:
		if n[isDigit] >= 6 { // a date
			x.mention(s, classNumber)
		}
	case len(s) >= 4 && n[isUnder]+n[isJoint]+n[isDigit]+inner > 0:
		x.mention(s, classIdentifier)
	case n[isUpper] == 1 && bytesOf[s[0]] == isUpper:
		x.mention(s, classCapital)
	}
}

// extensions of files that agents work on. Without one, a name with a dot is a field or a
// method.
var extensions = plain.Words(`bash bat c cc cfg conf cpp cs css csv cxx dart env ex exs gif go gradle h hpp htm html
	ini ipynb java jpg js json jsonl jsx kt lock log lua md mdx mjs mod patch pdf php pl png proto ps1 py
	r rb rs rst scala scss sh sql sum svelte svg swift tar tex tf toml ts tsv tsx txt vue xml yaml yml zip zsh`)

const longestFiller = 7

// fillers are the most common words of English.
var fillers = func() table {
	out := newTable(0)
	for w := range plain.Words(`a about after all also an and any are as at be been but by can could did do does for from
		get had has have he her here how i if in into is it its just let like may me more my need no not now
		of on one only or our out over see she should so some than that the their them then there these they
		this those to up us use was we were what when where which while who will with would you your`) {
		out.number(hashOf(w))
	}
	return out
}()

// A line of more than longLine bytes is divided: a page of prose or of JSON should not be kept or lost as one. Its
// pieces have minPiece to maxPiece bytes, a sentence or two.
const (
	longLine = 320
	minPiece = 100
	maxPiece = 260
)

// pieces yields line in pieces that end where a sentence, an object, a clause or a word does, in this order of
// preference.
func pieces(line string, yield func(string)) {
	for len(line) > longLine {
		cut := cutAt(line)
		yield(line[:cut])
		line = line[cut:]
	}
	if line != "" {
		yield(line)
	}
}

func cutAt(line string) int {
	clause, word := -1, -1
	for i := minPiece; i < maxPiece; i++ {
		switch b, next := line[i-1], line[i]; {
		case (b == '.' || b == '!' || b == '?' || b == ';') && next == ' ', b == '}' && next == ',', b == '>' && next == '<', b == 'n' && line[i-2] == '\\':
			return i
		case b == ',' || b == '}' || b == ']':
			if clause < 0 || i < maxPiece*3/4 {
				clause = i
			}
		case b == ' ':
			word = i
		}
	}
	switch {
	case clause > 0:
		return clause
	case word > 0:
		return word
	}
	cut := maxPiece
	for cut > minPiece && !utf8.RuneStart(line[cut]) {
		cut--
	}
	return cut
}

// isJSON reports whether a line looks like a JSON object or array that is worth reading as
// one.
func isJSON(line string) bool {
	const least = 40
	line = strings.TrimSpace(line)
	return len(line) >= least && (line[0] == '{' && line[len(line)-1] == '}' || line[0] == '[' && line[len(line)-1] == ']') && strings.IndexByte(line, '"') >= 0
}

// flatten yields the values in the JSON object or array args, each with its key, and reports whether args is JSON.
func flatten(args string, yield func(key, text string)) bool {
	args = strings.TrimSpace(args)
	if args == "" || args[0] != '{' && args[0] != '[' || !json.Valid([]byte(args)) {
		return false
	}
	for key, leaf := range rawjson.Leaves([]byte(args)) {
		value := string(leaf)
		switch {
		case rawjson.IsObject(leaf), rawjson.IsArray(leaf):
			if bytes.ContainsAny(key, "0123456789/.") {
				yield("", string(key)+":") // a key that is not a known field introduces its value
			}
			continue
		case rawjson.IsString(leaf):
			value = rawjson.Unquote(leaf)
		}
		if key != nil {
			value = string(key) + ": " + value
		}
		yield(string(key), value)
	}
	return true
}

// hasWord reports whether there is a letter or digit in s.
func hasWord(s string) bool {
	for i := range len(s) {
		if b := s[i]; b >= 0x80 || bytesOf[b]&(isLower|isUpper|isDigit) != 0 {
			return true
		}
	}
	return false
}
