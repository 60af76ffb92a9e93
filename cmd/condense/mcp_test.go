package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
)

// TestMCPProcess: a client over standard input and output finds a needle of the first result byte for
// byte, also one of a message that came after the start, while the file is half written, and after it was
// replaced; and the process ends with the client.
func TestMCPProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "session [1].jsonl")
	file, err := history.Create(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	say := func(n int, text string) {
		t.Helper()
		id := fmt.Sprint("call", n)
		if err := file.Append(
			core.Message{ID: fmt.Sprint("a", n), Role: core.RoleAssistant, Parts: []core.Part{core.ToolCall{ID: id, Name: "bash", Args: `{"command":"cat log"}`}}},
			core.Message{ID: fmt.Sprint("r", n), Role: core.RoleUser, Parts: []core.Part{core.ToolResult{CallID: id, Content: []core.Part{core.Text(text)}}}},
		); err != nil {
			t.Fatal(err)
		}
	}
	needle := "first\n" + strings.Repeat("x\x00\x1bé\r\n", 100) + "needle"
	say(1, needle)
	say(2, "second")
	if err := file.Condense(history.Condensation{ID: "C", Edit: core.Edit{Hide: []string{"a1", "r1"}}}); err != nil {
		t.Fatal(err)
	}
	cmd, session := startMCP(t, path)
	recall := func(message string) string {
		t.Helper()
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "recall", Arguments: map[string]any{"message": message}})
		if err != nil || res.IsError || len(res.Content) < 2 {
			t.Fatalf("%s: got %+v, %v", message, res, err)
		}
		return res.Content[1].(*mcp.TextContent).Text
	}
	if got := recall("r1"); got != needle {
		t.Errorf("got %q", got)
	}
	say(3, "later")
	if got := recall("r3"); got != "later" {
		t.Errorf("got %q", got)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, damaged := range []string{string(whole[:len(whole)-5]), "rubbish", ""} {
		if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := recall("r1"); got != needle {
			t.Errorf("%.20q: got %q", damaged, got)
		}
	}
	if err := os.WriteFile(path, []byte(`{"messages":[{"role":"user","content":"replaced"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := recall("1"); got != "replaced" {
		t.Errorf("got %q", got)
	}
	if err := session.Close(); err != nil {
		t.Errorf("the process ended with %v", err)
	}
	if code := cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// startMCP starts the server of a file, and a client.
func startMCP(t *testing.T, path string) (*exec.Cmd, *mcp.ClientSession) {
	t.Helper()
	cmd := exec.Command("condense", "mcp", path)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd, TerminateDuration: time.Minute}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return cmd, session
}

// TestMCPOriginals: the originals next to a file are served, those that a journal names elsewhere are not.
func TestMCPOriginals(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "session.jsonl")
	originals := func(path, text string) {
		t.Helper()
		var b strings.Builder
		err := history.EncodeOriginals(&b, []core.Message{{ID: "r1", Role: core.RoleUser, Parts: []core.Part{core.Text(text)}}})
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
		}
		if err == nil {
			err = os.WriteFile(path, []byte(b.String()), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	originals(path+".history/part-1.jsonl", "kept near")
	originals(filepath.Join(dir, "secret.jsonl"), "kept elsewhere")
	file, err := history.Create(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Append(core.Message{ID: "m1", Role: core.RoleUser, Parts: []core.Part{core.Text("hidden")}}, core.Message{ID: "m2", Role: core.RoleUser, Parts: []core.Part{core.Text("seen")}}); err != nil {
		t.Fatal(err)
	}
	if err := file.Condense(history.Condensation{ID: "C", Edit: core.Edit{Hide: []string{"m1"}}, Originals: filepath.Join(dir, "secret.jsonl")}); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	_, session := startMCP(t, path)
	for text, served := range map[string]bool{"hidden": true, "kept near": true, "kept elsewhere": false} {
		res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "recall", Arguments: map[string]any{"handle": core.Handle(core.Text(text))}})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(res.Content) == 2 && res.Content[1].(*mcp.TextContent).Text == text; got != served || res.IsError == served {
			t.Errorf("%s: got %+v", text, res)
		}
	}
}

// TestMCPAgent: the server of an agent's session serves what the agent recorded and what the hook has kept, by handle
// also of another session, and says which session it is.
func TestMCPAgent(t *testing.T) {
	const id, other = "603a5089-9987-460a-89bd-d56950142ac5", "1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b"
	home, work := t.TempDir(), t.TempDir()
	for name, value := range map[string]string{
		"HOME": home, "CLAUDE_CONFIG_DIR": filepath.Join(home, "claude"), "XDG_STATE_HOME": filepath.Join(home, "state"), "XDG_CONFIG_HOME": home,
		"CLAUDE_PROJECT_DIR": work, "CLAUDE_CODE_SESSION_ID": id,
	} {
		t.Setenv(name, value)
	}
	line := func(kind, content string) string {
		return fmt.Sprintf(`{"type":%q,"uuid":"00000000-0000-4000-8000-00000000000%d","parentUuid":null,"sessionId":%q,"cwd":%q,"message":{"role":%q,"content":%q}}`+"\n", kind, len(kind), id, work, kind, content)
	}
	path := filepath.Join(home, "claude", "projects", "p", id+".jsonl")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(line("user", "recorded by the agent")), 0o600); err != nil {
		t.Fatal(err)
	}
	keep := func(session, text string) (handle string) {
		t.Helper()
		event := fmt.Sprintf(`{"hook_event_name":"PostToolUse","session_id":%q,"cwd":%q,"tool_name":"Bash","tool_input":{"command":"x"},"tool_response":{"stdout":%q}}`, session, work, text)
		cmd := exec.Command("condense", "hook", "claude", "--recall", "--max-result", "100")
		cmd.Stdin = strings.NewReader(event)
		out, err := cmd.Output()
		handle = core.Handle(core.ToolResult{Content: []core.Part{core.Text(text)}})
		if err != nil || !strings.Contains(string(out), "recall h:"+handle) {
			t.Fatalf("%s, %v", out, err)
		}
		return handle
	}
	mine, theirs := strings.Repeat("a line of mine\n", 100), strings.Repeat("a line of theirs\n", 100)
	one, two := keep(id, mine), keep(other, theirs)

	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: exec.Command("condense", "mcp", "--agent", "claude"), TerminateDuration: time.Minute}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // it was only asked
	ask := func(tool string, arguments map[string]any) string {
		t.Helper()
		res, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		return res.Content[len(res.Content)-1].(*mcp.TextContent).Text
	}
	for _, tt := range []struct{ got, want string }{
		{ask("recall", map[string]any{"handle": one}), mine},
		{ask("recall", map[string]any{"handle": two}), theirs},
		{ask("recall", map[string]any{"message": "1"}), "recorded by the agent"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %.100q, want %.100q", tt.got, tt.want)
		}
	}
	if got := ask("status", nil); !strings.Contains(got, "session "+id+" of Claude Code") {
		t.Errorf("status: %s", got)
	}
	if got := ask("search", map[string]any{"query": "line mine"}); !strings.Contains(got, one) || strings.Contains(got, two) {
		t.Errorf("search: %s", got)
	}
}

// TestSearchOfSessionsGivesAModelNoKeys: lines and commands of all projects go to a vendor, so a key in them does not.
func TestSearchOfSessionsGivesAModelNoKeys(t *testing.T) {
	home := t.TempDir()
	for name, value := range map[string]string{"HOME": home, "XDG_STATE_HOME": filepath.Join(home, "state"), "XDG_CONFIG_HOME": home, "CLAUDE_CONFIG_DIR": filepath.Join(home, "claude")} {
		t.Setenv(name, value)
	}
	keys := []string{"ghp_p2zwAbCdEfGhIjKlMnOpQrStUvWxYzJtOO8l", "T0AAAAAAA/B0BBBBBBB/abcdefghijklmnopqrstuvwx", "zanzibar77", "6fa459ea-ee8a-3ca4-894e-db77e160355e"}
	path := filepath.Join(home, "session.json")
	text := fmt.Sprintf(`[{"role":"user","content":"Try the curl example."},
{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Bash","input":{"command":"curl -H 'X-Api-Key: %s' -H 'X-Other-Key: %s' example"}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"an example of curl\nSERVICE_TOKEN=https://hooks.slack.com/services/%s example\nexample --password %s"}]}]`, keys[0], keys[3], keys[1], keys[2])
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("condense", "search", "--index", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: exec.Command("condense", "mcp", "--agent", "claude", "--sessions"), TerminateDuration: time.Minute}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // it was only asked
	res, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "search_sessions", Arguments: map[string]any{"query": "example"}})
	if err != nil || res.IsError {
		t.Fatalf("%+v, %v", res, err)
	}
	found := res.Content[len(res.Content)-1].(*mcp.TextContent).Text
	if !strings.Contains(found, "an example of curl") {
		t.Errorf("nothing was found: %s", found)
	}
	for _, key := range keys {
		if strings.Contains(found, key) {
			t.Errorf("%s went to the model: %s", key, found)
		}
	}
}
