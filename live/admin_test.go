package live_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/live"
)

// adminOf serves the own pages of a gateway.
func adminOf(t *testing.T, g *live.Gateway) string {
	t.Helper()
	s := httptest.NewServer(g.Admin())
	t.Cleanup(s.Close)
	return s.URL
}

// The gateway's own pages are not where agents send their requests, and never reach a vendor.
func TestPagesHaveAListenerOfTheirOwn(t *testing.T) {
	v := newVendor(t)
	g, s := serve(t, v, nil)
	for _, path := range []string{"/condense", "/condense/", "/condense/status", "/condense/x/../status"} {
		if res, body := send(t, http.MethodGet, s.URL+path, nil, nil); res.StatusCode != http.StatusNotFound || !strings.Contains(string(body), "admin address") {
			t.Errorf("%s where the models are: %s %s", path, res.Status, body)
		}
	}
	admin := adminOf(t, g)
	for path, want := range map[string]int{"/condense/status": 200, "/healthz": 200, "/readyz": 200, "/v1/models": 404, "/": 404} {
		if res, body := send(t, http.MethodGet, admin+path, nil, nil); res.StatusCode != want {
			t.Errorf("%s where the pages are: %s %s", path, res.Status, body)
		}
	}
	if len(v.got) != 0 {
		t.Errorf("%d requests reached the vendor", len(v.got))
	}
}

func TestWhoSeesThePages(t *testing.T) {
	v := newVendor(t)
	gate, _ := serve(t, v, nil)
	open := adminOf(t, gate)
	gate, _ = serve(t, v, func(o *live.Options) { o.Access.Token = "s3cret" })
	closed := adminOf(t, gate)
	for _, tt := range []struct {
		name, url string
		header    map[string]string
		want      int
	}{
		{"loopback", open + "/condense/status", nil, 200},
		{"a page that rebinds its name", open + "/condense/status", map[string]string{"Host": "evil.example"}, 403},
		{"a page", open + "/condense/status", map[string]string{"Origin": "https://evil.example"}, 403},
		{"no token", closed + "/condense/status", nil, 401},
		{"no token, unknown page", closed + "/condense/none", nil, 401},
		{"wrong token", closed + "/condense/status", map[string]string{"X-Condense-Token": "s3cre"}, 401},
		{"token", closed + "/condense/status", map[string]string{"X-Condense-Token": "s3cret"}, 200},
		{"bearer", closed + "/condense/status", map[string]string{"Authorization": "Bearer s3cret"}, 200},
		{"password", closed + "/condense/status", map[string]string{"Authorization": "Basic YW55OnMzY3JldA=="}, 200},
		{"a page, with the token", closed + "/condense/status", map[string]string{"Authorization": "Bearer s3cret", "Origin": "https://evil.example"}, 403},
		{"health", closed + "/healthz", nil, 200},
		{"health, by the address of a pod", closed + "/readyz", map[string]string{"Host": "10.0.0.1:8766"}, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if res, body := send(t, http.MethodGet, tt.url, tt.header, nil); res.StatusCode != tt.want {
				t.Errorf("got %s: %s", res.Status, body)
			}
		})
	}
}

// deafStore does not answer while it is deaf.
type deafStore struct {
	store.Store
	deaf bool
}

func (d *deafStore) Ready(ctx context.Context) error {
	if d.deaf {
		return errors.New("connection refused")
	}
	return d.Store.Ready(ctx)
}

// A gateway is ready while its store answers and it does not end; it serves in any case.
func TestReady(t *testing.T) {
	v := newVendor(t)
	deaf := &deafStore{Store: inMemory(t)}
	h, err := condense.Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	g, err := live.NewWith(h, &live.Options{Upstreams: live.Upstreams{URLs: map[string]string{"anthropic": v.URL}}}, deaf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	front := httptest.NewServer(g)
	t.Cleanup(front.Close)
	admin := adminOf(t, g)
	is := func(when string, want int) {
		t.Helper()
		if res, body := send(t, http.MethodGet, admin+"/readyz", nil, nil); res.StatusCode != want {
			t.Errorf("%s: %s %s", when, res.Status, body)
		}
		for url, name := range map[string]string{admin + "/healthz": "health", front.URL + "/v1/messages/batches": "a request"} {
			if res, body := send(t, http.MethodGet, url, nil, nil); res.StatusCode != http.StatusOK {
				t.Errorf("%s, %s: %s %s", name, when, res.Status, body)
			}
		}
	}
	is("at first", 200)
	deaf.deaf = true
	is("without the store", 503)
	deaf.deaf = false
	is("with the store again", 200)
	g.Drain()
	is("draining", 503)
}
