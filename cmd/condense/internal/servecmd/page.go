package servecmd

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"strings"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
)

// A page shows the gateway's own pages to the user with the address printed by wrap: others on this machine reach the port, and do
// not know the secret in it. A browser exchanges the secret for a cookie, so that it is in no link and in no history but the first entry.
// Browsers send a cookie to all ports of a host: one of this page goes only to paths below a folder that no other server knows, and has
// a name that no other page uses.
type page struct {
	secret, cookie, folder string
	orders                 string // that the pages know the user by
	pages                  http.Handler
}

// openPath is the path that gives the cookie.
const openPath = "/open/"

// newPage returns the page of a port. Folder begins the paths of all pages, with a slash before it and none after.
func newPage(pages http.Handler, port, folder, orders string) *page {
	return &page{rand.Text(), "condense-page-" + port, folder, orders, http.StripPrefix(folder, pages)}
}

// ServeHTTP answers with the pages to those with the cookie.
func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", "no-store")
	if given, ok := strings.CutPrefix(r.URL.Path, openPath); ok && r.Method == http.MethodGet && p.is(given) {
		// The loopback speaks no TLS.
		http.SetCookie(w, &http.Cookie{Name: p.cookie, Value: p.secret, Path: p.folder + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}) //nolint:gosec // see above
		//nolint:gosec // the program chose the folder
		http.Redirect(w, r, p.folder+"/condense/", http.StatusSeeOther)
		return
	}
	if c, err := r.Cookie(p.cookie); err != nil || !p.is(c.Value) {
		http.Error(w, "open the address that condense wrap has printed, or use 'condense live --open'", http.StatusForbidden)
		return
	}
	r.Header.Set("X-Condense-Token", p.orders)
	p.pages.ServeHTTP(w, r)
}

func (p *page) is(secret string) bool {
	return subtle.ConstantTimeCompare([]byte(secret), []byte(p.secret)) == 1
}

// showPage serves the gateway's pages on a free port of the loopback until end is called, and prints the address to open; browse opens it.
func (g *gateway) showPage(ctx context.Context, a *cli.App, browse bool) (end func() error, err error) {
	l, err := bind(ctx, "127.0.0.1:0", "")
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	p := newPage(g.Admin(), port, g.folder, g.orders)
	server := g.server(p)
	go func() { _ = server.Serve(l) }() // it ends when it is closed
	address := "http://" + l.Addr().String() + openPath + p.secret
	gone := announce(address)
	term.Printf(a.Stderr, "condense: the page of this run: %s\n", address)
	if browse {
		go func() { // the agent starts meanwhile
			if err := openPage(ctx, address); err != nil {
				g.log.WarnContext(ctx, "the page is not open", "err", err)
			}
		}()
	}
	return func() error { gone(); return server.Close() }, nil
}
