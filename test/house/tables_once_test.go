package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/toolcall"
)

// TestParametersStandOnce: the names of parameters for the old and the new text of an edit are rows of internal/toolcall. A list of
// them anywhere else knows some agents and not others, and shows replaced text of those as current.
func TestParametersStandOnce(t *testing.T) {
	known := map[string]bool{}
	for _, name := range toolcall.Names(toolcall.Old | toolcall.New) {
		known[name] = true
	}
	const most = 2 // names in one list
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == "testkit" || p == "internal/toolcall" || p != "." && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			var list []ast.Expr
			switch n := n.(type) {
			case *ast.CompositeLit:
				list = n.Elts
			case *ast.CaseClause:
				list = n.List
			}
			var found []string
			for _, e := range list {
				if pair, ok := e.(*ast.KeyValueExpr); ok {
					e = pair.Key
				}
				if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					name, _ := strconv.Unquote(lit.Value)
					if known[strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))] {
						found = append(found, name)
					}
				}
			}
			if len(found) > most {
				t.Errorf("%s lists %q: use internal/toolcall", p, found)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
