package sessions

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
)

// What an agent or somebody else wrote leads to no other file, and to no panic.
func TestHostileNames(t *testing.T) {
	home := t.TempDir()
	t.Setenv("CLAUDE_CONFIG_DIR", home)
	project := filepath.Join(home, "projects", "-work")
	if err := os.MkdirAll(project, 0o700); err != nil {
		t.Fatal(err)
	}
	const id = "11111111-1111-4111-8111-111111111111"
	for _, name := range []string{".jsonl", "x.jsonl", "x" + id + "x.jsonl", strings.ToUpper("abcdef00") + id[8:] + ".jsonl"} {
		if err := os.WriteFile(filepath.Join(project, name), []byte("{\"cwd\":\"/\"}\n[]\n{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(project, id+".jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	if s, err := claude.Newest(t.Context(), "/"); err == nil {
		t.Errorf("found %s", s.Path)
	}
	for _, bad := range []string{"", "*", "..", "../" + id, id + "/..", "{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""), id + "\n", "--help"} {
		if _, err := claude.Find(t.Context(), bad); err == nil || !strings.Contains(err.Error(), "is not the ID of a session") {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

// A copy never replaces a file.
func TestCopyIsNew(t *testing.T) {
	dir := t.TempDir()
	s := &Session{Agent: codex, ID: "a", Path: filepath.Join(dir, "2025", "12", "31", "rollout-x-a.jsonl")}
	if err := os.MkdirAll(filepath.Dir(s.Path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Path, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := s.Copy(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(dir, "2026", "01", "02", "rollout-2026-01-02T03-04-05-"+c.ID+".jsonl"); c.Path != want {
		t.Errorf("got %s; want %s", c.Path, want)
	}
	if err := s.Write(t.Context(), c, []byte("{}\n")); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), c, []byte("{\"other\":1}\n")); !os.IsExist(err) {
		t.Errorf("got %v; want that the file exists", err)
	}
	if data, err := os.ReadFile(c.Path); err != nil || string(data) != "{}\n" {
		t.Errorf("got %q, %v", data, err)
	}
}

func TestWithoutThinking(t *testing.T) {
	lines := []string{
		`{"type":"user","uuid":"u","parentUuid":null}`,
		`{"type":"assistant","uuid":"t1","parentUuid":"u","message":{"content":[{"type":"thinking","thinking":"","signature":"x"}]}}`,
		`{"type":"assistant","uuid":"t2","parentUuid":"t1","message":{"content":[{"type":"redacted_thinking","data":"x"}]}}`,
		`{"type":"assistant","uuid":"a","parentUuid":"t2","message":{"content":[{"type":"thinking"}, {"type":"text","text":"said"}],"id":"m"}}`,
		`{"type":"last-prompt","leafUuid":"t2"}`,
		`{"type":"assistant","uuid":"e","parentUuid":"a","message":{"content":[]}}`,
		`{"type":"assistant","uuid":"first","message":{"content":[{"type":"thinking"}]}}`,
		`{"type":"user","uuid":"w","parentUuid":"first","message":{"content":[{"type":"thinking"}]}}`,
		`not JSON`,
	}
	want := []string{
		lines[0],
		`{"type":"assistant","uuid":"a","parentUuid":"u","message":{"content":[{"type":"text","text":"said"}],"id":"m"}}`,
		`{"type":"last-prompt","leafUuid":"u"}`,
		lines[5],
		`{"type":"user","uuid":"w","parentUuid":null,"message":{"content":[{"type":"thinking"}]}}`,
		lines[8],
	}
	var got []string
	for _, line := range withoutThinking(split(lines), "uuid", "parentUuid", "logicalParentUuid", "leafUuid") {
		got = append(got, string(line))
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

func TestWithNotes(t *testing.T) {
	original := []string{
		`{"type":"user","uuid":"u","parentUuid":null}`,
		`{"type":"attachment","uuid":"n1","parentUuid":"u"}`,
		`{"type":"attachment","uuid":"n2","parentUuid":"n1"}`,
		`{"type":"assistant","uuid":"a","parentUuid":"n2"}`,
		`{"type":"attachment","uuid":"n3","parentUuid":"a"}`,
		`{"type":"user","uuid":"v","parentUuid":"n3"}`,
	}
	for _, c := range []struct{ lines, want []string }{
		{original, original},
		{
			[]string{`{"type":"user","uuid":"s","parentUuid":null}`, `{"type":"user","uuid":"v","parentUuid":"s"}`, `{"type":"last-prompt","leafUuid":"s"}`},
			[]string{
				`{"type":"user","uuid":"s","parentUuid":null}`, `{"type":"attachment","uuid":"n1","parentUuid":"s"}`, `{"type":"attachment","uuid":"n2","parentUuid":"n1"}`,
				`{"type":"user","uuid":"v","parentUuid":"n2"}`, `{"type":"last-prompt","leafUuid":"n2"}`,
			},
		},
		{[]string{`{"type":"last-prompt"}`}, []string{`{"type":"last-prompt"}`}},
	} {
		got := string(bytes.Join(withNotes(split(c.lines), split(original)), []byte("\n")))
		if want := strings.Join(c.want, "\n"); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func split(lines []string) [][]byte {
	return bytes.Split([]byte(strings.Join(lines, "\n")), []byte("\n"))
}

// The text of a conversation is not changed where it names a session: files of the original are below that name.
func TestAdaptKeepsText(t *testing.T) {
	for _, a := range []*Agent{claude, codex} {
		lines := [][]byte{
			[]byte(`{"type":"user","sessionId":"old","message":{"content":"see /x/old/result.txt","sessionId":"old"}}`),
			[]byte(`{"type":"response_item","payload":{"type":"message","id":"old","content":"old"}}`),
			[]byte(`{`), nil,
		}
		got := a.adapt(lines, nil, "old", "new")
		if len(got) != 4 || !strings.Contains(string(got[0]), `{"content":"see /x/old/result.txt","sessionId":"old"}`) ||
			!strings.Contains(string(got[1]), `{"type":"message","id":"old","content":"old"}`) || string(got[2]) != "{" {
			t.Errorf("%s: got %s", a.Name, got)
		}
	}
}

// A copy for OpenCode has IDs of its own, in the order of the session, and no reasoning.
func TestReaddressed(t *testing.T) {
	const session = `{"info":{"id":"ses_old","title":"T","revert":{"messageID":"msg_1"},"directory":"/work"},"messages":[
		{"info":{"id":"msg_1","sessionID":"ses_old","role":"user"},"parts":[{"id":"prt_1","messageID":"msg_1","sessionID":"ses_old","type":"text","text":"see ses_old"}]},
		{"info":{"id":"msg_0","sessionID":"ses_old","role":"assistant","parentID":"msg_1"},"parts":[{"id":"prt_3","type":"step-start"},{"id":"prt_2","type":"reasoning","text":"hm"},{"id":"prt_2","type":"text","text":"seen"}]}]}`
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var got struct {
		Info     map[string]any
		Messages []struct {
			Info  map[string]string
			Parts []map[string]string
		}
	}
	if err := json.Unmarshal(readdressed([]byte(session), "ses_new", now), &got); err != nil {
		t.Fatal(err)
	}
	last := ""
	for i, m := range got.Messages {
		for _, id := range []string{m.Info["id"]} {
			if id <= last || m.Info["sessionID"] != "ses_new" {
				t.Errorf("message %d: %v after %s", i, m.Info, last)
			}
			last = id
		}
		part := ""
		for _, p := range m.Parts {
			if p["id"] <= part || p["messageID"] != m.Info["id"] || p["sessionID"] != "ses_new" || p["type"] == "reasoning" {
				t.Errorf("message %d: part %v", i, p)
			}
			part = p["id"]
		}
	}
	if len(got.Messages) != 2 || got.Messages[1].Info["parentID"] != got.Messages[0].Info["id"] || got.Messages[0].Parts[0]["text"] != "see ses_old" ||
		got.Info["id"] != "ses_new" || got.Info["revert"] != nil || len(got.Messages[1].Parts) != 2 {
		t.Errorf("got %+v", got)
	}
	if a, b := newSessionID(now), newSessionID(now.Add(time.Second)); a < b || opencode.CheckID(a) != nil {
		t.Errorf("%s, then %s; want the newest first", a, b)
	}
	for _, bad := range []string{"", "ses_", "--help", "ses_../../x", "ses_277daa810ffePOBsdfS6gm8uA2\n"} {
		if opencode.CheckID(bad) == nil {
			t.Errorf("%q is taken for an ID", bad)
		}
	}
}

// The whole conversations of OpenCode's copies are in the folder for state of this user and no other's, by their ID, which is no path.
func TestCopiesInAStore(t *testing.T) {
	state := t.TempDir()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_STATE_HOME", state)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var ids []string
	for i, text := range []string{"older", "newer", "newest"} {
		copied, err := (&Session{Agent: opencode}).Copy(now.Add(time.Duration(i) * time.Second))
		if err != nil || !strings.HasPrefix(copied.Path, filepath.Join(state, "condense", "copies", "opencode")) {
			t.Fatal(copied, err)
		}
		j := history.New()
		if err := j.Append(core.Message{ID: text, Role: core.RoleUser, Parts: []core.Part{core.Text(text)}}); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := errors.Join(history.Encode(&b, j), os.MkdirAll(filepath.Dir(Whole(copied.Path)), 0o700), os.WriteFile(Whole(copied.Path), b.Bytes(), 0o600)); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, copied.ID)
	}
	all := func() (found string) {
		for j := range Wholes() {
			found += j.Messages()[0].ID + " "
		}
		return found
	}
	if got := all(); got != "newest newer older " {
		t.Errorf("got %s", got)
	}
	if got := Named(ids[0]); got != filepath.Join(state, "condense", "copies", "opencode", ids[0]+".history", "whole.jsonl") {
		t.Errorf("got %s", got)
	}
	inside := filepath.Join(state, "condense", "copies", "opencode", ids[0])
	for _, name := range []string{"", ".", "..", inside, "../opencode/" + ids[0], ids[0] + "/../" + ids[0], "./" + ids[0], ids[0] + "\n", ids[0][:8], "ses_*", "ses_????????????????"} {
		if got := Named(name); got != name {
			t.Errorf("%q: got %s", name, got)
		}
		if path, err := opencode.kept(name); err == nil {
			t.Errorf("%q is at %s", name, path)
		}
	}
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	if got := Named(ids[0]) + all(); got != ids[0] {
		t.Errorf("with the folder of somebody else: %s", got)
	}
}
