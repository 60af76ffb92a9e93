package live_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/live"
)

// hosts records what is sent where, and answers everything.
type hosts struct {
	mu  sync.Mutex
	got []*http.Request
}

func (h *hosts) RoundTrip(r *http.Request) (*http.Response, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.got = append(h.got, r)
	return &http.Response{StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}")), Request: r}, nil
}

func (h *hosts) take() []*http.Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	got := h.got
	h.got = nil
	return got
}

// public are the vendors' own hosts, without TLS.
func public() map[string]string {
	return map[string]string{"anthropic": "http://api.anthropic.com", "openai": "http://api.openai.com", "chatgpt": "http://chatgpt.com/backend-api/codex"}
}

// recorded returns a gateway whose upstreams are recorded.
func recorded(t *testing.T, upstreams map[string]string) (*live.Gateway, *hosts) {
	t.Helper()
	h, err := condense.Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := live.New(h, &live.Options{Upstreams: upstreams, Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	to := &hosts{}
	live.Record(g, to)
	return g, to
}

// request is one from this machine.
func request(method, path string, header ...string) *http.Request {
	r := httptest.NewRequest(method, "http://127.0.0.1"+path, http.NoBody)
	r.RemoteAddr = "127.0.0.1:1"
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

func visit(g http.Handler, r *http.Request) (status int, body string) {
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// A prompt for a model of another vendor, sent here by mistake, is not forwarded to Anthropic or OpenAI. The client reads why, in its own form.
func TestPromptsForOtherVendorsAreNotForwarded(t *testing.T) {
	g, to := recorded(t, public())
	for _, tt := range []struct{ path, says, form string }{
		{"/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse", "Gemini, which this gateway does not read", `{"error":{"code":404,"message":"`},
		{"/v1/models/gemini-3-pro:generateContent", "--upstream gemini=pass+https://", `"status":"NOT_FOUND"`},
		{"/v1beta/openai/chat/completions", "v1beta/openai, with a base URL without /v1", `{"error":{`},
		{"/v1/projects/p/locations/us/publishers/anthropic/models/claude-opus-4-8:streamRawPredict", "Vertex AI", `{"error":{"code":404`},
		{"/model/anthropic.claude-opus-4-8/invoke-with-response-stream", "Amazon Bedrock", `{"message":"`},
		{"/model/arn%3Aaws%3Abedrock%2Fx/converse", "Amazon Bedrock", `{"message":"`},
		{"/openai/deployments/gpt-5/chat/completions?api-version=2025-04-01", "Azure OpenAI", `{"error":{"code":"404"`},
		{"/api/chat", "Ollama", `{"error":"condense: `},
		{"/api/generate", "localhost:PORT/v1", `{"error":"`},
		{"/api/v1/chat/completions", "openai=https://openrouter.ai/api/v1", `{"error":{"message":"`},
		{"/v1/v1/messages", "remove it from the base URL", `{"error":{"message":"`},
		{"/backend-api/wham/usage", "chatgpt_base_url", `{"error":{"message":"`},
		{"/v1/rerank", "/openai/v1/rerank", `{"error":{"message":"`},
		{"/mode/a%2Fb/v1/messages", "in neither Anthropic's nor OpenAI's API", `{"error":{"message":"`},
		{"/", "ANTHROPIC_BASE_URL", `{"error":{"message":"`},
		{"/anthropic/v1/responses", "path of OpenAI's API, and the upstream anthropic (api.anthropic.com) does not speak it", `{"error":{"message":"`},
		{"/openai/v1/messages", "path of Anthropic's API", `{"type":"error"`},
	} {
		status, body := visit(g, request(http.MethodPost, tt.path))
		if status != http.StatusNotFound || !strings.Contains(body, tt.says) || !strings.Contains(body, tt.form) || !json.Valid([]byte(body)) {
			t.Errorf("%s: %d %s", tt.path, status, body)
		}
	}
	if _, body := visit(g, request(http.MethodPost, "/v1/none", "Anthropic-Version", "2023-06-01")); !strings.HasPrefix(body, `{"type":"error","error":{"type":"not_found_error"`) {
		t.Errorf("for a client of Anthropic: %s", body)
	}
	if status, body := visit(g, request(http.MethodGet, "/v1/messages")); status != http.StatusMethodNotAllowed || !strings.Contains(body, "asked with POST") {
		t.Errorf("GET /v1/messages: %d %s", status, body)
	}
	if got := to.take(); len(got) > 0 {
		t.Errorf("%s reached %s", got[0].URL, got[0].Host)
	}
}

// A key is worth money to all who see it: one of another vendor is not sent to a vendor's own host, and what only a cloud's API
// takes to no other host at all.
func TestKeysOfOneVendorReachNoOther(t *testing.T) {
	upstreams := public()
	for name, address := range map[string]string{
		"router": "openai+http://openrouter.ai/api/v1", "azure": "openai+http://mine.openai.azure.com/openai/v1", "mine": "both+http://llm.example.com",
		"gemini": "pass+http://generativelanguage.googleapis.com", "copilot": "openai+http://api.githubcopilot.com", "bedrock": "openai+http://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1",
		"own": "pass+http://gateway.example.com",
	} {
		upstreams[name] = address
	}
	g, to := recorded(t, upstreams)
	const chat, messages = "/v1/chat/completions", "/v1/messages"
	for _, tt := range []struct{ path, header, value, host string }{
		{chat, "Authorization", "Bearer sk-proj-1", "api.openai.com"},
		{chat, "Authorization", "Bearer sk-test", "api.openai.com"},
		{chat, "Authorization", "Bearer dummy", "api.openai.com"},
		{chat, "Authorization", "Bearer eyJhbGciOi", "api.openai.com"},
		{chat, "Authorization", "Bearer sk-ant-api03-1", ""},
		{chat, "Authorization", "bearer  sk-ant-api03-1", ""},
		{chat, "Authorization", "Bearer sk-or-v1-1", ""},
		{chat, "Authorization", "Bearer ya29.a0", ""},
		{chat, "Authorization", "Bearer gsk_1", ""},
		{chat, "Authorization", "AWS4-HMAC-SHA256 Credential=AKIA1/20261123/us-east-1/bedrock/aws4_request", ""},
		{chat, "X-Amz-Security-Token", "FwoGZX", ""},
		{chat, "X-Goog-Api-Key", "k", ""},
		{chat, "Api-Key", "k", ""},
		{chat + "?key=AIza1", "", "", ""},
		{chat + "?x=1&%6bey=AIza1", "", "", ""},
		{messages, "X-Api-Key", "sk-ant-api03-1", "api.anthropic.com"},
		{messages, "X-Api-Key", "sk-secret", "api.anthropic.com"},
		{messages, "Authorization", "Bearer sk-ant-oat01-1", "api.anthropic.com"},
		{messages, "X-Api-Key", "sk-proj-1", ""},
		{messages, "Authorization", "Bearer sk-1T3BlbkFJ2", ""},
		{messages, "X-Api-Key", "AKIA1", ""},
		{"/v1/models", "Authorization", "Bearer sk-ant-oat01-1", "api.anthropic.com"},
		{"/v1/models", "X-Api-Key", "sk-proj-1", "api.openai.com"},
		{"/router" + chat, "Authorization", "Bearer sk-or-v1-1", "openrouter.ai"},
		{"/router" + chat, "Authorization", "Bearer sk-proj-1", ""},
		{"/azure" + chat, "Api-Key", "k", "mine.openai.azure.com"},
		{"/azure" + chat, "Authorization", "Bearer sk-proj-1", ""},
		{"/copilot" + chat, "Authorization", "Bearer tid=1;exp=2", "api.githubcopilot.com"},
		{"/bedrock" + chat, "Authorization", "Bearer ABSK1", "bedrock-runtime.eu-west-1.amazonaws.com"},
		{"/mine" + chat, "Authorization", "Bearer sk-ant-api03-1", "llm.example.com"},
		{"/mine" + chat, "Api-Key", "k", "llm.example.com"},
		{"/mine" + chat, "Authorization", "Bearer ya29.a0", ""},
		{"/mine" + chat, "X-Goog-Api-Key", "k", ""},
		{"/gemini/v1beta/models/m:generateContent", "X-Goog-Api-Key", "k", "generativelanguage.googleapis.com"},
		{"/gemini/v1beta/models/m:generateContent", "Authorization", "Bearer sk-ant-api03-1", ""},
		{"/own/model/m/invoke", "X-Amz-Security-Token", "t", "gateway.example.com"},
	} {
		r := request(http.MethodPost, tt.path)
		if tt.header != "" {
			r.Header.Set(tt.header, tt.value)
		}
		status, body := visit(g, r)
		got := to.take()
		if tt.host == "" {
			if status != http.StatusBadRequest || len(got) > 0 || !strings.Contains(body, "nothing was sent") || tt.value != "" && strings.Contains(body, `"`+tt.value) {
				t.Errorf("%s with %s: %d %s, sent %d", tt.path, tt.value, status, body, len(got))
			}
			continue
		}
		if status != http.StatusOK || len(got) != 1 || got[0].URL.Host != tt.host || tt.header != "" && got[0].Header.Get(tt.header) != tt.value {
			t.Errorf("%s with %s: %d %s, sent %d, want %s", tt.path, tt.value, status, body, len(got), tt.host)
		}
	}
}

// Clients of some SDKs take the base URL as one with /v1, and get none from 'condense wrap'. A vendor that has only /v1/… is asked for that.
func TestClientsThatOmitV1(t *testing.T) {
	v := newVendor(t)
	v.answer = func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v1/") || strings.HasPrefix(r.URL.Path, "/v1/v1") {
			w.WriteHeader(http.StatusNotFound)
		}
	}
	_, s := serve(t, v, func(o *live.Options) { o.Upstreams["versioned"] = v.URL + "/v1" })
	for _, prefix := range []string{"", "/versioned"} {
		for _, path := range []string{"/messages", "/messages/count_tokens", "/chat/completions", "/responses", "/responses/resp_1", "/models", "/embeddings", "/files/f/content"} {
			for _, path := range []string{prefix + path, prefix + "/v1" + path} {
				if res, _ := send(t, http.MethodPost, s.URL+path, nil, []byte("{}")); res.StatusCode != http.StatusOK {
					t.Errorf("%s arrived as %s", path, v.last(t).uri)
				}
			}
		}
	}
	g, to := recorded(t, map[string]string{"openai": "http://api.githubcopilot.com", "anthropic": "http://llm.example.com/claude"})
	for path, want := range map[string]string{"/chat/completions": "/chat/completions", "/messages": "/claude/messages"} {
		visit(g, request(http.MethodPost, path))
		if got := to.take(); len(got) != 1 || got[0].URL.Path != want {
			t.Errorf("%s, where the vendor's API has no /v1, or the address has a path: %v", path, got)
		}
	}
}

// Upstreams of other names say what they speak. One that passes another API gets its requests as they came, with the answers of the gateway in none.
func TestUpstreamsOfOtherNames(t *testing.T) {
	upstreams := public()
	upstreams["gemini"], upstreams["groq"], upstreams["lite"] = "pass+http://generativelanguage.googleapis.com", "openai+http://api.groq.com/openai/v1", "both+http://llm.example.com"
	g, to := recorded(t, upstreams)
	for _, tt := range []struct{ path, want string }{
		{"/gemini/v1beta/models/m:generateContent?alt=sse", "http://generativelanguage.googleapis.com/v1beta/models/m:generateContent?alt=sse"},
		{"/mode/plan/gemini/models", "http://generativelanguage.googleapis.com/models"},
		{"/gemini/v1/messages", "http://generativelanguage.googleapis.com/v1/messages"},
		{"/gemini/health", "http://generativelanguage.googleapis.com/health"},
		{"/groq/v1/chat/completions", "http://api.groq.com/openai/v1/chat/completions"},
		{"/groq/audio/x", "http://api.groq.com/openai/v1/audio/x"},
		{"/groq/v1/messages", ""},
		{"/lite/v1/messages", "http://llm.example.com/v1/messages"},
		{"/lite/responses", "http://llm.example.com/v1/responses"},
		{"/lite/key/info", "http://llm.example.com/key/info"},
		{"/lite/v1beta/models/m:generateContent", ""},
		{"/backend-api/codex/responses", "http://chatgpt.com/backend-api/codex/responses"},
	} {
		visit(g, request(http.MethodPost, tt.path))
		got := ""
		for _, r := range to.take() {
			got = r.URL.String()
		}
		if got != tt.want {
			t.Errorf("%s went to %q, want %q", tt.path, got, tt.want)
		}
	}
	for name, address := range map[string]string{
		"openai": "pass+http://localhost", "messages": "http://localhost", "v1": "http://localhost", "health": "http://localhost", "x": "gemini+http://localhost", "y": "pass+", "a b": "http://localhost",
	} {
		if err := live.CheckUpstream(name, address); err == nil {
			t.Errorf("%s=%s is allowed", name, address)
		}
	}
}

// Clients of headroom's proxy look whether it lives before they use it: that is none of a vendor's business.
func TestClientsOfHeadroomAreAnsweredHere(t *testing.T) {
	g, to := recorded(t, public())
	for _, tt := range []struct {
		method, path string
		status       int
		says         string
	}{
		{"GET", "/health", 200, `"status":"healthy"`},
		{"GET", "/livez", 200, `"status":"healthy"`},
		{"GET", "/readyz", 200, "ok"},
		{"GET", "/stats", 200, `"saved":0`},
		{"GET", "/v1/retrieve/0123456789", 404, "recall needs the secret"},
		{"GET", "/recall/0123456789abcdef/v1/retrieve/0123456789", 404, "nothing that this caller can recall"},
		{"GET", "/v1/retrieve/stats", 404, "no handle"},
		{"GET", "/v1/retrieve", 405, "use POST"},
		{"POST", "/v1/compress/response", 404, "no upstream was asked"},
	} {
		if status, body := visit(g, request(tt.method, tt.path)); status != tt.status || !strings.Contains(body, tt.says) {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, status, body)
		}
	}
	if got := to.take(); len(got) > 0 {
		t.Errorf("%s was forwarded", got[0].URL)
	}
	tokens := tokensFile(t, "acme")
	_, s := serve(t, newVendor(t), func(o *live.Options) { o.Tokens = tokens.path })
	for path, want := range map[string]int{"/health": 200, "/stats": 404} {
		if res, _ := send(t, http.MethodGet, s.URL+path, map[string]string{"Authorization": "Bearer " + tokens.of["acme"]}, nil); res.StatusCode != want {
			t.Errorf("%s for a tenant: %s", path, res.Status)
		}
	}
	if res, _ := send(t, http.MethodGet, s.URL+"/health", nil, nil); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %s", res.Status)
	}
}

// A vendor that answers with a status that HTTP does not have gets its client an error, and not the end of the connection.
func TestStatusThatHTTPDoesNotHave(t *testing.T) {
	for _, answer := range []string{"HTTP/1.1 000 x\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 099 x\r\nContent-Length: 2\r\n\r\n{}", "MODEL-TEXT\r\n\r\n"} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		v := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(c, answer)
				_ = c.Close()
			}
		})}
		go func() { _ = v.Serve(l) }()
		_, s := serveWith(t, "http://"+l.Addr().String(), nil, nil)
		res, body := send(t, http.MethodPost, s.URL+"/v1/messages", nil, []byte(`{"model":"m","messages":[]}`))
		if res.StatusCode != http.StatusBadGateway || !json.Valid(body) || strings.Contains(string(body), "MODEL-TEXT") {
			t.Errorf("%q: %s %s", answer, res.Status, body)
		}
		_ = v.Close()
	}
}

// A page of another site is refused whatever else the request says of its origin.
func TestPagesOfOtherSites(t *testing.T) {
	g, to := recorded(t, public())
	for _, tt := range []struct {
		header []string
		want   int
	}{
		{[]string{"Origin", "http://localhost:3000", "Origin", "https://evil.example"}, 403},
		{[]string{"Origin", "http://localhost:3000", "Sec-Fetch-Site", "cross-site"}, 200},
		{[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{[]string{"Sec-Fetch-Site", "same-origin"}, 200},
		{[]string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"}, 200},
	} {
		if status, body := visit(g, request(http.MethodGet, "/v1/models", tt.header...)); status != tt.want {
			t.Errorf("%v: %d %s", tt.header, status, body)
		}
	}
	if n := len(to.take()); n != 3 {
		t.Errorf("%d were forwarded", n)
	}
}

// What generated requests are made of, with the vendors that they belong to, told by hand.
var (
	paths = map[string][]string{
		"anthropic":  {"/v1/messages", "/v1/messages/count_tokens", "/v1/messages/batches/ID", "/v1/organizations/ID/users", "/v1/complete", "/messages", "/api/event_logging/batch", "/v1/sessions/ID/events"},
		"openai":     {"/v1/chat/completions", "/v1/responses", "/v1/responses/ID/cancel", "/v1/embeddings", "/v1/audio/speech", "/v1/vector_stores/ID/files", "/chat/completions", "/responses", "/v1/conversations/ID"},
		"both":       {"/v1/models", "/v1/models/ID", "/v1/files/ID/content", "/files", "/v1/skills"},
		"google":     {"/v1beta/models/ID:generateContent", "/v1beta/models/ID:streamGenerateContent", "/v1/projects/ID/locations/ID/publishers/google/models/ID:rawPredict", "/v1/models/ID:countTokens", "/v1internal:generateContent"},
		"amazon":     {"/model/ID/invoke", "/model/ID/converse-stream", "/foundation-models"},
		"azure":      {"/deployments/ID/chat/completions"},
		"ollama":     {"/api/chat", "/api/generate", "/api/tags"},
		"openrouter": {"/api/v1/chat/completions", "/api/v1/messages"},
		"unknown":    {"/ID", "/v1/ID", "/v2/chat", "/v1/rerank", "/props", "/api/ID", "/metrics", "/v1/../ID", "/v1/..;/ID"},
	}
	keys = []struct {
		name, value, of string
		cloud           bool
	}{
		{"", "", "", false},
		{"Authorization", "Bearer dummy", "", false},
		{"X-Api-Key", "sk-test", "", false},
		{"Authorization", "Bearer sk-ant-oat01-x", "anthropic", false},
		{"X-Api-Key", "sk-ant-api03-x", "anthropic", false},
		{"Authorization", "Bearer sk-proj-x", "openai", false},
		{"X-Api-Key", "sk-xT3BlbkFJx", "openai", false},
		{"ChatGPT-Account-Id", "acc", "openai", false},
		{"Authorization", "Bearer sk-or-v1-x", "openrouter", false},
		{"X-Goog-Api-Key", "AIzaX", "google", true},
		{"Authorization", "Bearer ya29.x", "google", true},
		{"?key", "AIzaX", "google", false},
		{"Authorization", "AWS4-HMAC-SHA256 Credential=ASIAX/1/us/bedrock/aws4_request, Signature=0", "amazon", true},
		{"X-Amz-Security-Token", "FwoGZXIvYXdzE", "amazon", true},
		{"Api-Key", "0123456789abcdef", "azure", false},
		{"Authorization", "Bearer gsk_x", "groq", false},
	}
)

// owners are the vendors of the hosts; others are the user's own.
var owners = map[string]string{
	"api.anthropic.com": "anthropic", "api.openai.com": "openai", "chatgpt.com": "openai", "openrouter.ai": "openrouter", "mine.openai.azure.com": "azure",
	"generativelanguage.googleapis.com": "google", "api.groq.com": "groq",
}

// generate returns paths, each with whose it is and the upstream that it names.
func generate(random *rand.Rand, n int, names []string) [][3]string {
	var all [][3]string
	kinds := slices.Sorted(func(yield func(string) bool) {
		for k := range paths {
			if !yield(k) {
				return
			}
		}
	})
	for range n {
		of := kinds[random.IntN(len(kinds))]
		path := paths[of][random.IntN(len(paths[of]))]
		for strings.Contains(path, "ID") {
			path = strings.Replace(path, "ID", fmt.Sprintf("x%x.y-z", random.Uint32()), 1)
		}
		name := ""
		switch random.IntN(8) {
		case 0:
			path += "/"
		case 1:
			path = "/" + path
		case 2: // escaped, which means the same
			at := 1 + random.IntN(len(path)-1)
			path = path[:at] + fmt.Sprintf("%%%02x", path[at]) + path[at+1:]
		case 3, 4, 5:
			name = names[random.IntN(len(names))]
			path = "/" + name + path
		}
		if random.IntN(4) == 0 {
			path = "/mode/plan" + path
		}
		all = append(all, [3]string{path, of, name})
	}
	return all
}

// Whatever path, upstreams and key meet: nothing reaches a host whose vendor is not that of the path and of the key.
func TestNothingReachesAnotherVendor(t *testing.T) {
	random := rand.New(rand.NewPCG(24, 2))
	sets := []map[string]string{
		{},
		{"openai": "http://localhost:11434/v1"},
		{"openai": "http://openrouter.ai/api/v1"},
		{"openai": "http://mine.openai.azure.com/openai"},
		{"openai": "http://llm.example.com", "anthropic": "http://llm.example.com", "lite": "both+http://llm.example.com"},
		{"gemini": "pass+http://generativelanguage.googleapis.com", "groq": "openai+http://api.groq.com/openai/v1", "own": "pass+http://own.example.com"},
	}
	for _, more := range sets {
		upstreams := public()
		for name, address := range more {
			upstreams[name] = address
		}
		g, to := recorded(t, upstreams)
		var names []string
		for name := range upstreams {
			names = append(names, name)
		}
		slices.Sort(names)
		sent := 0
		for i, path := range generate(random, 1000, names) {
			for k := range keys {
				key := &keys[k]
				at := path[0]
				if name, isQuery := strings.CutPrefix(key.name, "?"); isQuery {
					at += "?" + name + "=" + key.value
				}
				u, err := url.Parse("http://127.0.0.1" + at)
				if err != nil {
					t.Fatal(err)
				}
				r := &http.Request{Method: http.MethodPost, URL: u, Host: u.Host, RemoteAddr: "127.0.0.1:1", Body: http.NoBody, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}}
				if key.name != "" && at == path[0] {
					r.Header.Set(key.name, key.value)
				}
				host := live.Reaches(g, r)
				if i%len(keys) == k { // a sample goes all the way
					visit(g, r)
					got := to.take()
					if reached := len(got) > 0; reached != (host != "") || reached && got[0].URL.Host != host {
						t.Fatalf("%s: %d sent, meant for %q", at, len(got), host)
					}
				}
				if host == "" {
					continue
				}
				sent++
				bare, _, _ := strings.Cut(host, ":")
				if why := crosses(path[1], path[2], key.of, key.cloud, bare, upstreams); why != "" {
					t.Fatalf("%s with %s of %q reached %s: %s", at, key.name, key.of, host, why)
				}
			}
		}
		if sent < 1500 {
			t.Errorf("only %d of 16,000 requests are for an upstream of %v", sent, upstreams)
		}
	}
}

// crosses says why a host must not have got a request; empty if it may.
func crosses(path, name, key string, cloud bool, host string, upstreams map[string]string) string {
	passes := strings.HasPrefix(upstreams[name], "pass+")
	owner := owners[host]
	switch {
	case key != "" && owner != "" && key != owner:
		return "the key is for another vendor"
	case cloud && owner == "" && !passes:
		return "only a cloud takes such a key"
	case passes:
		return ""
	case name == "" && path != "anthropic" && path != "openai" && path != "both":
		return "no upstream has the path"
	case name != "" && !strings.Contains(upstreams[name], host):
		return "another upstream was named"
	case path == "anthropic" && (owner == "openai" || name == "openai" || name == "groq"), path == "openai" && owner == "anthropic":
		if path == "openai" { // Anthropic has Chat Completions, for those who name it
			return ""
		}
		return "the vendor does not have the path"
	case path != "anthropic" && path != "openai" && path != "both" && path != "unknown" && path != owner:
		return "the path is of another vendor"
	}
	return ""
}
