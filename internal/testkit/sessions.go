package testkit

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Traces is the environment variable that names a folder of more recorded sessions.
const Traces = "CONDENSE_TRACES_DIR"

// Sessions returns the paths of the recorded sessions of the repository and of the folder
// that [Traces] names. Under go test -short these are the small ones of the repository.
func Sessions(tb testing.TB) []string {
	tb.Helper()
	paths := traces(tb, filepath.Join(root(tb), "testdata", "traces"))
	if testing.Short() {
		const most = 50_000 // bytes compressed
		return slices.DeleteFunc(paths, func(path string) bool {
			info, err := os.Stat(path)
			return err != nil || info.Size() > most
		})
	}
	if dir := os.Getenv(Traces); dir != "" {
		paths = append(paths, traces(tb, dir)...)
	}
	return paths
}

func traces(tb testing.TB, dir string) []string {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.json.gz"))
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no recorded sessions (*.json.gz) in %s (%v)", dir, err)
	}
	return paths
}

// root returns the folder of the module. The test runs in the folder of its package.
func root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			err = os.ErrNotExist
		}
		dir = filepath.Dir(dir)
	}
	tb.Fatalf("find go.mod above the working directory: %v", err)
	return ""
}
