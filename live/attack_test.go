package live_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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
	testkit.Slow(t)
	file := filepath.Join(t.TempDir(), "live.db")
	useFile := func(o *live.Options) { o.Store.Path = file }
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

// A path of the longest size that servers take, full of parts for the gateway, costs little: no token is needed to send it.
func TestPathsAreReadOnce(t *testing.T) {
	for _, part := range []string{"/mode/x", "/token//", "/recall/a"} {
		testkit.Linear(t, 100_000, func(n int) func() {
			r := httptest.NewRequest(http.MethodPost, strings.Repeat(part, n/len(part)), http.NoBody)
			return func() { live.Route(r) }
		})
	}
}

// An upstream with a path is all that a client can reach of its host, and a conversation is one however its path is written.
func TestPathsCannotBeDisguised(t *testing.T) {
	v := newVendor(t)
	g, s := serve(t, v, func(o *live.Options) { o.Upstreams.URLs["team"] = v.URL + "/team/v1" })
	for _, path := range []string{"/team/../other/messages", "/team/%2e%2e/other", "/team/x%2f..%2f..%2fother", "/team/./v1/messages", "/team/..%5cother", "/v1/..;/x", "/v1/..;a=b/x", "/v1/%252e%252e/x", "/team/x/%25252e%25252e;/y", "/token/t/../v1/messages", "/.."} {
		if got, body := raw(t, s, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"); got != http.StatusBadRequest {
			t.Errorf("%s: %d %s", path, got, body)
		}
	}
	if len(v.got) != 0 {
		t.Errorf("the vendor got %s", v.got[0].uri)
	}
	for n, path := range []string{"/v1/messages", "//v1/messages", "/v1/%6dessages", "/v1/messages/", "/anthropic//v1//messages"} {
		if got, body := raw(t, s, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"); got != http.StatusOK {
			t.Errorf("%s: %d %s", path, got, body)
		}
		if requests := g.Stats().Requests; requests != n+1 {
			t.Errorf("%s is not seen as a conversation", path)
		}
	}
	if got, _ := raw(t, s, "GET /v1/models/..a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); got != http.StatusOK {
		t.Errorf("a name with dots: %d", got)
	}
}

// raw sends a request as it is written, and returns the answer.
func raw(t *testing.T, s *httptest.Server, request string) (status int, body string) {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// A client that begins requests to /mcp and never ends them takes no one else's turn.
func TestSlowRequestsToRecallTakeNoTurns(t *testing.T) {
	v := newVendor(t)
	_, s := serve(t, v, nil)
	for range 8 {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		head := "POST /recall/0123456789abcdef/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n"
		if _, err := c.Write([]byte(head)); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, "100") { // the body is being read
			t.Fatalf("%q %v", line, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience(t))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/recall/fedcba9876543210/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
}

// A client that begins a request and sends no more of it is refused, and its connection ends. An answer may take longer.
func TestSlowBodies(t *testing.T) {
	testkit.Slow(t)
	p := newPlay(t, upstream.Options{}, claude("s"), nil)
	live.BodyPatience(p.Gateway, time.Second)
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write([]byte("POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(c) // ends with the connection
	if err != nil || !bytes.HasPrefix(all, []byte("HTTP/1.1 408 ")) {
		t.Errorf("%q %v", all, err)
	}
	v := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			t.Error("the request ended before its answer")
		case <-time.After(1500 * time.Millisecond): // longer than the patience
		}
		_, _ = io.WriteString(w, "late")
	}))
	t.Cleanup(v.Close)
	g, s := serveWith(t, v.URL, withWindow(window), nil)
	live.BodyPatience(g, time.Second)
	if status, text := post(t, s.URL+"/v1/messages", "key", []byte(`{"model":"claude-sonnet-4-5","max_tokens":1,"messages":[{"role":"user","content":"x"}]}`)); status != http.StatusOK || string(text) != "late" {
		t.Errorf("%d %q", status, text)
	}
}

// A panicking watcher panics whenever it is called.
type panicking struct{}

func (panicking) Turn(*live.Turn)                       { panic("turn") }
func (panicking) Later(string, time.Time, live.Finding) { panic("later") }
func (panicking) Answer(string, *live.Used)             { panic("answer") }

// Who watches a conversation cannot cost it anything: not its requests, nor its epochs, nor the process.
func TestWatcherPanics(t *testing.T) {
	p := newPlay(t, upstream.Options{}, claude("s"), func(o *live.Options) { o.Reports.Watch = panicking{} })
	p.begin(t)
	p.untilEpoch(t, 2)
	testkit.Eventually(t, "each fault is counted", func() bool { s := p.Stats(); return s.Errors["watch"] >= 2*s.Requests })
	if breaks, epochs := p.vendor.Breaks(), p.Stats().EpochCount; len(breaks) > epochs {
		t.Errorf("%d breaks of the prefix in %d epochs: %+v", len(breaks), epochs, breaks)
	}
	if s := p.Stats(); s.Errors["request"]+s.Errors["epoch"]+s.Errors["answer"] > 0 || s.Tokens.Sent == 0 {
		t.Errorf("faults: %v, %d tokens sent", s.Errors, s.Tokens.Sent)
	}
}

// counting counts turns.
type counting struct {
	panicking
	turns *atomic.Int32
}

func (c counting) Turn(*live.Turn)           { c.turns.Add(1) }
func (c counting) Answer(string, *live.Used) {}

// A name of a model that is none is not kept: a client could fill the memory with them.
func TestLongModelsPass(t *testing.T) {
	for model, want := range map[string]int32{"claude-opus-4-6": 3, strings.Repeat("m", 300): 0} {
		var turns atomic.Int32
		client := claude("s")
		client.Model = model
		p := newPlay(t, upstream.Options{}, client, func(o *live.Options) { o.Reports.Watch = counting{turns: &turns} })
		p.begin(t)
		p.step(t)
		p.step(t)
		if got := turns.Load(); (got == 0) != (want == 0) {
			t.Errorf("%.10s: %d turns", model, got)
		}
	}
}
