package convert

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/blocks"
	"github.com/condensehq/condense/transcript/internal/codec"
)

// A Wire is what a vendor's API accepts, where the vendors differ.
type Wire struct {
	Name    string
	Vendor  codec.Vendor
	MaxID   int // bytes of the ID of a call; zero means any
	MaxName int // bytes of the name of a tool
	// merge says that user and assistant must take turns.
	merge bool
	// system says that the system prompt stands apart from the messages.
	system bool
	// reasoning says that a message may hold reasoning, if the vendor signed it.
	reasoning bool
	// objects says that arguments are objects and not text.
	objects bool
	// failed says that a result can be marked as a failure.
	failed bool
	// blocks are the kinds of content that are sent as they are, by who says them, and
	// inner those in tool results.
	Blocks map[core.Role][]string
	inner  []string
}

var Anthropic = Wire{
	Name: "anthropic", Vendor: codec.Anthropic, MaxName: 128,
	merge: true, system: true, reasoning: true, objects: true, failed: true,
	Blocks: map[core.Role][]string{
		core.RoleUser: {"document", "search_result", "image", "container_upload"},
		core.RoleAssistant: {
			"server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
			"bash_code_execution_tool_result", "text_editor_code_execution_tool_result",
			"tool_search_tool_result", "mcp_tool_use", "mcp_tool_result",
		},
	},
	inner: []string{"document", "search_result", "image", "tool_reference"},
}

var OpenAI = Wire{
	Name: "openai", Vendor: codec.OpenAI, MaxID: 40, MaxName: 64,
	Blocks: map[core.Role][]string{core.RoleUser: {"input_audio", "file"}},
}

// A Turn is a message on the wire before it is encoded.
type Turn struct {
	ID      string // of the first message in it, for warnings
	Role    core.Role
	Kind    core.Kind         // of that message
	newest  core.Kind         // of the last message in it
	Parts   []core.Part       // all but results
	calls   []int             // the calls of an assistant turn
	Results []core.ToolResult // their results; they follow at once
}

// Reasoning is held back until the assistant goes on, for it must not come last.
type held struct {
	id   string // of the message
	part core.Reasoning
}

// A converter turns the messages of one format into the turns of another.
type converter struct {
	wire    *Wire
	out     *codec.Output
	foreign bool // reasoning in the messages was signed by another vendor
	turns   []Turn
	system  []string
	calls   []link
	answers []int // for each result in order the call that it answers, or -1
	met     int   // calls so far
	results int   // results so far
	held    []held
	current string
	kind    core.Kind // of the message current
}

// Turns returns the messages that would be sent as turns that w accepts, and the
// system prompt if w has it apart. What w has no place for goes to out.warnings.
func Turns(f *codec.File, w *Wire, out *codec.Output) (turns []Turn, system string) {
	c := &converter{wire: w, out: out, foreign: f.Vendor != "" && f.Vendor != w.Vendor}
	view := f.View()
	c.pair(view)
	if f.System != "" {
		c.say(core.RoleSystem, f.System)
	}
	for i := range view {
		c.message(&view[i])
	}
	c.dropHeld()
	c.complete()
	if len(view) > 0 && (w.merge || len(c.turns) == 0) {
		c.mendEnds()
	}
	WarnFields(f, view, out)
	return c.turns, strings.Join(c.system, "\n\n")
}

// message puts m into turns.
func (c *converter) message(m *core.Message) {
	c.current, c.kind = m.ID, m.Kind
	role, begun := blocks.Speaker(m.Role), len(c.turns)
	for _, p := range m.Parts {
		switch p := p.(type) {
		case core.Reasoning:
			if !c.wire.reasoning || c.foreign || p.Signature == "" && p.Encrypted == "" {
				c.out.Warn(m.ID, "reasoning was left out: %s takes back only what it has signed itself", c.wire.Name)
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

// plain adds what is not bound to a call.
func (c *converter) plain(role core.Role, p core.Part) {
	switch p := p.(type) {
	case core.Text:
		c.say(role, string(p))
	case core.Image:
		if img, ok := Image(p); ok && role == core.RoleUser {
			c.put(role, img)
		} else {
			c.note(role, "image")
		}
	case core.Opaque:
		if block, ok := Block(p, c.wire.Blocks[role]); ok {
			c.put(role, block)
		} else {
			c.note(role, p.Kind)
		}
	case core.ToolCall, core.ToolResult, core.Reasoning: // not in a result
		c.note(role, "unknown")
	}
}

// Block returns p as it can be sent, if it is a block of one of kinds.
func Block(p core.Opaque, kinds []string) (core.Opaque, bool) {
	raw := []byte(p.JSON)
	if !slices.Contains(kinds, p.Kind) || !json.Valid(raw) || rawjson.Text(rawjson.Field(raw, "type")) != p.Kind {
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
	if role == core.RoleSystem && c.wire.system {
		if len(c.turns) > 0 {
			c.out.Warn(c.current, "a system message inside the conversation was moved to the system prompt")
		}
		c.system = append(c.system, s)
		return
	}
	c.put(role, core.Text(s))
}

// note says that something of the given kind was here.
func (c *converter) note(role core.Role, kind string) {
	c.out.Warn(c.current, "content of kind %q was replaced by a note: %s has no place for it", kind, c.wire.Name)
	c.say(role, Note(kind))
}

func Note(kind string) string { return fmt.Sprintf("[content of kind %q is not shown here]", kind) }

// put adds p to the turn of role, a new one if the last is not its own.
func (c *converter) put(role core.Role, p core.Part) {
	t := c.open(role)
	if role == core.RoleAssistant {
		for _, h := range c.held {
			t.Parts = append(t.Parts, h.part)
		}
		c.held = nil
	}
	c.dropHeld()
	t.Parts, t.newest = append(t.Parts, p), c.kind
}

// open returns the turn that what role says now belongs to.
func (c *converter) open(role core.Role) *Turn {
	if n := len(c.turns); n > 0 {
		last := &c.turns[n-1]
		same := last.ID == c.current || c.wire.merge
		// What was inserted makes no row with what the user said: many templates refuse one.
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
		c.out.Warn(h.id, "reasoning was left out: nothing that the assistant said follows it")
	}
	c.held = nil
}

// mendEnds makes a conversation begin with the user, and end without white space if it
// ends with the assistant. Anthropic demands both, and both vendors at least one message.
func (c *converter) mendEnds() {
	if len(c.turns) == 0 || c.turns[0].Role != core.RoleUser {
		c.out.Warn("", "a first user message was added: %s demands one", c.wire.Name)
		begin := Turn{Role: core.RoleUser, Kind: core.KindMarker, Parts: []core.Part{core.Text("(The conversation begins here.)")}}
		c.turns = slices.Insert(c.turns, 0, begin)
	}
	last := &c.turns[len(c.turns)-1]
	if n := len(last.Parts); last.Role == core.RoleAssistant && len(last.Results) == 0 {
		if t, ok := last.Parts[n-1].(core.Text); ok {
			trimmed := strings.TrimRightFunc(string(t), unicode.IsSpace)
			if trimmed != string(t) {
				c.out.Warn(last.ID, "white space at the end of the conversation was left out")
				last.Parts[n-1] = core.Text(trimmed)
			}
		}
	}
}

// imageTypes are the kinds of images that both vendors take, and how each begins in
// base64.
var imageTypes = []struct{ mediaType, magic string }{
	{"image/png", "iVBORw0KGgo"},
	{"image/jpeg", "/9j/"},
	{"image/gif", "R0lGOD"},
	{"image/webp", "UklGR"},
}

// Image returns img as a vendor's API would take it; false if none would.
func Image(img core.Image) (core.Image, bool) {
	if img.URL != "" {
		return img, strings.HasPrefix(img.URL, "https://") || strings.HasPrefix(img.URL, "http://")
	}
	if _, err := base64.StdEncoding.DecodeString(img.Data); err != nil || img.Data == "" {
		return img, false
	}
	for _, t := range imageTypes {
		if img.MediaType == t.mediaType || img.MediaType == "" && strings.HasPrefix(img.Data, t.magic) {
			img.MediaType = t.mediaType
			return img, true
		}
	}
	return img, false
}

// Messages returns turns as Anthropic sends them: the results of a turn's calls stand
// at the head of the user's next message.
func Messages(turns []Turn) []Turn {
	out := make([]Turn, 0, len(turns))
	var results []core.ToolResult
	id := ""
	for _, t := range turns {
		if len(results) > 0 {
			parts := Results(results)
			if t.Role == core.RoleUser {
				t.Parts = append(parts, t.Parts...)
			} else {
				out = append(out, Turn{ID: id, Role: core.RoleUser, Parts: parts})
			}
		}
		results, id = t.Results, t.ID
		out = append(out, t)
	}
	if len(results) > 0 {
		out = append(out, Turn{ID: id, Role: core.RoleUser, Parts: Results(results)})
	}
	return out
}

func Results(results []core.ToolResult) []core.Part {
	parts := make([]core.Part, len(results))
	for i, r := range results {
		parts[i] = r
	}
	return parts
}
