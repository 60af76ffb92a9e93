package servecmd

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"testing"
)

// The page of wrap is only for a browser that has opened the printed address; the pages know nothing of the secret.
func TestPageIsOnlyForItsAddress(t *testing.T) {
	p := newPage(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "conversations at "+r.URL.Path)
	}), "orders")
	server := httptest.NewServer(p)
	defer server.Close()
	get := func(client *http.Client, path string) (status int, text string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
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
		if strings.Contains(string(body)+res.Request.URL.String(), p.secret) {
			t.Errorf("the secret is in %s: %s", res.Request.URL, body)
		}
		return res.StatusCode, string(body)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	stranger, user := &http.Client{}, &http.Client{Jar: jar}
	for _, path := range []string{"/condense/", "/condense/live", "/open/", "/open/wrong", "/"} {
		if status, text := get(stranger, path); status != http.StatusForbidden || !strings.Contains(text, "the address that condense wrap has printed") {
			t.Errorf("%s without the secret: %d %s", path, status, text)
		}
	}
	if status, text := get(user, openPath+p.secret); status != http.StatusOK || text != "conversations at /condense/" {
		t.Errorf("the address gives %d %s", status, text)
	}
	if status, text := get(user, "/condense/live"); status != http.StatusOK || text != "conversations at /condense/live" {
		t.Errorf("then %d %s", status, text)
	}
}

// Two agents at once have a page each in one browser, which sends its cookies to all ports.
func TestTwoPagesInOneBrowser(t *testing.T) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	user := &http.Client{Jar: jar}
	addresses := make([]string, 2)
	get := func(url string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := user.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res.StatusCode
	}
	for i := range addresses {
		p := newPage(http.NotFoundHandler(), "orders")
		server := httptest.NewServer(p)
		defer server.Close()
		addresses[i] = server.URL
		get(server.URL + openPath + p.secret)
	}
	for i, address := range addresses {
		if status := get(address + "/condense/"); status != http.StatusNotFound {
			t.Errorf("page %d: %d", i, status)
		}
	}
}
