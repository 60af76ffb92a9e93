package live

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/live/store"
)

// Admin returns the handler of the pages for administrators, not for agents: it belongs on a listener of its own, on
// the loopback if possible.
//
//	/healthz          200 while the process serves
//	/readyz           200 if requests should be sent here: the file of the store answers, and [Gateway.Drain] was not
//	                  called; else 503. The text also reports a configuration change that is not used, because it
//	                  waits for trust or is invalid.
//	/condense/status  [Stats] as JSON
//	/condense/live    the conversations used in the last hour, as JSON; below it, /ID shows the view that the model has
//	                  of one, and a POST of JSON to /ID/ACTION performs one of [Actions], as [Desk.Do] does
//	/metrics          [Options.Metrics], if there is one
//	/condense/        [Options.Pages], if there are any
//
// With a token, every page but the first two needs it, or one of [Options.Tokens] for administrators: in the header
// X-Condense-Token, as bearer token, or as the password of any user, for which browsers ask. Without a token, only
// clients on this machine are answered.
func (g *Gateway) Admin() http.Handler {
	own := http.NewServeMux() // the pages that need a token
	own.HandleFunc("GET /condense/status", g.serveStatus)
	g.control(own)
	if h := g.current.Load().Metrics; h != nil {
		own.Handle("GET /metrics", h)
	}

	if h := g.current.Load().Pages; h != nil {
		own.Handle("GET /condense/", h)
	}

	all := http.NewServeMux()
	all.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plainly(w, http.StatusOK, "ok") })
	all.HandleFunc("GET /readyz", g.serveReady)
	all.Handle("/", g.forAdmins(own))
	return all
}

// Drain makes /readyz say that no new requests should be sent here. Requests are still served, to give a balancer the
// time to ask, and each is the last of its connection.
func (g *Gateway) Drain() { g.draining.Store(true) }

func (g *Gateway) serveReady(w http.ResponseWriter, r *http.Request) {
	if g.draining.Load() {
		plainly(w, http.StatusServiceUnavailable, "draining")
		return
	}
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	err := g.storeReady(ctx)
	if err != nil && !errors.Is(err, store.ErrAway) {
		plainly(w, http.StatusServiceUnavailable, "the store cannot be used")
		return
	}
	text := "ok"
	if err != nil { // still ready: requests are served, and other gateways share the same database
		text += ", and the database does not answer"
	}
	// The previous configuration stays in effect: an edit of a file must not take the gateway out of service. Anyone
	// may ask, so the text names no file and no key.
	switch err := g.host.ReloadErr(); {
	case err == nil:
	case errors.As(err, new(*config.UntrustedError)):
		text += ", and a change of the configuration waits for trust ('condense trust')"
	default:
		text += ", and a change of the configuration is invalid and not used"
	}
	plainly(w, http.StatusOK, text)
}

// storeReady returns an error if the store cannot be used, and logs it once.
func (g *Gateway) storeReady(ctx context.Context) error {
	err := g.store.Ready(ctx)
	switch {
	case err == nil:
		g.unusable.Store(false)
	case errors.Is(err, store.ErrAway), ctx.Err() != nil:
	case !g.unusable.Swap(true):
		g.stats.Fault("store")
		g.current.Load().Logger.WarnContext(ctx, "the store cannot be used: requests go on", "err", err)
	}
	return err
}

// plainly answers with a line of text.
func plainly(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n")) //nolint:gosec // as plain text, with sniffing forbidden
}

// forAdmins serves next to administrators, and refuses all others.
func (g *Gateway) forAdmins(next *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := g.current.Load()
		who, text, ok := s.admit(adminToken(r))
		out := &outcome{ResponseWriter: w}
		defer func() {
			// Successful requests of these pages come every few seconds: do not record them.
			if r.URL.Path == "/metrics" && out.code() == http.StatusOK || out.code() == http.StatusNoContent {
				return
			}
			s.audit("admin", who, "page", page(next, r), "status", out.code(), "from", r.RemoteAddr)
		}()
		w = out
		if status, text := s.outside(r); status != 0 {
			plainly(w, status, text)
			return
		}
		switch {
		case !ok:
			w.Header().Set("WWW-Authenticate", `Basic realm="condense", charset="UTF-8"`)
			plainly(w, http.StatusUnauthorized, "condense: "+text+"; send it as the password of any user, as bearer token, or in the header X-Condense-Token")
		case !who.Admin:
			plainly(w, http.StatusForbidden, "condense: this token is for models; these pages need one of 'condense token new --admin'")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// page returns the pattern of the requested page; empty for an unknown one.
func page(pages *http.ServeMux, r *http.Request) string {
	_, pattern := pages.Handler(r)
	return pattern
}

// adminToken returns the token of a request for a page of the gateway.
func adminToken(r *http.Request) string {
	if token := r.Header.Get("X-Condense-Token"); token != "" {
		return token
	}
	if token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return token
	}
	_, password, _ := r.BasicAuth()
	return password
}

// serveStatus answers GET /condense/status.
func (g *Gateway) serveStatus(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(g.Stats()); err != nil {
		g.current.Load().Logger.DebugContext(r.Context(), "status could not be sent", "err", err)
	}
}
