package transcript_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
)

// What is hidden is left out, what is new is in its place, and every other line is unchanged,
// including those of the user interface.
func TestCodexCondensed(t *testing.T) {
	t.Parallel()
	data := files(t, "codex")["session.jsonl"]
	d := read(t, data, "")
	condense(t, d, core.Edit{
		Hide: []string{"rs_1", "fc_1", "m6"},
		Rewrite: []core.Rewrite{
			{ID: "m3", Parts: []core.Part{core.Text("Why?"), core.Image{MediaType: "image/png", Data: "iVBORw0KGgo="}}},
			{ID: "m8", Parts: []core.Part{core.ToolResult{CallID: "call_2", Content: []core.Part{core.Text("[cut]")}}}},
			{ID: "m9", Parts: []core.Part{core.ToolCall{ID: "call_3", Name: "local_shell", Args: `{"type":"exec","command":["true"]}`}}},
			{ID: "m10", Parts: []core.Part{core.ToolResult{CallID: "call_3", Content: []core.Part{core.Text("[gone]")}, IsError: true}}},
			{ID: "m12", Parts: []core.Part{core.ToolResult{CallID: "call_4", Content: []core.Part{core.Text("[cut]"), core.Image{URL: "https://example.org/a.png"}}}}},
		},
		Insert: []core.Insert{
			{After: "m6", Message: core.Message{ID: "s", Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("It reads order.go.")}}},
			{After: "m15", Message: core.Message{ID: "e", Role: core.RoleAssistant, Kind: core.KindMarker, Time: time.Date(2026, 3, 4, 10, 0, 0, 5e6, time.UTC), Parts: []core.Part{core.Text("end")}}},
		},
	})
	want := make([]string, 0, 20)
	for line := range strings.Lines(data) {
		switch {
		case strings.Contains(line, `"rs_1"`), strings.Contains(line, `"fc_1"`), strings.Contains(line, `func total`):
			continue
		case strings.Contains(line, `"custom_tool_call"`):
			want = append(want, `{"timestamp":"2026-03-04T09:00:06.066Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"It reads order.go."}]}}`+"\n")
		}
		for old, is := range map[string]string{
			`"input_text","text":"Why is the total off?"`:                            `"input_text","text":"Why?"`,
			`"output":"{\"output\":\"Success\",\"metadata\":{\"exit_code\":0}}"`:     `"output":"[cut]"`,
			`"command":["ls","-l"]`:                                                  `"command":["true"]`,
			`{"content":"no such file","success":false}`:                             `{"content":"[gone]","success":false}`,
			`[{"type":"input_text","text":"seen"},{"type":"input_image","image_url"`: `[{"type":"input_text","text":"[cut]"},{"type":"input_image","image_url"`,
		} {
			line = strings.Replace(line, old, is, 1)
		}
		want = append(want, line)
	}
	want = append(want, `{"timestamp":"2026-03-04T10:00:00.005Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"end"}]}}`+"\n")
	out, warnings := write(t, d, "")
	if len(warnings) > 0 {
		t.Errorf("warnings %v", warnings)
	}
	// The new line has the time of the last one before it.
	at := slices.IndexFunc(want, func(l string) bool { return strings.Contains(l, "It reads order.go.") })
	want[at] = strings.Replace(want[at], "09:00:06.066", "09:00:09.099", 1)
	if diff := cmp.Diff(want, slices.Collect(strings.Lines(out))); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// After Codex's own compaction, the history in the compaction changes.
func TestCodexCompactionIsCondensed(t *testing.T) {
	t.Parallel()
	insert := []core.Insert{{After: "compaction-8.2", Message: core.Message{ID: "s", Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("new")}}}}
	for name, test := range map[string]struct {
		edit core.Edit
		want string
	}{
		"compacted.jsonl": {
			core.Edit{Hide: []string{"compaction-8.2", "m5"}, Rewrite: []core.Rewrite{{ID: "compaction-8.3", Parts: []core.Part{core.Text("shorter")}}}, Insert: insert},
			`"replacement_history":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"<permissions instructions>ask first</permissions instructions>"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"new"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"shorter"}]}],"window_number":1,`,
		},
		"summary-only.jsonl": {
			core.Edit{Hide: []string{"m5"}},
			`"payload":{"message":"Summary: it rounds each item.","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Why is the total off?"},{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo=","detail":"low"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"Summary: it rounds each item."}]}]}`,
		},
	} {
		data := files(t, "codex")[name]
		d := read(t, data, "")
		condense(t, d, test.edit)
		out, _ := write(t, d, "")
		if !strings.Contains(out, test.want) {
			t.Errorf("%s: no %s in\n%s", name, test.want, out)
		}
		before, _, _ := strings.Cut(data, `"type":"compacted"`)
		if !strings.HasPrefix(out, before) {
			t.Errorf("%s: what Codex hid did not stay\n%s", name, out)
		}
		if diff := cmp.Diff(words(d.Journal.View()), words(read(t, out, "").Journal.View())); diff != "" {
			t.Errorf("%s: view (-want +got):\n%s", name, diff)
		}
	}
}
