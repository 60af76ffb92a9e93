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

// mostPacked limits how much a body above the usual size may grow by decompression. Conversations shrink to a fifth at most.
const mostPacked = 16

// Read reads the body of r. The body is not decoded if it exceeds most bytes, before or after decompression, exceeds
// usual by a decompression to more than 16 times its size, or has an unknown encoding. The error is a read error.
func Read(r *http.Request, usual, most int64) (*Body, error) {
	raw, err := ReadUpTo(r.Body, most, r.ContentLength)
	if err != nil {
		return nil, err
	}
	b := &Body{Raw: raw}
	encoding := r.Header.Get("Content-Encoding")
	if int64(len(raw)) > most {
		b.Weight = Weigh(raw)
		b.Rest = io.TeeReader(r.Body, b.Weight)
		return b, nil
	}
	decoded, err := Decode(raw, encoding, min(most, max(usual, mostPacked*int64(len(raw)))))
	if err == nil {
		b.Decoded = decoded
		return b, nil
	}
	if len(decoded) == 0 {
		decoded = raw
	}
	b.Weight = Weigh(decoded) // it is forwarded unchanged
	return b, nil
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

// ReadUpTo reads at most limit+1 bytes. size is the expected number of bytes, -1 if unknown.
func ReadUpTo(r io.Reader, limit, size int64) ([]byte, error) {
	var buf bytes.Buffer
	if size >= 0 && size <= limit {
		const spare = bytes.MinRead // otherwise the last read would double the buffer
		buf.Grow(int(size) + spare)
	}
	_, err := buf.ReadFrom(io.LimitReader(r, limit+1))
	return buf.Bytes(), err
}

// Decode decompresses at most limit bytes. After an error it returns the bytes decoded so far.
func Decode(raw []byte, encoding string, limit int64) ([]byte, error) {
	from, err := Decoder(raw, encoding, limit)
	switch {
	case err != nil:
		return nil, err
	case from == nil:
		return raw, nil
	}
	defer func() { _ = from.Close() }()
	out, err := ReadUpTo(from, limit, -1)
	if err == nil && int64(len(out)) > limit {
		err = fmt.Errorf("more than %d bytes after decompression", limit)
	}
	return out, err
}

// Decoder returns a reader that decompresses raw within limit bytes of memory; nil if raw is not compressed.
func Decoder(raw []byte, encoding string, limit int64) (io.ReadCloser, error) {
	from := bytes.NewReader(raw)
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return nil, nil //nolint:nilnil // there is nothing to decompress
	case "gzip", "x-gzip":
		return gzip.NewReader(from)
	case "zstd":
		z, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(limit)+1))
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

// Patiently returns body so that a read fails if the client sends nothing for the time of patience.
func Patiently(body io.ReadCloser, w http.ResponseWriter, patience time.Duration) io.ReadCloser {
	return &patient{body, http.NewResponseController(w), patience}
}

// WriteJSON answers with JSON.
func WriteJSON(w http.ResponseWriter, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}
