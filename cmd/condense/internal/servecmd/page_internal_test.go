package servecmd

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pageServer serves a page at a port of its own.
func pageServer(t *testing.T, says string) (*page, *httptest.Server) {
	t.Helper()
	var p *page
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p = newPage(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, says+" at "+r.URL.Path)
	}), port, "/"+rand.Text(), "orders")
	return p, server
}

func getPage(t *testing.T, client *http.Client, address string) (status int, text string, at *url.URL) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body), res.Request.URL
}

// browser returns a client with cookies, which it sends to every port of a host, as browsers do.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar}
}

// The page of wrap is only for a browser that has opened the printed address; the pages know nothing of the secret.
func TestPageIsOnlyForItsAddress(t *testing.T) {
	p, server := pageServer(t, "conversations")
	get := func(client *http.Client, path string) (status int, text string) {
		t.Helper()
		status, text, at := getPage(t, client, server.URL+path)
		if strings.Contains(text+at.String(), p.secret) {
			t.Errorf("the secret is in %s: %s", at, text)
		}
		return status, text
	}
	stranger, user := &http.Client{}, browser(t)
	for _, path := range []string{"/condense/", "/condense/live", p.folder + "/condense/", p.folder + "/condense/live", "/open/", "/open/wrong", "/"} {
		if status, text := get(stranger, path); status != http.StatusForbidden || !strings.Contains(text, "the address that condense wrap has printed") {
			t.Errorf("%s without the secret: %d %s", path, status, text)
		}
	}
	if status, text := get(user, openPath+p.secret); status != http.StatusOK || text != "conversations at /condense/" {
		t.Errorf("the address gives %d %s", status, text)
	}
	if status, text := get(user, p.folder+"/condense/live"); status != http.StatusOK || text != "conversations at /condense/live" {
		t.Errorf("then %d %s", status, text)
	}
}

// One browser opens the pages of two runs: both go on, and no other server of the machine gets a cookie.
func TestTwoWrapsKeepTheirPages(t *testing.T) {
	user := browser(t)
	first, at := pageServer(t, "first")
	second, there := pageServer(t, "second")
	for _, address := range []string{at.URL + openPath + first.secret, there.URL + openPath + second.secret} {
		if status, text, _ := getPage(t, user, address); status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
	}
	for address, want := range map[string]string{at.URL + first.folder: "first", there.URL + second.folder: "second"} {
		if status, text, _ := getPage(t, user, address+"/condense/live"); status != http.StatusOK || text != want+" at /condense/live" {
			t.Errorf("the %s page: %d %s", want, status, text)
		}
	}
	foreign := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if len(r.Cookies()) > 0 {
			t.Errorf("another server gets %v at %s", r.Cookies(), r.URL)
		}
	}))
	defer foreign.Close()
	for _, path := range []string{"/", "/condense/", "/condense/live", "/open/"} {
		getPage(t, user, foreign.URL+path)
	}
}

// A page is found by other commands of its user while its gateway runs, and the browser is given an address that leads there once:
// others can read it.
func TestPagesAreFoundAndOpened(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	first, at := pageServer(t, "first")
	foreign := httptest.NewServer(http.NotFoundHandler()) // has the port of a gateway that was killed
	defer foreign.Close()
	pages := filepath.Join(state, "condense", "pages")
	if err := os.MkdirAll(pages, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(pages, "20260101T000000.000000000"), []byte(foreign.URL+"/condense/"), 0o600); err != nil {
		t.Fatal(err)
	}
	address := at.URL + openPath + first.secret
	end := announce(address)
	if got := announced(); !slices.Equal(got, []string{address}) {
		t.Errorf("found are %q, want only %q", got, address)
	}
	var given string
	err := openBrowser(t.Context(), address, func(_ context.Context, once string) error {
		given = once
		if strings.Contains(once, first.secret) {
			t.Errorf("the browser is given %s, which others can read", once)
		}
		if status, text, _ := getPage(t, browser(t), once); status != http.StatusOK || !strings.HasPrefix(text, "first at /condense/") {
			t.Errorf("the browser gets %d %s", status, text)
		}
		if status, _, _ := getPage(t, http.DefaultClient, once); status != http.StatusNotFound {
			t.Errorf("a second time: %d", status)
		}
		return nil
	})
	if err != nil || given == "" {
		t.Errorf("opened %q: %v", given, err)
	}
	if end(); len(announced()) != 0 {
		t.Error("a page is found after its end")
	}
}
