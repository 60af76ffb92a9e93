package wire

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/condensehq/condense/internal/rawjson"
)

// A Credential is a request's proof of the paying account, by its shape.
type Credential struct {
	Name  string // for people, and never the value
	Of    Vendor // its issuer
	Cloud bool   // it is for the API of this vendor only; others are accepted by gateways of any kind
}

// A shape recognizes a credential: by a header or parameter that only one vendor has, or by the beginning of its
// value.
type shape struct {
	header, parameter string // empty: any that has a credential
	prefix, within    string // of the value
	issuer            string // the beginning of the issuer in a token of JSON (RFC 7519)
	is                Credential
}

var shapes = []shape{
	{header: "X-Goog-Api-Key", is: Credential{"the header x-goog-api-key", Google, true}},
	{prefix: "ya29.", is: Credential{"a token ya29.…", Google, true}},
	{prefix: "AIza", is: Credential{"a key AIza…", Google, false}},
	{parameter: "key", is: Credential{"the parameter key", Google, false}},

	{header: "Authorization", prefix: "AWS4-", is: Credential{"a signature of AWS", Amazon, true}},
	{header: "X-Amz-Security-Token", is: Credential{"the header x-amz-security-token", Amazon, true}},
	{parameter: "X-Amz-Signature", is: Credential{"a signature of AWS", Amazon, true}},
	{parameter: "X-Amz-Security-Token", is: Credential{"a signature of AWS", Amazon, true}},
	{prefix: "AKIA", is: Credential{"a key AKIA…", Amazon, true}},
	{prefix: "ASIA", is: Credential{"a key ASIA…", Amazon, true}},
	{prefix: "ABSK", is: Credential{"a key ABSK…", Amazon, false}},
	{prefix: "bedrock-api-key-", is: Credential{"a key bedrock-api-key-…", Amazon, false}},

	{header: "Api-Key", is: Credential{"the header api-key", Azure, false}},
	{header: "Ocp-Apim-Subscription-Key", is: Credential{"the header ocp-apim-subscription-key", Azure, false}},
	{parameter: "subscription-key", is: Credential{"the parameter subscription-key", Azure, false}},
	{issuer: "https://sts.windows.net/", is: Credential{"a token of Microsoft Entra", Azure, false}},
	{issuer: "https://login.microsoftonline.com/", is: Credential{"a token of Microsoft Entra", Azure, false}},
	{issuer: "https://accounts.google.com", is: Credential{"a token of Google", Google, true}},
	{issuer: "https://auth.openai.com", is: Credential{"the login of a ChatGPT plan", OpenAI, false}},

	{prefix: "sk-ant-", is: Credential{"a key sk-ant-…", Anthropic, false}},
	{prefix: "sk-proj-", is: Credential{"a key sk-proj-…", OpenAI, false}},
	{prefix: "sk-svcacct-", is: Credential{"a key sk-svcacct-…", OpenAI, false}},
	{prefix: "sk-admin-", is: Credential{"a key sk-admin-…", OpenAI, false}},
	{prefix: "sk-", within: "T3BlbkFJ", is: Credential{"a key sk-…", OpenAI, false}}, // in all older ones; plain sk- has many issuers
	{header: "Chatgpt-Account-Id", is: Credential{"the login of a ChatGPT plan", OpenAI, false}},
	{prefix: "sk-or-", is: Credential{"a key sk-or-…", openRouter, false}},

	{prefix: "gsk_", is: Credential{"a key gsk_…", "Groq", false}},
	{prefix: "xai-", is: Credential{"a key xai-…", "xAI", false}},
	{prefix: "pplx-", is: Credential{"a key pplx-…", "Perplexity", false}},
	{prefix: "hf_", is: Credential{"a token hf_…", "Hugging Face", false}},
	{prefix: "nvapi-", is: Credential{"a key nvapi-…", "NVIDIA", false}},
	{prefix: "csk-", is: Credential{"a key csk-…", "Cerebras", false}},
	{prefix: "ghp_", is: Credential{"a token ghp_…", gitHub, false}},
	{prefix: "gho_", is: Credential{"a token gho_…", gitHub, false}},
	{prefix: "ghu_", is: Credential{"a token ghu_…", gitHub, false}},
	{prefix: "ghs_", is: Credential{"a token ghs_…", gitHub, false}},
	{prefix: "github_pat_", is: Credential{"a token github_pat_…", gitHub, false}},
	{prefix: "tid=", is: Credential{"a token of GitHub Copilot", gitHub, false}},
}

// carriers are the headers with keys and tokens, and parameters likewise.
var (
	carriers = []string{
		"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "X-Amz-Security-Token", "Chatgpt-Account-Id", "Ocp-Apim-Subscription-Key",
	}
	parameters = []string{"key", "api_key", "api-key", "access_token", "subscription-key", "X-Amz-Signature", "X-Amz-Security-Token"}
)

// Credentials returns the credentials of a request whose shape identifies their issuer, from its headers and its
// query.
func Credentials(h http.Header, query string) []Credential {
	var found []Credential
	see := func(value string, of func(*shape) bool) {
		for i := range shapes {
			if s := &shapes[i]; of(s) && s.fits(value) {
				found = append(found, s.is)
			}
		}
	}
	for _, name := range carriers {
		for _, value := range h[name] {
			see(value, func(s *shape) bool { return s.header == name || s.header == "" && s.parameter == "" })
		}
	}
	for pair := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		raw, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(raw)
		if err != nil {
			continue
		}
		if plain, err := url.QueryUnescape(value); err == nil {
			value = plain
		}
		for _, known := range parameters {
			if strings.EqualFold(name, known) {
				see(value, func(s *shape) bool { return s.parameter == known || s.header == "" && s.parameter == "" })
			}
		}
	}
	return found
}

// fits reports whether a value has the shape: one of its words, because it can follow a scheme.
func (s *shape) fits(value string) bool {
	if s.issuer != "" {
		return strings.HasPrefix(issuerOf(value), s.issuer)
	}
	if s.prefix == "" {
		return strings.TrimSpace(value) != ""
	}
	for word := range strings.FieldsSeq(value) {
		if strings.HasPrefix(word, s.prefix) && strings.Contains(word, s.within) {
			return true
		}
	}
	return false
}

// SignedBy returns the ID of the access key with which a request is signed for Amazon; empty if it is not signed. The
// ID is no secret.
func SignedBy(h http.Header, query string) string {
	const scheme, parameter = "AWS4-HMAC-SHA256", "Credential="
	_, after, ok := strings.Cut(h.Get("Authorization"), parameter)
	if !strings.HasPrefix(h.Get("Authorization"), scheme) || !ok {
		if !strings.Contains(query, "X-Amz-Signature=") {
			return ""
		}
		_, after, _ = strings.Cut(query, "X-Amz-"+parameter)
	}
	id, _, _ := strings.Cut(strings.Replace(after, "%2F", "/", 1), "/")
	return cmp.Or(id, "?")
}

// issuerOf returns the issuer that a token of JSON names, which is the last word of a value; "" if that is none.
func issuerOf(value string) string {
	parts := strings.Split(value[strings.LastIndexByte(value, ' ')+1:], ".")
	if len(parts) != 3 || !strings.HasPrefix(parts[0], "ey") { // header, claims and signature
		return ""
	}
	claims, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return ""
	}
	return rawjson.Text(rawjson.Field(claims, "iss"))
}

// A Host describes a public host of a vendor.
type Host struct {
	Of          Vendor // its owner; empty for a host that may be a gateway of the user's own
	Unversioned bool   // its paths have no /v1
}

// hosts are the public hosts of vendors. Hosts that clouds rent out are none of them.
var hosts = []struct {
	pattern string // of [path.Match]
	is      Host
}{
	{"*.anthropic.com", Host{Of: Anthropic}},
	{"*.claude.com", Host{Of: Anthropic}},
	{"claude.ai", Host{Of: Anthropic}},
	{"*.openai.com", Host{Of: OpenAI}},
	{"chatgpt.com", Host{Of: OpenAI}},
	{"*.googleapis.com", Host{Of: Google}},
	{"bedrock*.amazonaws.com*", Host{Of: Amazon}},
	{"*.api.aws", Host{Of: Amazon}},
	{"models.inference.ai.azure.com", Host{Of: gitHub}},
	{"*.openai.azure.*", Host{Of: Azure}},
	{"*.cognitiveservices.azure.*", Host{Of: Azure}},
	{"*.services.ai.azure.com", Host{Of: Azure}},
	{"*.models.ai.azure.com", Host{Of: Azure}},
	{"*.inference.ai.azure.com", Host{Of: Azure}},
	{"openrouter.ai", Host{Of: openRouter}},
	{"*.openrouter.ai", Host{Of: openRouter}},
	{"*.githubcopilot.com", Host{Of: gitHub, Unversioned: true}},
	{"models.github.ai", Host{Of: gitHub, Unversioned: true}},
	{"api.groq.com", Host{Of: "Groq"}},
	{"api.x.ai", Host{Of: "xAI"}},
	{"api.perplexity.ai", Host{Of: "Perplexity", Unversioned: true}},
	{"*.huggingface.co", Host{Of: "Hugging Face"}},
	{"*.nvidia.com", Host{Of: "NVIDIA"}},
	{"api.cerebras.ai", Host{Of: "Cerebras"}},
	{"api.deepseek.com", Host{Of: "DeepSeek"}},
	{"api.mistral.ai", Host{Of: "Mistral"}},
	{"api.moonshot.*", Host{Of: "Moonshot"}},
	{"api.together.*", Host{Of: "Together"}},
	{"api.fireworks.ai", Host{Of: "Fireworks"}},
	{"api.z.ai", Host{Of: "Z.ai"}},
}

// HostOf describes a host, given without its port.
func HostOf(name string) Host {
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	for _, h := range hosts {
		if ok, err := path.Match(h.pattern, name); err == nil && ok {
			return h.is
		}
	}
	return Host{}
}

// region matches the regions of Google Cloud.
var region = regexp.MustCompile(`^[a-z]+(-[a-z]+)?[0-9]*$`)

// VertexHost returns the host of Vertex AI in a region; the global one for a text that is no region.
func VertexHost(location string) string {
	const global = "aiplatform.googleapis.com"
	switch {
	case location == "us" || location == "eu":
		return "aiplatform." + location + ".rep.googleapis.com"
	case location == "global" || !region.MatchString(location):
		return global
	}
	return location + "-" + global
}
