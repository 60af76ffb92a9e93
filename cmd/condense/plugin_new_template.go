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
)

// templates holds a folder for every language. A file that ends in .tmpl is a template for
// a [naming] and loses that ending; all others are copied. go.mod and *.go have to end so,
// or the go command would take them for its own; gitignore gets its dot, or git would.
//
//go:embed all:templates/go all:templates/node all:templates/python
var templates embed.FS

// A templateLang is what plugins in a language need beyond their files.
type templateLang struct {
	replaces bool // they are built with a checkout of condense
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
	"node": {next: func(*naming) []string {
		return []string{"npm ci --ignore-scripts", "npm test", "condense plugin dev .", "condense plugin test plugin.mjs --folder ."}
	}},
	"python": {next: func(*naming) []string {
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
	root, err := fs.Sub(templates, "templates/"+lang)
	if err != nil {
		return nil, err
	}
	var files []templateFile
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if d != nil && (d.Name() == "node_modules" || d.Name() == "__pycache__") {
			return fs.SkipDir // left by whoever built this program
		}
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		if base, ok := strings.CutSuffix(name, tmpl); ok {
			t, err := template.New(name).Option("missingkey=error").Parse(string(data))
			if err != nil {
				return err
			}
			var b bytes.Buffer
			if err := t.Execute(&b, n); err != nil {
				return err
			}
			name, data = base, b.Bytes()
		}
		if path.Base(name) == "gitignore" {
			name = path.Join(path.Dir(name), ".gitignore")
		}
		mode := os.FileMode(0o644)
		if bytes.HasPrefix(data, []byte("#!")) {
			mode = 0o755 // embedding forgets who may run it
		}
		files = append(files, templateFile{name, data, mode})
		return nil
	})
	return files, err
}
