package core

import (
	"strings"
	"unicode/utf8"

	"github.com/condensehq/condense/internal/plain"
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
var markWords = plain.Words(`
		line lines element elements message messages byte bytes b kb mb token tokens character characters word words
		image images file files document audio video attachment attachments block blocks result results text error environment summary reasoning
		a about an and at by earlier here in is it its model more newer of older one or original originals other others reasoning out same said some stale than that the this to was were what with
		call cleared content old output tool were
		above below context duplicate fit left missing omitted recall redacted removed see shortened skipped truncated window`)

// Shortens reports whether after is before, visibly shortened, as the rule keep-words requires of users' texts:
// pieces of before, in their order, with a mark for every omission. White space does not count, as long as there is
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
	if before == after {
		return true
	}
	s := shortening{rest: before, paths: paths}
	_, ok := s.pieces(after, false)
	return ok
}

// spaced returns s with one blank wherever it has white space, and none at its ends.
func spaced(s string) string { return strings.Join(strings.Fields(s), " ") }

// A shortening is a search for pieces of a text.
type shortening struct {
	rest  string // after the pieces that were found
	paths []string
}

// pieces reports whether text consists of marks, and of pieces of the rest between them, and whether it has a mark. If it is only
// a part of a text, more may be missing at its ends.
func (s *shortening) pieces(text string, part bool) (marked, ok bool) {
	from := 0
	for i := 0; i < len(text); {
		end := i + s.mark(text[i:])
		if end == i {
			_, n := utf8.DecodeRuneInString(text[i:])
			i += n
			continue
		}
		if !s.piece(text[from:i], part || marked, true) {
			return marked, false
		}
		from, marked, i = end, true, end
	}
	return marked, s.piece(text[from:], part || marked, part)
}

// piece finds the next piece. The text between it and the previous piece is missing, which only marks allow.
func (s *shortening) piece(p string, markBefore, markAfter bool) bool {
	p = strings.TrimSpace(p)
	if p == "" {
		return markBefore || markAfter || s.rest == ""
	}
	at := 0
	switch {
	case !markBefore && !markAfter:
		return p == s.rest
	case !markBefore:
		if !strings.HasPrefix(s.rest, p) {
			return false
		}
	case !markAfter:
		return strings.HasSuffix(s.rest, p)
	default:
		if at = strings.Index(s.rest, p); at < 0 {
			return false
		}
	}
	s.rest = s.rest[at+len(p):]
	return true
}

// mark returns the bytes of the mark that text begins with; 0 if it begins with none.
func (s *shortening) mark(text string) int {
	switch {
	case strings.HasPrefix(text, Redacted):
		return len(Redacted)
	case strings.HasPrefix(text, gapSign):
		return len(gapSign)
	case !strings.HasPrefix(text, markStart):
		return 0
	}
	in, skipped := text[len(markStart):], len(markStart)
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
