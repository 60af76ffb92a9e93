package live_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/live"
)

func TestMain(m *testing.M) {
	if vendor := os.Getenv("CONDENSE_LIVE_VENDOR"); vendor != "" {
		alone(vendor, os.Getenv("CONDENSE_LIVE_STORE"))
		return
	}
	// A generated client takes tens of milliseconds, with the race detector half a second: there are fewer than of other cases.
	flag.Parse()
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		n, err := strconv.Atoi(checks.DefValue)
		if err = errors.Join(err, checks.Value.Set(strconv.Itoa(max(10, n*2/5)))); err != nil {
			panic(err)
		}
	}
	// Giving memory back ends by itself; on a busy machine that takes longer than the detector waits.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/condensehq/condense/live/internal/payload.Burst.func1.1"))
}

// A vendor records what reaches it.
type vendor struct {
	*httptest.Server
	mu     sync.Mutex
	answer http.HandlerFunc // nil: an empty object
	got    []seen
}

type seen struct {
	method, uri, host string
	header            http.Header
	body              []byte
}

func newVendor(t *testing.T) *vendor {
	t.Helper()
	v := &vendor{}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client has gone
		}
		v.mu.Lock()
		v.got = append(v.got, seen{r.Method, r.RequestURI, r.Host, r.Header, body})
		answer := v.answer
		v.mu.Unlock()
		if answer != nil {
			answer(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{}")
	}))
	t.Cleanup(v.Close)
	return v
}

func (v *vendor) last(t *testing.T) seen {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.got) == 0 {
		t.Fatal("nothing reached the vendor")
	}
	return v.got[len(v.got)-1]
}

// serve starts a gateway between the vendor and the returned address.
func serve(t *testing.T, v *vendor, change func(*live.Options)) (*live.Gateway, *httptest.Server) {
	t.Helper()
	return serveWith(t, v.URL, nil, change)
}

func serveWith(t *testing.T, vendor string, host *condense.Options, change func(*live.Options)) (*live.Gateway, *httptest.Server) {
	t.Helper()
	h, err := condense.Open(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	opts := &live.Options{
		Upstreams: live.Upstreams{URLs: map[string]string{"anthropic": vendor, "openai": vendor}},
		Reports:   live.Reports{Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))},
		Bounds:    live.Bounds{Deadline: time.Minute}, // on a busy machine
		Epoch:     live.EpochOptions{Risk: 100},       // conversations of tests are short
	}
	if host != nil && host.Values != nil {
		if w := host.Values.Profiles["small"].Window; w != nil && *w <= window { // an epoch for money, which leaves 20,000 tokens, would remove nothing
			opts.Epoch.Target, opts.Epoch.MinSize = 14, 3500
		}
	}
	if change != nil {
		change(opts)
	}
	g, err := live.New(h, opts)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(g)
	t.Cleanup(func() {
		s.Close()
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return g, s
}

// An answer is what a client gets.
type answer struct {
	StatusCode int
	Status     string
	Header     http.Header
}

// send sends a request and returns the answer and its body.
func send(t *testing.T, method, url string, header map[string]string, body []byte) (answer, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		r.Header.Set(name, value)
		if name == "Host" {
			r.Host = value
		}
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Status, res.Header}, got
}

// What needs nothing leaves as it came: oddities of JSON, unknown fields and headers, compressed
// bodies.
func TestPassedThroughByteForByte(t *testing.T) {
	v := newVendor(t)
	_, s := serve(t, v, nil)
	odd := []byte("{ \"model\":\"claude-opus-4-8\",\"max_tokens\" : 1e3,\t\"messages\":[{\"role\":\"user\",\"content\":\"caf\\u00e9 \xe2\x82\xac\"}], \"new\":{\"b\":1.0,\"a\":[]}, \"model\":\"claude-opus-4-8\"}\n")
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write(odd); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, path, encoding string
		body                 []byte
	}{
		{"messages", "/v1/messages?beta=true&x=%2f;y", "", odd},
		{"chat", "/v1/chat/completions", "", odd},
		{"responses", "/v1/responses", "", []byte(`{"model":"gpt-6","input":"hello","store":false}`)},
		{"gzip", "/v1/messages", "gzip", zipped.Bytes()},
		{"zstd", "/v1/responses", "zstd", enc.EncodeAll(odd, nil)},
		{"unknown encoding", "/v1/responses", "br", []byte("\x00\x01")},
		{"no JSON", "/v1/messages", "", []byte(`{"messages": [`)},
		{"not gzip", "/v1/messages", "gzip", []byte(`{}`)},
		{"empty", "/v1/messages", "", nil},
		{"other path", "/v1/files/a%2Fb", "", []byte("\xff\x00")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			header := map[string]string{
				"Content-Type": "application/json", "Anthropic-Version": "2023-06-01", "Anthropic-Beta": "b,a", "X-Unknown": "1",
				"User-Agent": "agent/1", "X-Api-Key": "k", "Accept-Encoding": "br",
			}
			if tt.encoding != "" {
				header["Content-Encoding"] = tt.encoding
			}
			send(t, http.MethodPost, s.URL+tt.path, maps.Clone(header), tt.body)
			got := v.last(t)
			if sha256.Sum256(got.body) != sha256.Sum256(tt.body) {
				t.Errorf("body: got %q, want %q", got.body, tt.body)
			}
			if got.uri != tt.path {
				t.Errorf("path: got %s, want %s", got.uri, tt.path)
			}
			if want := strings.TrimPrefix(v.URL, "http://"); got.host != want {
				t.Errorf("host: got %s, want %s", got.host, want)
			}
			got.header.Del("Content-Length")
			for name, value := range header {
				if g := got.header.Get(name); g != value {
					t.Errorf("header %s: got %q, want %q", name, g, value)
				}
				got.header.Del(name)
			}
			if len(got.header) > 0 {
				t.Errorf("added headers: %v", got.header)
			}
		})
	}
}

func TestRoutes(t *testing.T) {
	a, o, d := newVendor(t), newVendor(t), newVendor(t)
	_, s := serve(t, a, func(opts *live.Options) {
		opts.Upstreams.URLs = map[string]string{"anthropic": a.URL, "openai": o.URL + "/v1", "deepseek": d.URL + "/api"}
	})
	for _, tt := range []struct {
		method, path, header string
		want                 *vendor
		uri                  string
	}{
		{"POST", "/v1/messages?beta=true", "", a, "/v1/messages?beta=true"},
		{"POST", "/v1/messages/batches", "", a, "/v1/messages/batches"},
		{"POST", "/api/event_logging/batch", "", a, "/api/event_logging/batch"},
		{"GET", "/v1/models?limit=1000", "X-Api-Key", a, "/v1/models?limit=1000"},
		{"GET", "/v1/models", "Authorization", o, "/v1/models"},
		{"POST", "/v1/chat/completions", "", o, "/v1/chat/completions"},
		{"POST", "/v1/responses/compact", "", o, "/v1/responses/compact"},
		{"POST", "/responses", "", o, "/v1/responses"},
		{"POST", "/anthropic/v1/files", "", a, "/v1/files"},
		{"POST", "/openai/v1/files", "", o, "/v1/files"},
		{"POST", "/deepseek/v1/chat/completions", "", d, "/api/v1/chat/completions"},
		{"POST", "/mode/plan/v1/messages", "", a, "/v1/messages"},
		{"POST", "/mode/plan/profile/deep/deepseek/v1/messages", "", d, "/api/v1/messages"},
		{"GET", "/openai/rerank", "", o, "/v1/rerank"},
	} {
		t.Run(tt.method+tt.path, func(t *testing.T) {
			header := map[string]string{"X-Condense-Mode": "ask"}
			if tt.header != "" {
				header[tt.header] = "k"
			}
			send(t, tt.method, s.URL+tt.path, header, nil)
			got := tt.want.last(t)
			if got.method != tt.method || got.uri != tt.uri {
				t.Errorf("got %s %s, want %s %s", got.method, got.uri, tt.method, tt.uri)
			}
			if got.header.Get("X-Condense-Mode") != "" {
				t.Error("a header for the gateway was forwarded")
			}
		})
	}
	t.Run("probe", func(t *testing.T) {
		a.Close()
		o.Close()
		if res, _ := send(t, http.MethodHead, s.URL+"/", nil, nil); res.StatusCode != http.StatusOK {
			t.Errorf("got %s", res.Status)
		}
	})
}

// Codex with the login of a ChatGPT plan sends a header, and its requests belong to another host. An
// upstream that the user has chosen gets them all the same.
func TestChatGPTLogin(t *testing.T) {
	plan, chosen := newVendor(t), newVendor(t)
	for _, tt := range []struct {
		openai, path string
		to           *vendor
		want         string
	}{
		{"", "/v1/responses", plan, "/responses"},
		{"", "/v1/models?client_version=0.169.0", plan, "/models?client_version=0.169.0"},
		{"", "/openai/v1/responses", plan, "/responses"},
		{chosen.URL, "/v1/responses", chosen, "/v1/responses"},
	} {
		_, front := serve(t, plan, func(o *live.Options) {
			o.Upstreams.URLs = map[string]string{"chatgpt": plan.URL}
			if tt.openai != "" {
				o.Upstreams.URLs["openai"] = tt.openai
			}
		})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+tt.path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("ChatGPT-Account-ID", "acc-1")
		answer, err := front.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if got := tt.to.last(t); got.uri != tt.want || got.header.Get("ChatGPT-Account-ID") != "acc-1" {
			t.Errorf("%s arrived as %s, want %s", tt.path, got.uri, tt.want)
		}
	}
}

func TestWhoIsAnswered(t *testing.T) {
	v := newVendor(t)
	_, open := serve(t, v, nil)
	_, closed := serve(t, v, func(o *live.Options) { o.Access.Token = "s3cret" })
	for _, tt := range []struct {
		name, url string
		header    map[string]string
		want      int
	}{
		{"loopback", open.URL, nil, 200},
		{"localhost", open.URL, map[string]string{"Host": "localhost:1"}, 200},
		{"a page that rebinds its name", open.URL, map[string]string{"Host": "evil.example:80"}, 403},
		{"a page", open.URL, map[string]string{"Origin": "https://evil.example"}, 403},
		{"a sandboxed page", open.URL, map[string]string{"Origin": "null"}, 403},
		{"a page of this machine", open.URL, map[string]string{"Origin": "http://localhost:3000"}, 200},
		{"WebSocket", open.URL, map[string]string{"Connection": "Upgrade", "Upgrade": "websocket"}, 426},
		{"no token", closed.URL, nil, 401},
		{"wrong token", closed.URL, map[string]string{"X-Condense-Token": "s3cre"}, 401},
		{"token", closed.URL, map[string]string{"X-Condense-Token": "s3cret", "Host": "gateway.example"}, 200},
		{"token in the path", closed.URL + "/token/s3cret", nil, 200},
		{"a page, with the token", closed.URL + "/token/s3cret", map[string]string{"Origin": "https://evil.example"}, 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := len(v.got)
			res, body := send(t, http.MethodPost, tt.url+"/v1/messages", tt.header, []byte(`{}`))
			if res.StatusCode != tt.want {
				t.Fatalf("got %s: %s", res.Status, body)
			}
			if reached := len(v.got) > before; reached != (tt.want == 200) {
				t.Errorf("reached the vendor: %t", reached)
			}
			if tt.want != 200 && !bytes.Contains(body, []byte(`{"error":{"message":`)) && !bytes.Contains(body, []byte(`"type":"error"`)) {
				t.Errorf("not an error of the vendor's form: %s", body)
			}
		})
	}
}

// The vendor's own words reach the client.
func TestVendorsErrorsAreUntouched(t *testing.T) {
	v := newVendor(t)
	const text = "{\"type\":\"error\", \"error\":{\"type\":\"request_too_large\",\"message\":\"\\u0052equest exceeds\"}}\n"
	v.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.Header().Set("Request-Id", "req_1")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		_, _ = io.WriteString(w, text)
	}
	_, s := serve(t, v, nil)
	large := bytes.Repeat([]byte(`{"model": "m"}`), 1000)
	res, body := send(t, http.MethodPost, s.URL+"/v1/messages", nil, large)
	if res.StatusCode != http.StatusRequestEntityTooLarge || string(body) != text || res.Header.Get("Retry-After") != "7" || res.Header.Get("Request-Id") != "req_1" {
		t.Errorf("got %s %v %s", res.Status, res.Header, body)
	}
	if got := v.last(t).body; !bytes.Equal(got, large) {
		t.Errorf("%d bytes reached the vendor, want %d", len(got), len(large))
	}
}

func TestUpstreamCannotBeReached(t *testing.T) {
	v := newVendor(t)
	_, s := serve(t, v, nil)
	v.Close()
	res, body := send(t, http.MethodPost, s.URL+"/v1/messages", map[string]string{"X-Api-Key": "sk-secret"}, []byte(`{}`))
	if res.StatusCode != http.StatusBadGateway || !strings.Contains(string(body), `"type":"api_error","message":"condense: upstream anthropic cannot be reached`) || bytes.Contains(body, []byte("sk-secret")) {
		t.Errorf("got %s %s", res.Status, body)
	}
}

// A reload goes on with the connections to an upstream whose address is the same.
func TestReloadKeepsConnections(t *testing.T) {
	var opened atomic.Int32
	v := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	v.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	v.Start()
	defer v.Close()
	opts := live.Options{}
	g, s := serveWith(t, v.URL, nil, func(o *live.Options) { opts = *o })
	for range 3 {
		send(t, http.MethodGet, s.URL+"/v1/models", nil, nil)
		if err := g.Reload(&opts); err != nil {
			t.Fatal(err)
		}
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// A vendor closes connections that were idle. A request that meets one, at the moment when it is closed, reaches the vendor whole over
// another; where the vendor may have seen all of it, the client decides.
func TestStaleConnection(t *testing.T) {
	body := loop(1, 300_000)
	for _, c := range []struct {
		name   string
		stale  time.Duration
		answer string // before the connection is closed
		status int
	}{{"stale", 1, "", 200}, {"in use until now", time.Hour, "", 502}, {"answered", 1, "HTTP/1.1 2", 502}} {
		t.Run(c.name, func(t *testing.T) {
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var got [][]byte
			var done sync.WaitGroup
			done.Go(func() {
				for n := 1; ; n++ {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					in := bufio.NewReader(conn)
					for n == 1 || len(got) == 1 {
						r, err := http.ReadRequest(in)
						if err != nil {
							t.Error(err)
							break
						}
						text, _ := io.ReadAll(r.Body)
						got = append(got, text)
						fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
						if n == 1 { // the next one meets the end of the connection
							if _, err = in.Peek(1); c.answer != "" { // no answer begins before the request is whole: what is not can be sent again
								r, err = http.ReadRequest(in)
								if err == nil {
									_, err = io.Copy(io.Discard, r.Body)
								}
								fmt.Fprint(conn, c.answer)
							}
							if err != nil {
								t.Error(err)
							}
							break
						}
					}
					_ = conn.Close()
				}
			})
			g, s := serveWith(t, "http://"+l.Addr().String(), nil, func(o *live.Options) { o.Observe = true })
			live.StaleAfter(g, c.stale)
			send(t, http.MethodPost, s.URL+"/v1/messages", nil, loop(1, 1000))
			res, text := send(t, http.MethodPost, s.URL+"/v1/messages", nil, body)
			_ = l.Close()
			done.Wait()
			if res.StatusCode != c.status {
				t.Errorf("got %s %s", res.Status, text)
			}
			if c.status == http.StatusOK && (len(got) != 2 || !bytes.Equal(got[1], body)) {
				t.Errorf("the vendor got %d requests", len(got))
			}
		})
	}
}

// Every event reaches the client as soon as the vendor sends it, and the vendor's request ends
// when the client goes.
func TestStreamsAreNotCollected(t *testing.T) {
	v := newVendor(t)
	step, gone := make(chan string), make(chan struct{})
	v.answer = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		for {
			select {
			case text := <-step:
				_, _ = io.WriteString(w, text)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				close(gone)
				return
			}
		}
	}
	_, s := serve(t, v, nil)
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience(t))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/messages", strings.NewReader(`{"model":"m","messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	events := []string{"event: ping\ndata: {}\n\n", "data: half \xe2", "\x82\xac of a letter\n\n"}
	go func() { step <- events[0] }()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }() // it was cut
	for i, want := range events {
		if i > 0 {
			step <- want
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != want {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	}
	cancel()
	select {
	case <-gone:
	case <-time.After(testkit.Patience(t)):
		t.Error("the request to the vendor goes on")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	h, err := condense.Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	for _, tt := range []struct {
		want string
		opts live.Options
	}{
		{`upstream openai: "api.example.com" must be a URL`, live.Options{Upstreams: live.Upstreams{URLs: map[string]string{"openai": "api.example.com"}}}},
		{`upstream v1`, live.Options{Upstreams: live.Upstreams{URLs: map[string]string{"v1": "http://a"}}}},
		{"MaxBody: -1 is negative", live.Options{Bounds: live.Bounds{MaxBody: -1}}},
		{"Epoch.Risk: 101 is not a percentage", live.Options{Epoch: live.EpochOptions{Risk: 101}}},
		{"Epoch.Target: 100 is not a percentage", live.Options{Epoch: live.EpochOptions{Target: 100}}},
		{"rules[0]: set a profile or a mode", live.Options{Choice: live.Choice{Rules: []live.Rule{{Model: "x"}}}}},
		{"rules[0]: set what it is for", live.Options{Choice: live.Choice{Rules: []live.Rule{{Mode: "plan"}}}}},
	} {
		if _, err := live.New(h, &tt.opts); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
	}
	if _, err := live.New(nil, nil); err == nil {
		t.Error("no host: no error")
	}
}
