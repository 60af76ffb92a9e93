// Package agents describes the agents that the gateway knows, as data: how their requests are
// recognized, which fields name the conversation, which texts change from request to request,
// which requests are no turns of a conversation, and how each is pointed at the gateway.
//
// All of it was read from real requests; Tested is the version that they came from. An agent
// that is not in the table works too, as [Any].
package agents

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/tree"
)

// An Agent is a row of the table.
type Agent struct {
	Name    string   // as in rules of the configuration: "claude-code"
	Aliases []string // also accepted on the command line: "claude"
	Title   string   // for people: "Claude Code"
	Command string   // the program
	Get     string   // how to install it
	Tested  string   // the version that was tested with real requests; empty if none was
	// Volatile are the texts that change from request to request while the conversation is the same.
	Volatile []wire.Volatile
	// Reminders are how texts of the system begin that the agent repeats in the conversation; only the newest counts.
	Reminders []string
	// Deferred is what comes, as JSON, before the list of servers whose tools the model finds and loads by itself.
	Deferred string

	// Windows are those of the agent's own catalogue of models, which can be smaller than the vendor's. It condenses by itself at a Share of
	// a window, or with only Reserve tokens of it left, whichever is first; 0: not known to do that.
	Windows []Window
	Share   float64
	Reserve int
	Input   int     // in place of Reserve, for windows of the input alone
	After   int     // tokens of its first request after that, the median of recorded sessions; 0: not measured
	Set     Sources // where a user changes that
	Later   *Later  // how wrap does for a run; nil: it cannot be later than it is by itself

	UserAgents []string // how the header User-Agent begins
	Head       words    // a few words near the beginning of the system prompt
	Compacted  words    // a few words near the beginning of a history that it has shortened, where it sends no session
	Sessions   []string // headers with the session, in order, before the general ones
	SubAgents  []string // headers with the sub-agent
	Summaries  []string // how a text of the last message begins when the agent summarizes by itself
	Systems    []system // side calls with a system prompt of their own
}

// A Source is where a user sets a value: in flags, a variable or a settings file, in this order.
type Source struct {
	Flags []string // -x VALUE, -xVALUE, -x=VALUE, or NAME = VALUE
	Env   string
	Key   []string
}

// Sources are the settings for when an agent condenses by itself.
type Sources struct {
	Window Source   // a window for every model
	Limit  Source   // the size at which it does, if that is below its usual one
	Share  Source   // the share of a window at which it does
	Spare  Source   // what it leaves free of a window
	Off    Source   // "false": it never does
	More   []Source // others of it, and its Window where that is for condensing only
}

// A Later is what makes an agent condense by itself later than usual in one run, where the user has set nothing: at Share or Reserve then.
type Later struct {
	Env     map[string]string
	Args    []string
	Key     []string // of a configuration that is given as a variable, with Value
	Value   json.Number
	Share   float64
	Reserve int
	Input   int
}

// A Window is the window, in tokens, of the models whose names begin with Model; with Input, of their input alone.
type Window struct {
	Model  string
	Tokens int
	Input  bool
}

// A Limit is what an agent knows about a model, in tokens.
type Limit struct {
	Window   int // that it takes the model to have; 0: not known
	Compacts int // size at which it condenses a conversation by itself; 0: not known to do that
}

// Limit returns what the agent knows about a model. Window is the model's window if the agent's is not known; 0 if neither is.
func (a *Agent) Limit(model string, window int) (l Limit) {
	reserve := a.Reserve
	if i := slices.IndexFunc(a.Windows, func(w Window) bool { return strings.HasPrefix(model, w.Model) }); i >= 0 {
		if l.Window, window = a.Windows[i].Tokens, a.Windows[i].Tokens; a.Windows[i].Input {
			reserve = a.Input
		}
	}
	l.Compacts = int(a.Share * float64(window))
	if rest := window - reserve; reserve > 0 && rest > 0 {
		l.Compacts = min(cmp.Or(l.Compacts, rest), rest)
	}
	return l
}

// Alone returns how many tokens of a history of so many the agent sends if nobody else condenses: at its limit it begins again with After.
// It reports false if that is not known. The agent may be nil.
func (a *Agent) Alone(model string, window, history int) (tokens int, known bool) {
	if a == nil || a.After == 0 {
		return 0, false
	}
	limit := a.Limit(model, window).Compacts
	if limit <= a.After {
		return 0, false
	}
	if history > limit {
		history = a.After + (history-limit)%(limit-a.After)
	}
	return history, true
}

// Shortened reports whether a history that begins with a message is one that the agent has shortened by itself.
func (a *Agent) Shortened(first []byte) bool {
	const front = 1000 // bytes, in which its words are
	return a.Compacted != nil && bytes.Contains(first[:min(len(first), front)], a.Compacted)
}

// Basis names the sum that the money of condensing is compared with, for a model with a window, 0 if not known. The agent may be nil.
func (a *Agent) Basis(model string, window int) string {
	if _, own := a.Alone(model, window, 0); own || window == 0 && a != nil && a.After > 0 {
		return "its own compaction"
	}
	return "a full window"
}

// A system is the beginning of the system prompt of a side call.
type system struct {
	Begin string
	Side  Side
}

// words are text that is looked for in bytes.
type words []byte

// UnmarshalText implements [encoding.TextUnmarshaler].
func (w *words) UnmarshalText(text []byte) error {
	*w = bytes.Clone(text)
	return nil
}

// Find returns the agent with a name or alias; nil if there is none.
func Find(name string) *Agent {
	for _, a := range all() {
		if a.Name == name || slices.Contains(a.Aliases, name) {
			return a
		}
	}
	return nil
}

// Names returns the names that Find accepts, the shortest of each agent.
func Names() (names []string) {
	for _, a := range all() {
		names = append(names, slices.MinFunc(append([]string{a.Name}, a.Aliases...), func(x, y string) int { return len(x) - len(y) }))
	}
	return names
}

// headRead is how much of a system prompt Of looks at, in bytes.
const headRead = 4 << 10

// Of returns the agent that sent a request with this header and this beginning of the prompt:
// the raw system prompt or, without one, the first message. It is [Any] if no agent is
// recognized, never nil. It does not allocate.
func Of(h http.Header, head []byte) *Agent {
	client := h.Get("User-Agent")
	for _, a := range all() {
		if slices.ContainsFunc(a.UserAgents, func(prefix string) bool { return strings.HasPrefix(client, prefix) }) {
			return a
		}
	}
	head = head[:min(len(head), headRead)]
	for _, a := range all() {
		if a.Head != nil && bytes.Contains(head, a.Head) {
			return a
		}
	}
	return Any()
}

// generalSessions are headers with the session of clients that are not in the table, in the
// order in which they are trusted. X-Client-Request-Id is not one of them: many clients
// make a new one for every request.
var generalSessions = []string{
	"X-Claude-Code-Session-Id", "Session-Id", "Thread-Id", "Session_id", "X-Opencode-Session", "X-Session-Affinity", "X-Session-Id", "X-Conversation-Id",
}

// SessionHeader names a conversation whatever the agent is.
const SessionHeader = "X-Condense-Session"

// Session returns the client's ID of its session; empty if there is none, or if it is not safe in a file name.
// Sub-agents can share an ID, so that it never identifies a conversation alone. Body is the ID in the request's body.
func (a *Agent) Session(h http.Header, body string) string {
	id := cmp.Or(firstID(h, SessionHeader), firstID(h, a.Sessions...))
	if id == "" && a == Any() {
		id = firstID(h, generalSessions...)
	}
	if id == "" && validID(body) {
		id = body
	}
	return id
}

// SubAgent returns the id of the sub-agent that sent a request; empty for the agent itself.
func (a *Agent) SubAgent(h http.Header) string {
	id := firstID(h, a.SubAgents...)
	if id != "" && id == firstID(h, a.Sessions...) {
		return "" // Codex: the first thread of a session has its id
	}
	return id
}

// firstID returns the first valid id in the headers.
func firstID(h http.Header, names ...string) string {
	for _, name := range names {
		if id := h.Get(name); validID(id) {
			return id
		}
	}
	return ""
}

// maxID is the length of an id, in bytes.
const maxID = 128

// validID reports whether id can be part of a key and of a file name.
func validID(id string) bool {
	const all = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:"
	return id != "" && len(id) <= maxID && !strings.Contains(id, "..") && strings.Trim(id, all) == ""
}

// Subscription reports whether the credentials of a request are the login of a plan rather
// than an API key. Such requests get nothing that the agent does not send itself.
func Subscription(h http.Header) bool {
	if h.Get("Chatgpt-Account-Id") != "" {
		return true
	}
	scheme, token, _ := strings.Cut(h.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") &&
		(strings.HasPrefix(token, "sk-ant-oat") || strings.Contains(h.Get("Anthropic-Beta"), "oauth-"))
}

// A Side is why a request is no turn of a conversation.
type Side string

// The kinds of side calls.
const (
	Turn       Side = ""           // none: a turn of a conversation
	Probe      Side = "probe"      // at most one token of output: quota, keeping a cache warm
	Title      Side = "title"      // a title, a topic
	Classifier Side = "classifier" // one short question with a fixed form of answer
	Short      Side = "short"      // no tools and hardly a message: nothing to condense
	Summary    Side = "summary"    // the agent's own compaction
)

// A Call is the part of a request that [SideOf] needs.
type Call struct {
	Header     http.Header
	Messages   int
	Tools      bool
	MaxOutput  int    // tokens; 0 if the request does not say
	Structured bool   // a format of the output or a tool is forced
	System     []byte // raw; nil if there is none
	Last       []byte // the last message, raw
}

// SideOf returns why a request is no turn of a conversation. Only its last message is compared
// with the prompts of summaries: a conversation may quote one.
func SideOf(c Call) Side {
	switch kind := c.Header.Get("X-Openai-Subagent"); {
	case kind == "compact" || kind == "memory_consolidation":
		return Summary
	case c.MaxOutput == 1:
		return Probe
	case c.Structured && c.Messages == 1:
		return Classifier
	}
	system := c.System
	if rawjson.IsObject(system) {
		system = rawjson.Field(system, "parts") // Gemini's
	}
	for text := range texts(system) {
		for _, a := range all() {
			for _, s := range a.Systems {
				if begins(text, s.Begin) {
					return s.Side
				}
			}
		}
	}
	if role := rawjson.Field(c.Last, "role"); role == nil || string(role) == `"user"` {
		content := rawjson.Field(c.Last, "content")
		if content == nil {
			content = rawjson.Field(c.Last, "parts") // Gemini's
		}
		for text := range texts(content) {
			is := func(summary string) bool { return begins(text, summary) }
			if slices.ContainsFunc(all(), func(a *Agent) bool { return slices.ContainsFunc(a.Summaries, is) }) {
				return Summary
			}
		}
	}
	if !c.Tools && c.Messages <= 2 {
		return Short
	}
	return Turn
}

// texts yields the raw strings of a content: itself, or the texts of its blocks.
func texts(content []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if rawjson.IsString(content) {
			yield(content)
			return
		}
		for block := range rawjson.Elements(content) {
			if text := rawjson.Field(block, "text"); rawjson.IsString(text) && !yield(text) {
				return
			}
		}
	}
}

var newline = []byte(`\n`) // in JSON

// begins reports whether the raw string begins with prefix, which has no character that JSON
// escapes, after space.
func begins(raw []byte, prefix string) bool {
	raw = raw[1:]
	for {
		trimmed := bytes.TrimPrefix(bytes.TrimLeft(raw, " "), newline)
		if len(trimmed) == len(raw) {
			return len(raw) >= len(prefix) && string(raw[:len(prefix)]) == prefix
		}
		raw = trimmed
	}
}

// The names of the APIs that addresses belong to, as in --upstream.
const (
	Anthropic = "anthropic"
	OpenAI    = "openai"
	Gemini    = "gemini"
	Vertex    = "vertex"
	Bedrock   = "bedrock"
	Azure     = "azure"
)

//go:embed table.yaml
var tableYAML []byte

var all = sync.OnceValue(func() (all []*Agent) {
	if err := tree.Decode(tableYAML, &all); err != nil {
		panic("agents: table.yaml: " + err.Error()) // embedded and tested
	}
	return all
})

// Any returns an agent that is not known.
func Any() *Agent { return all()[len(all())-1] }
