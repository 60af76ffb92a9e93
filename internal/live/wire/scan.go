package wire

import (
	"bytes"

	"github.com/condensehq/condense/internal/rawjson"
)

// A leafScanner reads JSON in pieces of any size and reports the wanted strings, numbers and words. They are selected
// by path: the names of the members that lead to them, joined with dots. Elements of an array have the path of the
// array. The scanner stores the path and one value, cut at longestValue, so its memory is bounded. It reads vendors'
// output, so it does not check the syntax.
type leafScanner struct {
	wanted func(path []byte) bool
	leaf   func(path []byte, value string)

	path   []byte
	frames []frame // of the objects and arrays around, up to deepestFrame
	deeper int     // the number of open containers that are not in frames
	text   bool    // within a string
	escape bool    // after a backslash in it
	word   bool    // within a number or a word
	key    bool    // the string is the name of a member
	keep   bool    // the value is wanted
	value  []byte  // with its first quote if it is a string
	size   int     // of the value, without the cut
	ended  bool    // the outermost value has ended
}

// A frame is an object or an array.
type frame struct {
	object bool
	names  bool // the next string is the name of a member
	path   int  // length of its own path
}

const (
	deepestFrame = 8
	longestValue = 4 << 10
)

// reset begins another text.
func (s *leafScanner) reset() {
	s.path, s.frames, s.value = s.path[:0], s.frames[:0], s.value[:0]
	s.deeper, s.text, s.escape, s.word, s.ended = 0, false, false, false, false
}

// write reads the next piece.
func (s *leafScanner) write(data []byte) {
	for i := 0; i < len(data); {
		switch {
		case s.escape:
			s.add(data[i : i+1])
			s.escape = false
			i++
		case s.text:
			end := special(data, i)
			s.add(data[i:end])
			if i = end; i == len(data) {
				return
			}
			switch data[i] {
			case '"':
				s.text = false
				s.finish()
			default:
				s.escape = data[i] == '\\'
				s.add(data[i : i+1])
			}
			i++
		default:
			s.structure(data[i])
			i++
		}
	}
}

// end ends the text.
func (s *leafScanner) end() {
	if s.word {
		s.word = false
		s.finish()
	}
}

// add appends to the value.
func (s *leafScanner) add(piece []byte) {
	if s.keep {
		s.size += len(piece)
		s.value = append(s.value, piece[:min(len(piece), longestValue-len(s.value))]...)
	}
}

// structure reads a byte outside of strings.
func (s *leafScanner) structure(c byte) {
	switch c {
	case '{', '[', '}', ']', ',', ':', ' ', '\t', '\r', '\n', '"':
		s.end()
	default:
		if !s.word {
			s.word = true
			s.begin()
		}
		s.add([]byte{c})
		return
	}
	if s.deeper > 0 {
		switch c {
		case '{', '[':
			s.deeper++
		case '}', ']':
			s.deeper--
		case '"':
			s.text, s.key, s.keep = true, false, false
		}
		return
	}
	n := len(s.frames)
	switch c {
	case '{', '[':
		if n == deepestFrame {
			s.deeper++
			return
		}
		s.frames = append(s.frames, frame{object: c == '{', names: c == '{', path: len(s.path)})
	case '}', ']':
		if n == 0 {
			return
		}
		s.frames = s.frames[:n-1]
		if s.ended = n == 1; s.ended { // another one may follow, on its own line
			s.path = s.path[:0]
		}
		s.leave()
	case ',':
		s.leave()
	case '"':
		s.text = true
		if s.key = n > 0 && s.frames[n-1].names; s.key {
			s.value, s.keep = append(s.value[:0], '"'), true
			return
		}
		s.begin()
		s.add([]byte{'"'})
	}
}

// begin begins a string that is no name, a number or a word.
func (s *leafScanner) begin() {
	s.key, s.value, s.size = false, s.value[:0], 0
	s.keep = s.deeper == 0 && s.wanted(s.path)
}

// leave goes back to the path of the innermost object or array.
func (s *leafScanner) leave() {
	if n := len(s.frames); n > 0 {
		f := &s.frames[n-1]
		f.names = f.object
		s.path = s.path[:f.path]
	}
}

// finish ends a string, a number or a word.
func (s *leafScanner) finish() {
	if !s.keep {
		return
	}
	s.keep = false
	value := s.value
	if bytes.HasPrefix(value, []byte{'"'}) {
		if value = value[1:]; bytes.IndexByte(value, '\\') >= 0 {
			value = []byte(rawjson.Unquote(append(s.value, '"')))
		}
	}
	if !s.key {
		s.leaf(s.path, string(value))
		return
	}
	f := &s.frames[len(s.frames)-1]
	f.names = false
	if s.path = s.path[:f.path]; f.path > 0 {
		s.path = append(s.path, '.')
	}
	s.path = append(s.path, value...)
}
