package live_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/live"
)

// What generated requests are made of, with the vendors that they belong to.
var (
	paths = map[string][]string{
		"anthropic": {
			"/v1/messages", "/v1/messages/count_tokens", "/v1/messages/batches/ID", "/v1/organizations/ID/users",
			"/v1/complete", "/messages", "/api/event_logging/batch", "/v1/sessions/ID/events",
		},
		"openai": {
			"/v1/chat/completions", "/v1/responses", "/v1/responses/ID/cancel", "/v1/embeddings", "/v1/audio/speech",
			"/v1/vector_stores/ID/files", "/chat/completions", "/responses", "/v1/conversations/ID",
		},
		"both": {"/v1/models", "/v1/models/ID", "/v1/files/ID/content", "/files", "/v1/skills"},
		"google": {
			"/v1beta/models/ID:generateContent", "/v1beta/models/ID:streamGenerateContent", "/v1/models/ID:countTokens", "/v1beta/files",
			"/v1beta/cachedContents/ID", "/upload/v1beta/files",
		},
		"vertex": {
			"/v1/projects/ID/locations/us-east5/publishers/anthropic/models/ID:rawPredict", "/v1/projects/ID/locations/global/publishers/google/models/ID:generateContent",
			"/v1/projects/ID/locations/ID/publishers/anthropic/models/ID:streamRawPredict", "/v1beta1/projects/ID/locations/ID/cachedContents",
			"/v1/projects/ID/locations/evil.example%2F/publishers/anthropic/models/ID:rawPredict",
			"/v1/projects/ID/locations/evil.example%23/publishers/anthropic/models/ID:rawPredict",
		},
		"assist":     {"/v1internal:generateContent", "/v1internal:streamGenerateContent"},
		"amazon":     {"/model/ID/invoke", "/model/ID/converse-stream", "/model/arn:aws:bedrock:::profile/ID/converse", "/foundation-models"},
		"azure":      {"/deployments/ID/chat/completions", "/deployments/ID/embeddings"},
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
	"api.anthropic.com": "anthropic", "api.openai.com": "openai", "chatgpt.com": "openai", "openrouter.ai": "openrouter",
	"mine.openai.azure.com":                   "azure",
	"bedrock-runtime.eu-west-1.amazonaws.com": "amazon", "bedrock.eu-west-1.amazonaws.com": "amazon",
	"generativelanguage.googleapis.com": "google", "api.groq.com": "groq",
}

// generate returns paths, each with whose it is and the upstream that it names.
func generate(random *rand.Rand, n int, names []string) [][3]string {
	var all [][3]string
	kinds := slices.Sorted(maps.Keys(paths))
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
	testkit.Slow(t)
	random := rand.New(rand.NewPCG(24, 2))
	sets := []map[string]string{
		{},
		{"openai": "http://localhost:11434/v1"},
		{"openai": "http://openrouter.ai/api/v1"},
		{"openai": "http://mine.openai.azure.com/openai"},
		{"openai": "http://llm.example.com", "anthropic": "http://llm.example.com", "lite": "both+http://llm.example.com"},
		{
			"azure": "http://mine.openai.azure.com", "ollama": "both+http://192.168.0.7:11434", "europe": "vertex+http://europe-west1-aiplatform.googleapis.com",
			"google": "gemini+http://llm.example.com", "bedrock": "http://bedrock-runtime.eu-west-1.amazonaws.com",
		},
		{
			"gemini": "pass+http://generativelanguage.googleapis.com", "groq": "openai+http://api.groq.com/openai/v1",
			"own": "pass+http://own.example.com",
		},
	}
	for _, more := range sets {
		upstreams := public()
		maps.Copy(upstreams, more)
		g, to := recorded(t, upstreams)
		names := slices.Sorted(maps.Keys(upstreams))
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
				r := &http.Request{
					Method: http.MethodPost, URL: u, Host: u.Host, RemoteAddr: "127.0.0.1:1", Body: http.NoBody,
					Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
				}
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
	vertex := strings.HasSuffix(host, "aiplatform.googleapis.com") || strings.HasPrefix(host, "aiplatform.") && strings.HasSuffix(host, ".rep.googleapis.com")
	if vertex {
		owner = "google"
	}
	google := strings.HasPrefix(upstreams[name], "gemini+") && key == "google"
	switch {
	case key != "" && owner != "" && key != owner:
		return "the key is for another vendor"
	case cloud && owner == "" && !passes && !google:
		return "only a cloud takes such a key"
	case passes:
		return ""
	case path == "vertex" && !vertex, path == "google" && (vertex || owner != "google" && name != "google"), path == "ollama":
		return "the vendor does not have the path"
	case path == "amazon" && owner == "amazon" && (name == "" || name == "bedrock"):
		return ""
	case path == "vertex" || path == "google" || path == "assist" && owner == "google" || path == "azure" && owner == "azure":
		return ""
	case name == "" && path != "anthropic" && path != "openai" && path != "both":
		return "no upstream has the path"
	case name != "" && !vertex && !strings.Contains(upstreams[name], host):
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
