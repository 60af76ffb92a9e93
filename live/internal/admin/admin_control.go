package admin

import (
	"cmp"
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

	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/live/internal/payload"
)

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
		controlAnswer(w, map[string]any{"conversations": all, "troubles": troubles, "known": p.knows(r)})
	})
	show := p.ofUser("shown to its user only", func(w http.ResponseWriter, r *http.Request, d *control.Controller, c *control.Conversation) {
		v, err := d.Show(r.Context(), c, r.PathValue("began"))
		switch {
		case errors.Is(err, control.ErrNoEpoch):
			controlFault(w, http.StatusNotFound, err)
		case err != nil:
			controlFault(w, http.StatusServiceUnavailable, errors.New("the conversation cannot be read now"))
		default:
			controlAnswer(w, v)
		}
	})
	own.HandleFunc("GET /condense/live/{id}", show)
	own.HandleFunc("GET /condense/live/{id}/epochs/{began}", show)
	own.HandleFunc("GET /condense/live/{id}/undo", p.found(func(w http.ResponseWriter, _ *http.Request,
		d *control.Controller, c *control.Conversation,
	) {
		plan, err := d.PlanUndo(c)
		if err != nil {
			controlFault(w, http.StatusConflict, err)
			return
		}
		controlAnswer(w, plan)
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
	controlAnswer(w, c)
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

func controlAnswer(w http.ResponseWriter, v any) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil { // cannot happen: it holds texts and numbers only
		text = []byte("{}")
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	payload.WriteJSON(w, append(text, '\n'))
}

func controlFault(w http.ResponseWriter, status int, err error) {
	text, bad := json.Marshal(map[string]string{"error": err.Error()})
	if bad != nil {
		text = []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(cmp.Or(status, http.StatusInternalServerError))
	_, _ = w.Write(append(text, '\n'))
}
