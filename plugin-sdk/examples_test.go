package pluginsdk_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/testkit"
)

// TestExamples builds the examples as an author would, as modules outside of this one, runs
// their tests, and talks to the programs.
func TestExamples(t *testing.T) {
	testkit.Process(t)
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ dir, main, strategy string }{
		{"keepfirst", ".", "keep_first"},
		{"redact", "./cmd/condense-redact", "redact"},
		{"testlog", ".", "testlog"},
	} {
		t.Run(tt.dir, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), tt.dir)
			copyModule(t, filepath.Join(root, "examples", "plugins", tt.dir), dir, root)
			run := func(args ...string) string {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), "go", args...)
				cmd.Dir = dir
				// Offline: all that is needed has been downloaded to build this test.
				cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOSUMDB=off", "GOWORK=off")
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
				}
				return string(out)
			}
			bin := filepath.Join(dir, "plugin")
			run("build", "-o", bin, tt.main)
			run("test", "./...")
			for pkg := range strings.FieldsSeq(run("list", "-deps", "./...")) {
				checkDependency(t, pkg)
			}
			if mod := read(t, filepath.Join(dir, "go.mod")); strings.Contains(mod, "go.yaml.in") || strings.Contains(mod, "cobra") {
				t.Errorf("the module requires what only the host needs:\n%s", mod)
			}

			p := launch(t, exec.CommandContext(t.Context(), bin), nil, true)
			d, err := p.Describe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if d.Name != tt.strategy {
				t.Errorf("it calls itself %q; want %q", d.Name, tt.strategy)
			}
			if err := p.Configure(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			req := coretest.HalfRequest(coretest.Session())
			res, err := p.Condense(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if err := core.Verify(req, res); err != nil {
				t.Error(err)
			}
		})
	}
}

// checkDependency says if a plugin drags in what belongs to a host.
func checkDependency(t *testing.T, pkg string) {
	t.Helper()
	const module = "github.com/condensehq/condense/"
	if ours, ok := strings.CutPrefix(pkg, module); ok {
		switch top, _, _ := strings.Cut(ours, "/"); top {
		case "core", "registry", "plugin-sdk":
			return
		case "model":
			if ours == top { // the interface of a model; no clients of vendors
				return
			}
		case "internal":
			switch ours {
			case "internal/plain", "internal/size", "internal/suggest": // small, with the standard library only
				return
			}
			if strings.HasPrefix(ours, "internal/wire") {
				return
			}
		}
		t.Errorf("it contains %s, which a plugin has no use for", pkg)
	}
	for _, not := range []string{"go.yaml.in", "spf13/cobra", "tiktoken"} {
		if strings.Contains(pkg, not) {
			t.Errorf("it contains %s, which only the host needs", pkg)
		}
	}
}

// copyModule copies the module in from to to, and has its replace point to root.
func copyModule(t *testing.T, from, to, root string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	err := fs.WalkDir(os.DirFS(to), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Base(path) != "go.mod" {
			return err
		}
		mod := strings.ReplaceAll(read(t, filepath.Join(to, path)), "=> ../../..", "=> "+root)
		return os.WriteFile(filepath.Join(to, path), []byte(mod), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
