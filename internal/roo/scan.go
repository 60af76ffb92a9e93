package roo

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// A cursor walks JSON text that is known to be valid; it checks nothing. It cuts the text
// into substrings, so what it finds is verbatim and costs no memory.
type cursor struct {
	s string
	i int
}

// space steps over white space.
func (c *cursor) space() {
	for c.i < len(c.s) && isSpace(c.s[c.i]) {
		c.i++
	}
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

// enter steps into an object or an array.
func (c *cursor) enter() {
	c.space()
	c.i++
}

// more steps to the next member or element and reports whether there is one. At the end
// it leaves the object or array.
func (c *cursor) more() bool {
	c.space()
	switch c.s[c.i] {
	case ',':
		c.i++
		c.space()
	case '}', ']':
		c.i++
		return false
	}
	return true
}

// key returns the name of the member at the cursor and steps to its value.
func (c *cursor) key() string {
	name := unquote(c.str())
	c.space()
	c.i++ // the colon
	c.space()
	return name
}

// str steps over a string and returns it with its quotes.
func (c *cursor) str() string {
	start := c.i
	for c.i++; ; c.i++ {
		c.i += strings.IndexByte(c.s[c.i:], '"')
		// The quote is escaped if an odd number of backslashes precedes it.
		j := c.i
		for c.s[j-1] == '\\' {
			j--
		}
		if (c.i-j)%2 == 0 {
			c.i++
			return c.s[start:c.i]
		}
	}
}

// value steps over the value at the cursor and returns it.
func (c *cursor) value() string {
	start := c.i
	switch c.s[c.i] {
	case '"':
		return c.str()
	case '{', '[':
		for depth := 0; ; {
			switch c.s[c.i] {
			case '"':
				c.str()
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			c.i++
			if depth == 0 {
				return c.s[start:c.i]
			}
		}
	}
	for c.i < len(c.s) && !isSpace(c.s[c.i]) && c.s[c.i] != ',' && c.s[c.i] != '}' && c.s[c.i] != ']' {
		c.i++
	}
	return c.s[start:c.i]
}

// unquote returns the text of a JSON string. What is no valid UTF-8, and a surrogate
// without its other half, becomes U+FFFD.
func unquote(token string) string {
	if text := token[1 : len(token)-1]; strings.IndexByte(text, '\\') < 0 && utf8.ValidString(text) {
		return text
	}
	var text string
	// The only possible error is bad syntax, which the token does not have.
	_ = json.Unmarshal([]byte(token), &text)
	return text
}

// lookup returns the value of a member of object, "" if it has no such member or is no
// object.
func lookup(object, name string) string {
	if kindOf(object) != kindObject {
		return ""
	}
	var found string
	for c := (cursor{s: object, i: 1}); c.more(); {
		if key := c.key(); key == name {
			found = c.value() // of members with one name, the last counts
		} else {
			c.value()
		}
	}
	return found
}
