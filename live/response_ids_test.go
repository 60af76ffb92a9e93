package live_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/testkit"
)

// A numbering is a server of the Responses API that numbers the responses of each of its clients from 1: resp_1, resp_2. A client
// is a WebSocket, or over HTTP the value of a header.
type numbering struct {
	*httptest.Server
	mu      sync.Mutex
	count   map[string]int
	has     map[string]bool // the IDs of a client
	foreign []string        // texts that arrived from the wrong client
}

func newNumbering(t *testing.T) *numbering {
	t.Helper()
	v := &numbering{count: map[string]int{}, has: map[string]bool{}}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := r.Header.Get("X-Client")
		if r.Header.Get("Upgrade") == "" {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			status, answer := v.answer(who, body)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write(answer)
			return
		}
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = c.CloseNow() }()
		c.SetReadLimit(-1)
		for {
			_, data, err := c.Read(r.Context())
			if err != nil {
				return
			}
			status, answer := v.answer(who, data)
			event := rawjson.Append(nil, `{"type":"response.completed","response":?}`, answer)
			if status != http.StatusOK {
				event = rawjson.Append(nil, `{"type":"error","status":?,"error":?}`, []byte(strconv.Itoa(status)), rawjson.Field(answer, "error"))
			}
			if c.Write(r.Context(), websocket.MessageText, event) != nil {
				return
			}
		}
	}))
	t.Cleanup(v.Close)
	return v
}

func (v *numbering) answer(who string, body []byte) (int, []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, other := range []string{"one", "two"} {
		if other != who && strings.Contains(string(body), "canary of "+other) {
			v.foreign = append(v.foreign, other+" in a request of "+who)
		}
	}
	if id := rawjson.Text(rawjson.Field(body, "previous_response_id")); id != "" && !v.has[who+id] {
		return http.StatusBadRequest, []byte(`{"error":{"code":"previous_response_not_found","message":"no such response"}}`)
	}
	v.count[who]++
	id := fmt.Sprintf("resp_%d", v.count[who])
	v.has[who+id] = true
	return http.StatusOK, fmt.Appendf(nil, `{"id":%q,"object":"response","status":"completed","model":"m","output":[{"id":"msg","type":"message","status":"completed",`+
		`"role":"assistant","content":[{"type":"output_text","text":"done, canary of %s"}]}],"usage":{"input_tokens":%d,"output_tokens":5}}`, id, who, len(body)/4)
}

// A server that numbers the responses of each connection has given an ID to two conversations: neither is taken for the other.
func TestRepeatedResponseIDsMixNoConversations(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for _, socket := range []bool{true, false} {
		t.Run(fmt.Sprint("socket ", socket), func(t *testing.T) {
			t.Parallel()
			v := newNumbering(t)
			_, s := serveWith(t, v.URL, withWindow(window), nil)
			asks := map[string]func(body string) []byte{}
			for _, who := range []string{"one", "two"} {
				header := map[string]string{"Authorization": "Bearer same", "X-Client": who, "Content-Type": "application/json"}
				asks[who] = func(body string) []byte {
					_, got := send(t, http.MethodPost, s.URL+"/v1/responses", header, []byte(body))
					return got
				}
				if socket {
					asks[who] = dialed(t, s.URL, header)
				}
			}
			last := map[string]string{}
			for n := range 30 { // more than the window has
				for _, who := range []string{"one", "one", "two"} { // the numbers of one are ahead
					previous := ""
					if id := last[who]; id != "" {
						previous = fmt.Sprintf(`"previous_response_id":%q,`, id)
					}
					got := asks[who](fmt.Sprintf(`{"type":"response.create","model":"gpt-5.6","store":true,%s"input":[{"role":"user","content":"%d: canary of %s %s"}]}`,
						previous, n, who, strings.Repeat("words and more words ", 250)))
					if response := rawjson.Field(got, "response"); response != nil {
						got = response
					}
					last[who] = rawjson.Text(rawjson.Field(got, "id"))
					if last[who] == "" {
						t.Fatalf("%s, request %d: %s", who, n, got)
					}
				}
			}
			if len(v.foreign) > 0 {
				t.Errorf("%d foreign texts: %q", len(v.foreign), v.foreign[0])
			}
		})
	}
}

// dialed opens a WebSocket and returns a function that sends a frame and returns the answer.
func dialed(t *testing.T, url string, header map[string]string) func(string) []byte {
	t.Helper()
	h := http.Header{}
	for name, value := range header {
		h.Set(name, value)
	}
	c, _, err := websocket.Dial(t.Context(), url+"/v1/responses", &websocket.DialOptions{HTTPHeader: h}) //nolint:bodyclose // closed by the library
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.CloseNow() })
	c.SetReadLimit(-1)
	return func(body string) []byte {
		if err := c.Write(t.Context(), websocket.MessageText, []byte(body)); err != nil {
			t.Fatal(err)
		}
		_, data, err := c.Read(context.WithoutCancel(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
}

// Who claims the account of somebody else, or forges a token with the same subject, and knows the ID of an answer, gets the vendor's
// refusal: the history is sent under no other credential than the one that made it.
func TestForeignResponseIDGetsNoHistory(t *testing.T) {
	t.Parallel()
	for name, attacker := range map[string]string{
		"another token": "Bearer somebody-else", "the same subject": token("https://auth.openai.com") + "x", "no token": "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			leaks, made := 0, false
			victim := token("https://auth.openai.com")
			vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				mu.Lock()
				defer mu.Unlock()
				w.Header().Set("Content-Type", "application/json")
				if r.Header.Get("Authorization") != victim && strings.Contains(string(body), "the victim's words") {
					leaks++
				}
				if r.Header.Get("Authorization") == victim && !made {
					made = true
					_, _ = w.Write([]byte(`{"id":"resp_v","object":"response","status":"completed","output":[]}`))
					return
				}
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte(`{"error":{"code":"previous_response_not_found","message":"no such response"}}`))
			}))
			t.Cleanup(vendor.Close)
			_, s := serveWith(t, vendor.URL, nil, nil)
			ask := func(authorization, body string) (int, []byte) {
				header := map[string]string{"Content-Type": "application/json", "Chatgpt-Account-Id": "acct-1"}
				if authorization != "" {
					header["Authorization"] = authorization
				}
				got, text := send(t, http.MethodPost, s.URL+"/v1/responses", header, []byte(body))
				return got.StatusCode, text
			}
			if status, text := ask(victim, `{"model":"gpt-5.6","store":true,"input":"the victim's words"}`); status != http.StatusOK {
				t.Fatalf("%d %s", status, text)
			}
			body, err := json.Marshal(object{"model": "gpt-5.6", "store": true, "previous_response_id": "resp_v", "input": "print all"})
			if err != nil {
				t.Fatal(err)
			}
			if status, text := ask(attacker, string(body)); status != http.StatusBadRequest || leaks > 0 {
				t.Errorf("got %d %s, and the history was sent %d times", status, text, leaks)
			}
		})
	}
}
