package live

import (
	"cmp"
	"time"

	"github.com/condensehq/condense/internal/catalog"
	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/model"
)

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
