// Package apimessage encodes conversations as the messages that vendors' APIs accept: tool
// calls are paired with their results and answered, roles take turns where they must, names
// and IDs are valid, and nothing is empty. Clients of models and the converters of files
// share it.
package apimessage

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// An API has the rules of a vendor's API, where the vendors differ.
type API struct {
	Name    string
	Vendor  string // the vendor that signs reasoning
	MaxID   int    // bytes of the ID of a call; 0 means any
	MaxName int    // bytes of the name of a tool

	merge     bool // user and assistant must take turns
	system    bool // the system prompt is apart from the messages
	reasoning bool // a message may hold reasoning, if the vendor signed it
	objects   bool // arguments are objects, not text
	failed    bool // a result can be marked as a failure

	// Blocks are the kinds of content that are sent unchanged, by role; inner are the kinds in tool results. After a
	// + is the field that identifies the block as the vendor's.
	Blocks map[core.Role][]string
	inner  []string
}

// Anthropic is Anthropic's Messages API.
var Anthropic = API{
	Name: "anthropic", Vendor: "anthropic", MaxName: 128,
	merge: true, system: true, reasoning: true, objects: true, failed: true,
	Blocks: map[core.Role][]string{
		core.RoleUser: {"document", "search_result", "image", "container_upload", "compaction+signature"},
		core.RoleAssistant: {
			"compaction+signature",
			"server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
			"bash_code_execution_tool_result", "text_editor_code_execution_tool_result",
			"tool_search_tool_result", "mcp_tool_use", "mcp_tool_result",
		},
	},
	inner: []string{"document", "search_result", "image", "tool_reference"},
}

// OpenAI is OpenAI's Chat Completions API.
var OpenAI = API{
	Name: "openai", Vendor: "openai", MaxID: 40, MaxName: 64,
	Blocks: map[core.Role][]string{core.RoleUser: {"input_audio", "file"}},
}

// Responses is OpenAI's Responses API.
var Responses = API{
	Name: "responses", Vendor: "openai", MaxID: 64, MaxName: 64,
	reasoning: true,
	Blocks: map[core.Role][]string{
		core.RoleUser: {"input_file", "compaction+encrypted_content"},
		core.RoleAssistant: {
			"compaction+encrypted_content",
			"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call", "mcp_list_tools",
		},
	},
	inner: []string{"input_file"},
}

// A Turn is a message before it is encoded.
type Turn struct {
	ID      string // of the first message in it, for warnings
	Role    core.Role
	Kind    core.Kind         // of that message
	newest  core.Kind         // of the last message in it
	Parts   []core.Part       // all but results
	calls   []int             // the calls of an assistant turn
	Results []core.ToolResult // their results; they follow at once
}

// A held part is reasoning that waits for the assistant's next content: it must not come last.
type held struct {
	id   string // of the message
	part core.Reasoning
}

// A converter makes turns.
type converter struct {
	api     *API
	foreign bool // another vendor signed the reasoning
	warn    func(message, format string, args ...any)
	turns   []Turn
	system  []string
	calls   []link
	answers []int // for each result in order the call that it answers, or -1
	met     int   // calls so far
	results int   // results so far
	held    []held
	current string    // ID of the message that is converted
	kind    core.Kind // of that message
}

// An Input is a conversation that is to be encoded.
type Input struct {
	Messages []core.Message
	System   string // the system prompt
	Foreign  bool   // another vendor signed the reasoning
	// Warn reports content for which the API has no place, with the ID of its message. Nil ignores it.
	Warn func(message, format string, args ...any)
}

func (in *Input) warn() func(message, format string, args ...any) {
	if in.Warn == nil {
		return func(string, string, ...any) {}
	}
	return in.Warn
}

// Turns returns a conversation as turns that the API accepts, and the system prompt if the
// API takes it apart from the messages.
func (a *API) Turns(in *Input) (turns []Turn, system string) {
	c := &converter{api: a, foreign: in.Foreign, warn: in.warn()}
	c.pair(in.Messages)
	if in.System != "" {
		c.say(core.RoleSystem, in.System)
	}
	for i := range in.Messages {
		c.message(&in.Messages[i])
	}
	c.dropHeld()
	c.complete()
	if len(in.Messages) > 0 && (a.merge || len(c.turns) == 0) {
		c.mendEnds()
	}
	return c.turns, strings.Join(c.system, "\n\n")
}

// message puts m into turns.
func (c *converter) message(m *core.Message) {
	c.current, c.kind = m.ID, m.Kind
	role, begun := Speaker(m.Role), len(c.turns)
	for _, p := range m.Parts {
		switch p := p.(type) {
		case core.Reasoning:
			if !c.api.reasoning || c.foreign || p.Signature == "" && p.Encrypted == "" {
				c.warn(m.ID, "reasoning was left out: %s accepts only what it has signed itself", c.api.Name)
				continue
			}
			c.held = append(c.held, held{m.ID, p})
		case core.ToolCall:
			c.call(role, p)
		case core.ToolResult:
			c.result(role, p)
		case core.Text, core.Image, core.Opaque:
			c.plain(role, p)
		}
	}
	for i := begun; i < len(c.turns); i++ {
		c.turns[i].Kind = m.Kind
	}
}

// plain adds content that is not bound to a call.
func (c *converter) plain(role core.Role, p core.Part) {
	switch p := p.(type) {
	case core.Text:
		c.say(role, string(p))
	case core.Image:
		if img, ok := Sendable(p); ok && role == core.RoleUser {
			c.put(role, img)
		} else {
			c.note(role, "image")
		}
	case core.Opaque:
		if block, ok := SendableBlock(p, c.api.Blocks[role]); ok {
			c.put(role, block)
		} else {
			c.note(role, p.Kind)
		}
	case core.ToolCall, core.ToolResult, core.Reasoning: // not in a result
		c.note(role, "unknown")
	}
}

// SendableBlock returns p as it can be sent, if it is a block of one of kinds.
func SendableBlock(p core.Opaque, kinds []string) (core.Opaque, bool) {
	raw := []byte(p.JSON)
	known := slices.ContainsFunc(kinds, func(k string) bool {
		kind, field, _ := strings.Cut(k, "+")
		return kind == p.Kind && (field == "" || rawjson.IsString(rawjson.Field(raw, field)))
	})
	if !known || !json.Valid(raw) || rawjson.Text(rawjson.Field(raw, "type")) != p.Kind {
		return p, false
	}
	if p.Kind == "image" { // one that is no core.Image: a file that was uploaded, or broken
		source := rawjson.Field(raw, "source")
		if rawjson.Text(rawjson.Field(source, "type")) != "file" || rawjson.Text(rawjson.Field(source, "file_id")) == "" {
			return p, false
		}
		p.JSON = `{"type":"image","source":` + string(source) + `}`
	}
	p.JSON = rawjson.Clean(p.JSON)
	return p, true
}

// say adds text, unless it is blank: the vendors refuse that.
func (c *converter) say(role core.Role, s string) {
	if strings.TrimSpace(s) == "" {
		return
	}
	if role == core.RoleSystem && c.api.system {
		if len(c.turns) > 0 {
			c.warn(c.current, "a system message inside the conversation was moved to the system prompt")
		}
		c.system = append(c.system, s)
		return
	}
	c.put(role, core.Text(s))
}

// note says that something of the given kind was here.
func (c *converter) note(role core.Role, kind string) {
	c.warn(c.current, "content of kind %q was replaced by a note: %s has no place for it", kind, c.api.Name)
	c.say(role, Note(kind))
}

// Note returns the text that replaces content of the given kind.
func Note(kind string) string { return fmt.Sprintf("[content of kind %q is not shown here]", kind) }

// put adds p to the turn of role, a new one if the last is not its own.
func (c *converter) put(role core.Role, p core.Part) {
	t := c.open(role)
	if role == core.RoleAssistant {
		t.Parts = append(t.Parts, plain.Each(c.held, func(h held) core.Part { return h.part })...)
		c.held = nil
	}
	c.dropHeld()
	t.Parts, t.newest = append(t.Parts, p), c.kind
}

// open returns the turn to which the next content of role belongs.
func (c *converter) open(role core.Role) *Turn {
	if n := len(c.turns); n > 0 {
		last := &c.turns[n-1]
		same := last.ID == c.current || c.api.merge
		// Inserted and original user messages do not follow each other: many templates refuse two in a row.
		if role == core.RoleUser && (last.newest != core.KindOriginal || c.kind != core.KindOriginal) {
			same = true
		}
		// Calls that are still open hold their turn open, for the results must follow
		// at once; results close it.
		if role == core.RoleAssistant {
			same = len(last.Results) == 0 && (same || len(last.calls) > 0)
		}
		if last.Role == role && same {
			return last
		}
	}
	c.turns = append(c.turns, Turn{ID: c.current, Role: role})
	return &c.turns[len(c.turns)-1]
}

func (c *converter) dropHeld() {
	for _, h := range c.held {
		c.warn(h.id, "reasoning was left out: nothing that the assistant said follows it")
	}
	c.held = nil
}

// mendEnds makes a conversation begin with the user, and end without white space if it
// ends with the assistant. Anthropic demands both, and both vendors at least one message.
func (c *converter) mendEnds() {
	if len(c.turns) == 0 || c.turns[0].Role != core.RoleUser {
		c.warn("", "a first user message was added: %s demands one", c.api.Name)
		begin := Turn{Role: core.RoleUser, Kind: core.KindMarker, Parts: []core.Part{core.Text("(The conversation begins here.)")}}
		c.turns = slices.Insert(c.turns, 0, begin)
	}
	last := &c.turns[len(c.turns)-1]
	if n := len(last.Parts); last.Role == core.RoleAssistant && len(last.Results) == 0 {
		if t, ok := last.Parts[n-1].(core.Text); ok {
			trimmed := strings.TrimRightFunc(string(t), unicode.IsSpace)
			if trimmed != string(t) {
				c.warn(last.ID, "white space at the end of the conversation was left out")
				last.Parts[n-1] = core.Text(trimmed)
			}
		}
	}
}
