package live

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/live/internal/payload"
)

// clientEvents are the events that clients send, and whether the vendor may answer them with tokens: those of OpenAI's
// reference (https://developers.openai.com/api/reference/resources/responses/websocket-events, with the beta's) and
// those of Codex, old and new.
var clientEvents = map[string]bool{
	"response.create": true, "response.steer": true, "response.inject": true, "response.append": true,
	"response.processed": false, "response.interrupt": false, "response.cancel": false,
}

// A frame is an event of the client, and its share of the memory of the socket and of the process.
type frame struct {
	data     []byte
	own, all *payload.Hold
}

func (f *frame) free() {
	f.own.Close()
	f.all.Close()
}

// A frameError ends a WebSocket because of a frame of the client.
type frameError struct {
	code websocket.StatusCode
	text string
}

func (f *frameError) Error() string { return f.text }

// next reads the next frame, whose size the connection limits. Without capacity for it in the memory of the socket it reads no further, so
// that the client has to
// wait. After the time of patience without bytes it ends the connection.
func (k *socket) next() (kind websocket.MessageType, f *frame, err error) {
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	kind, r, err := k.client.Reader(ctx)
	if err != nil {
		return 0, nil, err
	}
	f = &frame{own: k.bodies.Open("", func() {}), all: k.g.bodies.Open(k.tenant, cancel)}
	patience := time.AfterFunc(k.g.patience, cancel)
	defer patience.Stop()
	body := payload.Tap(io.NopCloser(r), func([]byte, error) { patience.Reset(k.g.patience) })
	f.data, err = payload.ReadHeld(body, math.MaxInt32, f.all, func(n int64) error {
		patience.Stop()
		defer patience.Reset(k.g.patience)
		return k.grow(ctx, f, n)
	})
	if err == nil {
		return kind, f, nil
	}
	f.free()
	if errors.Is(err, payload.ErrFull) && k.ctx.Err() == nil {
		err = &frameError{websocket.StatusTryAgainLater, "condense: " + payload.ErrFull.Error()}
	}
	return 0, nil, err
}

// grow waits for capacity for n more bytes of a frame: that of the socket until the client leaves, that of the process for a time.
func (k *socket) grow(ctx context.Context, f *frame, n int64) error {
	k.paused.Store(true)
	defer k.paused.Store(false)
	if err := f.own.Grow(k.ctx, n); err != nil { //nolint:contextcheck // the socket's
		return err
	}
	return f.all.Grow(ctx, n)
}

// check returns the event of a frame, or why it ends the connection: a frame that the gateway reads otherwise than the vendor
// would pass without token and limits. So must all unknown events if there are any.
func (k *socket) check(s *settings, kind websocket.MessageType, data []byte) (event string, no *frameError) {
	if kind != websocket.MessageText {
		return "", &frameError{websocket.StatusUnsupportedData, "condense: events are text, not binary frames"}
	}
	if !utf8.Valid(data) || !json.Valid(data) || !rawjson.IsObject(bytes.TrimSpace(data)) {
		return "", &frameError{websocket.StatusInvalidFramePayloadData, "condense: the frame is not a JSON object in UTF-8"}
	}
	seen := map[string]bool{}
	for key := range rawjson.Fields(data) {
		if seen[string(key)] {
			return "", &frameError{websocket.StatusInvalidFramePayloadData, "condense: the event has two fields " + plain.Clip(string(key))}
		}
		seen[string(key)] = true
	}
	event = rawjson.Text(rawjson.Field(data, "type"))
	if _, known := clientEvents[event]; !known && (!s.door.Open() || s.limitsFor(k.who.Tenant) != tenant.Limits{}) {
		return "", &frameError{websocket.StatusUnsupportedData, "condense: with tokens or limits only known events pass, not " + plain.Clip(event)}
	}
	return event, nil
}

// fromClient reads the client's frames. For each one the token is checked again.
func (k *socket) fromClient() error {
	for {
		kind, f, err := k.next()
		if err != nil {
			return err
		}
		k.moved.Add(1)
		s := k.g.current.Load()
		if err := k.admitted(s); err != nil {
			f.free()
			return err
		}
		event, no := k.check(s, kind, f.data)
		switch {
		case no != nil:
			f.free()
			s.Reports.Logger.WarnContext(k.ctx, "a frame of a WebSocket was refused, and ended it", "why", no.text)
			return no
		case event == "response.create":
			k.create(f)
			continue
		}
		err = k.pass(s, event, f.data)
		f.free()
		if err != nil {
			return err
		}
	}
}

// admitted returns an error if the token of the handshake is not accepted any more, after telling the client.
func (k *socket) admitted(s *settings) error {
	t := s.route(k.r)
	status, text := s.refuse(k.r, &t)
	if status == 0 {
		return nil
	}
	w := (&stream{k: k}).writer()
	v := k.g.admit(w, k.r, s, &t) // it says so
	defer v.end()
	if v.leave != nil { // the token is accepted again
		v.leave()
		return nil
	}
	return errors.Join(&frameError{websocket.StatusPolicyViolation, text}, w.finish())
}

// pass sends an event that is no request of its own. If the vendor may write more because of it, it counts as a request;
// the cost is counted by extra.
func (k *socket) pass(s *settings, event string, data []byte) error {
	t := s.route(k.r)
	t.who = k.who
	if t.upstream == nil || *t.upstream.Base != *k.upstream.Base {
		return &frameError{websocket.StatusServiceRestart, "condense: " + errMoved.Error()}
	}
	k.g.countBytes(k.who, len(data))
	if clientEvents[event] {
		w := (&stream{k: k, name: rawjson.Text(rawjson.Field(data, "stream_id"))}).writer()
		v := k.g.admit(w, k.r, s, &t)
		defer v.end()
		if v.leave == nil {
			return w.finish()
		}
		v.leave()
		k.g.stats.Add(func(s *Stats) { s.Requests++ })
	}
	if event != "response.processed" { // it may add to the answers in progress
		for _, l := range k.all() {
			l.disturbed.Store(true)
		}
	}
	if err := k.vendor.Write(k.ctx, websocket.MessageText, data); err != nil && !k.vendorGone() {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// extra counts an answer that is none to a request: the vendor has gone on after an event such as response.steer.
func (k *socket) extra(event []byte) {
	if rawjson.Field(rawjson.Field(event, "response"), "usage") == nil {
		return
	}
	s := k.g.current.Load()
	t := s.route(k.r)
	t.who = k.who
	r := &request{
		g: k.g, s: s, t: &t, in: incoming{header: k.r.Header, start: s.Now(), weight: &payload.Weight{}},
		from: origin{agent: agents.Of(k.r.Header, nil)}, parsed: &wire.Request{API: wire.Responses, Stream: true},
	}
	e := &exchange{req: r, plan: &plan{req: r}}
	e.watcher, e.status = watch(wire.Responses, &http.Response{Body: http.NoBody}), http.StatusOK
	_, _ = e.watcher.sink.Write(sse(event))
	e.count(e.watcher.answer())
}

// probe reports to left that the token is not accepted any more, or that the client is away while the gateway reads no
// frames, which would have shown it.
func (k *socket) probe(left chan<- error) {
	const interval = 2 * time.Second
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-k.answers.Done():
			return
		case <-tick.C:
		}
		err := k.admitted(k.g.current.Load())
		if err == nil && k.paused.Load() && closed(k.raw) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			left <- err
			return
		}
	}
}
