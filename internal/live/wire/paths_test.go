package wire_test

import (
	"net/http"
	"testing"

	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/secret"
)

// IDs of models and of other things can hold signs that other vendors' APIs use.
func TestIDsAreNoPathsOfOtherVendors(t *testing.T) {
	for path, of := range map[string]wire.Vendor{
		"/v1/models/ft:gpt-4o:orgName::abCd": wire.OpenAI, "/v1/models/qwen3:32b": wire.OpenAI, "/v1/models/meta/llama": wire.OpenAI,
		"/models/gpt-5":                wire.OpenAI,
		"/v1/files/a:generate/content": wire.OpenAI, "/v1/organizations/model/x": wire.Anthropic, "/v1/projects/p/roles": wire.OpenAI,
		"/api/claude_code/settings": wire.Anthropic,
		"/api/claude_cli_feedback":  wire.Anthropic, "/v1/chat/completions/chatcmpl-1/messages": wire.OpenAI,
	} {
		if e := wire.Locate(path); !e.Has(of) || e.Foreign != "" || len(e.Of) == 0 {
			t.Errorf("%s is %+v", path, e)
		}
	}
	for _, path := range []string{
		"", "/", "/v1", "/v1/", "/x", "/v1/message", "/v1/messages/x", "/V1/messages", "/chat", "/v1/chat",
		"/messagesx",
	} {
		if e := wire.Locate(path); len(e.Of) > 0 || e.Foreign != "" {
			t.Errorf("%s is %+v", path, e)
		}
	}
}

// A credential is recognized wherever it is, and nothing else is.
func TestShapesOfCredentials(t *testing.T) {
	for _, tt := range []struct{ header, value, query, name string }{
		{"Authorization", "Bearer sk-ant-1", "", "a key sk-ant-…"},
		{"Authorization", "sk-ant-1", "", "a key sk-ant-…"},
		{"X-Api-Key", " sk-or-1 ", "", "a key sk-or-…"},
		{"", "", "a=b;key=AIza1", "a key AIza…"},
		{"", "", "Access_Token=ya29.1", "a key ya29.…"},
		{"", "", "X-Amz-Signature=0", "a signature of AWS"},
		{"Authorization", "Bearer my-sk-ant-1", "", ""},
		{"Authorization", "Bearer sk-1234", "", ""},
		{"User-Agent", "sk-ant-1", "", ""},
		{"", "", "model=sk-ant-1&key=", "a key sk-ant-…"},
		{"Authorization", `Token="sk-ant-1"`, "", "a key sk-ant-…"},
		{"X-Unknown", "a=1,sk-ant-1", "", "a key sk-ant-…"},
		{"Api-Key", "", "", ""},
	} {
		h := http.Header{}
		if tt.header != "" {
			h.Set(tt.header, tt.value)
		}
		got := ""
		if found := wire.Credentials(h, tt.query); len(found) > 0 {
			got = found[0].Name
		}
		if got != tt.name {
			t.Errorf("%s: %s ?%s: got %q, want %q", tt.header, tt.value, tt.query, got, tt.name)
		}
	}
	for host, of := range map[string]wire.Vendor{
		"api.anthropic.com": wire.Anthropic, "API.OpenAI.com.": wire.OpenAI, "eu.api.openai.com": wire.OpenAI,
		"openai.com.example.com": "", "myapi.anthropic.com.evil.example": "",
		"ec2-1-2-3-4.compute.amazonaws.com": "", "vm.westus.cloudapp.azure.com": "", "localhost": "", "192.0.2.1": "",
	} {
		if got := wire.HostOf(host).Of; got != of {
			t.Errorf("%s is of %q, want %q", host, got, of)
		}
	}
}

// TestEachVendorsKeysHaveOneForm: the forms of keys are one table for redaction and for the rule that no vendor gets the key of another,
// so that a vendor with a host and without a form, or with a form that names no such vendor, is a mistake.
func TestEachVendorsKeysHaveOneForm(t *testing.T) {
	hosts := map[wire.Vendor]string{
		wire.Anthropic: "api.anthropic.com", wire.OpenAI: "api.openai.com", wire.Google: "generativelanguage.googleapis.com", wire.Amazon: "bedrock-runtime.us-east-1.amazonaws.com",
		"OpenRouter": "openrouter.ai", "GitHub": "api.githubcopilot.com", "Groq": "api.groq.com", "xAI": "api.x.ai", "Perplexity": "api.perplexity.ai",
		"Hugging Face": "router.huggingface.co", "NVIDIA": "integrate.api.nvidia.com", "Cerebras": "api.cerebras.ai", "Together": "api.together.xyz", "Fireworks": "api.fireworks.ai",
	}
	has := map[wire.Vendor]bool{}
	for _, f := range secret.Forms() {
		found := wire.Credentials(http.Header{"X-Api-Key": {f.Begin + "0123"}}, "")
		if f.Issuer == "" {
			if len(found) > 0 {
				t.Errorf("a key %s… is %v, and its form names no vendor", f.Begin, found)
			}
			continue
		}
		of := wire.Vendor(f.Issuer)
		if has[of] = true; len(found) == 0 || found[0].Of != of || found[0].Cloud != f.Cloud {
			t.Errorf("a key %s… of %s is %v", f.Begin, of, found)
		}
		if got := wire.HostOf(hosts[of]).Of; got != of {
			t.Errorf("a key %s…: %s has no host of this name, but %q", f.Begin, of, got)
		}
	}
	for of := range hosts {
		if !has[of] {
			t.Errorf("no key of %s has a form", of)
		}
	}
}
