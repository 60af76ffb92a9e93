package main

import (
	"archive/zip"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/testkit"
)

// strategySource is a package with a strategy that keeps the newest messages.
const strategySource = `// Package NAME keeps the newest messages.
package NAME

import (
	"context"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/registry"
)

type config struct {
	Keep int ` + "`json:\"keep\" doc:\"Newest messages that stay.\"`" + `
}

// Strategy returns the strategy.
func Strategy() registry.Strategy {
	return registry.Define("NAME", "Keeps the newest messages.", func() config { return config{Keep: 4} },
		func(_ context.Context, c config, _ registry.Env) (core.CondensationProvider, error) {
			return core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
				return &core.Result{Messages: core.KeepGroups(req.Messages, func(i int) bool {
					return i == 0 || i >= len(req.Messages)-c.Keep
				})}, nil
			}), nil
		})
}
`

// A workshop is a folder where condense is built, without a network: modules are those of a folder and of Go's module
// cache.
type workshop struct {
	dir    string
	module string // the path of the modules that the proxy has
	env    []string
}

func openWorkshop(t *testing.T) *workshop {
	t.Helper()
	w := &workshop{dir: t.TempDir(), module: fmt.Sprintf("example.com/condense-test-%d", time.Now().UnixNano())}
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	dirs := strings.Fields(string(out))
	t.Cleanup(func() { // the name is new each time, so nothing of others is there
		for _, dir := range []string{dirs[1], filepath.Join(dirs[1], "cache", "download")} {
			if err := os.RemoveAll(filepath.Join(dir, filepath.FromSlash(w.module))); err != nil {
				t.Error(err)
			}
			_ = os.Remove(filepath.Join(dir, "example.com")) // unless it has others
		}
	})
	w.env = append(os.Environ(), "HOME="+w.dir, "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "XDG_STATE_HOME="+filepath.Join(w.dir, "state"),
		"GOCACHE="+dirs[0], "GOMODCACHE="+dirs[1], "GOPROXY=file://"+filepath.ToSlash(filepath.Join(w.dir, "proxy")),
		"GOSUMDB=off", "GOFLAGS=-modcacherw", "GOTOOLCHAIN=local")
	return w
}

func (w *workshop) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func goMod(module string) string {
	return "module " + module + "\n\ngo 1.26\n\nrequire github.com/condensehq/condense v0.0.0\n"
}

// local writes a module into a folder.
func (w *workshop) local(t *testing.T, name, source string) {
	t.Helper()
	w.write(t, name+"/go.mod", goMod("example.com/local/"+name))
	w.write(t, name+"/"+name+".go", source)
}

// publish puts a version of a module into the folder that is the proxy.
func (w *workshop) publish(t *testing.T, name, version, source string) {
	t.Helper()
	module := w.module + "/" + name
	at := "proxy/" + module + "/@v/"
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for file, text := range map[string]string{"go.mod": goMod(module), name + ".go": source} {
		f, err := z.Create(module + "@" + version + "/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(filepath.Join(w.dir, filepath.FromSlash(at), "list"))
	w.write(t, at+"list", string(before)+version+"\n")
	w.write(t, at+version+".info", `{"Version": "`+version+`", "Time": "2026-01-02T03:04:05Z"}`)
	w.write(t, at+version+".mod", goMod(module))
	w.write(t, at+version+".zip", b.String())
}

// run runs a program and returns all that it prints.
func (w *workshop) run(t *testing.T, program string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir, cmd.Env = w.dir, w.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestBuild: a condense with a strategy of a module that is downloaded and with one of a folder knows both in all
// commands.
func TestBuild(t *testing.T) {
	testkit.Process(t)
	w := openWorkshop(t)
	w.publish(t, "tidy", "v1.0.0", strings.ReplaceAll(strategySource, "NAME", "old"))
	w.publish(t, "tidy", "v1.1.0", strings.ReplaceAll(strategySource, "NAME", "tidy"))
	w.publish(t, "tidy", "v2.0.0-beta.1", strings.ReplaceAll(strategySource, "NAME", "beta"))
	w.local(t, "newest", strings.ReplaceAll(strategySource, "NAME", "newest"))
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.run(t, "condense", "build", "--with", w.module+"/tidy@v1", "--with", "./newest", "-o", "mine", "--replace", checkout)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if now, err := os.ReadFile(filepath.Join(w.dir, "newest", "go.mod")); err != nil || string(now) != goMod("example.com/local/newest") {
		t.Errorf("the module in the folder was changed: %s, %v", now, err)
	}
	left, err := filepath.Glob(filepath.Join(w.dir, ".condense-build*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}

	mine := filepath.Join(w.dir, "mine")
	w.write(t, "condense.yaml", "chain: [first]\nproviders:\n  first: {strategy: tidy, settings: {keep: 3}}\n")
	w.write(t, "wrong.yaml", "chain: [tidy]\nproviders:\n  tidy: {strategy: tidy, settings: {kepe: 3}}\n")
	session, err := filepath.Abs("../../testdata/traces/tau-airline--task2-trial1.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"version", "  with " + w.module + "/tidy v1.1.0\n  with example.com/local/newest (devel)\n"},
		{"--version", "  with " + w.module + "/tidy v1.1.0\n"},
		{"providers", "newest         Keeps the newest messages.\n"},
		{"providers tidy", "keep         Newest messages that stay. (integer, default 4)"},
		{"providers first", "Provider of the configuration: strategy tidy with the settings {\"keep\":3}."},
		{"config check", "condense.yaml: OK"},
		{"config check wrong.yaml", "wrong.yaml:3:37: providers.tidy.settings.kepe: unknown setting of tidy; did you mean \"keep\"?"},
		{"config schema", `"Newest messages that stay."`},
		{"config explain", "first"},
		{"trust --yes", "chain, providers.first.strategy, providers.first.settings\n"},
		{"run " + session + " --force -o out.json", "first       applied"},
		{"run " + session + " --provider newest --force -o out.json", "newest      applied"},
		{"compare " + session + " --strategies tidy,newest --cache none", "newest"},
		{"wrap -- sh -c true", ""},
	} {
		out, err := w.run(t, mine, strings.Fields(c.args)...)
		if !strings.Contains(out, c.want) || strings.Contains(out, "there is no strategy") || err != nil && !strings.Contains(c.args, "wrong") {
			t.Errorf("%s: %v\n%s\nwant %s", c.args, err, out, c.want)
		}
	}
	w.serves(t, mine)
	if out, err := w.run(t, "condense", "config", "check"); err == nil || !strings.Contains(out, `there is no strategy "tidy"`) {
		t.Errorf("the condense without it: %v %s", err, out)
	}
}

// serves checks that a gateway of the program starts with its configuration.
func (w *workshop) serves(t *testing.T, program string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, "serve", "--listen", "127.0.0.1:0", "--store", "memory")
	cmd.Dir, cmd.Env = w.dir, w.env
	var out testkit.Log
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	testkit.Eventually(t, "serve listens, or ends because its configuration is wrong", func() bool {
		return len(ended) > 0 || listens.MatchString(out.String())
	})
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil || !listens.MatchString(out.String()) {
		t.Errorf("serve: %v\n%s", err, out.String())
	}
}

// TestBuildRefuses: what keeps a program from being built is said, and nothing is left.
func TestBuildRefuses(t *testing.T) {
	testkit.Process(t)
	w := openWorkshop(t)
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	source := strings.ReplaceAll(strategySource, "NAME", "fine")
	w.local(t, "fine", source)
	w.local(t, "silent", "package silent\n\nfunc Strategy(n int) int { return n }\n")
	w.local(t, "program", "package main\n\nfunc main() {}\n")
	w.local(t, "broken", strings.Replace(strings.ReplaceAll(strategySource, "NAME", "broken"), "i == 0", "i == none", 1))
	w.local(t, "other", "package other\n\nfunc Strategy() int { return 1 }\n")
	w.local(t, "taken", strings.Replace(strings.ReplaceAll(strategySource, "NAME", "taken"), `"taken", `, `"smart", `, 1))
	w.write(t, "bare/bare.go", "package bare\n")
	w.publish(t, "late", "v1.0.0", source)
	for with, want := range map[string]string{
		"":                          "name at least one package with --with",
		"./nowhere":                 "--with ./nowhere: there is no such folder",
		"tidy":                      "neither the path of a Go package, such as example.com/acme/tidy, nor a folder",
		"./silent":                  "example.com/local/silent has no strategy to build in: it needs 'func Strategy() registry.Strategy'",
		"./program":                 "example.com/local/program is a program; its strategy must be in a package of its own",
		"./broken":                  "broken.go:21:18: undefined: none\ncondense: go build failed (exit status 1): see above",
		"./other":                   "cannot use p0.Strategy()",
		"./taken":                   "the program was built, but does not start: ",
		"./bare":                    "go: go.mod file not found in current directory",
		"./fine ./fine":             "the package example.com/local/fine is named twice",
		w.module + "/late@v7":       w.module + "/late@v7: go get failed (exit status 1): see above",
		w.module + "/nothing@v1":    w.module + "/nothing@v1: go get failed (exit status 1): see above",
		"./fine -o fine":            "fine is a folder: name a file with -o",
		"./fine --replace " + w.dir: "is not a checkout of condense",
	} {
		args := []string{"build"}
		if !strings.Contains(with, "--replace") {
			args = append(args, "--replace", checkout)
		}
		for arg := range strings.FieldsSeq(with) {
			if strings.HasPrefix(arg, "./") || strings.Contains(arg, w.module) || arg == "tidy" {
				args = append(args, "--with")
			}
			args = append(args, arg)
		}
		out, err := w.run(t, "condense", args...)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s\nwant %s", with, err, out, want)
		}
	}
	for _, name := range []string{"condense", ".condense-build*"} {
		if found, _ := filepath.Glob(filepath.Join(w.dir, name)); len(found) > 0 {
			t.Errorf("left: %q", found)
		}
	}

	condense, err := exec.LookPath("condense")
	if err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "PATH="+filepath.Dir(condense))
	if out, err := w.run(t, condense, "build", "--with", "./fine", "--replace", checkout); err == nil || !strings.Contains(out, "there is no command go in PATH") {
		t.Errorf("without go: %v %s", err, out)
	}
}
