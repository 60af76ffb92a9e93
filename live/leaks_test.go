package live_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
)

// A proof is a credential in the form that a vendor's clients send.
type proof struct{ header, value, query, of string }

func token(issuer string) string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	return "Bearer " + part(`{"alg":"RS256"}`) + "." + part(fmt.Sprintf(`{"iss":%q,"aud":"x"}`, issuer)) + ".c2ln"
}

// proofs are credentials of each vendor, with the vendor whose hosts may see it.
var proofs = []proof{
	{"X-Api-Key", "sk-ant-api03-1", "", "anthropic"},
	{"Authorization", "Bearer sk-ant-oat01-1", "", "anthropic"},
	{"Authorization", "Bearer sk-proj-1", "", "openai"},
	{"X-Api-Key", "sk-proj-1", "", "openai"},
	{"Api-Key", "sk-svcacct-1", "", ""}, // OpenAI's key in Azure's header: for nobody's host
	{"Authorization", token("https://auth.openai.com"), "", "openai"},
	{"Api-Key", "0123456789abcdef", "", "azure"},
	{"Ocp-Apim-Subscription-Key", "0123456789abcdef", "", "azure"},
	{"", "", "subscription-key=0123456789abcdef", "azure"},
	{"Authorization", token("https://sts.windows.net/t/"), "", "azure"},
	{"Authorization", token("https://login.microsoftonline.com/t/v2.0"), "", "azure"},
	{"X-Goog-Api-Key", "AIza1", "", "google"},
	{"X-Goog-Api-Key", "own", "", "google"},
	{"", "", "key=AIza1", "google"},
	{"", "", "alt=sse&k%65y=own", "google"},
	{"X-Api-Key", "AIza1", "", "google"},
	{"Authorization", "Bearer ya29.a0", "", "google"},
	{"Authorization", token("https://accounts.google.com"), "", "google"},
	{"Authorization", "Bearer sk-or-v1-1", "", "openrouter"},
	{"Authorization", "Bearer ABSK1", "", "amazon"},
	{"Authorization", "AWS4-HMAC-SHA256 Credential=AKIA1/20261123/us-east-1/bedrock/aws4_request", "", "amazon"},
	{"X-Amz-Security-Token", "FwoGZX", "", "amazon"},
	{"", "", "X-Amz-Signature=1&X-Amz-Credential=AKIA1", "amazon"},
	{"Authorization", "Bearer gsk_1", "", "groq"},
	{"Authorization", "Bearer ghu_1", "", "github"},
}

// ownerOf names the vendor of a host; "" for a user's own.
func ownerOf(host string) string {
	for suffix, vendor := range map[string]string{
		"anthropic.com": "anthropic", "openai.com": "openai", "chatgpt.com": "openai", "googleapis.com": "google", "azure.com": "azure",
		"openrouter.ai": "openrouter", "amazonaws.com": "amazon", "groq.com": "groq", "githubcopilot.com": "github",
	} {
		host, _, _ := strings.Cut(host, "/")
		if strings.HasSuffix(strings.Split(host, ":")[0], suffix) {
			return vendor
		}
	}
	return ""
}

// upstreamSets are upstreams as users configure them, next to the vendors' own.
var upstreamSets = []map[string]string{
	{},
	{"azure": "http://mine.openai.azure.com", "ollama": "both+http://192.168.0.7:11434"},
	{"azure": "azure+http://mine.services.ai.azure.com", "router": "openai+http://openrouter.ai/api/v1", "groq": "openai+http://api.groq.com/openai/v1"},
	{"gemini": "gemini+http://llm.example.com", "vertex": "vertex+http://europe-west1-aiplatform.googleapis.com", "mine": "both+http://llm.example.com"},
	{"anthropic": "http://llm.example.com", "openai": "http://openrouter.ai/api/v1", "copilot": "openai+http://api.githubcopilot.com"},
	{"openai": "http://generativelanguage.googleapis.com/v1beta/openai", "bedrock": "openai+http://bedrock-runtime.us-east-1.amazonaws.com/openai/v1"},
	{"own": "pass+http://gateway.example.com", "goog": "pass+http://generativelanguage.googleapis.com", "aws": "pass+http://bedrock-runtime.us-east-1.amazonaws.com"},
	{"anthropic": "http://api.anthropic.com/v1", "openai": "http://api.openai.com/v1", "azure": "http://mine.cognitiveservices.azure.com"},
}

// vendorPaths are paths by the vendors whose hosts may be asked for them; M is a model.
var vendorPaths = map[string][]string{
	"anthropic":        {"/v1/messages", "/v1/messages/count_tokens", "/messages", "/v1/messages/batches/M", "/v1/organizations/M", "/api/oauth/M", "/v1/vaults/M"},
	"openai":           {"/v1/chat/completions", "/v1/responses", "/v1/responses/compact", "/responses", "/v1/embeddings", "/v1/audio/M", "/v1/threads/M", "/v1/images/M"},
	"anthropic openai": {"/v1/models", "/v1/models/M", "/v1/files", "/v1/files/M/content", "/v1/skills/M"},
	"google": {
		"/v1beta/models/M:generateContent", "/v1beta/models/M:streamGenerateContent", "/v1beta/models/M:countTokens", "/v1alpha/models/M:generateContent", "/v1beta/cachedContents/M",
		"/v1/projects/p/locations/us-east5/publishers/anthropic/models/M:rawPredict", "/v1/projects/p/locations/global/publishers/google/models/M:generateContent",
		"/v1beta1/projects/p/locations/eu/publishers/google/models/M:streamGenerateContent", "/v1internal:M", "/upload/v1beta/files/M",
	},
	"azure":           {"/openai/deployments/M/chat/completions", "/deployments/M/chat/completions", "/openai/deployments/M/embeddings"},
	"azure openai":    {"/openai/v1/responses"}, // the names of upstreams are paths of Azure's, too
	"azure anthropic": {"/anthropic/v1/messages"},
	"":                {"/api/chat", "/api/generate", "/api/tags", "/api/pull", "/api/v0/models/M"},
	"openrouter":      {"/api/v1/chat/completions", "/api/v1/models"},
	"amazon":          {"/model/M/invoke", "/model/M/invoke-with-response-stream", "/model/M/converse", "/model/M/converse-stream"},
}

// A thousand paths, through gateways with each set of upstreams, with credentials of each form, alone and two at a time: none arrives at a
// public host of a vendor that does not own it, a key or token of a cloud at no host but its own, and no vendor's path at another vendor's
// host, unless the client names the upstream.
func TestNothingOfOneVendorReachesAnother(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	models := []string{"claude-opus-5-5", "gpt-5.1", "gemini-3-pro-preview", "qwen3:32b", "a%2Fb", "arn%3Aaws%3Ab", "m;x", "..%2f", "%2e%2e", "m%00"}
	type address struct{ path, of string }
	var plain []address
	for _, of := range slices.Sorted(maps.Keys(vendorPaths)) {
		for _, p := range vendorPaths[of] {
			for i, m := range models {
				if i == 0 || strings.Contains(p, "M") {
					plain = append(plain, address{strings.ReplaceAll(p, "M", m), of})
				}
			}
		}
	}
	n, sent, refused := 0, 0, 0
	for set, more := range upstreamSets {
		upstreams := public()
		maps.Copy(upstreams, more)
		g, to := recorded(t, upstreams)
		paths := plain
		for _, name := range slices.Sorted(maps.Keys(upstreams)) {
			for _, a := range plain[set%3:] {
				if n++; n%3 == 0 {
					paths = append(paths, address{"/" + name + a.path, "named"})
				}
			}
		}
		for i, a := range paths {
			for k := range 4 {
				one, two := proofs[(i*7+k*11+set)%len(proofs)], proofs[(i+k*5)%len(proofs)]
				if k%2 == 0 {
					two = proof{}
				}
				r := request(http.MethodPost, a.path)
				for _, p := range []proof{one, two} {
					if p.header != "" {
						r.Header.Add(p.header, p.value)
					}
					r.URL.RawQuery = strings.TrimPrefix(r.URL.RawQuery+"&"+p.query, "&")
				}
				status, _ := visit(g, r)
				got := to.take()
				if len(got) == 0 {
					if refused++; status < 400 {
						t.Errorf("set %d, %s: %d, and nothing was sent", set, a.path, status)
					}
					continue
				}
				sent++
				host := ownerOf(got[0].URL.Host)
				for _, p := range []proof{one, two} {
					if p != (proof{}) && host != "" && host != p.of {
						t.Errorf("set %d, %s: %s%s %s arrived at %s", set, a.path, p.header, p.query, p.value, got[0].URL)
					}
				}
				owners := a.of
				for of := range strings.FieldsSeq(a.of) { // the vendor's name stands for another host in some sets
					_, base, _ := strings.Cut(upstreams[of], "//")
					owners += " " + ownerOf(base)
				}
				if a.of != "named" && host != "" && !strings.Contains(owners, host) {
					t.Errorf("set %d: %s, of %s, arrived at %s", set, a.path, a.of, got[0].URL)
				}
			}
		}
	}
	if sent < 1000 || refused < 10_000 {
		t.Errorf("%d sent, %d refused", sent, refused)
	}
	t.Logf("%d sent, %d refused", sent, refused)
}
