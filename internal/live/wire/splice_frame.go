package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/rawjson"
)

// A framing is how an answer is divided into pieces.
type framing int

const (
	inWhole  framing = iota
	inEvents         // server-sent events
	inArray          // elements of a JSON array
	inFrames         // AWS's binary frames
)

// frameOf returns the framing of an answer that begins with a character, whatever its content type says.
func (s *Splice) frameOf(first byte) framing {
	switch {
	case first == 0 && s.d.reply.frames: // of a length
		return inFrames
	case s.d.Arrays && first == '[':
		return inArray
	case strings.IndexByte("{[<", first) < 0:
		return inEvents
	}
	return inWhole
}

// end returns the length of the first piece of data with its separator; 0 if the piece is incomplete.
func (f framing) end(data []byte) int {
	switch f {
	case inArray:
		at := len(data) - len(bytes.TrimLeft(data, separators))
		switch {
		case at == len(data):
			return 0
		case data[at] == '{':
			return max(0, rawjson.SkipValue(data, at))
		}
		return at + 1
	case inFrames:
		return frameEnd(data)
	case inWhole, inEvents:
	}
	return eventEnd(data)
}

// separators are between the elements of an array.
const separators = " \t\r\n,["

// An sseEvent is an event of a stream.
type sseEvent struct {
	raw, data []byte
	frame     *amazonEvent // that data was in
}

// read fills in the data of a piece of an API's stream.
func (e *sseEvent) read(d *Dialect, f framing) {
	switch f {
	case inFrames:
		if e.frame = readFrame(d, e.raw); e.frame != nil {
			e.data = e.frame.data
		}
		return
	case inArray:
		e.data = bytes.TrimLeft(e.raw, separators)
		return
	case inWhole, inEvents:
	}
	for line := range bytes.Lines(bytes.ReplaceAll(e.raw, []byte("\r"), []byte("\n"))) {
		if value, ok := bytes.CutPrefix(bytes.TrimRight(line, "\n"), []byte("data:")); ok {
			if e.data != nil {
				e.data = append(e.data, '\n')
			}
			e.data = append(e.data, bytes.TrimPrefix(value, []byte(" "))...)
		}
	}
}

// with returns the event with other data; nil is none.
func (e *sseEvent) with(data []byte) []byte {
	if data == nil {
		return nil
	}
	if bytes.Equal(data, e.data) {
		return e.raw
	}
	if e.frame != nil {
		return e.frame.with(data)
	}
	var out []byte
	for line := range bytes.Lines(bytes.ReplaceAll(e.raw, []byte("\r"), []byte("\n"))) {
		if len(bytes.TrimSpace(line)) > 0 && !bytes.HasPrefix(line, []byte("data:")) {
			out = append(out, line...)
		}
	}
	end := "\n\n"
	if bytes.HasSuffix(e.raw, []byte("\r\n\r\n")) { // some clients look for one of both
		end = "\r\n\r\n"
	}
	return slices.Concat(out, []byte("data: "), data, []byte(end))
}

// render returns a piece of the client's stream with data; nil is none.
func (s *Splice) render(e sseEvent, data []byte) []byte {
	switch {
	case data == nil:
		s.gap = true
		return nil
	case s.frame == inArray:
		s.listed++
		if e.raw != nil && bytes.Equal(data, e.data) && s.rounds == 0 && !s.gap {
			return e.raw
		}
		return slices.Concat([]byte(map[bool]string{true: "[", false: ",\r\n"}[s.listed == 1]), data)
	case e.raw == nil && s.crlf:
		e.raw = []byte("\r\n\r\n")
	}
	return e.with(data)
}

// close returns the end of an array.
func (s *Splice) close() []byte {
	switch {
	case s.frame != inArray:
		return nil
	case s.listed == 0:
		return []byte("[]")
	}
	return []byte("]")
}

// eventEnd returns the length of the first event of data with the empty line after it; 0 if it has not ended.
func eventEnd(data []byte) int {
	for at := 0; ; {
		n := lineEnd(data[at:])
		rest := data[at+n:]
		if len(rest) == 0 || string(rest) == "\r" { // a line feed may follow
			return 0
		}
		at += n + 1
		if bytes.HasPrefix(rest, []byte("\r\n")) {
			at++
		}
		if n == 0 {
			return at
		}
	}
}

// event reads an event and appends the client's version of it to out.
func (s *Splice) event(out []byte, e sseEvent) []byte {
	e.read(s.d, s.frame)
	s.crlf = s.crlf || bytes.HasSuffix(e.raw, []byte("\r\n\r\n"))
	if s.frame == inArray && string(e.data) == "]" {
		if s.closed = true; s.held() {
			return out
		}
		return append(out, e.raw...)
	}
	if s.over || s.ended || e.data == nil {
		if s.over || s.ended {
			return out // nothing follows the end
		}
		return append(out, e.raw...)
	}
	if done := string(bytes.TrimSpace(e.data)) == "[DONE]"; !done && !json.Valid(e.data) || s.frame == inArray && !rawjson.IsObject(e.data) {
		return append(out, e.raw...)
	}
	if s.kind = ""; e.frame != nil {
		s.kind = e.frame.kind
	}
	data, hold := s.d.reply.event(s, e.data)
	if divide := s.d.reply.divide; hold && divide != nil {
		if early, late := divide(data); early != nil {
			out, data = append(out, s.render(e, early)...), late
		}
	}
	if hold {
		if s.frame == inEvents || s.frame == inFrames {
			e.raw = e.with(data)
		}
		s.tail = append(s.tail, sseEvent{e.raw, data, e.frame})
		return out
	}
	return append(out, s.render(e, data)...)
}
