package live

import (
	"context"
	"errors"
	"net/http"

	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/live/store"
)

// Stats returns a snapshot of the statistics.
func (g *Gateway) Stats() Stats {
	s := g.stats.Snapshot()
	s.AsOf, s.Observe, s.Windows = g.current.Load().Now(), g.current.Load().Observe, g.windows.known()
	_, s.Preparing = g.preparing.Waiting()
	if pending := g.host.ReloadErr(); pending != nil {
		s.Pending = pending.Error()
	}
	return s
}

// controller returns the controller of the gateway's store. It must not be used after the gateway is closed.
func (g *Gateway) controller() *control.Controller {
	return control.New(g.store, g.current.Load().Now, g.sessions.Changed)
}

// Admin returns the handler of the pages for administrators, not for agents: it belongs on a listener of its own, on
// the loopback if possible.
//
//	/healthz          200 while the process serves
//	/readyz           200 if requests should be sent here: the file of the store answers, and [Gateway.Drain] was not
//	                  called; else 503. The text also reports a configuration change that is not used, because it
//	                  waits for trust or is invalid.
//	/condense/status  [Stats] as JSON
//	/condense/live    the conversations used in the last hour, as JSON; below it, /ID shows the view that the model has
//	                  of one, and a POST of JSON to /ID/ACTION performs one of actions, as condense live does
//	/metrics          Reports.Metrics, if there is one
//	/condense/        Reports.Pages, if there are any
//
// With a token, every page but the first two needs it, or one of Options.Tokens for administrators: in the header
// X-Condense-Token, as bearer token, or as the password of any user, for which browsers ask. Without a token, only
// clients on this machine are answered, and only those that send [Access.Orders] in its place direct conversations and are
// shown texts.
func (g *Gateway) Admin() http.Handler {
	s := g.current.Load()
	return g.pages.Handler(s.Reports.Metrics, s.Reports.Pages)
}

// Drain makes /readyz say that no new requests should be sent here. Requests are still served, to give a balancer the
// time to ask, and each is the last of its connection. WebSockets end after the
// answers in progress.
func (g *Gateway) Drain() {
	g.draining.Store(true)
	g.sockets.once.Do(func() { close(g.sockets.drained) })
}

// storeReady returns an error if the store cannot be used, and logs it once.
func (g *Gateway) storeReady(ctx context.Context) error {
	err := g.store.Ready(ctx)
	switch {
	case err == nil:
		g.unusable.Store(false)
	case errors.Is(err, store.ErrUnavailable), ctx.Err() != nil:
	case !g.unusable.Swap(true):
		g.stats.Fault("store")
		g.current.Load().Reports.Logger.WarnContext(ctx, "the store cannot be used: requests go on", "err", err)
	}
	return err
}
