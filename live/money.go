package live

import (
	"cmp"
	"net/http"
	"time"

	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/wire"
)

// A shadow is what the vendor would have cached of a conversation without us.
type shadow struct {
	tokens int
	last   time.Time
}

// count adds an answer to the statistics. What the vendor reports beats what we counted.
func (x *exchange) count(a wire.Answer) {
	if a.ErrorType != "" {
		x.stats.fault("vendor_" + kindOf(a.ErrorType))
	}
	if x.free || x.t.count { // vendors count tokens for nothing
		return
	}
	a, estimated := x.estimated(a)
	if a.Input == 0 {
		return
	}
	received, sent := a.Input, a.Input
	switch {
	case x.claim == nil || !x.altered || x.ours == 0:
	case x.s.Observe: // the vendor has seen the original
		sent = int(float64(a.Input) * float64(x.ours) / float64(x.original))
	default:
		received = x.accepted(int(float64(a.Input)*float64(x.original)/float64(x.ours)), sent)
	}
	paid, known := x.cost(a)
	x.bill(a, bill{received, sent, paid, x.saved(a, received, sent, paid), known, estimated, false})
}

// accepted is what a vendor would have taken of a history of some tokens, of which sent are sent: a window at most, because it refuses what exceeds
// it. Tokens and money are counted as saved against that.
func (x *exchange) accepted(history, sent int) int { return max(sent, min(history, x.policy.Window)) }

// A bill is what an answer is counted as, in tokens and US dollars. With [Options.Observe] received was sent, and the rest would have been.
type bill struct {
	received, sent int
	paid, saved    float64
	known          bool // the price is
	estimated      bool // the vendor did not report all of it
	again          bool // it is for an answer that was billed already: the vendor was asked once more for it
}

// bill adds an answer to what the tenant has spent, and to all that shows it.
func (x *exchange) bill(a wire.Answer, b bill) {
	x.paid(b.paid)
	x.used(a, b)
	if x.s.Watch != nil && x.claim != nil && !b.again {
		x.watched(func() {
			x.s.Watch.Answer(x.claim.conversation, &Used{
				Time: x.start, Epoch: began(x.claim.state), Input: a.Input, Read: a.CacheRead, Write: a.CacheWrite, Output: a.Output, Cost: b.paid, Saved: b.saved, Priced: b.known,
			})
		})
	}
	x.stats.add(func(s *Stats) {
		t := &s.Tokens
		t.Received += b.received
		t.CacheRead += a.CacheRead
		t.CacheWrite += a.CacheWrite
		t.Output += a.Output
		s.Cost += b.paid
		if x.s.Observe {
			t.Sent += b.received
			o := s.observed()
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
			s.observed().Ingested += x.ingested
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

// estimated completes what the vendor has reported by our own count, and says whether it had to. Vendors report nothing of a stream without
// stream_options.include_usage, and not all of an answer that the client has not waited for, but they want to be paid.
func (x *exchange) estimated(a wire.Answer) (wire.Answer, bool) {
	switch {
	case x.watcher == nil && !x.left, x.watcher != nil && x.status/100 != http.StatusOK/100, a.ErrorType != "" && a.Input == 0:
		return a, false
	case a.Input == 0:
		if a.Input = x.size(a.Model); a.Input == 0 {
			return a, false
		}
	case x.r.API != wire.Messages || a.Complete || a.Stop != "": // other APIs report all at the end
		return a, false
	}
	if x.watcher != nil {
		a.Output = max(a.Output, (x.watcher.size()+bytesPerToken-1)/bytesPerToken)
	}
	return a, true
}

// size is our count of what the vendor has got, and at most what it takes.
func (x *exchange) size(answered string) int {
	n := x.tokens
	switch {
	case x.claim == nil && x.seen == nil:
		n = x.weight.tokens()
	case x.altered && x.s.Observe:
		n = int(float64(n) * float64(x.original) / float64(x.ours))
	}
	x.named(answered)
	if most := max(x.policy.Window, x.known); most > 0 {
		n = min(n, most)
	}
	return n
}

// named finds the price of a model that the request does not tell: because it could not be read, or because the vendor has another name for it.
func (x *exchange) named(answered string) {
	if x.r.Model == "" && x.weight != nil {
		x.weight.mu.Lock()
		name := x.weight.model.Model()
		x.weight.mu.Unlock()
		if len(name) <= longestModel && name != "" {
			x.r.Model = name
			x.priced(name)
		}
	}
	if _, known := x.prices(1); !known && answered != "" && len(answered) <= longestModel && (x.r.Model == "" || x.t.upstream.vendors) {
		x.priced(answered)
	}
}

// began is when the epoch of a state began; zero if there was none.
func began(s *lineage.State) time.Time {
	if s == nil || s.Epoch == nil || s.Epoch.Reason == epoch.Undone {
		return time.Time{}
	}
	return s.Epoch.Time
}

// kindOf is the type of a vendor's error as the name of a counter: a vendor can send anything.
func kindOf(s string) string {
	const longest = 40
	if !nameRule.MatchString(s) || len(s) > longest {
		return "error"
	}
	return s
}

// prices are those of a token, in US dollars.
type prices struct{ input, read, write, output float64 }

func (x *exchange) prices(input int) (p prices, known bool) {
	const million = 1e6
	price := x.model.PriceFor(input)
	known = x.model.Free || price.Input > 0
	p = prices{price.Input / million, price.CacheRead / million, price.CacheWrite / million, price.Output / million}
	if p.read == 0 {
		p.read = p.input
	}
	if p.write == 0 {
		p.write = p.input
	}
	if x.r.TTL >= time.Hour && x.caching.WriteHour > 0 {
		p.write = p.input * x.caching.WriteHour
	}
	return p, known
}

// rates are the prices relative to that of input: as the vendor's cache has them, and of the answer if it is in the table.
func (x *exchange) rates(input int) lineage.Rates {
	write, read := x.caching.Prices(x.r.TTL)
	r := lineage.Rates{Write: cmp.Or(write, 1), Read: cmp.Or(read, 1)}
	if p, known := x.prices(input); known && p.input > 0 {
		r.Answer = p.output / p.input
	}
	return r
}

// cost is what a request cost by the price table.
func (x *exchange) cost(a wire.Answer) (float64, bool) {
	x.named(a.Model)
	p, known := x.prices(a.Input)
	fresh := max(0, a.Input-a.CacheRead-a.CacheWrite)
	return float64(fresh)*p.input + float64(a.CacheRead)*p.read + float64(a.CacheWrite)*p.write + float64(a.Output)*p.output, known
}

// saved compares the cost with that of the client's own history, as if it was cached as well as can be: all
// that was sent before is read while the cache lives. The result is negative for an epoch while the cache lives.
func (x *exchange) saved(a wire.Answer, received, sent int, paid float64) float64 {
	if x.claim == nil {
		return 0
	}
	x.claim.session.mu.Lock()
	defer x.claim.session.mu.Unlock()
	was := x.claim.shadow
	x.claim.shadow = shadow{received, x.start}
	if received == sent {
		return 0
	}
	life := max(x.claim.state.TTL, x.caching.Lifetime)
	p, _ := x.prices(received)
	cached := 0
	if a.CacheRead+a.CacheWrite > 0 && !was.last.IsZero() && (life == 0 || x.start.Sub(was.last) <= life) {
		cached = min(was.tokens, received)
	}
	write := p.input
	if a.CacheWrite > 0 {
		write = p.write
	}
	would := float64(cached)*p.read + float64(received-cached)*write + float64(a.Output)*p.output
	if x.s.Observe { // paid is for the original; what we would have sent is cached in the same way
		return paid * float64(received-sent) / float64(max(1, received))
	}
	return would - paid
}
