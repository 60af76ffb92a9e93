//go:build linux

package supervise_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/extractive"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/internal/plugins/supervise"
	"github.com/condensehq/condense/internal/plugins/wasm/testdata/tidy"
	"github.com/condensehq/condense/internal/resolver"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// goModule builds the guest in Go once, and returns its file in a folder that the caller removes.
var goModule = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "t")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is a temporary folder
	file := filepath.Join(dir, "tidy.wasm")
	cmd := exec.Command("go", "build", "-o", file, "../wasm/testdata/tidy/guest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
})

func newGoModule(t *testing.T, settings string) *bench {
	t.Helper()
	data, err := goModule()
	if err != nil {
		t.Fatalf("build the guest: %v", err)
	}
	file := filepath.Join(t.TempDir(), "tidy.wasm")
	must(os.WriteFile(file, data, 0o600))
	b := newModule(t, file, settings)
	cache, err := moduleCache()
	must(err)
	b.spec.Args[0], b.spec.Limits.Start = cache, 5*time.Minute // compiling takes seconds on a busy machine
	return b
}

// moduleCache is where the tests of this run compile modules to; TestMain removes it.
var moduleCache = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "condense-wasm") })

// TestModuleInGo: a strategy in Go has in a module everything that it has in a program.
func TestModuleInGo(t *testing.T) {
	if raceEnabled {
		t.Skip("the guest is the same, and its compiler takes a minute with the race detector")
	}
	if _, err := goModule(); err != nil {
		t.Fatalf("build the guest: %v", err)
	}
	type test struct{ do, want string }
	tests := []test{
		{"panics", `plugin acme: panic: assignment to entry in nil map at tidy.go:`},
		{"exits", `plugin acme: it ended by itself with exit code 7`},
		{"eats-memory", `plugin acme: it ended by itself with exit code 2: runtime: out of memory: cannot allocate`},
		{"tells", `plugin acme: file false, folder false with 0, environment [], arguments 0, year 2022`},
	}
	together(t, tests, func(tt test) string { return tt.do }, func(t *testing.T, tt test) {
		wantError(t, condenseOnce(t, newGoModule(t, `{"do": "`+tt.do+`"}`).open(t)), nil, tt.want)
	})
}

// TestModuleAsksTheHost: models, counter, log, progress and report go through the imports.
func TestModuleAsksTheHost(t *testing.T) {
	if raceEnabled {
		t.Skip("as TestModuleInGo")
	}
	b := newGoModule(t, `{"do": "asks"}`)
	b.opts.Client.Model = func(*core.Request, string) (model.Generator, error) { return answers{}, nil }
	res, err := b.open(t).Condense(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	last := res.Messages[len(res.Messages)-1]
	if got := last.Parts[0]; got != core.Text("a summary of 3 messages") || res.Usage != (core.Usage{Calls: 1, InputTokens: 7, USD: 0.25}) {
		t.Errorf("got %v with the usage %+v", got, res.Usage)
	}
	want := core.Step{Name: "summary", Looked: 2, Changed: 1, Saved: map[string]int{"tool_result": 5}, Duration: 3 * time.Millisecond, Note: "done"}
	if len(res.Steps) != 1 || res.Steps[0].Note != want.Note || res.Steps[0].Saved["tool_result"] != 5 || res.Steps[0].Duration != want.Duration {
		t.Errorf("got the steps %+v; want %+v", res.Steps, want)
	}
	if log := b.log.String(); !strings.Contains(log, `msg="asked tokens=`) {
		t.Errorf("the log has no line of the guest:\n%s", log)
	}
}

// TestModuleAsksForMore: a module in Go has a strategy of the host work on a part, and gets vectors, hidden messages and files; and is told
// politely what a host lacks.
func TestModuleAsksForMore(t *testing.T) {
	if raceEnabled {
		t.Skip("as TestModuleInGo")
	}
	reg, err := resolver.Strategies()
	must(err)
	b := newGoModule(t, `{"do": "asks-more"}`)
	words, _ := extractive.New().(model.Embedder)
	b.opts.Client.Run, b.opts.Client.Embedder = resolver.RunnerOf(reg), func() (model.Embedder, error) { return words, nil }
	req := coretest.HalfRequest(coretest.Session())
	req.Hidden = func(ids ...string) ([]core.Message, error) {
		if ids[0] != "old" {
			return nil, errors.New("it is not hidden")
		}
		return []core.Message{{ID: "old", Role: core.RoleUser, Parts: []core.Part{core.Text("Never use tabs.")}}}, nil
	}
	req.File = func(path string) ([]core.FilePiece, error) {
		return []core.FilePiece{{First: 7, Text: "of " + path, Unsure: true}}, nil
	}
	req.Cached.Messages, req.Messages[0].Labels = 3, map[string]string{"kept": "pin"}
	res, err := b.open(t).Condense(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := core.Verify(req, res); err != nil {
		t.Error(err)
	}
	first := fmt.Sprint(res.Messages[0].Parts)
	for _, want := range []string{"[2 [", "Never use tabs.", "host: invalid: it is not hidden", "[{7 of a.go true}] 3 map[kept:pin]"} {
		if !strings.Contains(first, want) {
			t.Errorf("%q is not in %s", want, first)
		}
	}
	// The same strategy does the same as a program in this process.
	own := *req
	own.Messages = slices.Clone(req.Messages)
	for i := range own.Messages {
		own.Messages[i].Protected = i < 2 || i > len(own.Messages)-4
	}
	want, err := b.opts.Client.Run(t.Context(), &own, "smart", []byte(`{"preset":"aggressive"}`), nil)
	must(err)
	if len(want.Messages) == len(req.Messages) {
		t.Error("smart changes nothing")
	}
	got := res.Messages[1:]
	if !slices.EqualFunc(got, want.Messages, func(a, b core.Message) bool { return core.EqualParts(a.Parts, b.Parts) && a.Role == b.Role }) {
		t.Errorf("it made %d messages, and the strategy itself %d", len(got), len(want.Messages))
	}
	_, err = newGoModule(t, `{"do": "asks-more"}`).open(t).Condense(t.Context(), request())
	if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "embed: not supported by this host") {
		t.Errorf("a host without: got error %v", err)
	}
}

// answers is a language model.
type answers struct{}

func (answers) Info() model.Info { return model.Info{Name: "answers"} }

func (answers) Generate(_ context.Context, p *model.Prompt) (*model.Answer, error) {
	if p.System != "You summarize." || p.MaxOutput != 100 || len(p.Messages) != 3 {
		return nil, model.ErrTooLong
	}
	return &model.Answer{Text: "a summary of 3 messages", Usage: core.Usage{Calls: 1, InputTokens: 7, USD: 0.25}}, nil
}

// pause is between the calls of a session, when a module's next instance is made ready.
const pause = 50 * time.Millisecond

// BenchmarkModule compares one strategy in process, as a program, and as modules of WebAssembly; those in Rust and AssemblyScript
// do the same.
func BenchmarkModule(b *testing.B) {
	mb, _ := history(1_000_000)
	many := make([]core.Message, 0, 10_000)
	for len(many) < cap(many) {
		many = append(many, coretest.User(core.Text(strings.Repeat("a question ", 20))), coretest.Assistant(core.Text(strings.Repeat("an answer ", 40))))
	}
	for name, req := range map[string]*core.Request{"1MB": mb, "10000messages": coretest.HalfRequest(coretest.Conversation(many...))} {
		kinds := map[string]func(*testing.B) core.CondensationProvider{
			"inprocess": func(b *testing.B) core.CondensationProvider {
				b.Helper()
				p, err := tidy.Strategy().Open(b.Context(), nil, registry.Env{})
				must(err)
				return p
			},
			"program": func(b *testing.B) core.CondensationProvider {
				b.Helper()
				return benchmarkedSpec(b, supervise.Spec{Path: self(), Args: []string{"plugin", "tidy"}})
			},
			"go": func(b *testing.B) core.CondensationProvider { b.Helper(); return benchmarkedModule(b, "") },
			"rust": func(b *testing.B) core.CondensationProvider {
				b.Helper()
				return benchmarkedModule(b, modules+"tidy-rust.wasm")
			},
			"assemblyscript": func(b *testing.B) core.CondensationProvider {
				b.Helper()
				return benchmarkedModule(b, modules+"tidy-assemblyscript.wasm")
			},
		}
		for _, kind := range []string{"inprocess", "program", "go", "rust", "assemblyscript"} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				p := kinds[kind](b)
				if _, err := p.Condense(b.Context(), req); err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					b.StopTimer()
					time.Sleep(pause)
					b.StartTimer()
					if _, err := p.Condense(b.Context(), req); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// self returns the path of this binary.
func self() string {
	exe, err := os.Executable()
	must(err)
	return exe
}

// benchmarkedModule returns a module; without a file that in Go.
func benchmarkedModule(b *testing.B, file string) *supervise.Process {
	b.Helper()
	if file == "" {
		data, err := goModule()
		must(err)
		file = filepath.Join(b.TempDir(), "tidy.wasm")
		must(os.WriteFile(file, data, 0o600))
	}
	file, err := filepath.Abs(file)
	must(err)
	cache, err := moduleCache()
	must(err)
	return benchmarkedSpec(b, supervise.Spec{
		Path: file, Interpreter: []string{self(), plugins.ModuleCommand}, Args: []string{cache}, Limits: supervise.Limits{Start: 5 * time.Minute},
	})
}

func benchmarkedSpec(b *testing.B, s supervise.Spec) *supervise.Process {
	b.Helper()
	s.Name = "acme"
	var err error
	s.SHA256, err = supervise.Digest(s)
	must(err)
	dir, err := os.MkdirTemp("", "t") //nolint:usetesting // b.TempDir is too long for a socket
	must(err)
	p, err := supervise.Open(s, &supervise.Options{TempDir: dir})
	must(err)
	b.Cleanup(func() {
		must(p.Close())
		must(os.RemoveAll(dir))
	})
	return p
}
