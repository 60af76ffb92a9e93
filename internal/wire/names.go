package wire

import (
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// escape stands before a name that could not travel as it is. No real name has it.
const escape = "\ufffdhex:"

// name returns s as the wire has it: a string of protobuf is UTF-8. [unname] is its
// inverse.
func name(s string) string {
	if utf8.ValidString(s) && !strings.HasPrefix(s, escape) {
		return s
	}
	return escape + hex.EncodeToString([]byte(s))
}

// unname returns the name that the wire has as s.
func unname(s string) string {
	if rest, ok := strings.CutPrefix(s, escape); ok {
		if b, err := hex.DecodeString(rest); err == nil {
			return string(b)
		}
	}
	return s
}

// valid makes s fit for a string of protobuf that only people read.
func valid(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
