package live

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/live/internal/audit"
	"github.com/condensehq/condense/live/internal/payload"
	"github.com/condensehq/condense/live/internal/upstream"
)

// Bounds of WebSockets.
const (
	maxSockets = 1000
	maxStreams = 16      // of a socket
	maxWaiting = 4       // requests of a stream
	maxFrames  = 8 << 20 // bytes of a socket's frames that are held until their answers have ended; one frame may exceed it
)

// closedHere is the code of an end that is the gateway's or its process's: "going away" in RFC 6455.
const closedHere websocket.StatusCode = 1001

// A socket is a client's WebSocket for the Responses API, with one to the upstream. Each response.create of the client
// is answered by [Gateway.ServeHTTP], like a request over HTTP; see [stream]. Other known events pass; see clientEvents.
type socket struct {
	g        *Gateway
	r        *http.Request // the handshake, as a request over HTTP
	who      tenant.Caller
	tenant   string
	bodies   *payload.Budget // of the client's frames
	upstream *upstream.Upstream
	client   *websocket.Conn
	raw      net.Conn // the client's connection
	vendor   *websocket.Conn
	ctx      context.Context //nolint:containedctx // ends with the socket
	end      context.CancelFunc
	answers  context.Context //nolint:containedctx // ends when nobody waits for answers
	drop     context.CancelFunc
	gone     chan struct{} // closed when the vendor's connection has ended
	active   atomic.Int64  // requests that wait or are being answered
	read     atomic.Int64  // events of the vendor
	moved    atomic.Int64  // frames from and to the client
	paused   atomic.Bool   // no frames are read, for want of memory: a client that writes cannot answer a ping

	running sync.WaitGroup

	mu      sync.Mutex
	streams map[string]*stream
}

// sockets are the WebSockets of a gateway.
type sockets struct {
	open    sync.WaitGroup
	drained chan struct{} // closed when the gateway drains
	once    sync.Once
	mu      sync.Mutex
	most    int
	count   int
	of      map[string]int // by tenant
	// A peer gets a ping after each interval, and must answer or move data within the time of patience.
	interval, patience time.Duration
}

func newSockets() sockets {
	const interval, patience = 30 * time.Second, 2 * time.Minute
	return sockets{drained: make(chan struct{}), most: maxSockets, of: map[string]int{}, interval: interval, patience: patience}
}

// enter counts a WebSocket until leave is called. ok is false if there are too many: a tenant may have as many as are left
// for others, and a caller with a limit of simultaneous requests as many as that.
func (s *sockets) enter(who tenant.Caller, tenant string, concurrent int) (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.of[tenant]
	limited := own
	if who.Tenant == "" { // the limits are for all together
		limited = s.count
	}
	if own >= s.most-s.count || concurrent > 0 && limited >= concurrent {
		return nil, false
	}
	s.of[tenant]++
	s.count++
	s.open.Add(1)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.of[tenant]--; s.of[tenant] == 0 {
			delete(s.of, tenant)
		}
		s.count--
		s.open.Done()
	}, true
}

// Finish waits until the WebSockets have ended, which [Gateway.Drain] makes end after the answers in progress. When ctx
// ends, it ends them, and returns an error. A server's Shutdown does not wait for them.
func (g *Gateway) Finish(ctx context.Context) error {
	cancel := context.AfterFunc(ctx, g.stop)
	defer cancel()
	g.sockets.open.Wait()
	return ctx.Err()
}

// serveSocket answers the handshake of a WebSocket and serves it. It reports false for requests to other APIs than the
// Responses API.
func (g *Gateway) serveSocket(w http.ResponseWriter, handshake *http.Request, s *settings) bool {
	if !strings.EqualFold(handshake.Header.Get("Upgrade"), "websocket") || handshake.Method != http.MethodGet ||
		handshake.Header.Get("Sec-Websocket-Key") == "" || g.draining.Load() {
		return false
	}
	r := posted(handshake)
	t := s.route(r)
	if !wire.Of(wire.API(t.api)).Sockets || t.compact || t.rejection != nil || t.upstream == nil {
		return false
	}
	t.handshake = true
	v := g.admit(w, r, s, &t)
	defer v.end()
	if v.leave == nil {
		return true
	}
	v.leave() // its requests are counted like all others
	out, r := v.out, v.r
	tenant := g.tenantBehind(r, &t)
	leave, free := g.sockets.enter(t.who, tenant, s.limitsFor(t.who.Tenant).Concurrent)
	if !free {
		t.noSocket(out)
		return true
	}
	defer leave()
	k := &socket{
		g: g, r: r, who: t.who, tenant: tenant, bodies: payload.NewBudget(maxFrames, 0), upstream: t.upstream, gone: make(chan struct{}),
		streams: map[string]*stream{},
	}
	k.ctx, k.end = context.WithCancel(context.WithoutCancel(r.Context()))
	defer k.end()
	k.answers, k.drop = context.WithCancel(k.ctx)
	defer context.AfterFunc(g.life, k.end)()
	if k.connect(out, handshake, s, &t) {
		k.serve()
	}
	return true
}

// ofConnections are the headers of a handshake that belong to the connection, not to its requests.
var ofConnections = []string{
	"Connection", "Upgrade", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Content-Length",
	"Content-Encoding",
}

// posted returns a handshake as a request over HTTP.
func posted(handshake *http.Request) *http.Request {
	r := handshake.Clone(handshake.Context())
	r.Method = http.MethodPost
	maps.DeleteFunc(r.Header, func(name string, _ []string) bool {
		return strings.HasPrefix(name, "Sec-Websocket-") || slices.Contains(ofConnections, name)
	})
	return r
}

// connect opens the connection to the upstream, then the client's. If the upstream refuses, the client gets its answer.
func (k *socket) connect(w *audit.Outcome, handshake *http.Request, s *settings, t *target) bool {
	to, err := t.upstream.Address(t.path, &t.endpoint, k.r.URL.RawQuery)
	if err != nil {
		t.refuse(w, http.StatusBadRequest, "condense: the path of the request is invalid")
		return false
	}
	header := k.r.Header.Clone()
	maps.DeleteFunc(header, isOwn)
	refused := &refusing{of: t.upstream.Transport}
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(k.ctx, patience)
	defer cancel()
	vendor, res, err := websocket.Dial(ctx, to.String(), &websocket.DialOptions{ //nolint:bodyclose // closed by the library
		HTTPHeader: header,
		HTTPClient: &http.Client{Transport: refused, CheckRedirect: here},
	})
	if err != nil {
		refused.answer(w, t, err)
		return false
	}
	k.vendor = vendor
	for name, values := range res.Header {
		if name != "Connection" && name != "Upgrade" && !strings.HasPrefix(name, "Sec-Websocket-") {
			w.Header()[name] = values
		}
	}
	// The door has checked the origin.
	over := &hijacked{ResponseWriter: w}
	if k.client, err = websocket.Accept(over, handshake, &websocket.AcceptOptions{InsecureSkipVerify: true}); err != nil {
		_ = vendor.Close(closedHere, "")
		return false
	}
	k.raw = over.conn
	vendor.SetReadLimit(s.Bounds.MaxBody)
	k.client.SetReadLimit(s.Bounds.MaxBody)
	return true
}

// A hijacked is the answer to a handshake, and keeps its connection.
type hijacked struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack implements [http.Hijacker].
func (h *hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := http.NewResponseController(h.ResponseWriter).Hijack()
	h.conn = conn
	return conn, buffers, err
}

// here makes a redirection the answer: it may lead to another server.
func here(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// A refusing keeps the answer of a server that opens no WebSocket.
type refusing struct {
	of   http.RoundTripper
	res  *http.Response
	body []byte
}

// RoundTrip sends the handshake.
func (f *refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := f.of.RoundTrip(r)
	if err == nil && res.StatusCode != http.StatusSwitchingProtocols {
		f.res = res
		f.body, _ = io.ReadAll(io.LimitReader(res.Body, maxRefusal))
		_ = res.Body.Close()
		res.Body = io.NopCloser(bytes.NewReader(f.body))
	}
	return res, err
}

// answer passes the refusal on. Clients use HTTP after a status of 426, and try again after others, so a server that
// knows no WebSockets gets it too.
func (f *refusing) answer(w *audit.Outcome, t *target, err error) {
	switch {
	case f.res == nil:
		w.Unsent = upstream.Reason(err)
		t.refuse(w, http.StatusBadGateway, "condense: upstream "+t.upstream.Name+" cannot be reached: "+w.Unsent)
	case f.res.StatusCode < http.StatusBadRequest, f.res.StatusCode == http.StatusNotFound,
		f.res.StatusCode == http.StatusMethodNotAllowed, f.res.StatusCode == http.StatusNotImplemented:
		t.refuse(w, http.StatusUpgradeRequired, "condense: upstream "+t.upstream.Name+" has no WebSocket here; use HTTP")
	default:
		for name, values := range f.res.Header {
			if name != "Content-Length" && name != "Connection" && name != "Transfer-Encoding" {
				w.Header()[name] = values
			}
		}
		w.WriteHeader(f.res.StatusCode)
		_, _ = w.Write(f.body)
	}
}

// serve passes frames until one side ends, or the gateway does.
func (k *socket) serve() {
	left, ended := make(chan error, 2), make(chan error, 1) //nolint:mnd // from each of the two that watch the client
	k.running.Go(func() { left <- k.fromClient() })
	k.running.Go(func() {
		err := k.fromVendor()
		close(k.gone)
		for _, l := range k.all() {
			l.end(io.ErrUnexpectedEOF)
		}
		ended <- err
	})
	k.running.Go(func() { k.pulse(k.client, &k.moved) })
	k.running.Go(func() { k.pulse(k.vendor, &k.read) })
	k.running.Go(func() { k.probe(left) })
	const rest = time.Minute // for what the client has not read yet
	select {
	case err := <-left:
		k.leave(err)
	case err := <-ended:
		k.settle(rest)
		shut(k.client, err, websocket.StatusInternalError, "condense: the connection to the upstream broke")
	case <-k.g.sockets.drained:
		k.settle(time.Hour) // the caller of Finish ends it
		k.running.Go(func() { _ = k.vendor.Close(websocket.StatusNormalClosure, "") })
		_ = k.client.Close(closedHere, "condense: the gateway ends")
	case <-k.ctx.Done(): // a peer does not answer, or the gateway does not wait
	}
	k.end()
	_ = k.client.CloseNow()
	_ = k.vendor.CloseNow()
	k.running.Wait()
	for _, l := range k.all() {
		l.empty()
	}
}

// leave ends the socket after the client has, or was refused.
func (k *socket) leave(err error) {
	k.drop()
	const patience = 2 * time.Second // a vendor that reads nothing must not keep the frames
	late := time.AfterFunc(patience, k.end)
	defer late.Stop()
	told := make(chan struct{})
	go func() {
		defer close(told)
		if no := (*frameError)(nil); errors.As(err, &no) {
			_ = k.client.Close(no.code, no.text[:min(len(no.text), longestReason)])
		}
	}()
	shut(k.vendor, err, closedHere, "")
	select {
	case <-told:
	case <-k.ctx.Done():
	}
}

// longestReason is the most bytes of a reason for the end of a WebSocket (RFC 6455, 5.5).
const longestReason = 123

// shut closes a connection as the other side has closed its own, or with a code if that broke.
func shut(c *websocket.Conn, err error, code websocket.StatusCode, reason string) {
	if e := (websocket.CloseError{}); errors.As(err, &e) {
		code, reason = e.Code, e.Reason
	}
	_ = c.Close(code, reason)
}

// settle waits until no request is being answered.
func (k *socket) settle(limit time.Duration) {
	const pause = 10 * time.Millisecond
	for end := time.Now().Add(limit); k.active.Load() > 0 && time.Now().Before(end) && k.ctx.Err() == nil; {
		select {
		case <-k.ctx.Done():
		case <-time.After(pause):
		}
	}
}

// pulse sends pings to a peer, and ends the socket if it does not answer and moves no data.
func (k *socket) pulse(c *websocket.Conn, moved *atomic.Int64) {
	tick := time.NewTicker(k.g.sockets.interval)
	defer tick.Stop()
	for {
		select {
		case <-k.ctx.Done():
			return
		case <-k.gone:
			return
		case <-tick.C:
		}
		if c == k.client && k.paused.Load() {
			continue
		}
		before := moved.Load()
		ctx, cancel := context.WithTimeout(k.ctx, k.g.sockets.patience)
		err := c.Ping(ctx)
		cancel()
		if err != nil && moved.Load() == before && (c != k.client || !k.paused.Load()) {
			k.end()
			return
		}
	}
}

// create gives a request to its stream.
func (k *socket) create(f *frame) {
	name := rawjson.Text(rawjson.Field(f.data, "stream_id"))
	k.mu.Lock()
	l := k.streams[name]
	if l == nil && len(k.streams) < maxStreams {
		l = &stream{k: k, name: name, frames: make(chan *frame, maxWaiting)}
		k.streams[name] = l
		k.running.Go(l.run)
	}
	k.mu.Unlock()
	if l != nil {
		k.active.Add(1)
		select {
		case l.frames <- f:
			return
		default:
			k.active.Add(-1)
		}
	}
	f.free()
	w := (&stream{k: k, name: name}).writer()
	text := "condense: too many responses are waiting on this WebSocket"
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = w.Write(wire.Refusal(wire.Responses, http.StatusTooManyRequests, text))
	_ = w.finish()
}

func (k *socket) all() []*stream {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Values(k.streams))
}

// fromVendor reads the vendor's events. Events of an answer go to its stream, all others to the client.
func (k *socket) fromVendor() error {
	for {
		kind, data, err := k.vendor.Read(k.ctx)
		if err != nil {
			return err
		}
		k.read.Add(1)
		if kind == websocket.MessageText && rawjson.IsObject(data) {
			k.mu.Lock()
			l := k.streams[rawjson.Text(rawjson.Field(data, "stream_id"))]
			k.mu.Unlock()
			if l != nil && l.take(data) {
				continue
			}
			if isLast(data) {
				_ = k.g.safely("extra", func() error { k.extra(data); return nil })
			}
		}
		if err := k.write(kind, data); err != nil {
			return err
		}
	}
}

// write sends a frame to the client.
func (k *socket) write(kind websocket.MessageType, data []byte) error {
	err := k.client.Write(k.ctx, kind, data)
	k.moved.Add(1)
	return err
}
