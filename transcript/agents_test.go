package transcript_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/transcript"
)

// agents are the formats of tools whose files hold more than is sent.
var agents = []string{"claudecode", "codex", "copilot", "gemini", "opencode", "pi", "roo"}

// files returns the test files of a format by name.
func files(tb testing.TB, format string) map[string]string {
	tb.Helper()
	names, err := filepath.Glob("testdata/" + format + "/*")
	if err != nil || len(names) == 0 {
		tb.Fatalf("no test files of %s (%v)", format, err)
	}
	all := map[string]string{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		all[filepath.Base(name)] = string(data)
	}
	return all
}

// outline says what was read: the view, what condensations did, warnings.
func outline(d *transcript.Document) string {
	var b strings.Builder
	for _, m := range d.Journal.View() {
		fmt.Fprintf(&b, "%s %s", m.ID, m.Role)
		if m.Kind != core.KindOriginal {
			fmt.Fprintf(&b, " %s", m.Kind)
		}
		b.WriteString(":" + outlineParts(m.Parts) + "\n")
	}
	for _, c := range d.Journal.Condensations() {
		fmt.Fprintf(&b, "%s by %s %s: %d tokens, hides %v, inserts", c.ID, c.Provider, c.Trigger, c.TokensBefore, c.Edit.Hide)
		for _, in := range c.Edit.Insert {
			fmt.Fprintf(&b, " %s", in.Message.ID)
		}
		b.WriteString("\n")
	}
	for _, w := range d.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	out := b.String()
	for n := range 40 { // the uuids of the test files
		out = strings.ReplaceAll(out, fmt.Sprintf("%08x-0000-4000-8000-%012x", n, n), fmt.Sprintf("#%d", n))
	}
	return out
}

func outlineParts(parts []core.Part) string {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case core.Text:
			fmt.Fprintf(&b, " %q", string(p[:min(len(p), 24)]))
		case core.ToolCall:
			fmt.Fprintf(&b, " call %s %s(%q)", p.ID, p.Name, p.Args)
		case core.ToolResult:
			fmt.Fprintf(&b, " result %s:%s", p.CallID, outlineParts(p.Content))
			if p.IsError {
				b.WriteString(" failed")
			}
		case core.Image:
			fmt.Fprintf(&b, " image %s%s", p.MediaType, p.URL)
		case core.Reasoning:
			fmt.Fprintf(&b, " thought %q %s%s", p.Text, p.Signature, p.Encrypted)
		case core.Opaque:
			fmt.Fprintf(&b, " opaque %s", p.Kind)
		}
	}
	return b.String()
}

// The file testdata/views.txt has for every test file what its tool would send next.
func TestAgentViews(t *testing.T) {
	t.Parallel()
	var got strings.Builder
	for _, format := range slices.Concat(agents, []string{"wire"}, slices.Sorted(maps.Keys(readOnly))) {
		all := files(t, format)
		names := make([]string, 0, len(all))
		for name := range all {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			d := read(t, all[name], "")
			fmt.Fprintf(&got, "=== %s/%s: format %s, model %q, system %q\n%s", format, name, d.Format, d.Model, d.System, outline(d))
		}
	}
	want, err := os.ReadFile("testdata/views.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("views (-want +got):\n%s", diff)
	}
}

// variants of a JSONL file that the same lines may come in.
func variants(data string) map[string]string {
	all := map[string]string{
		"as it is":           data,
		"CRLF":               strings.ReplaceAll(data, "\n", "\r\n"),
		"no final newline":   strings.TrimSuffix(data, "\n"),
		"byte order mark":    "\xef\xbb\xbf" + data,
		"empty lines":        "\n\n" + strings.ReplaceAll(data, "\n", "\n \n\t"),
		"cut off":            data + `{"parentUuid":"0`,
		"line breaks gone":   strings.Replace(strings.Replace(data, "}\n{", "}{", 1), "}\n{", "} \t{", 1),
		"space around lines": " " + strings.ReplaceAll(data, "\n", "\t\n  "),
	}
	return all
}

func TestAgentFilesAreWrittenByteForByte(t *testing.T) {
	t.Parallel()
	for _, format := range agents {
		for name, data := range files(t, format) {
			all := map[string]string{"as it is": data}
			if strings.HasSuffix(name, ".jsonl") {
				all = variants(data)
			}
			view := words(read(t, data, "").Journal.View())
			for variant, data := range all {
				t.Run(format+"/"+name+"/"+variant, func(t *testing.T) {
					t.Parallel()
					d := read(t, data, "")
					if got, _ := write(t, d, ""); got != data {
						t.Errorf("unchanged\ngot  %q\nwant %q", got, data)
					}
					if diff := cmp.Diff(view, words(d.Journal.View())); diff != "" {
						t.Errorf("view (-want +got):\n%s", diff)
					}
					condense(t, d, groupEdit(d))
					short, _ := write(t, d, "")
					if short == data {
						t.Error("the condensation left no trace")
					}
					again := read(t, short, format)
					if diff := cmp.Diff(words(d.Journal.View()), words(again.Journal.View())); diff != "" {
						t.Errorf("read again (-want +got):\n%s\n%s", diff, short)
					}
					journal, _ := write(t, d, "condense")
					j := read(t, journal, "")
					if got, _ := write(t, j, format); got != short {
						t.Errorf("condensed, from the journal\ngot  %q\nwant %q", got, short)
					}
					undo(t, d)
					undo(t, j)
					for what, d := range map[string]*transcript.Document{"undone": d, "undone, from the journal": j} {
						if got, _ := write(t, d, format); got != data {
							t.Errorf("%s\ngot  %q\nwant %q", what, got, data)
						}
					}
				})
			}
		}
	}
}

// groupEdit hides every third group, rewrites texts and inserts a summary.
func groupEdit(d *transcript.Document) core.Edit {
	view := d.Journal.View()
	var e core.Edit
	for i, g := range core.Groups(view) {
		m := &view[g.Start]
		switch _, isText := firstPart(m).(core.Text); {
		case i%3 == 1:
			for k := g.Start; k < g.End; k++ {
				e.Hide = append(e.Hide, view[k].ID)
			}
		case isText && i%3 == 2:
			e.Rewrite = append(e.Rewrite, core.Rewrite{ID: m.ID, Parts: append([]core.Part{core.Text("cut <\"> é")}, m.Parts[1:]...)})
		}
	}
	e.Insert = []core.Insert{{After: view[0].ID, Message: core.Message{
		ID: "22222222-2222-4333-8444-555555555555", Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("Earlier: \"a\" <b>")},
	}}}
	return e
}

// words is what messages say, without what a file need not keep.
func words(messages []core.Message) []core.Message {
	out := make([]core.Message, len(messages))
	for i, m := range messages {
		out[i] = core.Message{Role: m.Role, Parts: m.Parts}
	}
	return out
}

// A compaction of the tool's own can be undone like any other: then the tool, too, would
// send what was hidden.
func TestCompactionOfTheToolIsUndone(t *testing.T) {
	t.Parallel()
	for _, format := range agents {
		for name, data := range files(t, format) {
			d := read(t, data, "")
			all := d.Journal.Condensations()
			for _, c := range slices.Backward(all) {
				hidden := d.Journal.Len()
				if err := d.Journal.Undo(c.ID); err != nil {
					t.Fatal(err)
				}
				if d.Journal.Len() <= hidden-len(c.Edit.Insert) {
					t.Errorf("%s: %s hid nothing", name, c.ID)
				}
				out, _ := write(t, d, "")
				again := read(t, out, format)
				if diff := cmp.Diff(words(d.Journal.View()), words(again.Journal.View())); diff != "" {
					t.Errorf("%s without %s (-want +got):\n%s\n%s", name, c.ID, diff, out)
				}
			}
		}
	}
}

func TestBrokenAgentFiles(t *testing.T) {
	t.Parallel()
	const line = `{"type":"user","uuid":"a","parentUuid":null,"message":{"role":"user","content":"hi"}}` + "\n"
	const meta = `{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"x"}}` + "\n"
	for _, test := range []struct{ name, format, data, want string }{
		{"not JSON", "claudecode", line + "nonsense\n" + line, "f: line 2: found invalid character 'o' in literal null (expecting 'u'); want one JSON object on every line"},
		{"cut off inside", "claudecode", line + `{"type":"us` + "\n" + line, "f: line 2: found the end of the line inside a JSON value; want one JSON object on every line"},
		{"nothing but a cut off line", "claudecode", `{"type":"us`, "f: line 1: found the end of the line inside a JSON value; want one JSON object on every line"},
		{"not an object", "claudecode", line + "[1]\n", "f: line 2: found an array; want an object on every line"},
		{"no message", "claudecode", line + `{"type":"assistant","uuid":"b","parentUuid":"a"}`, `f: line 2: message 2: found an assistant line without "message"; want an object as "message"`},
		{"message is text", "claudecode", line + "\n" + `{"type":"user","uuid":"b","parentUuid":"a","message":"hi"}`, `f: line 3: message 2: found "hi" as "message"; want an object as "message"`},
		{"bad block", "claudecode", line + `{"type":"user","uuid":"b","parentUuid":"a","message":{"role":"user","content":[{"type":"tool_result"}]}}`, `f: line 2: message 2: found a tool_result block without "tool_use_id"; want a string`},
		{"bad item", "codex", meta + `{"type":"response_item","payload":[]}`, `f: line 2: message 1: found an array as an item; want an object`},
		{"bad role", "codex", meta + `{"type":"response_item","payload":{"type":"message","role":"ghost","content":[]}}`, `f: line 2: message 1: found the "role" "ghost"; want user, assistant, developer or system`},
		{"no call_id", "codex", meta + "\n" + `{"type":"response_item","payload":{"type":"function_call","name":"n"}}`, `f: line 3: message 1: found a function_call block without "call_id"; want a string`},
		{"bad replacement", "codex", meta + `{"type":"compacted","payload":{"message":"","replacement_history":[1]}}`, `f: line 2: found 1 as an item; want an object`},
		{"no array", "roo", `{"messages":[]}`, "f: line 1: found an object; want an array of messages"},
		{"empty", "roo", ``, "f: line 1: found nothing; want one JSON value"},
		{"cut off", "roo", `[{"role":"user","ts":1,"content":"a"},` + "\n" + `{"role`, "f: line 2: found the end of the file in the middle of a JSON value, at byte 45; want a complete file; was it cut off?"},
		{"not a message", "roo", "[{\"role\":\"user\",\"ts\":1,\"content\":\"a\"},\n7]", "f: line 2: message 2: found 7; want an object with role and content"},
		{"strange role", "roo", `[{"role":"system","ts":1,"content":"a"}]`, `f: line 1: message 1: found the "role" "system"; want user or assistant`},
	} {
		_, err := transcript.Read(strings.NewReader(test.data), &transcript.ReadOptions{Format: test.format, Name: "f"})
		var syntax *transcript.SyntaxError
		if err == nil || !errors.As(err, &syntax) || err.Error() != test.want {
			t.Errorf("%s:\ngot  %v\nwant %s", test.name, err, test.want)
		}
	}
}

func TestIncompleteLastLineIsReported(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"claudecode", "codex"} {
		data := files(t, format)["session.jsonl"]
		begin := strings.LastIndex(strings.TrimSuffix(data, "\n"), "\n") + 1
		for cut := begin + 1; cut < len(data)-1; cut += 5 {
			d := read(t, data[:cut], "")
			if got := warningTexts(d.Warnings); len(got) != 1 || !strings.HasSuffix(got[0], "the last, is incomplete and was left out") {
				t.Errorf("%s cut at %d: warnings %q", format, cut, got)
			}
			if got, _ := write(t, d, ""); got != data[:cut] {
				t.Errorf("%s cut at %d: not written as it was", format, cut)
			}
		}
	}
}

// The format of every file is detected.
func TestAgentsAreDetected(t *testing.T) {
	t.Parallel()
	for want, all := range map[string][]string{
		"claudecode": {
			`{"type":"summary","summary":"x","leafUuid":"u"}`,
			`{"type":"queue-operation","operation":"enqueue"}` + "\n" + `{"type":"user","message":{"role":"user","content":"x"},"uuid":"u"}`,
			`{"type":"file-history-snapshot","messageId":"m","snapshot":{}}`,
		},
		"codex": {
			`{"timestamp":"t","type":"session_meta","payload":{"id":"x"}}`,
			`{"timestamp":"t","type":"response_item","payload":{"type":"message","role":"user","content":[]}}`,
			`{"id":"x","timestamp":"t","instructions":null}` + "\n" + `{"record_type":"state"}`,
		},
		"roo": {
			`[{"role":"user","content":"x","ts":1770112800000}]`,
			`[{"role":"user","content":"x"},{"role":"user","content":"x","isSummary":true}]`,
			`[{"type":"reasoning","encrypted_content":"x","ts":1770112800000}]`,
		},
		"anthropic": {`[{"role":"user","content":"x"}]`, `[]`, `[{"role":"user","content":"x","ts":1}]`},
		"openai":    {`[{"role":"system","content":"x","ts":1770112800000}]`, `[{"role":"assistant","content":"","ts":1770112800000,"tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{}"}}]}]`},
	} {
		for _, data := range all {
			if got, err := transcript.Detect([]byte(data)); got != want {
				t.Errorf("%s: got %s (%v), want %s", data, got, err, want)
			}
		}
	}
	for _, data := range []string{`{"type":"message","message":{"role":"user"}}`, `{"a":1}` + "\n" + `{"b":2}`} {
		if got, err := transcript.Detect([]byte(data)); err == nil {
			t.Errorf("%s: got %s, want none", data, got)
		}
	}
}

// A host may go on with a conversation that it read, or go back in it.
func TestAgentFilesGoOnAndBack(t *testing.T) {
	t.Parallel()
	for _, format := range agents {
		for name, data := range files(t, format) {
			d := read(t, data, "")
			added := []core.Message{
				{ID: uuid.NewString(), Role: core.RoleUser, Parts: []core.Part{core.Text("and then?")}},
				{ID: uuid.NewString(), Role: core.RoleAssistant, Parts: []core.Part{core.Text("then"), core.ToolCall{ID: "c", Name: "n", Args: "{}"}}},
			}
			if err := d.Journal.Append(added...); err != nil {
				t.Fatal(err)
			}
			check := func(what string) {
				t.Helper()
				out, _ := write(t, d, "")
				got := read(t, out, format)
				if diff := cmp.Diff(flat(d.Journal.View()), flat(got.Journal.View())); diff != "" {
					t.Errorf("%s %s (-want +got):\n%s\n%s", name, what, diff, out)
				}
			}
			check("went on")
			for _, m := range slices.Backward(d.Journal.Messages()[1:]) {
				if err := d.Journal.Rewind(m.ID); err != nil {
					t.Fatal(err)
				}
				check("went back to " + m.ID)
			}
		}
	}
}

// flat is what is said, part by part: a format may divide a message.
func flat(messages []core.Message) []string {
	var all []string
	for _, m := range messages {
		for _, p := range m.Parts {
			all = append(all, fmt.Sprintf("%s %T %v", m.Role, p, p))
		}
	}
	return all
}

// A conversation of any tool can be written for any other, which then reads the same
// words, results with their calls.
func TestPropertyAgentsTakeOthersConversations(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.SampledFrom([]string{"anthropic", "openai"}).Draw(t, "from")
		messages := tame(t, from)
		d := &transcript.Document{Journal: history.New(), System: "be kind"}
		if err := d.Journal.Append(messages...); err != nil {
			t.Fatal(err)
		}
		to := rapid.SampledFrom(agents).Draw(t, "to")
		out := encode(t, d, to)
		back, err := transcript.Read(strings.NewReader(out), &transcript.ReadOptions{Format: to})
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if got, err := transcript.Detect([]byte(out)); got != to {
			t.Errorf("detected %s (%v), want %s\n%s", got, err, to, out)
		}
		if slices.Contains([]string{"claudecode", "copilot", "gemini", "opencode", "pi"}, to) && messages[0].Role == core.RoleSystem {
			messages = messages[1:] // it has its own
		}
		want, got := contentOf("", messages), contentOf("", back.Journal.View())
		if lost := missing(want.words, got.words); lost != nil {
			t.Errorf("words lost: %q\n%s", lost, out)
		}
		if lost := missing(want.pairs, got.pairs); lost != nil {
			t.Errorf("results lost their calls: %q\n%s", lost, out)
		}
		if to == "codex" && back.System != d.System {
			t.Errorf("system prompt %q, want %q", back.System, d.System)
		}
	})
}

// What the tools store can be sent to a model of another vendor.
func TestAgentFilesConvertValidly(t *testing.T) {
	t.Parallel()
	for _, format := range agents {
		for name, data := range files(t, format) {
			d := read(t, data, "")
			for _, to := range []string{"anthropic", "openai"} {
				out, _ := write(t, d, to)
				if all := faults(to, out); len(all) > 0 {
					t.Errorf("%s as %s: %v\n%s", name, to, all, out)
				}
			}
		}
	}
}

// No file makes a panic; what can be read is written back byte for byte; what is changed
// can be read again.
func fuzzAgent(f *testing.F, format string) {
	f.Helper()
	for _, data := range files(f, format) {
		f.Add([]byte(data), byte(5))
	}
	fuzzFormat(f, format)
}

func fuzzFormat(f *testing.F, format string) {
	f.Helper()
	f.Fuzz(func(t *testing.T, data []byte, choice byte) {
		d, err := transcript.Read(strings.NewReader(string(data)), &transcript.ReadOptions{Format: format})
		if err != nil {
			return
		}
		if got, _ := write(t, d, ""); got != string(data) && !strings.HasPrefix(string(data), "\x1f\x8b") {
			t.Fatalf("unchanged\ngot  %q\nwant %q", got, data)
		}
		if all := d.Journal.Condensations(); len(all) > 0 && choice&1 > 0 {
			if err := d.Journal.Undo(all[int(choice)%len(all)].ID); err != nil {
				t.Fatal(err)
			}
		}
		if choice&2 > 0 {
			condense(t, d, someEdit(d))
		}
		out, _ := write(t, d, "")
		again := read(t, out, format)
		if format == "roo" {
			if diff := cmp.Diff(words(d.Journal.View()), words(again.Journal.View())); diff != "" {
				t.Fatalf("view (-want +got):\n%s\n%s", diff, out)
			}
		}
	})
}

func FuzzClaudeCode(f *testing.F) { fuzzAgent(f, "claudecode") }
func FuzzCodex(f *testing.F)      { fuzzAgent(f, "codex") }
func FuzzOpenCode(f *testing.F)   { fuzzAgent(f, "opencode") }
func FuzzGemini(f *testing.F)     { fuzzAgent(f, "gemini") }
func FuzzCopilot(f *testing.F)    { fuzzAgent(f, "copilot") }
func FuzzPi(f *testing.F)         { fuzzAgent(f, "pi") }
func FuzzRoo(f *testing.F)        { fuzzAgent(f, "roo") }

// The input of a request to the Responses API, with the items of [odd].
func FuzzResponses(f *testing.F) {
	for _, test := range odd {
		if test.format == "responses" {
			f.Add([]byte(test.data), byte(3))
		}
	}
	f.Add([]byte(files(f, "wire")["codex-4.json"]), byte(2))
	fuzzFormat(f, "responses")
}
