// Package admin serves the gateway's own pages, for administrators.
package admin

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/live/access"
	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/internal/plain"
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
	Audit      func(what string, who tenant.Caller, more ...any)
	Ready      func(context.Context) error // whether the store can be used
	Draining   func() bool
}

// Handler returns the handler of all pages. metrics and more may be nil.
func (p *Pages) Handler(metrics, more http.Handler) http.Handler {
	own := http.NewServeMux() // the pages that need a token
	own.HandleFunc("GET /condense/status", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, p.Stats()) })
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

// recently is the default age limit of listed conversations, by their last use.
const recently = time.Hour

// control adds the pages with which a user directs running conversations.
func (p *Pages) control(own *http.ServeMux) {
	own.HandleFunc("GET /condense/live", func(w http.ResponseWriter, r *http.Request) {
		since := recently
		if text := r.URL.Query().Get("since"); text != "" {
			var err error
			if since, err = time.ParseDuration(text); err != nil || since <= 0 {
				controlFault(w, http.StatusBadRequest, errors.New("since is no duration such as 1h"))
				return
			}
		}
		d := p.Controller()
		all, err := d.Conversations(r.Context(), p.Now().Add(-since))
		if err != nil {
			controlFault(w, http.StatusServiceUnavailable, errors.New("the store cannot be read now"))
			return
		}
		troubles := map[string][]string{}
		for _, c := range all {
			p.withhold(r, c)
			if said := c.Troubles(); said != nil {
				troubles[c.ID] = said
			}
		}
		answer(w, http.StatusOK, map[string]any{"conversations": all, "troubles": troubles, "known": p.knows(r)})
	})
	show := p.ofUser("shown to its user only", func(w http.ResponseWriter, r *http.Request, d *control.Controller, c *control.Conversation) {
		v, err := d.Show(r.Context(), c, r.PathValue("began"))
		switch {
		case errors.Is(err, control.ErrNoEpoch):
			controlFault(w, http.StatusNotFound, err)
		case err != nil:
			controlFault(w, http.StatusServiceUnavailable, errors.New("the conversation cannot be read now"))
		default:
			answer(w, http.StatusOK, v)
		}
	})
	own.HandleFunc("GET /condense/live/{id}", show)
	own.HandleFunc("GET /condense/live/{id}/epochs/{began}", show)
	own.HandleFunc("GET /condense/live/{id}/undo", p.found(func(w http.ResponseWriter, r *http.Request,
		d *control.Controller, c *control.Conversation,
	) {
		plan, err := d.PlanUndo(r.Context(), c)
		if err != nil {
			controlFault(w, http.StatusConflict, err)
			return
		}
		answer(w, http.StatusOK, plan)
	}))
	own.HandleFunc("POST /condense/live/{id}/{action}", p.ofUser("directed by its user only", p.serveAction))
}

// serveAction performs an action that a user asks for.
func (p *Pages) serveAction(w http.ResponseWriter, r *http.Request, d *control.Controller, c *control.Conversation) {
	// Protects against web pages of another origin: they cannot send this type.
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		controlFault(w, http.StatusUnsupportedMediaType, errors.New("send the header Content-Type: application/json"))
		return
	}
	var a control.Ask
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 2*control.LongestText))
	if err == nil && len(strings.TrimSpace(string(body))) > 0 {
		err = json.Unmarshal(body, &a)
	}
	if err != nil {
		controlFault(w, http.StatusBadRequest, fmt.Errorf("the body is no such JSON object: %w", err))
		return
	}
	configured := p.Host.Config()
	switch action := r.PathValue("action"); {
	case !slices.Contains(control.Actions, action):
		controlFault(w, http.StatusNotFound, d.Do(r.Context(), c, action, &a))
		return
	case action == session.OrderNow && a.Profile != "" && !slices.Contains(configured.Profiles(), a.Profile):
		controlFault(w, http.StatusBadRequest, fmt.Errorf("there is no profile %q: there are %s", plain.Clip(a.Profile),
			strings.Join(configured.Profiles(), ", ")))
		return
	case action == session.OrderNow && a.Provider != "":
		if _, err := configured.Provider(a.Provider); err != nil {
			controlFault(w, http.StatusBadRequest, err)
			return
		}
	}
	if err := d.Do(r.Context(), c, r.PathValue("action"), &a); err != nil {
		controlFault(w, http.StatusConflict, err)
		return
	}
	answer(w, http.StatusOK, c)
}

// knowing says how a user is known.
const knowing = "send the content of the file orders.key, in the gateway's folder for state (~/.local/state/condense), in the header " +
	"X-Condense-Token, as 'condense live' does, or let the gateway need a token (serve.token_file)"

// knows reports whether a request is of the gateway's user: it has a token, or else the secret of orders, because anyone on
// the machine can send it.
func (p *Pages) knows(r *http.Request) bool {
	secret := p.Orders()
	return !p.Door().Open() || secret != "" && subtle.ConstantTimeCompare([]byte(adminToken(r)), []byte(secret)) == 1
}

// ofUser is found for the gateway's user only; done says so.
func (p *Pages) ofUser(done string, f func(http.ResponseWriter, *http.Request, *control.Controller, *control.Conversation)) http.HandlerFunc {
	next := p.found(f)
	return func(w http.ResponseWriter, r *http.Request) {
		if !p.knows(r) {
			controlFault(w, http.StatusForbidden, errors.New("a conversation is "+done+": "+knowing))
			return
		}
		next(w, r)
	}
}

// withhold removes from a conversation the names that only its user may know.
func (p *Pages) withhold(r *http.Request, c *control.Conversation) {
	if p.knows(r) {
		return
	}
	c.Title, c.Folder, c.Session = "", "", ""
	c.Protections = slices.Clone(c.Protections)
	for i := range c.Protections {
		if c.Protections[i].Text != "" {
			c.Protections[i].Text = "…"
		}
	}
}

// found returns a handler that calls f with the conversation named in the path.
func (p *Pages) found(f func(http.ResponseWriter, *http.Request, *control.Controller, *control.Conversation)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d := p.Controller()
		all, err := d.Conversations(r.Context(), time.Time{})
		if err != nil {
			controlFault(w, http.StatusServiceUnavailable, errors.New("the store cannot be read now"))
			return
		}
		c, err := control.Find(all, r.PathValue("id"))
		if err != nil {
			for _, c := range all {
				p.withhold(r, c)
			}
			_, err = control.Find(all, r.PathValue("id"))
			controlFault(w, http.StatusNotFound, err)
			return
		}
		f(w, r, d, c)
	}
}

// answer answers with a value as JSON.
func answer(w http.ResponseWriter, status int, v any) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil { // cannot happen: it holds texts and numbers only
		text = []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}

func controlFault(w http.ResponseWriter, status int, err error) {
	answer(w, status, map[string]string{"error": err.Error()})
}
