package editor_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/peers"
)

// languageServer returns the command of the language server that package-lock.json pins.
func languageServer(t *testing.T) []string {
	t.Helper()
	node, dir := peers.Node(t, "editor-test", "the schema is not tried in an editor")
	return []string{node, filepath.Join(dir, "node_modules", "yaml-language-server", "bin", "yaml-language-server"), "--stdio"}
}

// build compiles the program and returns its path.
func build(t *testing.T) string {
	t.Helper()
	const pkg = "../../cmd/condense"
	program, err := testkit.Program("../..", filepath.Join(t.TempDir(), "condense.exe"))
	if err != nil {
		t.Fatal(err)
	}
	// The go command does not know that this test depends on those sources. It runs a cached
	// test again if files have changed that the test opened.
	list, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
		`{{with .Module}}{{if .Main}}{{range $.GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`, pkg).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for file := range strings.FieldsSeq(string(list)) {
		if _, err := os.Stat(file); err != nil {
			t.Fatal(err)
		}
	}
	return program
}

// run runs the program in a folder, and returns its standard output.
func run(t *testing.T, dir, program string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "CONDENSE_") && !strings.HasPrefix(v, "XDG_CONFIG_HOME=") && !strings.HasPrefix(v, "HOME=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "HOME="+dir)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("condense %s: %v", strings.Join(args, " "), err)
	}
	return out
}
