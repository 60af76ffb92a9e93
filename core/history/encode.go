package history

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// version is the version of the format. It changes when a program for the previous version
// would misread a file, or refuse it without a good reason. An additional field in a record
// is not such a change. Version 1 had no checksums.
const version = 2

type header struct {
	Version int             `json:"version"`
	ID      string          `json:"id"`
	Meta    json.RawMessage `json:"meta,omitempty"`
}

// reference is the body of the records that only refer to something.
type reference struct {
	ID     string `json:"id,omitempty"`     // undo: the condensation; protect, unprotect: the message
	Rewind string `json:"rewind,omitempty"` // undo: the message that a rewind went back to
	To     string `json:"to,omitempty"`     // rewind: the message
}

// Encode writes the log of j as JSON, one record a line:
//
//	{"condense":{"version":2,"id":UUID,"meta":…},"crc":…}    the header
//	{"message":{…},"crc":…}                                  see [core.Message.MarshalJSON]
//	{"condensation":{…},"crc":…}                             see [Condensation]
//	{"undo":{"id":…},"crc":…}                                of a condensation
//	{"undo":{"rewind":…},"crc":…}                            of the rewind to that message
//	{"rewind":{"to":…},"crc":…}
//	{"protect":{"id":…},"crc":…}                             and "unprotect"
//
// The checksum is the CRC-32C (Castagnoli) of the line up to the comma before it, as eight
// lower-case hexadecimal digits. The log has all records in the order of the events: [Decode]
// returns a journal equal to j, and encoding that gives the same bytes.
func Encode(w io.Writer, j *Journal) error {
	if _, err := w.Write(appendHeader(nil, j.id, j.meta)); err != nil {
		return err
	}
	var b []byte
	for _, r := range j.log {
		var err error
		b, err = appendRecord(b[:0], r, true)
		if err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// appendRecord appends the line of a record, with its checksum if it is sealed.
func appendRecord(b []byte, r record, sealed bool) ([]byte, error) {
	start := len(b)
	begin, id := `{"rewind":{"to":`, "" // of a record that only refers to something
	switch {
	case r.message != nil:
		m := &r.message.message
		data, err := m.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("message %q: %w", m.ID, err)
		}
		b = append(append(b, messageStart...), data...)
	case r.condensation != nil:
		c := &r.condensation.Condensation
		var err error
		if b, err = appendJSON(append(b, `{"condensation":`...), c); err != nil {
			return nil, fmt.Errorf("condensation %q: %w", c.ID, err)
		}
	case r.undo != "":
		begin, id = `{"undo":{"id":`, r.undo
	case r.undoRewind != nil:
		begin, id = `{"undo":{"rewind":`, r.undoRewind.to
	case r.protect != "":
		begin, id = `{"protect":{"id":`, r.protect
	case r.unprotect != "":
		begin, id = `{"unprotect":{"id":`, r.unprotect
	default:
		id = r.rewind.to
	}
	if r.message == nil && r.condensation == nil {
		b = append(appendString(append(b, begin...), id), '}')
	}
	if sealed {
		return seal(b, start), nil
	}
	return append(b, "}\n"...), nil
}

// messageStart is how the line of a message begins.
const messageStart = `{"message":`

func appendHeader(b []byte, id string, meta json.RawMessage) []byte {
	// Not by an encoder: it would write invalid UTF-8 as base64, and escape more than
	// necessary.
	start := len(b)
	b = append(b, headerStart+`"version":`...)
	b = fmt.Append(b, version)
	b = append(b, `,"id":`...)
	b = appendString(b, id)
	if meta != nil {
		b = append(b, `,"meta":`...)
		b = append(b, meta...)
	}
	return seal(append(b, '}'), start)
}

// headerStart is how every journal begins.
const headerStart = `{"condense":{`

// sealForm is the end of every line that has a checksum.
const (
	sealStart = `,"crc":"`
	sealEnd   = `"}`
	sealSize  = len(sealStart) + 8 + len(sealEnd)
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal appends the checksum of the line that begins at start.
func seal(b []byte, start int) []byte {
	b = appendSeal(b, crc32.Checksum(b[start:], castagnoli))
	return append(b, '\n')
}

func appendSeal(b []byte, sum uint32) []byte {
	b = hex.AppendEncode(append(b, sealStart...), binary.BigEndian.AppendUint32(nil, sum))
	return append(b, sealEnd...)
}

// unseal returns a record without its checksum. It reports false if the line has none. It
// may change text.
func unseal(text []byte) (record []byte, sealed bool, err error) {
	end := len(text) - sealSize
	if end < 0 || !bytes.HasPrefix(text[end:], []byte(sealStart)) || !bytes.HasSuffix(text, []byte(sealEnd)) {
		return text, false, nil
	}
	want := appendSeal(make([]byte, 0, sealSize), crc32.Checksum(text[:end], castagnoli))
	if !bytes.Equal(want, text[end:]) {
		return nil, true, errDamaged
	}
	text[end] = '}'
	return text[:end+1], true, nil
}

// errDamaged means that a line was modified after it was written.
var errDamaged = errors.New("the line is damaged: it does not have its checksum")

func appendJSON(b []byte, v any) ([]byte, error) {
	buf := bytes.NewBuffer(b)
	e := json.NewEncoder(buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return buf.Bytes()[:buf.Len()-1], nil // the encoder ends the line
}

func appendString(b []byte, s string) []byte {
	b, _ = appendJSON(b, s) // a string cannot fail
	return b
}
