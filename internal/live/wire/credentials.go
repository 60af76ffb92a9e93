package wire

import (
	"cmp"
	"encoding/base64"
	"iter"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/secret"
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
	prefix, within    string // of the value; forms of keys are in [secret.Forms]
	issuer            string // the beginning of the issuer in a token of JSON (RFC 7519)
	is                Credential
}

// shapes returns the shapes of all vendors: those of the forms of keys that a vendor of models issues, and those that no form has.
var shapes = sync.OnceValue(func() (all []shape) {
	for _, f := range secret.Forms() {
		if f.Issuer != "" {
			all = append(all, shape{prefix: f.Begin, is: Credential{"a key " + f.Begin + "…", Vendor(f.Issuer), f.Cloud}})
		}
	}
	return append(all, otherShapes...)
})

var otherShapes = []shape{
	{header: "X-Goog-Api-Key", is: Credential{"the header x-goog-api-key", Google, true}},
	{parameter: "key", is: Credential{"the parameter key", Google, false}},

	{header: "Authorization", prefix: "AWS4-", is: Credential{"a signature of AWS", Amazon, true}},
	{header: "X-Amz-Security-Token", is: Credential{"the header x-amz-security-token", Amazon, true}},
	{parameter: "X-Amz-Signature", is: Credential{"a signature of AWS", Amazon, true}},
	{parameter: "X-Amz-Security-Token", is: Credential{"a signature of AWS", Amazon, true}},

	{header: "Api-Key", is: Credential{"the header api-key", Azure, false}},
	{header: "Ocp-Apim-Subscription-Key", is: Credential{"the header ocp-apim-subscription-key", Azure, false}},
	{parameter: "subscription-key", is: Credential{"the parameter subscription-key", Azure, false}},
	{issuer: "https://sts.windows.net/", is: Credential{"a token of Microsoft Entra", Azure, false}},
	{issuer: "https://login.microsoftonline.com/", is: Credential{"a token of Microsoft Entra", Azure, false}},
	{issuer: "https://accounts.google.com", is: Credential{"a token of Google", Google, true}},
	{issuer: "https://auth.openai.com", is: Credential{"the login of a ChatGPT plan", OpenAI, false}},

	{prefix: "sk-", within: "T3BlbkFJ", is: Credential{"a key sk-…", OpenAI, false}}, // in all older ones; plain sk- has many issuers
	{header: "Chatgpt-Account-Id", is: Credential{"the login of a ChatGPT plan", OpenAI, false}},
}

// carriers are the headers with keys and tokens, and parameters likewise, that vendors take. Those of one vendor begin with its prefix.
var (
	carriers = []string{
		"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "X-Amz-Security-Token", "Chatgpt-Account-Id", "Ocp-Apim-Subscription-Key",
	}
	parameters = []string{"key", "api_key", "api-key", "access_token", "subscription-key", "X-Amz-Signature", "X-Amz-Security-Token"}
	prefixes   = map[Vendor][]string{
		Anthropic: {"Anthropic-", "X-Claude-"}, Google: {"X-Goog-"}, Amazon: {"X-Amz-"}, Azure: {"X-Ms-", "Ocp-Apim-"}, gitHub: {"X-Github-", "Copilot-"},
		OpenAI: {"Openai-", "X-Openai-", "Oai-", "X-Oai-", "X-Codex-", "Chatgpt-", "Cookie"}, // chatgpt.com sets cookies
	}
)

// secretive matches names of headers and parameters that may have a credential.
var secretive = plain.Pattern(`(?i)(^|[-_])(auth|authorization|authentication|bearer|cookie|credentials?|jwt|passw(or)?d|secret|sig|signature|` +
	`token|apikey|(api|access|auth|client|private|secret|subscription)[-_]?key)$`)

// harmless are headers without credentials, except by mistake; those to the gateway are not sent.
var harmless = rawjson.Set("Accept", "Accept-Encoding", "Accept-Language", "Anthropic-Beta", "Anthropic-Version", "Content-Encoding", "Content-Length",
	"Content-Type", "Openai-Beta", "Traceparent", "Tracestate", "User-Agent")

const toGateway = "X-Condense-"

// packed matches what may be a key in base64, of either alphabet; standard is for that of RFC 4648, 4.
var (
	packed   = plain.Pattern(`(?i)[0-9a-z+/_-]{16,}`)
	standard = strings.NewReplacer("-", "+", "_", "/")
)

// Credentials returns the credentials of a request whose shape identifies their issuer, from whatever part of its headers and
// its query.
func Credentials(h http.Header, query string) []Credential {
	var found []Credential
	see := func(value string, usual bool, of func(*shape) bool) {
		var text strings.Builder
		text.WriteString(value)
		if escaped, err := url.QueryUnescape(value); err == nil && escaped != value {
			text.WriteString(" " + escaped)
		}
		for _, word := range packed().FindAllString(text.String(), -1) {
			plain, _ := base64.RawStdEncoding.DecodeString(standard.Replace(word))
			if strings.IndexFunc(string(plain), func(r rune) bool { return r < ' ' || r > '~' }) < 0 { // else it is no text
				text.WriteString(" " + string(plain))
			}
		}
		for i := range shapes() {
			if s := &shapes()[i]; of(s) && (!usual || secret.Shown(text.String())) && s.fits(text.String()) {
				found = append(found, s.is)
			}
		}
	}
	for name, values := range h {
		if strings.HasPrefix(name, toGateway) {
			continue
		}
		for _, value := range values {
			see(value, harmless[name], func(s *shape) bool { return s.header == name || s.header == "" && s.parameter == "" })
		}
	}
	for name, value := range inQuery(query) {
		see(value, false, func(s *shape) bool {
			return s.parameter != "" && strings.EqualFold(name, s.parameter) || s.header == "" && s.parameter == ""
		})
	}
	return found
}

// inQuery returns the parameters of a query, decoded as far as they can be.
func inQuery(query string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for pair := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
			raw, value, _ := strings.Cut(pair, "=")
			name, err := url.QueryUnescape(raw)
			if err != nil {
				name = raw
			}
			if plain, err := url.QueryUnescape(value); err == nil {
				value = plain
			}
			if !yield(name, value) {
				return
			}
		}
	}
}

// Strange returns the headers of a request that look like credentials, and are none that a vendor's host is known to take, and the
// first such parameter. They must not reach it: nobody can say whose they are. Hosts of the user's own may take any.
func (o Host) Strange(h http.Header, query string) (headers []string, parameter string) {
	if o.Of == "" {
		return nil, ""
	}
	for name := range h {
		own := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if secretive().MatchString(name) && !slices.Contains(carriers, name) && !slices.ContainsFunc(prefixes[o.Of], own) && !own(toGateway) {
			headers = append(headers, name)
		}
	}
	for name := range inQuery(query) {
		known := func(p string) bool { return strings.EqualFold(p, name) }
		if secretive().MatchString(name) && !paging().MatchString(name) && !slices.ContainsFunc(parameters, known) && o.Of != Azure {
			return headers, name
		}
	}
	return headers, ""
}

// paging matches names of parameters with the place in a list.
var paging = plain.Pattern(`(?i)(page|next|continuation|sync)[-_]?token$`)

// fits reports whether a text has the shape somewhere: keys follow a scheme, or stand in quotes, lists and assignments.
func (s *shape) fits(text string) bool {
	switch {
	case s.issuer != "":
		for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return !inToken(r) }) {
			for parts := strings.Split(word, "."); len(parts) >= inJWT; parts = parts[1:] {
				if strings.HasPrefix(issuerOf(parts), s.issuer) {
					return true
				}
			}
		}
		return false
	case s.prefix == "":
		return strings.TrimSpace(text) != ""
	}
	for rest := text; ; {
		i := strings.Index(rest, s.prefix)
		if i < 0 {
			return false
		}
		before := text[:len(text)-len(rest)+i]
		rest = rest[i:]
		word := rest
		if end := strings.IndexFunc(rest[len(s.prefix):], func(r rune) bool { return !inToken(r) }); end >= 0 {
			word = rest[:len(s.prefix)+end]
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		begins := before == "" || last != '-' && last != '_' && !unicode.IsLetter(last) && !unicode.IsDigit(last)
		if strings.HasSuffix(s.prefix, "=") { // names of values end so, too
			begins = before == "" || strings.ContainsRune(" \t\"'", last)
		}
		if begins && strings.Contains(word, s.within) {
			return true
		}
		rest = rest[len(s.prefix):]
	}
}

// inToken reports whether keys and tokens have a character.
func inToken(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_.+/", r)
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

// inJWT are the parts of a token of JSON: header, claims and signature.
const inJWT = 3

// issuerOf returns the issuer that a token of JSON names, given its parts; "" if these begin with none.
func issuerOf(parts []string) string {
	if !strings.HasPrefix(parts[0], "ey") {
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

// hosts are the public hosts of vendors, as patterns of [path.Match]. Hosts that clouds rent out are none of them.
var hosts = []struct {
	patterns string
	is       Host
}{
	{"*.anthropic.com *.claude.com claude.ai", Host{Of: Anthropic}},
	{"*.openai.com chatgpt.com", Host{Of: OpenAI}},
	{"*.googleapis.com", Host{Of: Google}},
	{"bedrock*.amazonaws.com* *.api.aws", Host{Of: Amazon}},
	{"models.inference.ai.azure.com", Host{Of: gitHub}},
	{"*.openai.azure.* *.cognitiveservices.azure.* *.services.ai.azure.com *.models.ai.azure.com *.inference.ai.azure.com", Host{Of: Azure}},
	{"openrouter.ai *.openrouter.ai", Host{Of: openRouter}},
	{"*.githubcopilot.com models.github.ai", Host{Of: gitHub, Unversioned: true}},
	{"api.perplexity.ai", Host{Of: "Perplexity", Unversioned: true}},
	{"api.groq.com", Host{Of: "Groq"}},
	{"api.x.ai", Host{Of: "xAI"}},
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
		for pattern := range strings.FieldsSeq(h.patterns) {
			if ok, err := path.Match(pattern, name); err == nil && ok {
				return h.is
			}
		}
	}
	return Host{}
}

// region matches the regions of Google Cloud.
var region = plain.Pattern(`^[a-z]+(-[a-z]+)?[0-9]*$`)

// VertexHost returns the host of Vertex AI in a region; the global one for a text that is no region.
func VertexHost(location string) string {
	const global = "aiplatform.googleapis.com"
	switch {
	case location == "us" || location == "eu":
		return "aiplatform." + location + ".rep.googleapis.com"
	case location == "global" || !region().MatchString(location):
		return global
	}
	return location + "-" + global
}
