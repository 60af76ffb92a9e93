package live

import (
	"net/http"
	"strconv"
	"time"

	"github.com/condensehq/condense/internal/live/access"
	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/live/internal/audit"
)

// A visit is a request that was let in, or refused.
type visit struct {
	r     *http.Request // with its span
	out   *audit.Outcome
	leave func() // ends its place among the simultaneous requests of its tenant; nil if it was answered
	end   func() // records it; never nil
}

// admit lets a request in, or answers it: it checks the token and the limits, and that an upstream takes it. All requests come through
// here: those over HTTP, handshakes of WebSockets, and events of their clients.
func (g *Gateway) admit(w http.ResponseWriter, r *http.Request, s *settings, t *target) visit {
	start, out := time.Now(), &audit.Outcome{ResponseWriter: w}
	r, span := g.began(r, t)
	v := visit{r: r, out: out, end: func() { g.served(s, t, r, out, start, span) }}
	switch status, text := s.refuse(r, t); {
	case status != 0:
		if out.Refused = "access"; status == http.StatusUnauthorized {
			out.Refused = "token"
		}
		t.refuse(out, status, text)
	case t.own:
		t.refuse(out, http.StatusNotFound, "condense: here are only the models; the gateway's own pages are at its admin address (serve.admin.listen)")
	case t.path == "/" && r.Method == http.MethodHead: // the probe of Claude Code
		out.WriteHeader(http.StatusOK)
	case t.rejection != nil:
		g.reject(out, r, s, t)
	default:
		now, key := g.current.Load(), g.secrets.tenantOf(t.who, credentials(t, r.Header), nil) // s may be older than a reload of the limits
		var no *tenant.Denied
		if v.leave, no = g.tenants.Enter(t.who, key, now.limitsFor(t.who.Tenant), now.Now()); no != nil {
			t.deny(out, no)
		}
	}
	return v
}

// deny refuses a request because of a limit. Clients of both vendors obey Retry-After if it is short and retry at once if it is long;
// X-Should-Retry then tells them not to.
func (t *target) deny(out *audit.Outcome, no *tenant.Denied) {
	if out.Refused = "limit " + no.Limit; t.handshake && no.Limit == "concurrent" {
		t.noSocket(out)
		return
	}
	out.Header().Set("Retry-After", strconv.Itoa(int(no.Wait.Seconds())))
	if no.Wait > time.Minute {
		out.Header().Set("X-Should-Retry", "false")
	}
	t.refuse(out, http.StatusTooManyRequests, no.Text)
}

// noSocket refuses a WebSocket. Codex uses HTTP after this status, and after no other.
func (t *target) noSocket(out *audit.Outcome) {
	out.Refused = "limit concurrent"
	t.refuse(out, http.StatusUpgradeRequired, "condense: there are too many WebSockets of this caller or of all; use HTTP")
}

// refuse returns the HTTP status and message for a request that must not be answered. Otherwise it returns 0 and sets
// t.who to the caller.
func (s *settings) refuse(r *http.Request, t *target) (status int, text string) {
	var ok bool
	if t.who, text, ok = s.door.Admit(t.token); !ok {
		return http.StatusUnauthorized, "condense: " + text + "; send it in the header X-Condense-Token or in the base URL: /token/TOKEN"
	}
	if t.who.Admin && s.door.Tokens != nil {
		return http.StatusForbidden, "condense: this token is for the gateway's own pages; for models use that of a tenant"
	}
	if status, text = s.door.Outside(r); status == 0 && access.IsUpgrade(r) {
		return http.StatusUpgradeRequired, "condense: no WebSocket here; use HTTP"
	}
	return status, text
}
