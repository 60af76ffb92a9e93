package house_test

import (
	"cmp"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docLink matches what a doc comment means as a link to a name of its package: [Name] and [Type.Name].
var docLink = regexp.MustCompile(`(?:^|[\s(])\[\*?([A-Z]\w*(?:\.[A-Z]\w*)?)\](?:[\s.,:;)]|$)`)

// farLink matches a link to a name of another package: [pkg.Name] and [pkg.Type.Name], with the package's path or its name.
var farLink = regexp.MustCompile(`\[\*?((?:[\w.-]+/)*[a-z]\w*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?\]`)

// TestDocLinks: a name in brackets in a doc comment exists, in all packages, so that `go doc` and pkg.go.dev lead there.
func TestDocLinks(t *testing.T) {
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		for _, s := range skipped {
			if d.Name() == s {
				return fs.SkipDir
			}
		}
		if p != "." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		set := token.NewFileSet()
		files, err := filepath.Glob(filepath.Join(p, "*.go"))
		if err != nil {
			return err
		}
		byPackage := map[string][]*ast.File{}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
			if err != nil {
				return err
			}
			byPackage[f.Name.Name] = append(byPackage[f.Name.Name], f)
		}
		for _, all := range byPackage {
			checkLinks(t, set, all, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkLinks(t *testing.T, set *token.FileSet, files []*ast.File, folder string) {
	t.Helper()
	pkg, err := doc.NewFromFiles(set, files, module+"/"+folder, doc.AllDecls|doc.PreserveAST)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	values := func(all []*doc.Value) {
		for _, v := range all {
			for _, n := range v.Names {
				known[n] = true
			}
		}
	}
	values(pkg.Consts)
	values(pkg.Vars)
	for _, f := range pkg.Funcs {
		known[f.Name] = true
	}
	for _, typ := range pkg.Types {
		known[typ.Name] = true
		values(typ.Consts)
		values(typ.Vars)
		for _, f := range typ.Funcs {
			known[f.Name] = true
		}
		for _, m := range typ.Methods {
			known[typ.Name+"."+m.Name] = true
		}
		for _, spec := range typ.Decl.Specs {
			fieldsOf(spec, typ.Name, known)
		}
	}
	find, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	imported := map[string]string{} // paths by name
	for _, f := range files {
		for _, i := range f.Imports {
			p := strings.Trim(i.Path.Value, `"`)
			if i.Name != nil {
				imported[i.Name.Name] = p
			} else if of := find(p); of != nil {
				imported[of.Name()] = p
			}
		}
	}
	for _, f := range files {
		for _, group := range f.Comments {
			for _, m := range farLink.FindAllStringSubmatch(group.Text(), -1) {
				if !leads(find(cmp.Or(imported[m[1]], m[1])), m[2], m[3]) {
					t.Errorf("%s: %s leads nowhere: import the package, or write its path", set.Position(group.Pos()), m[0])
				}
			}
			for _, m := range docLink.FindAllStringSubmatch(group.Text(), -1) {
				if !known[m[1]] {
					t.Errorf("%s: [%s] leads nowhere", set.Position(group.Pos()), m[1])
				}
			}
		}
	}
}

// leads reports whether a package has a name, and its type a field or method.
func leads(pkg *types.Package, name, member string) bool {
	if pkg == nil {
		return false
	}
	o := pkg.Scope().Lookup(name)
	if o == nil || member == "" {
		return o != nil
	}
	found, _, _ := types.LookupFieldOrMethod(o.Type(), true, pkg, member)
	return found != nil
}

// fieldsOf notes the fields of a struct and the methods of an interface.
func fieldsOf(spec ast.Spec, name string, known map[string]bool) {
	typ, ok := spec.(*ast.TypeSpec)
	if !ok || typ.Name.Name != name {
		return
	}
	var list *ast.FieldList
	switch x := typ.Type.(type) {
	case *ast.StructType:
		list = x.Fields
	case *ast.InterfaceType:
		list = x.Methods
	default:
		return
	}
	for _, f := range list.List {
		for _, n := range f.Names {
			known[name+"."+n.Name] = true
		}
	}
}
