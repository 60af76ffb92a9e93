package agents_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
)

// TestNPM installs the packages of a release from what npm packs, without network, and runs an agent through them as npx does.
func TestNPM(t *testing.T) {
	t.Parallel()
	d := newDesk(t, scenario())
	list, err := json.Marshal([]map[string]string{
		{"type": "Binary", "goos": runtime.GOOS, "goarch": runtime.GOARCH, "path": d.condense(t)},
		{"type": "Archive", "goos": runtime.GOOS, "goarch": runtime.GOARCH, "path": "condense.tar.gz"},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	artifacts, packages, project := filepath.Join(dir, "artifacts.json"), filepath.Join(dir, "packages"), filepath.Join(dir, "project")
	write(t, artifacts, string(list))
	write(t, filepath.Join(project, "package.json"), `{"private": true}`)
	npm := func(dir, program string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+d.home, "npm_config_cache="+filepath.Join(d.home, ".npm"), "npm_config_offline=true")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", program, args, err, out)
		}
		return string(out)
	}
	pack, err := filepath.Abs("../../deploy/npm/pack.mjs")
	if err != nil {
		t.Fatal(err)
	}
	npm(dir, "node", pack, "1.2.3", artifacts, packages)
	npm(packages, "npm", "pack", "./condense", "./"+nodeName())
	tarballs, err := filepath.Glob(filepath.Join(packages, "*.tgz"))
	if err != nil || len(tarballs) != 2 {
		t.Fatalf("npm packed %q: %v", tarballs, err)
	}
	npm(project, "npm", append([]string{"install", "--ignore-scripts", "--no-audit", "--no-fund"}, tarballs...)...)
	if got := npm(project, "npx", "condense", "version"); !strings.HasPrefix(got, "condense ") {
		t.Errorf("npx condense version: %s", got)
	}

	program := filepath.Join(project, "node_modules", ".bin", "condense")
	flags := append([]string{"wrap", "--store", filepath.Join(d.home, "serve.db")}, d.upstreams()...)
	codex := &all[1]
	d.at(t, codex, "")
	got := d.run(t, codex.env, program, append(append(append(flags, codex.name), codex.args...), task)...)
	d.condensed(t, got, got.epochs(t))

	// The exit code and signals pass through.
	if got := d.run(t, nil, program, "wrap", "--quiet", "--", "sh", "-c", "exit 7"); got.code != 7 {
		t.Errorf("exit code %d, want 7\n%s", got.code, got.out)
	}
	var out testkit.Log
	cmd := d.start(t, nil, &out, program, "wrap", "--quiet", "--", "sh", "-c", "trap 'echo asked; exit 9' TERM; echo ready; while :; do sleep 0.1; done")
	testkit.Eventually(t, "the command is ready", func() bool { return strings.Contains(out.String(), "ready") })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := wait(t, cmd, &out); got.code != 9 || !strings.Contains(got.out, "asked") {
		t.Errorf("after SIGTERM: exit code %d, want 9\n%s", got.code, got.out)
	}

	// Without the package of its system the program says what is missing.
	if err := os.RemoveAll(filepath.Join(project, "node_modules", "@condensehq", nodeName())); err != nil {
		t.Fatal(err)
	}
	if got := d.run(t, nil, program, "version"); got.code != 1 || !strings.Contains(got.out, "@condensehq/"+nodeName()+" is not installed") {
		t.Errorf("exit code %d\n%s", got.code, got.out)
	}
}

// nodeName is the name that Node has for this system.
func nodeName() string {
	return runtime.GOOS + "-" + map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
}
