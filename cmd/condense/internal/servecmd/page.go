package servecmd

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
)

// A page shows the gateway's own pages to the user with the address printed by wrap: others on this machine reach the port, and do
// not know the secret in it. A browser exchanges the secret for a cookie, so that it is in no link and in no history but the first entry.
type page struct {
	secret string
	orders string // that the pages know the user by
	pages  http.Handler
}

// The cookie, and the path that gives it.
const (
	pageCookie = "condense-page-" // and the port
	openPath   = "/open/"
)

func newPage(pages http.Handler, orders string) *page {
	return &page{secret: rand.Text(), orders: orders, pages: pages}
}

// ServeHTTP answers with the pages to those with the cookie.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	_, port, _ := net.SplitHostPort(r.Host)
	cookie := pageCookie + port // browsers send a cookie to all ports of a host: another wrap's must not replace it
	if given, ok := strings.CutPrefix(r.URL.Path, openPath); ok && r.Method == http.MethodGet && p.is(given) {
		// The loopback speaks no TLS. Browsers send a cookie to all ports of a host, so its path is no wider than the pages.
		http.SetCookie(w, &http.Cookie{Name: cookie, Value: p.secret, Path: "/condense/", HttpOnly: true, SameSite: http.SameSiteStrictMode}) //nolint:gosec // see above
		http.Redirect(w, r, "/condense/", http.StatusSeeOther)
		return
	}
	if c, err := r.Cookie(cookie); err != nil || !p.is(c.Value) {
		http.Error(w, "open the address that condense wrap has printed", http.StatusForbidden)
		return
	}
	r.Header.Set("X-Condense-Token", p.orders)
	p.pages.ServeHTTP(w, r)
}

func (p *page) is(secret string) bool {
	return subtle.ConstantTimeCompare([]byte(secret), []byte(p.secret)) == 1
}

// servePage serves the gateway's pages on a free port of the loopback, and returns the address to open and a function that ends it.
func (g *gateway) servePage(ctx context.Context) (address string, end func() error, err error) {
	l, err := bind(ctx, "127.0.0.1:0", "")
	if err != nil {
		return "", nil, err
	}
	p := newPage(g.Admin(), g.orders)
	server := g.server(p)
	go func() { _ = server.Serve(l) }() // it ends when it is closed
	return "http://" + l.Addr().String() + openPath + p.secret, server.Close, nil
}
