package live

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

	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
)

// A body is the body of a request.
type body struct {
	raw     []byte // as received
	decoded []byte // raw, decompressed; the same slice if raw is not compressed; nil if it cannot be inspected
	rest    io.Reader
	weight  *weight // set if the body cannot be inspected
}

// A weight collects the model and the size of a body that cannot be inspected, to price it. It is written while the
// body is sent.
type weight struct {
	mu    sync.Mutex
	model wire.ModelReader
	bytes int

	counted int // tokens, if the whole body is available; else 0
}

func weigh(body []byte) *weight {
	w := &weight{}
	_, _ = w.Write(body)
	return w
}

// Write passes the next bytes of the body to the weight.
func (w *weight) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes += len(p)
	return w.model.Write(p)
}

// tokens returns the estimated tokens of the body.
func (w *weight) tokens() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cmp.Or(w.counted, w.bytes/bytesPerToken)
}

// readBody reads the body of r. The body is not decoded if it exceeds limit, before or after decompression, or has an
// unknown encoding. The error is a read error.
func readBody(r *http.Request, limit int64) (*body, error) {
	raw, err := readUpTo(r.Body, limit, r.ContentLength)
	if err != nil {
		return nil, err
	}
	b := &body{raw: raw}
	encoding := r.Header.Get("Content-Encoding")
	if int64(len(raw)) > limit {
		b.weight = weigh(raw)
		b.rest = io.TeeReader(r.Body, b.weight)
		return b, nil
	}
	decoded, err := decode(raw, encoding, limit)
	if err == nil {
		b.decoded = decoded
		return b, nil
	}
	if len(decoded) == 0 {
		decoded = raw
	}
	b.weight = weigh(decoded) // it is forwarded unchanged
	return b, nil
}

// fill gives r the whole body as received. from is the client's body, for the unread rest and for Close.
func (b *body) fill(r *http.Request, from io.ReadCloser) {
	hold(r, b.raw)
	if b.rest != nil {
		r.Body, r.GetBody = readCloser{io.MultiReader(r.Body, b.rest), from}, nil
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

// A patient body fails if the client sends nothing for the time of patience. If w does not support read deadlines, it
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

// readUpTo reads at most limit+1 bytes. size is the expected number of bytes, -1 if unknown.
func readUpTo(r io.Reader, limit, size int64) ([]byte, error) {
	var buf bytes.Buffer
	if size >= 0 && size <= limit {
		const spare = bytes.MinRead // otherwise the last read would double the buffer
		buf.Grow(int(size) + spare)
	}
	_, err := buf.ReadFrom(io.LimitReader(r, limit+1))
	return buf.Bytes(), err
}

// decode decompresses at most limit bytes. After an error it returns the bytes decoded so far.
func decode(raw []byte, encoding string, limit int64) ([]byte, error) {
	from, err := decoder(raw, encoding, limit)
	switch {
	case err != nil:
		return nil, err
	case from == nil:
		return raw, nil
	}
	defer func() { _ = from.Close() }()
	out, err := readUpTo(from, limit, -1)
	if err == nil && int64(len(out)) > limit {
		err = fmt.Errorf("more than %d bytes after decompression", limit)
	}
	return out, err
}

// decoder returns a reader that decompresses raw within limit bytes of memory; nil if raw is not compressed.
func decoder(raw []byte, encoding string, limit int64) (io.ReadCloser, error) {
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

// replaceBody gives a request an uncompressed body, and adjusts its headers.
func replaceBody(r *http.Request, body []byte) {
	hold(r, body)
	r.ContentLength = int64(len(body))
	r.TransferEncoding = nil
	r.Header.Del("Content-Encoding")
	if r.Header.Get("Content-Length") != "" {
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	}
}

type readCloser struct {
	io.Reader
	io.Closer
}
