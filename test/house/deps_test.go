package house_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/condensehq/condense"

// products are the floors of the house, the ground floor first. A package imports packages of its own product and of those below, the
// standard library, and the foreign modules that its product may use. A folder belongs to the product that names it or its nearest parent.
var products = []struct{ name, folders, foreign string }{
	{
		"ground", "core registry model tokens internal/plain internal/size internal/disk internal/suggest internal/secret internal/rawjson " +
			"internal/media internal/catalog internal/extractive internal/trust internal/promptcache internal/toolcall",
		"github.com/google/uuid github.com/gofrs/flock",
	},
	{
		"reading", "transcript internal/codec internal/dialog internal/recall internal/search internal/apimessage internal/roo internal/value/ledger internal/epoch internal/lab/truth",
		"github.com/google/uuid github.com/blevesearch/snowballstem",
	},
	{"engine", "providers internal/value internal/outline internal/prefix", ""},
	{"settings", "config internal/tree", "github.com/knadh/koanf go.yaml.in/yaml"},
	{"runtime", ". internal/resolver internal/remote internal/ingest", "github.com/google/uuid"}, // no gRPC
	{
		"plugins", "plugin-sdk internal/plugins internal/wire",
		"github.com/hashicorp/go-plugin github.com/hashicorp/go-hclog github.com/sony/gobreaker github.com/tetratelabs/wazero " +
			"google.golang.org/grpc google.golang.org/protobuf golang.org/x/sys",
	},
	{
		"gateway", "live internal/live internal/mcpserver internal/awssign",
		"github.com/andybalholm/brotli github.com/aws/aws-sdk-go-v2 github.com/coder/websocket github.com/gofrs/flock " +
			"github.com/jackc/pgx github.com/klauspost/compress github.com/modelcontextprotocol/go-sdk github.com/sony/gobreaker " +
			"go.opentelemetry.io/otel golang.org/x/sys golang.org/x/time modernc.org/sqlite",
	},
	{"laboratory", "compare internal/lab", "github.com/klauspost/compress"},
	{
		"program", "cmd/condense",
		"github.com/gofrs/flock github.com/google/uuid github.com/jedib0t/go-pretty github.com/mattn/go-isatty github.com/pelletier/go-toml " +
			"github.com/pkoukk/tiktoken-go github.com/prometheus/client_golang github.com/prometheus/otlptranslator github.com/spf13/cobra github.com/spf13/pflag " +
			"github.com/tailscale/hujson go.opentelemetry.io/otel golang.org/x/sys modernc.org/sqlite",
	},
	{
		"adapters", "adapters", // modules of their own
		"github.com/anthropics/anthropic-sdk-go github.com/cloudwego/eino github.com/openai/openai-go/v3 github.com/tmc/langchaingo " +
			"google.golang.org/adk google.golang.org/genai",
	},
	{
		"measuring", "internal/testkit bench test tools examples", // tests, and modules of their own
		"github.com/aws/aws-sdk-go-v2 github.com/bufbuild/protocompile github.com/cloudwego/eino github.com/coder/websocket " +
			"github.com/google/go-cmp github.com/google/uuid github.com/klauspost/compress github.com/modelcontextprotocol/go-sdk " +
			"golang.org/x/sys golang.org/x/tools google.golang.org/protobuf example.com/condense-redact example.com/condense-peers",
	},
}

// closer are the packages that may import less of this module than their floor allows: only these.
var closer = map[string]string{
	"core":     "internal/plain internal/size", // an error is one line from where it enters
	"registry": "core model internal/plain internal/suggest",
	"model":    "core",
	// It opens nothing.
	"config": "core/policy model registry internal/disk internal/tree internal/catalog internal/suggest internal/plain internal/secret " +
		"internal/size internal/trust",
	"plugin-sdk": "core model registry internal/wire internal/wire/byhand", // what authors import stays small
	// What others' programs import is what they may import themselves.
	"adapters":               ". core core/history transcript",
	"adapters/internal/play": ". adapters config core tokens",
	"adapters/anthropic":     ". adapters core",
	"adapters/openai":        ". adapters core",
	"adapters/eino":          ". adapters core",
	"adapters/langchaingo":   ". adapters core",
	"adapters/adk":           ". adapters core",
	// A yardstick shares facts with what it measures, and no judgement.
	"internal/lab/score": "core internal/plain internal/rawjson internal/toolcall",
	"internal/lab/truth": "core internal/dialog internal/epoch internal/plain internal/rawjson internal/toolcall",
}

// strangers do not import each other: formats, strategies, groups of commands. What they share lies below them.
var strangers = [][]string{
	{
		"claudecode", "codex", "pi", "copilot", "aider", "opencode", "gemini", "roo", "trace", "responses", "geminiapi", "openai", "anthropic",
		"converse", "condense", "exports",
	},
	{"providers/smart", "providers/native", "providers/slidingwindow", "providers/internal/vendor"},
	{"filecmd", "configcmd", "plugincmd", "comparecmd", "servecmd"},
}

// floorOf returns the index of a package's product; -1 for a package that no product has.
func floorOf(pkg string) (floor int) {
	floor, length := -1, -1
	for i, p := range products {
		for folder := range strings.FieldsSeq(p.folders) {
			if (pkg == folder || folder != "." && strings.HasPrefix(pkg, folder+"/")) && len(folder) > length {
				floor, length = i, len(folder)
			}
		}
	}
	return floor
}

// TestFloors parses the sources itself: a test that asks the go command is served from the test cache after the imports have changed.
func TestFloors(t *testing.T) {
	used := map[[2]string]bool{} // foreign modules by product, and imports by package of closer
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"testdata", "bin", "node_modules"}, d.Name())) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		pkg := path.Dir(filepath.ToSlash(p))
		floor := floorOf(pkg)
		if floor < 0 {
			t.Errorf("no product has the package %s: say where it lives", pkg)
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if why := refused(pkg, floor, imp, used); why != "" {
				t.Errorf("%s imports %s: %s", p, imp, why)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range products {
		for folder := range strings.FieldsSeq(p.folders) {
			if _, err := os.Stat(folder); err != nil {
				t.Errorf("product %s has a folder %s, which does not exist", p.name, folder)
			}
		}
		for m := range strings.FieldsSeq(p.foreign) {
			if !used[[2]string{p.name, m}] {
				t.Errorf("product %s may use %s, which it does not: remove the allowance", p.name, m)
			}
		}
	}
	for pkg, all := range closer {
		for imp := range strings.FieldsSeq(all) {
			if !used[[2]string{pkg, imp}] {
				t.Errorf("%s may import %s, which it does not: remove the allowance", pkg, imp)
			}
		}
	}
}

// TestFloorsAreDrawn: the table in docs/architecture.md is the one that the imports obey.
func TestFloorsAreDrawn(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range products {
		row := fmt.Sprintf("| %d | %s | `%s` |", i+1, p.name, strings.Join(strings.Fields(strings.Replace(p.folders, ".", "condense", 1)), "`, `"))
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/architecture.md lacks the floor:\n%s", row)
		}
	}
}

// refused says why a package must not import another; empty if it may. It notes in used what was needed.
func refused(pkg string, floor int, imp string, used map[[2]string]bool) string {
	name, ours := strings.CutPrefix(imp, module)
	if !ours {
		if first, _, _ := strings.Cut(imp, "/"); !strings.Contains(first, ".") {
			return "" // standard library
		}
		for m := range strings.FieldsSeq(products[floor].foreign) {
			if imp == m || strings.HasPrefix(imp, m+"/") {
				used[[2]string{products[floor].name, m}] = true
				return ""
			}
		}
		return "product " + products[floor].name + " may not use this module"
	}
	if name = strings.TrimPrefix(name, "/"); name == "" {
		name = "."
	}
	if to := floorOf(name); to > floor {
		return "product " + products[to].name + " lies above " + products[floor].name
	}
	if only, ok := closer[pkg]; ok {
		if !slices.Contains(strings.Fields(only), name) {
			return "it may only import " + only
		}
		used[[2]string{pkg, name}] = true
	}
	for _, names := range strangers {
		if a, b := among(pkg, names), among(name, names); a != "" && b != "" && a != b {
			return a + " and " + b + " do not know each other: move what both need below them"
		}
	}
	return ""
}

// among returns the name that a package has or ends with.
func among(pkg string, names []string) string {
	for _, n := range names {
		if pkg == n || !strings.Contains(n, "/") && strings.HasSuffix(pkg, "/internal/"+n) {
			return n
		}
	}
	return ""
}
