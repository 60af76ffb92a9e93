package tokens

import "unicode/utf8"

// chars4 estimates a token for every four characters, rounded up. A character is a UTF-16
// code unit, as in the length of a JavaScript string, so that the numbers agree with those
// of the tools that use this rule; most of them are written in that language. A byte that
// is not UTF-8 is one.
//
// It is 10 to 30 percent off for prose and code and counts less than half the tokens of
// logs, hexadecimal and base64, so it does not protect from overflow.
type chars4 struct{}

const unitsPerToken = 4

func (chars4) count(s string) int {
	units := 0
	for _, r := range s {
		units += utf16Units(r)
	}
	return (units + unitsPerToken - 1) / unitsPerToken
}

func (chars4) prefix(s string, n int) int {
	units := 0
	for i, r := range s {
		if units += utf16Units(r); units > n*unitsPerToken {
			return i
		}
	}
	return len(s)
}

func (chars4) suffix(s string, n int) int {
	units, i := 0, len(s)
	for i > 0 {
		r, size := utf8.DecodeLastRuneInString(s[:i])
		if units += utf16Units(r); units > n*unitsPerToken {
			break
		}
		i -= size
	}
	return i
}

// utf16Units returns 1, or 2 for a character that needs a surrogate pair.
func utf16Units(r rune) int {
	if r > 0xffff {
		return 2
	}
	return 1
}
