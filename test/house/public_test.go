package house_test

import (
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync"
	"testing"
)

// compiled returns the package of an import path as the compiler knows it; nil if nothing of this module needs it.
var compiled = sync.OnceValues(func() (func(importPath string) *types.Package, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if words := strings.Fields(line); len(words) > 1 {
			files[words[0]] = words[1]
		}
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(p string) (io.ReadCloser, error) { return os.Open(files[p]) })
	return func(p string) *types.Package {
		if files[p] == "" {
			return nil
		}
		pkg, err := from.Import(p)
		if err != nil {
			panic(err)
		}
		return pkg
	}, nil
})

// TestPublicTypes: whoever embeds condense can look up every type that a public package shows: no exported name is an alias of a
// type below internal/, and no signature or field has one.
func TestPublicTypes(t *testing.T) {
	find, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	_, public := survey(t).public()
	for _, folder := range public {
		pkg := find(path.Join(module, folder))
		if pkg == nil {
			t.Fatalf("%s is not compiled", folder)
		}
		for _, name := range pkg.Scope().Names() {
			if o := pkg.Scope().Lookup(name); o.Exported() {
				d := door{pkg: pkg, seen: map[types.Type]bool{}}
				if d.walk(o.Type(), name); d.found != "" {
					t.Errorf("%s: %s, which nobody outside can look up: declare the type here, or do not export the name", folder, d.found)
				}
			}
		}
	}
}

// TestPublicTypesFails: the walk finds what it is for.
func TestPublicTypesFails(t *testing.T) {
	hidden := types.NewNamed(types.NewTypeName(0, types.NewPackage(module+"/internal/x", "x"), "T", nil), types.NewStruct(nil, nil), nil)
	pkg := types.NewPackage(module+"/live", "live")
	field := types.NewStruct([]*types.Var{types.NewField(0, pkg, "F", types.NewPointer(hidden), false)}, nil)
	for name, typ := range map[string]types.Type{
		"alias": types.NewAlias(types.NewTypeName(0, pkg, "A", nil), hidden), "field": field, "unexported type": types.NewNamed(types.NewTypeName(0, pkg, "u", nil), field, nil),
		"result": types.NewSignatureType(nil, nil, nil, nil, types.NewTuple(types.NewVar(0, pkg, "", types.NewSlice(hidden))), false),
	} {
		d := door{pkg: pkg, seen: map[types.Type]bool{}}
		if d.walk(typ, "N"); d.found == "" {
			t.Errorf("nothing is found: %s", name)
		}
	}
}

// A door is what an exported name of a package shows.
type door struct {
	pkg   *types.Package
	seen  map[types.Type]bool
	found string // the first type of internal/
}

// walk visits the types that one shows: exported fields and methods, embedded fields, parameters and results.
func (d *door) walk(typ types.Type, at string) {
	if d.seen[typ] {
		return
	}
	d.seen[typ] = true
	if n, ok := typ.(interface{ Obj() *types.TypeName }); ok && n.Obj().Pkg() != nil {
		if p := n.Obj().Pkg().Path(); p != d.pkg.Path() {
			if strings.HasPrefix(p, module+"/") && strings.Contains(p+"/", "/internal/") {
				d.found = at + " shows " + typ.String()
			}
			return
		}
	}
	switch x := typ.(type) {
	case *types.Alias:
		d.walk(types.Unalias(x), at)
	case *types.Named:
		for m := range types.NewMethodSet(types.NewPointer(x)).Methods() {
			if m.Obj().Exported() {
				d.walk(m.Type(), at+"."+m.Obj().Name())
			}
		}
		d.walk(x.Underlying(), at)
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels, maps
		if m, ok := x.(*types.Map); ok {
			d.walk(m.Key(), at)
		}
		d.walk(x.Elem(), at)
	case *types.Signature:
		for _, all := range []*types.Tuple{x.Params(), x.Results()} {
			for v := range all.Variables() {
				d.walk(v.Type(), at)
			}
		}
	case *types.Struct:
		for f := range x.Fields() {
			if f.Exported() || f.Embedded() {
				d.walk(f.Type(), at+"."+f.Name())
			}
		}
	case *types.Interface:
		for m := range x.Methods() {
			if m.Exported() {
				d.walk(m.Type(), at+"."+m.Name())
			}
		}
	}
}
