package remote

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// An event of a stream, in the sense of the HTML standard, section 9.2 "Server-sent
// events", without IDs, which no vendor of models uses.
type event struct {
	name string
	data []byte // valid until the next one is read
}

// An eventReader reads a stream of events. Lines end with LF, CR LF or CR.
type eventReader struct {
	in    *bufio.Reader
	data  []byte
	line  []byte
	begun bool // a byte order mark, if any, has been read
	cr    bool // the last line ended with CR; an LF that follows belongs to it
}

// longestLine and longestEvent are limits in bytes. Vendors send a few words in each.
const (
	longestLine  = 4 << 20
	longestEvent = 8 << 20
)

var errLongEvent = errors.New("an event of the stream is too long")

func newEventReader(r io.Reader) *eventReader { return &eventReader{in: bufio.NewReader(r)} }

// next returns the next event with data. It drops an incomplete event at the end of the stream. The error is the
// reader's, [io.EOF] at the end.
func (r *eventReader) next() (event, error) {
	var e event
	r.data = r.data[:0]
	has := false
	for {
		line, err := r.readLine()
		if err != nil {
			return event{}, err
		}
		if len(line) == 0 {
			if has {
				e.data = r.data
				return e, nil
			}
			e = event{}
			continue
		}
		field, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(field) {
		case "event":
			e.name = string(value)
		case "data":
			if has {
				r.data = append(r.data, '\n')
			}
			if has = true; len(r.data)+len(value) > longestEvent {
				return event{}, errLongEvent
			}
			r.data = append(r.data, value...)
		}
	}
}

// readLine returns the next line without its end. An incomplete last line is dropped.
func (r *eventReader) readLine() ([]byte, error) {
	if !r.begun {
		r.begun = true
		if mark, err := r.in.Peek(3); err == nil && string(mark) == "\xef\xbb\xbf" {
			_, _ = r.in.Discard(3) // it is buffered
		}
	}
	r.line = r.line[:0]
	for {
		if _, err := r.in.Peek(1); err != nil {
			return nil, err
		}
		some, _ := r.in.Peek(r.in.Buffered()) // never blocks, never fails
		if r.cr && some[0] == '\n' {
			r.cr = false
			_, _ = r.in.Discard(1)
			continue
		}
		r.cr = false
		end := bytes.IndexAny(some, "\r\n")
		part := some
		if end >= 0 {
			part = some[:end]
			r.cr = some[end] == '\r'
		}
		if len(r.line)+len(part) > longestLine {
			return nil, errLongEvent
		}
		r.line = append(r.line, part...)
		if end >= 0 {
			_, _ = r.in.Discard(end + 1)
			return r.line, nil
		}
		_, _ = r.in.Discard(len(part))
	}
}
