package live

import (
	"cmp"
	"time"

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
	if a.Input == 0 {
		return
	}
	received, sent := a.Input, a.Input
	if x.claim != nil && x.altered && x.ours > 0 {
		if x.s.Observe { // the vendor has seen the original
			sent = int(float64(a.Input) * float64(x.ours) / float64(x.original))
		} else {
			received = max(sent, int(float64(a.Input)*float64(x.original)/float64(x.ours)))
		}
	}
	paid, known := x.cost(a)
	saved := x.saved(a, received, sent, paid)
	x.paid(paid)
	x.used(a, received, sent, paid, saved, known)
	if x.s.Watch != nil && x.claim != nil {
		x.watched(func() {
			x.s.Watch.Answer(x.claim.conversation, &Used{
				Time: x.start, Epoch: began(x.claim.state), Input: a.Input, Read: a.CacheRead, Write: a.CacheWrite, Output: a.Output, Cost: paid, Saved: saved, Priced: known,
			})
		})
	}
	x.stats.add(func(s *Stats) {
		t := &s.Tokens
		t.Received += received
		t.Sent += sent
		t.Saved += received - sent
		t.CacheRead += a.CacheRead
		t.CacheWrite += a.CacheWrite
		t.Output += a.Output
		if s.Cost += paid; !known {
			s.Unpriced++
		}
		s.Saved += saved
		s.Ingested += x.ingested
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

// began is when the epoch of a state began; zero if there was none.
func began(s *lineage.State) time.Time {
	if s == nil || s.Epoch == nil {
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
	p, known := x.prices(a.Input)
	fresh := max(0, a.Input-a.CacheRead-a.CacheWrite)
	return float64(fresh)*p.input + float64(a.CacheRead)*p.read + float64(a.CacheWrite)*p.write + float64(a.Output)*p.output, known
}

// saved compares the cost with that of the client's own history, as if it was cached as well as can be: all
// that was sent before is read while the cache lives. What exceeds the window is not counted, because no
// vendor would have answered it. The result is negative for an epoch while the cache lives.
func (x *exchange) saved(a wire.Answer, received, sent int, paid float64) float64 {
	if x.claim == nil {
		return 0
	}
	x.claim.session.mu.Lock()
	defer x.claim.session.mu.Unlock()
	was := x.claim.shadow
	received = min(received, max(x.window, sent))
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
