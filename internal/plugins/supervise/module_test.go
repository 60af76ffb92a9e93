//go:build linux

package supervise_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/internal/wire/caller"
)

const modules = "../wasm/testdata/"

// newModule returns a bench for a module of WebAssembly, which this binary runs as the program condense does.
func newModule(t *testing.T, file, settings string) *bench {
	t.Helper()
	b := newBench(t, "")
	exe := b.spec.Path
	path, err := filepath.Abs(file)
	must(err)
	b.spec.Path, b.spec.Interpreter = path, []string{exe, plugins.ModuleCommand}
	b.spec.Args = []string{filepath.Join(b.dir, "cache"), "in=" + b.dir}
	b.spec.Settings = []byte(settings)
	b.spec.Env = nil
	b.spec.SHA256, err = supervise.Digest(b.spec)
	must(err)
	return b
}

// TestHostileModules: modules misbehave in a call. Each case has what the chain reports, and the state of the process. The
// conversation is always truncated, and newBench checks that nothing is left.
func TestHostileModules(t *testing.T) {
	type test struct {
		do      string
		outcome core.Outcome
		want    string // of the reason
		then    supervise.State
	}
	const failed, rejected = core.OutcomeFailed, core.OutcomeRejected
	tests := []test{
		{"loops", failed, `no answer within 1s: plugin acme: no answer in time`, stopped},
		{"logs-for-ever", failed, `no answer within 1s: plugin acme: no answer in time`, stopped},
		{"eats-memory", failed, `plugin acme: it trapped: unreachable in .*, with \d+ MiB of memory; at most 256 MiB are allowed`, ready},
		{"recurses", failed, `plugin acme: it trapped: stack overflow.*`, ready},
		{"traps", failed, `plugin acme: it trapped: unreachable.*`, ready},
		{"answers-80mb", failed, `plugin acme: condense answers with 83886080 bytes; at most 67108864 are allowed`, ready},
		{"answers-outside", failed, `plugin acme: it gives the address 4294967280 with 100 bytes, and its memory has \d+`, ready},
		{"answers-nonsense", failed, `plugin acme: its answer is no Edit: .*`, ready},
		{"logs-outside", failed, `plugin acme: it gives the address 4294967040 with 4096 bytes, and its memory has \d+`, ready},
		{"moves-alloc", failed, `plugin acme: it gives the address 4294967280 with \d+ bytes, and its memory has \d+`, ready},
		{"fails", core.OutcomeSkipped, `plugin acme: the library is closed`, ready},
		{"panics", failed, `plugin acme: a bug at assembly/hostile.ts:\d+`, ready},

		{"invents-id", failed, broken + `hide: there is no message "invented"`, ready},
		{"hides-protected", rejected, `keep-protected: message m2: is hidden.*`, ready},
		{"speaks-for-system", rejected, `.*declared-abilities: .*`, ready},
		{"inserts", rejected, `declared-abilities: new message 0 is inserted, but the provider declares "hides only.*`, ready},
		{"asks", rejected, `plugin acme: declared-abilities: asks a language model.*`, ready},
	}
	together(t, tests, func(tt test) string { return tt.do }, func(t *testing.T, tt test) {
		b := newModule(t, modules+"hostile.wasm", fmt.Sprintf(`{"do": %q}`, tt.do))
		p := b.open(t)
		if err := p.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		timeout := time.Minute
		if tt.then == stopped {
			timeout = time.Second
		}
		req := request()
		out, err := chain(t, p, timeout).Run(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		att := out.Attempts[0]
		if want := regexp.MustCompile(`^` + tt.want + `$`); att.Outcome != tt.outcome || !want.MatchString(att.Reason) {
			t.Errorf("got %s, %q\nwant %s, %q", att.Outcome, att.Reason, tt.outcome, want)
		}
		if out.Provider != "truncation" || out.TokensAfter > req.Budget.Limit {
			t.Errorf("got %d tokens by %s; want at most %d by truncation", out.TokensAfter, out.Provider, req.Budget.Limit)
		}
		if s := p.Seen(); tt.then == ready && s.State != ready || s.Crashes != 0 {
			t.Errorf("then: got %s after %d crashes; want %s after none", s.State, s.Crashes, tt.then)
		}
	})
}

const stopped = supervise.StateStopped

// TestLateModuleIsReplaced: a module cannot notice that its call was cancelled, so its process is replaced, and the next call does
// not wait for it.
func TestLateModuleIsReplaced(t *testing.T) {
	b := newModule(t, modules+"hostile.wasm", `{"do": "loops"}`)
	p := b.open(t)
	if err := p.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	was := p.Seen().PID
	wantError(t, within(t, p, 300*time.Millisecond), nil, "no answer in time")
	wantError(t, within(t, p, 5*time.Second), nil, "no answer in time")
	if s := p.Seen(); s.Crashes != 0 || s.Starts < 2 || s.PID == was {
		t.Errorf("got process %d after %d starts and %d crashes; want another one than %d", s.PID, s.Starts, s.Crashes, was)
	}
}

// TestModuleForgets: every call has a new instance.
func TestModuleForgets(t *testing.T) {
	b := newModule(t, modules+"hostile.wasm", `{"do": "remembers"}`)
	p := b.open(t)
	for range 3 {
		if err := condenseOnce(t, p); err != nil {
			t.Error(err)
		}
	}
}

// TestModulesThatDoNotStart have the reason in the error.
func TestModulesThatDoNotStart(t *testing.T) {
	const head = "\x00asm\x01\x00\x00\x00"
	// One type, () -> (); an import of that type.
	imports := func(module, name string) string {
		body := fmt.Sprintf("\x01%c%s%c%s\x00\x00", len(module), module, len(name), name)
		return head + "\x01\x04\x01\x60\x00\x00" + fmt.Sprintf("\x02%c%s", len(body), body)
	}
	tests := []struct{ name, module, want string }{
		{"nonsense", "#!/bin/sh\necho hello\n", "it is not a valid module of WebAssembly: invalid magic number"},
		{"empty", head, "it does not export its memory as memory"},
		{"another-import", imports("env", "open_file"), "it imports env.open_file, and condense provides only the functions of condense and wasi_snapshot_preview1"},
		{"unknown-import", imports("condense", "open_file"), "it imports condense.open_file, which does not exist"},
		{"wrong-type", imports("condense", "log"), "it imports condense.log with the type () -> (); want (i32, i32, i32) -> ()"},
	}
	together(t, tests, func(tt struct{ name, module, want string }) string { return tt.name }, func(t *testing.T, tt struct{ name, module, want string }) {
		file := filepath.Join(t.TempDir(), "acme.wasm")
		must(os.WriteFile(file, []byte(tt.module), 0o600))
		wantError(t, condenseOnce(t, newModule(t, file, "").open(t)), nil, tt.want)
	})
}

// TestModulesOfOtherLanguages: the templates in Rust and AssemblyScript pass the conformance suite, and so do those of version 1, November
// 2026, which never change.
func TestModulesOfOtherLanguages(t *testing.T) {
	for _, name := range []string{"rust", "assemblyscript", "rust-v1", "assemblyscript-v1"} {
		t.Run(name, func(t *testing.T) {
			file := modules + "tidy-" + name + ".wasm"
			p := newModule(t, file, `{"recent": 2}`).open(t)
			coretest.Run(t, func(*testing.T) core.CondensationProvider { return notClosed{p} })
			err := condenseOnce(t, newModule(t, file, `{"recent": "two", "recnt": 2}`).open(t))
			wantError(t, err, nil, "recent: got a JSON string; want integer")
			wantError(t, err, nil, "recnt: unknown setting")
			err = condenseOnce(t, newModule(t, file, `{"recent": -1}`).open(t))
			wantError(t, err, nil, "must not be negative")
			if refused := new(caller.SettingsError); errors.As(err, &refused) == strings.HasSuffix(name, "-v1") {
				t.Errorf("a value that is not allowed: got %v; want it refused with the settings unless the module is of version 1", err)
			}
		})
	}
}

// notClosed is a provider that the suite does not close.
type notClosed struct{ core.CondensationProvider }

// TestCompiledModulesArePrivate: what is compiled is executed, so nobody else may be able to write it.
func TestCompiledModulesArePrivate(t *testing.T) {
	b := newModule(t, modules+"hostile.wasm", `{"do": "works"}`)
	cache := b.spec.Args[0]
	if err := condenseOnce(t, b.open(t)); err != nil {
		t.Fatal(err)
	}
	files := 0
	err := filepath.WalkDir(cache, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %s", path, info.Mode())
		}
		if !d.IsDir() {
			files++
		}
		return err
	})
	if err != nil || files != 1 {
		t.Errorf("got %d files, %v; want one", files, err)
	}
	must(os.Chmod(cache, 0o777))
	if err := condenseOnce(t, b.open(t)); err != nil {
		t.Error(err)
	}
	if log := b.log.String(); !strings.Contains(log, "the module is compiled each time: others may write to") {
		t.Errorf("the log does not say that the folder is not used:\n%s", log)
	}
}
