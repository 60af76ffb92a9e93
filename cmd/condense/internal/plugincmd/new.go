package plugincmd

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/suggest"
)

func pluginNewCommand(a *cli.App) *cobra.Command {
	var lang, out, replace string
	var ci bool
	cmd := &cobra.Command{
		Use: "new NAME", Short: "Write a plugin to start with", Args: cli.Arguments(1, 1, "want one name, such as tidy; got %d"),
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := newNaming(args[0])
			if err != nil {
				return cli.Usage(cmd, "%w", err)
			}
			l, ok := templateLangs[lang]
			if !ok {
				return cli.Usage(cmd, "--lang: no template in %q%s; there are %s", lang,
					suggest.DidYouMean(lang, langNames()), strings.Join(langNames(), ", "))
			}
			if ci && l.noCI {
				return cli.Usage(cmd, "--ci: there is no workflow for %s", lang)
			}
			if !l.replaces && replace != "" {
				return cli.Usage(cmd, "--replace is for Go; a plugin in %s has everything it needs in its folder", lang)
			}
			if l.replaces {
				if err := n.require(cli.Version(), replace); err != nil {
					return cli.Usage(cmd, "%w", err)
				}
			}
			dir := cmp.Or(out, args[0])
			written, err := writeTemplate(lang, dir, n, ci)
			if err != nil {
				return err
			}
			term.Printf(a.Stderr, "wrote %s: %s\n\nnext:\n  cd %s\n", dir, strings.Join(written, ", "), dir)
			for _, line := range l.next(n) {
				term.Printf(a.Stderr, "  %s\n", line)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&lang, "lang", "go", "`language` of the plugin: "+strings.Join(langNames(), ", "))
	f.StringVarP(&out, "output", "o", "", "`folder` to write to; it must not exist or be empty (default: NAME)")
	f.StringVar(&replace, "replace", "", "`folder` of a checkout of condense to build with")
	f.BoolVar(&ci, "ci", false, "write a workflow for GitHub and floors for 'plugin judge', too")
	cli.Complete(cmd, "lang", langNames())
	return cmd
}

// A naming has the values for the templates.
type naming struct {
	Program  string // condense-my-plugin
	Strategy string // my_plugin
	Module   string // of a plugin in Go
	Version  string // the required version of condense
	Replace  string // a checkout to use instead; may be empty
}

var pluginName = plain.Pattern(`^[a-z][a-z0-9]*([-_][a-z0-9]+)*$`)

func newNaming(name string) (*naming, error) {
	bare := strings.TrimPrefix(name, "condense-")
	if !pluginName().MatchString(bare) {
		return nil, fmt.Errorf("%q is not a name for a plugin: want lower-case letters and digits, with - or _ between words", name)
	}
	program := "condense-" + strings.ReplaceAll(bare, "_", "-")
	return &naming{Program: program, Strategy: strings.ReplaceAll(bare, "-", "_"), Module: "example.com/" + program, Version: "v0.0.0"}, nil
}

// writeTemplate writes the template of a language to a new or empty folder, and returns the
// names of its files.
func writeTemplate(lang, dir string, n *naming, ci bool) (written []string, err error) {
	files, err := renderTemplate(lang, n)
	if err != nil {
		return nil, err
	}
	if ci {
		more, err := renderCI(lang, n)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	switch entries, err := os.ReadDir(dir); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case len(entries) > 0:
		return nil, fmt.Errorf("%s is not empty, and nothing is overwritten; use -o for another folder", dir)
	}
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a source folder is not secret
			return nil, err
		}
		if err := os.WriteFile(path, f.data, f.mode); err != nil {
			return nil, err
		}
		top, _, below := strings.Cut(f.name, "/")
		if below {
			top += "/"
		}
		if !slices.Contains(written, top) {
			written = append(written, top)
		}
	}
	return written, nil
}

// templates has a folder for every language. A file whose name ends in .tmpl is a template for
// a [naming] and loses that suffix; all others are copied. go.mod and *.go need the suffix so
// that the go command does not build them, and gitignore has no dot so that git ignores it.
//
//go:embed all:templates/go all:templates/node all:templates/python
//go:embed all:templates/go-wasm all:templates/rust-wasm all:templates/assemblyscript
var templates embed.FS

// A templateLang has the properties of plugins in a language besides their files.
type templateLang struct {
	base     string // the language whose files it has unless it has its own; may be empty
	noCI     bool
	replaces bool   // they are built with a checkout of condense
	sdk      string // folder of the SDK that is copied into the plugin, if any
	protocol string // file of the plugin that gets condense.proto, if any
	next     func(*naming) []string
}

var templateLangs = map[string]templateLang{
	"go": {replaces: true, next: func(n *naming) []string {
		return append(n.tested(), "condense plugin dev .", "go build -o "+n.Program+" .", "condense plugin test ./"+n.Program)
	}},
	"go-wasm": {base: "go", replaces: true, next: func(n *naming) []string {
		return append(n.tested(), "GOOS=wasip1 GOARCH=wasm go build -o "+n.Program+".wasm .", "condense plugin test ./"+n.Program+".wasm")
	}},
	"rust-wasm": {sdk: "rust", noCI: true, next: func(n *naming) []string {
		return []string{
			"cargo build --release --target wasm32-unknown-unknown",
			"cp target/wasm32-unknown-unknown/release/" + strings.ReplaceAll(n.Program, "-", "_") + ".wasm " + n.Program + ".wasm",
			"condense plugin test ./" + n.Program + ".wasm",
		}
	}},
	"assemblyscript": {sdk: "assemblyscript", noCI: true, next: func(n *naming) []string {
		return []string{"npm install --ignore-scripts", "npm run build", "condense plugin test ./" + n.Program + ".wasm"}
	}},
	"node": {sdk: "node", protocol: "condense/condense.proto", next: func(*naming) []string {
		return []string{"npm ci --ignore-scripts", "npm test", "condense plugin dev .", "condense plugin test plugin.mjs"}
	}},
	"python": {sdk: "python", next: func(*naming) []string {
		return []string{"/usr/bin/python3 -B -m unittest", "condense plugin dev .", "condense plugin test plugin.py"}
	}},
}

// tested are the commands that test a plugin in Go.
func (n *naming) tested() []string {
	if n.Replace == "" {
		return []string{"go mod tidy", "go test ./..."}
	}
	return []string{"go test ./..."}
}

func langNames() []string { return slices.Sorted(maps.Keys(templateLangs)) }

// A templateFile is a file of a new plugin.
type templateFile struct {
	name string // relative, with slashes
	data []byte
	mode os.FileMode
}

// renderTemplate returns the files of a new plugin in the order of their names.
func renderTemplate(lang string, n *naming) ([]templateFile, error) {
	const tmpl = ".tmpl"
	sources, err := templateSources(lang)
	if err != nil {
		return nil, err
	}
	var files []templateFile
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		data := sources[name]
		if base, ok := strings.CutSuffix(name, tmpl); ok {
			name = base
			if data, err = n.fill(template.New(name), data); err != nil {
				return nil, err
			}
		}
		if path.Base(name) == "gitignore" {
			name = path.Join(path.Dir(name), ".gitignore")
		}
		mode := os.FileMode(0o644)
		if bytes.HasPrefix(data, []byte("#!")) {
			mode = 0o755 // embedded files have no mode
		}
		files = append(files, templateFile{name, data, mode})
	}
	return files, nil
}

// fill returns the text of a template with the values of n.
func (n *naming) fill(t *template.Template, text []byte) ([]byte, error) {
	t, err := t.Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, n)
	return b.Bytes(), err
}

// templateSources returns the templates, the SDK and the protocol by their names in the new plugin.
func templateSources(lang string) (map[string][]byte, error) {
	l, sources := templateLangs[lang], map[string][]byte{}
	for _, name := range []string{l.base, lang} {
		if name == "" {
			continue
		}
		root, err := fs.Sub(templates, "templates/"+name)
		if err == nil {
			err = addTree(sources, root)
		}
		if err != nil {
			return nil, err
		}
	}
	sdk, err := sdkFiles(l)
	if len(sdk) > 0 {
		maps.Copy(sources, sdk)
		sources[sdkRecord] = sdkSums(sdk)
	}
	return sources, err
}

// addTree adds the files of a tree by their names in it.
func addTree(files map[string][]byte, from fs.FS) error {
	return fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
		if d != nil && (d.Name() == "node_modules" || d.Name() == "__pycache__") {
			return fs.SkipDir // left by the tests of the templates
		}
		if err != nil || d.IsDir() {
			return err
		}
		files[name], err = fs.ReadFile(from, name)
		return err
	})
}

// release matches versions that can be downloaded, unlike the version of a build from a checkout: (devel),
// v0.0.0-20260102150405-0123456789ab, v1.2.3+dirty.
var release = plain.Pattern(`^v(?:[1-9]\d*\.\d+\.\d+|0\.\d*[1-9]\d*\.\d+|0\.0\.[1-9]\d*)(?:-(?:alpha|beta|rc)\.?\d+)?$`)

// require selects the condense that a plugin in Go is built with: the checkout replace if it
// is set, else the release of this program, else a checkout that is found.
func (n *naming) require(version, replace string) error {
	if replace != "" {
		dir, err := filepath.Abs(replace)
		if err != nil {
			return fmt.Errorf("--replace: %w", err)
		}
		if !isCheckout(dir) {
			return fmt.Errorf("--replace: %s is not a checkout of condense: it has no go.mod with %q", replace, moduleLine)
		}
		n.Replace = quoteModule(dir)
		return nil
	}
	if release().MatchString(version) {
		n.Version = version
		return nil
	}
	if dir, ok := findCheckout(); ok {
		n.Replace = quoteModule(dir)
		return nil
	}
	return errors.New("this program was not built from a release of condense, and no checkout was found: name one with --replace")
}

const moduleLine = "module github.com/condensehq/condense"

func isCheckout(dir string) bool {
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	first, _, _ := strings.Cut(string(data), "\n")
	return err == nil && strings.TrimSpace(first) == moduleLine
}

// findCheckout returns the checkout that the working folder is in, or that this program
// was built from.
func findCheckout() (string, bool) {
	var starts []string
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	// The path of a source file is from the machine of the build, and relative after -trimpath.
	if _, source, _, ok := runtime.Caller(0); ok && filepath.IsAbs(source) {
		starts = append(starts, filepath.Dir(source))
	}
	for _, start := range starts {
		if dir, ok := upward(start, isCheckout); ok {
			return dir, true
		}
	}
	return "", false
}

// quoteModule quotes a path for go.mod if necessary.
func quoteModule(path string) string {
	if strings.ContainsAny(path, " \t\"'`(),;\\") || strings.Contains(path, "//") {
		return fmt.Sprintf("%q", path)
	}
	return path
}
