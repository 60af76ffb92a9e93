package live

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/live/count"
	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/library"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/payload"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/secret"
)

// A request passes through five values, each made from the one before: incoming, known, plan, sending, bill.

// An incoming is a request for a conversation as it came.
type incoming struct {
	*Gateway
	s        *settings
	t        *target
	header   http.Header
	start    time.Time
	received []byte          // the body, decompressed
	weight   *payload.Weight // of a body that is no turn of a conversation
	held     *payload.Hold   // the share of the body; nil if nothing is counted
	unread   bool            // the body is too large, and passes for that reason
	chain    *chained        // nil if no earlier response is named, and nobody can name the answer
}

// A known is a parsed request with its agent, policy and limits.
type known struct {
	incoming
	limits
	r        *wire.Request // with the tool and the restored rounds, if the conversation has the gateway's own tool
	agent    *agents.Agent
	volatile []wire.Volatile
	key      store.Key
	session  string // the session ID that the client sent
	login
	rolling  []wire.Hash    // rolling hashes of the client's messages
	claim    *session.Claim // nil if the request is no turn of a conversation, or its lineage is not known
	seen     *session.Claim // the lineage of a request that does not advance it
	tool     tooled
	compacts bool   // asks for a compaction
	reads    string // identity that can recall content of the request; empty if nobody can
	handles  bool   // this client can recall: views may have handles
	pins     job.Pins
	calls    bool // the client asks for a condensation, and waits for it
	media    int  // estimated tokens of its images and files
	guessed  bool // the request does not say how the model thinks, and r.Thinking is assumed
}

// A login classifies the credentials of a request.
type login struct {
	subscribed bool // the login of a plan
	ofPlan     bool // that, or perhaps that
}

// A tooled is a conversation with the gateway's own tool.
type tooled struct {
	session *session.Session // nil if it has none
	at      wire.Hash        // rolling hash of the client's own messages
}

// read parses the request, and plans what to send. The plan is nil for requests that are not condensed.
func (x *known) read(ctx context.Context) (*plan, error) {
	api := wire.API(x.t.api)
	of := agents.Of(x.header, nil)
	request, err := wire.Parse(api, x.received, &wire.Options{
		Volatile: of.Volatile, Cache: x.parsed, Model: x.t.endpoint.Model, Stream: x.t.endpoint.Stream,
		Requires: x.t.endpoint.Requires,
	})
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // not for us: the vendor says what is wrong with it
	}
	x.agent, x.volatile = of, of.Volatile
	x.subscribed = agents.Subscription(x.header)
	x.ofPlan = isPlan(x.t, x.header, x.subscribed)
	if of == agents.Any {
		head := request.System
		if head == nil && len(request.Messages) > 0 {
			head = request.Messages[0].Raw
		}
		x.agent = agents.Of(x.header, head)
	}
	x.r = request
	for i := range request.Messages {
		x.media += request.Messages[i].Media
	}
	x.priced(request.Model)
	if n := len(request.Messages); n == 0 || n > mostMessages || request.Stateful || len(request.Model) > longestModel || secret.Shown(request.Model) {
		return nil, nil //nolint:nilnil // nothing to condense, or a key in the place of a name, which lists and the log would show
	}
	x.compacts = x.t.compact || asksToCompact(request.Messages)
	side := x.side()
	if side != agents.Turn && side != agents.Summary && !x.compacts {
		return nil, nil //nolint:nilnil // left alone
	}
	in, err := x.locate(ctx)
	if err != nil {
		return nil, err
	}
	if x.unread = x.unread && x.isNew(in); x.unread {
		return nil, nil //nolint:nilnil // it passes
	}
	if err := x.safely("tool", func() error { return x.equip(ctx, in) }); err != nil {
		x.fault("tool", err)
	}
	if summary := side == agents.Summary || x.r.Compacts || x.compacts; summary || x.t.count {
		return x.peek(in, summary)
	}
	x.reads = x.secrets.readerOf(&x.s.Recall, x.t)
	x.handles = !x.s.Observe && !x.s.Recall.Off && (x.tool.session != nil || !x.s.Recall.NoMCP && x.reads != "" && library.CanCall(x.r.Tools))
	if err := x.take(ctx, in); err != nil {
		return nil, err
	}
	return x.decide(ctx)
}

// side returns what kind of call of its agent the request is.
func (x *known) side() agents.Side {
	last := len(x.r.Messages) - 1
	for last > 0 && x.r.Messages[last].Role == "system" { // Claude Code adds reminders after the user's message
		last--
	}
	return agents.SideOf(agents.Call{
		Header: x.header, Messages: len(x.r.Messages), Tools: x.r.Tools != nil, MaxOutput: x.r.MaxOutput,
		Structured: x.r.Structured, System: x.r.System, Last: x.r.Messages[last].Raw,
	})
}

// locate finds the session of the request, and its limits.
func (x *known) locate(ctx context.Context) (*session.Session, error) {
	x.key = store.Key{
		Tenant: x.secrets.tenantOf(x.t.who, x.header, x.r.Body), API: x.t.api, Agent: x.agent.SubAgent(x.header),
		Session: x.agent.Session(x.header, x.r.Session),
	}
	if x.s.Observe {
		x.key.API += session.Observed // separate, because the vendor has not seen these views
	}
	if err := x.key.Validate(); err != nil {
		x.key.Agent, x.key.Session = "", ""
	}
	x.rolling = lineage.Roll(x.r.Messages)
	if x.session = x.key.Session; x.key.Session == "" {
		x.key.Session = opening(x.r.Messages, x.rolling)
	}
	var err error
	if x.limits, err = limitsOf(x); err != nil { //nolint:contextcheck // a server is asked for its window next to the request
		return nil, err
	}
	in := x.sessions.Of(x.key, x.start)
	return in, x.sessions.Reach(ctx, in, x.r, x.rolling)
}

// take claims the lineage of the request in x.claim.
func (x *known) take(ctx context.Context, from *session.Session) error {
	c, err := from.Claim(ctx, x.r, x.rolling)
	if err != nil {
		return err
	}
	x.claim, c.Reads, c.Most = c, cmp.Or(x.reads, c.Reads), x.s.Recall.MaxSize
	x.warnOfSize(ctx)
	return nil
}

// peek plans the view of a request that does not advance its lineage: one that only counts tokens, one that asks for a
// compaction, or the agent's own request for a summary. A summary is made of the original messages if they fit, because
// that is best.
func (x *known) peek(in *session.Session, summary bool) (*plan, error) {
	c, err := in.Find(x.r, x.rolling)
	if err != nil {
		return nil, err
	}
	x.seen = c
	p := x.planned(c.State)
	if summary && p.altered && c.State.Scale(p.original) <= x.policy.Limit {
		originals := lineage.State{}
		if c.State.Bound { // thinking that the model wrote after the view is not valid with the originals
			originals.Strip(x.r, x.rolling)
		}
		p.view = x.viewOf(&originals)
	}
	return p, nil
}

// A view holds the messages to send for a request, and their sizes.
type view struct {
	messages [][]byte // in place of the client's messages
	altered  bool     // the view differs from them
	ours     int      // size of the request with the view, by our count
	original int      // size of the request as it came, by our count
	tokens   int      // size of the request with the view, by the vendor's count, estimated
}

// viewOf returns the view that follows from a state.
func (x *known) viewOf(s *lineage.State) view {
	s.Tool = x.tool.session != nil
	s.Adapt(x.r, x.rolling, x.caching.Bound)
	v := view{messages: s.View(x.r, x.rolling)}
	v.altered = len(v.messages) != len(x.r.Messages)
	for i := 0; i < len(v.messages) && !v.altered; i++ {
		v.altered = !bytes.Equal(v.messages[i], x.r.Messages[i].Raw)
	}
	v.ours = s.Count(x.r, x.rolling, count.Tokens)
	v.tokens = s.Estimate(v.ours)
	v.original = v.ours
	if v.altered {
		v.original = s.HeadOur + untouched(x.r)
	}
	return v
}

// check returns an error if the view breaks a rule of the vendor that the client's own request does not break.
func (x *known) check(v *view) error {
	if !v.altered {
		return nil
	}
	return x.checkView(v.messages)
}

func (x *known) checkView(messages [][]byte) error {
	err := x.parsed.Check(x.r.API, x.r, messages)
	if f := (*wire.RuleError)(nil); errors.As(err, &f) && f.Client {
		return nil
	}
	return err
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
