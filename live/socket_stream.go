package live

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coder/websocket"

	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/live/internal/payload"
)

// A stream answers the requests of a WebSocket that have the same stream_id, or none, one after the other, as the vendor
// does. It is the transport of these requests: a body becomes a frame, and events become a stream.
type stream struct {
	k         *socket
	name      string
	frames    chan *frame
	held      *payload.Hold // of the frame that is being answered, in the memory of the process
	disturbed atomic.Bool   // the client has sent something besides requests
	owed      owed          // by the latest answer that owes something

	mu  sync.Mutex
	now *flow // the answer that gets the stream's events; nil for none
}

// A flow is the vendor's answer to a frame. Only the reader of the vendor's events writes to it.
type flow struct {
	first chan []byte    // gets the first event; closed if there is none
	rest  *io.PipeWriter // as a stream
	begun bool
	over  chan struct{} // closed after the last event
}

type streamKey struct{}

// streamOf returns the stream that a request came in; nil over HTTP.
func streamOf(ctx context.Context) *stream {
	l, _ := ctx.Value(streamKey{}).(*stream)
	return l
}

// errMoved means that a reload has changed the address of a WebSocket's upstream.
var errMoved = errors.New("the upstream has another address now: connect again")

// sender returns the transport of a request whose history is not known.
func (t *target) sender(ctx context.Context) http.RoundTripper {
	if t.unheard == nil {
		return t.transport(ctx)
	}
	return &unheard{t.transport(ctx), t.unheard}
}

// transport returns the transport of a request: its WebSocket, or the upstream.
func (t *target) transport(ctx context.Context) http.RoundTripper {
	if l := streamOf(ctx); l != nil {
		if *l.k.upstream.Base != *t.upstream.Base {
			return movedTransport{}
		}
		return l
	}
	return t.upstream
}

type movedTransport struct{}

// RoundTrip implements [http.RoundTripper].
func (movedTransport) RoundTrip(*http.Request) (*http.Response, error) { return nil, errMoved }

// run answers the stream's requests.
func (l *stream) run() {
	for {
		select {
		case f := <-l.frames:
			err := l.k.g.safely("socket", func() error { return l.answer(f) })
			f.free()
			l.k.active.Add(-1)
			if err != nil && !l.k.vendorGone() && l.k.answers.Err() == nil {
				l.k.end() // the client has a part of an answer
			}
		case <-l.k.answers.Done():
			return
		}
	}
}

// empty gives back the memory of requests that will not be answered.
func (l *stream) empty() {
	for {
		select {
		case f := <-l.frames:
			f.free()
		default:
			return
		}
	}
}

func (k *socket) vendorGone() bool {
	select {
	case <-k.gone:
		return true
	default:
		return false
	}
}

// errBroken means that an answer has ended early.
var errBroken = errors.New("the answer was cut")

func (l *stream) answer(f *frame) (err error) {
	r := l.k.r.Clone(context.WithValue(l.k.answers, streamKey{}, l))
	r.Header.Set("Content-Type", "application/json")
	r.Body, r.ContentLength = payload.Once(f.data), int64(len(f.data))
	f.data, l.held = nil, f.all
	w := l.writer()
	defer func() {
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler { //nolint:errorlint // a value to panic with
				panic(p)
			}
			err = errBroken
		}
	}()
	l.disturbed.Store(false)
	l.k.g.ServeHTTP(w, r)
	return w.finish()
}

// ends are the events after which an answer has no more.
var ends = rawjson.Set("response.completed", "response.failed", "response.incomplete", "response.cancelled", "error")

func isLast(event []byte) bool { return ends[rawjson.Text(rawjson.Field(event, "type"))] }

// take gives an event to the answer that it is part of; false if there is none.
func (l *stream) take(event []byte) bool {
	l.mu.Lock()
	p := l.now
	l.mu.Unlock()
	if p == nil {
		return false
	}
	if p.begun {
		_, _ = p.rest.Write(sse(event)) // it fails if nobody reads any more
	} else {
		p.begun = true
		p.first <- event
	}
	if isLast(event) {
		l.end(nil)
	}
	return true
}

// end ends the answer; nil is its proper end.
func (l *stream) end(err error) {
	l.mu.Lock()
	p := l.now
	l.now = nil
	l.mu.Unlock()
	if p == nil {
		return
	}
	if !p.begun {
		close(p.first)
	}
	_ = p.rest.CloseWithError(err)
	close(p.over)
}

// RoundTrip sends the body of a request as a frame. An error as the first event is the answer's status.
func (l *stream) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := payload.Bytes(r)
	if err != nil {
		return nil, err
	}
	if rawjson.Field(body, "type") == nil {
		body = rawjson.SetField(body, "type", []byte(`"response.create"`))
	}
	events, rest := io.Pipe()
	p := &flow{first: make(chan []byte, 1), rest: rest, over: make(chan struct{})}
	if err := l.begin(r.Context(), p); err != nil {
		return nil, err
	}
	err = l.k.vendor.Write(l.k.ctx, websocket.MessageText, body) //nolint:contextcheck // a request that ends early must not end the connection
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil && trace.WroteRequest != nil {
		trace.WroteRequest(httptrace.WroteRequestInfo{Err: err})
	}
	if err != nil {
		return nil, err
	}
	var first []byte
	select {
	case first = <-p.first:
	case <-r.Context().Done():
		return nil, errors.Join(r.Context().Err(), events.Close())
	}
	if first == nil {
		return nil, io.ErrUnexpectedEOF
	}
	res := &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, ContentLength: -1, Request: r,
	}
	if rawjson.Text(rawjson.Field(first, "type")) != "error" {
		res.Body = payload.ReadCloser{Reader: io.MultiReader(bytes.NewReader(sse(first)), events), Closer: events}
		res.Header.Set("Content-Type", "text/event-stream")
		return res, nil
	}
	res.StatusCode = rawjson.Int(rawjson.Field(first, "status"))
	if res.StatusCode < http.StatusBadRequest || res.StatusCode >= 600 {
		res.StatusCode = http.StatusBadRequest
	}
	if code := rawjson.Text(rawjson.Field(rawjson.Field(first, "error"), "code")); strings.HasPrefix(code, "websocket_") {
		res.StatusCode = http.StatusServiceUnavailable // of the connection, not of the request: another one does not help
	}
	res.Header.Set("Content-Type", "application/json")
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(first)), int64(len(first))
	return res, nil
}

// begin waits for the end of the answer before, if the gateway has left it, and makes p the stream's answer.
func (l *stream) begin(ctx context.Context, p *flow) error {
	for {
		l.mu.Lock()
		before := l.now
		if l.k.vendorGone() {
			l.mu.Unlock()
			return io.ErrUnexpectedEOF
		}
		if before == nil {
			l.now = p
			l.mu.Unlock()
			return nil
		}
		l.mu.Unlock()
		select {
		case <-before.over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sse returns an event as it is in a stream over HTTP.
func sse(event []byte) []byte {
	out := append(make([]byte, 0, len(event)+len("data: \n\n")), "data: "...)
	out = append(out, bytes.ReplaceAll(event, []byte("\n"), []byte("\ndata: "))...)
	return append(out, "\n\n"...)
}

// writer returns a writer of an answer to the client.
func (l *stream) writer() *frames {
	return &frames{stream: l.name, write: func(event []byte) error { return l.k.write(websocket.MessageText, event) }}
}

// frames writes an answer to the client: the events of a stream as they are, and an error as an event.
type frames struct {
	stream string // its stream_id
	write  func(event []byte) error
	header http.Header
	status int
	rest   []byte // of an event, or of an answer that is no stream
}

// Header returns the headers, of which an error has one.
func (w *frames) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

// WriteHeader sets the status.
func (w *frames) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
}

// Flush does nothing: events are sent when they are complete.
func (w *frames) Flush() {}

func (w *frames) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	w.rest = append(w.rest, p...)
	for w.status == http.StatusOK {
		end := bytes.Index(w.rest, []byte("\n\n"))
		if end < 0 {
			break
		}
		var event []byte
		for line := range bytes.SplitSeq(w.rest[:end], []byte("\n")) {
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				event = append(append(event, data...), '\n')
			}
		}
		w.rest = w.rest[end+len("\n\n"):]
		if !rawjson.IsObject(event) {
			continue
		}
		if err := w.send(event[:len(event)-1]); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// finish sends an error.
func (w *frames) finish() error {
	if w.status < http.StatusBadRequest {
		return nil
	}
	event := w.rest
	if rawjson.Text(rawjson.Field(event, "type")) != "error" {
		fault := rawjson.Field(event, "error")
		if fault == nil {
			fault = rawjson.Field(wire.Refusal(wire.Responses, w.status, string(w.rest)), "error")
		}
		event = rawjson.Append(nil, `{"type":"error","status":?,"error":?}`, strconv.AppendInt(nil, int64(w.status), 10), fault)
		if after := w.Header().Get("Retry-After"); after != "" {
			event = rawjson.SetField(event, "headers", rawjson.Append(nil, `{"retry-after":?}`, after))
		}
	}
	return w.send(event)
}

// send sends an event. One of the gateway's own gets the ID of the stream.
func (w *frames) send(event []byte) error {
	if w.stream != "" && rawjson.Field(event, "stream_id") == nil {
		event = rawjson.SetField(event, "stream_id", rawjson.AppendQuote(nil, w.stream))
	}
	return w.write(event)
}
