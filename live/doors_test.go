package live_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/condensehq/condense/internal/live/access"
	"github.com/condensehq/condense/internal/live/tenant"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/live"
)

// heap returns the bytes in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Connections that announce large bodies and send almost nothing take the memory of what they send, others are answered, and all get
// 408 when their time is over.
func TestAnnouncedBodiesTakeNoMemory(t *testing.T) {
	testkit.Slow(t)
	const n, each = 200, 100 << 10
	v := newVendor(t)
	g, s := serve(t, v, nil)
	live.BodyPatience(g, 2*time.Second)
	before := heap()
	answers := make(chan string, n)
	for range n {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		fmt.Fprint(c, "POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: k\r\nContent-Length: 30000000\r\n\r\n"+`{"model":"a","messages":[`)
		go func() {
			line, _ := bufio.NewReader(c).ReadString('\n')
			answers <- strings.TrimSpace(line)
		}()
	}
	testkit.Eventually(t, "all are being read, or have ended", func() bool {
		_, bodies := live.Held(g)
		return bodies == n || len(answers) > 0
	})
	if grown := heap() - before; grown > n*each {
		t.Errorf("%d bytes for %d connections", grown, n)
	}
	large := []byte(`{"model":"claude-sonnet-4-5","max_tokens":1,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 200_000) + `"}]}`)
	if res, body := send(t, http.MethodPost, s.URL+"/v1/messages", map[string]string{"X-Api-Key": "k"}, large); res.StatusCode != http.StatusOK {
		t.Errorf("another request meanwhile: %s %.200s", res.Status, body)
	}
	for range n {
		if got := <-answers; !strings.Contains(got, "408") {
			t.Fatalf("a connection got %q", got)
		}
	}
	if held, bodies := live.Held(g); held != 0 || bodies != 0 {
		t.Errorf("%d bytes of %d bodies are held at the end", held, bodies)
	}
}

// talker is a vendor whose WebSocket answers each event of a client with the events of a function.
func talker(t *testing.T, says func(event map[string]any) []string) (url string, got *lockedBuffer) {
	t.Helper()
	got = &lockedBuffer{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		c.SetReadLimit(-1)
		defer func() { _ = c.CloseNow() }()
		for {
			_, data, err := c.Read(r.Context())
			if err != nil {
				return
			}
			var event map[string]any
			_ = json.Unmarshal(data, &event)
			fmt.Fprintln(got, event["type"], event["stream_id"], len(data))
			for _, e := range says(event) {
				_ = c.Write(r.Context(), websocket.MessageText, []byte(e))
			}
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

func completed(n, tokens int) string {
	return fmt.Sprintf(`{"type":"response.completed","response":{"id":"resp_%d","model":"gpt-5","output":[],"usage":{"input_tokens":%d,"output_tokens":1}}}`, n, tokens)
}

// Only events that the gateway reads as the vendor does pass where there are tokens or limits; anything else ends the WebSocket with a
// reason, and the vendor sees nothing of it.
func TestUnreadableFramesAreRefused(t *testing.T) {
	t.Parallel()
	const create = `{"type":"response.create","model":"gpt-5","store":false,"input":"Hello"}`
	url, got := talker(t, func(map[string]any) []string { return []string{completed(1, 10)} })
	_, limited := serveWith(t, url, nil, func(o *live.Options) { o.Access.Limits.Requests = 1000 })
	_, open := serveWith(t, url, nil, nil)
	for name, tt := range map[string]struct {
		kind          websocket.MessageType
		frame         string
		limited, open websocket.StatusCode // -1 if it passes
	}{
		"a request":             {websocket.MessageText, create, -1, -1},
		"what Codex interrupts": {websocket.MessageText, `{"type":"response.interrupt","response_id":"resp_1"}`, -1, -1},
		"a request, the last":   {websocket.MessageText, ` {"type":"response.create","model":"gpt-5","input":"` + strings.Repeat("é", 1000) + `"}`, -1, -1},
		"an unknown event":      {websocket.MessageText, `{"type":"response.new","model":"gpt-5"}`, 1003, -1},
		"no event":              {websocket.MessageText, `{"model":"gpt-5","input":"x"}`, 1003, -1},
		"a binary frame":        {websocket.MessageBinary, create, 1003, 1003},
		"a byte order mark":     {websocket.MessageText, "\ufeff" + create, 1007, 1007},
		"two types":             {websocket.MessageText, `{"type":"response.create","model":"gpt-5","type":"response.processed"}`, 1007, 1007},
		"two types, escaped":    {websocket.MessageText, `{"type":"response.processed","model":"gpt-5","\u0074ype":"response.create"}`, 1007, 1007},
		"two values":            {websocket.MessageText, `{"type":"response.processed"}` + create, 1007, 1007},
		"a list":                {websocket.MessageText, "[" + create + "]", 1007, 1007},
		"a comment":             {websocket.MessageText, "//\n" + create, 1007, 1007},
		"no UTF-8":              {websocket.MessageText, strings.Replace(create, "Hello", "\xff", 1), 1007, 1007},
		"nothing":               {websocket.MessageText, "", 1007, 1007},
	} {
		for where, server := range map[string]*httptest.Server{"limited": limited, "open": open} {
			want := tt.limited
			if where == "open" {
				want = tt.open
			}
			before := got.String()
			s := dial(t, server.URL, nil)
			if err := s.Write(t.Context(), tt.kind, []byte(tt.frame)); err != nil {
				t.Fatal(err)
			}
			if want < 0 {
				s.next("response.completed")
				_ = s.CloseNow()
				continue
			}
			if code := s.closed(); code != want || got.String() != before {
				t.Errorf("%s, %s: closed with %v, want %v; the vendor got %s", name, where, code, want, strings.TrimPrefix(got.String(), before))
			}
		}
	}
}

// After a token is removed, nothing more is answered on a WebSocket that it has opened, and the WebSocket ends.
func TestRemovedTokenEndsSocket(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	tokens := tokensFile(t, "acme")
	url, got := talker(t, func(map[string]any) []string { return []string{completed(1, 10)} })
	_, server := serveWith(t, url, nil, func(o *live.Options) { o.Access.Tokens = tokens.path })
	s := dial(t, server.URL, http.Header{"Authorization": {"Bearer dummy"}, "X-Condense-Token": {tokens.of["acme"]}})
	s.create("")
	s.next("response.completed")
	if _, err := access.Remove(tokens.path, "acme"); err != nil {
		t.Fatal(err)
	}
	if code := s.closed(); code != websocket.StatusPolicyViolation { // without another frame
		t.Errorf("closed with %v", code)
	}
	if text := got.String(); strings.Count(text, "response") != 1 {
		t.Errorf("the vendor got %s", text)
	}
}

// What the vendor writes after an event that is no request counts for limits, cost, status and audit.
func TestSteeredAnswersCount(t *testing.T) {
	t.Parallel()
	audit, steered := &lockedBuffer{}, 0
	url, got := talker(t, func(event map[string]any) []string {
		if event["type"] != "response.steer" {
			return []string{completed(1, 1000)}
		}
		steered++
		return []string{`{"type":"response.steer.accepted"}`, completed(1+steered, 1_000_000)}
	})
	g, server := serveWith(t, url, nil, func(o *live.Options) {
		o.Access.Limits = live.Limits{Requests: 4} // with the handshake
		o.Reports.Audit = slog.New(slog.NewJSONHandler(audit, nil))
	})
	s := dial(t, server.URL, nil)
	s.create("")
	s.next("response.completed")
	spent := live.Spent(g)
	for range 2 {
		s.say(`{"type":"response.steer","previous_response_id":"resp_1","input":"Stop."}`)
		s.next("response.completed")
	}
	if more := live.Spent(g) - spent; more < 1 {
		t.Errorf("steered answers of 2,000,000 tokens cost $%g", more)
	}
	s.say(`{"type":"response.steer","previous_response_id":"resp_1","input":"Stop."}`)
	if e := s.next("error", "response.completed"); e.Status != http.StatusTooManyRequests {
		t.Errorf("a fourth request is answered: %+v", e)
	}
	if stats := g.Stats(); stats.Requests != 3 || stats.Tokens.Received < 2_000_000 || strings.Count(got.String(), "steer") != 2 {
		t.Errorf("%d requests with %d tokens; the vendor got %s", stats.Requests, stats.Tokens.Received, got)
	}
	testkit.Eventually(t, "the audit log has all", func() bool {
		return strings.Count(audit.String(), `"msg":"request"`) == 3 && strings.Count(audit.String(), "limit requests") == 1
	})
}

// One tenant leaves WebSockets for others, and a full house sends its clients to HTTP.
func TestSocketsAreShared(t *testing.T) {
	t.Parallel()
	tokens := tokensFile(t, "acme", "other", "small")
	url, _ := talker(t, func(map[string]any) []string { return nil })
	g, server := serveWith(t, url, nil, func(o *live.Options) {
		o.Access.Tokens, o.Access.Tenants = tokens.path, map[string]live.Limits{"small": {Concurrent: 1}}
	})
	live.MostSockets(g, 16)
	open := func(name string) (n int) {
		for ; n < 16; n++ {
			c, res, err := websocket.Dial(t.Context(), server.URL+"/v1/responses", &websocket.DialOptions{ //nolint:bodyclose // the library's
				HTTPHeader: http.Header{"Authorization": {"Bearer dummy"}, "X-Condense-Token": {tokens.of[name]}},
			})
			if err != nil {
				if res == nil || res.StatusCode != http.StatusUpgradeRequired {
					t.Errorf("%s: socket %d is refused: %v", name, n, err)
				}
				return n
			}
			t.Cleanup(func() { _ = c.CloseNow() })
		}
		return n
	}
	for _, tt := range []struct {
		name string
		want int
	}{{"acme", 8}, {"small", 1}, {"other", 4}, {"acme", 0}} {
		if got := open(tt.name); got != tt.want {
			t.Errorf("%s has %d WebSockets, want %d", tt.name, got, tt.want)
		}
	}
}

// Frames that wait for a slow vendor are bounded in bytes: the client has to wait. When it leaves, nothing of them is held.
func TestWaitingFramesAreBounded(t *testing.T) {
	t.Parallel()
	const size, most = 2 << 20, 12 << 20
	release := make(chan struct{})
	url, got := talker(t, func(event map[string]any) []string {
		<-release
		return []string{fmt.Sprintf(`{"type":"response.completed","stream_id":%q,"response":{"id":"resp_1"}}`, event["stream_id"])}
	})
	g, server := serveWith(t, url, nil, nil)
	s := dial(t, server.URL, nil)
	var sent atomic.Int64
	var writing sync.WaitGroup
	writing.Go(func() {
		text := strings.Repeat("x", size)
		for i := range 5 * 16 {
			frame := fmt.Sprintf(`{"type":"response.create","stream_id":"%d","model":"gpt-5","store":false,"input":"%s"}`, i%16, text)
			if s.Write(context.WithoutCancel(t.Context()), websocket.MessageText, []byte(frame)) != nil {
				return
			}
			sent.Add(1)
		}
	})
	highest := int64(0)
	testkit.Eventually(t, "the vendor has some, and the client waits", func() bool {
		held, _ := live.Held(g)
		highest = max(highest, held)
		return highest > 8<<20 && strings.Contains(got.String(), "create")
	})
	for range 100 {
		held, _ := live.Held(g)
		highest = max(highest, held)
		time.Sleep(time.Millisecond)
	}
	if highest > most || sent.Load() > 40 {
		t.Errorf("%d bytes are held, of %d frames", highest, sent.Load())
	}
	_ = s.CloseNow() // the gateway sees it behind what the client had written, so not before the vendor answers
	writing.Wait()
	close(release)
	testkit.Eventually(t, "nothing is held", func() bool {
		held, bodies := live.Held(g)
		return held == 0 && bodies == 0
	})
}

// A client that has to wait with its frames gets no pings: a library whose writes block cannot answer them, and would end the
// connection. Once there is room, everything arrives.
func TestWaitingClientIsNotPinged(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const frames, size = 12, 2 << 20
	release := make(chan struct{})
	url, got := talker(t, func(event map[string]any) []string {
		<-release
		return []string{fmt.Sprintf(`{"type":"response.completed","stream_id":%q,"response":{"id":"resp_1"}}`, event["stream_id"])}
	})
	g, server := serveWith(t, url, nil, nil)
	// A ping that comes while a frame is half written could not be answered: there are few.
	live.Pulse(g, time.Second, time.Minute)
	var pings atomic.Int64
	c, _, err := websocket.Dial(t.Context(), server.URL+"/v1/responses", &websocket.DialOptions{ //nolint:bodyclose // the library's
		OnPingReceived: func(context.Context, []byte) bool { pings.Add(1); return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.CloseNow() })
	answers := make(chan error, frames)
	go func() {
		for range frames {
			_, _, err := c.Read(t.Context())
			answers <- err
		}
	}()
	testkit.Eventually(t, "it is pinged", func() bool { return pings.Load() > 0 })
	go func() {
		text := strings.Repeat("x", size)
		for i := range frames {
			frame := fmt.Sprintf(`{"type":"response.create","stream_id":"%d","model":"gpt-5","store":false,"input":"%s"}`, i, text)
			_ = c.Write(t.Context(), websocket.MessageText, []byte(frame))
		}
	}()
	testkit.Eventually(t, "it waits", func() bool {
		held, _ := live.Held(g)
		return held > 8<<20 && strings.Contains(got.String(), "create")
	})
	testkit.Eventually(t, "once those under way have come, it is not pinged", func() bool {
		before := pings.Load()
		time.Sleep(3 * time.Second) // the gateway looks every two seconds whether the client is there
		return pings.Load() == before
	})
	close(release)
	for range frames {
		if err := <-answers; err != nil {
			t.Fatal(err)
		}
	}
}

// A client that sends its next request as soon as it has the end of an answer gets no request beyond its limit of cost.
func TestCostOfAnAnswerInProgressCounts(t *testing.T) {
	t.Parallel()
	end := make(chan struct{})
	v := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: message_start\ndata: "+`{"type":"message_start","message":{"model":"claude-opus-4-5","usage":{"input_tokens":150000,"output_tokens":1}}}`+"\n\n"+
			"event: message_delta\ndata: "+`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":60000}}`+"\n\n"+
			"event: message_stop\ndata: "+`{"type":"message_stop"}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		<-end // the client has the answer, and the gateway does not know its end
	}))
	t.Cleanup(v.Close)
	defer close(end)
	_, s := serveWith(t, v.URL, nil, func(o *live.Options) { o.Access.Limits.Cost = 2 })
	ask := func() *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/messages",
			strings.NewReader(`{"model":"claude-opus-4-5","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Api-Key", "k")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		return res
	}
	first := ask() //nolint:bodyclose // ask sees to it
	for lines := bufio.NewScanner(first.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), `"message_stop"`) {
			break
		}
	}
	if res := ask(); res.StatusCode != http.StatusTooManyRequests || //nolint:bodyclose // ask sees to it
		res.Header.Get("X-Should-Retry") != "" || res.Header.Get("Retry-After") != "5" {
		t.Errorf("the next request gets %s, %v", res.Status, res.Header)
	}
}

// Without a limit of simultaneous requests, there is one for each key.
func TestRequestsOfOneKeyAreLimited(t *testing.T) {
	t.Parallel()
	var all tenant.Tenants
	enter := func(key string, l tenant.Limits) (func(), *tenant.Denied) {
		return all.Enter(tenant.Caller{}, key, l, time.Now())
	}
	leave, _ := enter("a", tenant.Limits{})
	for range tenant.MostOfKey - 1 {
		if _, no := enter("a", tenant.Limits{}); no != nil {
			t.Fatal(no.Text)
		}
	}
	if _, no := enter("a", tenant.Limits{}); no == nil || no.Limit != "concurrent" || !strings.Contains(no.Text, "1024 requests at the same time with one key") {
		t.Errorf("%+v", no)
	}
	if _, no := enter("b", tenant.Limits{}); no != nil {
		t.Errorf("another key: %s", no.Text)
	}
	if _, no := enter("a", tenant.Limits{Concurrent: 2 * tenant.MostOfKey}); no != nil {
		t.Errorf("with a limit of its own: %s", no.Text)
	}
	leave()
}
