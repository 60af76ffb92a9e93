package history

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/condensehq/condense/core"
)

// A Recovery describes the part that [Decode] left out: an incomplete last line.
type Recovery struct {
	Line  int    // its number; the header is line 1
	Bytes int    // its length, a newline included
	Text  string // how it begins
}

// String describes the omission for users.
func (r *Recovery) String() string {
	return fmt.Sprintf("line %d was not completely written and is left out: %d bytes, which begin %q", r.Line, r.Bytes, r.Text)
}

// maxQuote is how many bytes of a faulty line are quoted.
const maxQuote = 60

func quote(line []byte) string {
	if len(line) > maxQuote {
		line = line[:maxQuote]
	}
	return strings.ToValidUTF8(string(line), "\uFFFD")
}

// Decode reads the output of [Encode] or a [File]. An incomplete last line without a newline is the result of a
// crash; it is left out and reported, and the journal is as it was before that record. Any other damage is an error
// with the number of the line, even a single wrong bit, unless the file is of version 1, which has no checksums. The
// length of a line is not limited.
func Decode(r io.Reader) (*Journal, *Recovery, error) {
	d := newDecoder(r)
	if err := d.run(); err != nil {
		return nil, nil, err
	}
	return d.journal, d.recovery, nil
}

type decoder struct {
	in       *bufio.Reader
	line     int
	size     int64 // bytes read
	open     bool  // the last line is complete but for its newline
	journal  *Journal
	recovery *Recovery
	repair   *repair // set to leave out damaged records
	mixed    bool    // lines with and without checksums are taken
}

func newDecoder(r io.Reader) *decoder { return &decoder{in: bufio.NewReaderSize(r, 1<<16)} }

func (d *decoder) run() error {
	for {
		data, err := d.in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("line %d: %w", d.line+1, err)
		}
		d.size += int64(len(data))
		if d.line > 0 && len(data) == 0 {
			break
		}
		d.line++
		text, ended := bytes.CutSuffix(data, []byte("\n"))
		err = d.record(text)
		switch {
		case err == nil:
			d.open = !ended
		case d.line > 1 && !ended && torn(text):
			d.recovery = &Recovery{Line: d.line, Bytes: len(data), Text: quote(text)}
		case d.repair != nil:
			d.repair.line(d, text, err)
		case d.line > 1:
			return fmt.Errorf("line %d: %w; 'condense repair' saves the rest", d.line, err)
		default:
			return fmt.Errorf("line 1: %w", err)
		}
	}
	d.journal.refresh()
	return nil
}

// torn reports whether a faulty line without a newline may be one that a crash cut off. It is
// not if it is complete, or if only its newline was replaced by another byte.
func torn(text []byte) bool {
	return len(text) > 0 && !json.Valid(text) && !json.Valid(text[:len(text)-1])
}

// last reports whether the line that was just read is the last one.
func (d *decoder) last() bool {
	_, err := d.in.Peek(1)
	return errors.Is(err, io.EOF)
}

func (d *decoder) record(text []byte) error {
	if d.line == 1 {
		return d.header(text)
	}
	text, err := d.unseal(text)
	if err != nil {
		return err
	}
	return d.bare(text)
}

// unseal checks the checksum of a line, and returns the record without it.
func (d *decoder) unseal(text []byte) ([]byte, error) {
	if d.journal.unsealed {
		return text, nil
	}
	text, sealed, err := unseal(bytes.TrimSuffix(text, []byte("\r")))
	if err == nil && !sealed && !d.mixed {
		err = fmt.Errorf("the line is damaged: it has no checksum at its end; found %q", quote(text))
	}
	return text, err
}

// bare reads a record without its checksum.
func (d *decoder) bare(text []byte) error {
	// A message is recognized without parsing the line twice: if there is one JSON value
	// between this prefix and suffix, the line is one record.
	if body, ok := bytes.CutPrefix(text, []byte(messageStart)); ok {
		if body, ok := bytes.CutSuffix(body, []byte("}")); ok {
			var m core.Message
			if m.UnmarshalJSON(body) == nil {
				return d.append(m)
			}
		}
	}
	kind, body, err := split(text)
	if err != nil {
		return err
	}
	return d.apply(kind, body)
}

// split returns the name and the body of the record in a line.
func split(text []byte) (kind string, body json.RawMessage, err error) {
	var fields map[string]json.RawMessage
	if err = unmarshal(text, &fields); err != nil {
		return "", nil, fmt.Errorf("found %q (%w); want a record such as {\"message\":…}", quote(text), err)
	}
	if len(fields) != 1 {
		names := slices.Sorted(maps.Keys(fields))
		return "", nil, fmt.Errorf("found an object with %d members [%s]; want one, the record", len(fields), quote([]byte(strings.Join(names, " "))))
	}
	for kind, body = range fields {
		break
	}
	return kind, body, nil
}

// unmarshal is json.Unmarshal with errors in terms of JSON, not of Go.
func unmarshal(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	var mismatch *json.UnmarshalTypeError
	if !errors.As(err, &mismatch) {
		return err
	}
	want := mismatch.Type.Kind().String()
	switch mismatch.Type.Kind() { //nolint:exhaustive // the others have the same name in JSON or do not occur
	case reflect.Struct, reflect.Map:
		want = "object"
	case reflect.Slice:
		want = "array"
	case reflect.Int:
		want = "integer"
	}
	if mismatch.Field != "" {
		want += " in " + mismatch.Field
	}
	return fmt.Errorf("found a JSON %s, want a JSON %s", mismatch.Value, want)
}

func (d *decoder) apply(kind string, body json.RawMessage) error {
	j := d.journal
	var ref reference
	if slices.Contains([]string{"undo", "rewind", "protect", "unprotect"}, kind) {
		if err := unmarshal(body, &ref); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	switch kind {
	case "message":
		var m core.Message
		if err := unmarshal(body, &m); err != nil {
			return fmt.Errorf("message: %w", err)
		}
		return d.append(m)
	case "condensation":
		var c Condensation
		if err := unmarshal(body, &c); err != nil {
			return fmt.Errorf("condensation: %w", err)
		}
		if d.repair != nil {
			d.repair.condensation(d, &c)
		}
		// The weaker condition: a journal that was restored from another tool's tags may hide messages that are
		// hidden already.
		if err := j.check(&c, (*node).inTimeline); err != nil {
			return err
		}
		j.apply(c)
	case "undo":
		if ref.Rewind != "" {
			r, err := j.rewindToUndo()
			if err == nil && r.to != ref.Rewind {
				err = fmt.Errorf("undo: the latest rewind is to message %q, not %q", r.to, ref.Rewind)
			}
			if err == nil {
				j.undoRewind(r)
			}
			return err
		}
		a, err := j.undoable(ref.ID)
		if err != nil {
			return err
		}
		j.undo(a)
	case "rewind":
		n, err := j.inTimeline("rewind", ref.To)
		if err != nil {
			return err
		}
		j.rewind(n, &rewound{to: ref.To})
	case "protect", "unprotect":
		n, err := j.inTimeline("protect", ref.ID)
		if err != nil {
			return err
		}
		j.protect(n, kind == "protect")
	case "condense":
		return errors.New("found a second header; a file holds one journal")
	default:
		return fmt.Errorf("found a record of kind %q; version %d of the format has message, condensation, undo, rewind, protect and unprotect", quote([]byte(kind)), version)
	}
	return nil
}

func (d *decoder) append(m core.Message) error {
	if d.repair != nil {
		d.repair.message(d, &m)
	}
	added, err := d.journal.register([]core.Message{m})
	if err != nil {
		return err
	}
	d.journal.extend(added)
	return nil
}

func (d *decoder) header(text []byte) error {
	const want = `want {"condense":{"version":2,"id":…}}, the header of a journal`
	if len(text) == 0 {
		return errors.New("found nothing; " + want)
	}
	text, sealed, err := unseal(bytes.TrimSuffix(text, []byte("\r")))
	if err != nil {
		return err
	}
	if !json.Valid(text) {
		// Never treated as the result of a crash: the file may not be a journal at all, and
		// without the header the meaning of the messages is unknown.
		if bytes.HasPrefix(text, []byte(headerStart)) && d.last() {
			return fmt.Errorf("the header is cut off after %d bytes, before anything was recorded; remove the file and begin again", len(text))
		}
		return fmt.Errorf("found %q; %s", quote(text), want)
	}
	kind, body, err := split(text)
	if err != nil || kind != "condense" {
		return fmt.Errorf("found %q; %s", quote(text), want)
	}
	// The version first: another version may have another structure.
	var v struct {
		Version int `json:"version"`
	}
	if err := unmarshal(body, &v); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	switch {
	case v.Version < 1 || v.Version > version:
		return fmt.Errorf("the journal is of version %d of the format; this program knows versions 1 to %d", v.Version, version)
	case sealed != (v.Version > 1):
		return errDamaged
	}
	var h header
	if err := unmarshal(body, &h); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	if _, err := uuid.Parse(h.ID); err != nil {
		return fmt.Errorf("header: id %q: want a UUID", quote([]byte(h.ID)))
	}
	d.journal = newJournal(h.ID)
	d.journal.unsealed = !sealed
	if h.Meta != nil {
		return d.journal.SetMeta(h.Meta)
	}
	return nil
}

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
