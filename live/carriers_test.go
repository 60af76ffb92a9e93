package live_test

import (
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// keysOf are keys of vendors by their shapes.
var keysOf = map[string]string{
	"anthropic": "sk-ant-api03-Zm9vYmFyYmF6cXV4", "openai": "sk-proj-Zm9vYmFyYmF6cXV4", "openrouter": "sk-or-v1-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "google": "AIzaSyA0123456789abcdefghijklmnopqrstu",
	"groq": "gsk_Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4", "amazon": "ABSKZm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4", "github": "ghu_Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9v", "azure": token("https://sts.windows.net/t/")[len("Bearer "):],
}

// carry returns requests that carry a key where a mistake has put it: left quotes of a file, lists, other schemes, headers and parameters.
func carry(key string) (header map[string]string, query []string) {
	packed := base64.StdEncoding.EncodeToString([]byte("user:" + key))
	alone := base64.StdEncoding.EncodeToString([]byte(key))
	header = map[string]string{}
	for i, value := range []string{
		`Bearer "KEY"`, `Bearer 'KEY'`, "Bearer,KEY", "Bearer:KEY", "Bearer=KEY", "Token=KEY", "token KEY", "KEY", ` "KEY" `, "Key KEY;", "Bearer dummy, Bearer KEY", "ApiKey key=KEY,user=a", "Basic " + packed, "basic " + packed, "BASIC  " + strings.TrimRight(packed, "="),
		"Bearer " + alone, alone, base64.RawURLEncoding.EncodeToString([]byte(" " + key)), "Bearer%20" + strings.ReplaceAll(key, "-", "%2D"), "Bearer " + url.QueryEscape(`"`+key+`"`),
	} {
		header[fmt.Sprintf("Authorization#%d", i)] = strings.ReplaceAll(value, "KEY", key)
	}
	for _, name := range []string{
		"X-Auth-Token", "X-Api-Token", "X-Access-Token", "Auth", "Token", "Apikey", "X-Apikey", "Proxy-Authorization", "X-Authorization", "X-Forwarded-Authorization",
		"X-Original-Authorization", "Openai-Api-Key", "Anthropic-Api-Key", "X-Anthropic-Key", "X-Anything", "X-Custom-Secret", "Api-Key", "X-Goog-Api-Key", "Referer", "X-Openai-Key",
		"User-Agent", "Anthropic-Beta", "Openai-Beta", "Accept-Language", "Tracestate",
	} {
		header[name] = key
	}
	header["Cookie"] = "a=b; session=" + key
	header["User-Agent#q"] = "tool/1.0 (" + key + ")"
	header["Anthropic-Beta#q"] = alone
	header["X-Token#q"] = `"` + key + `"`
	header["Sec-Websocket-Protocol"] = "realtime, openai-insecure-api-key." + key
	for _, name := range []string{"token", "apikey", "api_key", "access_token", "auth", "key", "secret", "anything", "Authorization", "k%65y"} {
		query = append(query, name+"="+key, "a=b&"+name+"=%22"+key+"%22")
	}
	return header, query
}

// written are the forms of a key in [carry].
func written(key string) (all []string) {
	for _, before := range []string{"", " ", "user:"} {
		all = append(all, base64.RawStdEncoding.EncodeToString([]byte(before + key))[:20], base64.RawURLEncoding.EncodeToString([]byte(before + key))[:20])
	}
	return append(all, key[:12], strings.ReplaceAll(key, "-", "%2D")[:12])
}

// A key that a mistake has put into another header, parameter or form is recognized by its shape, and reaches no host of another vendor:
// the request is refused with a text that says why.
func TestOddCarriersReachNoOtherVendor(t *testing.T) {
	t.Parallel()
	upstreams := public()
	maps.Copy(upstreams, map[string]string{
		"router": "openai+http://openrouter.ai/api/v1", "groq": "openai+http://api.groq.com/openai/v1", "azure": "http://mine.openai.azure.com",
		"bedrock": "http://bedrock-runtime.us-east-1.amazonaws.com", "copilot": "openai+http://api.githubcopilot.com",
	})
	g, to := recorded(t, upstreams)
	paths := []string{
		"/v1/messages", "/v1/chat/completions", "/v1/responses", "/v1/models", "/anthropic/v1/messages", "/openai/v1/embeddings", "/v1beta/models/m:generateContent",
		"/router/v1/chat/completions", "/groq/v1/chat/completions", "/azure/openai/deployments/m/chat/completions", "/bedrock/model/m/converse", "/copilot/chat/completions",
	}
	n, sent := 0, 0
	for _, of := range slices.Sorted(maps.Keys(keysOf)) {
		header, query := carry(keysOf[of])
		for _, path := range paths {
			try := func(r *http.Request, how string) {
				n++
				status, text := visit(g, r)
				got := to.take()
				if len(got) == 0 {
					if status < http.StatusBadRequest || strings.Contains(text, keysOf[of]) {
						t.Errorf("%s in %s to %s: %d %s", of, how, path, status, text)
					}
					return
				}
				sent++
				host := ownerOf(got[0].URL.Host)
				var all strings.Builder
				_ = got[0].Header.Write(&all)
				all.WriteString(got[0].URL.String())
				if host != of && slices.ContainsFunc(written(keysOf[of]), func(s string) bool { return strings.Contains(all.String(), s) }) {
					t.Errorf("the key of %s in %s arrived at %s", of, how, got[0].URL.Host)
				}
			}
			for _, name := range slices.Sorted(maps.Keys(header)) {
				r := request(http.MethodPost, path)
				plain, _, _ := strings.Cut(name, "#")
				r.Header.Set(plain, header[name])
				try(r, name+": "+header[name])
			}
			for _, q := range query {
				r := request(http.MethodPost, path)
				r.URL.RawQuery = q
				try(r, "?"+q)
			}
		}
	}
	if n < 4000 || sent == 0 {
		t.Errorf("%d requests, %d sent", n, sent)
	}
	t.Logf("%d requests, %d sent", n, sent)
}

// A header that looks like a credential, and that nobody knows, stays here; a vendor's own and what has none arrive as they came.
func TestRightVendorGetsHeadersUnchanged(t *testing.T) {
	t.Parallel()
	g, to := recorded(t, public())
	own := map[string]string{
		"/v1/messages": "anthropic", "/v1/responses": "openai", "/v1beta/models/m:generateContent": "google",
	}
	header := map[string]map[string]string{
		"anthropic": {"X-Api-Key": keysOf["anthropic"], "Anthropic-Beta": "a,b", "Anthropic-Version": "2023-06-01", "X-Claude-Code-Session-Id": "s", "X-Stainless-Lang": "js"},
		"openai":    {"Authorization": `Bearer "` + keysOf["openai"] + `"`, "Openai-Organization": "org", "X-Codex-Turn-Token": "t", "Idempotency-Key": "i", "Session-Id": "s"},
		"google":    {"X-Goog-Api-Key": keysOf["google"], "X-Goog-User-Project": "p", "Authorization": "Bearer ya29.a0"},
	}
	common := map[string]string{"X-Datadog-Tags": "_dd.p.tid=66f0000000", "X-Request-Id": "risk-ant-1", "Traceparent": "00-0-0-01", "User-Agent": "xai-sdk/1.0 hf_hub", "X-Max-Tokens": "9"}
	for path, of := range own {
		r := request(http.MethodPost, path)
		for _, set := range []map[string]string{header[of], common} {
			for name, value := range set {
				r.Header.Set(name, value)
			}
		}
		r.Header.Set("X-Auth-Token", "0123456789abcdef")
		r.URL.RawQuery = "beta=true&page_token=x&max_tokens=3"
		want := r.Header.Clone()
		want.Del("X-Auth-Token")
		status, text := visit(g, r)
		got := to.take()
		if len(got) != 1 || got[0].URL.RawQuery != "beta=true&page_token=x&max_tokens=3" {
			t.Fatalf("%s: %d %s", path, status, text)
		}
		for name, values := range want {
			if !slices.Equal(got[0].Header[name], values) {
				t.Errorf("%s: %s is %q, was %q", path, name, got[0].Header[name], values)
			}
		}
		if got[0].Header.Get("X-Auth-Token") != "" {
			t.Errorf("%s: a token that nobody knows arrived", path)
		}
	}
}
