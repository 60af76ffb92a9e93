package disk

import (
	"os"
	"path/filepath"
	"regexp"
)

// FromHere returns the form of path to print: relative to the working directory if it is below
// it, and unchanged otherwise.
func FromHere(path string) string {
	wd, err := os.Getwd()
	if err != nil || !filepath.IsAbs(path) {
		return path
	}
	if rel, err := filepath.Rel(wd, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// Pattern escapes a path for use in a pattern of [filepath.Glob].
func Pattern(path string) string { return special.ReplaceAllString(path, `\$0`) }

var special = regexp.MustCompile(`[*?\[\\]`)
