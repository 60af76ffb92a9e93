// Package upstream is a vendor of language models for tests: an HTTP handler that speaks Anthropic Messages, OpenAI
// Chat Completions and Responses, Google's generateContent and Amazon Bedrock, plays an agent's loop
// by a script, and is as strict as the vendors are.
//
// It refuses the same requests with the same texts: prompts above its window, calls without results, misplaced roles,
// too many cache markers, thinking that was changed or whose prefix was. It is deterministic: identifiers, signatures
// and numbers are functions of the requests, and its clock is set by the test. Requests and their faults are
// recorded.
//
// Tokens are counted by a fixed rule: the bytes of the prompt's blocks as compact JSON with sorted keys and without
// cache markers, divided by [Options.BytesPerToken], rounded up. The data of an image counts as 6,400 bytes.
//
// The cache of prompts works like the vendors': of Anthropic, entries at markers, found up to 20 positions before a
// marker, for five minutes or an hour from the start of the last request that used them; of OpenAI, all prefixes, in
// steps of 128 tokens. Not simulated: edits of the vendor (context_management, compaction) and older models that drop
// thinking when the user says something.
//
// Sources of rules and texts: the vendors' API references and the errors that the APIs return.
package upstream

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// API is a wire format.
type API string

// The wire formats.
const (
	Messages  API = "messages"  // Anthropic Messages
	Chat      API = "chat"      // OpenAI Chat Completions
	Responses API = "responses" // OpenAI Responses
	Gemini    API = "gemini"    // Google's generateContent
	Converse  API = "converse"  // Amazon Bedrock's Converse
)

// Options configure a vendor. The zero value is usable.
type Options struct {
	// Script is the model's behaviour in each conversation, one step per request that counts as a turn. Nil is
	// Loop(45, 6000, nil). After the last step every turn is answered with the text "Done.".
	Script []Step
	// Window is the number of tokens that a prompt may have; 0 is 200,000.
	Window int
	// BytesPerToken is the rule for counting; 0 is 4.
	BytesPerToken float64
	// CountsTwice lets the input tokens of the Messages API include those that were "read" from the cache, or "all"
	// tokens; "" is neither.
	CountsTwice string
	// StreamOverflow reports a prompt above the window in a stream after a status of 200: Responses only.
	StreamOverflow bool
	// NoCompaction is the vendor's reaction to a request for a compaction: "refuse" it as unknown, or "ignore" it and
	// answer as always. "" is to compact.
	NoCompaction string
	// Model returns the rules for a model; nil is modelOf.
	Model func(name string) Model
	// Now is the clock; nil is a clock that never moves.
	Now func() time.Time
	// SubAgents is the script of conversations whose requests name a sub-agent; nil is Script.
	SubAgents []Step
	// ByCredential makes one conversation of all turns with one credential and sub-agent. It is for agents that send
	// no identifier of a session: without it, the identifiers of calls and the first text of the user tell
	// conversations apart.
	ByCredential bool
	// Account returns the answer to a request for an account of the work, which is no turn; nil answers it like a turn.
	Account func(Record) string
	// Secrets are the secrets of AWS access keys, by ID: requests to Amazon Bedrock are signed with one, or have a key.
	Secrets map[string]string
	// NoSockets refuses WebSockets.
	NoSockets bool
	// Fault returns the failure of the answer to a request; nil, or a nil result, is none. It is called for every
	// request that is not refused, from several goroutines.
	Fault func(Record) *Fault
}

// A Step is one answer of the model.
type Step struct {
	Text     string   // said before the calls, or the answer if there are none
	Commands []string // run by the client's shell tool, one call each
	Calls    []Call   // of other tools, after the commands
	// Make returns more calls, depending on the prompt. It may be called several times for one step.
	Make func(body []byte) []Call
}

// A Call is a call of the client's tool of that name, prefixed with its namespace if it has one. If the client does not have
// the tool, a program calls it in Codex' code mode; otherwise it is left out.
type Call struct {
	Tool  string
	Input map[string]any
}

// A Model has the rules for one model.
type Model struct {
	Bound    bool   // thinking is bound to everything before it
	Thinking string // the only kind that is accepted besides none: adaptive or enabled; "" is both
	Minimum  int    // tokens of the smallest prefix that is cached
	Prefill  bool   // the last message may be the assistant's
	Writes   bool   // OpenAI: usage reports tokens written to the cache
}

// models are the first match of a part of the name. Minimum: Anthropic's documentation on prompt caching.
var models = []struct {
	part string
	Model
}{
	{"fable-5-1", Model{Bound: true, Thinking: "adaptive", Minimum: 512}},
	{"mythos-5-1", Model{Bound: true, Thinking: "adaptive", Minimum: 512}},
	{"opus-5-5", Model{Bound: true, Thinking: "adaptive", Minimum: 512}},
	{"sonnet-5-5", Model{Bound: true, Thinking: "adaptive", Minimum: 512}},
	{"opus-5", Model{Thinking: "adaptive", Minimum: 512}},
	{"fable-5", Model{Thinking: "adaptive", Minimum: 512}},
	{"sonnet-5", Model{Thinking: "adaptive", Minimum: 1024}},
	{"opus-4-8", Model{Thinking: "adaptive", Minimum: 1024}},
	{"opus-4-7", Model{Thinking: "adaptive", Minimum: 2048}},
	{"opus-4-6", Model{Minimum: 4096}},
	{"opus-4-5", Model{Minimum: 4096, Prefill: true, Thinking: "enabled"}},
	{"haiku-4-5", Model{Minimum: 4096, Prefill: true, Thinking: "enabled"}},
	{"sonnet-4-5", Model{Minimum: 1024, Prefill: true, Thinking: "enabled"}},
	{"claude", Model{Minimum: 1024}},
	{"gpt-5.6", Model{Minimum: 1024, Writes: true}},
	{"gpt-6", Model{Minimum: 1024, Writes: true}},
}

// modelOf returns the rules for the model of that name.
func modelOf(name string) Model {
	for _, m := range models {
		if strings.Contains(name, m.part) {
			return m.Model
		}
	}
	return Model{Minimum: 1024}
}

// A Record is one request and its outcome.
type Record struct {
	N            int // from 1, in the order of arrival
	API          API // empty for other paths
	Cloud        Cloud
	Method, Path string
	Query        string
	Header       http.Header
	Body         []byte // as it came, possibly compressed
	Sum          string // SHA-256 of Body, in hexadecimal
	Session      string // the client's identifier of the session, "" if there is none
	Agent        string // the sub-agent's
	Conversation string // the vendor's name for the conversation; "" for side calls and refused requests
	Model        string
	Stream       bool
	Side         string // why the request is no turn of a conversation; "" if it is one
	Step         int    // the step that was played, from 1
	Tokens       int    // of the prompt
	Status       int
	Rule         string // the rule that the request broke, such as "pairs" or "window"; "" if it was accepted
	Error        string // the text of the refusal
	Usage        Usage
	Ideal        int             // tokens of the prompt that were sent before, by any request with the same credential, model and thinking
	Gone         <-chan struct{} // closed when the client went away before the answer was complete
	Finished     <-chan struct{} // closed when the request has been answered, or given up

	Socket bool // Body is a frame of a WebSocket

	gone, finished chan struct{}
	route          route
	session        *session          // of a WebSocket; nil over HTTP
	items          []json.RawMessage // of the whole prompt, if the answer can be continued
	keeps          bool              // the vendor stores the answer
}

// Prompt is the body, of Responses with all items of the history that it continues.
func (r *Record) Prompt() []byte {
	if r.items == nil {
		return r.Body
	}
	return encode(object{"input": r.items})
}

// Usage is the vendor's report, in tokens. Prompt is the whole prompt.
type Usage struct{ Prompt, CacheRead, CacheWrite, Output int }

// A Vendor answers requests. It is safe for concurrent use.
type Vendor struct {
	o      Options
	memory *memory

	mu            sync.Mutex
	records       []*Record
	conversations map[string]*conversation
	cache         cache
	breaks        []Break
	stored        held
	forgotten     int // records before this one are
	sockets       map[*websocket.Conn]context.CancelFunc
}

// New returns a vendor.
func New(o Options) *Vendor {
	if o.Script == nil {
		o.Script = Loop(45, 6000, nil)
	}
	o.Window = cmp.Or(o.Window, 200_000)
	o.BytesPerToken = cmp.Or(o.BytesPerToken, 4)
	if o.Model == nil {
		o.Model = modelOf
	}
	if o.Now == nil {
		o.Now = func() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }
	}
	return &Vendor{
		o: o, memory: newMemory(), conversations: map[string]*conversation{}, cache: cache{ever: map[prefix]bool{}},
		stored: held{}, sockets: map[*websocket.Conn]context.CancelFunc{},
	}
}

// Records returns all requests so far, in the order of arrival.
func (v *Vendor) Records() []Record {
	v.mu.Lock()
	defer v.mu.Unlock()
	return plain.Each(v.records, func(r *Record) Record { return *r })
}

// Refusals returns the requests that broke a rule, without those that were only too large.
func (v *Vendor) Refusals() []Record {
	return slices.DeleteFunc(v.Records(), func(r Record) bool { return r.Rule == "" || r.Rule == "window" })
}

// Turns returns the accepted requests that counted as turns of a conversation.
func (v *Vendor) Turns() []Record {
	return slices.DeleteFunc(v.Records(), func(r Record) bool { return r.Step == 0 })
}

// Breaks returns the places where a prompt did not continue the previous one of its conversation.
func (v *Vendor) Breaks() []Break {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.breaks)
}

// Cached returns the tokens read from the cache by the turns, and the number that an ideal cache would have read.
func (v *Vendor) Cached() (read, ideal int) {
	for _, r := range v.Turns() {
		read += r.Usage.CacheRead
		ideal += r.Ideal
	}
	return read, ideal
}

// Played returns the number of steps played, by conversation.
func (v *Vendor) Played() map[string]int {
	v.mu.Lock()
	defer v.mu.Unlock()
	played := map[string]int{}
	for _, c := range v.conversations {
		played[c.id] = c.played
	}
	return played
}

// tokens returns the tokens of so many bytes.
func (v *Vendor) tokens(n int) int {
	return int(math.Ceil(float64(n) / v.o.BytesPerToken))
}

// refusal is an error that the vendor answers with.
type refusal struct {
	status int
	rule   string
	kind   string // Anthropic's error type, or OpenAI's code
	param  string // OpenAI only
	text   string
}

// invalid is a refusal with status 400.
func invalid(rule, text string) *refusal { return &refusal{status: 400, rule: rule, text: text} }

// render returns the body of the refusal. n makes the identifier of the request.
func (f *refusal) render(api API, n int) []byte {
	switch api {
	case Gemini:
		return encode(f.google())
	case Converse:
		return encode(object{"message": f.text})
	case Chat, Responses:
		o := object{"message": f.text, "type": "invalid_request_error", "param": nil, "code": nil}
		if f.param != "" {
			o["param"] = f.param
		}
		if f.kind != "" {
			o["code"] = f.kind
		}
		if f.status == http.StatusTooManyRequests {
			o["type"] = "rate_limit_error"
		} else if f.status >= 500 {
			o["type"] = "server_error"
		}
		return encode(object{"error": o})
	case Messages:
	}
	kind := cmp.Or(f.kind, "invalid_request_error")
	return encode(object{"type": "error", "error": object{"type": kind, "message": f.text}, "request_id": identifier("req", n)})
}

type object = map[string]any

// encode returns the JSON of v: compact, keys sorted. Everything that is encoded here came from JSON or is plain data.
func encode(v any) []byte {
	text, err := rawjson.Encode(v)
	if err != nil {
		panic("upstream: " + err.Error()) // a fault of this package
	}
	return bytes.TrimSuffix(text, []byte("\n"))
}

// digest is a short name of parts, in hexadecimal.
func digest(parts ...string) string {
	sum := sha256.Sum256(encode(parts))
	return hex.EncodeToString(sum[:6])
}

// A route is a parsed path.
type route struct {
	api    API
	cloud  Cloud
	model  string // "" if the body says it
	stream bool
	count  bool

	host, escaped string // as they came
}

// A Cloud serves the models of other vendors, with paths of its own.
type Cloud string

// The clouds.
const (
	Vertex  Cloud = "vertex"  // Anthropic Messages on Vertex AI: the model is in the path
	Azure   Cloud = "azure"   // deployments of Azure OpenAI: the model is in the path
	Foundry Cloud = "foundry" // Anthropic Messages in Microsoft Foundry
	Bedrock Cloud = "bedrock" // Amazon Bedrock: InvokeModel with Anthropic Messages, and Converse
)

// google is the path of a model of the Gemini API, or of Vertex AI.
const google = `^/(?:v1beta|v1|v1beta1/projects/[^/]+/locations/[^/]+/publishers/google)/models/([^/:]+)`

// paths are the requests that are prompts. The group is the model.
var paths = []struct {
	pattern *regexp.Regexp
	is      route
}{
	{regexp.MustCompile(`^/v1/messages$`), route{api: Messages}},
	{regexp.MustCompile(`^/v1/messages/count_tokens$`), route{api: Messages, count: true}},
	{regexp.MustCompile(`^/v1/chat/completions$`), route{api: Chat}},
	{regexp.MustCompile(`^(?:/openai)?/v1/responses$`), route{api: Responses}},
	{regexp.MustCompile(`^/v1/projects/[^/]+/locations/[^/]+/publishers/anthropic/models/count-tokens:rawPredict$`), route{api: Messages, cloud: Vertex, count: true}},
	{regexp.MustCompile(`^/v1/projects/[^/]+/locations/[^/]+/publishers/anthropic/models/([^/:]+):rawPredict$`), route{api: Messages, cloud: Vertex}},
	{regexp.MustCompile(`^/v1/projects/[^/]+/locations/[^/]+/publishers/anthropic/models/([^/:]+):streamRawPredict$`), route{api: Messages, cloud: Vertex, stream: true}},
	{regexp.MustCompile(`^/openai/deployments/([^/]+)/chat/completions$`), route{api: Chat, cloud: Azure}},
	{regexp.MustCompile(`^/anthropic/v1/messages$`), route{api: Messages, cloud: Foundry}},
	{regexp.MustCompile(`^/anthropic/v1/messages/count_tokens$`), route{api: Messages, cloud: Foundry, count: true}},
	{regexp.MustCompile(google + `:generateContent$`), route{api: Gemini}},
	{regexp.MustCompile(google + `:streamGenerateContent$`), route{api: Gemini, stream: true}},
	{regexp.MustCompile(google + `:countTokens$`), route{api: Gemini, count: true}},
	{regexp.MustCompile(`^/model/(.+)/invoke$`), route{api: Messages, cloud: Bedrock}},
	{regexp.MustCompile(`^/model/(.+)/invoke-with-response-stream$`), route{api: Messages, cloud: Bedrock, stream: true}},
	{regexp.MustCompile(`^/model/(.+)/converse$`), route{api: Converse, cloud: Bedrock}},
	{regexp.MustCompile(`^/model/(.+)/converse-stream$`), route{api: Converse, cloud: Bedrock, stream: true}},
}

func routeOf(path string) route {
	for _, p := range paths {
		if m := p.pattern.FindStringSubmatch(path); m != nil {
			r := p.is
			if len(m) > 1 {
				r.model = m[1]
			}
			return r
		}
	}
	return route{}
}

// catalog is the list of GET /v1/models.
var catalog = []string{"claude-opus-5-5", "claude-sonnet-5-5", "claude-opus-5", "claude-sonnet-5", "claude-haiku-4-5", "gpt-5.6", "gpt-5.4"}
