package upstream

import (
	"fmt"
	"slices"
	"strings"
)

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
		for _, c := range objects(calls) {
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
		if b.kind == "reasoning" && (i+1 == len(p.blocks) || s.text != ledTo(&p.blocks[i+1])) {
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
