package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/bits"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/condensehq/condense/internal/rawjson"
)

// deepest is the limit of nesting that encoding/json has too.
const deepest = 10000

// value reads the value at p.at, which is at a place.
func (p *parser) value(at place) bool {
	switch p.peek() {
	case '{':
		return p.nested(at, p.object)
	case '[':
		return p.nested(at, p.array)
	case '"':
		if at == inMessages && p.d.read.loose {
			return p.input()
		}
		from := len(p.buf)
		if _, ok := p.text(at); !ok {
			return false
		}
		if at == inContent || at == inResult { // one text block
			p.list(from)
		}
		return true
	case 0:
		return p.fail("unexpected end")
	}
	return p.literal(at)
}

func (p *parser) nested(at place, read func(place) bool) bool {
	if p.depth++; p.depth > deepest {
		return p.fail("nested too deeply")
	}
	ok := read(at)
	p.depth--
	return ok
}

// object reads the object at p.at.
func (p *parser) object(at place) bool {
	from, first := len(p.buf), len(p.members)
	p.at++
	for p.space(); p.peek() != '}'; p.space() {
		if p.peek() != '"' {
			return p.fail("want the name of a member")
		}
		raw, ok := p.text(ignored)
		if !ok {
			return false
		}
		key := raw[1 : len(raw)-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			key = []byte(rawjson.Unquote(raw))
		}
		if p.space(); p.peek() != ':' {
			return p.fail("want a colon")
		}
		p.at++
		p.space()
		m := member{key: key, from: len(p.buf)}
		start := p.at
		p.gone = false
		where := p.of(at, key)
		if at == inRequest || at == inMessage && where == inContent {
			p.m = Message{} // the last one counts
		}
		if where == inMessages {
			p.r.begin, p.r.end, p.r.Messages = -1, -1, nil
		}
		if !p.value(where) {
			return false
		}
		m.raw, m.gone, m.mid = p.data[start:p.at:p.at], p.gone, len(p.buf)
		if at == inRequest {
			p.head[where].sum, p.head[where].ttls = sha256.Sum256(p.buf[m.from:]), p.m.ttls
			p.buf = p.buf[:m.from]
		} else if at != ignored {
			p.buf = append(p.buf, key...)
			p.finish(m.mid, 's', len(key))
		}
		m.end = len(p.buf)
		p.members = append(p.members, m)
		if !p.comma('}') {
			return false
		}
	}
	p.at++
	own := p.members[first:]
	p.gone = false
	if at == inRequest {
		p.request(own)
	} else if at != ignored {
		own = p.last(own)
		p.read(at, own)
		p.write(at, own, from)
	}
	p.members = p.members[:first]
	return true
}

// array reads the array at p.at.
func (p *parser) array(at place) bool {
	from, n := len(p.buf), 0
	if at == inMessages {
		return p.messages()
	}
	each, ok := elements[at]
	if !ok {
		each = ordinary
	}
	p.at++
	for p.space(); p.peek() != ']'; p.space() {
		start, begin := p.at, len(p.buf)
		p.gone = false
		if !p.value(each) {
			return false
		}
		if each == inBlock && p.data[start] != '{' {
			p.broken(noBlock)
		}
		if p.gone && (each == inBlock || each == inTool) {
			p.buf = p.buf[:begin]
		} else {
			n++
		}
		if !p.comma(']') {
			return false
		}
	}
	p.at++
	if p.gone = false; at != ignored {
		p.finish(from, 'a', n)
	}
	return true
}

// comma reads the comma after a value unless end follows.
func (p *parser) comma(end byte) bool {
	if p.space(); p.peek() == end {
		return true
	}
	if p.peek() != ',' {
		return p.fail("want a comma or " + string(end))
	}
	p.at++
	if p.space(); p.peek() == end {
		return p.fail("unexpected " + string(end))
	}
	return true
}

// literal reads the number or the word at p.at.
func (p *parser) literal(at place) bool {
	start := p.at
	for p.at < len(p.data) && strings.IndexByte("+-.0123456789Eaeflnrstu", p.data[p.at]) >= 0 {
		p.at++
	}
	word := p.data[start:p.at]
	if !json.Valid(word) {
		p.at = start
		return p.fail("want a JSON value")
	}
	if at != ignored {
		from := len(p.buf)
		p.buf = append(p.buf, word...)
		p.finish(from, 'n', len(word))
	}
	return true
}

// text reads the string at p.at and returns it with its quotes. Its canonical form is the text, in
// UTF-8 unless the body is not, with halves of surrogate pairs encoded like other characters.
func (p *parser) text(at place) (raw []byte, ok bool) {
	start, from, keep := p.at, len(p.buf), at != ignored
	for p.at++; ; {
		begin := p.at
		p.at = special(p.data, begin)
		if keep {
			p.buf = append(p.buf, p.data[begin:p.at]...)
		}
		switch p.peek() {
		case '"':
			p.at++
			raw = p.data[start:p.at]
			if keep {
				p.gone = (at == inText || at == inContent) && p.drop(from)
				p.finish(from, 's', len(p.buf)-from)
			}
			return raw, true
		case '\\':
			if !p.escape(keep) {
				return nil, p.fail("invalid escape in a string")
			}
		default:
			if p.at == len(p.data) {
				return nil, p.fail("unexpected end in a string")
			}
			return nil, p.fail("control character in a string")
		}
	}
}

// escape reads the escape at p.at.
func (p *parser) escape(keep bool) bool {
	if p.at+1 < len(p.data) && escaped[p.data[p.at+1]] != 0 {
		if keep {
			p.buf = append(p.buf, escaped[p.data[p.at+1]])
		}
		p.at += 2
		return true
	}
	r, size := rawjson.Hex4(p.data[p.at:]), 6
	if r < 0 {
		return false
	}
	if utf16.IsSurrogate(r) {
		if pair := utf16.DecodeRune(r, rawjson.Hex4(p.data[p.at+size:])); pair != utf8.RuneError {
			r, size = pair, 12
		}
	}
	if p.at += size; keep {
		p.buf = appendRune(p.buf, r)
	}
	return true
}

// escaped are the characters that a letter after a backslash means.
var escaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// appendRune appends r, which may be half of a surrogate pair: two texts that differ in one must not
// have the same hash.
func appendRune(out []byte, r rune) []byte {
	if utf16.IsSurrogate(r) {
		return append(out, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0xBF, 0x80|byte(r)&0xBF)
	}
	return append(out, string(r)...)
}

// special returns the index from i on of the first byte that is a quote, a backslash or a control
// character. It looks at eight bytes at a time.
func special(data []byte, i int) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(data); i += 8 {
		w := binary.LittleEndian.Uint64(data[i:])
		quote, slash := w^ones*'"', w^ones*'\\'
		if found := ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*' ')&^w) & high; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(data); i++ {
		if c := data[i]; c == '"' || c == '\\' || c < ' ' {
			return i
		}
	}
	return i
}

func (p *parser) space() { p.at = rawjson.SkipSpace(p.data, p.at) }

// peek returns the next byte, or 0.
func (p *parser) peek() byte {
	if p.at < len(p.data) {
		return p.data[p.at]
	}
	return 0
}

// fail records the first fault.
func (p *parser) fail(what string) bool {
	if p.err == nil {
		p.err = fmt.Errorf("byte %d: %s", p.at, what)
	}
	return false
}
