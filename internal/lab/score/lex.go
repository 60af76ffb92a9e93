package score

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Hashes are FNV-1a with 64 bits. Among 10 million different words or runs of words, the probability of a
// collision is 3 in a million.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func hashByte(h uint64, b byte) uint64 { return (h ^ uint64(b)) * fnvPrime }

func hashString(h uint64, s string) uint64 {
	for i := range len(s) {
		h = hashByte(h, s[i])
	}
	return h
}

func hashUint(h, v uint64) uint64 {
	h ^= v
	h *= 0x9E3779B97F4A7C15
	return h ^ h>>29
}

func hashWord(s string) uint64 {
	h := uint64(fnvOffset)
	for i := range len(s) {
		h = hashByte(h, lower(s[i]))
	}
	return h
}

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

// A word is a run of letters, digits and underscores. Dots, slashes and hyphens between two of them belong
// to it, so that a path is one word and not seven.
type word struct {
	hash       uint64 // ignoring case
	start, end int    // in the line
	plain      bool   // only lower-case ASCII letters, five or more
}

// appendWords appends the words of line. A letter of a script without spaces between words is a word of
// its own.
func appendWords(words []word, line string) []word {
	start, plain := -1, true
	h := uint64(fnvOffset)
	flush := func(end int) {
		if start >= 0 {
			words = append(words, word{hash: h, start: start, end: end, plain: plain && end-start >= 5})
		}
		start, plain, h = -1, true, fnvOffset
	}
	for i := 0; i < len(line); {
		b := line[i]
		if b < utf8.RuneSelf {
			if class[b]&isWord == 0 {
				if start >= 0 && (b == '.' || b == '/' || b == '-') && i+1 < len(line) && class[line[i+1]]&isWord != 0 {
					plain = false
					h = hashByte(h, b)
				} else {
					flush(i)
				}
			} else {
				if start < 0 {
					start = i
				}
				plain = plain && 'a' <= b && b <= 'z'
				h = hashByte(h, lower(b))
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(line[i:])
		switch {
		case alone(r):
			flush(i)
			words = append(words, word{hash: hashString(fnvOffset, line[i:i+size]), start: i, end: i + size})
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			if start < 0 {
				start = i
			}
			plain = false
			h = hashString(h, line[i:i+size])
		default:
			flush(i)
		}
		i += size
	}
	flush(len(line))
	return words
}

// alone reports whether r belongs to a script without spaces between words.
func alone(r rune) bool { return 0x2E80 <= r && r <= 0xA4CF || 0x20000 <= r && r <= 0x3FFFF }

// Classes of ASCII.
const (
	isWord   = 1 << iota // letters, digits, underscore
	isChunk              // characters of a path or an identifier
	isUpper              // A-Z
	isLower              // a-z
	isDigit              // 0-9
	isSilent             // ignored when lines are compared
)

var class = func() (t [256]uint8) {
	for b := range 256 {
		switch c := byte(b); {
		case 'a' <= c && c <= 'z':
			t[b] = isWord | isChunk | isLower
		case 'A' <= c && c <= 'Z':
			t[b] = isWord | isChunk | isUpper
		case '0' <= c && c <= '9':
			t[b] = isWord | isChunk | isDigit
		case c == '_':
			t[b] = isWord | isChunk
		}
	}
	for _, c := range []byte(`./-~@+#:\`) {
		t[c] |= isChunk
	}
	for _, c := range []byte(" \t\r\v\f\"'`{}[](),:;\\") {
		t[c] |= isSilent
	}
	return t
}()

// lineHash returns a hash of line without space, quotes, brackets and separating punctuation, so that the
// arguments of a call are the same lines as JSON and as text. It is zero if no word is left.
func lineHash(line string) uint64 {
	h, n := uint64(fnvOffset), 0
	for i := range len(line) {
		if b := line[i]; class[b]&isSilent == 0 {
			h = hashByte(h, b)
			if class[b]&isWord != 0 || b >= utf8.RuneSelf {
				n++
			}
		}
	}
	if n == 0 {
		return 0
	}
	return h
}

// functionWords are English words without content of their own: articles, pronouns, prepositions,
// conjunctions, auxiliaries, and the commonest adverbs.
var functionWords = wordSet(`
a an the this that these those each every either neither some any no all both few many much more most other another such own same
i me my mine myself we us our ours ourselves you your yours yourself he him his himself she her hers herself it its itself they them their theirs themselves
who whom whose which what where when why how there here
am is are was were be been being have has had having do does did doing done will would shall should can could may might must ought
and or but nor so yet for if then else than as because since while though although until unless whether
of in on at by to from with without within into onto upon about above below under over between among through during before after against
across along around behind beside near off out up down per via like
not only also too very just now still again already ever never always often
yes ok let lets s t re ve ll d m don doesn didn isn aren wasn weren won wouldn shouldn couldn can cannot im ive
`)

func wordSet(s string) map[uint64]struct{} {
	out := map[uint64]struct{}{}
	for w := range strings.FieldsSeq(s) {
		out[hashWord(w)] = struct{}{}
	}
	return out
}

func isFunctionWord(h uint64) bool {
	_, ok := functionWords[h]
	return ok
}
