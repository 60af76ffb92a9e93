package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/command"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/transcript"
)

// wantHarmless fails if output could control a terminal, or if text of a session starts one of its
// lines.
func wantHarmless(t rapid.TB, what, output string) {
	t.Helper()
	if !utf8.ValidString(output) {
		t.Errorf("%s: not UTF-8: %q", what, output)
	}
	for _, r := range output {
		if r != '\n' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)) {
			t.Errorf("%s: %q reached the terminal: %q", what, r, output)
			return
		}
	}
	for line := range strings.Lines(output) {
		if strings.HasPrefix(strings.TrimSpace(line), forged) {
			t.Errorf("%s: forged line %q in %q", what, line, output)
		}
	}
}

const forged = "condensation FORGED"

// hostile draws names that an attacker might choose.
func hostile(t *rapid.T, label string) string {
	return "x" + strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{
		"\n" + forged, "\r\n" + forged, "\u2028" + forged, "\u0085" + forged, "\x1b[2J", "\x1b]0;title\x07", "\x1b]52;c;aGk=\x1b\\",
		"\u009b31m", "\u202e", "\u2066", "\u200b", "\ufeff", "\x7f", "\t", "\v", "\x00", "\U000e0041", "ordinary", "%s%n", `"`,
	}), 1, 6).Draw(t, label), "")
}

// in runs a command in this process and returns what it printed.
func in(tb testing.TB, args ...string) string {
	tb.Helper()
	var out, errs bytes.Buffer
	code := command.Run(tb.Context(), args, strings.NewReader(""), &out, &errs)
	if code < 0 || code > cli.ExitNothing {
		tb.Errorf("%q: exit code %d", args, code)
	}
	return out.String() + errs.String()
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func TestNamesFromOutsideCannotActOnATerminal(t *testing.T) {
	alone(t)
	rapid.Check(t, func(rt *rapid.T) {
		tool, call, first, second := hostile(rt, "tool"), hostile(rt, "call"), "1"+hostile(rt, "first"), "2"+hostile(rt, "second")
		condensation, kind := hostile(rt, "condensation"), hostile(rt, "kind")
		j := history.New()
		must(t, j.Append(
			core.Message{ID: first, Role: core.RoleUser, Parts: []core.Part{core.Text("Go on. " + tool)}},
			core.Message{ID: second, Role: core.RoleAssistant, Parts: []core.Part{core.ToolCall{ID: call, Name: tool, Args: `{}`}}},
			core.Message{ID: "3", Role: core.RoleTool, Parts: []core.Part{core.ToolResult{CallID: call, Content: []core.Part{core.Text("none " + kind)}}}},
			core.Message{ID: "4", Role: core.RoleAssistant, Parts: []core.Part{core.Opaque{Kind: kind, JSON: `{"type":"x"}`}}},
			core.Message{ID: "5", Role: core.RoleUser, Parts: []core.Part{core.Text("Thanks."), core.Image{MediaType: kind, Data: "eA=="}}},
		))
		must(t, j.Condense(history.Condensation{ID: condensation, Provider: tool, Trigger: core.TriggerManual, Time: time.Unix(0, 0).UTC(), Edit: core.Edit{Hide: []string{second, "3"}}}))
		var b bytes.Buffer
		_, err := (&transcript.Document{Journal: j}).Write(&b, "condense")
		must(t, err)
		must(t, os.WriteFile("session.jsonl", b.Bytes(), 0o600))
		for _, args := range [][]string{
			{"view", "session.jsonl"},
			{"view", "session.jsonl", "--all"},
			{"view", "session.jsonl", "--all", "--json"},
			{"inspect", "session.jsonl"},
			{"inspect", "session.jsonl", "--opportunities"},
			{"inspect", "session.jsonl", "--json"},
			{"check", "session.jsonl"},
			{"check", "session.jsonl", "--mode", tool},
			{"check", "session.jsonl", "--profile", tool},
			{"run", "session.jsonl", "--force", "-o", os.DevNull},
			{"run", "session.jsonl", "--provider", tool},
			{"run", "session.jsonl", "--settings", tool, "--provider", "smart"},
			{"run", "session.jsonl", "--to", tool},
			{"recall", "session.jsonl", "--hidden"},
			{"recall", "session.jsonl", "--hidden", "--json"},
			{"recall", "session.jsonl", tool},
			{"undo", "session.jsonl", "-o", os.DevNull},
			{"undo", "session.jsonl", tool, "-o", os.DevNull},
			{"rewind", "session.jsonl", "--to", first, "-o", os.DevNull},
			{"rewind", "session.jsonl", "--to", tool, "-o", os.DevNull},
			{"providers", tool},
			{tool},
			{"run", "--" + tool},
			{"run", tool},
			{"view", kind},
			{"config", "explain", tool},
			{"config", "explain", "--mode", tool},
			{"config", "check", tool},
			{"check", "session.jsonl", "--window", tool},
		} {
			wantHarmless(rt, fmt.Sprintf("%q", args), in(t, args...))
		}
	})
}

// Keys of invalid transcripts and configurations appear in error messages.
func TestKeysFromOutsideCannotActOnATerminal(t *testing.T) {
	alone(t)
	rapid.Check(t, func(rt *rapid.T) {
		key := hostile(rt, "key")
		quoted := fmt.Sprintf("%q", strings.NewReplacer("%", "", "\x00", "", "\U000e0041", "").Replace(key))
		quoted = strings.NewReplacer(`\x1b`, `\u001b`, `\x7f`, `\u007f`, `\v`, `\u000b`, `\a`, `\u0007`).Replace(quoted)
		for name, text := range map[string]string{
			"object.json":   `{` + quoted + `:1}`,
			"message.json":  `[{"role":` + quoted + `,"content":"a"}]`,
			"block.json":    `[{"role":"user","content":[{"type":` + quoted + `}]}]`,
			"lines.jsonl":   `{"type":` + quoted + `,"message":{}}` + "\n" + key,
			"condense.yaml": quoted + ": 1\nmodes: {" + quoted + ": nobody}\nchain: [" + quoted + "]\n",
			"raw.yaml":      key + ": [\n",
		} {
			must(t, os.WriteFile(name, []byte(text), 0o600))
			command := []string{"view", name}
			if filepath.Ext(name) == ".yaml" {
				command = []string{"config", "check", name}
			}
			wantHarmless(rt, fmt.Sprintf("%s: %q", name, text), in(t, command...))
			must(t, os.Remove(name))
		}
	})
}

// alone runs the test in an empty folder without a configuration.
func alone(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("XDG_STATE_HOME", dir)
}

func TestErrorText(t *testing.T) {
	bad := errors.New("a\nFORGED\x1b")
	for _, tt := range []struct {
		err  error
		want string
	}{
		{bad, "a FORGED\ufffd"},
		{fmt.Errorf("f: %w; go on", bad), "f: a FORGED\ufffd; go on"},
		{errors.Join(bad, errors.New("second")), "a FORGED\ufffd\nsecond"},
		{fmt.Errorf("x\ny: %w", errors.Join(bad, bad)), "x y: a FORGED\ufffd\na FORGED\ufffd"},
		{fmt.Errorf("%w and %w", bad, bad), "a FORGED\ufffd and a FORGED\ufffd"},
	} {
		if got := term.ErrorText(tt.err); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// Invisible characters that the encoder leaves are escaped, and decode to the same value.
func TestJSONHasNoInvisibleCharacters(t *testing.T) {
	var b bytes.Buffer
	must(t, term.PrintJSON(&b, map[string]string{"a\u009b": "\u202e\u2028\x7f\U000e0041\x1b<>"}))
	want := "{\n  \"a\\u009b\": \"\\u202e\\u2028\\u007f\\udb40\\udc41\\u001b<>\"\n}\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// Everything is printed through package term, where it is cleaned.
func TestNothingIsPrintedUncleaned(t *testing.T) {
	files, err := filepath.Glob("internal/*/*.go")
	must(t, err)
	for _, name := range append(files, "main.go") {
		if filepath.Base(name) == "print.go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, 0)
		must(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			_, toBuffer := call.Args[0].(*ast.UnaryExpr)
			if s, ok := call.Fun.(*ast.SelectorExpr); ok && strings.HasPrefix(s.Sel.Name, "Fprint") && !toBuffer {
				t.Errorf("%v: use printf, which cleans its arguments", fset.Position(s.Pos()))
			}
			return true
		})
	}
}
