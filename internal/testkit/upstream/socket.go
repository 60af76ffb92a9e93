package upstream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"github.com/condensehq/condense/internal/plain"
)

// WebSocket mode and chains of responses. Source: OpenAI's guides to WebSocket mode and to conversation state. A
// connection holds the latest response of each stream_id; all others must have been stored. An error loses the response
// that the request continued.

// held stores the items of responses, including the items of their prompts.
type held map[string][]json.RawMessage

// A session is a stream_id of a WebSocket.
type session struct {
	name string
	last held
	at   int // number of the request that last is of
	busy bool
}

// expand returns a body without its compression, and with the items of the response that it continues.
func (v *Vendor) expand(r *Record) ([]byte, *refusal) {
	body, f := decode(r)
	if f != nil {
		return nil, f
	}
	var o map[string]json.RawMessage
	alone := !bytes.Contains(body, []byte(`"previous_response_id"`)) && bytes.Contains(body, []byte(`"store":false`))
	if r.API != Responses || alone && r.session == nil || json.Unmarshal(body, &o) != nil {
		return body, nil
	}
	var items []json.RawMessage
	if json.Unmarshal(o["input"], &items) != nil {
		items = []json.RawMessage{encode(object{"role": "user", "content": o["input"]})}
	}
	previous := ""
	_ = json.Unmarshal(o["previous_response_id"], &previous)
	if previous != "" {
		v.mu.Lock()
		defer v.mu.Unlock()
		known, ok := v.stored[previous]
		if r.session != nil && !ok {
			known, ok = r.session.last[previous]
			ok = ok && r.session.at > v.forgotten
		}
		if !ok {
			text := fmt.Sprintf("Previous response with id '%s' not found.", previous)
			return body, &refusal{400, "state", "previous_response_not_found", "previous_response_id", text}
		}
		items = slices.Concat(known, items)
		delete(o, "previous_response_id")
	}
	o["input"] = encode(items)
	r.items, r.keeps = items, string(o["store"]) != "false"
	if r.session != nil {
		delete(o, "type")
		delete(o, "stream_id")
		o["stream"] = json.RawMessage("true")
	} else if previous == "" {
		return body, nil
	}
	return encode(o), nil
}

// hold remembers a response with these items.
func (v *Vendor) hold(r *Record, id string, output []object) {
	if r.items == nil {
		return
	}
	all := slices.Clip(r.items)
	all = append(all, plain.Each(output, func(item object) json.RawMessage { return encode(item) })...)
	v.mu.Lock()
	defer v.mu.Unlock()
	if r.keeps {
		v.stored[id] = all
	}
	if r.session != nil {
		r.session.last, r.session.at = held{id: all}, r.N
	}
}

// socket serves a WebSocket.
func (v *Vendor) socket(w http.ResponseWriter, req *http.Request) {
	c, err := websocket.Accept(w, req, nil)
	if err != nil {
		return
	}
	const most = 64 << 20
	c.SetReadLimit(most)
	ctx, stop := context.WithCancel(context.WithoutCancel(req.Context()))
	v.mu.Lock()
	v.sockets[c] = stop
	v.mu.Unlock()
	var running sync.WaitGroup
	defer func() {
		stop()
		running.Wait()
		_ = c.CloseNow()
		v.mu.Lock()
		delete(v.sockets, c)
		v.mu.Unlock()
	}()
	sessions := map[string]*session{}
	for {
		_, frame, err := c.Read(ctx)
		if err != nil {
			return
		}
		o := decodeObject(frame)
		name := text(o["stream_id"])
		s := sessions[name]
		if s == nil {
			s = &session{name: name}
			sessions[name] = s
		}
		r := v.recordOf(req, frame, s)
		out := &framed{ctx: ctx, c: c, session: s, header: http.Header{}}
		v.mu.Lock()
		busy := s.busy
		s.busy = s.busy || text(o["type"]) == "response.create"
		v.mu.Unlock()
		switch {
		case text(o["type"]) == "response.processed":
			v.note(r, http.StatusOK, &refusal{})
		case text(o["type"]) != "response.create":
			v.refuse(out, r, invalid("event", "Unknown event: "+text(o["type"])))
		case busy:
			v.refuse(out, r, &refusal{400, "flight", "response_in_flight", "", "Another response is in progress on this connection."})
		default:
			running.Go(func() { v.create(out, req, r, o) })
			continue
		}
		close(r.finished)
	}
}

// recordOf notes a frame.
func (v *Vendor) recordOf(req *http.Request, body []byte, s *session) *Record {
	sum := sha256.Sum256(body)
	to := routeOf(req.URL.Path)
	r := &Record{
		API: to.api, Cloud: to.cloud, route: to, Method: req.Method, Path: req.URL.Path, Query: req.URL.RawQuery, Header: req.Header.Clone(),
		Body: body, Sum: hex.EncodeToString(sum[:]), gone: make(chan struct{}), finished: make(chan struct{}), session: s, Socket: s != nil,
	}
	if r.Gone, r.Finished, r.route.host, r.route.escaped = r.gone, r.finished, req.Host, req.URL.EscapedPath(); s != nil {
		r.Method = http.MethodPost
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.records = append(v.records, r)
	r.N = len(v.records)
	return r
}

// create answers a response.create.
func (v *Vendor) create(w *framed, req *http.Request, r *Record, o object) {
	defer close(r.finished)
	defer func() {
		if recover() != nil { // a fault of the test resets the connection
			_ = w.c.CloseNow()
		}
	}()
	w.last = func(failed bool) {
		v.mu.Lock()
		defer v.mu.Unlock()
		if r.session.busy = false; failed {
			r.session.last = nil
		}
	}
	if o["generate"] != false {
		v.prompt(w, req.WithContext(w.ctx), r)
		return
	}
	if _, f := v.expand(r); f != nil {
		v.refuse(w, r, f)
		return
	}
	a := answer{id: identifier("warm", r.N)}
	v.hold(r, "resp_"+a.id, nil)
	v.note(r, http.StatusOK, &refusal{})
	p := &prompt{api: Responses, model: text(o["model"])}
	for _, e := range a.responseEvents(p, usage{}) {
		_, _ = w.Write(e.bytes())
	}
}

// Sockets returns the number of open WebSockets.
func (v *Vendor) Sockets() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.sockets)
}

// Forget forgets all responses.
func (v *Vendor) Forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stored = held{}
	v.forgotten = len(v.records)
}

// Cut ends all WebSockets, with a status or, if that is 0, without.
func (v *Vendor) Cut(status int) {
	v.mu.Lock()
	all := maps.Clone(v.sockets)
	v.mu.Unlock()
	for c, stop := range all {
		if status != 0 {
			_ = c.Close(websocket.StatusCode(status), "cut")
		}
		_ = c.CloseNow()
		stop()
	}
}

// framed writes the events of an answer, or a refusal, as frames.
type framed struct {
	ctx     context.Context //nolint:containedctx // of the connection
	c       *websocket.Conn
	session *session
	header  http.Header
	status  int
	last    func(failed bool) // called before the last event is sent
}

// Header returns the headers, which nobody gets.
func (w *framed) Header() http.Header {
	return w.header
}

// WriteHeader sets the status.
func (w *framed) WriteHeader(status int) { w.status = status }

func (w *framed) Write(p []byte) (int, error) {
	o := object{"type": "error", "status": w.status}
	if w.status >= http.StatusBadRequest {
		o["error"] = decodeObject(p)["error"]
	} else {
		_, data, _ := strings.Cut(strings.TrimSpace(string(p)), "data: ")
		o = decodeObject([]byte(data))
	}
	if w.session.name != "" {
		o["stream_id"] = w.session.name
	}
	if kind := text(o["type"]); w.last != nil && (kind == "error" || kind == "response.completed" || kind == "response.failed") {
		w.last(kind != "response.completed")
	}
	if err := w.c.Write(w.ctx, websocket.MessageText, encode(o)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// exchange sends the body over the client's WebSocket: only what is new, if the answer before came over it, too. The
// answer is as in a stream over HTTP.
func (c *Client) exchange(ctx context.Context, header http.Header, o object) ([]byte, error) {
	delete(o, "stream")
	o["type"] = "response.create"
	if c.conn == nil {
		path, _ := c.path()
		conn, res, err := websocket.Dial(ctx, c.URL+path, &websocket.DialOptions{HTTPHeader: header}) //nolint:bodyclose // the library's
		if err != nil {
			if res != nil {
				text, _ := io.ReadAll(res.Body)
				return nil, fmt.Errorf("%w: %d %s", ErrRefused, res.StatusCode, text)
			}
			return nil, err
		}
		conn.SetReadLimit(64 << 20)
		c.conn, c.previous = conn, ""
		o["input"] = c.History
		delete(o, "previous_response_id")
	}
	c.Body = c.memory.encode(nil, o)
	if err := c.conn.Write(ctx, websocket.MessageText, c.Body); err != nil {
		return nil, errors.Join(err, c.Disconnect())
	}
	var out []byte
	for {
		_, event, err := c.conn.Read(ctx)
		if err != nil {
			return out, errors.Join(err, c.Disconnect())
		}
		out = append(append(append(out, "data: "...), event...), "\n\n"...)
		e := decodeObject(event)
		switch text(e["type"]) {
		case "response.completed":
			return out, nil
		case "error", "response.failed":
			c.previous = ""
			return out, nil
		}
	}
}

// Disconnect ends the client's WebSocket. The next request opens another one, with the whole history.
func (c *Client) Disconnect() error {
	conn := c.conn
	c.conn, c.previous = nil, ""
	if conn == nil {
		return nil
	}
	return conn.CloseNow()
}
