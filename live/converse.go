package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/live/count"
	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/payload"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/stats"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/telemetry"
	"github.com/condensehq/condense/internal/live/upstream"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/mcpserver"
	"github.com/condensehq/condense/internal/plain"
)

// An exchange is a request with a conversation, and the answer to it.
type exchange struct {
	*Gateway
	s        *settings
	t        *target
	start    time.Time
	r        *wire.Request
	agent    *agents.Agent
	volatile []wire.Volatile
	key      store.Key
	session  string // the session ID that the client sent
	limits

	claim      *session.Claim // nil if the request is no turn of a conversation, or its lineage is not known
	seen       *session.Claim // the lineage of a request that does not advance it
	compacts   bool           // asks for a compaction
	subscribed bool           // the credentials are the login of a plan
	ofPlan     bool           // they are a plan's login, or may be
	postponed  *postponed     // preparation that starts after the answer; nil for none
	rolling    []wire.Hash    // rolling hashes of the client's messages
	plan
	media    int    // estimated tokens of images and files, part of plan.original
	reads    string // identity that can recall content of the request; empty if nobody can
	recalls  bool   // this client can recall: views may have handles
	calls    bool   // the client asks for a condensation, and waits for it
	pins     job.Pins
	guessed  bool // the request does not say how the model thinks, and r.Thinking is assumed
	epoch    *stats.Epoch
	journal  []byte         // the epoch's, for Options.Watch
	undone   bool           // next undoes the last epoch
	obeys    *session.Order // the user's order with its outcome, still to be stored; nil if there is none
	shadowed *job.Job       // the epoch's job, for Options.Shadow
	next     *lineage.State // the state after the epoch
	made     *job.Prepared  // the prepared condensation that next is made of
	must     bool           // without the epoch, the vendor refuses the request
	repairs  bool           // the vendor has refused the view that was sent before
	kept     *store.Kept    // originals to store with the state; nil for none
	ingested int
	lost     int  // times that another gateway decided first
	durable  bool // the view has new content, so the state must be stored before it is sent

	received []byte          // the body as it came
	sent     []byte          // nil if the received body is sent unchanged
	weight   *payload.Weight // of a request that is no turn of a conversation
	watcher  *watcher
	status   int          // of the answer
	free     bool         // the answer is the gateway's own
	written  *atomic.Bool // set when the vendor has the whole request; nil before it is sent
	left     bool         // the client has disconnected
	asked    time.Time    // when the request was sent
	span     trace.Span   // of the request to the vendor

	// For a conversation with the gateway's own tool. Then r is the request with the tool and the restored rounds.
	equipped   *session.Session // nil if it has none
	at         wire.Hash        // rolling hash of the client's own messages
	remembered *mcpserver.State // originals that the tool reads; nil until its first call
}

// converse condenses a request with a conversation if necessary, forwards it, and records the answer.
func (g *Gateway) converse(w http.ResponseWriter, r *http.Request, s *settings, t *target) {
	b, leave, err := g.takeBody(r, s, t) //nolint:contextcheck // that of the request
	defer leave()
	if err != nil {
		status := http.StatusBadRequest
		if errors.Is(err, os.ErrDeadlineExceeded) {
			status = http.StatusRequestTimeout
		}
		t.refuse(w, status, "condense: the request could not be read: "+upstream.Reason(err))
		return
	}
	g.stats.Add(func(s *stats.Stats) { s.Requests++ })
	out := r.Clone(r.Context())
	b.Fill(out, r.Body)
	opened, err := g.open(s, t, r.Header, b.Decoded)
	if err != nil {
		t.refuse(w, http.StatusBadRequest, "condense: the compaction in this request cannot be opened: "+err.Error()+". Go back to before it, or begin a new session")
		return
	}
	if len(opened) != len(b.Decoded) || !bytes.Equal(opened, b.Decoded) {
		b.Decoded = opened
		payload.Replace(out, opened)
	}
	read := time.Now()
	x := g.exchange(r, s, t, b)
	g.measure(&telemetry.Processing, time.Since(read).Seconds(), telemetry.APIKey.String(t.kind()))
	leave() // the vendor may take long
	if x == nil {
		g.stats.Add(func(s *stats.Stats) { s.Passed++ })
		s.forward(w, out, t, nil)
		return
	}
	defer func() { //nolint:contextcheck // the answer is recorded though the client has gone
		x.left = r.Context().Err() != nil
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), longestNote)
		defer cancel()
		x.done(ctx)
		x.prepareLater()
	}()
	if (x.altered || x.equipped != nil) && !s.Observe {
		t.changed = true
		x.sent = x.r.Body
		if x.altered {
			x.sent = x.r.With(x.view)
		}
		payload.Replace(out, x.sent)
		if x.equipped != nil {
			out.Header.Set("Accept-Encoding", "identity") // the answer is read
		}
	} else {
		g.stats.Add(func(s *stats.Stats) { s.Passed++ })
	}
	s.forward(w, out, t, &sender{x})
}

// longestNote limits the time for recording an answer after the client has disconnected.
const longestNote = time.Minute

// exchange decides which messages to send in place of the request's own. It returns nil if the body is empty.
func (g *Gateway) exchange(r *http.Request, s *settings, t *target, b *payload.Body) *exchange {
	if len(b.Raw) == 0 {
		return nil
	}
	x := &exchange{Gateway: g, s: s, t: t, start: s.Now(), received: b.Decoded, weight: b.Weight}
	if x.weight == nil {
		if err := g.safely("request", func() error { return x.read(r, b.Decoded) }); err != nil {
			g.fault("request", err)
			x.frozen()
		}
	}
	x.media = count.Media(b.Decoded)
	if x.claim == nil && x.seen == nil && x.weight == nil { // every request's cost is counted
		x.weight = &payload.Weight{}
		if x.r == nil {
			x.weight = payload.Weigh(b.Decoded)
		}
		x.weight.Counted = count.Tokens(b.Decoded)
	}
	if x.r == nil {
		x.r = &wire.Request{API: wire.API(t.api)}
	}
	if x.epoch == nil { // otherwise the epoch has called it
		x.watch()
	}
	x.postpone()
	if x.claim != nil {
		x.claim.Release()
	}
	return x
}

// safely runs f and turns a panic into an error: a bug in the gateway must not cost the client its request.
func (g *Gateway) safely(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			g.current.Load().Logger.Error("panic", "in", what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
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
	g.stats.Fault(kind)
	if errors.Is(err, store.ErrAway) {
		g.sessions.Lost(err)
		return
	}
	g.current.Load().Logger.Warn("a request was forwarded without what failed", "failed", kind, "err", plain.Clip(err.Error()))
}

// mostMessages is the most messages that a request may have to be condensed. Even a window of a million tokens is full
// long before; a body of a million tiny messages would take half a minute and gigabytes of memory.
const mostMessages = 50_000

// longestModel is the most bytes that a model's name may have, because it is stored and displayed.
const longestModel = 256

// read parses the request, fills x and decides on the view. It leaves x.claim nil for requests that are not condensed.
func (x *exchange) read(r *http.Request, body []byte) error {
	ctx := r.Context()
	api := wire.API(x.t.api)
	known := agents.Of(r.Header, nil)
	request, err := wire.Parse(api, body, &wire.Options{
		Volatile: known.Volatile, Cache: x.parsed, Model: x.t.endpoint.Model, Stream: x.t.endpoint.Stream,
	})
	if err != nil {
		return nil //nolint:nilerr // not for us: the vendor says what is wrong with it
	}
	x.agent, x.volatile, x.subscribed = known, known.Volatile, agents.Subscription(r.Header)
	x.ofPlan = isPlan(x.t, r.Header, x.subscribed)
	if known == agents.Any {
		head := request.System
		if head == nil && len(request.Messages) > 0 {
			head = request.Messages[0].Raw
		}
		x.agent = agents.Of(r.Header, head)
	}
	x.r = request
	x.priced(request.Model)
	if n := len(request.Messages); n == 0 || n > mostMessages || request.Stateful || len(request.Model) > longestModel {
		return nil
	}
	last := len(request.Messages) - 1
	for last > 0 && request.Messages[last].Role == "system" { // Claude Code adds reminders after the user's message
		last--
	}
	x.compacts = x.t.compact || asksToCompact(request.Messages)
	side := agents.SideOf(agents.Call{
		Header: r.Header, Messages: len(request.Messages), Tools: request.Tools != nil, MaxOutput: request.MaxOutput,
		Structured: request.Structured, System: request.System, Last: request.Messages[last].Raw,
	})
	if side != agents.Turn && side != agents.Summary && !x.compacts {
		return nil
	}
	x.key = store.Key{Tenant: x.tenant(x.t.who, r.Header, request.Body), API: x.t.api, Agent: x.agent.SubAgent(r.Header), Session: x.agent.Session(r.Header, request.Session)}
	if x.s.Observe {
		x.key.API += session.Observed // separate, because the vendor has not seen these views
	}
	if err := x.key.Validate(); err != nil {
		x.key.Agent, x.key.Session = "", ""
	}
	x.rolling = lineage.Roll(request.Messages)
	if x.session = x.key.Session; x.key.Session == "" {
		x.key.Session = opening(request.Messages, x.rolling)
	}
	if x.limits, err = x.limitsOf(x); err != nil { //nolint:contextcheck // a server is asked for its window next to the request
		return err
	}
	session := x.sessions.Of(x.key, x.start)
	if err := x.sessions.Reach(ctx, session, x.r, x.rolling); err != nil {
		return err
	}
	if err := x.safely("tool", func() error { return x.equip(ctx, r.Header, session) }); err != nil {
		x.fault("tool", err)
	}
	request = x.r
	if summary := side == agents.Summary || request.Compacts || x.compacts; summary || x.t.count {
		return x.peek(session, summary)
	}
	x.reads = x.readerOf(x.s, x.t)
	x.recalls = !x.s.Observe && !x.s.Recall.Off && (x.equipped != nil || !x.s.Recall.NoMCP && x.reads != "" && canCall(request.Tools))
	if err := x.take(ctx, session); err != nil {
		return err
	}
	return x.decide(ctx)
}

// take claims the lineage of the request in x.claim.
func (x *exchange) take(ctx context.Context, from *session.Session) error {
	c, err := from.Claim(ctx, x.r, x.rolling)
	if err != nil {
		return err
	}
	x.claim, c.Reads, c.Most = c, cmp.Or(x.reads, c.Reads), x.s.Recall.MaxSize
	return nil
}

// peek plans the view of a request that does not advance its lineage: one that only counts tokens, one that asks for a
// compaction, or the agent's own request for a summary. A summary is made of the original messages if they fit, because
// that is best.
func (x *exchange) peek(session *session.Session, summary bool) error {
	c, err := session.Find(x.r, x.rolling)
	if err != nil {
		return err
	}
	x.seen = c
	x.plan = x.planOf(c.State)
	if summary && x.altered && c.State.Scale(x.original) <= x.policy.Limit {
		originals := lineage.State{}
		if x.caching.Bound { // thinking that the model wrote after the view is not valid with the originals
			originals.Strip(x.r, x.rolling)
		}
		x.plan = x.planOf(&originals)
	}
	return nil
}

// A plan holds the messages to send for a request, and their sizes.
type plan struct {
	view     [][]byte // in place of the client's messages
	altered  bool     // the view differs from them
	ours     int      // size of the request with the view, by our count
	original int      // size of the request as it came, by our count
	tokens   int      // size of the request with the view, by the vendor's count, estimated
}

// planOf returns the plan that follows from a state.
func (x *exchange) planOf(s *lineage.State) plan {
	s.Tool = x.equipped != nil
	if x.caching.Bound {
		s.Bind(x.r, x.rolling)
	}
	p := plan{view: s.View(x.r, x.rolling)}
	p.altered = len(p.view) != len(x.r.Messages)
	for i := 0; i < len(p.view) && !p.altered; i++ {
		p.altered = !bytes.Equal(p.view[i], x.r.Messages[i].Raw)
	}
	p.ours = s.Count(x.r, x.rolling, count.Tokens)
	p.tokens = s.Estimate(p.ours)
	p.original = p.ours
	if p.altered {
		p.original = s.HeadOur + untouched(x.r)
	}
	return p
}

// untouched returns the size of the client's messages in tokens, by our count.
func untouched(r *wire.Request) int {
	n := 0
	for i := range r.Messages {
		if m := &r.Messages[i]; m.Tokens > 0 {
			n += m.Tokens
		} else {
			n += count.Tokens(m.Raw)
		}
	}
	return n
}

// frozen falls back to the view that the vendor saw last or, without one, to the client's own messages.
func (x *exchange) frozen() {
	x.view, x.altered, x.epoch, x.next, x.postponed, x.undone = nil, false, nil, nil, nil, false
	if x.claim == nil || x.claim.State == nil {
		return
	}
	err := x.safely("view", func() error {
		if x.claim.Frozen() {
			x.plan = x.planOf(x.claim.State)
		}
		return nil
	})
	if err != nil {
		x.view, x.altered = nil, false
	}
}

// decide plans the view of a turn, and begins an epoch if one is due. If another gateway has stored a decision about
// the lineage in the meantime, it starts over from the stored state.
func (x *exchange) decide(ctx context.Context) error {
	for {
		err := x.decideOnce(ctx)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		x.lost++
		x.claim.Release()
		if err := x.claim.Session.Load(ctx, x.store); err != nil {
			x.fault("store", err)
		}
		if err := x.take(ctx, x.claim.Session); err != nil {
			return err
		}
	}
}

func (x *exchange) decideOnce(ctx context.Context) error {
	c := x.claim
	if !c.Mine { // another request of the lineage decides
		x.plan = x.planOf(c.State)
		return nil
	}
	before := *c.State
	x.postponed = nil
	if err := x.safely("ingest", func() error { return x.ingest(ctx) }); err != nil {
		x.fault("ingest", err)
		ingested := before
		c.State, x.ingested, x.kept = &ingested, 0, nil
	}
	x.plan = x.planOf(c.State)
	if err := x.safely("epoch", func() error { return x.epochIfDue(ctx, false) }); err != nil {
		x.fault("epoch", err)
	}
	return x.commit(ctx, &before)
}

// commit stores the state before the view is sent. New content in the view must be on disk first; if that fails, the
// request is sent as if nothing had been changed. The end of a view that differs from the client's messages must be
// stored too, because the next request may come to another gateway. The error wraps [store.ErrConflict] if the request
// should be decided again.
func (x *exchange) commit(ctx context.Context, before *lineage.State) error {
	c, old, based := x.claim, x.claim.Entry, x.claim.Based
	c.Keep = x.kept
	if x.next != nil { // the old record stays, so that a client that goes back to before the epoch finds it
		c.Entry, c.Over = c.NewEntry()
		if c.Over != nil && !x.undone {
			x.next.Epoch.Over = c.Over.ID
		}
		c.Based, c.State = 0, x.next
	}
	err := x.check(&x.plan)
	if err == nil && c.Unread {
		err = c.Session.Failure()
	}
	if err == nil {
		c.State.Sent(x.r, x.rolling, x.start)
		x.describe()
		x.durable = x.durable || x.ingested > 0 || x.next != nil || !x.s.Observe && (c.State.Epoch != nil || len(c.State.Ingest) > 0 || c.State.Tool)
		err = c.Save(ctx, x.store, x.durable, x.start)
	}
	if err == nil {
		if x.next != nil {
			<-old.Turn
		}
		if x.epoch != nil {
			x.announce()
		}
		if x.undone {
			x.stats.Add(func(s *stats.Stats) { s.Undone++ })
		}
		x.reportOrder(ctx)
		return nil
	}
	must := x.repairs || x.epoch != nil && x.must
	if must && (errors.Is(err, store.ErrAway) || session.Unstored(err) && c.Unread) {
		x.fault("commit", err)
		x.guess(old, based, before)
		return nil
	}
	full := must && errors.Is(err, store.ErrFile)
	if full && x.kept == nil {
		return x.hold(ctx, old, err)
	}
	if (full || errors.Is(err, store.ErrFull)) && x.recalls { // try again without handles, which need no originals
		x.recalls = false
		unchanged := *before
		x.stats.Fault("recall_full")
		overflow := x.epoch != nil && x.epoch.Reason == overflowed
		c.Entry, c.Based, c.Over, c.State, c.Keep, x.kept, x.next, x.ingested, x.epoch, x.undone, x.obeys = old, based, nil, &unchanged, nil, nil, nil, 0, nil, false, nil
		x.plan = x.planOf(c.State)
		if err := x.safely("epoch", func() error { return x.epochIfDue(ctx, overflow) }); err != nil {
			x.fault("epoch", err)
		}
		return x.commit(ctx, before)
	}
	c.Entry, c.Based, c.Over, c.State, c.Keep, x.kept, x.next, x.ingested, x.epoch, x.durable, x.undone, x.obeys = old, based, nil, before, nil, nil, nil, 0, nil, false, false, nil
	if errors.Is(err, store.ErrConflict) && x.lost < session.MostLost {
		return err
	}
	// If r.Thinking was only assumed, the change waits until the turn is over, and no fault is logged.
	if f := (*wire.RuleError)(nil); !x.guessed || !errors.As(err, &f) {
		x.fault("commit", err)
	}
	x.plan = x.planOf(c.State)
	if x.check(&x.plan) != nil {
		x.view, x.altered = nil, false
	}
	if errors.Is(err, store.ErrAway) && c.Entry.State == nil && session.Answered(x.r) {
		return nil // the store, which cannot be reached, may have a state
	}
	c.State.Sent(x.r, x.rolling, x.start)
	c.Late(err)
	return c.Save(ctx, x.store, false, x.start)
}

// guess lets the view be sent although it cannot be stored, because the vendor refuses every other one. The state is
// not remembered: the next request builds the same view again from the prepared condensation, and stores it if it can.
func (x *exchange) guess(old *session.Entry, based int64, before *lineage.State) {
	c := x.claim
	c.Entry, c.Based, c.Over, c.State, c.Keep = old, based, nil, before, nil
	c.Guess(x.made, x.rolling[len(x.rolling)-1])
	x.kept, x.next, x.epoch, x.ingested, x.undone, x.obeys = nil, nil, nil, 0, false, nil
}

// check returns an error if the plan's view breaks a rule of the vendor that the client's own request does not break.
func (x *exchange) check(p *plan) error {
	if !p.altered {
		return nil
	}
	return x.checkView(p.view)
}

func (x *exchange) checkView(view [][]byte) error {
	err := x.parsed.Check(x.r.API, x.r, view)
	if f := (*wire.RuleError)(nil); errors.As(err, &f) && f.Client {
		return nil
	}
	return err
}

// done records the answer once it is complete or has ended early.
func (x *exchange) done(ctx context.Context) {
	x.answered()
	if x.watcher == nil && (!x.left || x.written == nil || !x.written.Load()) {
		return
	}
	if err := x.safely("answer", func() error { return x.learn(ctx) }); err != nil {
		x.fault("answer", err)
	}
	if x.s.Record == nil || x.claim == nil {
		return
	}
	e := &Exchange{
		Time: x.start, API: x.t.api, Tenant: x.key.Tenant, Agent: x.agent.Name, Session: x.session, Lineage: x.claim.Conversation,
		Model: x.r.Model, Received: x.received, Sent: x.sent, Epoch: x.epoch,
	}
	if e.Sent == nil {
		e.Sent = x.received
	}
	if err := x.safely("record", func() error { x.s.Record(ctx, e); return nil }); err != nil {
		x.fault("record", err)
	}
}

// letGo frees the memory of a request that cannot be sent again: an answer can take minutes, and many agents wait for
// one at the same time.
func (x *exchange) letGo() {
	if x.s.Record != nil || x.equipped != nil { // the vendor may be asked again
		return
	}
	x.received = nil
	kept := *x.r
	kept.Body, kept.Messages, kept.System, kept.Tools = nil, nil, nil, nil
	x.r, x.view, x.sent, x.rolling = &kept, nil, nil, nil
}
