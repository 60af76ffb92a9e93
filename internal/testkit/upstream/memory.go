package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A memory caches decoded elements of requests, and encoded strings. A client sends its whole history with every
// request: reading and writing it again each time was most of the cost of a long loop, above all under the race
// detector. Results are shared and must not be changed. It is safe for concurrent use.
type memory struct {
	mu      sync.Mutex
	decoded map[string]any
	quoted  map[string]string
}

func newMemory() *memory { return &memory{decoded: map[string]any{}, quoted: map[string]string{}} }

// decode returns the object of a body, as encoding/json reads it.
func (m *memory) decode(body []byte) (object, error) {
	// A text that begins with a NUL could be taken for a placeholder. JSON has one way to write it.
	if rest, elements := split(body); len(elements) > 0 && !bytes.Contains(body, []byte(`\u0000`)) {
		if doc, err := unmarshal(rest); err == nil {
			if doc, _ := doc.(object); m.putBack(doc, elements) {
				return doc, nil
			}
		}
	}
	var doc object
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	err := d.Decode(&doc)
	return doc, err
}

// putBack puts elements where their placeholders are. It is false if one is no JSON, or has no place: of a member
// that comes twice only the last one counts.
func (m *memory) putBack(doc object, elements [][]byte) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := len(elements)
	for _, v := range doc {
		list, _ := v.([]any)
		for i, e := range list {
			name, ok := strings.CutPrefix(text(e), placeholder)
			if !ok {
				continue
			}
			n, err := strconv.Atoi(name)
			if err != nil || n >= len(elements) {
				return false
			}
			element, ok := m.decoded[string(elements[n])]
			if !ok {
				if element, err = unmarshal(elements[n]); err != nil {
					return false
				}
				m.decoded[string(elements[n])] = element
			}
			list[i] = element
			left--
		}
	}
	return left == 0
}

// unmarshal reads one value, with nothing after it.
func unmarshal(data []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err = d.Decode(&v); err == nil && len(bytes.TrimSpace(data[d.InputOffset():])) > 0 {
		err = fmt.Errorf("%d bytes after the value", len(data)-int(d.InputOffset()))
	}
	return v, err
}

// placeholder and a number are in the place of an element.
const placeholder = "\x00element "

// split returns the objects in the arrays of a body, such as its messages, and the body with a short text in the
// place of each. If all of these are JSON, so is the body. They are nearly all of it, and most were in the previous
// request.
func split(body []byte) (rest []byte, elements [][]byte) {
	var in [2]byte // the brackets around an element
	depth, begin, done := 0, 0, 0
	for i := 0; i < len(body); i++ {
		switch c := body[i]; c {
		case '"':
			end := stringEnd(body, i)
			if end < 0 {
				return body, nil
			}
			i = end
		case '{', '[':
			if depth < len(in) {
				in[depth] = c
			} else if depth == len(in) {
				begin = i
			}
			depth++
		case '}', ']':
			if depth--; depth < 0 {
				return body, nil
			}
			if depth == len(in) && string(in[:]) == "{[" && body[begin] == '{' {
				rest = append(rest, body[done:begin]...)
				rest = fmt.Appendf(rest, `"\u0000%s%d"`, placeholder[1:], len(elements))
				elements, done = append(elements, body[begin:i+1]), i+1
			}
		}
	}
	return append(rest, body[done:]...), elements
}

// stringEnd returns the index of the quote that ends the string which begins at i, or -1.
func stringEnd(body []byte, i int) int {
	for at := i + 1; ; at++ {
		n := bytes.IndexByte(body[at:], '"')
		if n < 0 {
			return -1
		}
		at += n
		escapes := 0
		for body[at-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return at
		}
	}
}

// encode appends the result of the function encode to b.
func (m *memory) encode(b []byte, v any) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.append(b, v)
}

func (m *memory) append(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return append(b, m.quote(v)...)
	case object:
		if v == nil {
			break
		}
		b = append(b, '{')
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(append(b, m.quote(name)...), ':')
			b = m.append(b, v[name])
		}
		return append(b, '}')
	case []any:
		if v != nil {
			return appendList(b, v, m.append)
		}
	case []object:
		if v != nil {
			return appendList(b, v, func(b []byte, o object) []byte { return m.append(b, o) })
		}
	}
	return append(b, encode(v)...)
}

func appendList[E any](b []byte, list []E, one func([]byte, E) []byte) []byte {
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, v)
	}
	return append(b, ']')
}

func (m *memory) quote(s string) string {
	q, ok := m.quoted[s]
	if !ok {
		q = string(encode(s))
		m.quoted[s] = q
	}
	return q
}
