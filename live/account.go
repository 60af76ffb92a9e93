package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/count"
	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/messages"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/prefix"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/live/internal/payload"
	"github.com/condensehq/condense/live/internal/telemetry"
	"github.com/condensehq/condense/live/internal/upstream"
	"github.com/condensehq/condense/model"
)

// Account selects the language model that writes summaries ("accounts") of conversations, for chains that begin with a
// provider for that. An account is prepared in the background: no request waits for it, and a condensation that comes
// before it is ready goes ahead without it.
type Account string

// The values of Account. With the client's own model, the gateway asks the vendor right after the vendor has answered
// a request: it sends the same request, whose beginning is in the vendor's cache, plus one message, with the API key
// that the request brought. The key is held until that second request is answered, and no longer.
const (
	AccountOff    Account = ""
	AccountModel  Account = "model"  // a model of the configuration
	AccountClient Account = "client" // the client's own model, if the client uses an API key
)

// A postponed preparation starts once the vendor has answered the request, because only then is the request in the
// vendor's cache.
type postponed struct {
	d        epoch.Decision
	to       job.Extent
	overflow bool

	j      *job.Job
	leave  func()
	url    *url.URL    // of the request to the vendor
	header http.Header // also of that request; it contains the client's key
}

// asksClient reports whether the chain may have the client's own model write an account, using the key of this
// request.
func (p *plan) asksClient() bool {
	// With structured output, the answer would not be a text.
	if p.req.s.Observe || p.req.calls || p.repairs || p.req.t.upstream == nil || !p.req.limits.resolved.client || p.req.parsed.Structured {
		return false
	}
	return p.req.s.Account == AccountClient && !p.req.from.ofPlan
}

// isPlan reports whether the credentials of a request are, or may be, the login of a plan: on a vendor's own host,
// everything that is not an API key counts as one.
func isPlan(t *target, h http.Header, known bool) bool {
	if known || t.upstream != nil && t.upstream.Name == upstream.ChatGPT {
		return true
	}
	if u := t.upstream; u == nil || !u.IsVendors || u.Host.Of == wire.Google || u.Speaks == upstream.SpeaksBedrock { // its cloud's tokens are no plan's
		return false
	}
	_, token, bearer := strings.Cut(h.Get("Authorization"), " ")
	return bearer && !strings.HasPrefix(token, "sk-")
}

// asksClient reports whether some provider of the chain uses the client's own model.
func (r *resolved) asksClient() bool {
	for i := range r.Chain {
		var c struct {
			Model string `json:"model"`
		}
		if r.Chain[i].Strategy == "handover" && json.Unmarshal(r.Chain[i].Settings, &c) == nil && c.Model == prefix.AgentName {
			return true
		}
	}
	return false
}

// postpone saves the parts of the request that the postponed preparation needs after the answer. Call it once the
// outgoing request is final.
func (p *plan) postpone() {
	later := p.postponed
	p.postponed = nil
	if later == nil || p.req.lease == nil || !p.req.lease.Mine || p.epoch != nil || p.req.lease.Busy() {
		return
	}
	leave, ok := p.req.g.preparing.Try(p.req.tenant(), max(int64(len(p.req.parsed.Body)), maxPrepared/maxPreparing))
	if ok {
		later.j, later.leave = p.job(later.d, later.overflow), leave
		p.postponed = later
	}
}

// prepareLater starts a postponed preparation.
func (e *exchange) prepareLater() {
	p := e.plan.postponed
	e.plan.postponed = nil
	if p == nil {
		return
	}
	var a wire.Answer
	if e.watcher != nil {
		a = e.watcher.answer()
	}
	answered := e.status == http.StatusOK && a.Complete && p.url != nil
	// Without caching by the client, the whole prompt would be billed again at the full price.
	cached := !wire.Marks(e.req.parsed.API) || a.CacheRead+a.CacheWrite > 0
	switch {
	case answered && cached:
		p.j.Client = &client{plan: e.plan, url: p.url, header: p.header, body: p.j.Body}
	case !answered || p.to == job.Probe:
		p.leave()
		return
	}
	e.req.begin(p.j, p.leave, func(ctx context.Context) (*job.Prepared, error) { return e.req.g.runner.Alongside(ctx, p.j, p.to) })
}

// A client lets the gateway ask the client's own model once, with the client's own key.
type client struct {
	plan *plan

	mu     sync.Mutex
	asked  bool
	url    *url.URL
	header http.Header // headers of the client's request, with its key; nil once used
	body   []byte      // the request that the vendor has just answered
	answer *model.Answer
	err    error
}

// Forget drops the key.
func (c *client) Forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked, c.url, c.header, c.body = true, nil, nil, nil
	if c.answer == nil && c.err == nil {
		c.err = fmt.Errorf("%w: the key is not held any more", core.ErrUnavailable)
	}
}

// Ask is a [prefix.Asker]. Later calls return the answer of the first one.
func (c *client) Ask(ctx context.Context, message string, most int) (*model.Answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked {
		if c.answer == nil {
			return nil, c.err
		}
		again := *c.answer
		again.Usage = core.Usage{}
		return &again, c.err
	}
	c.asked = true
	c.answer, c.err = c.once(ctx, message, most)
	c.url, c.header, c.body = nil, nil, nil
	return c.answer, c.err
}

// once sends the request and reads the answer.
func (c *client) once(ctx context.Context, message string, most int) (*model.Answer, error) {
	p := c.plan
	req, err := c.request(ctx, message, most)
	if err != nil {
		return nil, err
	}
	n := accounted{began: time.Now(), most: most, question: count.Tokens([]byte(message))}
	res, err := p.req.t.upstream.RoundTrip(req)
	if err != nil {
		n.sent = ctx.Err() != nil // the vendor may answer it, and charge for it
		return nil, errors.Join(ctx.Err(), c.accounted(n, nil, errors.New("the vendor cannot be reached: "+upstream.Reason(err))))
	}
	defer res.Body.Close() //nolint:errcheck // nothing can be done, and nothing depends on it
	n.sent = res.StatusCode == http.StatusOK
	w := wire.Watch(p.req.parsed.API)
	s := wire.NewSplice(p.req.parsed.API, "", maxAccount)
	in := io.LimitReader(res.Body, maxAccount+1)
	buf := make([]byte, 8<<10)
	size := 0
	for err == nil && size <= maxAccount {
		var k int
		k, err = in.Read(buf)
		size += k
		_, _ = w.Write(buf[:k])
		s.Write(buf[:k])
	}
	s.Close()
	n.answer, n.written = w.Answer(), w.Size()
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case res.StatusCode != http.StatusOK: // the vendor's error text may quote anything, so only its kind is shown
		err = fmt.Errorf("the vendor refuses the request: %d %s", res.StatusCode, kindOf(n.answer.ErrorType))
	case size > maxAccount:
		err = fmt.Errorf("the answer is larger than %d bytes", maxAccount)
	case err != nil && !errors.Is(err, io.EOF):
		err = errors.New("the answer broke off: " + upstream.Reason(err))
	case !n.answer.Complete:
		err = errors.New("the answer has no end")
	default:
		err = nil
	}
	answer := &model.Answer{Usage: core.Usage{}, Truncated: cutShort[n.answer.Stop]}
	if err == nil {
		for _, m := range s.Message() {
			answer.Text += wire.TextOf(p.req.parsed.API, m)
		}
		if answer.Text == "" {
			err = model.ErrNoText
		}
	}
	return answer, c.accounted(n, &answer.Usage, err)
}

// maxAccount limits the bytes read of an answer. A stream takes about 300 bytes per token.
const maxAccount = 4 << 20

// cutShort holds the vendors' stop reasons that mean that the answer is incomplete.
var cutShort = map[string]bool{
	"max_tokens": true, "MAX_TOKENS": true, "length": true, "incomplete": true, "max_output_tokens": true,
	"model_context_window_exceeded": true,
}

// request returns the client's request that was just answered, with one more message.
func (c *client) request(ctx context.Context, message string, most int) (*http.Request, error) {
	r, err := wire.Parse(c.plan.req.parsed.API, c.body, nil)
	if err != nil {
		return nil, err
	}
	body := r.With(append(messages.Raw(r.Messages), rawjson.Append(nil, wire.Of(r.API).Asked, message)))
	if limit := most + thought(r); r.MaxOutput > limit { // this limit is not part of any vendor's cache key
		body = wire.LimitOutput(r.API, body, limit)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.String(), http.NoBody)
	if err != nil {
		return nil, errors.New("the address of the request is invalid") // it can hold a key
	}
	req.Header = c.header
	for _, name := range []string{"Content-Encoding", "Content-Length", "Idempotency-Key", "X-Client-Request-Id"} {
		req.Header.Del(name)
	}
	req.Header.Set("Accept-Encoding", "identity") // the answer is read
	payload.Replace(req, body)
	return req, nil
}

// thought returns how many tokens the model may spend on thinking. Thinking cannot be switched off here: the prompt
// would then miss the vendor's cache.
func thought(r *wire.Request) int {
	const most = 8000
	switch {
	case r.Thinking == "enabled":
		more := r.Body
		if in := wire.Of(r.API).Extra; in != "" {
			more = rawjson.Field(more, in)
		}
		for _, name := range []string{"thinking", "reasoning_config"} {
			if budget := rawjson.Int(rawjson.Field(rawjson.Field(more, name), "budget_tokens")); budget > 0 {
				return budget
			}
		}
	case wire.Marks(r.API) && r.Thinking == "":
		return 0
	}
	return most
}

// An accounted describes one request for an account.
type accounted struct {
	began    time.Time
	most     int // limit of the answer, in tokens
	question int // size of the added message, in tokens
	sent     bool
	answer   wire.Answer
	written  int // bytes that the model wrote
}

// accounted adds a request for an account to the statistics and returns err, the error that the request ended with. It
// stores the vendor's count in used.
func (c *client) accounted(n accounted, used *core.Usage, err error) error {
	p, r := c.plan, c.plan.req
	a, estimated := n.answer, false
	if n.sent && a.Input == 0 {
		a.Input, a.CacheRead, estimated = p.tokens+n.question, p.tokens, true
	}
	if n.sent && !a.Complete {
		a.Output, estimated = max(a.Output, (n.written+count.BytesPerToken-1)/count.BytesPerToken), true
	}
	cost, known := r.cost(a)
	price, _ := r.tariff.prices(p.tokens)
	expected := float64(p.tokens)*price.read + float64(n.question)*price.input + float64(n.most)*price.output
	r.paid(cost, 0)
	sum := &Accounts{Asked: 1, Input: a.Input, CacheRead: a.CacheRead, Output: a.Output, Cost: cost, Expected: expected}
	outcome := "written"
	if err != nil {
		sum.Failed, outcome = 1, "failed"
	}
	if estimated {
		sum.Estimated = 1
	}
	r.g.stats.Sum(&Stats{Cost: cost, Saved: -cost, Accounts: sum})
	r.earn(&Used{Input: a.Input, Read: a.CacheRead, Output: a.Output, Cost: cost, Saved: -cost, Priced: known})
	if used != nil {
		*used = core.Usage{Calls: 1, InputTokens: a.Input, OutputTokens: a.Output, CachedTokens: a.CacheRead, USD: cost}
		if !known {
			used.Unpriced = 1
		}
	}
	tenant := telemetry.TenantKey.String(r.t.who.Tenant)
	r.g.measure(&telemetry.Accounts, 1, tenant, telemetry.OutcomeKey.String(outcome))
	for kind, k := range map[string]int{"input": a.Input, "cache_read": a.CacheRead, "output": a.Output} {
		r.g.measure(&telemetry.AccountTokens, float64(k), tenant, telemetry.TypeKey.String(kind))
	}
	for _, m := range []*telemetry.Metric{&telemetry.AccountCost, &telemetry.Cost} {
		r.g.measure(m, cost, tenant, telemetry.ModelKey.String(r.modelName()))
	}
	r.g.measure(&telemetry.Saved, -cost, tenant)
	r.s.audit("account", r.t.who, "agent", r.from.agent.Name, "lineage", r.lease.Conversation, "tokens", a.Input, "outcome", outcome)
	r.s.Reports.Logger.InfoContext(r.g.life, "account by the agent's own model", "agent", r.from.agent.Name, "model", r.parsed.Model, "outcome", outcome,
		"tokens", a.Input, "cache_read", a.CacheRead, "output", a.Output, "cost", cost, "cost_expected", expected, "ms",
		time.Since(n.began).Milliseconds())
	return err
}
