// Package admin serves the gateway's own pages, for administrators.
package admin

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/live/access"
	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/live/internal/audit"
)

// A Pages serves the gateway's own pages, for administrators.
type Pages struct {
	Host       *condense.Host
	Door       func() *access.Door
	Orders     func() string // the secret of the user where no token is needed; empty for none
	Controller func() *control.Controller
	Stats      func() any
	Now        func() time.Time
	Log        func() *slog.Logger
	Audit      func(what string, who tenant.Caller, more ...any)
	Ready      func(context.Context) error // whether the store can be used
	Draining   func() bool
}

// Handler returns the handler of all pages. metrics and more may be nil.
func (p *Pages) Handler(metrics, more http.Handler) http.Handler {
	own := http.NewServeMux() // the pages that need a token
	own.HandleFunc("GET /condense/status", p.serveStatus)
	p.control(own)
	if metrics != nil {
		own.Handle("GET /metrics", metrics)
	}
	if more != nil {
		own.Handle("GET /condense/", more)
	}
	all := http.NewServeMux()
	all.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plainly(w, http.StatusOK, "ok") })
	all.HandleFunc("GET /readyz", p.ServeReady)
	all.Handle("/", p.forAdmins(own))
	return all
}

// ServeReady answers GET /readyz.
func (p *Pages) ServeReady(w http.ResponseWriter, r *http.Request) {
	if p.Draining() {
		plainly(w, http.StatusServiceUnavailable, "draining")
		return
	}
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	err := p.Ready(ctx)
	if err != nil && !errors.Is(err, store.ErrUnavailable) {
		plainly(w, http.StatusServiceUnavailable, "the store cannot be used")
		return
	}
	text := "ok"
	if err != nil { // still ready: requests are served, and other gateways share the same database
		text += ", and the database does not answer"
	}
	// The previous configuration stays in effect: an edit of a file must not take the gateway out of service. Anyone
	// may ask, so the text names no file and no key.
	switch err := p.Host.ReloadErr(); {
	case err == nil:
	case errors.As(err, new(*config.UntrustedError)):
		text += ", and a change of the configuration waits for trust ('condense trust')"
	default:
		text += ", and a change of the configuration is invalid and not used"
	}
	plainly(w, http.StatusOK, text)
}

// plainly answers with a line of text.
func plainly(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}

// forAdmins serves next to administrators, and refuses all others.
func (p *Pages) forAdmins(next *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		door := p.Door()
		who, text, ok := door.Admit(adminToken(r))
		out := &audit.Outcome{ResponseWriter: w}
		defer func() {
			// Successful requests of these pages come every few seconds: do not record them.
			if r.URL.Path == "/metrics" && out.Code() == http.StatusOK || out.Code() == http.StatusNoContent {
				return
			}
			p.Audit("admin", who, "page", page(next, r), "status", out.Code(), "from", r.RemoteAddr)
		}()
		w = out
		if status, text := door.Outside(r); status != 0 {
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
func (p *Pages) serveStatus(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	if err := e.Encode(p.Stats()); err != nil {
		p.Log().DebugContext(r.Context(), "status could not be sent", "err", err)
	}
}
