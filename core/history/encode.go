package history

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/condensehq/condense/core"
)

// version is that of the format. It changes when a program that knows the former one
// would misunderstand a file; a field more in a record is not such a change.
const version = 1

type header struct {
	Version int             `json:"version"`
	ID      string          `json:"id"`
	Meta    json.RawMessage `json:"meta,omitempty"`
}

// reference is the body of the records that only name something.
type reference struct {
	ID string `json:"id,omitempty"` // undo: the condensation
	To string `json:"to,omitempty"` // rewind: the message
}

// Encode writes the log of j as JSON, one record a line:
//
//	{"condense":{"version":1,"id":UUID,"meta":…}}    the header
//	{"message":{…}}                                  see [core.Message.MarshalJSON]
//	{"condensation":{…}}                             see [Condensation]
//	{"undo":{"id":…}}
//	{"rewind":{"to":…}}
//
// Records stand in the order in which things happened, and none is left out: what
// [Decode] makes of them is j, and encoding that gives the same bytes.
func Encode(w io.Writer, j *Journal) error {
	if _, err := w.Write(appendHeader(nil, j.id, j.meta)); err != nil {
		return err
	}
	var b []byte
	for _, r := range j.log {
		var err error
		b, err = appendRecord(b[:0], r)
		if err != nil {
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

func appendRecord(b []byte, r record) ([]byte, error) {
	switch {
	case r.message != nil:
		return appendMessage(b, &r.message.message)
	case r.condensation != nil:
		return appendCondensation(b, &r.condensation.Condensation)
	case r.undo != "":
		return appendUndo(b, r.undo), nil
	default:
		return appendRewind(b, r.rewind), nil
	}
}

func appendHeader(b []byte, id string, meta json.RawMessage) []byte {
	// By hand: an encoder would make base64 of invalid UTF-8, or escape what need not be.
	b = append(b, headerStart+`"version":`...)
	b = fmt.Append(b, version)
	b = append(b, `,"id":`...)
	b = appendString(b, id)
	if meta != nil {
		b = append(b, `,"meta":`...)
		b = append(b, meta...)
	}
	return append(b, "}}\n"...)
}

// headerStart is how every journal begins.
const headerStart = `{"condense":{`

func appendMessages(b []byte, messages []core.Message) ([]byte, error) {
	var err error
	for i := range messages {
		if b, err = appendMessage(b, &messages[i]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func appendMessage(b []byte, m *core.Message) ([]byte, error) {
	data, err := m.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("message %q: %w", m.ID, err)
	}
	b = append(b, messageStart...)
	b = append(b, data...)
	return append(b, "}\n"...), nil
}

const messageStart = `{"message":`

func appendCondensation(b []byte, c *Condensation) ([]byte, error) {
	buf := bytes.NewBuffer(b)
	buf.WriteString(`{"condensation":`)
	e := json.NewEncoder(buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(c); err != nil {
		return nil, fmt.Errorf("condensation %q: %w", c.ID, err)
	}
	buf.Truncate(buf.Len() - 1) // the encoder ends the line
	buf.WriteString("}\n")
	return buf.Bytes(), nil
}

func appendUndo(b []byte, id string) []byte {
	b = append(b, `{"undo":{"id":`...)
	return append(appendString(b, id), "}}\n"...)
}

func appendRewind(b []byte, to string) []byte {
	b = append(b, `{"rewind":{"to":`...)
	return append(appendString(b, to), "}}\n"...)
}

func appendString(b []byte, s string) []byte {
	buf := bytes.NewBuffer(b)
	e := json.NewEncoder(buf)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string and a buffer: neither can fail
	return buf.Bytes()[:buf.Len()-1]
}
