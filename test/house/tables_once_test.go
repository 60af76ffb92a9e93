package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/toolcall"
)

// elsewhere are the places that have names of the tables on purpose, with the reason: a folder, a file, or one name in a file.
var elsewhere = map[string]string{
	"internal/toolcall/":                             "the tables",
	"internal/dialog/":                               "the tables of tools' names and of the words of programs",
	"internal/testkit/":                              "plays agents and vendors",
	"internal/lab/score/artefacts.go":                "the second implementation, compared below",
	"internal/lab/canary/":                           "plants what no provider may look for by its list",
	"cmd/condense/internal/hook/shape.go":            "where the text is in the results of one agent's tools",
	"examples/peers/episodes.go":                     "another module, which cannot import them",
	"providers/native/ask.go command":                "Roo Code's own expression, longer names included",
	"internal/live/store/postgres.go search_path":    "a setting of PostgreSQL",
	"internal/value/value.go task_list":              "the list in a call, not its tool",
	"internal/codec/items/items.go local_shell_call": "a type of items in OpenAI's API",
}

// excepted reports whether a name may stand in a file.
func excepted(file, name string) bool {
	for place := range elsewhere {
		if place == file+" "+name || !strings.Contains(place, " ") && strings.HasPrefix(file, place) {
			return true
		}
	}
	return false
}

// TestFactsStandOnce: tags of elements that agents put into user messages, and compound names of tools and of their parameters, are
// rows of internal/toolcall and internal/dialog. A list of them anywhere else knows some agents and not others: it shows replaced text
// as current, and the words of a program as the person's.
func TestFactsStandOnce(t *testing.T) {
	t.Parallel()
	parameters := map[string]bool{}
	for _, name := range toolcall.Names(^toolcall.Role(0)) {
		parameters[name] = true
	}
	tag := regexp.MustCompile(`</?([A-Za-z_-]+(?: instructions)?)[ >\[]`)
	used := map[string]bool{}
	eachLiteral(t, func(file string, line int, text string) {
		used[file] = true
		var found []string
		for _, m := range tag.FindAllStringSubmatch(text, -1) {
			if toolcall.Elements()[m[1]].Name != "" {
				found = append(found, m[1])
			}
		}
		folded := strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(text))
		if compound.MatchString(text) && (parameters[folded] || dialog.FamilyOf(text) != dialog.FamilyUnknown) {
			found = append(found, text)
		}
		for _, name := range found {
			used[file+" "+name] = true
			if !excepted(file, name) {
				t.Errorf("%s:%d has %q: use internal/toolcall or internal/dialog", file, line, name)
			}
		}
	})
	for place := range elsewhere {
		if !used[place] && !strings.HasSuffix(place, "/") {
			t.Errorf("%s does not have the name: remove the exception", place)
		}
	}
}

// compound matches names in several parts: others are words.
var compound = regexp.MustCompile(`^[A-Za-z]+(?:_[A-Za-z]+)+$|^[A-Za-z]*[a-z][A-Z][A-Za-z]*$`)

// TestMeasureKnowsTheTools: the measure keeps its own list of tools that models write as XML; each is known as what it is.
func TestMeasureKnowsTheTools(t *testing.T) {
	t.Parallel()
	n := 0
	eachLiteral(t, func(file string, _ int, text string) {
		if file != "internal/lab/score/artefacts.go" || !compound.MatchString(text) || !strings.Contains(text, "_") || toolcall.RoleOf(text) != 0 {
			return
		}
		n++
		if f := dialog.FamilyOf(text); f != dialog.FamilyWrite && f != dialog.FamilyEdit && f != dialog.FamilyRead {
			t.Errorf("%s has %q, which no table knows as a tool that reads or writes", file, text)
		}
	})
	if n < 8 {
		t.Errorf("%d tools found", n)
	}
}

// eachLiteral calls yield with each string of the code that is no test, without the tags of structs.
func eachLiteral(t *testing.T, yield func(file string, line int, text string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || p != "." && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, p, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if f, ok := n.(*ast.Field); ok {
				f.Tag = nil
			}
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, _ := strconv.Unquote(lit.Value)
				yield(filepath.ToSlash(p), set.Position(lit.Pos()).Line, text)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
