package transcript

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/condensehq/condense/core"
)

// A wire is what a vendor's API accepts, where the vendors differ.
type wire struct {
	name    string
	vendor  vendor
	maxID   int // bytes of the ID of a call; zero means any
	maxName int // bytes of the name of a tool
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
	blocks map[core.Role][]string
	inner  []string
}

var anthropicWire = wire{
	name: "anthropic", vendor: vendorAnthropic, maxName: 128,
	merge: true, system: true, reasoning: true, objects: true, failed: true,
	blocks: map[core.Role][]string{
		core.RoleUser: {"document", "search_result", "image", "container_upload"},
		core.RoleAssistant: {
			"server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
			"bash_code_execution_tool_result", "text_editor_code_execution_tool_result",
			"tool_search_tool_result", "mcp_tool_use", "mcp_tool_result",
		},
	},
	inner: []string{"document", "search_result", "image", "tool_reference"},
}

var openaiWire = wire{
	name: "openai", vendor: vendorOpenAI, maxID: 40, maxName: 64,
	blocks: map[core.Role][]string{core.RoleUser: {"input_audio", "file"}},
}

// A turn is a message on the wire before it is encoded.
type turn struct {
	id      string // of the first message in it, for warnings
	role    core.Role
	kind    core.Kind
	parts   []core.Part       // all but results
	calls   []int             // the calls of an assistant turn
	results []core.ToolResult // their results; they follow at once
}

// A link is a call, and where it went.
type link struct {
	id       string // on the wire
	turn     int
	answered bool
}

// Reasoning is held back until the assistant goes on, for it must not come last.
type held struct {
	id   string // of the message
	part core.Reasoning
}

// A converter turns the messages of one format into the turns of another.
type converter struct {
	wire    *wire
	out     *output
	foreign bool // reasoning in the messages was signed by another vendor
	turns   []turn
	system  []string
	calls   []link
	answers []int // for each result in order the call that it answers, or -1
	met     int   // calls so far
	results int   // results so far
	held    []held
	current string
}

// convert returns the messages that would be sent as turns that w accepts, and the
// system prompt if w has it apart. What w has no place for goes to out.warnings.
func convert(d *Document, w *wire, out *output) (turns []turn, system string) {
	c := &converter{wire: w, out: out, foreign: out.vendor != "" && out.vendor != w.vendor}
	view := d.view()
	c.pair(view)
	if d.System != "" {
		c.say(core.RoleSystem, d.System)
	}
	for i := range view {
		c.message(&view[i])
	}
	c.dropHeld()
	c.complete()
	if len(view) > 0 && (w.merge || len(c.turns) == 0) {
		c.mendEnds()
	}
	warnFields(d, view, out)
	return c.turns, strings.Join(c.system, "\n\n")
}

// pair finds the call that each result answers, by the rule of [core.Groups], and gives
// every call an ID that the wire accepts.
func (c *converter) pair(view []core.Message) {
	open := map[string][]int{}
	taken := map[string]bool{}
	for i := range view {
		for _, p := range view[i].Parts {
			switch p := p.(type) {
			case core.ToolCall:
				if view[i].Role != core.RoleAssistant {
					continue // nobody else can call
				}
				id := c.legalID(p.ID, len(c.calls)+1, taken)
				if id != p.ID {
					c.out.warn(view[i].ID, "the id of a tool call was changed to one that is lawful and unique")
				}
				open[p.ID] = append(open[p.ID], len(c.calls))
				c.calls = append(c.calls, link{id: id})
			case core.ToolResult:
				answer := -1
				if calls := open[p.CallID]; len(calls) > 0 {
					answer, open[p.CallID] = calls[0], calls[1:]
				}
				c.answers = append(c.answers, answer)
			case core.Text, core.Image, core.Reasoning, core.Opaque:
			}
		}
	}
}

// legalID returns id with what the wire does not accept replaced, and unlike all others.
func (c *converter) legalID(id string, n int, taken map[string]bool) string {
	base := legalName(id, c.wire.maxID)
	if base == "" {
		base = fmt.Sprintf("call_%d", n)
	}
	legal := base
	for i := 2; taken[legal]; i++ {
		suffix := fmt.Sprintf("_%d", i)
		legal = base + suffix
		if c.wire.maxID > 0 && len(legal) > c.wire.maxID {
			legal = base[:c.wire.maxID-len(suffix)] + suffix
		}
	}
	taken[legal] = true
	return legal
}

// legalName returns s in the characters that both vendors allow in names and IDs, cut
// at limit bytes unless that is zero.
func legalName(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
	if limit > 0 && len(s) > limit {
		s = s[:limit]
	}
	return s
}

// message puts m into turns.
func (c *converter) message(m *core.Message) {
	c.current = m.ID
	role, begun := speaker(m.Role), len(c.turns)
	for _, p := range m.Parts {
		switch p := p.(type) {
		case core.Reasoning:
			if !c.wire.reasoning || c.foreign || p.Signature == "" && p.Encrypted == "" {
				c.out.warn(m.ID, "reasoning was left out: %s takes back only what it has signed itself", c.wire.name)
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
		c.turns[i].kind = m.Kind
	}
}

// plain adds what is not bound to a call.
func (c *converter) plain(role core.Role, p core.Part) {
	switch p := p.(type) {
	case core.Text:
		c.say(role, string(p))
	case core.Image:
		if img, ok := sendable(p); ok && role == core.RoleUser {
			c.put(role, img)
		} else {
			c.note(role, "image")
		}
	case core.Opaque:
		if isBlock(p, c.wire.blocks[role]) {
			p.JSON = cleanJSON(p.JSON)
			c.put(role, p)
		} else {
			c.note(role, p.Kind)
		}
	case core.ToolCall, core.ToolResult, core.Reasoning: // not in a result
		c.note(role, "unknown")
	}
}

// speaker returns the role in a request of what role says, where tools and whoever has
// no role of his own speak as the user.
func speaker(role core.Role) core.Role {
	switch role {
	case core.RoleSystem, core.RoleAssistant:
		return role
	case core.RoleUser, core.RoleTool:
	}
	return core.RoleUser
}

// isBlock reports whether p is a block of one of kinds.
func isBlock(p core.Opaque, kinds []string) bool {
	raw := []byte(p.JSON)
	return slices.Contains(kinds, p.Kind) && json.Valid(raw) && text(field(raw, "type")) == p.Kind
}

// say adds text, unless it is blank: the vendors refuse that.
func (c *converter) say(role core.Role, s string) {
	if strings.TrimSpace(s) == "" {
		return
	}
	if role == core.RoleSystem && c.wire.system {
		if len(c.turns) > 0 {
			c.out.warn(c.current, "a system message inside the conversation was moved to the system prompt")
		}
		c.system = append(c.system, s)
		return
	}
	c.put(role, core.Text(s))
}

// note says that something of the given kind was here.
func (c *converter) note(role core.Role, kind string) {
	c.out.warn(c.current, "content of kind %q was replaced by a note: %s has no place for it", kind, c.wire.name)
	c.say(role, noteOf(kind))
}

func noteOf(kind string) string { return fmt.Sprintf("[content of kind %q is not shown here]", kind) }

// put adds p to the turn of role, a new one if the last is not its own.
func (c *converter) put(role core.Role, p core.Part) {
	t := c.open(role)
	if role == core.RoleAssistant {
		for _, h := range c.held {
			t.parts = append(t.parts, h.part)
		}
		c.held = nil
	}
	c.dropHeld()
	t.parts = append(t.parts, p)
}

// open returns the turn that what role says now belongs to.
func (c *converter) open(role core.Role) *turn {
	if n := len(c.turns); n > 0 {
		last := &c.turns[n-1]
		same := last.id == c.current || c.wire.merge
		// Calls that are still open hold their turn open, for the results must follow
		// at once; results close it.
		if role == core.RoleAssistant {
			same = len(last.results) == 0 && (same || len(last.calls) > 0)
		}
		if last.role == role && same {
			return last
		}
	}
	c.turns = append(c.turns, turn{id: c.current, role: role})
	return &c.turns[len(c.turns)-1]
}

func (c *converter) dropHeld() {
	for _, h := range c.held {
		c.out.warn(h.id, "reasoning was left out: nothing that the assistant said follows it")
	}
	c.held = nil
}

// call adds a call.
func (c *converter) call(role core.Role, p core.ToolCall) {
	if role != core.RoleAssistant {
		c.out.warn(c.current, "a tool call in a message that is not the assistant's became text")
		c.say(role, fmt.Sprintf("[call of tool %s: %s]", p.Name, p.Args))
		return
	}
	n := c.met // pair met the calls in this order too
	c.met++
	p.ID = c.calls[n].id
	name := legalName(p.Name, c.wire.maxName)
	if name == "" {
		name = "unknown"
	}
	if name != p.Name {
		c.out.warn(c.current, "the name of tool %q was changed to %q, which is lawful", p.Name, name)
		p.Name = name
	}
	switch {
	case strings.TrimSpace(p.Args) == "":
		p.Args = "{}"
	case c.wire.objects:
		object := string(argsObject(p.Args))
		if object != p.Args {
			c.out.warn(c.current, "arguments that are no object were wrapped in one")
		}
		p.Args = cleanJSON(object)
	}
	c.put(role, p)
	at := len(c.turns) - 1
	c.calls[n].turn = at
	c.turns[at].calls = append(c.turns[at].calls, n)
}

// result puts a result behind the turn with its call.
func (c *converter) result(role core.Role, p core.ToolResult) {
	n := c.answers[c.results]
	c.results++
	if n < 0 {
		c.out.warn(c.current, "a tool result without a call became text")
		c.say(role, "[result of a tool call that is not shown here]")
		for _, q := range p.Content {
			c.plain(role, q)
		}
		return
	}
	var content []core.Part
	for _, q := range p.Content {
		content = c.inner(content, q)
	}
	if p.IsError && !c.wire.failed {
		c.out.warn(c.current, "the mark of a failed tool call was left out: %s has none", c.wire.name)
		p.IsError = false
	}
	if p.IsError && len(content) == 0 {
		content = append(content, core.Text("(no output)")) // refused without
	}
	call := &c.calls[n]
	if last := len(c.turns) - 1; call.turn < last && !(c.wire.merge && c.turns[last].role == core.RoleUser && call.turn == last-1) {
		c.out.warn(c.current, "a tool result was moved up to its call")
	}
	c.dropHeld()
	call.answered = true
	p.CallID, p.Content = call.id, content
	t := &c.turns[call.turn]
	t.results = append(t.results, p)
}

// inner adds the part q of a result to content, as the wire has it.
func (c *converter) inner(content []core.Part, q core.Part) []core.Part {
	switch q := q.(type) {
	case core.Text:
		if strings.TrimSpace(string(q)) == "" {
			return content
		}
		return append(content, q)
	case core.Image:
		if img, ok := sendable(q); ok {
			return append(content, img)
		}
		return c.innerNote(content, "image")
	case core.Opaque:
		if isBlock(q, c.wire.inner) {
			q.JSON = cleanJSON(q.JSON)
			return append(content, q)
		}
		return c.innerNote(content, q.Kind)
	case core.ToolCall, core.ToolResult, core.Reasoning:
	}
	return c.innerNote(content, "unknown")
}

func (c *converter) innerNote(content []core.Part, kind string) []core.Part {
	c.out.warn(c.current, "content of kind %q in a tool result was replaced by a note: %s has no place for it", kind, c.wire.name)
	return append(content, core.Text(noteOf(kind)))
}

// complete answers the calls that nobody did, but for those at the very end, which may
// be pending.
func (c *converter) complete() {
	for i := range c.turns {
		t := &c.turns[i]
		if i == len(c.turns)-1 && len(t.results) == 0 {
			return
		}
		for _, n := range t.calls {
			if !c.calls[n].answered {
				c.out.warn(t.id, "a tool call without a result was given one that says so")
				t.results = append(t.results, core.ToolResult{
					CallID:  c.calls[n].id,
					Content: []core.Part{core.Text("No result of this call was recorded.")},
					IsError: c.wire.failed,
				})
			}
		}
	}
}

// mendEnds makes a conversation begin with the user, and end without white space if it
// ends with the assistant. Anthropic demands both, and both vendors at least one message.
func (c *converter) mendEnds() {
	if len(c.turns) == 0 || c.turns[0].role != core.RoleUser {
		c.out.warn("", "a first user message was added: %s demands one", c.wire.name)
		begin := turn{role: core.RoleUser, kind: core.KindMarker, parts: []core.Part{core.Text("(The conversation begins here.)")}}
		c.turns = slices.Insert(c.turns, 0, begin)
	}
	last := &c.turns[len(c.turns)-1]
	if n := len(last.parts); last.role == core.RoleAssistant && len(last.results) == 0 {
		if t, ok := last.parts[n-1].(core.Text); ok {
			trimmed := strings.TrimRightFunc(string(t), unicode.IsSpace)
			if trimmed != string(t) {
				c.out.warn(last.id, "white space at the end of the conversation was left out")
				last.parts[n-1] = core.Text(trimmed)
			}
		}
	}
}
