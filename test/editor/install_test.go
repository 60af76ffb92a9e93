package editor_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// requirePeers makes a test fail, instead of being skipped, if programs of others that it
// needs are not there. CI sets it to 1.
const requirePeers = "CONDENSE_REQUIRE_PEERS"

// missing ends a test that lacks a program of others.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	why := fmt.Sprintf(format, args...)
	if os.Getenv(requirePeers) == "1" {
		t.Fatalf("%s, and %s=1 demands it", why, requirePeers)
	}
	t.Skipf("the schema is not tried in an editor: %s", why)
}

// languageServer returns the command of the language server that package-lock.json pins. It
// is installed once for each lockfile, in the user's cache directory.
func languageServer(t *testing.T) []string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		missing(t, "node is not installed")
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		missing(t, "npm is not installed")
	}
	files := map[string][]byte{}
	sum := sha256.New()
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = text
		sum.Write(text)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	dir := filepath.Join(cache, "condense", "editor-test", hex.EncodeToString(sum.Sum(nil))[:16])
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		install(t, npm, dir, files)
	}
	return []string{node, filepath.Join(dir, "node_modules", "yaml-language-server", "bin", "yaml-language-server"), "--stdio"}
}

// install runs npm ci beside dir and then moves the result there, so that dir is complete
// whenever it exists.
func install(t *testing.T, npm, dir string, files map[string][]byte) {
	t.Helper()
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	tmp, err := os.MkdirTemp(parent, "install-*") //nolint:usetesting // on the file system that it is moved on
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(tmp) }() // nothing is there after the rename
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(tmp, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = tmp
	if out, err := cmd.CombinedOutput(); err != nil {
		missing(t, "npm ci: %v\n%s", err, out)
	}
	if err := os.Rename(tmp, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
}

// build compiles the program and returns its path.
func build(t *testing.T) string {
	t.Helper()
	const pkg = "../../cmd/condense"
	program := filepath.Join(t.TempDir(), "condense.exe")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, pkg).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	// The go command does not know that this test depends on those sources. It repeats a
	// test, instead of answering from its cache, if files have changed that the test looked at.
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
