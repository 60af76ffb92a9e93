package plugincmd

import (
	"embed"
	"text/template"

	"github.com/condensehq/condense/internal/lab/judge"
)

// ciFiles are the workflow of each language and the floors. Their marks are [[ ]]: GitHub's own are {{ }}.
//
//go:embed templates/ci
var ciFiles embed.FS

// renderCI returns the files of --ci.
func renderCI(lang string, n *naming) ([]templateFile, error) {
	var files []templateFile
	for _, f := range []struct{ from, to string }{{"judge.yaml", judge.File}, {lang + ".yml", ".github/workflows/plugin.yml"}} {
		text, err := ciFiles.ReadFile("templates/ci/" + f.from)
		if err != nil {
			return nil, err
		}
		if text, err = n.fill(template.New(f.to).Delims("[[", "]]"), text); err != nil {
			return nil, err
		}
		files = append(files, templateFile{f.to, text, 0o644})
	}
	return files, nil
}

// Condense is the version of condense that CI installs: the version in the plugin's go.mod, or the newest.
func (n *naming) Condense() string {
	if n.Replace != "" || !release().MatchString(n.Version) {
		return "latest"
	}
	return n.Version
}
