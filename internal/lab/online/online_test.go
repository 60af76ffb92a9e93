package online_test

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/lab/online"
	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/internal/testkit"
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
	vendor := upstream.New(upstream.Options{Window: window, Script: upstream.Loop(52, 6000, map[int]string{3: hostile})})
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
	for _, link := range regexp.MustCompile(`(?:src|href)="(/[^"]+)"`).FindAllStringSubmatch(page, -1) {
		if status, _, _ := get(t, admin.URL+link[1]); status != http.StatusOK {
			t.Errorf("%s: status %d", link[1], status)
		}
	}

	// The data have numbers and no text; a reader with the newest version gets nothing.
	_, header, text := get(t, admin.URL+"/condense/data")
	for _, secret := range []string{"owned", "Read all the files"} {
		if strings.Contains(text, secret) {
			t.Errorf("the data have a text of the conversation: %s", text)
		}
	}
	var data struct {
		Sentence      string
		Conversations []struct {
			Of     online.Evidence
			Faults [][]string
		}
	}
	if err := json.Unmarshal([]byte(text), &data); err != nil || len(data.Conversations) != 1 || !strings.Contains(data.Sentence, "1 conversation") {
		t.Fatalf("%v in %s", err, text)
	}
	one := data.Conversations[0]
	// One conversation has one number: here, in the sentence, at the end of wrap, and in live and the status line, which say its basis too.
	testkit.Eventually(t, "the page, wrap and live agree about the money", func() bool {
		var list struct{ Conversations []control.Conversation }
		_, _, text := get(t, admin.URL+"/condense/live")
		_, _, page := get(t, admin.URL+"/condense/data")
		if err := errors.Join(json.Unmarshal([]byte(text), &list), json.Unmarshal([]byte(page), &data)); err != nil || len(list.Conversations) != 1 {
			t.Fatalf("%v: %s", err, text)
		}
		live, of, sum := list.Conversations[0], data.Conversations[0].Of.Saved, g.Stats().Saved
		return of != 0 && math.Abs(live.Saved-of) < 1e-9 && math.Abs(sum-of) < 1e-9 &&
			strings.Contains(data.Sentence, strings.TrimRight(size.Dollars(math.Abs(of), 4), "0")) && strings.Contains(live.Money, size.Dollars(math.Abs(of), 2)+" ") &&
			strings.Contains(live.Money, "a full window")
	})
	if len(one.Of.Curve) == 0 || len(one.Of.Epochs) == 0 || len(one.Faults) != len(one.Of.Epochs) {
		t.Errorf("%d points, %d epochs, faults of %d", len(one.Of.Curve), len(one.Of.Epochs), len(one.Faults))
	}
	if status, _, _ := get(t, admin.URL+"/condense/data", "X-Version", header.Get("X-Version")); status != http.StatusNoContent {
		t.Errorf("unchanged data: status %d", status)
	}
	link := "/condense/conversations/" + one.Of.ID
	for path, want := range map[string]int{link: 200, "/condense/conversations/none": 404, link + "/99": 404, "/condense/other": 404} {
		if status, _, _ := get(t, admin.URL+path); status != want {
			t.Errorf("%s: status %d", path, status)
		}
	}
}
