package lab_test

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/testkit"
)

// Rules give modes to sessions that name none.
func TestARuleGivesAnySessionAMode(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	for _, c := range []struct {
		rules, file, says string
		mode              string
	}{
		{"plan-*=plan", "/logs/plan-3.jsonl", "", "plan"},
		{"plan-*=plan", "/logs/code-3.jsonl", "", ""},
		{"reviews=review", "/logs/reviews/deep/3.jsonl", "", "review"}, // a folder
		{"reviews=review", "/logs/code-reviews/3.jsonl", "", ""},       // no part of a name
		{"reviews/=review", "/logs/reviews/3.jsonl", "", "review"},
		{"a/*.jsonl=ask", "/logs/a/3.jsonl", "", "ask"},
		{"a/*.jsonl=ask", "/logs/a/b/3.jsonl", "", ""},
		{"/logs/a=ask", "/logs/a/3.jsonl", "", "ask"},
		{"/logs/a=ask", "/home/logs/a/3.jsonl", "", ""},
		{"text:You are in plan mode.=plan", "/x.json", "Hello. You are in plan mode. Write nothing.", "plan"},
		{"text:You are in plan mode.=plan", "/x.json", "you are in plan mode", ""},
		{"text:a=b=plan", "/x.json", "set a=b", "plan"},  // the last equals sign counts
		{"x*=ask,*.json=code", "/x.json", "", "ask"},     // the first rule that applies
		{"*=ask", "/x.json", "<slug>code</slug>", "ask"}, // before what the session says
		{"y*=ask", "/x.json", "<slug>code</slug>", "code"},
	} {
		var rules []lab.ModeRule
		for text := range strings.SplitSeq(c.rules, ",") {
			r, err := lab.ParseModeRule(text)
			if err != nil {
				t.Fatal(err)
			}
			rules = append(rules, r)
		}
		file := filepath.FromSlash(c.file)
		item := inMemory(file, talk(c.says))
		r := run(t, []lab.Item{item}, lab.Options{ModeOf: rules, Budgets: budgets(t, "50%")}, window("window", "budget"))
		if len(r.Sessions) != 1 || r.Sessions[0].Mode != c.mode {
			t.Errorf("%s, %s, %q: sessions %+v, want the mode %q", c.rules, c.file, c.says, r.Sessions, c.mode)
		}
	}
	for _, bad := range []string{"", "plan", "=plan", "text:=plan", "a=", "[=plan", "/=x"} {
		if r, err := lab.ParseModeRule(bad); err == nil {
			t.Errorf("%q: read as %+v, want an error", bad, r)
		}
	}
}

// talk is a session that is long enough to be cut.
func talk(says string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `[{"role":"user","content":%q}`, "Please look at alpha_beta. "+says)
	for i := range 20 {
		fmt.Fprintf(&b, `,{"role":"assistant","content":"I look at item_%d of alpha_beta and think about what it does."},{"role":"user","content":"Go on with item_%d."}`, i, i+1)
	}
	b.WriteString("]")
	return []byte(b.String())
}

func TestSessionsWithoutAModeSayThatOneIsMissing(t *testing.T) {
	t.Parallel()
	item := inMemory("/x.json", talk(""))
	r := run(t, []lab.Item{item}, lab.Options{Modes: []string{"code"}}, window("window", "budget"))
	if len(r.Skipped) != 1 || r.Skipped[0].Reason != lab.NoMode {
		t.Errorf("skipped %+v, want %q", r.Skipped, lab.NoMode)
	}
}

// Claude Code and Codex record the plan mode; Cline names its mode in messages.
func TestModesThatFilesRecord(t *testing.T) {
	t.Parallel()
	claude := func(modes ...string) string {
		var b strings.Builder
		for i, m := range modes {
			if m != "" {
				m = fmt.Sprintf(`,"permissionMode":%q`, m)
			}
			fmt.Fprintf(&b, `{"parentUuid":null,"isSidechain":false,"type":"user","sessionId":"s","message":{"role":"user","content":"go on, \"permissionMode\":\"plan\""},"uuid":"u%d","timestamp":"2026-01-01T00:00:%02dZ"%s}`+"\n", i, i, m)
		}
		return b.String()
	}
	codex := func(modes ...string) string {
		b := `{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"1"}}` + "\n"
		for _, m := range modes {
			if m != "" {
				m = fmt.Sprintf(`,"collaboration_mode":{"mode":%q,"settings":{"model":"m"}}`, m)
			}
			b += `{"timestamp":"2026-01-01T00:00:01Z","type":"turn_context","payload":{"model":"m"` + m + "}}\n" +
				`{"timestamp":"2026-01-01T00:00:02Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"go on"}]}}` + "\n"
		}
		return b
	}
	opencode := func(agents ...string) string {
		var messages []string
		for i, a := range agents {
			messages = append(messages, fmt.Sprintf(`{"info":{"id":"msg_%d","sessionID":"ses_1","role":"user"%s},"parts":[{"type":"text","text":"Go on."}]}`, i, a))
		}
		return `{"info":{"id":"ses_1","version":"1.2.0"},"messages":[` + strings.Join(messages, ",") + `]}`
	}
	for _, c := range []struct{ name, text, want string }{
		{"OpenCode", opencode(`,"agent":"plan"`, `,"agent":"build"`, `,"agent":"plan"`), "plan"},
		{"OpenCode before it named agents", opencode(`,"mode":"build"`), "build"},
		{"OpenCode, none recorded", opencode(""), ""},
		{"Claude Code, none recorded", claude("", ""), ""},
		{"Claude Code, plan", claude("plan", "", ""), "plan"},
		{"Claude Code, edits accepted", claude("acceptEdits", "bypassPermissions"), "code"},
		{"Claude Code, mostly code", claude("plan", "default", "", ""), "code"},
		{"Claude Code, a line of its own", `{"type":"permission-mode","permissionMode":"plan","sessionId":"s"}` + "\n" + claude("", ""), "plan"},
		{"Codex, none recorded", codex("", ""), ""},
		{"Codex, plan", codex("plan", "plan", "default"), "plan"},
		{"Codex, default", codex("default"), "code"},
		{"Cline", `[{"role":"user","content":[{"type":"text","text":"<environment_details>\n# Current Mode\nPLAN MODE\nWrite nothing.\n</environment_details>"}]}]`, "plan"},
		{"Cline, act", `[{"role":"user","content":[{"type":"text","text":"<environment_details>\n# Current Mode\nACT MODE\n</environment_details>"}]}]`, "act"},
	} {
		if s := read(t, "/logs/x.jsonl", c.text); s.Mode != c.want {
			t.Errorf("%s: mode %q, want %q", c.name, s.Mode, c.want)
		}
	}
}

// inMemory returns the item of a transcript in memory.
func inMemory(name string, data []byte) lab.Item {
	return lab.Item{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}
