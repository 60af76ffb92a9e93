// Package payload reads, decompresses and replaces the bodies of requests.
package payload

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/condensehq/condense/internal/live/count"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
)

// A Body is the body of a request.
type Body struct {
	Raw     []byte // as received
	Decoded []byte // raw, decompressed; the same slice if raw is not compressed; nil if it cannot be inspected
	Rest    io.Reader
	Weight  *Weight // set if the body cannot be inspected
	Hold    *Hold   // of the bytes; to be closed when they are not needed any more
}

// A Weight collects the model and the size of a body that cannot be inspected, to price it. It is written while the
// body is sent.
type Weight struct {
	Mu    sync.Mutex
	Model wire.ModelReader
	bytes int

	Counted int // tokens, if the whole body is available; else 0
}

// Weigh returns the weight of a whole body.
func Weigh(body []byte) *Weight {
	w := &Weight{}
	_, _ = w.Write(body)
	return w
}

// Write passes the next bytes of the body to the weight.
func (w *Weight) Write(p []byte) (int, error) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.bytes += len(p)
	return w.Model.Write(p)
}

// Tokens returns the estimated tokens of the body.
func (w *Weight) Tokens() int {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return cmp.Or(w.Counted, w.bytes/count.BytesPerToken)
}

// maxPacked limits how much a body above the usual size may grow by decompression. Conversations shrink to a fifth at most.
const maxPacked = 16

// Read reads the body of r, whose bytes h counts. The body is not decoded if it exceeds most bytes, before or after
// decompression, exceeds usual by a decompression to more than 16 times its size, or has an unknown encoding. Enter waits for a turn
// with so many bytes of memory; the caller ends that of a decoded body by leave. The error is a read error, or wraps [ErrFull].
func Read(r *http.Request, usual, most int64, h *Hold, enter func(size int64) (leave func())) (b *Body, leave func(), err error) {
	grow := func(n int64) error { return h.Grow(r.Context(), n) }
	var raw []byte
	if _, ok := r.Body.(*passing); ok {
		raw, err = Bytes(r)
	} else {
		raw, err = readUpTo(noted(r.Body, h), most, r.ContentLength, grow)
	}
	h.arrived(true)
	leave, b = func() {}, &Body{Raw: raw, Hold: h}
	size, encoding := int64(len(raw)), packed(r.Header.Get("Content-Encoding"))
	switch {
	case err != nil:
		return nil, leave, err
	case size > most:
		b.Weight = Weigh(raw)
		b.Rest = io.TeeReader(r.Body, b.Weight)
		return b, leave, nil
	case encoding == "":
		b.Decoded = raw
		return b, enter(size), nil
	}
	limit := min(most, max(usual, maxPacked*size))
	decode := func(to io.Writer) (int64, error) {
		defer enter(maxWindow)()
		return unpack(to, raw, encoding, limit)
	}
	// It is measured first, so that it takes the memory of its text, and none if it is not decoded.
	if size, err = decode(io.Discard); err != nil {
		b.Weight = &Weight{} // it is forwarded unchanged
		if size, _ = decode(b.Weight); size == 0 {
			b.Weight = Weigh(raw)
		}
		return b, leave, nil
	}
	if err = grow(size); err != nil { // without a turn: the body that has the capacity may wait for one
		return nil, leave, err
	}
	out := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	_, err = decode(out)
	b.Decoded = out.Bytes()
	return b, enter(size), err
}

// noted returns body so that h knows when something of it has come.
func noted(body io.ReadCloser, h *Hold) io.Reader {
	return Tap(body, func(read []byte, _ error) {
		if len(read) > 0 {
			h.arrived(false)
		}
	})
}

// Fill gives r the whole body as received. from is the client's body, for the unread rest and for Close.
func (b *Body) Fill(r *http.Request, from io.ReadCloser) {
	hold(r, b.Raw)
	if b.Rest != nil {
		r.Body, r.GetBody = ReadCloser{io.MultiReader(r.Body, b.Rest), from}, nil
	}
}

// hold sets the body of r, so that it can be sent repeatedly.
func hold(r *http.Request, body []byte) {
	r.GetBody = func() (io.ReadCloser, error) { return &passing{left: body}, nil }
	r.Body = &passing{left: body}
}

// Once returns a body that releases its bytes once they are read.
func Once(body []byte) io.ReadCloser { return &passing{left: body} }

// Bytes returns the body of r, and closes it. It makes no copy of a body that this package has set.
func Bytes(r *http.Request) ([]byte, error) {
	if p, ok := r.Body.(*passing); ok {
		body := p.left
		p.left = nil
		return body, nil
	}
	body, err := ReadUpTo(r.Body, math.MaxInt64-1, r.ContentLength)
	return body, errors.Join(err, r.Body.Close())
}

// Passing is a body that releases its bytes once they are read: the transport keeps a request until it is answered.
type passing struct{ left []byte }

// Read reads the next bytes.
func (p *passing) Read(to []byte) (int, error) {
	if len(p.left) == 0 {
		p.left = nil
		return 0, io.EOF
	}
	n := copy(to, p.left)
	p.left = p.left[n:]
	return n, nil
}

// Close does nothing: the body may still be read in the background.
func (p *passing) Close() error { return nil }

// A Patient body fails if the client sends nothing for the time of patience. If w does not support read deadlines, it
// waits.
type patient struct {
	io.ReadCloser
	w        *http.ResponseController
	patience time.Duration
}

func (p *patient) Read(to []byte) (int, error) {
	_ = p.w.SetReadDeadline(time.Now().Add(p.patience))
	n, err := p.ReadCloser.Read(to)
	if err == nil || errors.Is(err, io.EOF) { // after an error, the server must not wait for the rest
		_ = p.w.SetReadDeadline(time.Time{}) // the server reads on, to notice when the client leaves
	}
	return n, err
}

// ReadUpTo reads at most limit+1 bytes. size is the announced number of bytes, -1 if unknown: memory grows with those
// that have come.
func ReadUpTo(r io.Reader, limit, size int64) ([]byte, error) {
	return readUpTo(r, limit, size, func(int64) error { return nil })
}

// ReadHeld is ReadUpTo for bytes that h counts, as [Hold.Grow] does.
func ReadHeld(r io.ReadCloser, limit int64, h *Hold, grow func(n int64) error) ([]byte, error) {
	defer h.arrived(true)
	return readUpTo(noted(r, h), limit, -1, grow)
}

func readUpTo(r io.Reader, limit, size int64, grow func(n int64) error) ([]byte, error) {
	const first, announced = 8 << 10, 4
	var buf []byte
	for {
		if len(buf) == cap(buf) {
			next := min(max(first, 2*int64(cap(buf))), limit+1)
			// A byte more, to find the end in it. From a quarter on, the rest is sure enough not to copy all again.
			if end := size + 1; end > int64(cap(buf)) && end <= min(max(first, announced*int64(cap(buf))), limit+1) {
				next = end
			}
			if err := grow(next - int64(cap(buf))); err != nil {
				return buf, err
			}
			buf = grown(buf, int(next))
		}
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return buf, err
		case int64(len(buf)) > limit:
			return buf, nil
		}
	}
}

// outgrown are the arrays that bodies have outgrown, for the next ones: by the number of bits of their size.
var outgrown [64]sync.Pool

// grown returns buf with an array of a size, and gives its own away.
func grown(buf []byte, size int) []byte {
	to, ok := outgrown[bits.Len(uint(size))].Get().(*[]byte)
	if !ok || cap(*to) < size {
		to = new(make([]byte, 0, size))
	}
	out := append((*to)[:0:size], buf...)
	if cap(buf) <= 1<<20 {
		outgrown[bits.Len(uint(cap(buf)))].Put(&buf)
	}
	return out
}

// Decode decompresses at most limit bytes. After an error it returns the bytes decoded so far.
func Decode(raw []byte, encoding string, limit int64) ([]byte, error) {
	if packed(encoding) == "" {
		return raw, nil
	}
	var out bytes.Buffer
	_, err := unpack(&out, raw, encoding, limit)
	return out.Bytes(), err
}

// unpack writes what raw is decompressed to, up to limit bytes, and returns their number.
func unpack(to io.Writer, raw []byte, encoding string, limit int64) (int64, error) {
	from, err := Decoder(raw, encoding)
	if err != nil {
		return 0, err
	}
	defer func() { _ = from.Close() }()
	n, err := io.Copy(to, io.LimitReader(from, limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("more than %d bytes after decompression", limit)
	}
	return n, err
}

// maxWindow is the largest window in bytes that every decoder of zstd must accept (RFC 8878, 3.1.1.1.2). It is allocated
// by what the first bytes of a body say.
const maxWindow = 8 << 20

// packed returns the name of a compression; empty for none.
func packed(encoding string) string {
	if e := strings.ToLower(strings.TrimSpace(encoding)); e != "identity" {
		return e
	}
	return ""
}

// Decoder returns a reader that decompresses raw within [maxWindow] bytes of memory; nil if raw is not compressed.
func Decoder(raw []byte, encoding string) (io.ReadCloser, error) {
	from := bytes.NewReader(raw)
	switch packed(encoding) {
	case "":
		return nil, nil //nolint:nilnil // there is nothing to decompress
	case "gzip", "x-gzip":
		return gzip.NewReader(from)
	case "zstd":
		z, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	case "br":
		return io.NopCloser(brotli.NewReader(from)), nil
	case "deflate":
		return zlib.NewReader(from)
	}
	return nil, fmt.Errorf("unknown content encoding %s", plain.Clip(encoding))
}

// Replace gives a request an uncompressed body, and adjusts its headers.
func Replace(r *http.Request, body []byte) {
	hold(r, body)
	r.ContentLength = int64(len(body))
	r.TransferEncoding = nil
	r.Header.Del("Content-Encoding")
	if r.Header.Get("Content-Length") != "" {
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	}
}

// A ReadCloser reads from one reader and closes another.
type ReadCloser struct {
	io.Reader
	io.Closer
}

// Patiently returns the body of r so that a read fails if the client sends nothing for the time of patience. The server waits
// as long for what is left of a body that is not read.
func Patiently(r *http.Request, w http.ResponseWriter, patience time.Duration) io.ReadCloser {
	if _, ok := r.Body.(*passing); ok {
		return r.Body
	}
	p := &patient{r.Body, http.NewResponseController(w), patience}
	if r.ContentLength != 0 {
		_ = p.w.SetReadDeadline(time.Now().Add(patience))
	}
	return p
}

// WriteJSON answers with JSON.
func WriteJSON(w http.ResponseWriter, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

// A tapped body is heard as it is read.
type tapped struct {
	io.ReadCloser
	heard func(read []byte, err error)
}

// Read reads from the body.
func (t *tapped) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.heard(p[:n], err)
	return n, err
}

// Tap returns body so that heard is called with the bytes and the error of each read.
func Tap(body io.ReadCloser, heard func(read []byte, err error)) io.ReadCloser {
	return &tapped{body, heard}
}
