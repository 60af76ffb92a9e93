package wire

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/plain"
)

// A Vendor is the owner of an API, by the name that people know.
type Vendor string

// The vendors whose APIs a gateway forwards to.
const (
	Anthropic Vendor = "Anthropic"
	OpenAI    Vendor = "OpenAI"
	Google    Vendor = "Google"    // the Gemini API
	Vertex    Vendor = "Vertex AI" // Google Cloud: models of Google and of others
	Azure     Vendor = "Microsoft Azure"
	Amazon    Vendor = "Amazon Bedrock"
)

// Vendors whose paths, keys and hosts are recognized so that they are not sent to another vendor.
const (
	openRouter Vendor = "OpenRouter"
	gitHub     Vendor = "GitHub"
	chatGPT    Vendor = "ChatGPT"
	lmStudio   Vendor = "LM Studio"
	ollama     Vendor = "Ollama"
	anyVendor  Vendor = "" // a mistake in the path that clients of all vendors make
)

// An Endpoint describes a path. The zero value is an unknown path.
type Endpoint struct {
	// Of are the vendors whose API has the path: several if their APIs share it. It is empty for an unknown path, and
	// for a path of an API in Foreign.
	Of []Vendor
	// Also is another vendor whose servers answer the path, for clients that request it explicitly.
	Also Vendor
	// Methods are the HTTP methods of the path; nil for all.
	Methods []string
	// API is the shape of a conversation in the request; empty if it has none.
	API API
	// Count asks for the number of tokens only, and Compact for a compaction.
	Count, Compact bool
	// Unversioned means that the path is without the /v1 that the API has.
	Unversioned bool
	// Model and Location are the model and the region that the path names, and Stream means that it asks for a stream,
	// in the APIs in which the body says neither.
	Model, Location string
	Stream          bool
	// Requires is a member of the body without which the conversation is in the format of another vendor.
	Requires string
	// Control means that the path is served by another host of the vendor, which answers no prompts.
	Control bool
	// Own are the methods with which a gateway may ask for the path in the name of its own machine.
	Own []string

	// Foreign is the name of an API that the gateway does not read, and Owner its vendor; also of an API that a cloud serves with the
	// errors of its vendor.
	Foreign string
	Owner   Vendor
	// Advice tells the user how to get the path to its vendor; empty if the gateway knows the address by itself.
	Advice string
}

// Has reports whether a path is in the API of a vendor, or in no known API.
func (e *Endpoint) Has(v Vendor) bool {
	return len(e.Of) == 0 && e.Foreign == "" || slices.Contains(e.Of, v) || e.Also == v || e.Foreign != "" && e.Owner == v
}

// Allows reports whether a path can be asked with a method.
func (e *Endpoint) Allows(method string) bool {
	return e.Methods == nil || slices.Contains(e.Methods, method)
}

// A row of a table of paths: in a pattern, * is any text within a part, as are {model} and {location}, and ** at the
// end any parts, or none.
type row struct {
	pattern string
	is      Endpoint
}

var (
	post      = []string{"POST"}
	get       = []string{"GET"}
	anthropic = []Vendor{Anthropic}
	openAI    = []Vendor{OpenAI}
	both      = []Vendor{Anthropic, OpenAI}
	vertex    = []Vendor{Vertex}
	azure     = []Vendor{Azure}
	google    = []Vendor{Google}
	amazon    = []Vendor{Amazon}
)

const (
	cloud       = "v1/projects/*/locations/{location}/"
	vertexBeta  = "v1beta1/projects/*/locations/{location}/"
	claude      = cloud + "publishers/anthropic/models/"
	deployments = "deployments/{model}/"
)

// clouds are the paths of vendors that serve the models of others. They are searched before the endpoints.
var clouds = slices.Concat(bedrocks("model/{model}/"), bedrocks("model/arn:*/{model}/"), []row{
	{"model/**", Endpoint{Of: amazon, Advice: adviceBedrock}},
	{claude + "count-tokens:rawPredict", Endpoint{Of: vertex, Methods: post, API: Messages, Count: true}},
	{claude + "{model}:rawPredict", Endpoint{Of: vertex, Methods: post, API: Messages}},
	{claude + "{model}:streamRawPredict", Endpoint{Of: vertex, Methods: post, API: Messages, Stream: true}},
}, geminis(cloud+"publishers/google/models/", vertex), unread(vertex, cloud+"**"), geminis(vertexBeta+"publishers/google/models/", vertex),
	unread(vertex, vertexBeta+"** v1beta1/** v1/publishers/**"), azures("openai/"), azures(""), []row{
		{"anthropic/v1/messages", Endpoint{Of: azure, Owner: Anthropic, Methods: post, API: Messages, Advice: adviceAzure}},
		{"anthropic/v1/messages/count_tokens", Endpoint{Of: azure, Owner: Anthropic, Methods: post, API: Messages, Count: true, Advice: adviceAzure}},
		{"anthropic/**", Endpoint{Of: azure, Advice: adviceAzure}},
		{"openai/v1/chat/completions", Endpoint{Of: azure, Methods: post, API: Chat, Advice: adviceAzure}},
		{"openai/v1/responses", Endpoint{Of: azure, Methods: post, API: Responses, Advice: adviceAzure}},
		{"openai/v1/responses/compact", Endpoint{Of: azure, Methods: post, API: Responses, Compact: true, Advice: adviceAzure}},
		{"openai/responses", Endpoint{Of: azure, Methods: post, API: Responses, Advice: adviceAzure}}, // with api-version
		{"openai/**", Endpoint{Of: azure, Advice: adviceAzure}},
	}, geminis("v1beta/models/", google), geminis("v1beta/tunedModels/", google), geminis("v1alpha/models/", google),
	geminis("v1alpha/tunedModels/", google), geminis("v1/models/", google), geminis("v1/tunedModels/", google), []row{
		{"v1beta/openai/**", Endpoint{Foreign: "Gemini for clients of OpenAI", Owner: Google, Advice: adviceGemini}},
	}, unread(google, "v1beta/** v1alpha/** upload/v1*/** v1/tunedModels/**"), // and models with verbs
	unread(google, "v1/models/*:embed* v1/models/*:batch* v1/models/*:predict* v1/models/*:bidi* v1/models/*:async*"), []row{
		{"foundation-models", Endpoint{Of: amazon, Own: get, Control: true, Advice: adviceBedrock}},
		{"inference-profiles", Endpoint{Of: amazon, Own: get, Control: true, Advice: adviceBedrock}},
		{"foundation-models/**", Endpoint{Of: amazon, Control: true, Advice: adviceBedrock}},
		{"inference-profiles/**", Endpoint{Of: amazon, Control: true, Advice: adviceBedrock}},
		{"guardrail/**", Endpoint{Of: amazon, Advice: adviceBedrock}},
		{"async-invoke/**", Endpoint{Of: amazon, Advice: adviceBedrock}},
	})

// geminis are the paths of models of the Gemini API.
func geminis(path string, of []Vendor) []row {
	path += "{model}:"
	return []row{
		{path + "generateContent", Endpoint{Of: of, Methods: post, API: Gemini}},
		{path + "streamGenerateContent", Endpoint{Of: of, Methods: post, API: Gemini, Stream: true}},
		{path + "countTokens", Endpoint{Of: of, Methods: post, API: Gemini, Count: true}},
	}
}

// bedrocks are the paths of a model of Amazon Bedrock, whose ID can be an ARN with a slash.
func bedrocks(path string) []row {
	const version = "anthropic_version" // of the models of Anthropic; those of others have bodies of their own
	return []row{
		{path + "invoke", Endpoint{Of: amazon, Methods: post, Own: post, API: Messages, Requires: version, Advice: adviceBedrock}},
		{path + "invoke-with-response-stream", Endpoint{
			Of: amazon, Methods: post, Own: post, API: Messages, Requires: version, Stream: true, Advice: adviceBedrock,
		}},
		{path + "converse", Endpoint{Of: amazon, Methods: post, Own: post, API: Converse, Advice: adviceBedrock}},
		{path + "converse-stream", Endpoint{Of: amazon, Methods: post, Own: post, API: Converse, Stream: true, Advice: adviceBedrock}},
		{path + "count-tokens", Endpoint{Of: amazon, Methods: post, Own: post, Advice: adviceBedrock}}, // of a body that is not read
	}
}

// azures are the paths of deployments, below the root of a resource or below its /openai.
func azures(root string) []row {
	return []row{
		{root + deployments + "chat/completions", Endpoint{Of: azure, Methods: post, API: Chat, Advice: adviceAzure}},
		{root + "deployments/**", Endpoint{Of: azure, Advice: adviceAzure}},
	}
}

// endpoints are the paths of the APIs that the gateway reads or forwards. Paths below v1 also match without it. The
// first matching row counts.
var endpoints = slices.Concat([]row{
	{"v1/messages", Endpoint{Of: anthropic, Methods: post, API: Messages}},
	{"v1/messages/count_tokens", Endpoint{Of: anthropic, Methods: post, API: Messages, Count: true}},
	{"v1/complete", Endpoint{Of: anthropic, Methods: post}},

	{"v1/chat/completions", Endpoint{Of: openAI, Also: Anthropic, API: Chat, Methods: []string{"GET", "POST"}}},
	{"v1/completions", Endpoint{Of: openAI, Methods: post}},
	{"v1/responses", Endpoint{Of: openAI, Methods: post, API: Responses}},
	{"v1/responses/compact", Endpoint{Of: openAI, Methods: post, API: Responses, Compact: true}},
	{"v1/responses/input_tokens", Endpoint{Of: openAI, Methods: post, API: Responses, Count: true}},
	{"v1/embeddings", Endpoint{Of: openAI, Methods: post}},
	{"v1/moderations", Endpoint{Of: openAI, Methods: post}},
},
	unread(both, "v1/models/** v1/files/** v1/skills/** v1/agents/**"),
	unread(anthropic, "v1/messages/batches/** v1/organizations/** v1/experimental/**"), // the last: prompt tools
	// Managed agents.
	unread(anthropic, "v1/sessions/** v1/environments/** v1/deployments/** v1/vaults/** v1/memory_stores/** v1/user_profiles/**"),
	// Claude Code.
	unread(anthropic, "v1/mcp_servers/** v1/code/** v1/session_ingress/** v1/environment_providers/** v1/ultrareview/** v1/oauth/**"),
	unread(anthropic, "mcp-registry/** api/hello api/event_logging/** api/claude_*/** api/oauth/** api/organization/** api/organizations/**"),
	unread(anthropic, "api/eval/** api/web/** api/auth/** api/account/** api/bootstrap/**"),
	unread(openAI, "v1/chat/completions/** v1/responses/** v1/conversations/** v1/uploads/** v1/batches/** v1/images/** v1/audio/**"),
	unread(openAI, "v1/videos/** v1/realtime/** v1/assistants/** v1/threads/** v1/vector_stores/** v1/fine_tuning/** v1/containers/**"),
	unread(openAI, "v1/evals/** v1/chatkit/** v1/organization/** v1/projects/** v1/memories/** v1/alpha/**")) // the last two: Codex, alpha is search

// unread are paths of vendors whose bodies are only forwarded.
func unread(of []Vendor, patterns string) (rows []row) {
	for p := range strings.FieldsSeq(patterns) {
		rows = append(rows, row{p, Endpoint{Of: of}})
	}
	return rows
}

// Advice about requests of APIs that the gateway does not read.
const (
	adviceGemini = "Gemini's API for clients of OpenAI is --upstream openai=https://generativelanguage.googleapis.com/v1beta/openai, with a base " +
		"URL without /v1"
	adviceCodeAssist = "The login with Google has an API of its own, which the gateway does not read: use a key of the Gemini API (GEMINI_API_KEY)"
	adviceBedrock    = "Set --upstream bedrock=https://bedrock-runtime.REGION.amazonaws.com, and give the agent a key of Bedrock " +
		"(AWS_BEARER_TOKEN_BEDROCK), or let the gateway sign (serve.bedrock.sign: true)"
	adviceNoVersion = "Its paths have no /v1: remove it from the base URL"
	adviceAzure     = "Set --upstream azure=https://RESOURCE.openai.azure.com (or .services.ai.azure.com), and this gateway with /azure as the endpoint"
	adviceRoute     = "Set --upstream openai=https://openrouter.ai/api/v1, and this gateway with /v1 as base URL"
	adviceOllama    = "Its servers speak OpenAI's and Anthropic's APIs too: --upstream ollama=both+http://localhost:11434, and this gateway with " +
		"/ollama/v1 as base URL"
	adviceLocal = "Use the server's API for clients of OpenAI: --upstream openai=http://localhost:1234/v1, and this gateway with /v1 as base URL. " +
		"To pass its own API unread: --upstream local=pass+http://localhost:1234, with /local in the base URL"
	adviceChatGPT = "Codex needs only openai_base_url for condense; leave chatgpt_base_url as it was"
	adviceTwice   = "The client adds /v1 itself: remove it from the base URL"
)

func foreign(name string, of Vendor, advice string, patterns ...string) []row {
	return plain.Each(patterns, func(p string) row { return row{p, Endpoint{Foreign: name, Owner: of, Advice: advice}} })
}

// foreigners are paths of other vendors' APIs that are sent to a gateway by mistake. They are searched before the
// endpoints.
var foreigners = slices.Concat(
	foreign("Gemini Code Assist", Google, adviceCodeAssist, "v1internal*"),
	foreign(string(Amazon), Amazon, adviceNoVersion, "v1/model/**"),
	foreign("OpenRouter", openRouter, adviceRoute, "api/v1/**", "api/alpha/**"),
	foreign("LM Studio", lmStudio, adviceLocal, "api/v0/**"),
	foreign(string(ollama), ollama, adviceOllama, "api/chat", "api/generate", "api/tags", "api/show", "api/embed", "api/embeddings", "api/pull",
		"api/push", "api/create", "api/copy", "api/delete", "api/ps", "api/version", "api/me", "api/blobs/**"),
	foreign("ChatGPT", chatGPT, adviceChatGPT, "backend-api/**", "api/codex/**", "wham/**"),
	foreign("/v1 twice", anyVendor, adviceTwice, "v1/v1/**"),
)

var table = slices.Concat(clouds, foreigners, endpoints)

// patterns are the patterns of the table, by parts.
var patterns = func() [][]string {
	return plain.Each(table, func(r row) []string { return strings.Split(r.pattern, "/") })
}()

// longestPath is the length in bytes above which no path is known.
const longestPath = 4 << 10

const version = "v1"

// Locate describes a path, unescaped and without . and .. as parts.
func Locate(clean string) Endpoint {
	if len(clean) > longestPath {
		return Endpoint{}
	}
	parts := strings.FieldsFunc(clean, func(r rune) bool { return r == '/' })
	if len(parts) == 0 {
		return Endpoint{}
	}
	for i := range table {
		if match(patterns[i], parts) {
			return named(table[i].is, patterns[i], parts)
		}
	}
	if parts[0] == version {
		return Endpoint{}
	}
	for i := range table {
		if p := patterns[i]; p[0] == version && match(p[1:], parts) {
			e := named(table[i].is, p[1:], parts)
			e.Unversioned = true
			return e
		}
	}
	return Endpoint{}
}

// plainPath matches paths that every server reads alike, decoded once.
var plainPath = plain.Pattern(`^(/[A-Za-z0-9][A-Za-z0-9._:-]*)+$`)

// MayOwn reports whether a gateway may ask for a path, escaped, in the name of its own machine. It is strict about the form:
// only the name of a model can be escaped, and only a list has a query.
func MayOwn(method, escaped, query string) bool {
	decoded, err := url.PathUnescape(escaped)
	if err != nil || !plainPath().MatchString(decoded) {
		return false
	}
	first, rest, _ := strings.Cut(escaped[1:], "/")
	last := rest[strings.LastIndexByte(rest, '/')+1:]
	e := Locate(decoded)
	return slices.Contains(e.Own, method) && !strings.Contains(first+last, "%") && (query == "" || method == "GET")
}

// The places in patterns whose text is a field of the endpoint.
const (
	modelPlace    = "{model}"
	locationPlace = "{location}"
)

// named returns the endpoint with the names that are in a path that matches its pattern.
func named(e Endpoint, pattern, parts []string) Endpoint {
	for i, p := range pattern {
		if before, after, ok := strings.Cut(p, modelPlace); ok {
			e.Model = strings.TrimSuffix(strings.TrimPrefix(parts[i], before), after)
		} else if p == locationPlace {
			e.Location = parts[i]
		}
	}
	return e
}

// match reports whether a path matches a pattern, by parts.
func match(pattern, parts []string) bool {
	for i, p := range pattern {
		if p == "**" {
			return true
		}
		if i == len(parts) {
			return false
		}
		if p == parts[i] {
			continue
		}
		if before, after, ok := strings.Cut(p, modelPlace); ok {
			if n := len(before) + len(after); len(parts[i]) <= n || !strings.HasPrefix(parts[i], before) || !strings.HasSuffix(parts[i], after) {
				return false
			}
			continue
		}
		if p == locationPlace {
			continue
		}
		if !strings.Contains(p, "*") {
			return false
		}
		if ok, err := path.Match(p, parts[i]); err != nil || !ok {
			return false
		}
	}
	return len(pattern) == len(parts)
}

// Begins reports whether a name is the first part of a known path, so that an upstream cannot have it.
func Begins(name string) bool {
	return slices.ContainsFunc(patterns, func(p []string) bool { return p[0] == name || p[0] == version && len(p) > 1 && p[1] == name })
}
