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

	"github.com/condensehq/condense/internal/live/payload"
	"github.com/condensehq/condense/internal/live/stats"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/telemetry"
	"github.com/condensehq/condense/internal/live/watching"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/mcpserver"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// A sending is a plan under way to the vendor, and the answer to it.
type sending struct {
	*plan
	body      []byte // nil if the received body is sent unchanged
	watcher   *watcher
	status    int              // of the answer
	free      bool             // the answer is the gateway's own
	written   *atomic.Bool     // set when the vendor has the whole request; nil before it is sent
	left      bool             // the client has disconnected
	reserved  float64          // US dollars of the tenant's usage, until the answer is counted
	asked     time.Time        // when the request was sent
	span      trace.Span       // of the request to the vendor
	originals *mcpserver.State // that the gateway's own tool reads; nil until its first call
}

// converse condenses a request with a conversation if necessary, forwards it, and records the answer.
func (g *Gateway) converse(w http.ResponseWriter, r *http.Request, s *settings, t *target) {
	t.endpoint.Stream = t.endpoint.Stream || laneOf(r.Context()) != nil
	b, leave, err := g.takeBody(w, r, s, t, knownBody*s.Bounds.MaxBody)
	defer leave()
	if err != nil {
		status, text := unread(w, err)
		t.refuse(w, status, "condense: "+text)
		return
	}
	defer b.Hold.Close()
	g.stats.Add(func(s *stats.Stats) { s.Requests++ })
	out := r.Clone(r.Context())
	b.Fill(out, r.Body)
	c, received := g.chain(r, s, t, b, w.Header()), b.Decoded
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
		in := &incoming{
			Gateway: g, s: s, t: t, header: r.Header, start: s.Now(), received: opened, weight: b.Weight, chain: c, held: b.Hold,

			unread: b.Rest != nil || int64(len(received)) > s.Bounds.MaxBody,
		}
		p = in.plan(r.Context())
	}
	g.measure(&telemetry.Processing, time.Since(read).Seconds(), telemetry.APIKey.String(t.kind()))
	leave() // the vendor may take long
	if p == nil {
		g.stats.Add(func(s *stats.Stats) { s.Passed++ })
		s.forward(w, out, t, t.sender(r.Context()))
		return
	}
	x := &sending{plan: p}
	// A request without an answer only prepares the vendor.
	x.free = c != nil && string(rawjson.Field(c.Whole, "generate")) == "false"
	defer func() { //nolint:contextcheck // the answer is recorded though the client has gone
		x.left = r.Context().Err() != nil
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), longestNote)
		defer cancel()
		x.done(ctx)
		x.settle(0) // what was reserved, if the answer was not counted
		x.prepareLater()
	}()
	x.fill(out)
	x.reserve(0, wire.Answer{})
	s.forward(w, out, t, x)
}

// fill gives the request to the vendor its body.
func (x *sending) fill(out *http.Request) {
	tool := x.tool.session != nil
	if tool && x.chain != nil {
		x.chain.tool = true
	}
	if !x.altered && !tool || x.s.Observe {
		x.stats.Add(func(s *stats.Stats) { s.Passed++ })
		return
	}
	x.t.changed = true
	x.body = x.r.Body
	if x.altered {
		x.body = x.r.With(x.messages)
	}
	payload.Replace(out, x.body)
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
	g.stats.Failed(kind, err.Error(), g.current.Load().Now())
	if errors.Is(err, store.ErrAway) {
		g.sessions.Lost(err)
		return
	}
	g.current.Load().Reports.Logger.Warn("a request was forwarded without what failed", "failed", kind, "err", plain.Clip(err.Error()))
}

// mostMessages is the most messages that a request may have to be condensed. Even a window of a million tokens is full
// long before; a body of a million tiny messages would take half a minute and gigabytes of memory.
const mostMessages = 50_000

// longestModel is the most bytes that a model's name may have, because it is stored and displayed.
const longestModel = 256

// done records the answer once it is complete or has ended early.
func (x *sending) done(ctx context.Context) {
	x.answered()
	if x.watcher == nil && (!x.left || x.written == nil || !x.written.Load()) {
		return
	}
	if err := x.safely("answer", func() error { return x.learn(ctx) }); err != nil {
		x.fault("answer", err)
	}
	if x.s.Reports.Record == nil || x.claim == nil {
		return
	}
	e := &watching.Exchange{
		Time: x.start, API: x.t.api, Tenant: x.key.Tenant, Agent: x.agent.Name, Session: x.session, Lineage: x.claim.Conversation,
		Model: x.r.Model, Received: x.received, Sent: x.body, Epoch: x.epoch,
	}
	if e.Sent == nil {
		e.Sent = x.received
	}
	if err := x.safely("record", func() error { x.s.Reports.Record(ctx, e); return nil }); err != nil {
		x.fault("record", err)
	}
}

// letGo frees the memory of a request that cannot be sent again: an answer can take minutes, and many agents wait for
// one at the same time.
func (x *plan) letGo() {
	if x.chain != nil {
		x.chain.letGo()
	}
	if x.s.Reports.Record != nil || x.tool.session != nil { // the vendor may be asked again
		return
	}
	x.received = nil
	kept := *x.r
	kept.Body, kept.Messages, kept.System, kept.Tools = nil, nil, nil, nil
	x.r, x.messages, x.rolling = &kept, nil, nil
	x.held.Close()
}
