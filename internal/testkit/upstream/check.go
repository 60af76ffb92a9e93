package upstream

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// check returns the first rule that the prompt breaks.
func (v *Vendor) check(p *prompt) *refusal {
	m := v.o.Model(p.model)
	rules := map[API][]func(*prompt, Model) *refusal{
		Messages:  {checkFields, checkMarkers, checkTexts, checkRoles, checkPairs, checkServerTools, checkThinking},
		Chat:      {checkChat},
		Responses: {checkItems, checkReasoning},
		Gemini:    {checkContents, checkSignatures},
		Converse:  {checkMarkers, checkTexts, checkRoles, checkPairs, checkThinking},
	}[p.api]
	for _, rule := range rules {
		if f := rule(p, m); f != nil {
			return f
		}
	}
	if last := len(p.blocks) - 1; v.o.NoCompaction == "refuse" && last >= 0 && p.blocks[last].kind == "compaction_trigger" {
		return &refusal{400, "compaction", "invalid_value", "input", "Invalid value: 'compaction_trigger'. Supported values are: 'message', 'reasoning', 'function_call' and 'function_call_output'."}
	}
	return v.checkWindow(p)
}

func (v *Vendor) checkWindow(p *prompt) *refusal {
	n := v.tokens(p.size)
	if n <= v.o.Window || p.count {
		return nil
	}
	switch p.api {
	case Converse:
		return invalid("window", "The model returned the following errors: Input is too long for requested model.")
	case Chat:
		return &refusal{400, "window", "context_length_exceeded", "messages", fmt.Sprintf(
			"This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce the length of the messages.", v.o.Window, n)}
	case Responses:
		return &refusal{400, "window", "context_length_exceeded", "input", "Your input exceeds the context window of this model. Please adjust your input and try again."}
	case Gemini:
		return invalid("window", fmt.Sprintf("The input token count (%d) exceeds the maximum number of tokens allowed (%d).", n, v.o.Window))
	case Messages:
	}
	return invalid("window", fmt.Sprintf("prompt is too long: %d tokens > %d maximum", n, v.o.Window))
}

// betas are fields that need a value in the header anthropic-beta.
var betas = []struct{ in, field, value string }{
	{"", "context_management", "context-management-2025-06-27"},
	{"thinking", "block_binding", "thinking-binding-controls-2026-08-01"},
}

func checkFields(p *prompt, m Model) *refusal {
	if p.model == "" {
		return invalid("field", "model: Field required")
	}
	if p.doc["max_tokens"] == nil && !p.count {
		return invalid("field", "max_tokens: Field required")
	}
	for _, f := range betas {
		holder := p.doc
		if f.in != "" {
			holder, _ = p.doc[f.in].(object)
		}
		if holder[f.field] != nil && !strings.Contains(p.beta, f.value) {
			return invalid("beta", strings.TrimPrefix(f.in+"."+f.field, ".")+": Extra inputs are not permitted")
		}
	}
	for i, b := range p.blocks { // of compaction on demand
		switch {
		case b.kind != "compaction":
		case !strings.Contains(p.beta, "compact-2026-09-04"):
			return invalid("beta", dots(b.where)+": Input tag 'compaction' found using 'type' does not match any of the expected tags")
		case i > 0 && p.blocks[i-1].role != "system" && p.blocks[i-1].role != "tools":
			return invalid("compaction", "compaction_block_misplaced")
		case text(b.value["signature"]) == "":
			return invalid("compaction", "compaction_signature_invalid")
		}
	}
	switch {
	case p.thinking == "" || m.Thinking == "" || m.Thinking == p.thinking:
	case p.thinking == "enabled":
		return invalid("field", `"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`)
	default:
		return invalid("field", "adaptive thinking is not supported on this model")
	}
	if t, ok := p.doc["thinking"].(object); ok && p.thinking == "enabled" && !p.count {
		n, _ := t["budget_tokens"].(json.Number)
		if budget, err := n.Int64(); err != nil || budget < 1024 {
			return invalid("field", "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
		} else if p.limit <= int(budget) {
			return invalid("field", "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size")
		}
	}
	return nil
}

func checkMarkers(p *prompt, _ Model) *refusal {
	if n := len(p.markers); n > 4 {
		return invalid("markers", fmt.Sprintf("A maximum of 4 blocks with cache_control may be provided. Found %d.", n))
	}
	short := false
	for _, m := range p.markers {
		switch {
		case m.on == "thinking" || m.on == "redacted_thinking":
			return invalid("markers", dots(m.where)+"."+m.on+".cache_control: Extra inputs are not permitted")
		case m.on == "text" && m.text == "":
			return invalid("markers", dots(m.where)+".text: cache_control cannot be set for empty text blocks")
		case m.ttl == time.Hour && short:
			return invalid("markers", dots(m.where)+".cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.")
		}
		short = short || m.ttl < time.Hour
	}
	return nil
}

// dots writes messages[1].content[0] as the vendor does: messages.1.content.0.
func dots(where string) string { return strings.NewReplacer("[", ".", "]", "").Replace(where) }

func checkTexts(p *prompt, _ Model) *refusal {
	blank := func(o object, where string) *refusal {
		switch s, ok := o["text"].(string); {
		case o["type"] != "text":
		case !ok:
			return invalid("text", where+".text: Field required")
		case s == "":
			return invalid("text", where+": text content blocks must be non-empty")
		case strings.TrimSpace(s) == "":
			return invalid("text", where+": text content blocks must contain non-whitespace text")
		}
		return nil
	}
	for _, b := range p.blocks {
		if b.role == "tools" {
			continue
		}
		where, _, _ := strings.Cut(b.where, "[")
		if f := blank(b.value, where); f != nil {
			return f
		}
		if b.kind == "tool_result" {
			for _, o := range objects(b.value["content"]) {
				if f := blank(o, where); f != nil {
					return f
				}
			}
		}
	}
	return nil
}

// A turn is the vendor's joined form of consecutive messages of one role.
type turn struct {
	role   string
	at     int // index of the first message
	blocks []*block
}

// turns returns the turns, without messages of the system inside the conversation unless all is set.
func (p *prompt) turns(all bool) []turn {
	var out []turn
	before, message := "", -1
	for i := range p.blocks {
		b := &p.blocks[i]
		if b.message < 0 {
			continue
		}
		if b.role == "system" && !all {
			before = b.role
			continue
		}
		if n := len(out); n == 0 || out[n-1].role != b.role || before == "system" && message != b.message {
			out = append(out, turn{role: b.role, at: b.message})
		}
		before, message = b.role, b.message
		t := &out[len(out)-1]
		t.blocks = append(t.blocks, b)
	}
	return out
}

// checkRoles holds for messages and for the blocks in them. A message of the system follows a turn of the user and is
// followed by the assistant, or is last.
func checkRoles(p *prompt, m Model) *refusal {
	by := map[string]string{"tool_use": "assistant", "tool_result": "user", "thinking": "assistant", "redacted_thinking": "assistant"}
	turns := p.turns(true)
	for i, t := range turns {
		if t.role == "system" && (i == 0 || turns[i-1].role != "user" || i+1 < len(turns) && turns[i+1].role != "assistant") {
			return invalid("role", fmt.Sprintf("messages.%d: `system` messages must follow a `user` message and must come before an `assistant` message or at the end", t.at))
		}
		for _, b := range t.blocks {
			if role := by[b.kind]; role != "" && role != t.role {
				return invalid("role", fmt.Sprintf("%s: `%s` blocks can only be in `%s` messages", dots(b.where), b.kind, role))
			}
		}
	}
	if len(turns) == 0 {
		return invalid("role", "messages: at least one message is required")
	}
	if turns[0].role != "user" {
		return invalid("role", "messages: first message must use the \"user\" role")
	}
	if turns[len(turns)-1].role == "assistant" && !m.Prefill {
		return invalid("role", "This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	return nil
}

func checkPairs(p *prompt, _ Model) *refusal {
	used := map[string]bool{}
	var open []string // calls of the turn before
	turns := p.turns(false)
	for i, t := range turns {
		var answered []string
		front := true // results come first
		for _, b := range t.blocks {
			if front = front && b.kind == "tool_result"; b.kind != "tool_result" {
				continue
			}
			id := text(b.value["tool_use_id"])
			switch {
			case !slices.Contains(open, id):
				return invalid("pairs", fmt.Sprintf("%s: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", dots(b.where), id))
			case slices.Contains(answered, id):
				return invalid("pairs", fmt.Sprintf("%s: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s", dots(b.where), id))
			case front:
				answered = append(answered, id)
			}
		}
		missing := slices.DeleteFunc(open, func(id string) bool { return slices.Contains(answered, id) })
		if len(missing) > 0 {
			return unanswered(turns[i-1], missing)
		}
		open = nil
		for _, b := range t.blocks {
			if b.kind != "tool_use" {
				continue
			}
			id := text(b.value["id"])
			if _, ok := b.value["input"].(object); !ok || id == "" || text(b.value["name"]) == "" {
				return invalid("field", dots(b.where)+".tool_use: `id`, `name` and `input` are required; `input` should be a valid dictionary")
			}
			if used[id] {
				return invalid("ids", dots(b.where)+": `tool_use` ids must be unique")
			}
			used[id] = true
			open = append(open, id)
		}
	}
	if len(open) > 0 {
		return unanswered(turns[len(turns)-1], open)
	}
	return nil
}

// checkServerTools demands that calls which the vendor ran have their results in the same turn.
func checkServerTools(p *prompt, _ Model) *refusal {
	for _, t := range p.turns(false) {
		open := map[string]*block{}
		for _, b := range t.blocks {
			id := text(b.value["tool_use_id"])
			switch {
			case b.kind == "server_tool_use" || b.kind == "mcp_tool_use":
				open[text(b.value["id"])] = b
			case !strings.HasSuffix(b.kind, "_tool_result"):
			case open[id] == nil:
				return invalid("pairs", fmt.Sprintf("%s: unexpected `tool_use_id` found in `%s` blocks: %s. Each `%[2]s` block must have a corresponding tool use block before it.", dots(b.where), b.kind, id))
			default:
				delete(open, id)
			}
		}
		for _, b := range t.blocks {
			if id := text(b.value["id"]); open[id] == b {
				return invalid("pairs", fmt.Sprintf("%s: `%s` tool use with id %s was found without a corresponding result block", dots(b.where), text(b.value["name"]), id))
			}
		}
	}
	return nil
}

func unanswered(t turn, ids []string) *refusal {
	return invalid("pairs", fmt.Sprintf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", t.at, strings.Join(ids, ", ")))
}
