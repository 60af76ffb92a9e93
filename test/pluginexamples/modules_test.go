//go:build unix

package pluginexamples_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/wire/caller"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// A moduleLanguage makes modules of WebAssembly with an SDK that is copied.
type moduleLanguage struct {
	name, template string
	sdk, source    string // where the SDK and the author's file are in a plugin
	tricks         string // the author's file of the plugin tricks
	// compiler returns what is missing to build the plugin in a folder, which it may install there; empty for nothing.
	compiler func(t *testing.T, dir string) string
	build    []string
	module   string // which that makes
}

var moduleLanguages = []moduleLanguage{
	{
		name: "rust", template: "rust-wasm", sdk: "src/condense.rs", source: "src/lib.rs", tricks: "testdata/tricks.rs",
		compiler: func(t *testing.T, _ string) string {
			t.Helper()
			out, err := exec.CommandContext(t.Context(), "rustc", "--print", "target-libdir", "--target", "wasm32-unknown-unknown").Output()
			libs, _ := filepath.Glob(strings.TrimSpace(string(out)) + "/libstd-*")
			if _, missing := exec.LookPath("cargo"); err != nil || len(libs) == 0 || missing != nil {
				return "cargo and the target wasm32-unknown-unknown"
			}
			return ""
		},
		build:  []string{"cargo", "build", "--release", "--offline", "--target", "wasm32-unknown-unknown"},
		module: "target/wasm32-unknown-unknown/release/condense_my_plugin.wasm",
	},
	{
		name: "assemblyscript", template: "assemblyscript", sdk: "assembly/condense.ts", source: "assembly/index.ts", tricks: "testdata/tricks.ts",
		compiler: func(t *testing.T, dir string) string {
			t.Helper()
			install := exec.CommandContext(t.Context(), "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
			install.Dir = dir
			if out, err := install.CombinedOutput(); err != nil {
				return fmt.Sprintf("npm with the package assemblyscript (%v) %s", err, out)
			}
			return ""
		},
		build:  []string{"npm", "run", "build"},
		module: "condense-my-plugin.wasm",
	},
}

// compiled is where the tests of this run keep the compiled form of modules, in scratch.
var compiled = sync.OnceValues(func() (string, error) { return os.MkdirTemp(scratch, "wasm-") })

// openModule opens a module as the program condense does.
func openModule(t *testing.T, file, settings string, adjust ...func(*supervise.Spec, *supervise.Options)) *plugin {
	t.Helper()
	file, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	asModule := func(s *supervise.Spec, _ *supervise.Options) {
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		s.Tree, s.Interpreter, s.Args = "", []string{exe, plugins.ModuleCommand}, []string{cache}
		if s.SHA256, err = supervise.Digest(*s); err != nil {
			t.Fatal(err)
		}
	}
	return open(t, folderAt(filepath.Dir(file), filepath.Base(file)), settings, append(adjust, asModule)...)
}

// TestModules runs the instructions of the plugin tricks in modules of WebAssembly: as committed, for machines without a compiler (make
// wasm-fixtures), and as built here from the SDK.
func TestModules(t *testing.T) {
	t.Parallel()
	for _, l := range moduleLanguages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			testModule(t, "testdata/tricks-"+l.name+".wasm")
		})
		t.Run(l.name+" built here", func(t *testing.T) {
			t.Parallel()
			testkit.Process(t)
			dir := render(t, filepath.Join(templates, l.template))
			for to, from := range map[string]string{l.sdk: filepath.Join(sdks, l.name, l.sdk), l.source: l.tricks} {
				if err := copyAny(filepath.Join(dir, to), from); err != nil {
					t.Fatal(err)
				}
			}
			if missing := l.compiler(t, dir); missing != "" {
				t.Skipf("not built: there is no %s", missing)
			}
			build := exec.CommandContext(t.Context(), l.build[0], l.build[1:]...)
			build.Dir = dir
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", build, err, out)
			}
			testModule(t, filepath.Join(dir, l.module))
		})
	}
}

// TestModulesAreNew: the committed modules were built from these sources.
func TestModulesAreNew(t *testing.T) {
	t.Parallel()
	record, err := os.ReadFile("testdata/tricks.sum")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range moduleLanguages {
		for _, file := range []string{path.Join("plugin-sdk", l.name, l.sdk), path.Join("test/pluginexamples", l.tricks)} {
			source, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				t.Fatal(err)
			}
			if line := fmt.Sprintf("%x  %s\n", sha256.Sum256(source), file); !strings.Contains(string(record), line) {
				t.Errorf("%s was changed: make wasm-fixtures", file)
			}
		}
	}
}

func testModule(t *testing.T, file string) {
	t.Helper()
	p := openModule(t, file, "", withAll)
	testState(t, p)
	testCallbacks(t, "1", func(adjust ...func(*supervise.Spec, *supervise.Options)) *plugin {
		return openModule(t, file, "", adjust...)
	})
	testRequest(t, nil, p)
	if got, want := ask(t, p, request("count"))[0], "14 3 2"; strings.ReplaceAll(got, ",", " ") != want {
		t.Errorf("counted %s, want %s", got, want)
	}
	if got := ask(t, p, request("count_many"))[0]; got != "50000" {
		t.Errorf("%s of 50,000 items were counted", got)
	}
	m := &once{}
	lent := openModule(t, file, "", func(_ *supervise.Spec, o *supervise.Options) {
		o.Client.Model = func(*core.Request, string) (model.Generator, error) { return m, nil }
	})
	if got := ask(t, lent, request("generate"))[0] + ask(t, lent, request("generate"))[0]; got != "Be brief. 2 messages7" {
		t.Errorf("a model that loses its key: got %q", got)
	}
	for trick, want := range map[string]string{"count_wrong": `host: item 0: there is no message "nobody"`, "boom": "boom"} {
		_, err := p.Condense(t.Context(), request(trick))
		if err == nil || !strings.Contains(err.Error(), want) || plugins.Broken(err) != (trick == "boom") {
			t.Errorf("%s: got %v, broken %t", trick, err, plugins.Broken(err))
		}
	}
	chain, err := core.NewChain([]core.NamedProvider{{Name: "tricks", Provider: p}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chain.Run(t.Context(), request("too much")); err == nil || !strings.Contains(err.Error(), "a state of 65,537 bytes, more than 65,536") {
		t.Errorf("a large state: got %v", err)
	}
	coretest.Run(t, func(*testing.T) core.CondensationProvider { return p })
	testModuleSettings(t, file)
}

// testModuleSettings: the host checks settings by the description, then the module their values.
func testModuleSettings(t *testing.T, file string) {
	t.Helper()
	p := openModule(t, file, `{"word": "hi", "share": 1, "style": "fancy", "mark": {"sign": "away"}}`)
	if got, want := ask(t, p, request("settings"))[0], "hi 1 fancy away 1"; got != want {
		t.Errorf("settings: got %q, want %q", got, want)
	}
	if got, want := ask(t, openModule(t, file, `{"share": null}`), request("settings"))[0], "hello 0.5 plain gone 1"; got != want {
		t.Errorf("defaults: got %q, want %q", got, want)
	}
	for settings, want := range map[string]string{
		`{"style": "loud"}`:                    `style: "loud" is none of plain, fancy`,
		`{"share": "half"}`:                    `share: got a JSON string; want number`,
		`{"share": 2}`:                         `share: must be from 0 to 1`,
		`{"mark": {"many": 0}}`:                `mark.many: must be positive`,
		`{"mark": {"many": 1.5}}`:              `mark.many: got a JSON number; want integer`,
		`{"mark": {"colour": 1}}`:              `mark.colour: unknown setting`,
		`{"mark": "gone"}`:                     `mark: got a JSON string; want object`,
		`{"word": "hi", "greeting": "hello"}`:  `word: is the former name of greeting, which is set as well`,
		`{"mark": {"sign": "a", "text": "b"}}`: `mark.sign: is the former name of text, which is set as well`,
	} {
		_, err := openModule(t, file, settings).Describe(t.Context())
		if refused := new(caller.SettingsError); !errors.As(err, &refused) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: got %v, want %s", settings, err, want)
		}
	}
}

// TestModulesRemember: the state of a module comes back with the next condensation and is undone with its own, and a module may wait. The
// plugin tricks writes into each note a stroke for every condensation before, and waits while it has none.
func TestModulesRemember(t *testing.T) {
	t.Parallel()
	for _, l := range moduleLanguages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			p := openModule(t, "testdata/tricks-"+l.name+".wasm", "")
			tricks := registry.Define("tricks", "Keeps a state.", func() struct{} { return struct{}{} },
				func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) {
					return core.ProviderFunc(p.Condense), nil
				})
			h, err := condense.Open(t.Context(), &condense.Options{Strategies: []registry.Strategy{tricks}, Values: &config.Values{
				Tuning:    config.Tuning{Chain: []string{"tricks"}, Threshold: new(20.0)},
				Providers: map[string]config.ProviderValues{"tricks": {Strategy: "tricks"}},
				Profiles:  map[string]config.ProfileValues{"default": {Window: new(20_000)}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			c := condense.NewConversation()
			rounds := 0
			shorten := func(trigger core.Trigger) *condense.Report {
				t.Helper()
				rounds++
				for i := range 10 {
					id := fmt.Sprint("c", rounds, "-", i)
					long := core.ToolResult{CallID: id, Content: []core.Part{core.Text(strings.Repeat("all is well\n", 200))}}
					err := c.Append(coretest.User(core.Text("Go on.")), coretest.Assistant(coretest.Call(id)), coretest.User(long), coretest.Assistant(core.Text("Done.")))
					if err != nil {
						t.Fatal(err)
					}
				}
				r, err := h.Manage(t.Context(), c, condense.Turn{Trigger: trigger})
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			if r := shorten(core.TriggerAutomatic); r.Acted || r.Later != "a task is half done" {
				t.Errorf("it does not wait: %+v", r)
			}
			for round, want := range []string{"gone]", "gone|]", "gone||]", "gone||]"} {
				r := shorten(core.TriggerManual)
				if view := fmt.Sprint(c.View()); !r.Acted || strings.Count(view, want) < 10 || strings.Contains(view, "|"+want) {
					t.Errorf("round %d: acted %t, and %d notes end with %s", round, r.Acted, strings.Count(view, want), want)
				}
				if round == 2 {
					if err := c.Undo(r.CondensationID); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}
