// Package transcript reads and writes conversations in the formats of other tools.
//
// [Read] detects the format of a file and returns a [Document]: a journal of messages, and the rest of the file.
// [Document.Write] writes it. In the file's own format every message that did not change is written byte for byte, so
// an unchanged document gives the same file. In another format the result is valid there, and losses are reported as
// a [Warning].
//
// Files are read whole. No file makes the package panic; a malformed one gives a
// [*SyntaxError] that reports the position.
package transcript

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/syntax"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// A Document is a conversation and the file that it was in. The zero Document with a Journal
// can be written in every format. It is not safe for concurrent use.
type Document struct {
	// Format is the name of the format that the document was read from; empty if it was not
	// read.
	Format string
	// Origin is the format of the first file with the conversation: for a journal the format from which it was
	// imported, otherwise the same as Format. Written in this format, unchanged content is as it was in that file.
	Origin string
	// Journal holds the messages and the condensations.
	Journal *history.Journal
	// System is the text of the system prompt, if the format keeps it apart from the messages. It counts against the
	// context window. It is written in other formats, too; in the file's own format the prompt is written unchanged.
	System string
	// Tools are the definitions of the tools, as the format has them; nil if there are none.
	// They count against the context window and are written in the file's own format only.
	Tools json.RawMessage
	// Model is the name of the model that answered last; empty if unknown.
	Model string
	// MaxOutput is the limit in tokens that a request sets for the answer; 0 if it sets none.
	MaxOutput int
	// Warnings report repairs and ignored content of the file.
	Warnings []Warning

	counts   []codec.Counted
	envelope codec.Envelope
}

// IsRequest reports whether the conversation came from a request to a vendor's API. Its model
// and MaxOutput then apply to the next request too.
func (d *Document) IsRequest() bool {
	c, err := byName(d.Origin)
	return err == nil && c.Request
}

// ReadOptions adjust [Read]. A nil pointer means the defaults.
type ReadOptions struct {
	// Format is the name of the format; empty means to detect it.
	Format string
	// Name is the name of the file, for errors.
	Name string
	// MaxBytes limits how many bytes are read, after decompression. A larger file gives a
	// [*TooLargeError]. Zero means no limit.
	MaxBytes int64
}

// Read reads r to its end and returns the conversation in it. The input may be compressed with
// gzip and may begin with a UTF-8 byte order mark. A file that is not valid in its format
// gives a [*SyntaxError].
func Read(r io.Reader, opts *ReadOptions) (*Document, error) {
	opts = cmp.Or(opts, &ReadOptions{})
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
	begins := body[rawjson.SkipSpace(body, 0):]
	if len(begins) > 0 && begins[0] != '[' && len(f.Journal.Messages()) == 0 && c.Name != "condense" && !c.Request {
		f.Warn("a session without messages: %s has nothing that was said", seen(body))
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
		Model: f.Model, MaxOutput: f.MaxOutput, counts: f.Counts, envelope: f.Envelope,
	}
	d.Warnings = append(d.Warnings, plain.Each(f.Warnings, func(w codec.Warning) Warning { return Warning(w) })...)
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

// ReadAll returns the content of r, decompressed if it is gzip, as [Read] reads it. If that is
// more than limit bytes, the error is a [*TooLargeError], and no more than limit bytes of
// compressed or decompressed data were held in memory. A limit of zero means none.
func ReadAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := readUpTo(r, limit)
	if err != nil || !bytes.HasPrefix(data, gzipMagic) {
		return data, err
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("gzip: %w", err)
	}
	size := int64(binary.LittleEndian.Uint32(data[len(data)-4:]))
	if limit > 0 {
		size = min(size, limit)
	}
	data, err = readUpTo(sized{z, int(size)}, limit)
	if err != nil && !errors.As(err, new(*TooLargeError)) {
		return nil, fmt.Errorf("gzip: after %d bytes: %w", len(data), err)
	}
	return data, err
}

// A sized reader is one that says how much it probably has, as the end of a gzip file does, modulo 2^32: room that grows step by step
// would cost several times as much memory.
type sized struct {
	io.Reader
	bytes int
}

// Len is for sizeHint.
func (s sized) Len() int { return s.bytes }

// readUpTo reads r to its end. On an error it returns the bytes before it, unless r has more than limit bytes.
func readUpTo(r io.Reader, limit int64) ([]byte, error) {
	if limit <= 0 {
		limit = math.MaxInt64 - 1
	}
	hint := sizeHint(r)
	if int64(hint) > limit {
		return nil, &TooLargeError{Limit: limit}
	}
	var b bytes.Buffer
	b.Grow(hint + 2*bytes.MinRead) // it looks for more when it has all
	_, err := b.ReadFrom(io.LimitReader(r, limit+1))
	if int64(b.Len()) > limit {
		return nil, &TooLargeError{Limit: limit}
	}
	return b.Bytes(), err
}

// sizeHint returns the probable size of r in bytes; zero if it is unknown.
func sizeHint(r io.Reader) int {
	const enough = 1 << 30 // no larger buffer is allocated on a guess
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

// named adds the name of the file to err.
func named(name string, err error) error {
	if name == "" {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// WriteOptions adjust [Document.WriteWith]. A nil pointer means the defaults.
type WriteOptions struct {
	// Format is the name of the format; empty means the format that the document was read from.
	Format string
	// Apart keeps user messages apart that a condensation made adjacent. In the formats of the
	// vendors' APIs (anthropic, openai) they become one message otherwise, because some servers
	// refuse two in a row; the vendors' own accept them. With Apart every message that is written
	// in the format of its origin and was not condensed has exactly its bytes, save for messages of the
	// system that Anthropic's API accepts in one piece only.
	Apart bool
}

// Write writes the document in the named format; empty means the format that it was read from. If it returns an error
// that is not from w, nothing was written.
//
// In the format of its origin, unchanged content is written byte for byte, with one exception: in the formats of the
// vendors' APIs (anthropic, openai), user messages that a condensation made adjacent become one message with the
// unchanged content of all: see [WriteOptions]. In another format the vendor's API accepts the result, and the
// warnings report each loss and its place. Some changes lose nothing that a model would see and give no warning:
// blank text is left out; where roles must take turns, adjacent messages of one role become one, and elsewhere
// inserted messages and adjacent user messages do; results follow their calls directly; bytes that are not UTF-8
// become U+FFFD.
func (d *Document) Write(w io.Writer, format string) ([]Warning, error) {
	return d.WriteWith(w, &WriteOptions{Format: format})
}

// WriteWith is [Document.Write] with options.
func (d *Document) WriteWith(w io.Writer, opts *WriteOptions) ([]Warning, error) {
	opts = cmp.Or(opts, &WriteOptions{})
	format := cmp.Or(opts.Format, d.Format)
	c, err := byName(format)
	if err != nil {
		return nil, err
	}
	f, err := d.file()
	if err != nil {
		return nil, err
	}
	f.Apart = opts.Apart
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
	warnings := plain.Each(out.Warnings, func(w codec.Warning) Warning { return Warning(w) })
	return warnings, err
}

// writeUnchanged writes f in the format of c, which is only read, if f comes from a file of
// that format and did not change.
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
