package house_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/condensehq/condense"

// mayImport is the dependency rule: for every package, what it may import in addition
// to the standard library. Names without a dot are packages of this module. It is a statement
// of policy: widen it only with a reason.
var mayImport = map[string]string{
	"core":                             "github.com/google/uuid internal/plain internal/size", // an error is one line from where it enters
	"core/coretest":                    "core",
	"core/history":                     "core internal/disk github.com/google/uuid github.com/gofrs/flock",
	"core/policy":                      "core internal/size",
	"registry":                         "core internal/suggest model",
	"model":                            "core",
	"internal/remote":                  "core model internal/apimessage internal/secret",
	"internal/testkit/modeltest":       "internal/testkit/apilint github.com/google/go-cmp",
	"internal/remote/anthropic":        "core model internal/apimessage internal/remote",
	"internal/remote/openai":           "core model internal/apimessage internal/rawjson internal/remote",
	"model/extractive":                 "core model",
	"internal/outline":                 "internal/toolcall",
	"tokens":                           "core internal/media",
	"internal/roo":                     "internal/rawjson",
	"internal/catalog":                 "model",
	"config":                           "core/policy model registry internal/disk internal/tree internal/catalog internal/suggest internal/plain internal/secret internal/size internal/trust github.com/knadh/koanf go.yaml.in/yaml",
	"providers":                        "registry providers/internal/vendor providers/native providers/slidingwindow providers/smart",
	"providers/smart":                  "core registry model providers/smart/internal/account internal/dialog internal/toolcall internal/suggest internal/size internal/outline internal/prefix internal/value",
	"providers/native":                 "core internal/dialog internal/toolcall registry model internal/outline internal/prefix internal/roo internal/size",
	"providers/slidingwindow":          "core registry internal/value", // value: what the media were
	"providers/internal/vendor":        "core registry model internal/value",
	".":                                "config core core/history core/policy github.com/google/uuid internal/dialog internal/disk internal/plain internal/remote internal/resolver internal/roo model model/extractive providers/slidingwindow registry tokens internal/size internal/value", // value: counts the user's words in a view, quoted ones too
	"internal/ingest":                  ". config core providers/smart",
	"cmd/condense/internal/hook":       ". config core core/history internal/disk internal/ingest tokens transcript",
	"live":                             ". config core core/policy internal/catalog internal/epoch internal/ingest internal/live/access internal/live/admin internal/live/agents internal/live/audit internal/live/chain internal/live/control internal/live/count internal/live/job internal/live/library internal/live/lineage internal/live/messages internal/live/payload internal/live/queue internal/live/seal internal/live/session internal/live/stats internal/live/store internal/live/telemetry internal/live/tenant internal/live/upstream internal/live/watching internal/live/wire internal/mcpserver internal/plain internal/prefix internal/rawjson internal/recall internal/remote internal/secret model transcript github.com/coder/websocket github.com/modelcontextprotocol/go-sdk go.opentelemetry.io/otel golang.org/x/sys",
	"cmd/condense":                     "cmd/condense/cli",
	"cmd/condense/cli":                 "cmd/condense/internal/cli cmd/condense/internal/command internal/plugins internal/plugins/wasm registry", // public: a program with strategies of its own calls its Main
	"cmd/condense/internal/command":    "cmd/condense/internal/cli cmd/condense/internal/filecmd cmd/condense/internal/configcmd cmd/condense/internal/plugincmd cmd/condense/internal/comparecmd cmd/condense/internal/servecmd cmd/condense/internal/term config internal/resolver registry github.com/spf13/cobra",
	"cmd/condense/internal/term":       "internal/plain internal/rawjson internal/size github.com/jedib0t/go-pretty github.com/mattn/go-isatty golang.org/x/sys",
	"cmd/condense/internal/cli":        ". cmd/condense/internal/term config core core/history transcript model registry internal/disk internal/plain internal/plugins internal/resolver internal/size internal/suggest github.com/spf13/cobra github.com/spf13/pflag",
	"cmd/condense/internal/filecmd":    ". cmd/condense/internal/archive cmd/condense/internal/cli cmd/condense/internal/term config core core/history core/policy internal/catalog internal/dialog cmd/condense/internal/hook internal/lab/report internal/mcpserver internal/plain internal/recall internal/search internal/secret cmd/condense/internal/sessions internal/size internal/suggest internal/lab/truth providers/smart tokens transcript github.com/spf13/cobra",
	"cmd/condense/internal/archive":    "core internal/dialog internal/disk internal/recall internal/search internal/secret transcript modernc.org/sqlite",
	"cmd/condense/internal/configcmd":  "cmd/condense/internal/cli cmd/condense/internal/term config core core/policy internal/plugins internal/size internal/trust registry github.com/spf13/cobra",
	"cmd/condense/internal/plugincmd":  "cmd/condense/internal/cli cmd/condense/internal/term config core core/coretest internal/lab internal/plugins internal/plugins/install internal/size internal/suggest internal/tree internal/trust plugin-sdk registry tokens github.com/spf13/cobra",
	"cmd/condense/internal/comparecmd": ". cmd/condense/internal/cli cmd/condense/internal/term config core internal/lab internal/lab/report internal/lab/strategies internal/plain internal/rawjson internal/resolver internal/size model tokens github.com/spf13/cobra",
	"cmd/condense/internal/servecmd":   ". cmd/condense/internal/cli cmd/condense/internal/term config core internal/disk internal/epoch internal/live/access internal/live/agents internal/live/control internal/lab/online internal/live/record internal/live/store cmd/condense/internal/settings internal/mcpserver internal/size internal/suggest internal/trust live github.com/gofrs/flock github.com/prometheus/client_golang github.com/prometheus/otlptranslator github.com/spf13/cobra go.opentelemetry.io/otel golang.org/x/sys internal/awssign",
	"compare":                          "internal/lab",
	"internal/lab/canary":              "core", // nor this one: what it plants is not what a provider looks for
	"internal/lab":                     "internal/lab/truth internal/lab/canary internal/lab/score internal/recall internal/search internal/catalog internal/epoch internal/live/lineage internal/live/wire internal/promptcache model core core/history core/policy internal/dialog internal/size internal/suggest tokens transcript",
	"internal/lab/truth":               "core internal/dialog internal/rawjson internal/size internal/toolcall", // judges: no provider imports it
	"internal/lab/report":              "internal/dialog internal/lab internal/lab/score internal/size core core/history tokens transcript",
	"internal/lab/strategies":          ". config core core/policy internal/ingest internal/lab internal/plain internal/rawjson internal/size internal/suggest model registry providers/slidingwindow providers/smart",
	"internal/lab/score":               "core internal/rawjson github.com/klauspost/compress internal/toolcall", // and no provider imports it: see its documentation
	"internal/disk":                    "",
	"internal/resolver":                "config core internal/catalog internal/remote internal/remote/anthropic internal/remote/openai internal/suggest model model/extractive providers registry tokens",
	"internal/plugins":                 ". config core google.golang.org/grpc/codes internal/disk internal/resolver internal/suggest internal/plugins/supervise internal/trust internal/wire model model/extractive registry",
	"internal/trust":                   "internal/disk",
	"internal/lab/online":              "core internal/epoch internal/lab internal/lab/report internal/lab/score internal/live/agents internal/live/store internal/rawjson internal/size live tokens transcript github.com/klauspost/compress",
	"internal/live/record":             "core core/history internal/live/messages internal/live/wire internal/rawjson live transcript github.com/google/uuid",
	"internal/live/lineage":            "internal/epoch internal/live/wire",
	"internal/epoch":                   "core core/policy internal/dialog",
	"internal/tree":                    "internal/plain internal/secret go.yaml.in/yaml",
	"internal/mcpserver":               "core internal/plain internal/recall internal/search internal/size github.com/modelcontextprotocol/go-sdk",
	"internal/recall":                  "core core/history internal/dialog internal/media internal/rawjson internal/size internal/suggest internal/toolcall internal/value/ledger",
	"internal/search":                  "core internal/recall internal/size github.com/blevesearch/snowballstem",
	"providers/smart/internal/account": "core internal/dialog internal/secret",
	"internal/prefix":                  "core model",
	"internal/suggest":                 "",
	"internal/plain":                   "",
	"internal/size":                    "",
	"internal/value/parallel":          "",
	"internal/secret":                  "",
	"internal/testkit/peers":           "",
	"internal/toolcall":                "internal/rawjson",
	"internal/dialog":                  "core internal/rawjson internal/toolcall",
	"internal/testkit/benchdata":       "core",
	"bench/peers/eino":                 "github.com/cloudwego/eino", // a module of its own
	"bench/outline":                    "internal/outline",
	"bench/arena":                      "core internal/lab",
	"bench/outside":                    "core transcript internal/toolcall",
	"bench/search":                     "core core/history internal/size transcript github.com/google/uuid github.com/modelcontextprotocol/go-sdk internal/toolcall",
	"bench/session":                    "internal/testkit/benchdata",
	"bench/gateway":                    "internal/testkit/benchdata",
	"bench/wires":                      ". config live internal/testkit internal/testkit/upstream github.com/coder/websocket",
	"internal/testkit/roo":             "internal/rawjson",
	"internal/testkit/growing":         "internal/live/wire pgregory.net/rapid",
	"internal/testkit/golden":          "github.com/google/go-cmp",
	"internal/testkit/apilint":         "",
	"internal/promptcache":             "",
	"internal/testkit/upstream":        "internal/promptcache github.com/aws/aws-sdk-go-v2 github.com/coder/websocket github.com/klauspost/compress",
	"internal/testkit":                 "golang.org/x/sys",
	"internal/testkit/pgtest":          "internal/testkit",
	"cmd/condense/internal/sessions":   "internal/disk internal/rawjson github.com/google/uuid",
	"cmd/condense/internal/settings":   "github.com/pelletier/go-toml github.com/tailscale/hujson",
	"internal/live/agents":             "internal/live/wire internal/rawjson",

	// No format imports another one or the front.
	"internal/rawjson":               "",
	"internal/apimessage":            "core internal/rawjson",
	"internal/media":                 "internal/rawjson",
	"transcript":                     "core core/history internal/rawjson transcript/internal/codec transcript/internal/syntax transcript/internal/condense transcript/internal/claudecode transcript/internal/codex transcript/internal/pi transcript/internal/copilot transcript/internal/aider transcript/internal/opencode transcript/internal/gemini transcript/internal/roo transcript/internal/trace transcript/internal/responses transcript/internal/geminiapi transcript/internal/openai transcript/internal/anthropic transcript/internal/converse",
	"transcript/internal/codec":      "core core/history internal/rawjson",
	"transcript/internal/syntax":     "internal/rawjson",
	"transcript/internal/jsonl":      "internal/rawjson transcript/internal/codec transcript/internal/syntax",
	"transcript/internal/blocks":     "internal/apimessage core internal/rawjson transcript/internal/syntax",
	"transcript/internal/items":      "internal/apimessage core internal/rawjson transcript/internal/blocks transcript/internal/syntax",
	"transcript/internal/convert":    "core core/history internal/apimessage internal/rawjson transcript/internal/codec",
	"transcript/internal/request":    "core internal/rawjson transcript/internal/codec transcript/internal/syntax transcript/internal/blocks",
	"transcript/internal/session":    "core core/history internal/rawjson transcript/internal/blocks transcript/internal/codec transcript/internal/syntax",
	"transcript/internal/condense":   "core/history internal/rawjson transcript/internal/codec",
	"transcript/internal/claudecode": "internal/apimessage core core/history internal/rawjson transcript/internal/codec transcript/internal/syntax transcript/internal/jsonl transcript/internal/blocks transcript/internal/convert transcript/internal/session github.com/google/uuid",
	"transcript/internal/codex":      "internal/toolcall internal/apimessage core core/history internal/rawjson transcript/internal/items transcript/internal/codec transcript/internal/syntax transcript/internal/jsonl transcript/internal/blocks transcript/internal/convert transcript/internal/session",
	"transcript/internal/aider":      "core internal/rawjson internal/toolcall transcript/internal/codec",
	"transcript/internal/copilot":    "internal/apimessage transcript/internal/convert github.com/google/uuid core core/history internal/rawjson transcript/internal/codec transcript/internal/syntax transcript/internal/jsonl transcript/internal/blocks transcript/internal/session",
	"transcript/internal/pi":         "core internal/rawjson transcript/internal/codec transcript/internal/syntax transcript/internal/jsonl transcript/internal/blocks transcript/internal/session internal/apimessage transcript/internal/convert",
	"transcript/internal/opencode":   "internal/apimessage core core/history internal/rawjson transcript/internal/convert transcript/internal/codec transcript/internal/syntax transcript/internal/blocks transcript/internal/session",
	"transcript/internal/gemini":     "internal/toolcall internal/apimessage transcript/internal/convert github.com/google/uuid core core/history internal/rawjson transcript/internal/codec transcript/internal/syntax transcript/internal/blocks transcript/internal/session transcript/internal/jsonl",
	"transcript/internal/roo":        "internal/apimessage core core/history internal/rawjson transcript/internal/codec transcript/internal/syntax transcript/internal/blocks transcript/internal/convert transcript/internal/request",
	"transcript/internal/trace":      "internal/apimessage core internal/rawjson transcript/internal/codec transcript/internal/blocks transcript/internal/convert transcript/internal/request",
	"transcript/internal/responses":  "internal/apimessage core internal/rawjson transcript/internal/codec transcript/internal/syntax transcript/internal/blocks transcript/internal/convert transcript/internal/items transcript/internal/request",
	"transcript/internal/geminiapi":  "internal/apimessage core internal/rawjson transcript/internal/codec transcript/internal/syntax transcript/internal/blocks transcript/internal/convert transcript/internal/request",
	"transcript/internal/converse":   "internal/apimessage core internal/rawjson transcript/internal/codec transcript/internal/syntax transcript/internal/blocks transcript/internal/convert transcript/internal/request",
	"transcript/internal/openai":     "internal/apimessage core internal/rawjson transcript/internal/codec transcript/internal/syntax transcript/internal/blocks transcript/internal/convert transcript/internal/request",
	"transcript/internal/anthropic":  "internal/apimessage core internal/rawjson transcript/internal/codec transcript/internal/blocks transcript/internal/convert transcript/internal/request",

	"internal/awssign":        "github.com/aws/aws-sdk-go-v2",
	"internal/live/chain":     "internal/live/wire internal/rawjson", // plans need whole requests, and the vendor has most of them
	"internal/live/wire":      "internal/rawjson internal/remote internal/secret internal/toolcall github.com/aws/aws-sdk-go-v2",
	"internal/live/access":    "internal/disk internal/live/tenant internal/plain github.com/gofrs/flock",
	"internal/live/store":     "github.com/jackc/pgx github.com/klauspost/compress github.com/sony/gobreaker modernc.org/sqlite",
	"internal/live/admin":     ". config internal/live/access internal/live/audit internal/live/control internal/live/payload internal/live/session internal/live/stats internal/live/store internal/live/tenant internal/plain",
	"internal/live/audit":     "",
	"internal/live/control":   "internal/live/library internal/live/lineage internal/live/messages internal/live/session internal/live/store internal/live/wire internal/plain internal/size internal/suggest",
	"internal/live/library":   "core core/history internal/dialog internal/live/lineage internal/live/messages internal/live/store internal/live/wire internal/mcpserver internal/rawjson internal/recall",
	"internal/live/watching":  "internal/live/stats",
	"internal/live/count":     "internal/media",
	"internal/live/payload":   "internal/live/count internal/live/wire internal/plain github.com/andybalholm/brotli github.com/klauspost/compress",
	"internal/live/queue":     "",
	"internal/live/seal":      "internal/live/payload internal/rawjson github.com/klauspost/compress",
	"internal/live/stats":     "core internal/plain internal/secret",
	"internal/live/telemetry": "go.opentelemetry.io/otel",
	"internal/live/tenant":    "internal/live/store golang.org/x/time",
	"internal/live/upstream":  "internal/live/stats internal/live/wire internal/plain",
	"internal/live/job":       ". config core internal/ingest internal/live/count internal/live/lineage internal/live/messages internal/live/queue internal/live/stats internal/live/wire internal/prefix internal/dialog model transcript",
	"internal/live/messages":  "core internal/live/wire internal/rawjson transcript",
	"internal/live/session":   "internal/live/job internal/live/lineage internal/live/store internal/live/wire",

	"internal/plugins/install":                    "core internal/plain internal/plugins/supervise registry",
	"internal/plugins/supervise":                  "core internal/plain internal/wire github.com/hashicorp/go-plugin github.com/hashicorp/go-hclog github.com/sony/gobreaker google.golang.org/grpc golang.org/x/sys",
	"internal/wire":                               "core internal/plain registry model internal/wire/byhand internal/wire/condensepb github.com/hashicorp/go-plugin google.golang.org/grpc google.golang.org/protobuf",
	"internal/plugins/wasm":                       "internal/wire internal/wire/byhand registry github.com/hashicorp/go-hclog github.com/hashicorp/go-plugin github.com/tetratelabs/wazero golang.org/x/sys google.golang.org/grpc", // only the program imports it
	"internal/wire/byhand":                        "core model registry google.golang.org/protobuf/encoding/protowire",
	"internal/wire/condensepb":                    "google.golang.org/grpc google.golang.org/protobuf",
	"plugin-sdk":                                  "core model registry internal/wire internal/wire/byhand google.golang.org/protobuf/encoding/protowire github.com/hashicorp/go-plugin github.com/hashicorp/go-hclog google.golang.org/grpc",
	"plugin-sdk/host":                             ". internal/plugins",
	"plugin-sdk/sdktest":                          "core model registry internal/wire google.golang.org/grpc",
	"examples/plugins/keepfirst":                  "core registry plugin-sdk", // each a module of its own
	"examples/plugins/testlog":                    "core registry plugin-sdk", // each a module of its own
	"examples/plugins/redact":                     "core registry",
	"examples/plugins/redact/cmd/condense-redact": "plugin-sdk example.com/condense-redact",
	"internal/value/ledger":                       "core internal/dialog internal/rawjson internal/toolcall",
	"internal/value":                              "core internal/dialog internal/media internal/outline internal/value/ledger internal/value/parallel internal/rawjson internal/toolcall",
	"bench/train":                                 "core internal/lab internal/lab/score internal/value tokens",
	"tools/protogen":                              "github.com/bufbuild/protocompile google.golang.org/protobuf", // a module of its own
	"tools/sessions":                              "",
	"tools/typecheck":                             "golang.org/x/tools",
}

// TestDependencies parses the sources itself: a test that asks the go command is served
// from the test cache after the imports have changed.
func TestDependencies(t *testing.T) {
	seen := map[string]bool{}
	used := map[string]map[string]bool{} // allowances, by package
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		pkg := path.Dir(filepath.ToSlash(p))
		allowed, ok := mayImport[pkg]
		if !ok {
			if !seen[pkg] {
				t.Errorf("package %s has no line in mayImport: say what it may import", pkg)
			}
			seen[pkg] = true
			return nil
		}
		seen[pkg] = true
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range f.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			by, ok := permitted(imp, strings.Fields(allowed))
			if !ok {
				t.Errorf("%s imports %s; package %s may import the standard library and: %s", p, imp, pkg, allowed)
			}
			if used[pkg] == nil {
				used[pkg] = map[string]bool{}
			}
			used[pkg][by] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range slices.Sorted(maps.Keys(mayImport)) {
		if !seen[pkg] {
			t.Errorf("mayImport has a line for %s, which does not exist", pkg)
		}
		for allowance := range strings.FieldsSeq(mayImport[pkg]) {
			if !used[pkg][allowance] {
				t.Errorf("mayImport allows %s to import %s, which it does not: remove the allowance", pkg, allowance)
			}
		}
	}
}

// permitted returns the allowance that an import needs; empty for the standard library.
func permitted(imp string, allowed []string) (by string, ok bool) {
	name, ours := strings.CutPrefix(imp, module)
	if ours {
		if name = strings.TrimPrefix(name, "/"); name == "" {
			name = "."
		}
		return name, slices.Contains(allowed, name)
	}
	if first, _, _ := strings.Cut(imp, "/"); !strings.Contains(first, ".") {
		return "", true // standard library
	}
	i := slices.IndexFunc(allowed, func(a string) bool {
		return strings.Contains(a, ".") && (imp == a || strings.HasPrefix(imp, a+"/"))
	})
	if i < 0 {
		return "", false
	}
	return allowed[i], true
}
