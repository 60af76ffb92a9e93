package live

import (
	"bytes"
	"net/http"
	"runtime"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/live/count"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/live/internal/chain"
	"github.com/condensehq/condense/live/internal/seal"
	"github.com/condensehq/condense/live/internal/telemetry"
	"github.com/condensehq/condense/live/internal/upstream"
)

// NewWith is New with a store of a test.
func NewWith(host *condense.Host, opts *Options, s store.Store) (*Gateway, error) {
	settings, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	return start(host, settings, s)
}

// Settled answers as g does, and ends each answer when nothing is prepared any more: what a test sees does not depend on how fast its
// agent is.
func Settled(g *Gateway) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.ServeHTTP(w, r)
		Settle(g)
	})
}

// Preparing reports whether something is prepared.
func Preparing(g *Gateway) bool { return g.preparing.Busy() }

// Settle waits until nothing is prepared.
func Settle(g *Gateway) {
	for n := 0; Preparing(g) && g.life.Err() == nil; n++ {
		if runtime.Gosched(); n > 100 {
			time.Sleep(100 * time.Microsecond)
		}
	}
}

// Turns returns how many condensations wait that requests wait for, and how many are under way.
func Turns(g *Gateway) (waiting, underWay int) { return g.runner.Epochs.Waiting() }

// TokensOf is for tests of its cost.
var TokensOf = count.Tokens

// Seal and Unseal are for tests of what clients may send.
func Seal(g *Gateway, tenant string, messages [][]byte, now time.Time) (string, error) {
	return g.secrets.seals.Seal(tenant, messages, now)
}

func Unseal(g *Gateway, tenant, sealed string, now time.Time) ([][]byte, error) {
	return g.secrets.seals.Unseal(tenant, sealed, now, seal.Most)
}

// PingEvery sets how long a client waits in silence for the answer to a recall.
func PingEvery(g *Gateway, d time.Duration) { g.pingEvery = d }

// BodyPatience sets how long a client may send nothing of a body.
func BodyPatience(g *Gateway, d time.Duration) { g.patience = d }

// WaitForStore sets how long a request waits for a database that is away.
func WaitForStore(g *Gateway, d time.Duration) { g.sessions.Outage.Most = d }

// ForgetHistories forgets the histories behind the IDs of responses, as for want of memory.
func ForgetHistories(g *Gateway) { g.histories = chain.New(maxHistories) }

// StaleAfter sets how long a connection to a vendor is idle before it may be closed.
func StaleAfter(g *Gateway, d time.Duration) {
	for _, u := range g.current.Load().upstreams {
		u.Stale = d
	}
}

// Expire deletes what is too old, as the gateway does once a day.
func Expire(g *Gateway) { g.expireNow() }

// MeasureAll measures a nothing of everything.
func MeasureAll(g *Gateway) {
	for _, m := range telemetry.All {
		g.measure(m, 0)
	}
}

// Pulse sets how often a peer of a WebSocket gets a ping, and how long it may not answer.
func Pulse(g *Gateway, interval, patience time.Duration) {
	g.sockets.interval, g.sockets.patience = interval, patience
}

// Frames writes an answer, given as these frames, in parts of a size as a WebSocket's client gets it.
func Frames(events [][]byte, size int) (out [][]byte) {
	var whole []byte
	for _, event := range events {
		whole = append(whole, sse(event)...)
	}
	w := &frames{write: func(event []byte) error {
		out = append(out, bytes.Clone(event))
		return nil
	}}
	for len(whole) > 0 {
		n := min(size, len(whole))
		_, _ = w.Write(whole[:n])
		whole = whole[n:]
	}
	return out
}

// Route reads the path of a request.
func Route(r *http.Request) { (&settings{}).route(r) }

// Reaches returns the host of the upstream that a request is for; empty if it is for none.
func Reaches(g *Gateway, r *http.Request) string {
	if t := g.current.Load().route(r); t.rejection == nil && t.upstream != nil {
		if to, err := t.upstream.Address(t.path, &t.endpoint, ""); err == nil {
			return to.Host
		}
	}
	return ""
}

// Record gives what is sent to upstreams with an http address to a transport of a test.
func Record(g *Gateway, to http.RoundTripper) {
	for _, u := range g.current.Load().upstreams {
		u.Transport.RegisterProtocol("http", to)
	}
}

// Nearby reports whether the upstream at an address may be asked about its models.
func Nearby(address string) bool {
	u, err := upstream.New("openai", address)
	return err == nil && u.Nearby()
}

// Spent is what all tenants have spent today, in US dollars.
func Spent(g *Gateway) float64 { return g.tenants.Cost() }

// Counts returns how many epochs g has begun and undone, how many requests it has passed on as they were, and its last epoch.
func Counts(g *Gateway) (epochs, undone, passed int, last *Epoch) {
	g.stats.Add(func(s *Stats) {
		epochs, undone, passed = s.EpochCount, s.Undone, s.Passed
		if n := len(s.Epochs); n > 0 {
			e := s.Epochs[n-1]
			last = &e
		}
	})
	return epochs, undone, passed, last
}

// Held returns the bytes of requests that are held, and the number of bodies and frames.
func Held(g *Gateway) (bytes int64, bodies int) { return g.bodies.Held() }

// MostSockets sets how many WebSockets may be open.
func MostSockets(g *Gateway, n int) { g.sockets.most = n }

// Controller directs the conversations of g.
func (g *Gateway) Controller() *control.Controller { return g.pages.Controller() }
