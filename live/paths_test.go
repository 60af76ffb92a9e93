package live_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
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
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader("{}")), Request: r,
	}, nil
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
	return map[string]string{
		"anthropic": "http://api.anthropic.com", "openai": "http://api.openai.com",
		"chatgpt": "http://chatgpt.com/backend-api/codex",
		"gemini":  "http://generativelanguage.googleapis.com", "vertex": "http://aiplatform.googleapis.com",
	}
}

// recorded returns a gateway whose upstreams are recorded.
func recorded(t *testing.T, upstreams map[string]string, unversioned ...string) (*live.Gateway, *hosts) {
	t.Helper()
	return recordedAt(t, live.Upstreams{URLs: upstreams, Unversioned: unversioned})
}

func recordedAt(t *testing.T, upstreams live.Upstreams) (*live.Gateway, *hosts) {
	t.Helper()
	h, err := condense.Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := live.New(h, &live.Options{
		Upstreams: upstreams,
		Reports:   live.Reports{Logger: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))},
	})
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

// request is a request from this machine.
func request(method, path string, header ...string) *http.Request {
	r := httptest.NewRequest(method, "http://127.0.0.1"+path, http.NoBody)
	r.RemoteAddr = "127.0.0.1:1"
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// visit asks a gateway without a network.
func visit(g http.Handler, r *http.Request) (status int, body string) {
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// A prompt for a model of another vendor, sent here by mistake, is not forwarded to Anthropic or OpenAI. The client reads why, in its
// own form.
func TestPromptsForOtherVendorsAreNotForwarded(t *testing.T) {
	g, to := recorded(t, public())
	for _, tt := range []struct{ path, says, form string }{
		{"/v1internal:streamGenerateContent?alt=sse", "use a key of the Gemini API", `{"error":{"code":404,"message":"`},
		{"/v1beta/openai/chat/completions", "v1beta/openai, with a base URL without /v1", `{"error":{`},
		{"/model/anthropic.claude-opus-4-8/invoke-with-response-stream", "Set --upstream bedrock=", `{"message":"`},
		{"/v1/model/anthropic.claude-opus-4-8/invoke", "remove it from the base URL", `{"message":"`},
		{"/model/arn%3Aaws%3Abedrock%2Fx/converse", "Amazon Bedrock", `{"message":"`},
		{"/openai/deployments/gpt-5/chat/completions?api-version=2025-04-01", "--upstream azure=https://RESOURCE", `{"error":{"code":"404"`},
		{"/anthropic/v1beta/models/m:generateContent", "path of Google's API", `"status":"NOT_FOUND"`},
		{"/gemini/v1/messages", "path of Anthropic's API", `{"type":"error"`},
		{"/openai/v1/projects/p/locations/us/publishers/anthropic/models/m:rawPredict", "path of Vertex AI's API", `{"type":"error"`},
		{"/api/chat", "Ollama", `{"error":{"message":"condense: `},
		{"/api/generate", "with /ollama/v1 as base URL", `{"error":{"message":"`},
		{"/api/v1/chat/completions", "openai=https://openrouter.ai/api/v1", `{"error":{"message":"`},
		{"/v1/v1/messages", "remove it from the base URL", `{"error":{"message":"`},
		{"/backend-api/wham/usage", "chatgpt_base_url", `{"error":{"message":"`},
		{"/v1/rerank", "/openai/v1/rerank", `{"error":{"message":"`},
		{"/mode/a%2Fb/v1/messages", "in neither Anthropic's nor OpenAI's API", `{"error":{"message":"`},
		{"/", "ANTHROPIC_BASE_URL", `{"error":{"message":"`},
		{
			"/anthropic/v1/responses", "path of OpenAI's API, and the upstream anthropic (api.anthropic.com) does not speak it",
			`{"error":{"message":"`,
		},
		{"/openai/v1/messages", "path of Anthropic's API", `{"type":"error"`},
	} {
		status, body := visit(g, request(http.MethodPost, tt.path))
		if status != http.StatusNotFound || !strings.Contains(body, tt.says) || !strings.Contains(body, tt.form) || !json.Valid([]byte(body)) {
			t.Errorf("%s: %d %s", tt.path, status, body)
		}
	}
	if _, body := visit(g, request(http.MethodPost, "/v1/none", "Anthropic-Version", "2023-06-01")); !strings.HasPrefix(body,
		`{"type":"error","error":{"type":"not_found_error"`) {
		t.Errorf("for a client of Anthropic: %s", body)
	}
	if status, body := visit(g, request(http.MethodGet, "/v1/messages")); status != http.StatusMethodNotAllowed ||
		!strings.Contains(body, "asked with POST") {
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
	maps.Copy(upstreams, map[string]string{
		"foundry": "azure+http://mine.services.ai.azure.com", "region": "vertex+http://europe-west1-aiplatform.googleapis.com",
		"ollama": "both+http://192.168.0.7:11434", "google": "gemini+http://llm.example.com",
		"router": "openai+http://openrouter.ai/api/v1", "azure": "openai+http://mine.openai.azure.com/openai/v1",
		"mine": "both+http://llm.example.com",
		"pass": "pass+http://generativelanguage.googleapis.com", "copilot": "openai+http://api.githubcopilot.com",
		"bedrock": "openai+http://bedrock-runtime.eu-west-1.amazonaws.com/openai/v1",
		"own":     "pass+http://gateway.example.com",
		"amazon":  "bedrock+http://bedrock-runtime.eu-west-1.amazonaws.com",
	})
	g, to := recorded(t, upstreams)
	const (
		chat, messages = "/v1/chat/completions", "/v1/messages"
		gemini         = "/v1beta/models/m:generateContent"
		vertex         = "/v1/projects/p/locations/us-east5/publishers/anthropic/models/m:streamRawPredict"
	)
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
		{"/pass/v1beta/models/m:generateContent", "X-Goog-Api-Key", "k", "generativelanguage.googleapis.com"},
		{"/pass/v1beta/models/m:generateContent", "Authorization", "Bearer sk-ant-api03-1", ""},
		{gemini, "X-Goog-Api-Key", "k", "generativelanguage.googleapis.com"},
		{gemini + "?key=AIza1", "", "", "generativelanguage.googleapis.com"},
		{gemini, "Authorization", "Bearer sk-proj-1", ""},
		{gemini, "Api-Key", "k", ""},
		{"/google" + gemini, "X-Goog-Api-Key", "k", "llm.example.com"},
		{"/google" + gemini, "X-Amz-Security-Token", "k", ""},
		{vertex, "Authorization", "Bearer ya29.1", "us-east5-aiplatform.googleapis.com"},
		{vertex, "X-Api-Key", "sk-ant-api03-1", ""},
		{"/region" + vertex, "Authorization", "Bearer ya29.1", "europe-west1-aiplatform.googleapis.com"},
		{"/foundry/anthropic/v1/messages", "X-Api-Key", "k", "mine.services.ai.azure.com"},
		{"/foundry/anthropic/v1/messages", "X-Api-Key", "sk-ant-api03-1", ""},
		{"/foundry/openai/deployments/d/chat/completions?api-version=1", "Api-Key", "k", "mine.services.ai.azure.com"},
		{"/foundry/openai/v1/responses", "X-Goog-Api-Key", "k", ""},
		{"/ollama/v1/chat/completions", "Authorization", "Bearer ollama", "192.168.0.7:11434"},
		{"/amazon/model/m/invoke", "Authorization", "Bearer ABSK1", "bedrock-runtime.eu-west-1.amazonaws.com"},
		{"/amazon/model/m/converse", "Authorization", "Bearer bedrock-api-key-1", "bedrock-runtime.eu-west-1.amazonaws.com"},
		{"/amazon/inference-profiles", "Authorization", "Bearer ABSK1", "bedrock.eu-west-1.amazonaws.com"},
		{"/amazon/model/m/converse", "X-Api-Key", "sk-ant-api03-1", ""},
		{"/amazon/model/m/converse", "Authorization", "AWS4-HMAC-SHA256 Credential=AKIA1/20261123/us-east-1/bedrock/aws4_request", ""},
		{"/own/model/m/invoke", "X-Amz-Security-Token", "t", "gateway.example.com"},
	} {
		r := request(http.MethodPost, tt.path)
		if tt.header != "" {
			r.Header.Set(tt.header, tt.value)
		}
		status, body := visit(g, r)
		got := to.take()
		if tt.host == "" {
			if status != http.StatusBadRequest || len(got) > 0 || !strings.Contains(body, "nothing was sent") || tt.value != "" &&
				strings.Contains(body, `"`+tt.value) {
				t.Errorf("%s with %s: %d %s, sent %d", tt.path, tt.value, status, body, len(got))
			}
			continue
		}
		if status != http.StatusOK || len(got) != 1 || got[0].URL.Host != tt.host || tt.header != "" && got[0].Header.Get(tt.header) != tt.value {
			t.Errorf("%s with %s: %d %s, sent %d, want %s", tt.path, tt.value, status, body, len(got), tt.host)
		}
	}
}

// Clients of some SDKs take the base URL as one with /v1, and get none from 'condense wrap'. A vendor that has only /v1/… is asked for
// that.
func TestClientsThatOmitV1(t *testing.T) {
	v := newVendor(t)
	v.answer = func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v1/") || strings.HasPrefix(r.URL.Path, "/v1/v1") {
			w.WriteHeader(http.StatusNotFound)
		}
	}
	_, s := serve(t, v, func(o *live.Options) { o.Upstreams.URLs["versioned"] = v.URL + "/v1" })
	for _, prefix := range []string{"", "/versioned"} {
		for _, path := range []string{
			"/messages", "/messages/count_tokens", "/chat/completions", "/responses", "/responses/resp_1",
			"/models", "/embeddings", "/files/f/content",
		} {
			for _, path := range []string{prefix + path, prefix + "/v1" + path} {
				if res, _ := send(t, http.MethodPost, s.URL+path, nil, []byte("{}")); res.StatusCode != http.StatusOK {
					t.Errorf("%s arrived as %s", path, v.last(t).uri)
				}
			}
		}
	}
	g, to := recorded(t, map[string]string{
		"openai": "http://api.githubcopilot.com", "anthropic": "http://llm.example.com/claude",
		"plain": "both+http://llm.example.com",
	}, "plain")
	for path, want := range map[string]string{
		"/chat/completions": "/chat/completions", "/messages": "/claude/messages",
		"/plain/responses": "/responses", "/plain/v1/responses": "/v1/responses",
	} {
		visit(g, request(http.MethodPost, path))
		if got := to.take(); len(got) != 1 || got[0].URL.Path != want {
			t.Errorf("%s, where the vendor's API has no /v1, or the address has a path: %v", path, got)
		}
	}
}

// Upstreams of other names say what they speak. One that passes another API gets its requests as they came, with the answers of the
// gateway in none.
func TestUpstreamsOfOtherNames(t *testing.T) {
	upstreams := public()
	upstreams["gemini"], upstreams["groq"], upstreams["lite"] = "pass+http://generativelanguage.googleapis.com",
		"openai+http://api.groq.com/openai/v1", "both+http://llm.example.com"
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
		"openai": "pass+http://localhost", "messages": "http://localhost", "v1": "http://localhost", "health": "http://localhost",
		"x": "sagemaker+http://localhost", "y": "pass+", "a b": "http://localhost",
	} {
		if err := live.CheckUpstream(name, address); err == nil {
			t.Errorf("%s=%s is allowed", name, address)
		}
	}
}

// Of headroom's proxy the gateway has /v1/compress alone: its other addresses are no vendor's.
func TestAddressesOfHeadroomGoToNoVendor(t *testing.T) {
	g, to := recorded(t, public())
	for path, method := range map[string]string{
		"/health": "GET", "/livez": "GET", "/readyz": "GET", "/v1/usage": "POST", "/v1/compress/response": "POST",
	} {
		if status, body := visit(g, request(method, path)); status != http.StatusNotFound || !strings.Contains(body, "no upstream was asked") {
			t.Errorf("%s %s: %d %s", method, path, status, body)
		}
	}
	if got := to.take(); len(got) > 0 {
		t.Errorf("%s was forwarded", got[0].URL)
	}
}

// A vendor that answers with a status that HTTP does not have gets its client an error, and not the end of the connection.
func TestStatusThatHTTPDoesNotHave(t *testing.T) {
	for _, answer := range []string{
		"HTTP/1.1 000 x\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 099 x\r\nContent-Length: 2\r\n\r\n{}",
		"MODEL-TEXT\r\n\r\n",
	} {
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

// What a policy forbids is asked of the address that a request would really go to: the vendors' own, which nobody configures,
// a region's, and one that a program takes from elsewhere.
func TestForbiddenAddresses(t *testing.T) {
	upstreams := public()
	upstreams["own"] = "http://llm.example"
	g, to := recordedAt(t, live.Upstreams{URLs: upstreams, Forbids: func(address string) string {
		if strings.HasPrefix(address, "http://api.anthropic.com/") || strings.HasPrefix(address, "http://us-east5-aiplatform.googleapis.com/") {
			return ""
		}
		return "not allowed by the policy"
	}})
	for path, allowed := range map[string]bool{
		"/v1/messages": true, "/v1/chat/completions": false, "/own/v1/messages": false, "/backend-api/codex/responses": false,
		"/v1/projects/p/locations/eu/publishers/google/models/m:generateContent":       false,
		"/v1/projects/p/locations/us-east5/publishers/google/models/m:generateContent": true,
	} {
		status, body := visit(g, request(http.MethodPost, path))
		if n := len(to.take()); n != 0 != allowed || !allowed && (status != http.StatusForbidden || !strings.Contains(body, "not allowed by the policy")) {
			t.Errorf("%s: %d requests were sent, status %d: %s", path, n, status, body)
		}
	}
}
