package transcript_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/transcript"
)

// A conversation in an unknown format was read as one of Anthropic's without content: 1.5 MB
// counted as 240 tokens and written out empty.
func TestUnknownFormatIsNeverReadAsAnEmptyConversation(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]string{
		"Vercel AI SDK, model messages":  `[{"role":"user","content":"x"},{"role":"tool","content":[{"type":"tool-result","toolCallId":"c","toolName":"n","output":{"type":"text","value":"v"}}]}]`,
		"embeddings":                     `{"model":"text-embedding-3-small","input":"hello","encoding_format":"float"}`,
		"embeddings of many":             `{"model":"text-embedding-3-small","input":["hello","you"]}`,
		"LangChain":                      `[{"type":"human","data":{"content":"hello"}}]`,
		"messages elsewhere":             `{"id":"x","messages":[],"history":[{"role":"user","text":"hello"}]}`,
		"messages elsewhere, a trace":    `{"source":"x","messages":[],"turns":[{"role":"user","text":"hello"}]}`,
		"text instead of content":        `[{"role":"user","text":"hello"}]`,
		"Claude Code's lines, no words":  `{"type":"user","message":{"text":"hello"}}`,
		"a time, but no content":         `[{"role":"user","ts":1770112800000,"text":"hello"}]`,
		"a trace's messages, no content": `{"source":"x","messages":[{"role":"user","origin":"human","text":"hello"}]}`,
	} {
		format, err := transcript.Detect([]byte(data))
		if err == nil {
			t.Errorf("%s: read as %s", name, format)
			continue
		}
		for _, f := range transcript.Formats() {
			if !strings.Contains(err.Error(), f.Name) {
				t.Errorf("%s: %q does not name %s", name, err, f.Name)
			}
		}
	}
}

// What Claude Code 2.1 sends was read as OpenAI's, with a system prompt of nothing, because
// there is a message of the system among the others.
func TestRequestOfClaudeCodeIsAnthropics(t *testing.T) {
	t.Parallel()
	const request = `{"model":"claude-opus-4-8","max_tokens":32000,"thinking":{"type":"adaptive"},"stream":true,
"system":[{"type":"text","text":"You are Claude Code.","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"Be brief."}],
"tools":[{"name":"Bash","description":"run","input_schema":{"type":"object"}}],
"context_management":{"edits":[]},"metadata":{"user_id":"{}"},
"messages":[{"role":"user","content":[{"type":"text","text":"list"}]},
{"role":"system","content":"The user opened a file."},
{"role":"assistant","content":[{"type":"text","text":"ok"}]}]}`
	for name, data := range map[string]string{
		"as it is":         request,
		"prompt a string":  strings.Replace(request, `[{"type":"text","text":"You are Claude Code.","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"Be brief."}]`, `"You are Claude Code.\n\nBe brief."`, 1),
		"without tools":    strings.Replace(request, `"tools":[{"name":"Bash","description":"run","input_schema":{"type":"object"}}],`, "", 1),
		"tools come first": `{"tools":[{"name":"Bash","input_schema":{}}],` + request[1:],
	} {
		d := read(t, data, "")
		if d.Format != "anthropic" || d.System != "You are Claude Code.\n\nBe brief." {
			t.Errorf("%s: read as %s with the system prompt %q", name, d.Format, d.System)
		}
		if view := d.Journal.View(); len(view) != 3 || view[1].Role != core.RoleSystem {
			t.Errorf("%s: got %v", name, view)
		}
		if got, _ := write(t, d, ""); got != data {
			t.Errorf("%s: written as %s", name, got)
		}
	}
}

func TestDetectTellsVendorsApart(t *testing.T) {
	t.Parallel()
	const hello = `"messages":[{"role":"user","content":"hello"}]`
	const system = `"messages":[{"role":"user","content":"hello"},{"role":"system","content":"be brief"}]`
	for data, want := range map[string]string{
		`{"system":"s",` + hello + `}`:                                          "anthropic",
		`{"system":"s",` + system + `}`:                                         "anthropic",
		`{"model":"claude-opus-4-8",` + system + `}`:                            "anthropic",
		`{"model":"anthropic/claude-opus-4.8",` + system + `}`:                  "openai",
		`{"tools":[{"name":"n","input_schema":{}}],` + system + `}`:             "anthropic",
		`{"tools":[{"type":"function","function":{"name":"n"}}],` + hello + `}`: "openai",
		`{"max_completion_tokens":5,` + hello + `}`:                             "openai",
		`{` + system + `}`: "openai",
		`{"system":"s","messages":[{"role":"assistant","tool_calls":[]}]}`:         "openai",
		`{"thinking":{"type":"enabled"},` + hello + `}`:                            "anthropic",
		`{"custom":1,` + hello + `}`:                                               "anthropic",
		`[{"role":"user","content":[{"type":"text","text":"x"},"y"]}]`:             "anthropic",
		`[{"role":"user","content":[{"type":"hologram","x":1}],"note":"unknown"}]`: "anthropic",
	} {
		if got, err := transcript.Detect([]byte(data)); got != want {
			t.Errorf("%s: got %s (%v), want %s", data, got, err, want)
		}
	}
	if d := read(t, `{"system":"s","messages":[{"role":"assistant","tool_calls":[]}]}`, ""); d.System != "s" {
		t.Errorf("system prompt %q", d.System)
	}
}

// A message of the system among the others is refused by the vendor if it comes first, after
// the assistant or before the user. A condensation must not leave it there.
func TestSystemMessageStaysWhereTheVendorTakesIt(t *testing.T) {
	t.Parallel()
	const request = `{"system":"s","messages":[
{"role":"user","content":"one"},
{"role":"system","content":[{"type":"text","text":"rule A","cache_control":{"type":"ephemeral"}}]},
{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]},
{"role":"system","content":"rule B"},
{"role":"assistant","content":"two"},
{"role":"user","content":"three"},
{"role":"system","content":"rule C"},
{"role":"assistant","content":"four"}]}`
	hide := func(ids ...string) core.Edit { return core.Edit{Hide: ids} }
	for name, test := range map[string]struct {
		edit core.Edit
		want string
	}{
		"nothing": {core.Edit{}, request[strings.Index(request, "["):]},
		"the first message is hidden": {hide("m1", "m3", "m4", "m6"), `[
{"role":"user","content":"three"},
{"role":"system","content":[{"type":"text","text":"rule A","cache_control":{"type":"ephemeral"}},{"type":"text","text":"rule B"},{"type":"text","text":"rule C"}]},
{"role":"assistant","content":"four"}]}`},
		"a summary before": {core.Edit{Hide: []string{"m1", "m3", "m4"}, Insert: []core.Insert{{Message: core.Message{
			ID: "new", Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("before")},
		}}}}, `[
{"role":"user","content":"before"},
{"role":"system","content":[{"type":"text","text":"rule A","cache_control":{"type":"ephemeral"}},{"type":"text","text":"rule B"}]},
{"role":"assistant","content":"two"},
{"role":"user","content":"three"},
{"role":"system","content":"rule C"},
{"role":"assistant","content":"four"}]}`},
		"the user before it is hidden": {hide("m7"), `[
{"role":"user","content":"one"},
{"role":"system","content":[{"type":"text","text":"rule A","cache_control":{"type":"ephemeral"}}]},
{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"}]},
{"role":"system","content":[{"type":"text","text":"rule B"},{"type":"text","text":"rule C"}]},
{"role":"assistant","content":"two"},
{"role":"assistant","content":"four"}]}`},
		"no user is left": {hide("m1", "m3", "m4", "m7"), `[
{"role":"user","content":[{"type":"text","text":"rule A"},{"type":"text","text":"rule B"},{"type":"text","text":"rule C"}]},
{"role":"assistant","content":"two"},
{"role":"assistant","content":"four"}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := read(t, request, "")
			if !test.edit.Empty() {
				condense(t, d, test.edit)
			}
			got, _ := write(t, d, "")
			if got := got[strings.Index(got, "["):]; got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			for _, f := range faults("anthropic", got) {
				if f.Rule != "alternation" {
					t.Errorf("the vendor refuses it: %v", f)
				}
			}
		})
	}
}

// After the result of a tool that the vendor ran, too, until that is hidden.
func TestSystemMessageAfterAToolOfTheVendor(t *testing.T) {
	t.Parallel()
	const searched = `{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s","content":[]}]}`
	const rest = `{"role":"system","content":"rule"},{"role":"assistant","content":"found"},{"role":"user","content":"and?"}]}`
	d := read(t, `{"system":"s","messages":[{"role":"user","content":"search"},`+searched+`,`+rest, "")
	condense(t, d, core.Edit{Hide: []string{"m1"}, Insert: []core.Insert{{Message: core.Message{
		ID: "new", Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("before")},
	}}}})
	if got, _ := write(t, d, ""); got != `{"system":"s","messages":[{"role":"user","content":"before"},`+searched+`,`+rest {
		t.Errorf("moved without need: %s", got)
	}
	undo(t, d)
	if err := d.Journal.Condense(history.Condensation{ID: "c2", Edit: core.Edit{Hide: []string{"m1", "m2"}}}); err != nil {
		t.Fatal(err)
	}
	const want = `{"system":"s","messages":[{"role":"assistant","content":"found"},{"role":"user","content":"and?"},{"role":"system","content":"rule"}]}`
	if got, _ := write(t, d, ""); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Whatever a condensation hides and inserts, the vendor takes what is written.
func TestPropertySystemMessagesStayWhereTheVendorTakesThem(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var file []string
		say := func(role, content string) {
			file = append(file, fmt.Sprintf(`{"role":%q,"content":%s}`, role, content))
		}
		for i := range rapid.IntRange(1, 8).Draw(t, "turns") {
			say("user", fmt.Sprintf(`"question %d"`, i))
			if rapid.Bool().Draw(t, "rule") {
				say("system", fmt.Sprintf(`"rule %d"`, i))
			}
			if rapid.Bool().Draw(t, "call") {
				say("assistant", fmt.Sprintf(`[{"type":"tool_use","id":"t%d","name":"n","input":{}}]`, i))
				say("user", fmt.Sprintf(`[{"type":"tool_result","tool_use_id":"t%d","content":"r"}]`, i))
				if rapid.Bool().Draw(t, "rule after the result") {
					say("system", fmt.Sprintf(`"other rule %d"`, i))
				}
			}
			if rapid.Bool().Draw(t, "search") {
				say("assistant", fmt.Sprintf(`[{"type":"server_tool_use","id":"s%d","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s%d","content":[]}]`, i, i))
				say("system", fmt.Sprintf(`"rule after the search %d"`, i))
			}
			say("assistant", fmt.Sprintf(`"answer %d"`, i))
		}
		data := `{"system":"s","messages":[` + strings.Join(file, ",") + `]}`
		d, err := transcript.Read(strings.NewReader(data), nil)
		if err != nil {
			t.Fatal(err)
		}
		if all := refused("anthropic", data); len(all) > 0 {
			t.Fatalf("the test draws what the vendor refuses: %v", all)
		}
		view, e := d.Journal.View(), core.Edit{}
		for _, g := range core.Groups(view) {
			if view[g.Start].Role == core.RoleSystem || !rapid.Bool().Draw(t, "hide") {
				continue
			}
			for _, m := range view[g.Start:g.End] {
				e.Hide = append(e.Hide, m.ID)
			}
		}
		if rapid.Bool().Draw(t, "insert") {
			e.Insert = []core.Insert{{Message: core.Message{ID: "new", Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("before")}}}}
		}
		if e.Empty() {
			return
		}
		if err := d.Journal.Condense(history.Condensation{ID: "c", Edit: e}); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if _, err := d.Write(&out, ""); err != nil {
			t.Fatal(err)
		}
		for _, f := range faults("anthropic", out.String()) {
			// The API takes two of the assistant's in a row, and what no user begins is the edit's doing.
			if f.Rule == "system-place" || f.Rule == "first-role" && strings.Contains(f.Detail, "system") {
				t.Errorf("%v\n%s", f, out.String())
			}
		}
		want, got := contentOf("", d.Journal.View()), out.String()
		for _, w := range want.words {
			if !strings.Contains(got, w) {
				t.Errorf("%q is lost\n%s", w, got)
			}
		}
	})
}
