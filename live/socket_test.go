package live_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"pgregory.net/rapid"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// socketed is an agent that speaks Responses over a WebSocket, and sends only what is new.
func socketed() upstream.Client {
	return upstream.Client{API: upstream.Responses, Model: "gpt-5.6", Thinking: "medium", Stream: true, Session: "s1", Socket: true}
}

// chained is an agent whose vendor stores the answers.
func chained(session string, stream bool) upstream.Client {
	return upstream.Client{API: upstream.Responses, Model: "gpt-5.6", Thinking: "medium", Stream: stream, Session: session, Chained: true}
}

// plays lets the agent do the task to its end. Between is called before each request.
func (p *play) plays(t *testing.T, between func(n int)) {
	t.Helper()
	t.Cleanup(func() { _ = p.client.Disconnect() })
	p.client.History = append(p.client.History, picture(upstream.Responses, task))
	for n, calls := 0, true; calls; n++ {
		between(n)
		var err error
		if _, calls, err = p.client.Step(t.Context()); err != nil {
			t.Fatalf("request %d: %v", n, err)
		}
	}
}

// untouched counts the requests that arrived as the client sent them, by their checksums.
func (p *play) untouched(sums map[string]bool) (n int) {
	for _, r := range p.vendor.Turns() {
		if sums[r.Sum] {
			n++
		}
	}
	return n
}

func (p *play) sum() string {
	sum := sha256.Sum256(p.client.Body)
	return hex.EncodeToString(sum[:])
}

// The loop of an agent over a WebSocket, or over HTTP with the IDs of stored answers, is several times as long as the window. The vendor,
// which holds the history, refuses nothing, and the prefix breaks only where an epoch begins a new chain. All other requests arrive byte
// for byte.
func TestChainedLoops(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	loops := []struct{ window, calls, size int }{{window, 45, 2200}}
	if !testing.Short() {
		loops = append(loops, struct{ window, calls, size int }{60_000, 60, 12_000})
	}
	for name, c := range map[string]upstream.Client{"socket": socketed(), "stored": chained("s1", false), "stored, stream": chained("s1", true)} {
		for i, l := range loops {
			if i > 0 && name == "stored" {
				continue // as with a stream
			}
			t.Run(fmt.Sprint(name, "/", l.window, "/", l.calls), func(t *testing.T) {
				t.Parallel()
				p := playIn(t, l.window, upstream.Options{Window: l.window, Script: work(l.calls, l.size)}, c, func(o *live.Options) { o.Ingest.Off = true })
				sums := map[string]bool{}
				p.plays(t, func(int) { sums[p.sum()] = true })
				sums[p.sum()] = true
				p.check(t, 1)
				if turns, same := len(p.vendor.Turns()), p.untouched(sums); turns-same != p.Stats().EpochCount {
					t.Errorf("%d of %d requests arrived changed, with %d epochs", turns-same, turns, p.Stats().EpochCount)
				}
			})
		}
	}
}

// What the vendor has forgotten it gets again, from the client or from the gateway, and in the view that it had.
func TestForgottenChains(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for name, tt := range map[string]struct {
		client upstream.Client
		happen func(*testing.T, *play)
		errors string // that the gateway counts
	}{
		"the client connects again": {socketed(), func(t *testing.T, p *play) {
			if err := p.client.Disconnect(); err != nil {
				t.Error(err)
			}
		}, ""},
		"the vendor forgets, socket": {socketed(), func(_ *testing.T, p *play) { p.vendor.Forget() }, "retry_forgotten"},
		"the vendor forgets, stored": {chained("s1", true), func(_ *testing.T, p *play) { p.vendor.Forget() }, "retry_forgotten"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, upstream.Options{}, tt.client, nil)
			p.plays(t, func(n int) {
				if n%9 == 5 {
					tt.happen(t, p)
				}
			})
			s, refusals := p.Stats(), p.vendor.Refusals()
			if tt.errors != "" {
				all := len(refusals)
				refusals = slices.DeleteFunc(refusals, func(r upstream.Record) bool { return r.Rule == "state" })
				// An epoch that happens to begin then is a new chain, and the vendor misses nothing.
				if forgotten := all - len(refusals); forgotten == 0 || s.Errors[tt.errors] != forgotten {
					t.Errorf("errors %v, want %d of %s", s.Errors, forgotten, tt.errors)
				}
			}
			if len(refusals) > 0 {
				t.Errorf("refused: %s: %s", refusals[0].Rule, refusals[0].Error)
			}
			if breaks := p.vendor.Breaks(); len(breaks) > s.EpochCount || s.EpochCount < 2 {
				t.Errorf("%d breaks in %d epochs: %+v", len(breaks), s.EpochCount, breaks)
			}
		})
	}
}

// Another process of the gateway goes on with the view that the vendor had.
func TestSocketRestart(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	file := filepath.Join(t.TempDir(), "live.db")
	keep := func(o *live.Options) { o.Store.Path = file }
	p := newPlay(t, upstream.Options{}, socketed(), keep)
	epochs := 0
	p.plays(t, func(n int) {
		if n%9 != 5 {
			return
		}
		epochs += p.Stats().EpochCount
		if err := errors.Join(p.client.Disconnect(), p.Close()); err != nil {
			t.Fatal(err)
		}
		v := httptest.NewServer(p.vendor)
		t.Cleanup(v.Close)
		p.Gateway, p.server = serveWith(t, v.URL, withWindow(window), keep)
		p.client.URL = p.server.URL
	})
	epochs += p.Stats().EpochCount
	if breaks, refused := p.vendor.Breaks(), p.vendor.Refusals(); len(breaks) > epochs || epochs < 2 || len(refused) > 0 {
		t.Errorf("%d breaks in %d epochs, %d refusals", len(breaks), epochs, len(refused))
	}
}

// Every frame arrives as the client sent it if the gateway only observes.
func TestSocketObserved(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	p := newPlay(t, upstream.Options{Window: 1_000_000, Script: work(45, 2200)}, socketed(), func(o *live.Options) { o.Observe = true })
	sums := map[string]bool{}
	p.plays(t, func(int) { sums[p.sum()] = true })
	sums[p.sum()] = true
	if turns, same := len(p.vendor.Turns()), p.untouched(sums); same != turns {
		t.Errorf("%d of %d frames arrived changed", turns-same, turns)
	}
	if s := p.Stats(); s.Observed == nil || s.Observed.Epochs == 0 || len(s.Errors) > 0 {
		t.Errorf("nothing was observed: %+v %v", s.Observed, s.Errors)
	}
}

// A testSocket is a WebSocket of a client without a loop.
type testSocket struct {
	*websocket.Conn
	t *testing.T
}

func dial(t *testing.T, url string, header http.Header) *testSocket {
	t.Helper()
	if header == nil {
		header = http.Header{"Authorization": {"Bearer dummy"}}
	}
	c, _, err := websocket.Dial(t.Context(), url+"/v1/responses", &websocket.DialOptions{HTTPHeader: header}) //nolint:bodyclose // the library's
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.CloseNow() })
	c.SetReadLimit(-1)
	return &testSocket{c, t}
}

func (s *testSocket) create(more string) {
	s.t.Helper()
	s.say(`{"type":"response.create","model":"gpt-5.6","store":false,"input":"Hello"` + more + `}`)
}

func (s *testSocket) say(frame string) {
	s.t.Helper()
	if err := s.Write(s.t.Context(), websocket.MessageText, []byte(frame)); err != nil {
		s.t.Fatal(err)
	}
}

type testEvent struct {
	Type     string
	Stream   string `json:"stream_id"`
	Status   int
	Error    struct{ Code, Message string }
	Response struct{ ID string }
}

// next returns the next event of a type.
func (s *testSocket) next(types ...string) (e testEvent) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testkit.Patience(s.t))
	defer cancel()
	for !slices.Contains(types, e.Type) {
		_, data, err := s.Read(ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		e = testEvent{}
		if err := json.Unmarshal(data, &e); err != nil {
			s.t.Fatal(err)
		}
	}
	return e
}

func (s *testSocket) closed() websocket.StatusCode {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testkit.Patience(s.t))
	defer cancel()
	for {
		if _, _, err := s.Read(ctx); err != nil {
			if ctx.Err() != nil {
				s.t.Error("the connection stays open")
			}
			return websocket.CloseStatus(err)
		}
	}
}

// A response that the gateway does not know passes byte for byte, and the gateway says so.
func TestUnknownHistory(t *testing.T) {
	t.Parallel()
	p := newPlay(t, upstream.Options{}, upstream.Client{}, nil)
	s := dial(t, p.server.URL, nil)
	frame := `{ "type":"response.create", "model":"gpt-5.6","input":"Hi" ,"previous_response_id":"resp_x"}`
	s.say(frame)
	if e := s.next("error"); e.Status != 400 || e.Error.Code != "previous_response_not_found" {
		t.Errorf("the client gets %+v", e)
	}
	if got := string(p.lastBody()); got != frame {
		t.Errorf("the vendor got %s", got)
	}
	for name, body := range map[string]string{
		"previous_response_id": `{"model":"gpt-5.6","previous_response_id":"resp_x","input":"Hi"}`,
		"conversation":         `{"model":"gpt-5.6","conversation":{"id":"conv_1"},"input":"Hi"}`,
	} {
		res, _ := send(t, http.MethodPost, p.server.URL+"/v1/responses", map[string]string{"Authorization": "Bearer dummy"}, []byte(body))
		if got := res.Header.Get("X-Condense-Passed"); got != name || string(p.lastBody()) != body {
			t.Errorf("%s: header %q, sent %s", name, got, p.lastBody())
		}
	}
	if n := p.Stats().Errors["history_unknown"]; n != 3 {
		t.Errorf("%d unknown histories are counted", n)
	}
	// Nor does it know the responses of another credential.
	s.create("")
	id := s.next("response.completed").Response.ID
	other := dial(t, p.server.URL, http.Header{"Authorization": {"Bearer another"}})
	other.create(`,"previous_response_id":"` + id + `"`)
	if e := other.next("error", "response.completed"); e.Error.Code != "previous_response_not_found" || p.Stats().Errors["history_unknown"] != 4 {
		t.Errorf("another client continues a response: %+v", e)
	}
}

// Requests of one stream wait for each other, as at the vendor; streams do not.
func TestTwoTurnsInFlight(t *testing.T) {
	t.Parallel()
	hold, held := make(chan struct{}), make(chan struct{}, 9)
	p := newPlay(t, upstream.Options{Fault: func(r upstream.Record) *upstream.Fault {
		if bytes.Contains(r.Body, []byte("slow")) {
			held <- struct{}{}
			return &upstream.Fault{Hold: hold}
		}
		return nil
	}}, upstream.Client{}, nil)
	s := dial(t, p.server.URL, nil)
	s.create(`,"instructions":"slow"`)
	s.create("")
	<-held
	s.create(`,"stream_id":"b"`)
	if e := s.next("response.completed", "error"); e.Stream != "b" || e.Type == "error" {
		t.Errorf("first %+v", e)
	}
	const most = 4
	for range most {
		s.create("")
	}
	if e := s.next("error"); e.Status != http.StatusTooManyRequests {
		t.Errorf("a client may have as many requests waiting as it likes: %+v", e)
	}
	close(hold)
	for range 1 + most {
		if e := s.next("response.completed", "error"); e.Type == "error" {
			t.Errorf("%+v", e)
		}
	}
	if got := p.vendor.Refusals(); len(got) > 0 {
		t.Errorf("refused: %+v", got[0].Error)
	}
}

// Each side gets the other's code, and notices if the other is not there any more.
func TestSocketEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*live.Options)
		happen func(*testing.T, *play, *testSocket)
		want   websocket.StatusCode
	}{
		"the vendor closes": {nil, func(_ *testing.T, p *play, _ *testSocket) { p.vendor.Cut(1012) }, 1012},
		"the vendor dies":   {nil, func(_ *testing.T, p *play, _ *testSocket) { p.vendor.Cut(0) }, websocket.StatusInternalError},
		"too large": {func(o *live.Options) { o.Bounds.MaxBody = 10_000 }, func(_ *testing.T, _ *play, s *testSocket) {
			s.create(`,"instructions":"` + strings.Repeat("x", 20_000) + `"`)
		}, websocket.StatusMessageTooBig},
		"the gateway ends": {nil, func(_ *testing.T, p *play, _ *testSocket) {
			p.Drain()
		}, 1001},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, upstream.Options{}, upstream.Client{}, tt.change)
			s := dial(t, p.server.URL, nil)
			s.create("")
			s.next("response.completed")
			tt.happen(t, p, s)
			if got := s.closed(); got != tt.want {
				t.Errorf("the client gets %v, want %v", got, tt.want)
			}
		})
	}
}

// A gateway that ends lets an answer in progress come to its end, also if the vendor goes at once.
func TestSocketDrains(t *testing.T) {
	t.Parallel()
	hold, held := make(chan struct{}), make(chan struct{}, 1)
	p := newPlay(t, upstream.Options{Fault: func(upstream.Record) *upstream.Fault {
		held <- struct{}{}
		return &upstream.Fault{Hold: hold}
	}}, upstream.Client{}, nil)
	s := dial(t, p.server.URL, nil)
	s.create("")
	<-held
	p.Drain()
	finished := make(chan error, 1)
	go func() { finished <- p.Finish(t.Context()) }()
	close(hold)
	s.next("response.completed")
	if got := s.closed(); got != 1001 {
		t.Errorf("closed with %v", got)
	}
	if err := <-finished; err != nil {
		t.Error(err)
	}
	if _, res, err := websocket.Dial(t.Context(), p.server.URL+"/v1/responses", nil); err == nil || res.StatusCode != http.StatusUpgradeRequired { //nolint:bodyclose // the library's
		t.Errorf("another WebSocket is opened: %v", err)
	}
}

// silent is a server that opens WebSockets and does nothing more.
func silent(t *testing.T) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			r, err := http.ReadRequest(bufio.NewReader(c))
			if err != nil {
				return
			}
			sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
			fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]))
		}
	}()
	return "http://" + l.Addr().String()
}

// Half-open connections end: that of a client that answers no ping, because it reads nothing, and that of such a vendor.
func TestHalfOpen(t *testing.T) {
	t.Parallel()
	p := newPlay(t, upstream.Options{}, upstream.Client{}, nil)
	live.Pulse(p.Gateway, 10*time.Millisecond, 50*time.Millisecond)
	dial(t, p.server.URL, nil)
	testkit.Eventually(t, "the connection to the vendor has ended", func() bool { return p.vendor.Sockets() == 0 && len(p.vendor.Records()) > 0 })
	g, s := serveWith(t, silent(t), nil, nil)
	live.Pulse(g, 10*time.Millisecond, 50*time.Millisecond)
	dial(t, s.URL, nil).closed()
}

// A client that reads slowly gets everything, in order.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("many words ", 20_000)
	p := newPlay(t, upstream.Options{Window: 1_000_000, Script: []upstream.Step{{Text: long}}}, upstream.Client{}, nil)
	live.Pulse(p.Gateway, 20*time.Millisecond, time.Minute)
	s := dial(t, p.server.URL, nil)
	s.create("")
	time.Sleep(200 * time.Millisecond)
	var text strings.Builder
	for n := 0; ; n++ {
		_, data, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var e struct{ Type, Delta string }
		if err := json.Unmarshal(data, &e); err != nil {
			t.Fatal(err)
		}
		if text.WriteString(e.Delta); e.Type == "response.completed" {
			break
		}
		if n%500 == 0 {
			time.Sleep(5 * time.Millisecond)
		}
	}
	if text.String() != long {
		t.Errorf("%d of %d bytes", text.Len(), len(long))
	}
}

// The vendor's window is smaller than the gateway believes: a refused request becomes an epoch, and the client does not notice.
func TestSocketOverflow(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for _, stream := range []bool{false, true} {
		p := playIn(t, 60_000, upstream.Options{Window: window, StreamOverflow: stream, Script: agentLoop}, socketed(), nil)
		p.plays(t, func(int) {})
		s := p.Stats()
		if refused := p.vendor.Refusals(); len(refused) > 0 || s.Errors["retry_overflow"] == 0 || len(p.vendor.Breaks()) > s.EpochCount {
			t.Errorf("stream %t: %d refusals, %d breaks in %d epochs, errors %v", stream, len(refused), len(p.vendor.Breaks()), s.EpochCount, s.Errors)
		}
	}
}

// A client may prepare the vendor for its first request, which continues that. Nothing is charged for it.
func TestWarmUp(t *testing.T) {
	t.Parallel()
	p := newPlay(t, upstream.Options{}, upstream.Client{}, nil)
	s := dial(t, p.server.URL, nil)
	s.create(`,"generate":false`)
	id := s.next("response.completed").Response.ID
	if got := p.Stats(); got.Tokens.Sent != 0 || got.Cost != 0 {
		t.Errorf("it costs %v, %d tokens", got.Cost, got.Tokens.Sent)
	}
	s.say(`{"type":"response.create","model":"gpt-5.6","store":false,"input":[],"previous_response_id":"` + id + `"}`)
	if e := s.next("response.completed", "error"); e.Type == "error" {
		t.Errorf("%+v", e)
	}
	testkit.Eventually(t, "it is counted", func() bool { return p.Stats().Tokens.Sent > 0 })
	if got := p.Stats().Errors; len(got) > 0 {
		t.Errorf("errors %v", got)
	}
}

// The gateway answers the calls of its own tool over the same WebSocket. The vendor gets what is new only: the results continue the
// response with the calls, and the client's next request, which names the response that it has seen, the last one.
func TestRecallOverSocket(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	recall := wants(map[string]any{"grep": "NEEDLE"})
	shell := upstream.Call{Tool: "shell", Input: map[string]any{"command": `echo "mine"`}}
	script := looking(40, "NEEDLE-1", map[int]upstream.Step{
		3: {Text: "I look.", Calls: []upstream.Call{recall}}, 6: {Calls: []upstream.Call{shell, recall}}, 35: {Text: "And again.", Calls: []upstream.Call{recall}},
	})
	p := newPlay(t, upstream.Options{Script: script}, socketed(), withTool)
	asked, was := 0, 0
	p.plays(t, func(n int) {
		if n == 20 {
			asked, was = len(p.vendor.Turns()), n
		}
	})
	p.check(t, 1)
	p.unseen(t)
	if bytes.Contains(p.client.Answer, []byte(recallName)) || asked <= was {
		t.Errorf("%d requests became %d; the client gets %s", was, asked, p.client.Answer)
	}
	s, all := p.Stats(), p.toolResults(t)
	if len(all) != 3 || !strings.Contains(all[0], "NEEDLE-1") || s.Recalls != 3 || len(s.Errors) > 0 {
		t.Errorf("%d recalls, found %q, faults %v", s.Recalls, all, s.Errors)
	}
	begun := 0
	for _, r := range p.vendor.Turns() {
		if !r.Socket {
			t.Errorf("request %d came over HTTP", r.N)
		}
		if !bytes.Contains(r.Body, []byte(`"previous_response_id"`)) {
			begun++
		}
	}
	if begun > 1+s.EpochCount+s.Ingested {
		t.Errorf("%d requests have the whole history, with %d epochs", begun, s.EpochCount)
	}
}

// A round of tools in which the model has called the gateway's tool and the client's goes on, whatever is forgotten before the client has
// sent its results.
func TestRecallOverSocketForgotten(t *testing.T) {
	t.Parallel()
	shell := upstream.Call{Tool: "shell", Input: map[string]any{"command": `echo "mine"`}}
	for name, happen := range map[string]func(*testing.T, *play, string){
		"the client connects again": func(t *testing.T, p *play, _ string) { _ = p.client.Disconnect() },
		"the vendor forgets":        func(_ *testing.T, p *play, _ string) { p.vendor.Forget() },
		"the gateway forgets":       func(_ *testing.T, p *play, _ string) { live.ForgetHistories(p.Gateway) },
		"all forget": func(_ *testing.T, p *play, _ string) {
			live.ForgetHistories(p.Gateway)
			p.vendor.Forget()
		},
		"another process": func(t *testing.T, p *play, file string) {
			_ = errors.Join(p.client.Disconnect(), p.Close())
			p.serve(t, withWindow(window), func(o *live.Options) { withTool(o); o.Store.Path = file })
		},
		"another process without the store": func(t *testing.T, p *play, _ string) {
			_ = errors.Join(p.client.Disconnect(), p.Close())
			p.serve(t, withWindow(window), withTool)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "live.db")
			recall := wants(map[string]any{"grep": "NEEDLE"})
			script := looking(6, "NEEDLE", map[int]upstream.Step{3: {Text: "Both.", Calls: []upstream.Call{shell, recall}}})
			script = slices.Insert(script, 2, upstream.Step{Text: "First this.", Calls: []upstream.Call{recall}}) // in the same answer
			p := newPlay(t, upstream.Options{Script: script}, socketed(), func(o *live.Options) { withTool(o); o.Store.Path = file })
			t.Cleanup(func() { _ = p.client.Disconnect() })
			p.client.History = append(p.client.History, picture(upstream.Responses, task))
			for n, calls := 0, true; calls; n++ {
				if n == 3 {
					happen(t, p, file)
				}
				var err error
				if _, calls, err = p.client.Step(t.Context()); err != nil && n == 3 && strings.Contains(err.Error(), "previous_response_not_found") {
					_, calls, err = p.client.Step(t.Context()) // with everything, as the vendor asks for it
				}
				if err != nil {
					t.Fatalf("request %d: %v", n, err)
				}
			}
			for _, r := range p.vendor.Refusals() {
				if r.Rule != "state" {
					t.Errorf("request %d: %s: %s", r.N, r.Rule, r.Error)
				}
			}
			want := 2
			if strings.Contains(name, "without") { // nobody knows the second one any more
				want = 1
			}
			if all := p.toolResults(t); len(all) != want || !strings.Contains(all[want-1], "NEEDLE") {
				t.Errorf("recalls %q", all)
			}
		})
	}
}

// A vendor that refuses the request with the results leaves the client with a failed response, of its stream, and a connection.
func TestRecallOverSocketFails(t *testing.T) {
	t.Parallel()
	failed := false
	p := newPlay(t, upstream.Options{
		Script: []upstream.Step{{Calls: []upstream.Call{wants(map[string]any{"grep": "x"})}}, {Text: "Done."}},
		Fault: func(r upstream.Record) *upstream.Fault {
			if failed || !bytes.Contains(r.Body, []byte("function_call_output")) {
				return nil
			}
			failed = true
			return &upstream.Fault{Status: http.StatusTooManyRequests}
		},
	}, upstream.Client{}, withTool)
	s := dial(t, p.server.URL, nil)
	for _, want := range []string{"response.failed", "response.completed"} {
		s.create(`,"stream_id":"a","tools":[{"type":"function","name":"shell","parameters":{}}]`)
		if e := s.next("response.completed", "response.failed", "error"); e.Type != want || e.Stream != "a" {
			t.Errorf("got %+v, want %s", e, want)
		}
	}
}

// A WebSocket is for the upstream of its path and key, with the headers of a request over HTTP, and with the limits.
func TestSocketDoor(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	var got http.Header
	answer := http.StatusUnauthorized
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		w.Header().Set("Location", other.URL)
		w.Header().Set("X-Request-Id", "r1")
		w.WriteHeader(answer)
		fmt.Fprint(w, strings.Repeat("reason ", 1000))
	}))
	t.Cleanup(vendor.Close)
	_, s := serveWith(t, vendor.URL, nil, func(o *live.Options) {
		o.Access.Token = "secret"
		o.Upstreams.URLs["anthropic"] = other.URL
	})
	shake := func(path string, header ...string) (*http.Response, string) {
		t.Helper()
		h := map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Protocol": "openai-insecure-api-key.sk-x"}
		for i := 0; i < len(header); i += 2 {
			h[header[i]] = header[i+1]
		}
		res, body := send(t, http.MethodGet, s.URL+path, h, nil)
		return &http.Response{StatusCode: res.StatusCode, Header: res.Header}, string(body)
	}
	for name, tt := range map[string]struct {
		path   string
		header []string
		vendor int // its status; 0 if it must not be asked
		want   int
	}{
		"no token":                 {"/v1/responses", []string{"Authorization", "Bearer sk-x"}, 0, 401},
		"a key of another vendor":  {"/token/secret/v1/responses", []string{"Authorization", "Bearer ya29.a0AfH6SMBx"}, 0, 426},
		"a page of another origin": {"/token/secret/v1/responses", []string{"Origin", "https://evil.example"}, 0, 403},
		"no conversation":          {"/token/secret/v1/realtime", nil, 0, 426},
		"another vendor's path":    {"/token/secret/v1/messages", nil, 0, 426},
		"the vendor's reason":      {"/token/secret/v1/responses", nil, 401, 401},
		"too many":                 {"/token/secret/v1/responses", nil, 429, 429},
		"moved":                    {"/token/secret/v1/responses", nil, 302, 426},
		"no WebSocket there":       {"/token/secret/v1/responses", nil, 404, 426},
	} {
		got, answer = nil, tt.vendor
		res, body := shake(tt.path, append([]string{"X-Condense-Profile", "small", "OpenAI-Beta", "responses_websockets=2026-02-06"}, tt.header...)...) //nolint:bodyclose // shake closes it
		if res.StatusCode != tt.want || (got != nil) != (tt.vendor != 0) {
			t.Errorf("%s: status %d, the vendor was asked: %t: %.200s", name, res.StatusCode, got != nil, body)
		}
		if got == nil {
			continue
		}
		if got.Get("X-Condense-Profile") != "" || got.Get("Sec-Websocket-Protocol") != "" || got.Get("Openai-Beta") == "" {
			t.Errorf("%s: the vendor got %v", name, got)
		}
		if tt.want == tt.vendor && (res.Header.Get("X-Request-Id") != "r1" || len(body) != 7000) {
			t.Errorf("%s: the client got %d bytes and %v", name, len(body), res.Header)
		}
	}
	if elsewhere.Load() > 0 {
		t.Error("another server was asked")
	}
}

// A tenant's limits hold for each request of a WebSocket.
func TestSocketLimits(t *testing.T) {
	t.Parallel()
	p := newPlay(t, upstream.Options{}, upstream.Client{}, func(o *live.Options) { o.Access.Limits.Requests = 3 })
	s := dial(t, p.server.URL, nil)
	for range 2 {
		s.create("")
		if e := s.next("response.completed", "error"); e.Type == "error" {
			t.Fatalf("%+v", e)
		}
	}
	s.create("")
	if e := s.next("response.completed", "error"); e.Status != http.StatusTooManyRequests || len(p.vendor.Records()) != 3 { // with the handshake
		t.Errorf("the third request is answered: %+v", e)
	}
}

// Events reach the client byte for byte, however they are written.
func TestFrames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var events [][]byte
		for range rapid.IntRange(1, 5).Draw(t, "events") {
			gap := rapid.SliceOfN(rapid.SampledFrom([]string{" ", "\n", "\r", "\t", "\n\n", "é", "data: "}), 0, 5).Draw(t, "gap")
			events = append(events, []byte("{"+strings.Join(gap, "")+`"type":"x"}`))
		}
		got := live.Frames(events, rapid.IntRange(1, 40).Draw(t, "size"))
		if !bytes.Equal(bytes.Join(got, []byte("|")), bytes.Join(events, []byte("|"))) {
			t.Fatalf("%q became %q", events, got)
		}
	})
}
