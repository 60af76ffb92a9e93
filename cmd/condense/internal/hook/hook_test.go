package hook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/cmd/condense/internal/hook"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/registry"
)

const session = "603a5089-9987-460a-89bd-d56950142ac5"

// lines is a text of n lines that have nothing in common.
func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d: record of day %d, sum %d\n", i+1, i*7919%1201, i*104729)
	}
	return b.String()
}

func options(t *testing.T) (o *hook.Options, log *bytes.Buffer) {
	t.Helper()
	log = &bytes.Buffer{}
	return &hook.Options{
		Lossless: true, MaxResult: 500, Logger: slog.New(slog.NewTextHandler(log, nil)),
		Store: &hook.Store{Dir: t.TempDir(), MaxSize: 1 << 20, MaxAge: time.Hour},
	}, log
}

// answer passes a result of a tool and returns the result in the answer; nil if there is none.
func answer(t *testing.T, o *hook.Options, tool string, result any) any {
	t.Helper()
	return answerOf(t, o, session, tool, result)
}

func answerOf(t *testing.T, o *hook.Options, session, tool string, result any) any {
	t.Helper()
	event, err := json.Marshal(map[string]any{
		"hook_event_name": "PostToolUse", "session_id": session, "cwd": "/work", "tool_name": tool, "tool_input": map[string]any{"command": "x"}, "tool_response": result,
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := hook.Answer(t.Context(), hook.Claude, bytes.NewReader(event), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		return nil
	}
	var a struct {
		Out struct {
			Name   string `json:"hookEventName"`
			Result any    `json:"updatedToolOutput"`
		} `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal(out, &a); err != nil || a.Out.Name != "PostToolUse" {
		t.Fatalf("%s: %v", out, err)
	}
	return a.Out.Result
}

func handle(text string) string {
	return core.Handle(core.ToolResult{Content: []core.Part{core.Text(text)}})
}

type object = map[string]any

// TestShapes: results keep their form, the text in them is cut, and its original is kept byte for byte.
func TestShapes(t *testing.T) {
	long := lines(300) + "\x00\u2028é"
	names := make([]any, 600)
	for i := range names {
		names[i] = fmt.Sprintf("/src/part%d/file%d.go", i*31%97, i)
	}
	for name, tt := range map[string]struct {
		tool   string
		result any
		text   func(result any) string
		want   string // the original text
	}{
		"Bash":     {"Bash", object{"stdout": long, "stderr": "", "interrupted": false}, func(r any) string { return r.(object)["stdout"].(string) }, long},
		"stderr":   {"Bash", object{"stdout": "", "stderr": long}, func(r any) string { return r.(object)["stderr"].(string) }, long},
		"Grep":     {"Grep", object{"mode": "content", "content": long, "filenames": []any{}}, func(r any) string { return r.(object)["content"].(string) }, long},
		"WebFetch": {"WebFetch", object{"result": long, "code": 200}, func(r any) string { return r.(object)["result"].(string) }, long},
		"MCP":      {"mcp__x__y", []any{object{"type": "image", "data": "aa"}, object{"type": "text", "text": long}}, func(r any) string { return r.([]any)[1].(object)["text"].(string) }, long},
		"OpenCode": {"bash", long, func(r any) string { return r.(string) }, long},
		"content":  {"x_y", object{"content": []any{object{"type": "text", "text": long}}, "isError": false}, func(r any) string { return r.(object)["content"].([]any)[0].(object)["text"].(string) }, long},
		"Glob": {"Glob", object{"filenames": names, "numFiles": 600}, func(r any) string {
			var all []string
			for _, n := range r.(object)["filenames"].([]any) {
				all = append(all, n.(string))
			}
			return strings.Join(all, "\n")
		}, strings.ReplaceAll(strings.Trim(fmt.Sprint(names), "[]"), " ", "\n") + "\n"},
		"Read": {
			"Read",
			object{"type": "text", "file": object{"filePath": "/a", "content": long, "numLines": 301, "startLine": 11, "totalLines": 900}},
			func(r any) string { return r.(object)["file"].(object)["content"].(string) },
			long,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, log := options(t)
			got := answer(t, o, tt.tool, tt.result)
			if got == nil {
				t.Fatalf("nothing is shortened: %s", log)
			}
			h := handle(tt.want)
			if text := tt.text(got); !strings.Contains(text, "; recall h:"+h+"]") || len(text) > len(tt.want)/2 {
				t.Errorf("got %d of %d bytes: %s", len(text), len(tt.want), text)
			}
			files := o.Store.Find(hook.Claude, h)
			if len(files) != 1 || files[0] != o.Store.Files(hook.Claude, session)[0] {
				t.Fatalf("files of the handle: %q", files)
			}
			if kept := read(t, files[0]); kept != tt.want {
				t.Errorf("kept %d bytes of %d", len(kept), len(tt.want))
			}
		})
	}
}

// read returns the text of a file of the store, which only its owner may read.
func read(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	if info, err := f.Stat(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v; want 0600", path, info.Mode(), err)
	}
	messages, err := history.DecodeOriginals(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(messages[1].Parts[0].(core.ToolResult).Content[0].(core.Text))
}

// TestEveryHandleIsKept: a text that a lossless pass has shortened before it is cut is found by the handle in the
// stub, whatever form of it that is of; and stubs that were in the text are not taken for ours.
func TestEveryHandleIsKept(t *testing.T) {
	o, log := options(t)
	foreign := "[… 9 lines of x left out; recall h:0123456789]"
	text := "\x1b[32mok\x1b[0m\n" + foreign + "\n" + strings.ReplaceAll(lines(400), "\n", "   \n") + foreign + "\n"
	got := answer(t, o, "Bash", object{"stdout": text})
	if got == nil {
		t.Fatalf("nothing is shortened: %s", log)
	}
	handles := regexp.MustCompile(`recall h:([0-9a-f]{10})`).FindAllStringSubmatch(got.(object)["stdout"].(string), -1)
	found := 0
	for _, m := range handles {
		if m[1] == "0123456789" {
			continue
		}
		found++
		if files := o.Store.Find(hook.Claude, m[1]); len(files) != 1 {
			t.Errorf("nothing is kept for %s", m[1])
		} else if kept := read(t, files[0]); handle(kept) != m[1] || !strings.Contains(kept, "200: record of day") {
			t.Errorf("%s leads to %.200q", m[1], kept)
		}
	}
	if found == 0 {
		t.Errorf("no handle: %v", got)
	}
}

// TestReadGoesOn: what stays of a file is its beginning, since the agent numbers the lines, and the stub says where
// to go on.
func TestReadGoesOn(t *testing.T) {
	o, _ := options(t)
	text := lines(300)
	file := answer(t, o, "Read", object{"type": "text", "file": object{"content": text, "numLines": 301, "startLine": 11}}).(object)["file"].(object)
	short := file["content"].(string)
	at := strings.Index(short, "[… ")
	n := strings.Count(short[:at], "\n")
	if short[:at] != text[:at] || !strings.Contains(short, fmt.Sprintf("read on with offset %d;", 11+n)) || file["numLines"].(float64) != float64(n+1) {
		t.Errorf("%v lines, %q", file["numLines"], short[max(0, at-60):])
	}
}

// TestNothingToSay: what is short, unknown, saved by the agent, an image, or asked for is left alone.
func TestNothingToSay(t *testing.T) {
	long := lines(300)
	o, log := options(t)
	for name, tt := range map[string]struct {
		tool   string
		result any
	}{
		"short":   {"Bash", object{"stdout": "ok"}},
		"saved":   {"Bash", object{"stdout": long, "persistedOutputPath": "/tmp/x"}},
		"image":   {"Bash", object{"stdout": long, "isImage": true}},
		"picture": {"Read", object{"type": "image", "file": object{"content": long}}},
		"unknown": {"Agent", object{"report": long}},
		"recall":  {"mcp__condense__recall", []any{object{"type": "text", "text": "[condense recall: x]"}, object{"type": "text", "text": long}}},
		"number":  {"Bash", 7},
		"null":    {"Bash", nil},
		"missing": {"Read", object{"type": "text"}},
	} {
		if got := answer(t, o, tt.tool, tt.result); got != nil {
			t.Errorf("%s: got %.200v", name, got)
		}
	}
	o.MaxResult = 0 // nothing can be recalled
	if got := answer(t, o, "Bash", object{"stdout": long}); got != nil {
		t.Errorf("without recall: %.200v", got)
	}
	if got := answer(t, o, "Bash", object{"stdout": "\x1b[31mred\x1b[0m" + strings.Repeat("ok   \n", 100)}); got == nil || strings.Contains(fmt.Sprint(got), "\x1b") {
		t.Errorf("layout stays: %.200v", got)
	}
	if log.Len() > 0 {
		t.Error(log)
	}
}

// TestStoreLimit: what does not fit is refused, and then the model gets all of it; what is old makes room.
// TestOwnFails: a provider that fails changes nothing, and what it quotes of the result is not logged with its keys.
func TestOwnFails(t *testing.T) {
	const key = "sk-ant-api03-aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC7dE9fG1hJ3kL5mN7pQ9rS1tU3vW5xY7zA9bC1dE3fG5hJ-kL7mNpQA"
	o, log := options(t)
	mine := registry.Define("mine", "Fails.", func() struct{} { return struct{}{} }, func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) {
		return core.ProviderFunc(func(_ context.Context, r *core.Request) (*core.Result, error) {
			return nil, fmt.Errorf("cannot read %v", r.Messages[1].Parts[0].(core.ToolResult).Content[0].(core.Text)[:130])
		}), nil
	})
	values := &config.Values{}
	values.Ingest = []string{"mine"}
	var err error
	if o.Own, err = condense.Open(t.Context(), &condense.Options{Strategies: []registry.Strategy{mine}, Values: values}); err != nil {
		t.Fatal(err)
	}
	defer o.Own.Close()
	o.MaxResult = 0
	if got := answer(t, o, "Bash", map[string]any{"stdout": key + "\n" + lines(20)}); got != nil {
		t.Errorf("it answers %v", got)
	}
	if s := log.String(); !strings.Contains(s, "cannot read [redacted]") || strings.Contains(s, key[:30]) {
		t.Errorf("the log is %s", s)
	}
}

func TestStoreLimit(t *testing.T) {
	o, log := options(t)
	o.Store.MaxSize = 20_000
	if answer(t, o, "Bash", object{"stdout": lines(300)}) == nil {
		t.Fatal("the first one fits")
	}
	if got := answerOf(t, o, "another", "Bash", object{"stdout": lines(301)}); got != nil || !strings.Contains(log.String(), "is full") {
		t.Errorf("got %.100v, log %s", got, log)
	}
	if n := len(o.Store.Files(hook.Claude, session)); n != 1 {
		t.Errorf("%d files; what was kept must stay", n)
	}
	o.Store.MaxAge = -time.Minute // all of it is old
	if got := answerOf(t, o, "another", "Bash", object{"stdout": lines(301)}); got == nil {
		t.Errorf("what is old does not make room: %s", log)
	}
	if n := len(o.Store.Files(hook.Claude, session)); n != 0 {
		t.Errorf("%d old files", n)
	}
	if got := o.Store.Newest(hook.Claude, "/work"); got != "another" {
		t.Errorf("newest session %q", got)
	}
	if got := o.Store.Newest(hook.Claude, "/elsewhere"); got != "" {
		t.Errorf("newest session elsewhere %q", got)
	}
}

// TestHostileNames: no name leads out of the folder, and then nothing is cut.
func TestHostileNames(t *testing.T) {
	for _, name := range []string{"", "..", "../x", "a/b", ".hidden", "a\x00b", strings.Repeat("a", 200), "*", `a\b`} {
		o, log := options(t)
		o.Store.Dir = filepath.Join(o.Store.Dir, "kept")
		if got := answerOf(t, o, name, "Bash", object{"stdout": lines(300)}); got != nil || !strings.Contains(log.String(), "is not the ID of a session") {
			t.Errorf("%q: got %.100v, log %s", name, got, log)
		}
		if _, err := os.Stat(o.Store.Dir); err == nil {
			t.Errorf("%q: something was written", name)
		}
		if got := append(o.Store.Files(hook.Claude, name), o.Store.Find(hook.Claude, name)...); got != nil {
			t.Errorf("%q: %q", name, got)
		}
	}
}

// TestAnyInput: no input makes it panic, and no file is written that was not cut for.
func TestNoPipeIsOpened(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "session.jsonl")
	if err := makePipe(pipe); err != nil {
		t.Skip(err)
	}
	o, _ := options(t)
	event := fmt.Sprintf(`{"hook_event_name": "PreCompact", "session_id": "s", "transcript_path": %q}`, pipe)
	if _, err := hook.Answer(t.Context(), hook.Claude, strings.NewReader(event), o); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got error %v", err)
	}
}

// A link in the state folder, with the name of a session, leads no original to another place.
func TestLinkedSessionIsNotFollowed(t *testing.T) {
	o, log := options(t)
	elsewhere := t.TempDir()
	if err := os.MkdirAll(filepath.Join(o.Store.Dir, hook.Claude), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(o.Store.Dir, hook.Claude, "linked")); err != nil {
		t.Skip(err)
	}
	if got := answerOf(t, o, "linked", "Bash", map[string]any{"stdout": lines(4000), "stderr": "", "interrupted": false}); got != nil {
		t.Errorf("a result was cut, and its original is elsewhere: %.200v", got)
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("%v (%v) was written through the link", left, err)
	}
	if !strings.Contains(log.String(), "is a link") {
		t.Errorf("the log does not say why: %s", log.String())
	}
}

func TestAnyInput(t *testing.T) {
	o, _ := options(t)
	rapid.Check(t, func(rt *rapid.T) {
		input := rapid.OneOf(
			rapid.String(),
			rapid.Custom(func(rt *rapid.T) string {
				value := rapid.SampledFrom([]string{`null`, `1`, `"x"`, `[]`, `[1,{"type":"text"}]`, `{}`, `{"file":1}`, `{"type":"text","file":{"content":1}}`, `{"filenames":[1]}`, `{"content":{}}`})
				return fmt.Sprintf(`{"hook_event_name":%q,"tool_name":%q,"source":"compact","tool_response":%s,"conversation":%s}`,
					rapid.SampledFrom([]string{"PostToolUse", "SessionStart", "PreCompact", "Recall", "Stop"}).Draw(rt, "event"),
					rapid.SampledFrom([]string{"Bash", "Read", "Glob", "x"}).Draw(rt, "tool"), value.Draw(rt, "result"), value.Draw(rt, "conversation"))
			}),
		).Draw(rt, "input")
		out, err := hook.Answer(t.Context(), rapid.SampledFrom(hook.Agents()).Draw(rt, "agent"), strings.NewReader(input), o)
		if err == nil && len(out) > 0 && !json.Valid(out) {
			rt.Fatalf("%s", out)
		}
	})
	_ = filepath.WalkDir(o.Store.Dir, func(path string, d fs.DirEntry, _ error) error {
		if !d.IsDir() {
			t.Errorf("%s was written", path)
		}
		return nil
	})
}
