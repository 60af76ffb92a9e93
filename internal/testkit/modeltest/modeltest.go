// Package modeltest has servers that answer like vendors of models, correctly or not.
package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/testkit/apilint"
)

// A Server answers requests by a script and records them. A request that a vendor would reject fails
// the test.
type Server struct {
	*httptest.Server

	mu   sync.Mutex
	seen []Request
}

// A Request is a received request.
type Request struct {
	From   string // the client's address
	Path   string
	Header http.Header
	Body   []byte
	Time   time.Time
}

// Serve starts a server whose nth request is answered by the nth handler, and all further
// ones by the last.
func Serve(t *testing.T, script ...http.HandlerFunc) *Server {
	t.Helper()
	s := &Server{}
	s.Server = httptest.NewServer(s.handler(t, script))
	t.Cleanup(s.close)
	return s
}

// ServeTLS is Serve with an untrusted certificate.
func ServeTLS(t *testing.T, script ...http.HandlerFunc) *Server {
	t.Helper()
	s := &Server{}
	s.Server = httptest.NewUnstartedServer(s.handler(t, script))
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // clients that do not trust it
	s.StartTLS()
	t.Cleanup(s.close)
	return s
}

// close ends the server and all running requests.
func (s *Server) close() {
	s.CloseClientConnections()
	s.Close()
}

func (s *Server) handler(t *testing.T, script []http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, broken := io.ReadAll(r.Body) // in some tests the client disconnects
		s.mu.Lock()
		s.seen = append(s.seen, Request{r.RemoteAddr, r.URL.RequestURI(), r.Header.Clone(), body, time.Now()})
		n := len(s.seen)
		s.mu.Unlock()
		var faults []apilint.Fault
		if broken == nil { // a whole request
			faults = lint(r.URL.Path, body)
		}
		for _, f := range faults {
			t.Errorf("request %d to %s would be refused: %v\n%.2000s", n, r.URL.Path, f, body)
		}
		script[min(n, len(script))-1](w, r)
	}
}

func lint(path string, body []byte) []apilint.Fault {
	switch {
	case strings.HasSuffix(path, "/messages"):
		return apilint.Anthropic(body)
	case strings.HasSuffix(path, "/chat/completions"):
		return apilint.OpenAI(body)
	}
	return nil
}

// Requests returns the requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.seen...)
}

// Decode decodes the body of the nth request, the first is 0.
func (s *Server) Decode(t *testing.T, n int, to any) {
	t.Helper()
	all := s.Requests()
	if n >= len(all) {
		t.Fatalf("got %d requests, want number %d", len(all), n+1)
	}
	if err := json.Unmarshal(all[n].Body, to); err != nil {
		t.Fatalf("%v\n%s", err, all[n].Body)
	}
}

// Same compares the body of the nth request with JSON.
func (s *Server) Same(t *testing.T, n int, want string) {
	t.Helper()
	var got, wanted any
	s.Decode(t, n, &got)
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("request %d (-want +got):\n%s", n, diff)
	}
}

// Answer answers with a status, a body that is JSON, and headers in pairs.
func Answer(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// Stream answers with a stream of events with the given data.
func Stream(data ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { send(w, data) }
}

func send(w http.ResponseWriter, data []string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.WriteHeader(http.StatusOK)
	for _, d := range data {
		fmt.Fprintf(w, "data: %s\n\n", d)
		_ = http.NewResponseController(w).Flush() // some writers cannot
	}
}

// Cut answers with a stream, or nothing if there are no data, and then closes the connection.
func Cut(data ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if len(data) > 0 {
			send(w, data)
		}
		panic(http.ErrAbortHandler)
	}
}

// Hang answers with a stream, or nothing if there are no data, and then sends nothing until the
// client disconnects.
func Hang(data ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if len(data) > 0 {
			send(w, data)
		}
		<-r.Context().Done()
	}
}

// Anthropic returns the data of a stream of the Messages API with text.
func Anthropic(text string) []string {
	return []string{
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"usage":{"input_tokens":100,"cache_creation_input_tokens":20,"cache_read_input_tokens":300,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"ping"}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":` + string(rawjson.AppendQuote(nil, text)) + `}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":50}}`,
		`{"type":"message_stop"}`,
	}
}

// OpenAI returns the data of a stream of the Chat Completions API with text.
func OpenAI(text string) []string {
	return []string{
		`{"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`,
		`{"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":` + string(rawjson.AppendQuote(nil, text)) + `},"finish_reason":null}]}`,
		`{"id":"c1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
		`{"id":"c1","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":420,"completion_tokens":50,"prompt_tokens_details":{"cached_tokens":300}}}`,
		`[DONE]`,
	}
}

// Response returns the answer of a transport that needs no network.
func Response(r *http.Request, stream string) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Request: r, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(strings.NewReader(stream)),
	}
}
