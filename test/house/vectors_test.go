package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit/golden"
)

// TestNoVectorsUnread checks that every file of recorded vectors, the module's or those in
// CONDENSE_GOLDEN_DIR, is replayed by a test or has a recorded reason why not.
func TestNoVectorsUnread(t *testing.T) {
	replayed := replayedVectors(t)
	for _, dir := range []string{"internal/testkit/golden/testdata", os.Getenv(golden.DirEnv)} {
		if dir == "" {
			continue
		}
		files, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s holds no vectors (%v)", dir, err)
		}
		for _, file := range files {
			name := strings.TrimSuffix(filepath.Base(file), ".json")
			switch reason, excused := golden.Unread[name]; {
			case !replayed[name] && !excused:
				t.Errorf("no test replays %s: add one, or a reason to golden.Unread", file)
			case replayed[name] && excused:
				t.Errorf("golden.Unread excuses %s (%s), which a test replays", name, reason)
			}
		}
	}
}

// replayedVectors returns the string literals of all test files that import the package golden.
func replayedVectors(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(".", func(p string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(p, "_test.go") || p == "test/house/vectors_test.go" {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil || !strings.Contains(string(data), `"`+module+`/internal/testkit/golden"`) {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, data, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, err := strconv.Unquote(lit.Value); err == nil {
					names[s] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
