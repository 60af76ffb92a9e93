package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/mcpserver"
)

// An exchange is a request with a conversation, and its answer.
type exchange struct {
	*Gateway
	s        *settings
	t        *target
	start    time.Time
	r        *wire.Request
	agent    *agents.Agent
	volatile []wire.Volatile
	key      store.Key
	session  string // as the client names it
	limits

	claim      *claim      // nil if the request is no turn of a conversation, or nothing is known about it
	seen       *claim      // what is known, of a request that changes nothing
	compacts   bool        // asks for a compaction
	subscribed bool        // the credentials are the login of a plan
	ofPlan     bool        // they are, or may be
	postponed  *postponed  // to be prepared when the request was answered; nil for nothing
	rolling    []wire.Hash // of the client's messages
	plan
	media    int    // of plan.original, about those of images and files
	reads    string // who can recall what the request brings; empty if no one can
	recalls  bool   // this client can recall: views may have handles
	calls    bool   // the client asks for a condensation, and waits for it
	pins     pins
	guessed  bool // how the model thinks is not in the request
	epoch    *Epoch
	journal  []byte         // of the epoch, for Options.Watch
	undone   bool           // next takes the last epoch back
	obeys    *Order         // what became of what the user asked for; nil if there is nothing new
	shadowed *job           // of the epoch, for Options.Shadow
	next     *lineage.State // of the epoch
	made     *prepared      // for it
	must     bool           // the vendor refuses the request without it
	repairs  bool           // the vendor has refused what was sent
	kept     *store.Kept    // with it; nil for nothing
	ingested int
	lost     int  // decisions to other gateways
	durable  bool // something is sent for the first time that must be sent again

	received []byte  // the body as it came
	sent     []byte  // nil: as it came
	weight   *weight // of a request that is no turn of a conversation
	watcher  *watcher
	status   int          // of the answer
	free     bool         // the answer is the gateway's own
	written  *atomic.Bool // the vendor has got the whole request; nil before it is sent
	left     bool         // the client has gone
	asked    time.Time    // when the request was sent
	span     trace.Span   // of the request to the vendor

	// Of a conversation with the tool of the gateway. Then r is the request with it, and with what is put back.
	equipped   *session         // nil if it has none
	at         wire.Hash        // rolling hash of the client's own messages
	remembered *mcpserver.State // what the tool recalls from; nil until it is asked
}

// converse forwards a request with a conversation.
func (g *Gateway) converse(w http.ResponseWriter, r *http.Request, s *settings, t *target) {
	b, leave, err := g.takeBody(r, s, t) //nolint:contextcheck // that of the request
	defer leave()
	if err != nil {
		status := http.StatusBadRequest
		if errors.Is(err, os.ErrDeadlineExceeded) {
			status = http.StatusRequestTimeout
		}
		t.refuse(w, status, "condense: the request could not be read: "+reason(err))
		return
	}
	g.stats.add(func(s *Stats) { s.Requests++ })
	out := r.Clone(r.Context())
	b.fill(out, r.Body)
	opened, err := g.open(s, t, r.Header, b.decoded)
	if err != nil {
		t.refuse(w, http.StatusBadRequest, "condense: the compaction in this request cannot be opened: "+err.Error()+". Go back to before it, or begin a new session")
		return
	}
	if len(opened) != len(b.decoded) || !bytes.Equal(opened, b.decoded) {
		b.decoded = opened
		replaceBody(out, opened)
	}
	read := time.Now()
	x := g.exchange(r, s, t, b)
	g.measure(&mProcessing, time.Since(read).Seconds(), aAPI.String(t.kind()))
	leave() // the vendor may take long
	if x == nil {
		g.stats.add(func(s *Stats) { s.Passed++ })
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
		replaceBody(out, x.sent)
		if x.equipped != nil {
			out.Header.Set("Accept-Encoding", "identity") // the answer is read
		}
	} else {
		g.stats.add(func(s *Stats) { s.Passed++ })
	}
	s.forward(w, out, t, &sender{x})
}

// longestNote is how long it may take to record an answer, whose client may have gone.
const longestNote = time.Minute

// replaceBody makes body, which is not compressed, the body of a request.
func replaceBody(r *http.Request, body []byte) {
	hold(r, body)
	r.ContentLength = int64(len(body))
	r.TransferEncoding = nil
	r.Header.Del("Content-Encoding")
	if r.Header.Get("Content-Length") != "" {
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
	}
}

// exchange decides what is sent in place of the request. It returns nil if the request is empty.
func (g *Gateway) exchange(r *http.Request, s *settings, t *target, b *body) *exchange {
	if len(b.raw) == 0 {
		return nil
	}
	x := &exchange{Gateway: g, s: s, t: t, start: s.Now(), received: b.decoded, weight: b.weight}
	if x.weight == nil {
		if err := g.safely("request", func() error { return x.read(r, b.decoded) }); err != nil {
			g.fault("request", err)
			x.frozen()
		}
	}
	x.media = mediaTokens(b.decoded)
	if x.claim == nil && x.seen == nil && x.weight == nil { // what it costs is counted whatever it is
		x.weight = &weight{}
		if x.r == nil {
			x.weight = weigh(b.decoded)
		}
		x.weight.counted = tokensOf(b.decoded)
	}
	if x.r == nil {
		x.r = &wire.Request{API: wire.API(t.api)}
	}
	if x.epoch == nil { // else it was shown
		x.watch()
	}
	x.postpone()
	if x.claim != nil {
		x.claim.release()
	}
	return x
}

// safely runs f and turns a panic into an error: a fault of ours must not cost the client its
// request.
func (g *Gateway) safely(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			g.current.Load().Logger.Error("panic", "in", what, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic in %s: %v", what, p)
		}
	}()
	return f()
}

// fault records an error of ours that the client does not see.
func (g *Gateway) fault(kind string, err error) {
	if errors.Is(err, context.Canceled) {
		return // the client has gone
	}
	g.stats.fault(kind)
	if errors.Is(err, store.ErrAway) {
		g.away.begin(g, err)
		return
	}
	g.current.Load().Logger.Warn("a request was forwarded without what failed", "failed", kind, "err", clip(err.Error()))
}

// mostMessages is how many messages a request may have to be condensed. A window of a million tokens is full long before;
// a body of a million tiny messages would take half a minute and gigabytes.
const mostMessages = 50_000

// longestModel is the length in bytes of the longest name of a model, which is kept and shown.
const longestModel = 256

// read reads the request and fills x.
func (x *exchange) read(r *http.Request, body []byte) error {
	ctx := r.Context()
	api := wire.API(x.t.api)
	known := agents.Of(r.Header, nil)
	request, err := wire.Parse(api, body, &wire.Options{Volatile: known.Volatile, Cache: x.parsed})
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
		x.key.API += observed // its state is not true of what the vendor has seen
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
	session := x.sessions.of(x.key, x.start)
	if err := x.reach(ctx, session); err != nil {
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

// take claims the lineage of the request.
func (x *exchange) take(ctx context.Context, from *session) error {
	c, err := from.claim(ctx, x.r, x.rolling)
	if err != nil {
		return err
	}
	x.claim, c.reads, c.most = c, cmp.Or(x.reads, c.reads), x.s.Recall.MaxSize
	return nil
}

// peek shows what is sent for a request that changes nothing: one that counts tokens, one that the vendor
// is to compact, or the agent's own summary. A summary is best made of the originals, if they fit.
func (x *exchange) peek(session *session, summary bool) error {
	c, err := session.find(x.r, x.rolling)
	if err != nil {
		return err
	}
	x.seen = c
	x.plan = x.planOf(c.state)
	if summary && x.altered && c.state.Scale(x.original) <= x.policy.Limit {
		originals := lineage.State{}
		if x.caching.Bound { // the newer thinking was written after the view
			originals.Strip(x.r, x.rolling)
		}
		x.plan = x.planOf(&originals)
	}
	return nil
}

// A plan has the messages to be sent for a request, and their size.
type plan struct {
	view     [][]byte // in place of the client's messages
	altered  bool     // the view differs from them
	ours     int      // our tokens of the request with the view
	original int      // our tokens of the request as it came
	tokens   int      // the vendor's tokens of the request with the view, as estimated
}

// planOf returns the plan of a state.
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
	p.ours = s.Count(x.r, x.rolling, tokensOf)
	p.tokens = s.Estimate(p.ours)
	p.original = p.ours
	if p.altered {
		p.original = s.HeadOur + untouched(x.r)
	}
	return p
}

// untouched returns our tokens of the client's messages.
func untouched(r *wire.Request) int {
	n := 0
	for i := range r.Messages {
		if m := &r.Messages[i]; m.Tokens > 0 {
			n += m.Tokens
		} else {
			n += tokensOf(m.Raw)
		}
	}
	return n
}

// frozen falls back to the view that the vendor has seen last, or to the client's own messages.
func (x *exchange) frozen() {
	x.view, x.altered, x.epoch, x.next, x.postponed, x.undone = nil, false, nil, nil, nil, false
	if x.claim == nil || x.claim.state == nil {
		return
	}
	err := x.safely("view", func() error {
		x.claim.session.mu.Lock()
		s := x.claim.entry.state
		x.claim.session.mu.Unlock()
		if s != nil {
			copied := *s
			x.claim.state = &copied
			x.plan = x.planOf(&copied)
		}
		return nil
	})
	if err != nil {
		x.view, x.altered = nil, false
	}
}

// mostLost is how often a request decides again because another gateway was faster.
const mostLost = 3

// decide fills in the view of a turn, and begins an epoch if one is due. If another gateway has decided about the lineage in the meantime, what
// that has stored counts.
func (x *exchange) decide(ctx context.Context) error {
	for {
		err := x.decideOnce(ctx)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		x.lost++
		x.claim.release()
		if err := x.claim.session.load(ctx, x.store); err != nil {
			x.fault("store", err)
		}
		if err := x.take(ctx, x.claim.session); err != nil {
			return err
		}
	}
}

func (x *exchange) decideOnce(ctx context.Context) error {
	c := x.claim
	if !c.mine { // another request of the lineage decides
		x.plan = x.planOf(c.state)
		return nil
	}
	before := *c.state
	x.postponed = nil
	if err := x.safely("ingest", func() error { return x.ingest(ctx) }); err != nil {
		x.fault("ingest", err)
		ingested := before
		c.state, x.ingested, x.kept = &ingested, 0, nil
	}
	x.plan = x.planOf(c.state)
	if err := x.safely("epoch", func() error { return x.epochIfDue(ctx, false) }); err != nil {
		x.fault("epoch", err)
	}
	return x.commit(ctx, &before)
}

// commit records what is about to be sent. What the vendor has not seen before must be on disk
// first; if that fails, the request goes as if nothing had been changed. Where a view ended that is not the client's own messages must be
// stored too: the next request may come to another gateway. The error wraps [store.ErrConflict] if the request should be decided again.
func (x *exchange) commit(ctx context.Context, before *lineage.State) error {
	c, old, based := x.claim, x.claim.entry, x.claim.based
	c.keep = x.kept
	if x.next != nil { // the old record stays: a rewind to before the epoch finds it
		c.entry, c.over = c.newEntry()
		if c.over != nil && !x.undone {
			x.next.Epoch.Over = c.over.ID
		}
		c.based, c.state = 0, x.next
	}
	err := x.check(&x.plan)
	if err == nil && c.unread {
		err = c.session.failure()
	}
	if err == nil {
		c.state.Sent(x.r, x.rolling, x.start)
		x.describe()
		x.durable = x.durable || x.ingested > 0 || x.next != nil || !x.s.Observe && (c.state.Epoch != nil || len(c.state.Ingest) > 0 || c.state.Tool)
		err = c.save(ctx, x.store, x.durable, x.start)
	}
	if err == nil {
		if x.next != nil {
			<-old.turn
		}
		if x.epoch != nil {
			x.announce()
		}
		if x.undone {
			x.stats.add(func(s *Stats) { s.Undone++ })
		}
		x.reportOrder(ctx)
		return nil
	}
	must := x.repairs || x.epoch != nil && x.must
	if must && (errors.Is(err, store.ErrAway) || unstored(err) && c.unread) {
		x.fault("commit", err)
		x.guess(old, based, before)
		return nil
	}
	full := must && errors.Is(err, store.ErrFile)
	if full && x.kept == nil {
		return x.hold(ctx, old, err)
	}
	if (full || errors.Is(err, store.ErrFull)) && x.recalls { // without handles, then
		x.recalls = false
		unchanged := *before
		x.stats.fault("recall_full")
		overflow := x.epoch != nil && x.epoch.Reason == overflowed
		c.entry, c.based, c.over, c.state, c.keep, x.kept, x.next, x.ingested, x.epoch, x.undone, x.obeys = old, based, nil, &unchanged, nil, nil, nil, 0, nil, false, nil
		x.plan = x.planOf(c.state)
		if err := x.safely("epoch", func() error { return x.epochIfDue(ctx, overflow) }); err != nil {
			x.fault("epoch", err)
		}
		return x.commit(ctx, before)
	}
	c.entry, c.based, c.over, c.state, c.keep, x.kept, x.next, x.ingested, x.epoch, x.durable, x.undone, x.obeys = old, based, nil, before, nil, nil, nil, 0, nil, false, false, nil
	if errors.Is(err, store.ErrConflict) && x.lost < mostLost {
		return err
	}
	if f := (*wire.RuleError)(nil); !x.guessed || !errors.As(err, &f) { // else it waits until the turn is over
		x.fault("commit", err)
	}
	x.plan = x.planOf(c.state)
	if x.check(&x.plan) != nil {
		x.view, x.altered = nil, false
	}
	if errors.Is(err, store.ErrAway) && c.entry.state == nil && answered(x.r) {
		return nil // the store may know better
	}
	c.state.Sent(x.r, x.rolling, x.start)
	c.late(err)
	return c.save(ctx, x.store, false, x.start)
}

// guess lets the view be sent although it cannot be stored, because the vendor refuses every other one. It is not remembered: the next request
// makes it again, of the same, and stores it if it can.
func (x *exchange) guess(old *entry, based int64, before *lineage.State) {
	c := x.claim
	c.entry, c.based, c.over, c.state, c.keep = old, based, nil, before, nil
	c.session.mu.Lock()
	c.prepared, c.guessed = x.made, x.rolling[len(x.rolling)-1]
	if c.unread {
		c.session.guess = c.entry
	}
	c.session.mu.Unlock()
	x.kept, x.next, x.epoch, x.ingested, x.undone, x.obeys = nil, nil, nil, 0, false, nil
}

// check reports a rule of the vendor that a plan breaks and the request does not.
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

// done records the answer.
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
		Time: x.start, API: x.t.api, Tenant: x.key.Tenant, Agent: x.agent.Name, Session: x.session, Lineage: x.claim.conversation,
		Model: x.r.Model, Received: x.received, Sent: x.sent, Epoch: x.epoch,
	}
	if e.Sent == nil {
		e.Sent = x.received
	}
	if err := x.safely("record", func() error { x.s.Record(ctx, e); return nil }); err != nil {
		x.fault("record", err)
	}
}

// letGo frees the request, once it cannot be sent again: an answer can take minutes, and many agents wait for
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

type readCloser struct {
	io.Reader
	io.Closer
}
