package wasm_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
)

const machine = "github.com/tetratelabs/wazero"

// TestLinked: who does not import the package does not get the machine.
func TestLinked(t *testing.T) {
	testkit.Process(t)
	for pkg, want := range map[string]bool{"../../..": false, "..": false, "../../../live": false, ".": true} {
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", pkg).Output()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(out), machine); got != want {
			t.Errorf("%s links wazero: %v", pkg, got)
		}
	}
}

// TestEmbedded: a program that embeds condense runs a module in a child of itself or of another program, and only an approved one; one that
// calls Init late or never is told so, and starts nothing that starts more.
func TestEmbedded(t *testing.T) {
	testkit.Process(t)
	testkit.Slow(t)
	dir := t.TempDir()
	program := func(name string) string {
		if runtime.GOOS == "windows" {
			name += ".exe"
		}
		return filepath.Join(dir, name)
	}
	built := program("early")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", built, "./testdata/embed").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for _, name := range []string{"late", "never", "by", "again"} {
		if err := os.Link(built, program(name)); err != nil {
			t.Fatal(err)
		}
	}
	module, err := filepath.Abs("../../../internal/plugins/wasm/testdata/tidy-rust.wasm")
	if err != nil {
		t.Fatal(err)
	}
	inAssemblyScript := strings.Replace(module, "rust", "assemblyscript", 1)
	sumOf := func(file string) string {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		is := sha256.Sum256(data)
		return hex.EncodeToString(is[:])
	}
	sum := sumOf(module)
	other := strings.Repeat("0", len(sum))
	broken := filepath.Join(t.TempDir(), "broken.wasm")
	if err := os.WriteFile(broken, []byte("no module"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("EMBED_SECRET", "secret")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	const hint = "a program runs modules if main calls Init of plugin-sdk/host/wasm first: does "
	for _, c := range []struct {
		name   string
		args   []string
		want   string
		starts int // of its processes
	}{
		{"early", []string{module, sum}, `^tidy applied`, 2},
		{"early", []string{inAssemblyScript, sumOf(inAssemblyScript)}, `^tidy applied`, 2},
		{"by", []string{module, sum, built}, `^tidy applied`, 2},
		{"by", []string{module, sum, program("never")}, `^tidy failed .*embed: \\?"plugin-wasm\\?" is no file.*` + hint, 2},
		{"by", []string{module, sum, built + "-not"}, `^tidy failed .*the program that runs it: .*does not exist`, 1},
		{"by", []string{module, sum, filepath.Base(built)}, `the program that runs .*: \\?"early(\.exe)?\\?" is not absolute`, 1},
		{"again", []string{module, sum}, `^tidy failed .*this process was started to run a module: call Init`, 2},
		{"early", []string{module, other}, `^tidy failed .*is not the plugin that was pinned`, 1},
		{"early", []string{broken, sumOf(broken)}, `^tidy failed .*it cannot run: it is not a valid module of WebAssembly: [a-z ]+\n`, 2},
		{"never", []string{module, sum}, `this program runs none: call Init of plugin-sdk/host/wasm first in main`, 1},
		{"late", []string{module, sum}, `^tidy failed .*embed: \\?"plugin-wasm\\?" is no file.*` + hint, 2},
	} {
		starts := filepath.Join(dir, "starts")
		_ = os.Remove(starts)
		out, _ := exec.CommandContext(t.Context(), program(c.name), c.args...).CombinedOutput()
		if !regexp.MustCompile(c.want).Match(out) {
			t.Errorf("%s %s:\n%s\nwant %s", c.name, c.args, out, c.want)
		}
		text, err := os.ReadFile(starts)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		if len(lines) != c.starts {
			t.Errorf("%s %s: %d processes; want %d", c.name, c.args, len(lines), c.starts)
		}
		if len(lines) > 1 && strings.Contains(lines[1], "secret") {
			t.Errorf("%s: the child has the environment of its parent", c.name)
		}
	}
}
