//go:build unix

package pluginexamples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/peers"
)

// TestPackages: the SDKs as packages of npm and PyPI are built from this repository, and the examples work with them, installed from
// files, as with a copy.
func TestPackages(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l *language) {
		testkit.Process(t)
		source := filepath.Join(t.TempDir(), "sdk") // a build writes next to its sources
		if err := os.CopyFS(source, os.DirFS(sdks)); err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), l.exampleName)
		if err := os.CopyFS(dir, withoutPackages{os.DirFS(filepath.Join(examples, l.exampleName))}); err != nil {
			t.Fatal(err)
		}
		run := func(name string, args ...string) string {
			t.Helper()
			cmd := exec.CommandContext(t.Context(), name, args...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if err != nil { // of a registry, of packages that others wrote
				peers.Missing(t, "the package of "+l.name, "%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
			}
			return strings.TrimSpace(string(out))
		}
		own := *l
		replace := func(old, instead string) {
			t.Helper()
			files, err := filepath.Glob(filepath.Join(dir, "*"+l.suffix))
			if err != nil || len(files) < 2 {
				t.Fatalf("got %q, %v", files, err)
			}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err == nil {
					err = os.WriteFile(file, []byte(strings.ReplaceAll(string(text), old, instead)), 0o755)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := l.setUp(t.Context()); err != nil {
			peers.Missing(t, "the package of "+l.name, "%v", err)
		}
		switch l.name {
		case "node":
			packed := run("npm", "pack", "--silent", "--pack-destination", dir, filepath.Join(source, "node"))
			run("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "./"+packed)
			replace("'./condense/index.mjs'", "'@condensehq/plugin'")
			replace("'./condense/testing.mjs'", "'@condensehq/plugin/testing'")
		case "python":
			for _, module := range []string{"pip", "venv", "ensurepip"} {
				if err := exec.CommandContext(t.Context(), python, "-c", "import "+module).Run(); err != nil {
					t.Skipf("there is no %s: %v", module, err)
				}
			}
			run(python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", dir, filepath.Join(source, "python"))
			wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
			if err != nil || len(wheels) != 1 {
				t.Fatalf("got %q, %v", wheels, err)
			}
			run(python, "-m", "venv", "--system-site-packages", filepath.Join(dir, "venv"))
			own.tests = append([]string{filepath.Join(dir, "venv/bin/python")}, l.tests[1:]...)
			run(own.tests[0], "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheels[0])
			replace("#!"+python, "#!"+own.tests[0])
		}
		if _, err := os.Stat(filepath.Join(dir, "condense")); err == nil {
			t.Fatal("there is a copy of the SDK")
		}
		own.runTests(t, dir)
		p := open(t, folderAt(dir, l.exampleName+l.suffix), eager[l.exampleName])
		req := coretest.HalfRequest(coretest.Session())
		res, err := p.Condense(t.Context(), req)
		if err == nil {
			err = core.Verify(req, res)
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// A package has the version that its SDK tells a host.
func TestPackageVersions(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{"node/package.json": `"version": "(.*)"`, "python/pyproject.toml": `(?m)^version = "(.*)"`} {
		lang := filepath.Dir(file)
		servers, err := filepath.Glob(filepath.Join(sdks, lang, "condense", "server.*"))
		if err != nil || len(servers) != 1 {
			t.Fatalf("got %q, %v", servers, err)
		}
		version := regexp.MustCompile(want).FindStringSubmatch(text(t, filepath.Join(sdks, file)))
		if said := "condense-" + lang + " " + version[1] + ","; !strings.Contains(text(t, servers[0]), said) {
			t.Errorf("%s does not say %q, which is the version in %s", servers[0], said, file)
		}
	}
}

// TestTypes: a plugin in TypeScript is checked by the types of the SDK, and these know all that a call can do.
func TestTypes(t *testing.T) {
	dir, err := filepath.Abs(sdks)
	if err != nil {
		t.Fatal(err)
	}
	types := text(t, filepath.Join(dir, "node/condense/index.d.mts"))
	public := regexp.MustCompile(`(?m)^  (?:async )?([a-z]\w*)(?:\(|\b[^(\n]*$)`)
	class, _, _ := strings.Cut(text(t, filepath.Join(dir, "node/condense/call.mjs")), "  // The rest is for server.mjs")
	_, class, _ = strings.Cut(class, "export class Call {")
	members := public.FindAllStringSubmatch(class, -1)
	if len(members) < 15 {
		t.Fatalf("only %q were found", members)
	}
	for _, m := range members {
		if name := m[1]; name != "constructor" && !regexp.MustCompile(`(?m)^  `+name+`[(?:]`).MatchString(types) {
			t.Errorf("index.d.mts does not declare %s of a call", name)
		}
	}

	work := t.TempDir()
	if err := os.CopyFS(filepath.Join(work, "condense"), os.DirFS(filepath.Join(dir, "node/condense"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "plugin.mts"), []byte(text(t, "testdata/types/plugin.ts")), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir("testdata/types")
	node, packages := peers.Node(t, "types-test", "the types of the SDK for JavaScript")
	if err := os.Symlink(filepath.Join(packages, "node_modules"), filepath.Join(work, "node_modules")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, filepath.Join(packages, "node_modules/typescript/bin/tsc"),
		"--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "--types", "node", "plugin.mts")
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("tsc: %v\n%s", err, out)
	}
}

func text(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
