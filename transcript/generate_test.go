package transcript_test

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
)

// wild draws any part of a conversation, valid or not.
func wild(t *rapid.T, nested bool) core.Part {
	texts := []string{"", " \n", "\u00a0\u3000", "plain", "two\nlines ", "\"q\" <b> & \u2028 \x00", "bad \xff\xc3 bytes", "😀 日本", "{\"json\":1}"}
	ids := []string{"a", "b", "c", "", "x y", "ä", strings.Repeat("long", 20), "a_2"}
	kinds := 3
	if !nested {
		kinds = 6
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind of part") {
	case 0:
		return core.Text(rapid.SampledFrom(texts).Draw(t, "text"))
	case 1:
		return rapid.SampledFrom([]core.Image{
			{MediaType: "image/png", Data: png},
			{Data: "R0lGODlh"},
			{URL: "https://i"},
			{URL: "ftp://i"},
			{},
			{MediaType: "image/tiff", Data: png},
			{MediaType: "image/png", Data: "%"},
		}).Draw(t, "image")
	case 2:
		return rapid.SampledFrom([]core.Opaque{
			{Kind: "document", JSON: `{"type":"document"}`},
			{Kind: "file", JSON: `{"type":"file"}`},
			{Kind: "odd", JSON: `{`},
			{Kind: "image", JSON: `{"type":"image","x":1,"source":{"type":"file","file_id":"f"}}`},
			{Kind: "image", JSON: `{"type":"image","source":{"type":"base64","data":""}}`},
			{Kind: "search_result", JSON: "{\"type\":\"search_result\",\"x\":\"\\ud800\xff\"}"},
			{},
			{Kind: "server_tool_use", JSON: `{"type":"server_tool_use"}`},
		}).Draw(t, "opaque")
	case 3:
		return core.ToolCall{
			ID:   rapid.SampledFrom(ids).Draw(t, "call"),
			Name: rapid.SampledFrom([]string{"run", "fs.read", "", strings.Repeat("n", 200)}).Draw(t, "tool"),
			Args: rapid.SampledFrom([]string{`{}`, ` {"a": [1]} `, ``, `"s"`, `no`, "{\"a\":\"\xff\\ud800\"}", `{`}).Draw(t, "args"),
		}
	case 4:
		r := core.ToolResult{CallID: rapid.SampledFrom(ids).Draw(t, "answers"), IsError: rapid.Bool().Draw(t, "failed")}
		for range rapid.IntRange(0, 3).Draw(t, "parts of result") {
			r.Content = append(r.Content, wild(t, true))
		}
		return r
	default:
		return rapid.SampledFrom([]core.Reasoning{{Text: "t"}, {Text: "t", Signature: "s"}, {Encrypted: "e"}, {}}).Draw(t, "reasoning")
	}
}

func wildMessages(t *rapid.T) []core.Message {
	messages := make([]core.Message, rapid.IntRange(0, 12).Draw(t, "messages"))
	for i := range messages {
		messages[i] = core.Message{
			ID:   fmt.Sprint("id", i),
			Role: rapid.SampledFrom([]core.Role{core.RoleUser, core.RoleAssistant, core.RoleAssistant, core.RoleTool, core.RoleSystem}).Draw(t, "role"),
		}
		for range rapid.IntRange(0, 4).Draw(t, "parts") {
			messages[i].Parts = append(messages[i].Parts, wild(t, false))
		}
	}
	return messages
}

// tame draws a conversation that format can say without a loss, as the format says it.
func tame(t *rapid.T, format string) []core.Message {
	var messages []core.Message
	add := func(role core.Role, parts ...core.Part) {
		messages = append(messages, core.Message{ID: fmt.Sprint("m", len(messages)+1), Role: role, Parts: parts})
	}
	text := func(label string) core.Text {
		return core.Text(rapid.StringMatching(`[a-z"\\<>&😀é\n]{0,20}[a-z]`).Draw(t, label))
	}
	image := core.Image{MediaType: "image/png", Data: png}
	if format == "openai" && rapid.Bool().Draw(t, "system") {
		add(core.RoleSystem, text("system"))
	}
	for i := range rapid.IntRange(1, 6).Draw(t, "turns") {
		parts := []core.Part{text("user")}
		if rapid.Bool().Draw(t, "image") {
			parts = append(parts, image, text("behind"))
		}
		var said []core.Part
		if format != "openai" && rapid.Bool().Draw(t, "reasoning") {
			said = append(said, core.Reasoning{Text: "t", Signature: "s"}, core.Reasoning{Encrypted: "e"})
		}
		said = append(said, text("assistant"))
		var results []core.Part
		for k := range rapid.IntRange(0, 3).Draw(t, "calls") {
			c := core.ToolCall{ID: fmt.Sprintf("c%d_%d", i, k), Name: "run", Args: `{"a": "é"}`}
			r := core.ToolResult{CallID: c.ID}
			if rapid.Bool().Draw(t, "says something") {
				r.Content = append(r.Content, text("result"))
				if format != "openai" {
					r.IsError = rapid.Bool().Draw(t, "failed")
					if rapid.Bool().Draw(t, "shows something") {
						r.Content = append(r.Content, image)
					}
				}
			}
			said, results = append(said, c), append(results, r)
		}
		add(core.RoleUser, parts...)
		add(core.RoleAssistant, said...)
		switch {
		case len(results) == 0:
		case format == "openai":
			for _, r := range results {
				add(core.RoleTool, r)
			}
			add(core.RoleAssistant, text("then"))
		default:
			add(core.RoleUser, results...)
			add(core.RoleAssistant, text("then"))
		}
	}
	return messages
}
