package disk

import (
	"os"
	"path/filepath"
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
