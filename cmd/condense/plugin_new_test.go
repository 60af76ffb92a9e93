package main_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/registry"
)

const providerGuide = "../../docs/writing-a-provider.md"

// The guide for authors works as written, in an empty folder outside of the repository: a plugin is
// written, tested, pinned and used. It needs no network: every dependency of the plugin was
// downloaded to build this test.
func TestProviderGuide(t *testing.T) {
	testkit.Process(t)
	guide := read(t, providerGuide)
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	dirs := strings.Fields(string(out))
	got, sessions := replay(t, guide,
		"GOCACHE="+dirs[0], "GOMODCACHE="+dirs[1], "GOPROXY=off", "GOSUMDB=off", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOTOOLCHAIN=local")
	if sessions < 9 {
		t.Errorf("only %d sessions were found", sessions)
	}
	if diff := cmp.Diff(settled(guide, inBuilds), settled(got, inBuilds)); diff != "" {
		if *update {
			if err := os.WriteFile(providerGuide, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
		t.Errorf("go test ./cmd/condense -update would change it (-want +got):\n%s", diff)
	}
}

// What README tells authors to type works as written.
func TestReadmePlugin(t *testing.T) {
	testkit.Process(t)
	out, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	dirs := strings.Fields(string(out))
	_, section, _ := strings.Cut(read(t, "../../README.md"), "\n## Your own provider\n")
	section, _, _ = strings.Cut(section, "\n## ")
	typed := regexp.MustCompile(`(?m)^    (.*)$`).FindAllStringSubmatch(section, -1)
	if len(typed) < 4 {
		t.Fatalf("only %d commands were found", len(typed))
	}
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	// A release needs no checkout, and without --once dev waits for a change.
	here := strings.NewReplacer("new tidy", "new tidy --replace '"+checkout+"'", "dev tidy", "dev tidy --once")
	dir := t.TempDir()
	for _, line := range typed {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", here.Replace(line[1]))
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+filepath.Join(dir, ".config"), "GORACE=atexit_sleep_ms=0",
			"GOCACHE="+dirs[0], "GOMODCACHE="+dirs[1], "GOPROXY=off", "GOSUMDB=off", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOTOOLCHAIN=local")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line[1], err, out)
		}
	}
}

// inBuilds is what differs between builds and runs of a plugin: durations, checksums and IDs.
var inBuilds = append([]varying{
	{regexp.MustCompile(`\b[0-9.]+ ?m?s\b|\(cached\)`), "TIME"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "SHA256"},
	{regexp.MustCompile(`(?m) +TIME`), " TIME"},
}, inReports...)

// begin of the guide: compiled in.

// openHost returns a host with one strategy in addition to the built-in ones.
func openHost(ctx context.Context, mine registry.Strategy) (*condense.Host, error) {
	return condense.Open(ctx, &condense.Options{
		Strategies: []registry.Strategy{mine},
		Load:       &config.Options{}, // condense.yaml, as the command line finds it
	})
}

// end of the guide.

// The guide shows the code above for a strategy that is compiled in, and it works.
func TestCompiledIn(t *testing.T) {
	_, code, _ := strings.Cut(read(t, "plugin_new_test.go"), "// begin of the guide: compiled in.\n\n")
	code, _, _ = strings.Cut(code, "\n// end of the guide.")
	if !strings.Contains(read(t, providerGuide), "```go\n"+code+"```\n") {
		t.Errorf("%s does not show this code:\n%s", providerGuide, code)
	}

	dir := t.TempDir()
	t.Chdir(dir)
	const yaml = "providers: {ours: {strategy: mine}}\nprofiles: {default: {window: 100000, chain: [ours]}}\n"
	if err := os.WriteFile(filepath.Join(dir, "condense.yaml"), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := openHost(t.Context(), registry.Define("mine", "Keeps what is protected.", func() struct{} { return struct{}{} },
		func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) {
			return coretest.Truncates(), nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	c := condense.NewConversation()
	if err := c.Append(coretest.Session()...); err != nil {
		t.Fatal(err)
	}
	r, err := h.Manage(t.Context(), c, condense.Turn{Trigger: core.TriggerManual})
	if err != nil {
		t.Fatal(err)
	}
	if a := r.Attempts[0]; a.Provider != "ours" || a.TokensAfter >= a.TokensBefore {
		t.Errorf("got %+v, want ours to have shortened it", a)
	}
}

// The Go template has the requirements of the smallest example. Other tests check that the example
// has those of this module.
func TestTemplateRequirements(t *testing.T) {
	const example = "../../examples/plugins/keepfirst/"
	requires := func(mod string) string {
		_, after, _ := strings.Cut(mod, "\nrequire (")
		block, _, _ := strings.Cut(after, "\n)")
		return block
	}
	if got, want := requires(read(t, "internal/plugincmd/templates/go/go.mod.tmpl")), requires(read(t, example+"go.mod")); got != want || want == "" {
		t.Errorf("internal/plugincmd/templates/go/go.mod.tmpl requires\n%s\nand %sgo.mod\n%s\nput the latter into the former", got, example, want)
	}
	if read(t, "internal/plugincmd/templates/go/go.sum.tmpl") != read(t, example+"go.sum") {
		t.Errorf("cp %sgo.sum cmd/condense/internal/plugincmd/templates/go/go.sum.tmpl", strings.TrimPrefix(example, "../../"))
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
