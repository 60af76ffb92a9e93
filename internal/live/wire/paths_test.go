package wire_test

import (
	"net/http"
	"testing"

	"github.com/condensehq/condense/internal/live/wire"
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
		{"", "", "Access_Token=ya29.1", "a token ya29.…"},
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
