package value_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/condensehq/condense/internal/value"
)

// TestChangedNamesDefinitions: the names of a changed file are those of its definitions, not words of comments, strings, keys or
// prose; a file without definitions has the lines that were changed last.
func TestChangedNamesDefinitions(t *testing.T) {
	for name, c := range map[string]struct{ file, text, old, now, want string }{
		"a comment":  {"provider.go", "package p\n\nfunc resolve(a []string) {\n\t// same-name type first\n\twalk(a)\n}\n", "\t// same-name type first", "\t// same-name type sorts first", "provider.go (resolve)"},
		"keys":       {"hooks.ts", "export class Hooks {\n  run(a: Hook) {\n    return a\n  }\n}\n", "    return a", "    return { type: \"agent-operation\", const: mcpParams }", "hooks.ts (run)"},
		"a string":   {"root_test.go", "package p\n\nfunc TestRoot(t *testing.T) {\n\tsrc := ``\n}\n", "``", "`\ndef validate_token(a):\n    class Dirty: pass\n`", "root_test.go (TestRoot)"},
		"no outline": {"go.mod", "", "", "module github.com/acme/tool\n", "go.mod (written: module github.com/acme/tool)"},
		"a setting":  {"app.conf", "host = a\nport = 80\nuser = b\n", "host = a\nport = 80\nuser = b", "host = a\nport = 90\nuser = b", "app.conf (port = 90)"},
		"prose":      {"notes.md", "", "", "# Plan\n\nThe class encodes it, the type taking turns.\n", "notes.md (written: Plan)"},
	} {
		args := func(v map[string]string) string {
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		old := reading(40)
		messages := old[:1:1]
		if c.text != "" {
			messages = append(messages, did("c1", "Read", args(map[string]string{"file_path": c.file}), c.text, false)...)
			messages = append(messages, did("c2", "Edit", args(map[string]string{"file_path": c.file, "old_string": c.old, "new_string": c.now}), "done", false)...)
		} else {
			messages = append(messages, did("c1", "Write", args(map[string]string{"file_path": c.file, "content": c.now}), "done", false)...)
		}
		messages = measured(slices.Concat(messages, old[1:]))
		got := openIn(t, shortenWith(t, messages, tokensOf(messages)/8, value.Options{}))
		if want := "changed: " + c.want; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
