package core

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A provider's marks for omissions in a user's message. See [Shortens] for the other content of a mark.
const (
	LeftOut  = "[… left out]"
	Redacted = "[redacted]"
)

const (
	gapSign   = "…"
	markStart = "[" + gapSign
	maxMark   = 400 // bytes of a mark without paths
)

// markWords are the words that a mark may consist of. They describe the size and the place of an omission; no
// sentence that asks for anything can be made of them.
var markWords = func() map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(`
		line lines element elements message messages byte bytes b kb mb token tokens character characters word words
		image images file files document audio video attachment attachments block blocks result results text error environment summary reasoning
		a about an and at by earlier here in is it its model more newer of older one or original originals other others reasoning out same said some stale than that the this to was were what with
		call cleared content old output tool were
		above below context duplicate fit left missing omitted recall redacted removed see shortened skipped truncated window`) {
		m[w] = true
	}
	return m
}()

// Shortens reports whether after is before, visibly shortened, as the rule keep-words requires of users' texts:
// pieces of before that end at borders of words (but at [redacted]), in their order, with a mark for every omission. White space does not count, as long as there is
// some wherever before has some. A mark is
//
//   - the sign … alone,
//   - [redacted], or
//   - … in square brackets, followed by numbers, handles (h:0123456789), words of a fixed list
//     such as "22 lines left out", and any of the given paths: "[… 22 lines h:0123456789]".
//
// It has no more than 400 bytes besides paths. There is no room for other words in a mark: everything in a message of
// the user is read as the user's words. The cost is linear.
func Shortens(before, after string, paths ...string) bool {
	before, after = spaced(before), spaced(after)
	s := shortening{text: before, paths: paths}
	return before == after || s.pieces(after)
}

// spaced returns s with one blank wherever it has white space, and none at its ends.
func spaced(s string) string { return strings.Join(strings.Fields(s), " ") }

// A shortening is a search for pieces of a text.
type shortening struct {
	text  string
	at    int // end of the pieces that were found
	paths []string
	loose bool // the text is not the user's: a piece may end inside of a word, and a mark needs no sign
}

// pieces reports whether after consists of marks, and of pieces of the text between them.
func (s *shortening) pieces(after string) bool {
	from, marked := 0, ""
	for i := 0; i < len(after); {
		end := i + s.mark(after[i:])
		if end == i {
			_, n := utf8.DecodeRuneInString(after[i:])
			i += n
			continue
		}
		if !s.piece(after[from:i], marked, after[i:end]) {
			return false
		}
		from, marked, i = end, after[i:end], end
	}
	return s.piece(after[from:], marked, "")
}

// mostPlaces limits the places where a piece is looked for of which it is only a part of the words, so that the cost is linear.
const mostPlaces = 100

// piece finds the next piece, which is between two marks; empty for none. The text between it and the previous piece is missing,
// which only marks allow. Inside of a word, only a secret may be missing.
func (s *shortening) piece(p, before, after string) bool {
	if p = strings.TrimSpace(p); p == "" {
		return before != "" || after != "" || s.at == len(s.text)
	}
	at := s.at
	if after == "" {
		at = max(at, len(s.text)-len(p))
	}
	for n := 0; n < mostPlaces; n, at = n+1, at+1 {
		i := strings.Index(s.text[at:], p)
		if i < 0 || before == "" && at+i > s.at {
			return false
		}
		at += i
		if end := at + len(p); s.loose || (before == Redacted || !inWord(s.text, at)) && (after == Redacted || !inWord(s.text, end)) {
			s.at = end
			return true
		}
	}
	return false
}

// longestWord is in bytes: what is longer is a key or data.
const longestWord = 64

// inWord reports whether s must not be cut at a byte because it is inside of a word: "can" is the opposite of "cannot", and of "can't".
// In scripts without spaces between words, only what belongs to one character stays together.
func inWord(s string, at int) bool {
	left, right := s[max(0, at-longestWord):at], s[at:min(len(s), at+longestWord)]
	a, n := utf8.DecodeLastRuneInString(left)
	b, m := utf8.DecodeRuneInString(right)
	const joiner, marks = '\u200d', "'’-.,"
	if unicode.Is(unicode.M, b) || a == joiner || b == joiner {
		return n > 0
	}
	if strings.ContainsRune(marks, b) {
		b, _ = utf8.DecodeRuneInString(right[m:])
	} else if strings.ContainsRune(marks, a) {
		a, _ = utf8.DecodeLastRuneInString(left[:len(left)-n])
	}
	inside := func(r rune) bool { return r != utf8.RuneError && !unicode.IsSpace(r) }
	long := len(left)-len(strings.TrimRightFunc(left, inside))+len(right)-len(strings.TrimLeftFunc(right, inside)) >= longestWord
	return !long && ofWord(a) && ofWord(b)
}

// ofWord reports whether words consist of such runes, in a script that has spaces between them.
func ofWord(r rune) bool {
	return (r == '_' || unicode.In(r, unicode.L, unicode.N, unicode.M)) && !unicode.In(r,
		unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// mark returns the bytes of the mark that text begins with; 0 if it begins with none.
func (s *shortening) mark(text string) int {
	switch {
	case strings.HasPrefix(text, Redacted):
		return len(Redacted)
	case strings.HasPrefix(text, gapSign):
		return len(gapSign)
	case !strings.HasPrefix(text, markStart) && !(s.loose && strings.HasPrefix(text, "[")):
		return 0
	}
	in, skipped := text[1:], 1
	for _, path := range s.paths {
		// The path may have characters that end a mark.
		if path = spaced(path); path == "" {
			continue
		}
		end := strings.IndexByte(in, ']')
		if at := strings.Index(in[:min(len(in), maxMark+len(path))], path); at >= 0 && at < end && describes(in[:at]) {
			in = in[at+len(path):]
			skipped += at + len(path)
		}
	}
	end := strings.IndexByte(in[:min(len(in), maxMark)], ']')
	if end < 0 || !describes(in[:end]) {
		return 0
	}
	return skipped + end + 1
}

// describes reports whether in consists of valid content of a mark.
func describes(in string) bool {
	for w := range strings.FieldsSeq(in) {
		w = strings.Trim(w, `,;:.()"'`+gapSign)
		if w != "" && !markWords[strings.ToLower(w)] && !isNumber(w) && !isHandle(w) {
			return false
		}
	}
	return true
}

func isNumber(s string) bool { return strings.Trim(s, "0123456789,.%") == "" }

func isHandle(s string) bool {
	s, ok := strings.CutPrefix(s, "h:")
	return ok && len(s) == 10 && strings.Trim(s, "0123456789abcdef") == ""
}
