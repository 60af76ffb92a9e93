package agents_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit/upstream"
)

// holds reports whether a string in a value of JSON, or in JSON in such a string, holds text.
func holds(v any, text string) bool {
	switch v := v.(type) {
	case string:
		var in any
		return strings.Contains(v, text) || strings.ContainsAny(v, "[{") && json.Unmarshal([]byte(v), &in) == nil && holds(in, text)
	case []any:
		return slices.ContainsFunc(v, func(v any) bool { return holds(v, text) })
	case map[string]any:
		for _, v := range v {
			if holds(v, text) {
				return true
			}
		}
	}
	return false
}

// TestMCP runs agents whose model asks condense mcp for the first result of a condensed conversation. The answer
// reaches the model byte for byte.
func TestMCP(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		agent, tool string
		args        []string // more of the agent's
		settings    string   // instead of the agent's; {vendor} is the vendor, {condense} and {file} what is started
	}{
		{"claude", "mcp__condense__recall", []string{"--mcp-config", `{"mcpServers":{"condense":{"command":"{condense}","args":["mcp","{file}"]}}}`, "--allowedTools", "mcp__condense__recall"}, ""},
		{"opencode", "condense_recall", nil, `{"provider": {"anthropic": {"options": {"baseURL": "{vendor}/v1"}}}, "mcp": {"condense": {"type": "local", "command": ["{condense}", "mcp", "{file}"]}}}`},
		{"codex", "mcp__condenserecall", nil, "openai_base_url = \"{vendor}/v1\"\n" + codexOffline + "[mcp_servers.condense]\ncommand = \"{condense}\"\nargs = [\"mcp\", \"{file}\"]\n"},
	} {
		tried := some("claude", "codex")
		at := slices.IndexFunc(tried, func(a agent) bool { return a.name == tt.agent })
		if at < 0 {
			continue
		}
		t.Run(tt.agent, func(t *testing.T) {
			t.Parallel()
			recall := map[string]any{"message": "3", "lines": "2-5"}
			d := newDesk(t, upstream.Options{ByCredential: true, Script: []upstream.Step{
				{Commands: []string{"true"}}, {Calls: []upstream.Call{{Tool: tt.tool, Input: recall}}}, {Text: "Done."},
			}})
			file, needle := d.session(t)
			fill := strings.NewReplacer("{vendor}", d.url, "{condense}", d.condense(t), "{file}", file)
			a := tried[at]
			if tt.settings != "" {
				a.content = fill.Replace(tt.settings)
			}
			if len(tt.args) > 0 {
				var args []string
				for _, arg := range tt.args {
					args = append(args, fill.Replace(arg))
				}
				a.args = append(args, a.args...)
			}
			end := d.direct(t, &a, d.url, "Find the needle.")
			if end.code != 0 {
				t.Errorf("exit code %d\n%s", end.code, tail(end.out))
			}
			d.accept(t)
			if !slices.ContainsFunc(d.vendor.Records(), func(r upstream.Record) bool {
				var v any
				return json.Unmarshal(r.Body, &v) == nil && holds(v, needle)
			}) {
				t.Errorf("the needle has not reached the model\n%s\n%s", tail(end.out), d.list())
			}
		})
	}
}

// session writes a condensed conversation and returns its file and what lines 2 to 5 of its first result are, which is hidden.
func (d *desk) session(t *testing.T) (file, needle string) {
	t.Helper()
	type object = map[string]any
	messages := []any{object{"role": "user", "content": "go"}}
	for i := range 30 {
		var b strings.Builder
		for n := range 400 {
			fmt.Fprintf(&b, "%d\tresult %d <b>\"é 世界\" needle %d\n", n+1, i, 1000*i+7*n)
		}
		id := fmt.Sprint("toolu_", i)
		messages = append(messages,
			object{"role": "assistant", "content": []any{object{"type": "tool_use", "id": id, "name": "read_file", "input": object{"path": fmt.Sprint("f", i)}}}},
			object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": id, "content": b.String()}}})
		if i == 0 {
			needle = strings.Join(strings.SplitAfter(b.String(), "\n")[1:5], "")
		}
	}
	whole, err := json.Marshal(object{"model": "claude-sonnet-4-5", "max_tokens": 1000, "messages": messages})
	if err != nil {
		t.Fatal(err)
	}
	from, file := filepath.Join(d.home, "session.json"), filepath.Join(d.home, "session.jsonl")
	write(t, from, string(whole))
	if r := d.run(t, nil, d.condense(t), "run", from, "--to", "condense", "--force", "-q", "-o", file); r.code != 0 {
		t.Fatal(r.out)
	}
	if r := d.run(t, nil, d.condense(t), "recall", file, "--hidden"); !strings.Contains(r.out, "  m3 ") {
		t.Fatalf("the first result is not hidden\n%s", tail(r.out))
	}
	return file, needle
}
