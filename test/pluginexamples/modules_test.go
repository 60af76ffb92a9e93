//go:build unix

package pluginexamples_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
	"github.com/condensehq/condense/internal/plugins/wasm"
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
	build          func(dir string) ([]*exec.Cmd, string)
	lacks          func(t *testing.T) string // what is missing to build; empty for nothing
}

var moduleLanguages = []moduleLanguage{
	{
		name: "rust", template: "rust-wasm", sdk: "src/condense.rs", source: "src/lib.rs", tricks: "testdata/tricks.rs",
		lacks: func(t *testing.T) string {
			t.Helper()
			out, err := exec.CommandContext(t.Context(), "rustc", "--print", "target-libdir", "--target", "wasm32-unknown-unknown").Output()
			if libs, none := filepath.Glob(strings.TrimSpace(string(out)) + "/libstd-*"); err != nil || none != nil || len(libs) == 0 {
				return "rustc and its target wasm32-unknown-unknown"
			}
			return ""
		},
		build: func(string) ([]*exec.Cmd, string) {
			cargo := exec.Command("cargo", "build", "--release", "--offline", "--target", "wasm32-unknown-unknown")
			return []*exec.Cmd{cargo}, "target/wasm32-unknown-unknown/release/condense_my_plugin.wasm"
		},
	},
	{
		name: "assemblyscript", template: "assemblyscript", sdk: "assembly/condense.ts", source: "assembly/index.ts", tricks: "testdata/tricks.ts",
		lacks: func(*testing.T) string {
			if _, err := exec.LookPath("npm"); err != nil {
				return "npm"
			}
			return ""
		},
		build: func(string) ([]*exec.Cmd, string) {
			install := exec.Command("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
			return []*exec.Cmd{install, exec.Command("npm", "run", "build")}, "condense-my-plugin.wasm"
		},
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
		s.Tree, s.Interpreter, s.Args = "", []string{exe, wasm.Command}, []string{cache}
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
			if missing := l.lacks(t); missing != "" {
				t.Skipf("not built: %s is not installed", missing)
			}
			dir := render(t, filepath.Join(templates, l.template))
			for to, from := range map[string]string{l.sdk: filepath.Join(sdks, l.name, l.sdk), l.source: l.tricks} {
				if err := copyAny(filepath.Join(dir, to), from); err != nil {
					t.Fatal(err)
				}
			}
			commands, module := l.build(dir)
			for _, c := range commands {
				c.Dir = dir
				if out, err := c.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", c, err, out)
				}
			}
			testModule(t, filepath.Join(dir, module))
		})
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
			defer h.Close() //nolint:errcheck // nothing is written
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
