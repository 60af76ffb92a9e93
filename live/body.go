package live

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/condensehq/condense/internal/live/wire"
)

// A body is that of a request.
type body struct {
	raw     []byte // as it came
	decoded []byte // the same as raw if it is not compressed; nil if it cannot be looked at
	rest    io.Reader
	weight  *weight // of one that cannot be looked at
}

// A weight is what is known of a body that cannot be looked at, for its price: its size and the model. It is written to while the body is sent.
type weight struct {
	mu    sync.Mutex
	model wire.ModelReader
	bytes int

	counted int // tokens, of a body that is there whole; else 0
}

func weigh(body []byte) *weight {
	w := &weight{}
	_, _ = w.Write(body)
	return w
}

// Write reads the next bytes of the body.
func (w *weight) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes += len(p)
	return w.model.Write(p)
}

// tokens estimates those of the body.
func (w *weight) tokens() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cmp.Or(w.counted, w.bytes/bytesPerToken)
}

const (
	// mostLooked is how many bytes of large requests are looked at together. To condense one takes many times its size for a while.
	mostLooked = 16 << 20
	// largeBody is the size in bytes of a request that takes part in that. Smaller ones do not wait.
	largeBody = 256 << 10
	// slowBody is after what time a body that still arrives makes room for others.
	slowBody = 10 * time.Second
)

// takeBody reads the body of a request, a large one when there is room for it. Leave, which is never nil, must be called when the body was
// looked at; another call does nothing.
func (g *Gateway) takeBody(r *http.Request, s *settings, t *target) (b *body, leave func(), err error) {
	nothing := func() {}
	room := func(size int64) func() {
		if size < largeBody {
			return nothing
		}
		ctx, cancel := context.WithTimeout(r.Context(), longestWait)
		defer cancel()
		leave, err := g.bodies.enter(ctx, cmp.Or(t.who.tenant, g.tenant(t.who, credentials(t, r.Header), nil)), size)
		if err != nil {
			return nothing // the client has gone, or has waited long enough
		}
		return leave
	}
	inTime, leave := false, nothing
	if e := r.Header.Get("Content-Encoding"); r.ContentLength > 0 && (e == "" || strings.EqualFold(e, "identity")) {
		leave = room(min(r.ContentLength, s.MaxBody))
		slow := time.AfterFunc(slowBody, leave)
		defer slow.Stop()
		b, err = readBody(r, s.MaxBody)
		inTime = slow.Stop()
	} else { // the size is known when it was read
		b, err = readBody(r, s.MaxBody)
	}
	if err == nil && !inTime {
		leave()
		leave = room(int64(len(b.decoded)))
	}
	return b, leave, err
}

// readBody reads the body of r. One that is larger than limit, before or after decompression, or
// has an unknown encoding, is not decoded. The error is that of reading.
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
	b.weight = weigh(decoded) // it is forwarded
	return b, nil
}

// fill makes r have the whole body as it came. From is the client's.
func (b *body) fill(r *http.Request, from io.ReadCloser) {
	hold(r, b.raw)
	if b.rest != nil {
		r.Body, r.GetBody = readCloser{io.MultiReader(r.Body, b.rest), from}, nil
	}
}

// hold makes body that of r, so that it can be sent again.
func hold(r *http.Request, body []byte) {
	r.GetBody = func() (io.ReadCloser, error) { return &passing{left: body}, nil }
	r.Body = &passing{left: body}
}

// Passing is a body that is not held once it was read: the transport keeps a request until it was answered.
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

// Close does nothing: the body may be read in the background still.
func (p *passing) Close() error { return nil }

// A patient body ends with an error if the client sends nothing for so long. Where w cannot have that, it waits.
type patient struct {
	io.ReadCloser
	w        *http.ResponseController
	patience time.Duration
}

func (p *patient) Read(to []byte) (int, error) {
	_ = p.w.SetReadDeadline(time.Now().Add(p.patience))
	n, err := p.ReadCloser.Read(to)
	if err == nil || errors.Is(err, io.EOF) { // else the server must not wait for the rest
		_ = p.w.SetReadDeadline(time.Time{}) // it reads on, to notice a client that leaves
	}
	return n, err
}

// readUpTo reads at most limit+1 bytes. Size is the number of bytes that are expected, -1 if
// it is unknown.
func readUpTo(r io.Reader, limit, size int64) ([]byte, error) {
	var buf bytes.Buffer
	if size >= 0 && size <= limit {
		const spare = bytes.MinRead // or the last read would double the buffer
		buf.Grow(int(size) + spare)
	}
	_, err := buf.ReadFrom(io.LimitReader(r, limit+1))
	return buf.Bytes(), err
}

// decode decompresses at most limit bytes. After an error it returns what it has.
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

// decoder returns a reader of what is compressed, which needs no more memory than limit; nil if it is not.
func decoder(raw []byte, encoding string, limit int64) (io.ReadCloser, error) {
	from := bytes.NewReader(raw)
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return nil, nil //nolint:nilnil // there is nothing to do
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
	return nil, fmt.Errorf("unknown content encoding %s", clip(encoding))
}
