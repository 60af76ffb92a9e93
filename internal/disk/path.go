package disk

import (
	"os"
	"path/filepath"
)

// FromHere returns path relative to the working directory if it is below it, and
// unchanged otherwise: the form to print.
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
