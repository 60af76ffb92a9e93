package online_test

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/lab/online"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// get asks for a page.
func get(t *testing.T, url string, header ...string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(body)
}

// hostile is what a result of a tool can try on the pages.
const hostile = `</script><script>document.title='owned'</script><img src=x onerror=alert(1)> \u202Egpj.exe`

func TestPages(t *testing.T) {
	window, file := 60_000, filepath.Join(t.TempDir(), "gateway.db")
	host, err := condense.Open(t.Context(), &condense.Options{Values: &config.Values{
		DefaultProfile: "small", Profiles: map[string]config.ProfileValues{
			"small": {Window: &window},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	watch, err := online.New(t.Context(), file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := watch.Close(); err != nil {
			t.Error(err)
		}
	}()
	vendor := upstream.New(upstream.Options{Window: window, Script: upstream.Loop(45, 6000, map[int]string{3: hostile})})
	v := httptest.NewServer(vendor)
	defer v.Close()
	var g *live.Gateway
	g, err = live.New(host, &live.Options{
		Upstreams: live.Upstreams{URLs: map[string]string{"anthropic": v.URL}},
		Reports:   live.Reports{Watch: watch, Pages: watch.Pages("", func() live.Stats { return g.Stats() })},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}()
	s, admin := httptest.NewServer(g), httptest.NewServer(g.Admin())
	defer s.Close()
	defer admin.Close()
	defer http.DefaultClient.CloseIdleConnections()

	if status, _, body := get(t, admin.URL+"/condense/"); status != http.StatusOK || !strings.Contains(body, "No conversation yet.") {
		t.Errorf("before the first request: %d %s", status, body)
	}
	client := upstream.Client{API: upstream.Messages, Model: "claude-opus-5-5", Thinking: "adaptive", Stream: true, Session: "s", URL: s.URL}
	if _, err := client.Say(t.Context(), "Read all the files. Token: "+hostile); err != nil {
		t.Fatal(err)
	}
	if n := g.Stats().EpochCount; n == 0 {
		t.Fatal("no epoch")
	}
	_, header, page := get(t, admin.URL+"/condense/")
	if csp := header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("policy %q", csp)
	}
	link := regexp.MustCompile(`/condense/conversations/\w+`).FindString(page)
	_, _, one := get(t, admin.URL+link)
	if !strings.Contains(one, "Epoch 1</h2>") {
		t.Errorf("the page of the conversation: %s", one)
	}
	for name, p := range map[string]string{"overview": page, "conversation": one} {
		if strings.Contains(p, hostile) || strings.Contains(p, "<img src=x") {
			t.Errorf("%s has unescaped text of the conversation", name)
		}
	}

	// A reader with the newest version gets nothing; there are no others than those known.
	version := regexp.MustCompile(`data-version="(\d+)"`).FindStringSubmatch(one)[1]
	if status, _, _ := get(t, admin.URL+link, "X-Version", version); status != http.StatusNoContent {
		t.Errorf("unchanged page: status %d", status)
	}
	for _, path := range []string{"/condense/conversations/none", link + "/99", "/condense/other"} {
		if status, _, _ := get(t, admin.URL+path); status != http.StatusNotFound {
			t.Errorf("%s: status %d", path, status)
		}
	}
}
