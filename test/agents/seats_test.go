package agents_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
)

// ledger is a file of lines: 28 kB, which is more than 8,000 tokens and less than what the agents cut by themselves.
func ledger() string {
	var b strings.Builder
	for n := 1; b.Len() < 28_000; n++ {
		fmt.Fprintf(&b, "%d: record %d of the ledger, sum %d é\n", n, n*7919%1201, n*104729)
	}
	return b.String()
}

// handle is that of a tool result with this text.
func handle(text string) string {
	return core.Handle(core.ToolResult{Content: []core.Part{core.Text(text)}})
}

// plugged makes condense a program in PATH.
func (d *desk) plugged(t *testing.T) {
	t.Helper()
	if err := os.Symlink(d.condense(t), filepath.Join(d.home, "bin", "condense")); err != nil {
		t.Fatal(err)
	}
}

// marketplace installs the plugin for Claude Code from this repository.
func (d *desk) marketplace(t *testing.T, a *agent) {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	d.at(t, a, d.url)
	for _, args := range [][]string{{"plugin", "marketplace", "add", root}, {"plugin", "install", "condense@condense"}} {
		if got := d.run(t, a.env, filepath.Join(d.home, "bin", "claude"), args...); got.code != 0 {
			t.Fatalf("claude %s: exit code %d\n%s", strings.Join(args, " "), got.code, tail(got.out))
		}
	}
}

// results returns the texts of the tool results in a body of Anthropic's API, or in a line of a session with that in message, by the
// ID of the call. Texts of several blocks are apart by NUL.
func results(body []byte) map[string]string {
	type block struct {
		Type    string          `json:"type"`
		Text    string          `json:"text"`
		ID      string          `json:"tool_use_id"`
		Content json.RawMessage `json:"content"`
	}
	type message struct {
		Content json.RawMessage `json:"content"`
	}
	var in struct {
		Messages []message `json:"messages"`
		Message  message   `json:"message"`
	}
	if json.Unmarshal(body, &in) != nil {
		return nil
	}
	found := map[string]string{}
	for _, m := range append(in.Messages, in.Message) {
		var blocks []block
		_ = json.Unmarshal(m.Content, &blocks) // it is a text
		for _, b := range blocks {
			if b.Type != "tool_result" {
				continue
			}
			var text string
			if json.Unmarshal(b.Content, &text) != nil {
				var parts []block
				_ = json.Unmarshal(b.Content, &parts)
				for i, p := range parts {
					if i > 0 {
						text += "\x00"
					}
					text += p.Text
				}
			}
			found[b.ID] = text
		}
	}
	return found
}

// arrived returns the tool results in the order of their arrival, as they first were, and fails the test if one of them changed later.
func (d *desk) arrived(t *testing.T) (ids []string, texts map[string]string) {
	t.Helper()
	texts = map[string]string{}
	for _, r := range d.vendor.Turns() {
		now := results(r.Body)
		for _, id := range slices.Sorted(maps.Keys(now)) {
			was, ok := texts[id]
			if !ok {
				ids = append(ids, id)
				texts[id] = now[id]
			} else if was != now[id] {
				t.Errorf("the result of %s changed in request %d", id, r.N)
			}
		}
	}
	if broken := d.vendor.Breaks(); len(broken) > 0 {
		t.Errorf("the prefix broke: %+v", broken)
	}
	d.accept(t)
	return ids, texts
}

// pages checks that results of recall are pages of a text. Between is what the agent has between blocks of text.
func pages(t *testing.T, between, want string, got ...string) {
	t.Helper()
	var whole strings.Builder
	for _, g := range got {
		head, page, ok := strings.Cut(g, "]"+between)
		if !ok || !strings.HasPrefix(head, "[condense recall: ") {
			t.Fatalf("no page: %.300q", g)
		}
		if i := strings.LastIndex(page, between+"[condense recall: "); i >= 0 {
			page = page[:i]
		}
		whole.WriteString(page)
	}
	if whole.String() != want {
		t.Errorf("recall returned %d bytes, want %d: not byte for byte", whole.Len(), len(want))
	}
}

// recorded returns the tool results in the files of an agent's sessions.
func (d *desk) recorded(t *testing.T, pattern string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, text := range d.sessions(t, &all[0], pattern) {
		for line := range strings.Lines(text) {
			maps.Copy(found, results([]byte(line)))
		}
	}
	return found
}

func call(tool string, input map[string]any) upstream.Step {
	return upstream.Step{Calls: []upstream.Call{{Tool: tool, Input: input}}}
}

// TestClaudeCodePlugin: with the plugin and no gateway long results are shortened in the first request that has them, the
// session of the agent has the same, and recall gives the original.
func TestClaudeCodePlugin(t *testing.T) {
	t.Parallel()
	const recall = "mcp__plugin_condense_condense__recall"
	text := ledger()
	printed := strings.TrimSuffix(text, "\n")
	file := filepath.Join(t.TempDir(), "ledger.txt")
	write(t, file, text)
	d := newDesk(t, upstream.Options{Script: []upstream.Step{
		{Commands: []string{"cat " + file}},
		call("Read", map[string]any{"file_path": file}),
		call("Grep", map[string]any{"pattern": "record 1", "path": file, "output_mode": "content"}),
		{Commands: []string{"echo short"}},
		call(recall, map[string]any{"handle": handle(printed)}),
		call(recall, map[string]any{"handle": handle(printed), "offset": 1 + strings.LastIndexByte(printed[:20_000], '\n')}),
		call(recall, map[string]any{"handle": handle(text), "lines": "400-401"}),
		{Text: "Done."},
	}})
	d.plugged(t)
	a := all[0]
	a.args = slices.Concat([]string{"--allowedTools", "Read,Grep," + recall}, a.args)
	d.marketplace(t, &a)
	got := d.run(t, a.env, filepath.Join(d.home, "bin", a.name), append(slices.Clip(a.args), task)...)
	if got.code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", got.code, tail(got.out), d.list())
	}
	ids, texts := d.arrived(t)
	if len(ids) != 7 {
		t.Fatalf("%d results arrived; want 7\n%s", len(ids), d.list())
	}
	for i, id := range ids[:2] {
		if !strings.Contains(texts[id], "; recall h:") || len(texts[id]) > 26_000 {
			t.Errorf("result %d arrived with %d bytes: %.200q", i+1, len(texts[id]), texts[id])
		}
	}
	for i, h := range []string{handle(printed), handle(text)} {
		if !strings.Contains(texts[ids[i]], h) {
			t.Errorf("result %d has not the handle %s", i+1, h)
		}
	}
	for _, id := range ids[2:4] {
		if strings.Contains(texts[id], "recall h:") {
			t.Errorf("a short result was cut: %.200q", texts[id])
		}
	}
	pages(t, "\x00", printed, texts[ids[4]], texts[ids[5]])
	pages(t, "\x00", strings.Join(strings.SplitAfter(text, "\n")[399:401], ""), texts[ids[6]])
	recorded := d.recorded(t, ".claude/projects/*/*.jsonl")
	for _, id := range ids {
		if recorded[id] != texts[id] {
			t.Errorf("the session has another result of %s than was sent", id)
		}
	}
}

// TestClaudeCodeCompacts: after a compaction of its own the agent sends what our digest says of before.
func TestClaudeCodeCompacts(t *testing.T) {
	t.Parallel()
	d := newDesk(t, upstream.Options{Script: upstream.Loop(24, size, nil), Window: 40_000})
	d.plugged(t)
	a := all[0]
	d.marketplace(t, &a)
	got := d.run(t, a.env, filepath.Join(d.home, "bin", a.name), append(slices.Clip(a.args), task)...)
	if d.count("summary") == 0 || got.code != 0 {
		t.Fatalf("exit code %d, and %d summaries\n%s\n%s", got.code, d.count("summary"), tail(got.out), d.list())
	}
	last := d.vendor.Turns()[len(d.vendor.Turns())-1].Body
	for _, want := range []string{"[condense: what was in this conversation before it was compacted]", "- " + task} {
		if !bytes.Contains(last, []byte(want)) {
			t.Errorf("the last request does not hold %q\n%s", want, tail(string(last)))
		}
	}
	d.accept(t, "binding")
}

// TestClaudeCodeWithoutProgram: the plugin says once that the program is missing, and all is as without it.
func TestClaudeCodeWithoutProgram(t *testing.T) {
	t.Parallel()
	d, text := d28(t)
	a := all[0]
	d.marketplace(t, &a)
	args := slices.Concat([]string{"--output-format", "stream-json", "--verbose"}, a.args, []string{task})
	d.untouched(t, d.run(t, a.env, filepath.Join(d.home, "bin", a.name), args...), text)
}

// TestOpenCodePlugin: as TestClaudeCodePlugin, with the plugin in the folder of OpenCode.
func TestOpenCodePlugin(t *testing.T) {
	t.Parallel()
	text := ledger()
	file := filepath.Join(t.TempDir(), "ledger.txt")
	write(t, file, text)
	next := 1 + strings.LastIndexByte(text[:20_000], '\n')
	d := newDesk(t, upstream.Options{ByCredential: true, Script: []upstream.Step{
		{Commands: []string{"cat " + file}},
		{Commands: []string{"echo short"}},
		call("condense_recall", map[string]any{"handle": handle(text)}),
		call("condense_recall", map[string]any{"handle": handle(text), "offset": next}),
		{Text: "Done."},
	}})
	d.plugged(t)
	a := d.openCode(t)
	got := d.direct(t, &a, d.url, task)
	ids, texts := d.arrived(t)
	if got.code != 0 || len(ids) != 4 {
		t.Fatalf("exit code %d, %d results\n%s\n%s", got.code, len(ids), tail(got.out), d.list())
	}
	if s := texts[ids[0]]; !strings.Contains(s, "; recall h:"+handle(text)) || len(s) > 26_000 {
		t.Errorf("the long result arrived with %d bytes: %.200q", len(s), s)
	}
	pages(t, "\n\n", text, texts[ids[2]], texts[ids[3]])
	for _, session := range d.sessions(t, &a, "") {
		if !strings.Contains(session, "; recall h:"+handle(text)) {
			t.Error("the session of OpenCode has not the shortened result")
		}
	}
}

// openCode is OpenCode with the plugin of this repository.
func (d *desk) openCode(t *testing.T) agent {
	t.Helper()
	d.extension(t, "plugins/opencode/condense.js", "condense.js")
	a := all[slices.IndexFunc(all, func(a agent) bool { return a.name == "opencode" })]
	a.env = append(slices.Clip(a.env), "npm_config_fetch_retries=0") // with a plugin it wants a package, and waits
	a.content = `{"provider": {"anthropic": {"options": {"baseURL": "{anthropic}/v1"}}}, "plugin": ["file://` + filepath.Join(d.home, "condense.js") + `"]}`
	return a
}

// extension copies a file of this repository into the home folder.
func (d *desk) extension(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", from))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(d.home, to), string(text))
}

// TestOpenCodeCompacts: the request for OpenCode's own summary holds what our digest says.
func TestOpenCodeCompacts(t *testing.T) {
	atNight(t)
	t.Parallel()
	o := scenario()
	o.Script, o.Window = upstream.Loop(24, size, nil), 36_000
	d := newDesk(t, o)
	d.plugged(t)
	a := d.openCode(t)
	got := d.direct(t, &a, d.url, task)
	asked := false
	for _, r := range d.vendor.Records() {
		asked = asked || bytes.Contains(r.Body, []byte("[condense: what was in this conversation before it was compacted]")) && bytes.Contains(r.Body, []byte(task))
	}
	if !asked {
		t.Errorf("no request holds the digest\n%s\n%s", tail(got.out), d.list())
	}
}

// TestOpenCodeWithoutProgram: the plugin says once that the program is missing, and all is as without it.
func TestOpenCodeWithoutProgram(t *testing.T) {
	atNight(t)
	t.Parallel()
	d, text := d28(t)
	a := d.openCode(t)
	got := d.direct(t, &a, d.url, task)
	d.untouched(t, got, text)
}

// d28 is a desk whose script prints a file of 28 kB, the text.
func d28(t *testing.T) (d *desk, text string) {
	t.Helper()
	text = ledger()
	file := filepath.Join(t.TempDir(), "ledger.txt")
	write(t, file, text)
	return newDesk(t, upstream.Options{ByCredential: true, Script: []upstream.Step{{Commands: []string{"cat " + file}}, {Commands: []string{"echo short"}}, {Text: "Done."}}}), text
}

// untouched checks a run without the program.
func (d *desk) untouched(t *testing.T, got result, text string) {
	t.Helper()
	ids, texts := d.arrived(t)
	if got.code != 0 || len(ids) != 2 || strings.TrimSuffix(texts[ids[0]], "\n") != strings.TrimSuffix(text, "\n") {
		t.Errorf("exit code %d, %d results\n%s\n%s", got.code, len(ids), tail(got.out), d.list())
	}
	said := 0
	for line := range strings.Lines(got.out) {
		if strings.Contains(line, "the program condense is not in PATH") {
			said++
		}
	}
	if said != 1 {
		t.Errorf("said %d times that the program is missing\n%s", said, tail(got.out))
	}
}

// pi is pi with the extension of this repository.
func (d *desk) pi(t *testing.T) agent {
	t.Helper()
	d.extension(t, "plugins/pi/condense.ts", ".pi/agent/extensions/condense.ts")
	return all[slices.IndexFunc(all, func(a agent) bool { return a.name == "pi" })]
}

// TestPiExtension: as TestClaudeCodePlugin, with the extension in the folder of pi.
func TestPiExtension(t *testing.T) {
	t.Parallel()
	text := ledger()
	file := filepath.Join(t.TempDir(), "ledger.txt")
	write(t, file, text)
	d := newDesk(t, upstream.Options{ByCredential: true, Script: []upstream.Step{
		{Commands: []string{"cat " + file}},
		{Commands: []string{"echo short"}},
		call("recall", map[string]any{"handle": handle(text)}),
		call("recall", map[string]any{"handle": handle(text), "offset": 1 + strings.LastIndexByte(text[:20_000], '\n')}),
		{Text: "Done."},
	}})
	d.plugged(t)
	a := d.pi(t)
	got := d.direct(t, &a, d.url, task)
	ids, texts := d.arrived(t)
	if got.code != 0 || len(ids) != 4 {
		t.Fatalf("exit code %d, %d results\n%s\n%s", got.code, len(ids), tail(got.out), d.list())
	}
	if s := texts[ids[0]]; !strings.Contains(s, "; recall h:"+handle(text)) || len(s) > 26_000 {
		t.Errorf("the long result arrived with %d bytes: %.200q", len(s), s)
	}
	pages(t, "\n", text, texts[ids[2]], texts[ids[3]])
	files := d.sessions(t, &a, ".pi/agent/sessions/*/*.jsonl")
	for _, session := range files {
		if strings.Contains(session, "record 713 of the ledger, sum 104729") && strings.Contains(session, "; recall h:"+handle(text)) {
			return
		}
	}
	t.Errorf("none of %d sessions of pi has the shortened result", len(files))
}

// TestPiCompacts: after a compaction of its own pi sends what our digest says of before. A run with -p would refuse it: pi has closed
// the session for extensions by then.
func TestPiCompacts(t *testing.T) {
	t.Parallel()
	d := newDesk(t, scenario())
	d.plugged(t)
	a := d.pi(t)
	d.at(t, &a, d.url)
	const live = `(echo '{"type": "prompt", "message": "` + task + `"}'; until [ -e ended ]; do sleep 0.2; done) | "$@"`
	var out testkit.Log
	args := slices.Concat([]string{"-c", live, "sh", filepath.Join(d.home, "bin", "pi")}, a.args[:len(a.args)-1], []string{"--mode", "rpc"})
	cmd := d.start(t, a.env, &out, "sh", args...)
	testkit.Eventually(t, "pi runs the whole script", func() bool { return d.steps() > calls })
	write(t, filepath.Join(d.dir, "ended"), "")
	wait(t, cmd, &out)
	turns := d.vendor.Turns()
	last := turns[len(turns)-1].Body
	if !bytes.Contains(last, []byte("[condense: what was in this conversation before it was compacted]")) {
		t.Errorf("the last request does not hold the digest\n%s\n%s", tail(out.String()), d.list())
	}
}

// TestPiWithoutProgram: the extension says once that the program is missing, and all is as without it.
func TestPiWithoutProgram(t *testing.T) {
	t.Parallel()
	d, text := d28(t)
	a := d.pi(t)
	d.untouched(t, d.direct(t, &a, d.url, task), text)
}
