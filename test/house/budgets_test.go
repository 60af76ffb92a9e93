package house_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// The limits of the budgets of form.
const (
	maxMethods  = 40  // of a type
	maxFields   = 20  // of a struct that is neither settings nor data
	maxFunction = 80  // lines
	maxFile     = 500 // lines
	maxLine     = 140 // characters
	maxReached  = 50  // methods of a type, with those that it gets by embedding
	maxSeen     = 40  // fields of a struct, with those that it gets by embedding
)

// budgets are what the house may weigh. The goal is where each is to arrive. The ceiling is what must not be exceeded; where it
// is above the goal it is today's number, so that it can only go down: lower it when the log of this test (go test -v) says so.
var budgets = []struct {
	name          string
	ceiling, goal int
	measure       func(*house) (n int, worst []string)
}{
	{"lines of core and registry with their imports", 3_580, 3_200, closure("core", "registry")},
	{"lines of plugin-sdk with its imports", 6_335, 5_500, closure("plugin-sdk")},
	{"lines of the root package with its imports", 44_395, 30_000, closure(".")},
	{"lines of live with its imports", 69_790, 58_000, closure("live")},
	{"lines of the program with its imports, without the laboratory", 106_600, 74_000, closure("cmd/condense")},
	{"lines in all", 129_430, 88_000, func(h *house) (int, []string) { return h.lines(slices.Collect(maps.Keys(h.packages))), nil }},
	{"foreign modules of core and registry", 1, 1, foreign("core", "registry")},
	{"foreign modules of plugin-sdk", 15, 15, foreign("plugin-sdk")},
	{"foreign modules of the root package", 10, 6, foreign(".")},
	{"foreign modules of live", 40, 36, foreign("live")},
	{"public import paths", 21, 18, (*house).public},
	{"entries at the top of the repository, without hidden ones", 34, 24, (*house).top},
	{"methods of a type", 47, maxMethods, func(h *house) (int, []string) { return most(h.methods, maxMethods) }},
	{"fields of a struct", 31, maxFields, func(h *house) (int, []string) { return most(h.fields, maxFields) }},
	{fmt.Sprintf("functions above %d lines", maxFunction), 0, 0, func(h *house) (int, []string) { return above(h.functions, maxFunction) }},
	{fmt.Sprintf("files above %d lines", maxFile), 0, 0, func(h *house) (int, []string) { return above(h.files, maxFile) }},
	{fmt.Sprintf("lines above %d characters, without tags", maxLine), 722, 0, func(h *house) (int, []string) { return sum(h.longLines) }},
}

// TestBudgets: nothing grows beyond its ceiling.
func TestBudgets(t *testing.T) {
	h := survey(t)
	for _, b := range budgets {
		n, worst := b.measure(h)
		list := ""
		if len(worst) > 0 {
			list = "\n\t" + strings.Join(worst, "\n\t")
		}
		switch {
		case n > b.ceiling:
			t.Errorf("%s: %d, and %d are allowed: split, move or delete something, do not raise the ceiling%s", b.name, n, b.ceiling, list)
		case b.ceiling > b.goal:
			t.Logf("%s: %d of %d, the goal is %d%s", b.name, n, b.ceiling, b.goal, list)
		default:
			t.Logf("%s: %d of %d", b.name, n, b.ceiling)
		}
	}
}

// nested are the structs that are larger than maxReached or maxSeen by embedding, with their methods and fields. A number may only fall.
var nested = map[string][2]int{
	"cmd/condense/internal/servecmd.gateway": {54, 57},
	"core/history.File":                      {53, 22},
}

// ladders are the structs that embed another struct of their package that has methods: who calls a method cannot see whose it is, or what
// it may write. By package; none may be added.
var ladders = map[string]string{
	"cmd/condense/internal/filecmd":    "resumption>selection",
	"cmd/condense/internal/hook":       "shortener>Options",
	"cmd/condense/internal/plugincmd":  "judging>pluginTest",
	"core/history":                     "File>Journal",
	"internal/catalog":                 "cachingRow>Caching",
	"internal/lab":                     "Difference>Estimate ReaderOptions>Options ReplayOptions>Options analysis>Report",
	"internal/lab/online":              "conversation>Evidence",
	"internal/lab/truth":               "measure>Report",
	"internal/outline":                 "cfamily>parser golang>keywords keywords>parser script>parser",
	"internal/search":                  "builder>Index",
	"internal/tree":                    "jsonReader>budget yamlReader>budget",
	"providers/native":                 "settings>Config",
	"providers/smart/internal/account": "Update>Checks",
	"tokens":                           "Counter>Encoding worker>bpe",
	"transcript/internal/claudecode":   "sessionWriter>sessionFile",
	"transcript/internal/codex":        "rolloutWriter>rollout",
	"transcript/internal/copilot":      "writer>reader",
	"transcript/internal/roo":          "layout>writer",
}

// TestNesting: a type is no larger by embedding than one may be without, and methods are called on a field that has a name.
func TestNesting(t *testing.T) {
	h, found := survey(t), map[string]bool{}
	for name := range h.types {
		methods, fields := map[string]bool{}, map[string]bool{}
		h.reach(name, methods, fields, map[string]bool{})
		m, f, was := len(methods), len(fields), nested[name]
		switch most := [2]int{max(maxReached, was[0]), max(maxSeen, was[1])}; {
		case m > most[0] || f > most[1] && !h.types[name].data:
			t.Errorf("%s reaches %d methods and %d fields, and %d and %d are allowed: make what it embeds a field with a name", name, m, f, most[0], most[1])
		case was != [2]int{} && was != [2]int{m, f}:
			t.Logf("%s reaches %d methods and %d fields: write that into nested, or remove it there", name, m, f)
		}
		for _, e := range h.types[name].embeds {
			in, k := map[string]bool{}, h.types[e]
			if k == nil || !k.structure || strings.TrimSuffix(e, path.Ext(e)) != strings.TrimSuffix(name, path.Ext(name)) {
				continue
			}
			if h.reach(e, in, map[string]bool{}, map[string]bool{}); len(in) > 0 {
				found[name+">"+e[strings.LastIndex(e, ".")+1:]] = true
			}
		}
	}
	for in, pairs := range ladders {
		for pair := range strings.FieldsSeq(pairs) {
			if !found[in+"."+pair] {
				t.Errorf("%s: %s is no longer true: remove it from ladders", in, pair)
			}
			delete(found, in+"."+pair)
		}
	}
	for pair := range found {
		t.Errorf("%s embeds a struct of its package that has methods: give it a name", pair)
	}
}

// reach collects the names of the methods and fields of a type with those that it gets by embedding a type of this module.
func (h *house) reach(name string, methods, fields, done map[string]bool) {
	k := h.types[name]
	if k == nil || done[name] {
		return
	}
	done[name] = true
	for _, m := range k.methods {
		methods[m] = true
	}
	for _, f := range k.fields {
		fields[f] = true
	}
	for _, e := range k.embeds {
		h.reach(e, methods, fields, done)
	}
}

// embedded are the foreign modules that a program gets with condense.Open and the built-in strategies: see record 44.
var embedded = map[string]string{
	"github.com/gofrs/flock": "a journal has one writer",
	"github.com/google/uuid": "names of messages and condensations",
	// koanf is the owner's choice. It brings its maps and provider, and three modules for structs.
	"github.com/knadh/koanf/v2":                "layers of configuration",
	"github.com/knadh/koanf/maps":              "of koanf",
	"github.com/knadh/koanf/providers/confmap": "of koanf",
	"github.com/go-viper/mapstructure/v2":      "of koanf",
	"github.com/mitchellh/copystructure":       "of koanf",
	"github.com/mitchellh/reflectwalk":         "of koanf",
	"go.yaml.in/yaml/v3":                       "files of configuration",
	"golang.org/x/sys":                         "of flock",
}

// TestLightRoot: a program that embeds condense gets no other module, and no plugins, gateway, database or command line.
func TestLightRoot(t *testing.T) {
	var h house
	h.ask(t)
	_, found := foreign(".")(&h)
	for _, m := range found {
		if embedded[m] == "" {
			t.Errorf("the root package needs %s: give it to condense.Open instead, or say here what for", m)
		}
	}
	for m, what := range embedded {
		if !slices.Contains(found, m) {
			t.Errorf("%s (%s) is no longer needed: remove it here", m, what)
		}
	}
}

// A house is what the sources of the module are measured by. Tests and generated code do not count, and neither do the modules of
// their own in test, bench, tools and examples.
type house struct {
	packages  map[string]int // lines with code, by folder
	isMain    map[string]bool
	methods   map[string]int // by type
	fields    map[string]int // by struct that is neither settings nor data
	functions map[string]int // lines, by function
	files     map[string]int // lines, by file
	longLines map[string]int // number of them, by file
	types     map[string]*kind

	imports map[string][]string // of this module's packages and all that they need, by import path
	module  map[string]string   // of each package that is not of the standard library
}

// A kind is what a type declares: names of methods and fields, and the types of this module that it embeds.
type kind struct {
	methods, fields, embeds []string
	structure, data         bool // it is a struct; one of settings or data
}

// skipped are folders without code of the module.
var skipped = []string{"testdata", "node_modules", "bin"}

// survey reads every source file once, and asks the go command for the imports.
func survey(t *testing.T) *house {
	t.Helper()
	h := &house{
		packages: map[string]int{}, isMain: map[string]bool{}, methods: map[string]int{}, fields: map[string]int{},
		functions: map[string]int{}, files: map[string]int{}, longLines: map[string]int{}, types: map[string]*kind{},
	}
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != "." {
			_, err := os.Stat(filepath.Join(p, "go.mod"))
			if err == nil || strings.HasPrefix(d.Name(), ".") || slices.Contains(skipped, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return h.read(filepath.ToSlash(p), text)
	})
	if err != nil {
		t.Fatal(err)
	}
	h.ask(t)
	return h
}

// ask sets imports and module. The answer is the same on every system, and nothing is compiled.
func (h *house) ask(t *testing.T) {
	t.Helper()
	h.imports, h.module = map[string][]string{}, map[string]string{}
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
		`{{if not .Standard}}{{.ImportPath}} {{.Module.Path}}{{range .Imports}} {{.}}{{end}}{{end}}`, ".", "./cmd/condense", "./live", "./plugin-sdk")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		if words := strings.Fields(line); len(words) > 1 {
			h.module[words[0]], h.imports[words[0]] = words[1], words[2:]
		}
	}
}

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// read measures one file.
func (h *house) read(p string, text []byte) error {
	if generated.Match(text) {
		return nil
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, p, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir := path.Dir(p)
	h.packages[dir] += codeLines(text)
	h.isMain[dir] = f.Name.Name == "main"
	h.files[p] = bytes.Count(text, []byte("\n"))
	for line := range bytes.Lines(text) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		if utf8.RuneCount(line) > maxLine && !bytes.HasSuffix(line, []byte("`")) { // the tag of a setting is one line
			h.longLines[p]++
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
				h.methods[dir+"."+receiver(d.Recv.List[0].Type)]++
				k := h.kind(dir + "." + receiver(d.Recv.List[0].Type))
				k.methods = append(k.methods, d.Name.Name)
			}
			h.functions[p+": "+name] = fset.Position(d.End()).Line - fset.Position(d.Pos()).Line + 1
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					h.readType(dir, f, s)
				}
			}
		}
	}
	return nil
}

// isSettings are the names of structs that hold settings: their fields are the settings that there are.
var isSettings = regexp.MustCompile(`(Options|Settings|Config|Values)$`)

func (h *house) kind(name string) *kind {
	if h.types[name] == nil {
		h.types[name] = &kind{}
	}
	return h.types[name]
}

func (h *house) readType(dir string, file *ast.File, s *ast.TypeSpec) {
	k := h.kind(dir + "." + s.Name.Name)
	if i, ok := s.Type.(*ast.InterfaceType); ok {
		for _, m := range i.Methods.List {
			for _, n := range m.Names {
				k.methods = append(k.methods, n.Name)
			}
		}
	}
	t, ok := s.Type.(*ast.StructType)
	if !ok {
		return
	}
	n, tagged := 0, false
	for _, f := range t.Fields.List {
		n += max(1, len(f.Names))
		tagged = tagged || f.Tag != nil // settings, and data that others read or write
		for _, name := range f.Names {
			k.fields = append(k.fields, name.Name)
		}
		if len(f.Names) == 0 {
			k.fields = append(k.fields, path.Ext("." + receiver(f.Type))[1:])
			k.embeds = append(k.embeds, named(dir, file, f.Type))
		}
	}
	k.structure, k.data = true, tagged || isSettings.MatchString(s.Name.Name)
	if !k.data {
		h.fields[dir+"."+s.Name.Name] = n
	}
}

// named returns the folder and name of a type of this module as another file of a folder writes it.
func named(dir string, file *ast.File, e ast.Expr) string {
	if s, ok := e.(*ast.StarExpr); ok {
		e = s.X
	}
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return dir + "." + receiver(e)
	}
	for _, i := range file.Imports {
		p := strings.Trim(i.Path.Value, `"`)
		if of := receiver(s.X); i.Name != nil && i.Name.Name == of || i.Name == nil && path.Base(p) == of {
			return path.Clean(strings.TrimPrefix(strings.TrimPrefix(p, module), "/")) + "." + s.Sel.Name
		}
	}
	return ""
}

// receiver returns the name of the type of a method.
func receiver(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.Sel
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// codeLines counts the lines that have code.
func codeLines(text []byte) int {
	var s scanner.Scanner
	f := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(f, text, nil, 0)
	n, last := 0, 0
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return n
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue // it is where a line ends
		}
		first := max(last+1, f.Line(pos))
		last = max(last, f.Line(pos)+strings.Count(lit, "\n"))
		n += max(0, last-first+1)
	}
}

// closure measures packages and all packages of this module that they need, without the laboratory.
func closure(doors ...string) func(*house) (int, []string) {
	return func(h *house) (int, []string) {
		var ours []string
		for p := range h.needs(doors) {
			if name, ok := strings.CutPrefix(p+"/", module+"/"); ok {
				ours = append(ours, path.Clean(name))
			}
		}
		return h.lines(ours), nil
	}
}

// foreign counts the modules that packages need.
func foreign(doors ...string) func(*house) (int, []string) {
	return func(h *house) (int, []string) {
		found := map[string]bool{}
		for p := range h.needs(doors) {
			if m := h.module[p]; m != module {
				found[m] = true
			}
		}
		return len(found), slices.Sorted(maps.Keys(found))
	}
}

// needs returns doors and what they import, directly or not.
func (h *house) needs(doors []string) map[string]bool {
	found := map[string]bool{}
	var add func(p string)
	add = func(p string) {
		if found[p] || h.module[p] == "" || strings.HasPrefix(p+"/", module+"/internal/lab/") {
			return
		}
		found[p] = true
		for _, i := range h.imports[p] {
			add(i)
		}
	}
	for _, d := range doors {
		add(path.Join(module, d))
	}
	return found
}

func (h *house) lines(folders []string) int {
	n := 0
	for _, f := range folders {
		n += h.packages[f]
	}
	return n
}

// public lists the packages that other modules can import.
func (h *house) public() (int, []string) {
	var found []string
	for p := range h.packages {
		first, _, _ := strings.Cut(p, "/")
		if !h.isMain[p] && !slices.Contains(strings.Split(p, "/"), "internal") && !slices.Contains([]string{"test", "bench", "tools", "examples"}, first) {
			found = append(found, p)
		}
	}
	slices.Sort(found)
	return len(found), found
}

// top lists the files and folders at the top, without hidden ones and without what is built there.
func (*house) top() (int, []string) {
	entries, err := os.ReadDir(".")
	if err != nil {
		return 0, []string{err.Error()}
	}
	var found []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !slices.Contains([]string{"bin", "condense"}, e.Name()) {
			found = append(found, e.Name())
		}
	}
	return len(found), []string{strings.Join(found, " ")}
}

// most returns the highest number, and which are above a limit.
func most(counts map[string]int, limit int) (int, []string) {
	highest := 0
	for _, n := range counts {
		highest = max(highest, n)
	}
	_, which := above(counts, limit)
	return highest, which
}

// above returns how many numbers are above a limit, and which, the highest first.
func above(counts map[string]int, limit int) (int, []string) {
	var which []string
	for name, n := range counts {
		if n > limit {
			which = append(which, fmt.Sprintf("%5d  %s", n, name))
		}
	}
	slices.Sort(which)
	slices.Reverse(which)
	return len(which), which
}

// sum returns the sum, and the highest.
func sum(counts map[string]int) (int, []string) {
	total := 0
	for _, n := range counts {
		total += n
	}
	const shown = 20
	_, which := above(counts, 0)
	return total, which[:min(shown, len(which))]
}
