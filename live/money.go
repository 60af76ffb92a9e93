package live

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/condensehq/condense/internal/catalog"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/count"
	"github.com/condensehq/condense/internal/live/job"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/secret"
	"github.com/condensehq/condense/live/internal/upstream"
	"github.com/condensehq/condense/model"
)

// count adds an answer to the statistics. The vendor's count takes precedence over the gateway's.
func (e *exchange) count(a wire.Answer) {
	if a.ErrorType != "" {
		e.req.g.stats.Failed("vendor_"+kindOf(a.ErrorType), refusedWith(e.status, a), e.req.s.Now())
	}
	if e.free || e.req.t.count { // vendors do not charge for counting tokens
		return
	}
	a, estimated := e.estimated(a)
	if a.Input == 0 {
		return
	}
	received, sent, alone := a.Input, a.Input, a.Input
	switch {
	case e.req.lease == nil || !e.plan.altered || e.plan.ours == 0:
	case e.req.s.Observe: // the vendor has received the original
		sent = int(float64(a.Input) * float64(e.plan.ours) / float64(e.plan.original))
	default:
		history := int(float64(a.Input) * float64(e.plan.original) / float64(e.plan.ours))
		// The vendor refuses more than a window. Saved tokens are measured against what it would have accepted, and saved money too if it
		// is not known how the agent condenses by itself ([agents.Agent.Alone]).
		received = max(sent, min(history, e.req.limits.policy.Window))
		alone = received
		if n, own := e.req.from.agent.Alone(e.req.parsed.Model, e.req.limits.policy.Window, history); own {
			alone = n
		}
	}
	paid, known := e.req.cost(a)
	e.bill(a, bill{received, sent, paid, e.saved(a, alone, sent, paid), known, estimated, false})
}

// refusedWith returns a vendor's error for people.
func refusedWith(status int, a wire.Answer) job.Cause {
	c := job.Cause{Why: cmp.Or(a.ErrorText, a.ErrorType)}
	if status >= http.StatusBadRequest {
		c.Why, c.Status = strconv.Itoa(status)+" "+c.Why, status
	}
	c.Why = secret.Safe(c.Why)
	return c
}

// A bill is the accounting of one answer, in tokens and US dollars. With [Options.Observe], received was really sent,
// and sent and saved are hypothetical.
type bill struct {
	received, sent int
	paid, saved    float64
	known          bool // the price of the model is known
	estimated      bool // the vendor's report was missing or incomplete
	again          bool // an extra request for an answer that was billed already
}

// bill adds an answer to the tenant's usage and to all statistics.
func (e *exchange) bill(a wire.Answer, b bill) {
	r := e.req
	e.settle(b.paid)
	e.used(a, b)
	if r.lease != nil {
		u := &Used{
			Time: r.in.start, Input: a.Input, Read: a.CacheRead, Write: a.CacheWrite, Output: a.Output, Cost: b.paid,
			Saved: b.saved, Priced: b.known,
		}
		if !b.again {
			u.Epoch = began(e.plan.state)
		}
		r.earn(u)
	}
	sum := &Stats{Cost: b.paid, Saved: b.saved, Tokens: Tokens{
		Received: b.received, Sent: b.sent, Saved: b.received - b.sent, CacheRead: a.CacheRead, CacheWrite: a.CacheWrite, Output: a.Output,
	}}
	if !b.again {
		sum.Ingested = e.plan.ingested
		if !b.known {
			sum.Unpriced = 1
		}
		if b.estimated {
			sum.Estimated = 1
		}
	}
	if r.s.Observe {
		sum.Observed = &Observed{Ingested: sum.Ingested, Sent: b.sent, Saved: sum.Tokens.Saved, CostSaved: b.saved}
		sum.Tokens.Sent, sum.Tokens.Saved, sum.Saved, sum.Ingested = b.received, 0, 0, 0
	}
	r.g.stats.Sum(sum)
	if begun := e.plan.epoch; begun != nil && !b.again {
		r.g.stats.Change(begun.Lineage, begun.Time, func(o *Epoch) {
			o.CacheRead, o.CacheWrite = a.CacheRead, a.CacheWrite
			if !r.s.Observe {
				o.After = a.Input
			}
		})
	}
}

// earn adds the money of an answer to the conversation: for its record, which commands read, and for the pages.
func (r *request) earn(u *Used) {
	r.lease.Earn(u.Saved)
	if watch := r.s.Reports.Watch; watch != nil {
		r.g.watched(func() { watch.Answer(r.lease.Conversation, u) })
	}
}

// estimated fills gaps in the vendor's report from the gateway's own count, and reports whether there were any.
// Vendors report no usage for a stream without stream_options.include_usage, and only a part if the client leaves
// early, but they charge for both.
func (e *exchange) estimated(a wire.Answer) (wire.Answer, bool) {
	switch {
	case e.watcher == nil && !e.left, e.watcher != nil && e.status/100 != http.StatusOK/100, a.ErrorType != "" && a.Input == 0:
		return a, false
	case a.Input == 0:
		if a.Input = e.size(a.Model); a.Input == 0 {
			return a, false
		}
	case !wire.Of(e.req.parsed.API).PromptFirst || a.Complete || a.Stop != "": // other APIs report everything at the end
		return a, false
	}
	if e.watcher != nil {
		a.Output = max(a.Output, (e.watcher.size()+count.BytesPerToken-1)/count.BytesPerToken)
	}
	return a, true
}

// size returns the gateway's count of the tokens that the vendor has received, limited to the window.
func (e *exchange) size(answered string) int {
	n := e.plan.tokens
	switch {
	case e.req.lease == nil && e.req.seen == nil:
		n = e.req.in.weight.Tokens()
	case e.plan.altered && e.req.s.Observe:
		n = int(float64(n) * float64(e.plan.original) / float64(e.plan.ours))
	}
	e.req.named(answered)
	if most := max(e.req.limits.policy.Window, e.req.tariff.listed); most > 0 {
		n = min(n, most)
	}
	return n
}

// named looks up the price under another name of the model: the request could not be read, or the vendor's answer
// names the model differently.
func (r *request) named(answered string) {
	if r.parsed.Model == "" && r.in.weight != nil {
		r.in.weight.Mu.Lock()
		name := r.in.weight.Model.Model()
		r.in.weight.Mu.Unlock()
		if len(name) <= longestModel && name != "" {
			r.parsed.Model = name
			r.priced(name)
		}
	}
	if _, known := r.tariff.prices(1); !known && answered != "" && len(answered) <= longestModel && (r.parsed.Model == "" || r.t.upstream.IsVendors) {
		r.priced(answered)
	}
}

// began returns the beginning of a state's epoch; zero without an epoch.
func began(s *lineage.State) time.Time {
	if s == nil || s.Epoch == nil || s.Epoch.Reason == epoch.Undone {
		return time.Time{}
	}
	return s.Epoch.Time
}

// kindOf returns the type of a vendor's error as the name of a counter, or "error" if it is unsuitable: a vendor can
// send anything.
func kindOf(s string) string {
	const longest = 40
	if !upstream.NameRule().MatchString(s) || len(s) > longest {
		return "error"
	}
	return s
}

// cost returns the price of a request and its answer by the price table, in US dollars; false if the price is unknown.
func (r *request) cost(a wire.Answer) (float64, bool) {
	r.named(a.Model)
	return r.tariff.cost(a)
}

// saved returns the cost of sending the client's own history, minus paid, in US dollars. It assumes ideal caching of
// that history: everything sent before is read from the cache while the cache lives. The result is negative for an
// epoch that begins while the cache lives.
func (e *exchange) saved(a wire.Answer, received, sent int, paid float64) float64 {
	if e.req.lease == nil {
		return 0
	}
	was := e.req.lease.SwapShadow(session.Shadow{Tokens: received, Last: e.req.in.start})
	if received == sent {
		return 0
	}
	if e.req.s.Observe { // paid is for the original; the shorter view would be cached the same way
		return paid * float64(received-sent) / float64(max(1, received))
	}
	life, cached := max(e.plan.state.TTL, e.req.tariff.caching.Lifetime), 0
	if a.CacheRead+a.CacheWrite > 0 && !was.Last.IsZero() && (life == 0 || e.req.in.start.Sub(was.Last) <= life) {
		cached = min(was.Tokens, received)
	}
	return e.req.tariff.instead(a, received, cached) - paid
}

// A tariff is what is known of a model: its prices, how its vendor's cache works, and its window.
type tariff struct {
	model    model.Info
	caching  catalog.Caching
	ttl      time.Duration // for which the request asks the vendor's cache to keep it; 0 if it does not ask
	listed   int           // window in tokens, from the table or the section models; 0 if unknown
	declared bool          // listed comes from the section models
}

// prices are in US dollars per token.
type prices struct{ input, read, write, output float64 }

// prices returns the prices of a request of so many tokens; false if they are unknown.
func (x *tariff) prices(input int) (p prices, known bool) {
	const million = 1e6
	price := x.model.PriceFor(input)
	known = x.model.Free || price.Input > 0
	p = prices{price.Input / million, price.CacheRead / million, price.CacheWrite / million, price.Output / million}
	p.read = cmp.Or(p.read, p.input)
	p.write = cmp.Or(p.write, p.input)
	if x.ttl >= time.Hour && x.caching.WriteHour > 0 {
		p.write = p.input * x.caching.WriteHour
	}
	return p, known
}

// rates returns prices relative to the price of input: cache prices from the vendor's rules, and the answer's if the
// table has it.
func (x *tariff) rates(input int) lineage.Rates {
	write, read := x.caching.Prices(x.ttl)
	r := lineage.Rates{Write: cmp.Or(write, 1), Read: cmp.Or(read, 1)}
	if p, known := x.prices(input); known && p.input > 0 {
		r.Answer = p.output / p.input
	}
	return r
}

// cost returns the price of a request and its answer, in US dollars; false if it is unknown.
func (x *tariff) cost(a wire.Answer) (float64, bool) {
	p, known := x.prices(a.Input)
	fresh := max(0, a.Input-a.CacheRead-a.CacheWrite)
	return float64(fresh)*p.input + float64(a.CacheRead)*p.read + float64(a.CacheWrite)*p.write + float64(a.Output)*p.output, known
}

// instead returns the cost of sending the client's own history, of received tokens, in place of the view. Cached is the
// number of its tokens that the vendor's cache would have had.
func (x *tariff) instead(a wire.Answer, received, cached int) float64 {
	p, _ := x.prices(received)
	write := p.input
	if a.CacheWrite > 0 {
		write = p.write
	}
	return float64(cached)*p.read + float64(received-cached)*write + float64(a.Output)*p.output
}
