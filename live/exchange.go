package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/mcpserver"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/secret"
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
	if tool {
		out.Header.Set("Accept-Encoding", "identity") // the answer is read
	}
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
	g.current.Load().Reports.Logger.Warn("a request was forwarded without what failed", "failed", kind, "err", plain.Clip(err.Error()))
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
	if err := r.g.safely("answer", func() error { return e.learn(ctx) }); err != nil {
		r.g.fault("answer", err)
	}
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
	if err := r.g.safely("record", func() error { r.s.Reports.Record(ctx, seen); return nil }); err != nil {
		r.g.fault("record", err)
	}
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
