package live

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/count"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/stats"
	"github.com/condensehq/condense/internal/live/upstream"
	"github.com/condensehq/condense/internal/live/watching"
	"github.com/condensehq/condense/internal/live/wire"
)

// count adds an answer to the statistics. The vendor's count takes precedence over the gateway's.
func (x *sending) count(a wire.Answer) {
	if a.ErrorType != "" {
		why := cmp.Or(a.ErrorText, a.ErrorType)
		if x.status >= http.StatusBadRequest {
			why = strconv.Itoa(x.status) + " " + why
		}
		x.stats.Failed("vendor_"+kindOf(a.ErrorType), why, x.s.Now())
	}
	if x.free || x.t.count { // vendors do not charge for counting tokens
		return
	}
	a, estimated := x.estimated(a)
	if a.Input == 0 {
		return
	}
	received, sent := a.Input, a.Input
	switch {
	case x.claim == nil || !x.altered || x.ours == 0:
	case x.s.Observe: // the vendor has received the original
		sent = int(float64(a.Input) * float64(x.ours) / float64(x.original))
	default:
		received = x.accepted(int(float64(a.Input)*float64(x.original)/float64(x.ours)), sent)
	}
	paid, known := x.cost(a)
	x.bill(a, bill{received, sent, paid, x.saved(a, received, sent, paid), known, estimated, false})
}

// accepted returns how many tokens of a history the vendor would have accepted: at most a window, because it refuses
// more, and at least sent, the tokens actually sent. Savings are measured against it.
func (x *known) accepted(history, sent int) int { return max(sent, min(history, x.policy.Window)) }

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
func (x *sending) bill(a wire.Answer, b bill) {
	x.settle(b.paid)
	x.used(a, b)
	if x.s.Reports.Watch != nil && x.claim != nil && !b.again {
		x.watched(func() {
			x.s.Reports.Watch.Answer(x.claim.Conversation, &watching.Used{
				Time: x.start, Epoch: began(x.claim.State), Input: a.Input, Read: a.CacheRead, Write: a.CacheWrite, Output: a.Output, Cost: b.paid,
				Saved: b.saved, Priced: b.known,
			})
		})
	}
	x.stats.Add(func(s *stats.Stats) {
		t := &s.Tokens
		t.Received += b.received
		t.CacheRead += a.CacheRead
		t.CacheWrite += a.CacheWrite
		t.Output += a.Output
		s.Cost += b.paid
		if x.s.Observe {
			t.Sent += b.received
			o := s.Hypothetical()
			o.Sent += b.sent
			o.Saved += b.received - b.sent
			o.CostSaved += b.saved
		} else {
			t.Sent += b.sent
			t.Saved += b.received - b.sent
			s.Saved += b.saved
		}
		if b.again {
			return
		}
		if !b.known {
			s.Unpriced++
		}
		if b.estimated {
			s.Estimated++
		}
		if x.s.Observe {
			s.Hypothetical().Ingested += x.ingested
		} else {
			s.Ingested += x.ingested
		}
		if e := x.epoch; e != nil {
			for i := range s.Epochs {
				if o := &s.Epochs[i]; o.Lineage == e.Lineage && o.Time.Equal(e.Time) {
					o.CacheRead, o.CacheWrite = a.CacheRead, a.CacheWrite
					if !x.s.Observe {
						o.After = a.Input
					}
				}
			}
		}
	})
}

// estimated fills gaps in the vendor's report from the gateway's own count, and reports whether there were any.
// Vendors report no usage for a stream without stream_options.include_usage, and only a part if the client leaves
// early, but they charge for both.
func (x *sending) estimated(a wire.Answer) (wire.Answer, bool) {
	switch {
	case x.watcher == nil && !x.left, x.watcher != nil && x.status/100 != http.StatusOK/100, a.ErrorType != "" && a.Input == 0:
		return a, false
	case a.Input == 0:
		if a.Input = x.size(a.Model); a.Input == 0 {
			return a, false
		}
	case x.r.API != wire.Messages || a.Complete || a.Stop != "": // other APIs report everything at the end
		return a, false
	}
	if x.watcher != nil {
		a.Output = max(a.Output, (x.watcher.size()+count.BytesPerToken-1)/count.BytesPerToken)
	}
	return a, true
}

// size returns the gateway's count of the tokens that the vendor has received, limited to the window.
func (x *sending) size(answered string) int {
	n := x.tokens
	switch {
	case x.claim == nil && x.seen == nil:
		n = x.weight.Tokens()
	case x.altered && x.s.Observe:
		n = int(float64(n) * float64(x.original) / float64(x.ours))
	}
	x.named(answered)
	if most := max(x.policy.Window, x.listed); most > 0 {
		n = min(n, most)
	}
	return n
}

// named looks up the price under another name of the model: the request could not be read, or the vendor's answer
// names the model differently.
func (x *known) named(answered string) {
	if x.r.Model == "" && x.weight != nil {
		x.weight.Mu.Lock()
		name := x.weight.Model.Model()
		x.weight.Mu.Unlock()
		if len(name) <= longestModel && name != "" {
			x.r.Model = name
			x.priced(name)
		}
	}
	if _, known := x.prices(1); !known && answered != "" && len(answered) <= longestModel && (x.r.Model == "" || x.t.upstream.IsVendors) {
		x.priced(answered)
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
func (x *known) cost(a wire.Answer) (float64, bool) {
	x.named(a.Model)
	return x.tariff.cost(a)
}

// saved returns the cost of sending the client's own history, minus paid, in US dollars. It assumes ideal caching of
// that history: everything sent before is read from the cache while the cache lives. The result is negative for an
// epoch that begins while the cache lives.
func (x *sending) saved(a wire.Answer, received, sent int, paid float64) float64 {
	if x.claim == nil {
		return 0
	}
	was := x.claim.SwapShadow(session.Shadow{Tokens: received, Last: x.start})
	if received == sent {
		return 0
	}
	if x.s.Observe { // paid is for the original; the shorter view would be cached the same way
		return paid * float64(received-sent) / float64(max(1, received))
	}
	life, cached := max(x.claim.State.TTL, x.caching.Lifetime), 0
	if a.CacheRead+a.CacheWrite > 0 && !was.Last.IsZero() && (life == 0 || x.start.Sub(was.Last) <= life) {
		cached = min(was.Tokens, received)
	}
	return x.instead(a, received, cached) - paid
}
