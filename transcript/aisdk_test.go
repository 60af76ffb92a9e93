package transcript_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
)

// Of a message of the user interface that is not sent whole, the parts that did not change keep
// their bytes, and so do those that are never sent; the messages around it keep every byte.
func TestAISDKChangesParts(t *testing.T) {
	t.Parallel()
	data := files(t, "aisdk")["session.json"]
	d := read(t, data, "")
	condense(t, d, core.Edit{
		Hide: []string{"u2", "a1.3"},
		Rewrite: []core.Rewrite{{ID: "a1.2", Parts: []core.Part{
			core.ToolResult{CallID: "call_1", Content: []core.Part{core.Text("cut")}},
			core.ToolResult{CallID: "call_2", Content: []core.Part{core.Text("File not found")}, IsError: true},
			core.ToolResult{CallID: "call_3", Content: []core.Part{core.Text("two"), core.Text("texts")}},
		}}},
		Insert: []core.Insert{{After: "u2", Message: core.Message{ID: "s1", Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("before")}}}},
	})
	out, warnings := write(t, d, "")
	lines := strings.Split(data, "\n")
	want := strings.Join([]string{
		lines[0], lines[1], lines[2], lines[3],
		`    {"id": "a1", "role": "assistant", "createdAt": "2026-05-01T10:00:05.000Z", "metadata": {"model": "x"}, "parts": [{"type": "step-start"},` +
			strings.TrimSpace(lines[6]) + strings.TrimSpace(lines[7]) +
			`{"type":"tool-bash","toolCallId":"call_1","state":"output-available","input":{"command": "go test ./..."},"output":"cut"},` +
			strings.TrimSpace(lines[9]) +
			`{"type":"dynamic-tool","toolName":"list","toolCallId":"call_3","state":"output-available","input":{},"output":{"content":[{"type":"text","text":"two"},{"type":"text","text":"texts"}]}},` +
			strings.TrimSuffix(strings.TrimSpace(lines[11]), ",") + `]},`,
		`    {"id":"s1","role":"user","parts":[{"type":"text","text":"before"}]},`,
		lines[15], lines[16], lines[17], "",
	}, "\n")
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(out, "\n")); diff != "" || len(warnings) > 0 {
		t.Errorf("warnings %v (-want +got):\n%s", warnings, diff)
	}
}

// Messages that are never sent stay where they are, and an array that becomes empty is one.
func TestAISDKWithoutMessages(t *testing.T) {
	t.Parallel()
	const silent = `{"id":"x","role":"assistant","parts":[{"type":"data-x","data":1}]}`
	const said = `{"id":"u","role":"user","parts":[{"type":"text","text":"hello"}]}`
	for data, want := range map[string]string{
		`[` + said + `]`:                                `[]`,
		`[` + silent + ",\n" + said + `]`:               `[` + silent + `]`,
		`[` + said + ",\n" + silent + `]`:               `[` + silent + `]`,
		`[` + silent + `,` + said + `, ` + silent + `]`: `[` + silent + `, ` + silent + `]`,
		`{"messages": [ ` + said + ` ], "n": 1}`:        `{"messages": [  ], "n": 1}`,
	} {
		d := read(t, data, "")
		condense(t, d, core.Edit{Hide: []string{"u"}})
		if got, _ := write(t, d, ""); strings.Join(strings.Fields(got), "") != strings.Join(strings.Fields(want), "") {
			t.Errorf("%s: got %s, want %s", data, got, want)
		}
	}
	d := read(t, `[`+silent+`]`, "aisdk")
	if err := d.Journal.Append(core.Message{ID: "new", Role: core.RoleUser, Parts: []core.Part{core.Text("hello")}}); err != nil {
		t.Fatal(err)
	}
	if got, _ := write(t, d, ""); got != `[`+silent+`,{"id":"new","role":"user","parts":[{"type":"text","text":"hello"}]}]` {
		t.Errorf("got %s", got)
	}
}
