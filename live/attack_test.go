package live_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// A text full of what begins an image costs no more to count than any other.
func TestCountingIsLinear(t *testing.T) {
	for _, text := range []string{`;base64,`, `"base64",`, `"base64","data":`, `;base64,"`} {
		testkit.Linear(t, 100_000, func(n int) func() {
			raw := []byte(strings.Repeat(text, n/len(text)))
			return func() { live.TokensOf(raw) }
		})
	}
	for _, image := range []string{
		`{"type":"base64","media_type":"image/png","data":"%s"}`, `{"type": "base64", "media_type": "image/png", "data": "%s"}`, `"data:image/png;base64,%s"`,
	} {
		one := fmt.Sprintf(image, strings.Repeat("A", 100_000))
		if n := live.TokensOf([]byte("[" + one + "," + one + "]")); n < 2*1600 || n > 2*1650 {
			t.Errorf("%s: %d tokens for two images, want 3,200 and a few", image, n)
		}
	}
}

// What proxies before the gateway have added reaches the vendor, and nothing is added.
func TestForwardedHeadersPass(t *testing.T) {
	v := newVendor(t)
	_, s := serve(t, v, nil)
	names := []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}
	sent := map[string]string{"X-Condense-Unknown": "x"}
	for _, name := range names {
		sent[name] = "as it came"
	}
	for _, header := range []map[string]string{sent, nil} {
		send(t, "POST", s.URL+"/v1/messages", header, []byte(`{}`))
		got := v.last(t).header
		for _, name := range names {
			if got.Get(name) != header[name] || len(got.Values(name)) > 1 {
				t.Errorf("%s: %q, want %q", name, got.Values(name), header[name])
			}
		}
		if got.Get("X-Condense-Unknown") != "" {
			t.Error("a header for the gateway was forwarded")
		}
	}
}

// A program that names no session has hundreds of conversations with one key: each keeps its epochs.
func TestManyConversationsWithoutSession(t *testing.T) {
	p := newPlay(t, upstream.Options{}, claude(""), nil)
	p.begin(t)
	p.untilEpoch(t, 1)
	for i := range 100 {
		other := claude("")
		other.URL = p.server.URL
		other.History = append(other.History, map[string]any{"role": "user", "content": fmt.Sprint("question ", i)})
		if _, _, err := other.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		p.step(t)
	}
	if breaks, epochs := p.vendor.Breaks(), p.Stats().EpochCount; len(breaks) > epochs {
		t.Errorf("%d breaks of the prefix in %d epochs: %+v", len(breaks), epochs, breaks)
	}
	if refused := p.vendor.Refusals(); len(refused) > 0 {
		t.Errorf("refused: %s", refused[0].Error)
	}
}

// An agent moves between two gateways with one store, such as a service and condense wrap, and goes back to a
// gateway that has seen the conversation before: it knows what the other one has sent since.
func TestTwoGatewaysOneStore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "live.db")
	useFile := func(o *live.Options) { o.Store = file }
	p := newPlay(t, upstream.Options{}, claude("s"), useFile)
	v := httptest.NewServer(p.vendor)
	t.Cleanup(v.Close)
	g, s := serveWith(t, v.URL, withWindow(window), useFile)
	addresses := []string{p.server.URL, s.URL}
	p.begin(t)
	const together = 5
	for i := range 40 {
		p.client.URL = addresses[i/together%len(addresses)]
		p.step(t)
	}
	if breaks, epochs := p.vendor.Breaks(), p.Stats().EpochCount+g.Stats().EpochCount; len(breaks) > epochs || epochs < 2 {
		t.Errorf("%d breaks of the prefix in %d epochs: %+v", len(breaks), epochs, breaks)
	}
	for _, stats := range []live.Stats{p.Stats(), g.Stats()} {
		if len(stats.Errors) > 0 {
			t.Errorf("faults: %v", stats.Errors)
		}
	}
	if refused := p.vendor.Refusals(); len(refused) > 0 {
		t.Errorf("refused: %s", refused[0].Error)
	}
}

// TestMoreMessagesThanAConversationHas: a body of tiny messages is passed through as it came, even if it is too long. To
// condense it would take gigabytes.
func TestMoreMessagesThanAConversationHas(t *testing.T) {
	p := newPlay(t, upstream.Options{}, upstream.Client{API: upstream.Messages}, nil)
	many := strings.Repeat(`{"role":"user","content":"x"},{"role":"assistant","content":"y"},`, 30_000)
	body := `{"model":"claude-opus-4-6","max_tokens":10,"messages":[` + many + `{"role":"user","content":"x"}]}`
	resp, err := http.Post(p.server.URL+"/v1/messages", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusBadRequest || resp.Header.Get("X-Condense-Retry") != "" {
		t.Errorf("got %s, want the vendor's refusal of the first try", resp.Status)
	}
	if s := p.Stats(); s.EpochCount != 0 || s.Passed != 1 {
		t.Errorf("%d epochs, %d passed", s.EpochCount, s.Passed)
	}
}
