// Package tenant counts the requests, bytes and money of tenants, and limits them.
package tenant

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/condensehq/condense/internal/live/store"
)

// MostOfKey is the number of simultaneous requests with one key of a vendor if there is no limit of them. No agent needs
// as many; without it, connections that send nothing would be free.
const MostOfKey = 1024

// Limits are the limits of one tenant. 0 means no limit.
type Limits struct {
	Requests   int // per minute
	Concurrent int // simultaneous requests, each counted until its answer has ended; 0 means [MostOfKey] for each key
	// Bytes is per minute, of requests as sent (compressed). A request that exceeds it is let through, and the next
	// one waits.
	Bytes int64
	// ModelEpochs is the number of condensations per day (UTC) that ask a language model, rounds of new results among them. Beyond it, the
	// built-in chain condenses.
	ModelEpochs int
	// Cost is in US dollars per day (UTC), by the price table. Models without a known price do not count.
	Cost float64
}

// A Caller is the sender of a request. Without tokens for tenants, all callers are the same.
type Caller struct {
	Tenant string // name of the tenant; empty without tokens for tenants
	Token  string // ID of its token; empty if it needs none
	Admin  bool   // may see the gateway's own pages
}

// Tenants holds the usage of every tenant.
type Tenants struct {
	mu    sync.Mutex
	of    map[string]*usage
	keys  map[string]int // simultaneous requests by key
	dirty bool           // usage changed since it was last saved
}

// A usage belongs to one tenant. It is guarded by tenants.mu.
type usage struct {
	requests, bytes *rate.Limiter
	active          int
	reserved        float64 // estimated cost of requests that are being answered
	spent           spent   // at this gateway
	others          spent   // at other gateways with the same store
}

// Spent is the usage of one day.
type spent struct {
	Day    string  `json:"day"` // UTC
	Cost   float64 `json:"cost,omitempty"`
	Epochs int     `json:"epochs,omitempty"` // condensations by a language model
}

const day = "2006-01-02"

// on returns s if it is of the given day, else an empty spent of that day.
func (s spent) on(day string) spent {
	if s.Day != day {
		return spent{Day: day}
	}
	return s
}

// get returns the usage of a tenant, created if missing. The caller holds t.mu.
func (t *Tenants) get(name string, l Limits) *usage {
	u := t.of[name]
	if u == nil {
		if t.of == nil {
			t.of = map[string]*usage{}
		}
		u = &usage{}
		t.of[name] = u
	}
	for _, b := range []struct {
		of        **rate.Limiter
		perMinute int64
	}{{&u.requests, int64(l.Requests)}, {&u.bytes, l.Bytes}} {
		per, burst := rate.Inf, 0
		if b.perMinute > 0 {
			per, burst = rate.Limit(float64(b.perMinute)/time.Minute.Seconds()), int(min(b.perMinute, math.MaxInt32))
		}
		if was := *b.of; was == nil || was.Limit() != per || was.Burst() != burst {
			*b.of = rate.NewLimiter(per, burst)
		}
	}
	return u
}

// Denied describes a limit that is reached.
type Denied struct {
	Limit string // name of the limit: its key below serve.limits
	Text  string
	Wait  time.Duration
}

// Busy is the retry delay after too many simultaneous requests: nobody knows when one of them ends.
const Busy = 5 * time.Second

// Enter counts a request until leave is called. Key is a hash of the caller's key. If a limit refuses the request, no
// describes it.
func (t *Tenants) Enter(c Caller, key string, l Limits, now time.Time) (leave func(), no *Denied) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.get(c.Tenant, l)
	switch today := u.today(now); {
	case l.Concurrent == 0 && t.keys[key] >= MostOfKey:
		no = &Denied{"concurrent", fmt.Sprintf("%d requests at the same time with one key", MostOfKey), Busy}
	case l.Concurrent > 0 && u.active >= l.Concurrent:
		no = &Denied{"concurrent", fmt.Sprintf("%d requests at the same time", l.Concurrent), Busy}
	case l.Cost > 0 && today.Cost >= l.Cost:
		tomorrow := now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1)
		no = &Denied{"cost", fmt.Sprintf("$%.2f per day (UTC)", l.Cost), seconds(tomorrow.Sub(now).Seconds())}
	case l.Cost > 0 && today.Cost+u.reserved >= l.Cost:
		no = &Denied{"cost", fmt.Sprintf("$%.2f per day (UTC) with the requests that are being answered", l.Cost), Busy}
	case u.bytes.Limit() != rate.Inf && u.bytes.TokensAt(now) < 0:
		no = &Denied{"bytes", fmt.Sprintf("%d bytes per minute", l.Bytes), seconds(-u.bytes.TokensAt(now) / float64(u.bytes.Limit()))}
	case !u.requests.AllowN(now, 1):
		no = &Denied{
			"requests", fmt.Sprintf("%d requests per minute", l.Requests),
			seconds((1 - u.requests.TokensAt(now)) / float64(u.requests.Limit())),
		}
	}
	if no != nil {
		who := "this gateway"
		if c.Tenant != "" {
			who = "tenant " + c.Tenant
		}
		no.Text = fmt.Sprintf("condense: %s has reached its limit of %s; it may go on in %s, or with a higher serve.limits.%s, which is set by those who run the gateway", who, no.Text, no.Wait, no.Limit)
		return nil, no
	}
	if t.keys == nil {
		t.keys = map[string]int{}
	}
	u.active++
	t.keys[key]++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		u.active--
		if t.keys[key]--; t.keys[key] == 0 {
			delete(t.keys, key)
		}
	}, nil
}

// seconds converts n to a duration, rounded up, at least one second.
func seconds(n float64) time.Duration { return time.Duration(max(1, math.Ceil(n))) * time.Second }

// today returns the tenant's usage of today at all gateways.
func (u *usage) today(now time.Time) spent {
	day := now.UTC().Format(day)
	u.spent = u.spent.on(day)
	others := u.others.on(day)
	return spent{day, u.spent.Cost + others.Cost, u.spent.Epochs + others.Epochs}
}

// Received counts n bytes of a request.
func (t *Tenants) Received(name string, l Limits, now time.Time, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.get(name, l)
	for burst := u.bytes.Burst(); burst > 0 && n > 0; n -= burst {
		u.bytes.ReserveN(now, min(n, burst)) // the balance may go below zero
	}
}

// Paid adds the cost of an answer, in US dollars, to the usage of a tenant, of which so much was reserved.
func (t *Tenants) Paid(name string, l Limits, now time.Time, cost, reserved float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.get(name, l)
	u.today(now)
	u.spent.Cost += cost
	u.reserved -= reserved
	t.dirty = t.dirty || cost > 0
}

// Reserve adds to the estimated cost of the tenant's requests that are being answered, in US dollars, until Paid takes it
// off again.
func (t *Tenants) Reserve(name string, l Limits, more float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.get(name, l).reserved += more
}

// MayAsk reports whether a tenant may have one more condensation by a language model today, of at most as many as most;
// 0 means any number. If so, it counts that condensation.
func (t *Tenants) MayAsk(name string, l Limits, now time.Time, most int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := t.get(name, l)
	t.dirty = true
	if most > 0 && u.today(now).Epochs >= most {
		return false
	}
	u.today(now)
	u.spent.Epochs++
	return true
}

// Cost returns the sum that all tenants have spent at this gateway.
func (t *Tenants) Cost() (sum float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, u := range t.of {
		sum += u.spent.Cost
	}
	return sum
}

// UsageKey is the store key of the tenants' usage. Each gateway writes its own record and reads the records of the
// others.
var UsageKey = store.Key{Tenant: "usage"}

// Share saves the usage of the tenants at this gateway in r, and reads the usage recorded by others, including earlier
// runs of this gateway.
func (t *Tenants) Share(ctx context.Context, in store.Store, r *store.Record, now time.Time, limits func(tenant string) Limits) error {
	if err := t.save(ctx, in, r, now); err != nil {
		return err
	}
	today := now.UTC().Format(day)
	records, err := in.Load(ctx, UsageKey)
	if err != nil {
		return err
	}
	others := map[string]spent{}
	for i := range records {
		var all map[string]spent
		if records[i].ID == r.ID || json.Unmarshal(records[i].Data, &all) != nil {
			continue
		}
		for name, s := range all {
			sum, s := others[name].on(today), s.on(today)
			others[name] = spent{today, sum.Cost + s.Cost, sum.Epochs + s.Epochs}
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, s := range others {
		t.get(name, limits(name)).others = s
	}
	return nil
}

// save stores the usage of the tenants at this gateway, if it has changed.
func (t *Tenants) save(ctx context.Context, in store.Store, r *store.Record, now time.Time) error {
	today := now.UTC().Format(day)
	t.mu.Lock()
	own, dirty := map[string]spent{}, t.dirty
	for name, u := range t.of {
		if s := u.spent.on(today); s.Cost > 0 || s.Epochs > 0 {
			own[name] = s
		}
	}
	t.dirty = false
	t.mu.Unlock()
	if !dirty {
		return nil
	}
	var err error
	if r.Data, err = json.Marshal(own); err != nil {
		return err
	}
	r.Updated = now
	if err = store.SaveOwn(ctx, in, r); err != nil {
		t.mu.Lock()
		t.dirty = true
		t.mu.Unlock()
	}
	return err
}
