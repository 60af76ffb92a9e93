package transcript

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/transcript/internal/codec"
	"github.com/condensehq/condense/transcript/internal/syntax"
)

// A Document is a conversation and the file that it stood in. The zero Document with a
// Journal can be written in every format. It is not safe for concurrent use.
type Document struct {
	// Format is the name of the format that the document was read from; empty if it
	// was made from nothing.
	Format string
	// Origin is the format of the file that the conversation first stood in: what a
	// journal was imported from, else the same as Format. Written in this format, what
	// did not change is as it was in that file.
	Origin string
	// Journal holds the messages, and what condensations did to them.
	Journal *history.Journal
	// System is the system prompt where the format keeps it apart from the messages, as
	// text. It counts against the window. Written in another format, it goes along; in
	// the file's own format the prompt is written as it was.
	System string
	// Tools are the definitions of the tools, as the format has them; nil if none. They
	// too count against the window and are written in the file's own format only.
	Tools json.RawMessage
	// Model names the model that the conversation was last held with; empty if unknown.
	Model string
	// MaxOutput is the longest answer in tokens that the file, a request to a model's API,
	// asks for; 0 if it does not say.
	MaxOutput int
	// Warnings say what was repaired or ignored when the file was read.
	Warnings []Warning

	envelope codec.Envelope
}

// IsRequest reports whether the conversation came from a request to a vendor's API, whose
// model and longest answer are those of the next request too.
func (d *Document) IsRequest() bool {
	c, err := byName(d.Origin)
	return err == nil && c.Request
}

// ReadOptions adjust [Read]. A nil pointer means the defaults.
type ReadOptions struct {
	// Format is the name of the format; empty means to find out.
	Format string
	// Name of the file, for errors.
	Name string
	// MaxBytes is how many bytes are read at most, after decompression; more give a
	// [*TooLargeError]. Zero means no limit.
	MaxBytes int64
}

// Read reads r to its end and returns the conversation in it. The input may be
// compressed with gzip and may begin with a UTF-8 byte order mark. A file that is not
// what its format demands gives a [*SyntaxError].
func Read(r io.Reader, opts *ReadOptions) (*Document, error) {
	if opts == nil {
		opts = &ReadOptions{}
	}
	data, err := ReadAll(r, opts.MaxBytes)
	if err != nil {
		return nil, named(opts.Name, err)
	}
	d, err := decode(data, opts.Format)
	if bad := (*syntax.Error)(nil); errors.As(err, &bad) {
		return nil, locate(bad, opts.Name, bytes.TrimPrefix(data, codec.ByteOrderMark))
	}
	if err != nil {
		return nil, named(opts.Name, err)
	}
	return d, nil
}

// decode returns the conversation in data, which is not compressed.
func decode(data []byte, format string) (*Document, error) {
	body := bytes.TrimPrefix(data, codec.ByteOrderMark)
	c, err := choose(body, format)
	if err != nil {
		return nil, err
	}
	f := &codec.File{Origin: c.Name, Journal: history.New()}
	if err := c.Read(body, f); err != nil {
		return nil, err
	}
	if f.Origin != "" {
		if _, err := byName(f.Origin); err != nil {
			return nil, fmt.Errorf("line 1: meta: %w", err)
		}
	}
	if len(body) < len(data) && f.Origin == c.Name {
		f.Envelope.Head = append(bytes.Clone(codec.ByteOrderMark), f.Envelope.Head...)
	}
	if err := f.KeepHeader(); err != nil {
		return nil, err
	}
	return documentOf(f, c.Name), nil
}

// documentOf returns f, read from a file of the named format.
func documentOf(f *codec.File, format string) *Document {
	d := &Document{
		Format: format, Origin: f.Origin, Journal: f.Journal, System: f.System, Tools: f.Tools,
		Model: f.Model, MaxOutput: f.MaxOutput, envelope: f.Envelope,
	}
	for _, w := range f.Warnings {
		d.Warnings = append(d.Warnings, Warning(w))
	}
	return d
}

// file is the inverse of documentOf.
func (d *Document) file() (*codec.File, error) {
	f := &codec.File{
		Origin: d.Origin, Journal: d.Journal, System: d.System, Tools: d.Tools,
		Model: d.Model, MaxOutput: d.MaxOutput, Envelope: d.envelope,
	}
	if d.Origin != "" {
		origin, err := byName(d.Origin)
		if err != nil {
			return nil, err
		}
		f.Vendor = origin.Vendor
	}
	return f, nil
}

var gzipMagic = []byte("\x1f\x8b")

// ReadAll returns what r holds, decompressed if it is gzip, as [Read] reads it. If that is
// more than limit bytes, the error is a [*TooLargeError], and no more than limit bytes of
// the compressed or decompressed data were held. A limit of zero means none.
func ReadAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := readUpTo(r, limit)
	if err != nil || !bytes.HasPrefix(data, gzipMagic) {
		return data, err
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	data, err = readUpTo(z, limit)
	if err != nil && !errors.As(err, new(*TooLargeError)) {
		return nil, fmt.Errorf("gzip: after %d bytes: %w", len(data), err)
	}
	return data, err
}

// readUpTo reads r to its end. The error has what was read before it beside it, unless r has
// more than limit bytes.
func readUpTo(r io.Reader, limit int64) ([]byte, error) {
	if limit <= 0 {
		limit = math.MaxInt64 - 1
	}
	hint := sizeHint(r)
	if int64(hint) > limit {
		return nil, &TooLargeError{Limit: limit}
	}
	var b bytes.Buffer
	b.Grow(hint + bytes.MinRead)
	_, err := b.ReadFrom(io.LimitReader(r, limit+1))
	if int64(b.Len()) > limit {
		return nil, &TooLargeError{Limit: limit}
	}
	return b.Bytes(), err
}

// sizeHint returns how many bytes r will probably give; zero if that is not known.
func sizeHint(r io.Reader) int {
	const enough = 1 << 30 // to be wrong about
	switch r := r.(type) {
	case interface{ Len() int }:
		return max(0, min(r.Len(), enough))
	case *os.File:
		if info, err := r.Stat(); err == nil && info.Mode().IsRegular() {
			return int(min(info.Size(), enough))
		}
	}
	return 0
}

// named puts the name of the file before err.
func named(name string, err error) error {
	if name == "" {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// Write writes the document in the named format; empty means the one it was read from.
// Nothing is written if there is an error, unless it is one of w.
//
// In the format of its origin whatever did not change is written byte for byte; only, in
// those of the vendors' APIs (anthropic, openai), messages of the user that follow each
// other because of a condensation become one, with the content of all as it was. In
// another the result is what the vendor's API accepts, and the warnings name what was
// lost and where. These changes are made without a warning, because they lose nothing
// that a model would see: blank text is left out; where roles must take turns, messages
// in a row with the same role become one, and elsewhere what was inserted and what the
// user says beside it; results stand at once behind their calls;
// bytes that are not UTF-8 become U+FFFD.
func (d *Document) Write(w io.Writer, format string) ([]Warning, error) {
	if format == "" {
		format = d.Format
	}
	c, err := byName(format)
	if err != nil {
		return nil, err
	}
	f, err := d.file()
	if err != nil {
		return nil, err
	}
	var out codec.Output
	switch {
	case c.Write == nil:
		err = writeUnchanged(c, f, &out)
	case d.Origin == c.Name:
		err = c.Write(f, &out)
	default:
		err = c.Convert(f, &out)
	}
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", c.Name, err)
	}
	_, err = out.WriteTo(w)
	var warnings []Warning
	for _, w := range out.Warnings {
		warnings = append(warnings, Warning(w))
	}
	return warnings, err
}

// writeUnchanged writes f in the format of c, which is read only, if f comes from it and
// nothing changed.
func writeUnchanged(c *codec.Codec, f *codec.File, out *codec.Output) error {
	switch {
	case f.Origin == c.Name && f.Unchanged():
		out.Add(f.Original())
		return nil
	case f.Origin == c.Name:
		return errors.New("a conversation that was changed cannot be put back into a session of " + c.Tool +
			", which would not go on with it: choose another format for the output, or condense to keep everything")
	}
	return errors.New("sessions of " + c.Tool + " are read, not written: choose another format for the output")
}
