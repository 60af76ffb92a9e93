package access

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/internal/plain"
)

// A Door admits callers: by a token, or from this machine.
type Door struct {
	Token  string   // the only token; empty for none
	Tokens *Tokens  // of tenants; nil without them
	Names  []string // host names by which clients with a token may call; empty for any
	Now    func() time.Time
}

// Open reports whether no token is needed.
func (d *Door) Open() bool { return d.Token == "" && d.Tokens == nil }

// Admit returns the owner of a token. If ok is false, text says why the token is not accepted.
func (d *Door) Admit(token string) (who tenant.Caller, text string, ok bool) {
	switch {
	case d.Tokens != nil:
		found, ok := d.Tokens.Find(token)
		who := tenant.Caller{Tenant: found.Tenant, Token: found.ID(), Admin: found.Admin}
		switch {
		case token == "":
			return tenant.Caller{}, "this gateway needs a token", false
		case !ok:
			return tenant.Caller{}, "this gateway does not know the token", false
		case found.Expired(d.Now()):
			return who, "the token " + who.Token + " of tenant " + who.Tenant + " has expired; this gateway needs a new one", false
		}
		return who, "", true
	case d.Token != "":
		return tenant.Caller{Admin: true}, "this gateway needs its token", subtle.ConstantTimeCompare([]byte(token), []byte(d.Token)) == 1
	}
	return tenant.Caller{Admin: true}, "", true
}

// Outside refuses clients on other machines if no token is set, host names that are not the gateway's, and web pages of
// other origins. It checks name and origin because pages in a browser can reach the loopback under any name (DNS
// rebinding).
func (d *Door) Outside(r *http.Request) (status int, text string) {
	free := d.Open()
	switch {
	case free && !isLoopback(r.RemoteAddr):
		return http.StatusForbidden, "condense: this gateway answers only clients on its own machine; to change that, set a token"
	case free && !isLoopback(r.Host):
		return http.StatusForbidden, "condense: this gateway is not called " + plain.Clip(r.Host) + "; use 127.0.0.1 or localhost"
	case !free && !d.called(r.Host):
		return http.StatusForbidden, "condense: this gateway is not called " + plain.Clip(r.Host)
	case !allowedOrigin(r) || strays(r):
		return http.StatusForbidden, "condense: requests from web pages of other origins are not answered"
	}
	return 0, ""
}

// called reports whether a host, with or without a port, is one of the gateway's names.
func (d *Door) called(host string) bool {
	if len(d.Names) == 0 || isLoopback(host) {
		return true
	}
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	_, below, _ := strings.Cut(host, ".")
	return net.ParseIP(strings.Trim(host, "[]")) != nil || slices.ContainsFunc(d.Names, func(name string) bool {
		parent, wild := strings.CutPrefix(name, "*.")
		return strings.EqualFold(name, host) || wild && strings.EqualFold(parent, below)
	})
}

// IsUpgrade reports whether a request asks for another protocol than HTTP.
func IsUpgrade(r *http.Request) bool {
	for _, v := range r.Header.Values("Connection") {
		for token := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(token), "upgrade") {
				return true
			}
		}
	}
	return r.Method == http.MethodConnect || r.Header.Get("Upgrade") != ""
}

// allowedOrigin reports whether a request has no origin, so that no web page sent it, or only origins on the loopback
// or at the gateway's own host.
func allowedOrigin(r *http.Request) bool {
	for _, origin := range r.Header["Origin"] {
		if origin == "" {
			continue
		}
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || !isLoopback(u.Host) && u.Host != r.Host {
			return false
		}
	}
	return true
}

// strays reports whether a page of another site sent the request without naming its origin, as browsers do for images.
// Links that a user follows are not counted.
func strays(r *http.Request) bool {
	return r.Header.Get("Origin") == "" && slices.ContainsFunc(r.Header["Sec-Fetch-Site"],
		func(site string) bool { return strings.EqualFold(site, "cross-site") }) &&
		(r.Method != http.MethodGet || r.Header.Get("Sec-Fetch-Mode") != "navigate")
}

// isLoopback reports whether a host, with or without a port, names this machine.
func isLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if i := strings.IndexByte(host, '%'); i >= 0 { // the zone of an IPv6 address
		host = host[:i]
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback() || strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost")
}
