package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/transcript"
)

// Rewritten messages keep what did not change, byte for byte, and what the host does not
// know. The rewrites are of message m2; the messages around it are the file's.
func TestRewrittenMessageKeepsTheRest(t *testing.T) {
	const before, after = "[\n {\"role\":\"user\", \"content\":\"a\"},\n ", ",\n {\"role\":\"user\",\"content\":\"z\"} ]\n"
	for _, test := range []struct {
		name, format, was string
		parts             []core.Part
		want              string
	}{
		{
			"a string", "anthropic",
			`{"ts": 1, "role":"assistant", "content": "long", "x":[1, 2]}`,
			[]core.Part{core.Text("short \"q\" <b>")},
			`{"ts": 1, "role":"assistant", "content": "short \"q\" <b>", "x":[1, 2]}`,
		},
		{
			"a string becomes blocks", "anthropic",
			`{"role":"user","content":"long"}`,
			[]core.Part{core.Text("short"), core.Image{MediaType: "image/png", Data: "QUJD"}},
			`{"role":"user","content":[{"type":"text","text":"short"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}]}`,
		},
		{
			"a result keeps its fields", "anthropic",
			`{"role":"user","content":[ {"type":"tool_result","cache_control":{"type": "ephemeral"},"tool_use_id":"t","content":"long","is_error":true}, {"type":"text" ,"text":"b"} ]}`,
			[]core.Part{core.ToolResult{CallID: "t", Content: []core.Part{core.Text("short")}, IsError: true}, core.Text("b")},
			`{"role":"user","content":[{"type":"tool_result","cache_control":{"type": "ephemeral"},"tool_use_id":"t","content":"short","is_error":true},{"type":"text" ,"text":"b"}]}`,
		},
		{
			"a result with blocks keeps those that stay", "anthropic",
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"type":"url","url":"https://i"}},{"type":"text","text":"b","x":1},{"type":"text","text":"c"}]}]}`,
			[]core.Part{core.ToolResult{CallID: "t", Content: []core.Part{core.Text("[an image]"), core.Text("b"), core.Text("C")}}},
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"[an image]"},{"type":"text","text":"b","x":1},{"type":"text","text":"C"}]}]}`,
		},
		{
			"a result that said nothing", "anthropic",
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}`,
			[]core.Part{core.ToolResult{CallID: "t", Content: []core.Part{core.Text("cleared")}, IsError: true}},
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"cleared","is_error":true}]}`,
		},
		{
			"a call with other arguments", "anthropic",
			`{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"n","input":{"big":1},"caller":{"type":"direct"}},{"type":"tool_use","id":"u","name":"n","input":{"k": 1}}]}`,
			[]core.Part{core.Text("a"), core.ToolCall{ID: "t", Name: "n", Args: `{"big":0}`}, core.ToolCall{ID: "u", Name: "n", Args: `{"k": 1}`}},
			`{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t","name":"n","input":{"big":0},"caller":{"type":"direct"}},{"type":"tool_use","id":"u","name":"n","input":{"k": 1}}]}`,
		},
		{
			"a call whose arguments are prose now", "anthropic",
			`{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]}`,
			[]core.Part{core.ToolCall{ID: "t", Name: "n", Args: `cut`}},
			`{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{"arguments":"cut"}}]}`,
		},
		{
			"reasoning goes, text stays with its cache mark", "anthropic",
			`{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"s"},{"type":"hologram","x":1},{"type":"text","text":"a","cache_control":{}}]}`,
			[]core.Part{core.Opaque{Kind: "hologram", JSON: `{"type":"hologram","x":1}`}, core.Text("a")},
			`{"role":"assistant","content":[{"type":"hologram","x":1},{"type":"text","text":"a","cache_control":{}}]}`,
		},
		{
			"a text loses its citations, which count characters", "anthropic",
			`{"role":"assistant","content":[{"type":"text","citations":[{"start":1}],"text":"long","cache_control":{}}]}`,
			[]core.Part{core.Text("l")},
			`{"role":"assistant","content":[{"type":"text","text":"l","cache_control":{}}]}`,
		},
		{
			"the last of repeated keys counts", "anthropic",
			`{"role":"assistant","content":"x","content":"long"}`,
			[]core.Part{core.Text("short")},
			`{"role":"assistant","content":"x","content":"short"}`,
		},
		{
			"no content at all", "anthropic",
			`{"role":"assistant" ,"content":null}`,
			[]core.Part{core.Text("short")},
			`{"role":"assistant" ,"content":"short"}`,
		},
		{
			"a tool message", "openai",
			`{"role":"tool","tool_call_id":"t","content":"long","x":1}`,
			[]core.Part{core.ToolResult{CallID: "t", Content: []core.Part{core.Text("short")}}},
			`{"role":"tool","tool_call_id":"t","content":"short","x":1}`,
		},
		{
			"a tool message with parts", "openai",
			`{"role":"tool","tool_call_id":"t","content":[{"type":"text","text":"long","x":1},{"type":"text","text":"b"}]}`,
			[]core.Part{core.ToolResult{CallID: "t", Content: []core.Part{core.Text("short"), core.Text("b")}}},
			`{"role":"tool","tool_call_id":"t","content":[{"type":"text","text":"short","x":1},{"type":"text","text":"b"}]}`,
		},
		{
			"arguments", "openai",
			`{"role":"assistant","content":null,"tool_calls":[ {"id":"t","type":"function","x":1,"function":{"arguments":"{\"big\":1}","name":"n"}},{"id":"u","type":"function","function":{"name":"n","arguments":"{ }"}}]}`,
			[]core.Part{core.ToolCall{ID: "t", Name: "n", Args: `{}`}, core.ToolCall{ID: "u", Name: "n", Args: `{ }`}},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"t","type":"function","x":1,"function":{"arguments":"{}","name":"n"}},{"id":"u","type":"function","function":{"name":"n","arguments":"{ }"}}]}`,
		},
		{
			"custom tool", "openai",
			`{"role":"assistant","content":"a","tool_calls":[{"id":"t","type":"custom","custom":{"name":"n","input":"long"}}]}`,
			[]core.Part{core.Text("a"), core.ToolCall{ID: "t", Name: "n", Args: `short`}},
			`{"role":"assistant","content":"a","tool_calls":[{"id":"t","type":"custom","custom":{"name":"n","input":"short"}}]}`,
		},
		{
			"reasoning goes", "openai",
			`{"role":"assistant","reasoning_content":"hm","content":"a","refusal":"no"}`,
			[]core.Part{core.Text("a"), core.Text("no")},
			`{"role":"assistant","content":"a","refusal":"no"}`,
		},
		{
			"text is cut, reasoning stays", "openai",
			`{"role":"assistant","reasoning":"hm","content":"long","annotations":[ ]}`,
			[]core.Part{core.Reasoning{Text: "hm"}, core.Text("a")},
			`{"role":"assistant","reasoning":"hm","content":"a","annotations":[ ]}`,
		},
		{
			"function call", "openai",
			`{"role":"assistant","content":null,"function_call":{"name":"n","arguments":"{\"big\":1}"}}`,
			[]core.Part{core.ToolCall{ID: "function:n", Name: "n", Args: `{}`}},
			`{"role":"assistant","content":null,"function_call":{"name":"n","arguments":"{}"}}`,
		},
		{
			"an image becomes text", "openai",
			`{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://i","detail":"low"}},{"type":"text","text":"b"}]}`,
			[]core.Part{core.Text("[an image]"), core.Text("b")},
			`{"role":"user","content":[{"type":"text","text":"[an image]"},{"type":"text","text":"b"}]}`,
		},
		{
			"a recorded message", "trace",
			`{"role":"user","origin":"tool","content":[{"type":"tool_result","tool_use_id":"t","content":"long","x":1}]}`,
			[]core.Part{core.ToolResult{CallID: "t", Content: []core.Part{core.Text("short")}}},
			`{"role":"user","origin":"tool","content":[{"type":"tool_result","tool_use_id":"t","content":"short","x":1}]}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			head, tail := before, after
			if test.format == "trace" {
				head, tail = `{"source":"s","messages":`+head, tail+"}"
			}
			d := read(t, head+test.was+tail, test.format)
			condense(t, d, core.Edit{Rewrite: []core.Rewrite{{ID: "m2", Parts: test.parts}}})
			got, warnings := write(t, d, "")
			if len(warnings) > 0 {
				t.Errorf("got warnings %v", warnings)
			}
			got = strings.TrimSuffix(strings.TrimPrefix(got, head), tail)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			again := read(t, head+got+tail, test.format).Journal.View()[1]
			if last := test.parts[len(test.parts)-1]; !core.EqualParts(again.Parts, test.parts) && last != core.Part(core.ToolCall{ID: "t", Name: "n", Args: "cut"}) {
				t.Errorf("reads back as %v, want %v", again.Parts, test.parts)
			}
		})
	}
}

// A new message looks like its neighbours would if they were new.
func TestNewMessagesInTheFilesOwnFormat(t *testing.T) {
	insert := core.Edit{Insert: []core.Insert{
		{Message: core.Message{ID: "n1", Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("sum")}}},
		{After: "m1", Message: core.Message{ID: "n2", Role: core.RoleAssistant, Kind: core.KindMarker, Parts: []core.Part{core.Text("a"), core.Text("b")}}},
	}}
	for _, test := range []struct{ data, want string }{
		{
			"[\n  {\"role\":\"user\",\"content\":\"a\"}\n]",
			"[\n  {\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"sum\"},{\"type\":\"text\",\"text\":\"a\"}]},\n  {\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}\n]",
		},
		{
			`[{"role":"developer","content":"a"}, {"role":"user","content":"b"}]`,
			`[{"role":"user","content":"sum"}, {"role":"developer","content":"a"}, {"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}, {"role":"user","content":"b"}]`,
		},
		{
			`{"source":"s","messages":[{"role":"user","origin":"human","content":[]}]}`,
			`{"source":"s","messages":[{"role":"user","origin":"injected","content":[{"type":"text","text":"sum","origin":"injected"}]},{"role":"user","origin":"human","content":[]},{"role":"assistant","origin":"agent","content":[{"type":"text","text":"a","origin":"agent"},{"type":"text","text":"b","origin":"agent"}]}]}`,
		},
	} {
		d := read(t, test.data, "")
		condense(t, d, insert)
		if got, _ := write(t, d, ""); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}

// Where a condensation would leave adjacent user messages, they become one, with every byte of
// their content; those that were adjacent in the file are kept.
func TestRowsOfACondensationBecomeOneMessage(t *testing.T) {
	u := func(id, text string) core.Message {
		return core.Message{ID: id, Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(text)}}
	}
	for _, test := range []struct {
		name, data string
		edit       core.Edit
		want       string
	}{
		{
			"before, with the fields of the message", `[{"role":"user","content":[{"text":"a","type":"text","cache_control":{"type":"ephemeral"}}],"id":"x"}]`,
			core.Edit{Insert: []core.Insert{{Message: u("n", "sum")}}},
			`[{"role":"user","content":[{"type":"text","text":"sum"},{"text":"a","type":"text","cache_control":{"type":"ephemeral"}}],"id":"x"}]`,
		},
		{
			"between, where an answer is hidden", `[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"},{"role":"user","content":"d"}]`,
			core.Edit{Hide: []string{"m2"}, Insert: []core.Insert{{After: "m2", Message: u("n", "sum")}}},
			`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"sum"},{"type":"text","text":"c"}]},{"role":"user","content":"d"}]`,
		},
		{
			"where an answer is hidden and nothing stands for it", `[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]`,
			core.Edit{Hide: []string{"m2"}},
			`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"c"}]}]`,
		},
		{
			"behind results", `[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]},{"role":"assistant","content":"b"},{"role":"assistant","content":"c"}]`,
			core.Edit{Hide: []string{"m3"}, Insert: []core.Insert{{After: "m3", Message: u("n", "sum")}}},
			`[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"},{"type":"text","text":"sum"}]},{"role":"assistant","content":"c"}]`,
		},
		{
			"not before results, which come first", `[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]}]`,
			core.Edit{Insert: []core.Insert{{Message: u("n", "sum")}}},
			`[{"role":"user","content":"sum"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]}]`,
		},
		{
			"OpenAI", `[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x/y.png","detail":"low"}}]},{"role":"assistant","content":"b"}]`,
			core.Edit{Insert: []core.Insert{{Message: u("n", "sum")}}},
			`[{"role":"user","content":[{"type":"text","text":"sum"},{"type":"image_url","image_url":{"url":"https://x/y.png","detail":"low"}}]},{"role":"assistant","content":"b"}]`,
		},
		{
			"not with somebody who has a name", `[{"role":"user","content":"a","name":"ann"},{"role":"tool","tool_call_id":"c","content":"r"}]`,
			core.Edit{Insert: []core.Insert{{Message: u("n", "sum")}}},
			`[{"role":"user","content":"sum"},{"role":"user","content":"a","name":"ann"},{"role":"tool","tool_call_id":"c","content":"r"}]`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			format := "anthropic"
			if strings.Contains(test.data, "image_url") || strings.Contains(test.data, `"tool"`) {
				format = "openai"
			}
			d := read(t, test.data, format)
			if got, _ := write(t, d, ""); got != test.data {
				t.Fatalf("unchanged: got %s, want %s", got, test.data)
			}
			condense(t, d, test.edit)
			if got, _ := write(t, d, ""); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// TestLongRowsAreMerged: a row of messages becomes one in time that grows with what they
// hold. When each was joined to all before it, this row took a minute.
func TestLongRowsAreMerged(t *testing.T) {
	testkit.Linear(t, 30_000, func(n int) func() {
		d, want := longRow(t, n)
		return func() {
			if got, _ := write(t, d, ""); got != want {
				t.Errorf("got %.200s…, want %.200s…", got, want)
			}
		}
	})
}

// longRow returns a document of n messages of the user's in a row, and what they become.
func longRow(t *testing.T, n int) (d *transcript.Document, merged string) {
	t.Helper()
	var data, want strings.Builder
	var hide []string
	for i := range n {
		fmt.Fprintf(&data, `,{"role":"user","content":"%d"},{"role":"assistant","content":"b"}`, i)
		fmt.Fprintf(&want, `,{"type":"text","text":"%d"}`, i)
		hide = append(hide, fmt.Sprintf("m%d", 2*i+2))
	}
	d = read(t, "["+data.String()[1:]+"]", "anthropic")
	condense(t, d, core.Edit{Hide: hide})
	return d, `[{"role":"user","content":[` + want.String()[1:] + "]}]"
}

// In another format too, what was inserted is merged with adjacent user messages, before and
// after.
func TestNoRowsWithWhatWasInserted(t *testing.T) {
	d := read(t, `[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"},{"role":"user","content":"d"}]`, "anthropic")
	condense(t, d, core.Edit{Hide: []string{"m2"}, Insert: []core.Insert{{After: "m2", Message: core.Message{
		ID: "n", Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("sum")},
	}}}})
	want := `[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"sum"},{"type":"text","text":"c"}]},{"role":"user","content":"d"}]` + "\n"
	if got, _ := write(t, d, "openai"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestHiddenMessagesTakeTheirGapsAlong(t *testing.T) {
	d := read(t, "[ {\"role\":\"user\",\"content\":\"a\"},\n{\"role\":\"assistant\",\"content\":\"b\"} ,{\"role\":\"user\",\"content\":\"c\"},\n{\"role\":\"assistant\",\"content\":\"d\"}]", "")
	condense(t, d, core.Edit{Hide: []string{"m1", "m3"}})
	got, _ := write(t, d, "")
	if want := "[ {\"role\":\"assistant\",\"content\":\"b\"},\n{\"role\":\"assistant\",\"content\":\"d\"}]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
