package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httputil"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/mcpserver"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/remote"
	"github.com/condensehq/condense/internal/secret"
	"github.com/condensehq/condense/live/internal/audit"
	"github.com/condensehq/condense/live/internal/payload"
	"github.com/condensehq/condense/live/internal/telemetry"
	"github.com/condensehq/condense/live/internal/upstream"
)

// An exchange is a plan under way to the vendor, and the answer to it.
type exchange struct {
	req       *request
	plan      *plan
	body      []byte // nil if the received body is sent unchanged
	watcher   *watcher
	status    int              // of the answer
	free      bool             // the answer is the gateway's own
	written   *atomic.Bool     // set when the vendor has the whole request; nil before it is sent
	left      bool             // the client has disconnected
	unsent    error            // why the request could not be sent
	reserved  float64          // US dollars of the tenant's usage, until the answer is counted
	asked     time.Time        // when the request was sent
	span      trace.Span       // of the request to the vendor
	originals *mcpserver.State // that the gateway's own tool reads; nil until its first call
}

// converse condenses a request with a conversation if necessary, forwards it, and records the answer.
func (g *Gateway) converse(w http.ResponseWriter, r *http.Request, s *settings, t *target) {
	t.endpoint.Stream = t.endpoint.Stream || streamOf(r.Context()) != nil
	b, leave, err := g.takeBody(w, r, s, t, knownBody*s.Bounds.MaxBody)
	defer leave()
	if err != nil {
		status, text := unread(w, err)
		t.refuse(w, status, "condense: "+text)
		return
	}
	defer b.Hold.Close()
	g.stats.Add(func(s *Stats) { s.Requests++ })
	out := r.Clone(r.Context())
	b.Fill(out, r.Body)
	c, received := g.chainOf(r, s, t, b, w.Header()), b.Decoded
	if c != nil {
		received = c.Whole
	} else if l := streamOf(r.Context()); l != nil {
		if paid := l.owed.pay(received); paid != nil {
			received = paid
			payload.Replace(out, paid)
		}
	}
	opened, err := g.open(s, t, r.Header, received)
	if err != nil {
		t.refuse(w, http.StatusBadRequest, "condense: the compaction in this request cannot be opened: "+err.Error()+
			". Go back to before it, or begin a new session")
		return
	}
	if len(opened) != len(received) || !bytes.Equal(opened, received) {
		payload.Replace(out, opened)
	}
	read := time.Now()
	var p *plan
	if len(b.Raw) > 0 {
		q := &request{g: g, s: s, t: t, in: incoming{
			header: r.Header, start: s.Now(), received: opened, weight: b.Weight, chain: c, held: b.Hold,
			unread: b.Rest != nil || int64(len(received)) > s.Bounds.MaxBody,
		}}
		p = q.plan(r.Context())
	}
	g.measure(&telemetry.Processing, time.Since(read).Seconds(), telemetry.APIKey.String(t.kind()))
	leave() // the vendor may take long
	if p == nil {
		g.stats.Add(func(s *Stats) { s.Passed++ })
		s.forward(w, out, t, t.sender(r.Context()))
		return
	}
	e := &exchange{req: p.req, plan: p}
	// A request without an answer only prepares the vendor.
	e.free = c != nil && string(rawjson.Field(c.Whole, "generate")) == "false"
	defer func() { //nolint:contextcheck // the answer is recorded though the client has gone
		e.left = r.Context().Err() != nil
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), longestNote)
		defer cancel()
		e.done(ctx)
		e.settle(0) // what was reserved, if the answer was not counted
		e.prepareLater()
	}()
	e.fill(out)
	e.reserve(0, wire.Answer{})
	s.forward(w, out, t, e)
}

// fill gives the request to the vendor its body.
func (e *exchange) fill(out *http.Request) {
	tool := e.req.tool.session != nil
	if tool || e.req.tool.apart != nil {
		out.Header.Set("Accept-Encoding", "identity") // the answer is read
	}
	if tool && e.req.in.chain != nil {
		e.req.in.chain.tool = true
	}
	if !e.plan.altered && !tool || e.req.s.Observe {
		e.req.g.stats.Add(func(s *Stats) { s.Passed++ })
		return
	}
	e.req.t.changed = true
	e.body = e.req.parsed.Body
	if e.plan.altered {
		e.body = e.req.parsed.With(e.plan.messages)
	}
	payload.Replace(out, e.body)
}

// longestNote limits the time for recording an answer after the client has disconnected.
const longestNote = time.Minute

// safely runs f and turns a panic into an error: a bug in the gateway must not cost the client its request.
func (g *Gateway) safely(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			g.current.Load().Reports.Logger.Error("panic", "in", what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic in %s: %v", what, p)
		}
	}()
	return f()
}

// guarded runs f safely. Its error is a fault of that kind.
func (g *Gateway) guarded(kind string, f func() error) error {
	err := g.safely(kind, f)
	if err != nil {
		g.fault(kind, err)
	}
	return err
}

// fault logs and counts an error of the gateway that the client does not see.
func (g *Gateway) fault(kind string, err error) {
	if errors.Is(err, context.Canceled) {
		return // the client has disconnected
	}
	g.stats.Failed(kind, job.CauseOf(err), g.current.Load().Now())
	if errors.Is(err, store.ErrUnavailable) {
		g.sessions.Lost(err)
		return
	}
	g.current.Load().Reports.Logger.Warn("a request was forwarded without what failed", "failed", kind, "err", plain.Clip(secret.Redact(err.Error())))
}

// maxMessages is the most messages that a request may have to be condensed. Even a window of a million tokens is full
// long before; a body of a million tiny messages would take half a minute and gigabytes of memory.
const maxMessages = 50_000

// longestModel is the most bytes that a model's name may have, because it is stored and displayed.
const longestModel = 256

// done records the answer once it is complete or has ended early.
func (e *exchange) done(ctx context.Context) {
	r := e.req
	e.answered()
	if e.unsent != nil && !e.left {
		if err := e.unanswered(ctx, job.Cause{Why: secret.Safe("the vendor cannot be reached: " + upstream.Reason(e.unsent))}); err != nil {
			r.g.fault("answer", err)
		}
	}
	if e.watcher == nil && (!e.left || e.written == nil || !e.written.Load()) {
		return
	}
	_ = r.g.guarded("answer", func() error { return e.learn(ctx) })
	if r.s.Reports.Record == nil || r.lease == nil {
		return
	}
	seen := &Exchange{
		Time: r.in.start, API: r.t.api, Tenant: r.from.key.Tenant, Agent: r.from.agent.Name, Session: r.from.session, Lineage: r.lease.Conversation,
		Model: r.parsed.Model, Received: r.in.received, Sent: e.body, Epoch: e.plan.epoch,
	}
	if seen.Sent == nil {
		seen.Sent = r.in.received
	}
	_ = r.g.guarded("record", func() error { r.s.Reports.Record(ctx, seen); return nil })
}

// letGo frees the memory of a request that cannot be sent again: an answer can take minutes, and many agents wait for
// one at the same time.
func (p *plan) letGo() {
	if p.req.in.chain != nil {
		p.req.in.chain.letGo()
	}
	if p.req.s.Reports.Record != nil || p.req.tool.session != nil { // the vendor may be asked again
		return
	}
	p.req.in.received = nil
	kept := *p.req.parsed
	kept.Body, kept.Messages, kept.System, kept.Tools = nil, nil, nil, nil
	p.req.parsed, p.messages, p.req.rolling = &kept, nil, nil
	p.req.in.held.Close()
}

// CheckUpstream returns an error if an entry of [Options].Upstreams is invalid.
func CheckUpstream(name, address string) error {
	_, err := upstream.New(name, address)
	return err
}

// forward sends the request on and copies the answer as it arrives. If via is not nil, it sends the request in place
// of the transport.
func (s *settings) forward(w http.ResponseWriter, r *http.Request, t *target, via http.RoundTripper) {
	u := t.upstream
	to, err := u.Address(t.path, &t.endpoint, r.URL.RawQuery)
	if err != nil {
		t.refuse(w, http.StatusBadRequest, "condense: the path of the request is invalid")
		return
	}
	if via == nil {
		via = u
	}
	// A vendor may answer before it has read the whole request: keep sending the rest. HTTP/2 always does.
	_ = http.NewResponseController(w).EnableFullDuplex()
	again := r.GetBody
	r.GetBody = nil // ReverseProxy keeps r until the end of the answer
	p := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL = to
			p.Out.Host = ""
			p.Out.GetBody, again = again, nil
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if v := p.In.Header[name]; v != nil { // ReverseProxy removes these headers; they must pass
					p.Out.Header[name] = v
				}
			}
			maps.DeleteFunc(p.Out.Header, isOwn)
		},
		Transport:     via,
		FlushInterval: -1, // flush at once
		BufferPool:    buffers,
		ErrorLog:      slog.NewLogLogger(s.Reports.Logger.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil { // the client has gone
				panic(http.ErrAbortHandler)
			}
			if o, ok := w.(*audit.Outcome); ok {
				o.Unsent = upstream.Reason(err)
			}
			if errors.Is(err, upstream.ErrUnsigned) { // sent again, it would fail again
				t.refuse(w, http.StatusForbidden, "condense: upstream "+u.Name+" was not asked: "+upstream.Reason(err))
				return
			}
			t.refuse(w, http.StatusBadGateway, "condense: upstream "+u.Name+" cannot be reached: "+upstream.Reason(err))
		},
	}
	p.ServeHTTP(w, r)
}

// isOwn reports whether a header is addressed to the gateway.
func isOwn(name string, _ []string) bool { return strings.HasPrefix(name, "X-Condense-") }

// buffers are used to copy answers.
var buffers = new(bufferPool)

type bufferPool struct{ pool sync.Pool }

// Get returns a buffer.
func (p *bufferPool) Get() []byte {
	if b, ok := p.pool.Get().(*[]byte); ok {
		return *b
	}
	const size = 8 << 10 // every open stream holds one; events are smaller
	return make([]byte, size)
}

// Put takes a buffer back.
func (p *bufferPool) Put(b []byte) { p.pool.Put(&b) }

// failed notes that an epoch for the model was due and could not begin; forced says that the vendor would refuse the request without it.
// When that lasts, the log says it once for the conversation.
func (r *request) failed(ctx context.Context, model string, err error, forced bool) {
	if ctx.Err() != nil || r.lease == nil || session.Unstored(err) || errors.Is(err, store.ErrConflict) {
		return
	}
	f := r.lease.Fail(job.CauseOf(err), forced, r.in.start)
	if f.Lasting() && r.lease.First("failing") {
		r.s.Reports.Logger.WarnContext(ctx, "a conversation is not condensed, because its epochs fail: at the limit it is truncated",
			"conversation", r.lease.Conversation, "agent", r.from.agent.Name, "model", model, "times", f.Count, "since", f.Since, "err", f.Why,
			"remedy", "see the provider's error; or the agent's own compaction, or a new session")
	}
}

// knownBody is how many times [Bounds.MaxBody] a body may have that continues a known conversation. Such a conversation
// only lives because it is condensed: unread, its next request would be refused.
const knownBody = 8

// isNew reports whether a request continues no known conversation.
func (r *request) isNew(in *session.Session) bool {
	c, err := in.Find(r.parsed, r.rolling)
	return err != nil || c.Kind == lineage.New
}

// warnOfSize logs once for each conversation that its requests come near [Bounds.MaxBody].
func (r *request) warnOfSize(ctx context.Context) {
	const near = 0.75
	if size, most := len(r.in.received), r.s.Bounds.MaxBody; float64(size) >= near*float64(most) && r.lease.First("max_body") {
		r.s.Reports.Logger.WarnContext(ctx, "the requests of a conversation come near serve.max_body, above which they are read only while this gateway "+
			"knows the conversation: raise it", "bytes", size, "max_body", most, "read_at_most", knownBody*most, "agent", r.from.agent.Name, "model", r.parsed.Model)
	}
}

// sayUnread replaces the vendor's refusal of a request that was too large to be read by one that names the setting. It
// quotes the vendor, because agents look for its words.
func (e *exchange) sayUnread(res *http.Response) {
	r := e.req
	if !r.in.unread || !refusal(res.StatusCode) {
		return
	}
	text, err := refusalOf(res)
	if err != nil {
		return
	}
	why := remote.Reported(res.StatusCode, text)
	if overflow, err := r.g.host.Overflow(r.turn(), why); err != nil || !overflow && res.StatusCode != http.StatusRequestEntityTooLarge {
		return
	}
	said := secret.Safe(cmp.Or(why.Message, string(text)))
	body := wire.Refusal(r.t.endpoint.Form(), res.StatusCode, fmt.Sprintf("condense: this request has more than %d bytes (serve.max_body), so it "+
		"was not condensed: raise serve.max_body in condense.yaml, or begin a new session. The vendor: %s", r.s.Bounds.MaxBody, said))
	_ = res.Body.Close()
	res.Header.Del("Content-Encoding")
	res.Header.Set("Content-Type", "application/json")
	withBody(res, body) //nolint:bodyclose // whoever gets res closes it
}
