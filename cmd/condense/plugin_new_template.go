package main

import (
	"bytes"
	"embed"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"text/template"

	"github.com/condensehq/condense/plugin-sdk/node"
	"github.com/condensehq/condense/plugin-sdk/proto"
	"github.com/condensehq/condense/plugin-sdk/python"
)

// templates holds a folder for every language. A file that ends in .tmpl is a template for
// a [naming] and loses that ending; all others are copied. go.mod and *.go need it to keep
// the go command from building them, and gitignore has no dot here to keep git from using it.
//
//go:embed all:templates/go all:templates/node all:templates/python
var templates embed.FS

// A templateLang is what plugins in a language need beyond their files.
type templateLang struct {
	replaces bool     // they are built with a checkout of condense
	sdk      embed.FS // copied into the plugin
	protocol string   // file of the plugin that gets condense.proto, if any
	next     func(*naming) []string
}

var templateLangs = map[string]templateLang{
	"go": {replaces: true, next: func(n *naming) []string {
		var first []string
		if n.Replace == "" {
			first = []string{"go mod tidy"}
		}
		return append(first,
			"go test ./...",
			"condense plugin dev .",
			"go build -o "+n.Program+" .",
			"condense plugin test ./"+n.Program,
		)
	}},
	"node": {sdk: node.Files, protocol: "condense/condense.proto", next: func(*naming) []string {
		return []string{"npm ci --ignore-scripts", "npm test", "condense plugin dev .", "condense plugin test plugin.mjs --folder ."}
	}},
	"python": {sdk: python.Files, next: func(*naming) []string {
		return []string{"/usr/bin/python3 -B -m unittest", "condense plugin dev .", "condense plugin test plugin.py --folder ."}
	}},
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
			t, err := template.New(name).Option("missingkey=error").Parse(string(data))
			if err != nil {
				return nil, err
			}
			var b bytes.Buffer
			if err := t.Execute(&b, n); err != nil {
				return nil, err
			}
			name, data = base, b.Bytes()
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

// templateSources returns the templates, the SDK and the protocol by their names in the new plugin.
func templateSources(lang string) (map[string][]byte, error) {
	root, err := fs.Sub(templates, "templates/"+lang)
	if err != nil {
		return nil, err
	}
	l, sources := templateLangs[lang], map[string][]byte{}
	for _, from := range []fs.FS{root, l.sdk} {
		err := fs.WalkDir(from, ".", func(name string, d fs.DirEntry, err error) error {
			if d != nil && (d.Name() == "node_modules" || d.Name() == "__pycache__") {
				return fs.SkipDir // left by the tests of the templates
			}
			if err != nil || d.IsDir() {
				return err
			}
			sources[name], err = fs.ReadFile(from, name)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	if l.protocol != "" {
		sources[l.protocol] = proto.Condense
	}
	return sources, nil
}
