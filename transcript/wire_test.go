package transcript_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/testkit/apilint"
	"github.com/condensehq/condense/transcript"
)

// elements returns the messages of a request, as they are in it.
func elements(t interface{ Fatal(args ...any) }, request string) []string {
	var all []string
	for _, member := range []string{"messages", "input"} {
		for raw := range rawjson.Elements(rawjson.Field([]byte(request), member)) {
			all = append(all, string(raw))
		}
	}
	if !json.Valid([]byte(request)) {
		t.Fatal("no JSON: " + request)
	}
	return all
}

// refused returns what the vendor refuses of a request; it accepts rows of one role.
func refused(format, request string) []apilint.Fault {
	return slices.DeleteFunc(faults(format, request), func(f apilint.Fault) bool {
		return f.Rule == "alternation"
	})
}

// The files in testdata/wire are requests of real agents, with shorter texts.
func TestRequestsOfAgents(t *testing.T) {
	t.Parallel()
	for name, data := range files(t, "wire") {
		want := "anthropic"
		if strings.HasPrefix(name, "codex") {
			want = "responses"
		}
		d := read(t, data, "")
		if d.Format != want || d.Model == "" || d.Tools == nil || want == "anthropic" && d.System == "" {
			t.Errorf("%s: read as %s of %s, system prompt %q, tools %s", name, d.Format, d.Model, d.System, d.Tools)
		}
		if got, warnings := write(t, d, ""); got != data || warnings != nil {
			t.Errorf("%s: written as %s, warnings %v", name, got, warnings)
		}
		view, raw := d.Journal.View(), elements(t, data)
		if len(view) != len(raw) {
			t.Errorf("%s: %d messages, want %d", name, len(view), len(raw))
		}
		if all := refused(d.Format, data); len(all) > 0 {
			t.Errorf("%s: the linter does not know what agents send: %v", name, all)
		}
		for _, to := range []string{"anthropic", "openai", "responses"} {
			out, _ := write(t, d, to)
			if all := refused(to, out); len(all) > 0 {
				t.Errorf("%s as %s: %v\n%s", name, to, all, out)
			}
		}
	}
}

// Whatever a condensation does to the request of an agent, the vendor accepts the result, and the
// messages that it left alone have exactly their bytes.
func TestPropertyCondensedRequestsOfAgents(t *testing.T) {
	t.Parallel()
	samples := files(t, "wire")
	names := make([]string, 0, len(samples))
	for name := range samples {
		names = append(names, name)
	}
	slices.Sort(names)
	rapid.Check(t, func(t *rapid.T) {
		data := samples[rapid.SampledFrom(names).Draw(t, "sample")]
		d, err := transcript.Read(strings.NewReader(data), nil)
		if err != nil {
			t.Fatal(err)
		}
		edit := draw(t, d.Journal.View())
		if edit.Empty() {
			return
		}
		if err := d.Journal.Condense(history.Condensation{ID: "c", Edit: edit}); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if _, err := d.WriteWith(&out, &transcript.WriteOptions{Apart: true}); err != nil {
			t.Fatal(err)
		}
		faults := slices.DeleteFunc(refused(d.Format, out.String()), func(f apilint.Fault) bool {
			return f.Rule == "first-role" && !strings.Contains(f.Detail, "system") // what the edit hides
		})
		if len(faults) > 0 {
			t.Fatalf("%v\n%s", faults, out.String())
		}
		var kept []string
		for _, m := range d.Journal.View() {
			// Reasoning without what it led to goes, and a call that lost its reasoning loses its ID.
			kind := rawjson.Text(rawjson.Field(m.Source, "type"))
			if m.Source != nil && m.Role != core.RoleSystem && kind != "reasoning" && kind != "function_call" {
				kept = append(kept, string(m.Source))
			}
		}
		for _, raw := range elements(t, out.String()) {
			if len(kept) > 0 && kept[0] == raw {
				kept = kept[1:]
			}
		}
		if len(kept) > 0 {
			t.Fatalf("changed, moved or lost: %s\n%s", kept[0], out.String())
		}
	})
}

// draw returns an edit that a provider could make: it hides whole groups, but not the newest and no
// message of the system, rewrites results, and inserts a summary.
func draw(t *rapid.T, view []core.Message) core.Edit {
	var e core.Edit
	after := ""
	for _, g := range core.Groups(view) {
		pinned := g.End == len(view) || slices.ContainsFunc(view[g.Start:g.End], func(m core.Message) bool { return m.Protected || m.Role == core.RoleSystem })
		hide := !pinned && rapid.Bool().Draw(t, "hide")
		for i := g.Start; i < g.End; i++ {
			m := &view[i]
			switch r, isResult := firstPart(m).(core.ToolResult); {
			case hide:
				e.Hide = append(e.Hide, m.ID)
			case isResult && rapid.Bool().Draw(t, "rewrite"):
				r.Content = []core.Part{core.Text("cut")}
				e.Rewrite = append(e.Rewrite, core.Rewrite{ID: m.ID, Parts: append([]core.Part{r}, m.Parts[1:]...)})
			}
		}
		if rapid.IntRange(0, 5).Draw(t, "place") == 0 {
			after = view[g.End-1].ID
		}
	}
	if rapid.Bool().Draw(t, "insert") {
		e.Insert = []core.Insert{{After: after, Message: core.Message{
			ID: "new", Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("Earlier: \"a\" <b>")},
		}}}
	}
	return e
}

// Reasoning is sent only directly before the item that it led to, and an item that lost its
// reasoning has no ID under which the vendor would look for it.
func TestResponsesReasoningGoesWithItsItem(t *testing.T) {
	t.Parallel()
	const (
		task  = `{"role":"user","content":"task"}`
		think = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"e"}`
		call  = `{"type":"function_call","id":"fc_1","call_id":"c","name":"n","arguments":"{}"}`
		bare  = `{"type":"function_call","call_id":"c","name":"n","arguments":"{}"}`
		out   = `{"type":"function_call_output","call_id":"c","output":"r"}`
		note  = `{"type":"message","role":"user","content":[{"type":"input_text","text":"note"}]}`
	)
	insert := []core.Insert{{After: "rs_1", Message: core.Message{ID: "new", Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("note")}}}}
	for name, test := range map[string]struct {
		edit     core.Edit
		want     []string
		warnings int
	}{
		"its item is hidden":     {core.Edit{Hide: []string{"fc_1", "m4"}}, []string{task}, 1},
		"the reasoning is":       {core.Edit{Hide: []string{"rs_1"}}, []string{task, bare, out}, 0},
		"both are":               {core.Edit{Hide: []string{"rs_1", "fc_1", "m4"}, Insert: insert}, []string{task, note}, 0},
		"a message comes inside": {core.Edit{Insert: insert}, []string{task, note, think, call, out}, 0},
	} {
		d := read(t, `{"input":[`+strings.Join([]string{task, think, call, out}, ",")+`]}`, "")
		condense(t, d, test.edit)
		got, warnings := write(t, d, "")
		if want := `{"input":[` + strings.Join(test.want, ",") + `]}`; got != want || len(warnings) != test.warnings {
			t.Errorf("%s:\ngot  %s\nwant %s\nwarnings %v", name, got, want, warnings)
		}
	}
}

// What only the vendor understands is not hidden, and what a tool of the vendor takes and returns
// keeps its shape.
func TestResponsesKeepsWhatOnlyTheVendorUnderstands(t *testing.T) {
	t.Parallel()
	d := read(t, `{"input":[{"type":"compaction","encrypted_content":"e"},{"type":"additional_tools","tools":[]},{"type":"hologram"},
{"type":"mcp_call","id":"1","approval_request_id":"a"},{"type":"mcp_call","id":"2","approval_request_id":null},{"type":"web_search_call","id":"3"},
{"role":"user","content":[{"type":"input_file","file_id":"f"}]}]}`, "")
	var got []bool
	for _, m := range d.Journal.View() {
		got = append(got, m.Protected)
	}
	if want := []bool{true, true, true, true, false, false, false}; !slices.Equal(got, want) {
		t.Errorf("protected: %v, want %v", got, want)
	}

	const calls = `{"type":"shell_call","call_id":"a","action":{"commands":["ls"]}},{"type":"computer_call","call_id":"b","action":{"type":"screenshot"}}`
	d = read(t, `{"input":[`+calls+`,
{"type":"shell_call_output","call_id":"a","output":[{"stdout":"long","stderr":"","outcome":{"type":"exit","exit_code":0}}]},
{"type":"computer_call_output","call_id":"b","output":{"type":"computer_screenshot","image_url":"https://x/y.png"}}]}`, "")
	var e core.Edit
	for _, m := range d.Journal.View()[2:] {
		r, _ := m.Parts[0].(core.ToolResult)
		r.Content = []core.Part{core.Text("cut")}
		e.Rewrite = append(e.Rewrite, core.Rewrite{ID: m.ID, Parts: []core.Part{r}})
	}
	condense(t, d, e)
	out, warnings := write(t, d, "")
	want := `{"input":[` + calls + `,
{"type":"shell_call_output","call_id":"a","output":[{"stdout":"cut","stderr":"","outcome":{"type":"exit","exit_code":0}}]},
{"type":"computer_call_output","call_id":"b","output":{"type":"computer_screenshot","image_url":"https://x/y.png"}}]}`
	if out != want || len(warnings) != 1 {
		t.Errorf("got  %s\nwant %s\nwarnings %v", out, want, warnings)
	}
}

// An input that is a string is one message of the user; when there are more, it becomes an array.
func TestResponsesInputOfText(t *testing.T) {
	t.Parallel()
	const data = "{\"model\": \"gpt-5.5\",\n \"input\" : \"say \\\"hi\\\"\", \"store\": false}\n"
	d := read(t, data, "")
	if view := d.Journal.View(); len(view) != 1 || view[0].Role != core.RoleUser || view[0].Parts[0] != core.Part(core.Text(`say "hi"`)) {
		t.Fatalf("got %v", view)
	}
	if got, _ := write(t, d, ""); got != data {
		t.Errorf("written as %q", got)
	}
	if err := d.Journal.Append(core.Message{ID: "a", Role: core.RoleAssistant, Parts: []core.Part{core.Text("hi")}}); err != nil {
		t.Fatal(err)
	}
	const user, hi = `{"type":"message","role":"user","content":[{"type":"input_text","text":"say \"hi\""}]}`, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}`
	want := "{\"model\": \"gpt-5.5\",\n \"input\" : [%s], \"store\": false}\n"
	if got, _ := write(t, d, ""); got != fmt.Sprintf(want, user+","+hi) {
		t.Errorf("with an answer: %s", got)
	}
	condense(t, d, core.Edit{Hide: []string{"m1"}})
	if got, _ := write(t, d, ""); got != fmt.Sprintf(want, hi) {
		t.Errorf("without the question: %s", got)
	}
}
