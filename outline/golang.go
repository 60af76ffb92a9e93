package outline

import (
	"go/ast"
	goparser "go/parser"
	gotoken "go/token"
)

// maxParsed bounds, in bytes, what is parsed: the parser takes some 30 bytes a byte.
const maxParsed = 4 << 20

// scanGo asks the parser of the standard library, and reads keywords if the file does not
// parse. Go is the only language whose grammar is at hand.
func scanGo(l *language, src string) []Definition {
	if len(src) > maxParsed {
		return scanKeywords(goGrammar)(l, src)
	}
	set := gotoken.NewFileSet()
	file, err := goparser.ParseFile(set, "", src, goparser.SkipObjectResolution)
	if err != nil {
		return scanKeywords(goGrammar)(l, src)
	}
	var fs []found
	at := func(p gotoken.Pos) int { return set.PositionFor(p, false).Offset }
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			f := found{name: d.Name.Name, kind: "func", start: at(d.Pos()), body: -1, end: at(d.End()) - 1}
			if d.Recv != nil {
				f.kind = "method"
			}
			if d.Body != nil {
				f.body = at(d.Body.Lbrace)
			}
			fs = append(fs, f)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				s, ok := s.(*ast.TypeSpec)
				if !ok {
					continue
				}
				start := s.Pos()
				if !d.Lparen.IsValid() {
					start = d.Pos()
				}
				f := found{name: s.Name.Name, kind: "type", start: at(start), body: -1, end: at(s.End()) - 1}
				var methods *ast.FieldList
				switch t := s.Type.(type) {
				case *ast.StructType:
					f.kind, f.body = "struct", at(t.Fields.Opening)
				case *ast.InterfaceType:
					f.kind, f.body = "interface", at(t.Methods.Opening)
					methods = t.Methods
				}
				fs = append(fs, f)
				if methods == nil {
					continue
				}
				for _, m := range methods.List {
					if _, ok := m.Type.(*ast.FuncType); ok && len(m.Names) == 1 {
						fs = append(fs, found{
							name: m.Names[0].Name, kind: "method",
							start: at(m.Names[0].Pos()), body: -1, end: at(m.End()) - 1, depth: 1,
						})
					}
				}
			}
		}
	}
	return definitions(src, fs)
}
