package apilint

import (
	"encoding/json"
	"slices"
	"strings"
)

// responsesBlocks are the blocks that a message of each role may have.
var responsesBlocks = map[string][]string{
	"user":      {"input_text", "input_image", "input_file"},
	"developer": {"input_text", "input_image", "input_file"},
	"system":    {"input_text", "input_image", "input_file"},
	"assistant": {"output_text", "refusal"},
}

// Responses returns the faults for which the Responses API would reject raw, a request or its array
// of items.
func Responses(raw []byte) []Fault {
	var l linter
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		l.at = -1
		l.fault("json", "%v", err)
		return l.faults
	}
	if request, ok := v.(object); ok {
		if v = request["input"]; v == nil {
			v = request["output"]
		}
	}
	if _, ok := v.(string); ok {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		l.at = -1
		l.fault("input", "want a string or an array of items")
		return l.faults
	}
	open, answered := map[string]int{}, map[string]bool{}
	thinking, heard := false, -1 // the item before is reasoning; the last item that is not the model's
	for i, v := range list {
		l.at = i
		item, ok := v.(object)
		if !ok {
			l.fault("input", "want an object")
			continue
		}
		kind, _ := item["type"].(string)
		role, _ := item["role"].(string)
		if kind == "" && role != "" {
			kind = "message"
		}
		says := kind == "message" && role == "assistant" || strings.HasSuffix(kind, "_call") || kind == "reasoning" || kind == "compaction"
		if thinking && !says {
			l.fault("reasoning", "reasoning without the item that it led to")
		}
		thinking = kind == "reasoning"
		if !says {
			heard = i
		}
		switch {
		case kind == "message":
			l.responsesMessage(role, item)
		case kind == "function_call", kind == "custom_tool_call", strings.HasSuffix(kind, "_call") && item["call_id"] != nil:
			id, _ := item["call_id"].(string)
			if _, twice := open[id]; twice || id == "" {
				l.fault("tool-pair", "call ID %q is empty or not unique", id)
			}
			open[id] = i
			text := map[string]string{"function_call": "arguments", "custom_tool_call": "input"}[kind]
			if _, ok := item[text].(string); text != "" && (!ok || l.require("a call", item, "name") == "") {
				l.fault("call", "%s without a name and a string as %q", kind, text)
			}
		case strings.HasSuffix(kind, "_call_output"):
			id, _ := item["call_id"].(string)
			if id == "" {
				id, _ = item["id"].(string)
			}
			if _, ok := open[id]; !ok || answered[id] {
				l.fault("tool-pair", "no tool call found for output of call %q", id)
			}
			answered[id] = true
			l.responsesOutput(kind, item["output"])
		case kind == "":
			l.fault("type", "an item without a type")
		case kind == "compaction_trigger" && i < len(list)-1:
			l.fault("trigger", "not the last item")
		}
	}
	for id, i := range open {
		if l.at = i; !answered[id] && i < heard { // at the very end calls may be pending
			l.fault("tool-pair", "no tool output found for call %q", id)
		}
	}
	return l.faults
}

func (l *linter) responsesMessage(role string, item object) {
	kinds, ok := responsesBlocks[role]
	if !ok {
		l.fault("role", "role %q", role)
		return
	}
	if _, ok := item["content"].(string); !ok {
		l.responsesBlocks("a message of "+role, item["content"], kinds)
	}
}

func (l *linter) responsesOutput(kind string, output any) {
	if kind != "function_call_output" && kind != "custom_tool_call_output" {
		return // shapes of the vendor's own tools
	}
	if _, ok := output.(string); !ok {
		l.responsesBlocks("an output", output, responsesBlocks["user"])
	}
}

func (l *linter) responsesBlocks(of string, v any, kinds []string) {
	blocks, ok := v.([]any)
	if !ok {
		l.fault("content", "%s: want a string or blocks", of)
	}
	for _, b := range blocks {
		block, _ := b.(object)
		kind, _ := block["type"].(string)
		if _, isText := block["text"].(string); !slices.Contains(kinds, kind) || strings.HasSuffix(kind, "_text") && !isText {
			l.fault("content", "%s: a block %q", of, kind)
		}
	}
}
