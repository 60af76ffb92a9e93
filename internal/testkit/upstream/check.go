package upstream

import (
	"crypto/sha256"
	"encoding/base64"
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
		Ollama:    {checkExchanges},
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
	if n <= v.o.Window || p.count || p.api == Ollama {
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
	case Messages, Ollama:
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
func dots(where string) string {
	return strings.NewReplacer("[", ".", "]", "").Replace(where)
}

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
		if inner, ok := b.value["content"].([]any); ok && b.kind == "tool_result" {
			for _, v := range inner {
				if o, ok := v.(object); ok {
					if f := blank(o, where); f != nil {
						return f
					}
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

// A seal is in the signature of thinking: hashes of the content before it, of the thinking before it, and of its own
// text.
type seal struct{ prefix, before, text [16]byte }

func (s seal) mac() []byte {
	sum := sha256.Sum256(slices.Concat([]byte("upstream"), s.prefix[:], s.before[:], s.text[:]))
	return sum[:12]
}

// String returns the signature.
func (s seal) String() string {
	return base64.StdEncoding.EncodeToString(slices.Concat(s.prefix[:], s.before[:], s.text[:], s.mac()))
}

// unseal reads a signature. It is false if no vendor of this package made it.
func unseal(signature string) (s seal, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(signature)
	if err != nil || len(raw) != 60 {
		return s, false
	}
	copy(s.prefix[:], raw)
	copy(s.before[:], raw[16:])
	copy(s.text[:], raw[32:])
	return s, string(raw[48:]) == string(s.mac())
}

func hashOf(kind, text string) [16]byte { return roll([16]byte{}, kind, []byte(text)) }

// checkThinking requires that thinking is unchanged; for bound models, everything before it, too. Thinking may be
// removed from the start or the end of the conversation, or all of it; never from the middle, and it must never be
// inserted again. With "enabled", an open round of tools must begin with thinking.
func checkThinking(p *prompt, m Model) *refusal {
	latest := -1
	for _, b := range p.blocks {
		if b.role == "assistant" {
			latest = b.message
		}
	}
	drop := false
	if t, ok := p.doc["thinking"].(object); ok {
		binding, _ := t["block_binding"].(object)
		drop = text(binding["prefix_mismatch_behavior"]) == "drop_block"
	}
	var before [16]byte
	for i, b := range p.blocks {
		if !b.thinking() {
			continue
		}
		field, own := "signature", hashOf("thinking", text(b.value["thinking"]))
		if b.kind == "redacted_thinking" {
			field, own = "data", hashOf("redacted", "")
		}
		s, ok := unseal(text(b.value[field]))
		switch where := dots(b.where); {
		case !ok:
			return invalid("thinking", fmt.Sprintf("%s: Invalid `%s` in `%s` block", where, field, b.kind))
		case s.text != own && b.message == latest:
			return invalid("thinking", where+": `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.")
		case s.text != own:
			return invalid("thinking", where+": Invalid `signature` in `thinking` block")
		case m.Bound && !drop && (s.prefix != p.blocks[i-1].bound || before != [16]byte{} && s.before != before):
			return invalid("binding", where+": Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\". That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header.")
		}
		before = s.id()
	}
	turns := p.turns(false)
	if p.thinking != "enabled" || len(turns) < 2 || turns[len(turns)-1].blocks[0].kind != "tool_result" {
		return nil
	}
	if t := turns[len(turns)-2]; !t.blocks[0].thinking() {
		return invalid("thinking", fmt.Sprintf("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`.", t.at, t.blocks[0].kind))
	}
	return nil
}

// id names a thinking block.
func (s seal) id() [16]byte { return hashOf("seal", s.String()) }

func checkChat(p *prompt, _ Model) *refusal {
	fail := func(rule, format string, args ...any) *refusal {
		return &refusal{status: 400, rule: rule, param: "messages", text: fmt.Sprintf(format, args...)}
	}
	if p.model == "" {
		return fail("field", "you must provide a model parameter")
	}
	var open []string
	used := map[string]bool{}
	for _, b := range p.blocks {
		if b.message < 0 {
			continue
		}
		if b.role == "tool" {
			id := text(b.value["tool_call_id"])
			i := slices.Index(open, id)
			if i < 0 {
				return fail("pairs", "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.") //nolint:misspell // the vendor's
			}
			open = slices.Delete(open, i, i+1)
			continue
		}
		if len(open) > 0 {
			break
		}
		calls, _ := b.value["tool_calls"].([]any)
		switch content := b.value["content"].(type) {
		case nil:
			if b.role != "assistant" || len(calls) == 0 && b.value["refusal"] == nil {
				return fail("text", "Invalid value for 'content': expected a string, got null.")
			}
		case []any:
			if len(content) == 0 {
				return fail("text", "Invalid '%s.content': empty array. Expected an array with minimum length 1, but got an empty array instead.", b.where)
			}
		}
		if !slices.Contains([]string{"system", "developer", "user", "assistant", "function"}, b.role) {
			return fail("role", "Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", b.role)
		}
		for _, c := range calls {
			c, _ := c.(object)
			id := text(c["id"])
			if used[id] || id == "" {
				return fail("ids", "Duplicate or missing 'id' in 'tool_calls': '%s'.", id)
			}
			used[id] = true
			open = append(open, id)
		}
	}
	if len(open) > 0 {
		return fail("pairs", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(open, ", "))
	}
	return nil
}

// checkItems demands a result for every call and a call before every result, wherever they are.
func checkItems(p *prompt, _ Model) *refusal {
	fail := func(rule, format string, args ...any) *refusal {
		return &refusal{status: 400, rule: rule, param: "input", text: fmt.Sprintf(format, args...)}
	}
	if p.model == "" {
		return fail("field", "Missing required parameter: 'model'.")
	}
	if p.doc["previous_response_id"] != nil {
		return &refusal{400, "state", "previous_response_not_found", "previous_response_id", fmt.Sprintf("Previous response with id '%s' not found.", text(p.doc["previous_response_id"]))}
	}
	calls, results := map[string]string{}, map[string]bool{}
	var order []string
	for _, b := range p.blocks {
		if b.message < 0 {
			continue
		}
		id := text(b.value["call_id"])
		switch kind, result := strings.CutSuffix(b.kind, "_output"); {
		case b.kind == "message":
			if !slices.Contains([]string{"system", "developer", "user", "assistant"}, b.role) {
				return fail("role", "Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'.", b.role)
			}
			if parts, ok := b.value["content"].([]any); b.value["content"] == nil || ok && len(parts) == 0 {
				return fail("text", "Invalid '%s.content': empty array. Expected an array with minimum length 1, but got an empty array instead.", b.where)
			}
		case result && strings.HasSuffix(kind, "_call"):
			id = firstOf(id, text(b.value["id"]))
			switch {
			case calls[id] != kind:
				return fail("pairs", "No tool call found for %s output with call_id %s.", strings.ReplaceAll(kind, "_", " "), id)
			case results[id]:
				return fail("pairs", "Duplicate item found with call_id %s.", id)
			}
			results[id] = true
		case b.kind == "function_call" || b.kind == "custom_tool_call" || b.kind == "local_shell_call" || b.kind == "shell_call" || b.kind == "apply_patch_call":
			if calls[id] != "" || id == "" {
				return fail("ids", "Duplicate or missing call_id in '%s': '%s'.", b.where, id)
			}
			calls[id] = b.kind
			order = append(order, id)
		}
	}
	for _, id := range order {
		if !results[id] {
			return fail("pairs", "No tool output found for %s %s.", strings.ReplaceAll(calls[id], "_", " "), id)
		}
	}
	return nil
}

// checkReasoning requires that encrypted reasoning is intact and followed by its item.
func checkReasoning(p *prompt, _ Model) *refusal {
	for i, b := range p.blocks {
		if b.kind != "reasoning" && b.kind != "compaction" {
			continue
		}
		id := text(b.value["id"])
		s, ok := unseal(text(b.value["encrypted_content"]))
		if !ok {
			return &refusal{400, "thinking", "invalid_encrypted_content", "input", fmt.Sprintf("The encrypted content for item %s could not be verified. Reason: Encrypted content could not be decrypted or parsed.", id)}
		}
		if b.kind == "compaction" {
			continue
		}
		if i+1 == len(p.blocks) || s.text != ledTo(&p.blocks[i+1]) {
			return &refusal{400, "thinking", "", "input", fmt.Sprintf("Item '%s' of type 'reasoning' was provided without its required following item.", id)}
		}
	}
	return nil
}

// ledTo names the item that follows reasoning.
func ledTo(b *block) [16]byte {
	if b.kind == "message" && b.role == "assistant" {
		return hashOf("reasoning", "message")
	}
	return hashOf("reasoning", text(b.value["call_id"]))
}
