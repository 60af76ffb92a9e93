// Package settings reads and changes single values in the settings files of other programs: JSON
// with comments, TOML, and lines of variables. Files are changed as text, so that everything else in them, comments
// and layout included, keeps its bytes.
package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/tailscale/hujson"

	"github.com/condensehq/condense/internal/rawjson"
)

// The formats of files.
const (
	JSON = "json" // with comments and commas after the last member
	TOML = "toml"
	Env  = "env" // lines NAME=VALUE
)

// maxSize is the size in bytes of the largest file that is read. Settings that people write are
// smaller, and the parsers have no limit of depth.
const maxSize = 1 << 20

// A File is the content of a settings file, parsed once.
type File struct {
	Format string
	Text   []byte // of JSON without comments and commas after last members, if it has no fault

	values any
	err    error
}

// Parse returns a file with this text. An empty text is a file without values; Get returns a fault.
func Parse(format string, text []byte) *File {
	f := &File{Format: format, Text: text}
	switch format {
	case TOML:
		f.values, f.err = parseTOML(text)
		return f
	case Env:
		values := map[string]any{}
		for name, at := range variables(text) {
			values[name] = strings.Trim(string(text[at.value.from:at.value.to]), "\"'")
		}
		f.values = values
		return f
	}
	root, err := parse(bytes.Clone(text)) // Standardize writes into it
	if f.err = err; err == nil {
		root.Standardize()
		f.Text = root.Pack()
		d := json.NewDecoder(bytes.NewReader(f.Text))
		d.UseNumber()
		f.err = d.Decode(&f.values)
	}
	return f
}

// Get returns the string, number or truth value at a path of names; ok is false if there is none.
func (f *File) Get(path ...string) (value string, ok bool, err error) {
	at := f.at(path)
	switch at.(type) {
	case string, int64, float64, bool, json.Number:
		return fmt.Sprint(at), f.err == nil, f.err
	}
	return "", false, f.err
}

// Has reports whether there is anything at a path of names.
func (f *File) Has(path ...string) bool { return f.at(path) != nil }

func (f *File) at(path []string) any {
	at := f.values
	for _, name := range path {
		table, _ := at.(map[string]any)
		at = table[name]
	}
	return at
}

// Get returns the value at a path of names in a text.
func Get(format string, text []byte, path ...string) (value string, ok bool, err error) {
	return Parse(format, text).Get(path...)
}

// maxBrackets is how deep brackets may be nested: the parser of TOML has no limit of its own. Brackets
// in strings count too: no file of settings has that many.
const maxBrackets = 1000

func parseTOML(text []byte) (any, error) {
	if len(text) > maxSize {
		return nil, errTooLarge
	}
	depth := 0
	for _, b := range text {
		switch b {
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(depth-1, 0)
		}
		if depth > maxBrackets {
			return nil, errors.New("nested too deeply")
		}
	}
	var values map[string]any
	if err := toml.Unmarshal(bytes.TrimPrefix(text, bom), &values); err != nil {
		return nil, errors.New("not valid TOML: " + strings.TrimPrefix(err.Error(), "toml: "))
	}
	return values, nil
}

// A Change is the result of [Set].
type Change struct {
	Path []string `json:"path"`
	New  string   `json:"new"` // the value
	// Old is the text of the value before, as in the file; empty if there was none. Then Made is
	// how many of the objects on the path were made for it.
	Old  string `json:"old,omitempty"`
	Made int    `json:"made,omitempty"`
	Null bool   `json:"null,omitempty"` // the first of them is in place of a null

	value any // New, as it is written
}

// Set returns text with the value, a string or a [json.Number], at a path of names. Of TOML it sets values outside of
// tables only.
func Set(format string, text []byte, value any, path ...string) ([]byte, Change, error) {
	c := Change{Path: path, New: fmt.Sprint(value), value: value}
	if format != JSON {
		return setLine(format, text, c)
	}
	return setJSON(text, c)
}

// Undo returns text without a change: with the old value or, if there was none, without the value
// and without the objects that were made for it and are empty. If the file has another value at the
// path by now, it is the user's: Undo returns text itself and false.
func Undo(format string, text []byte, c Change) ([]byte, bool, error) {
	if now, ok, err := Get(format, text, c.Path...); err != nil || !ok || now != c.New {
		return text, false, err
	}
	if format != JSON {
		return undoLine(format, text, c), true, nil
	}
	out, err := undoJSON(text, c)
	return out, err == nil, err
}

var errTooLarge = fmt.Errorf("it has more than %d bytes", maxSize)

func parse(text []byte) (hujson.Value, error) {
	if len(text) > maxSize {
		return hujson.Value{}, errTooLarge
	}
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}")
	}
	v, err := hujson.Parse(text)
	if err != nil {
		return v, errors.New("not valid JSON: " + strings.TrimPrefix(err.Error(), "hujson: "))
	}
	if _, ok := v.Value.(*hujson.Object); !ok {
		return v, errors.New("not a JSON object")
	}
	return v, nil
}

// find returns the index of the last member with a name, the effective one if a name is repeated; -1 if there is none.
func find(v *hujson.Value, name string) int {
	for i, m := range slices.Backward(object(v).Members) {
		if l, isLiteral := m.Name.Value.(hujson.Literal); isLiteral && l.String() == name {
			return i
		}
	}
	return -1
}

// object returns the members of an object; none of anything else.
func object(v *hujson.Value) *hujson.Object {
	if o, ok := v.Value.(*hujson.Object); ok {
		return o
	}
	return new(hujson.Object)
}

func quote(v any) string {
	text, _ := rawjson.Encode(v) // a string or number: no error
	return strings.TrimSuffix(string(text), "\n")
}

func splice(text []byte, from, to int, with string) []byte {
	return append(append(append(make([]byte, 0, len(text)+len(with)), text[:from]...), with...), text[to:]...)
}

func setJSON(text []byte, c Change) ([]byte, Change, error) {
	root, err := parse(text)
	if err != nil {
		return nil, c, err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	at, depth := &root, 0
	for ; depth < len(c.Path); depth++ {
		i := find(at, c.Path[depth])
		if i < 0 {
			break
		}
		at = &object(at).Members[i].Value
		if l, ok := at.Value.(hujson.Literal); ok && depth < len(c.Path)-1 && l.Kind() == 'n' { // null: nothing is set
			c.Made, c.Null = len(c.Path)-1-depth, true
			with := layout{}.member(c.Path[depth:], c.value, 0)
			return splice(text, at.StartOffset, at.EndOffset, strings.TrimPrefix(with, quote(c.Path[depth])+":")), c, nil
		}
		if _, ok := at.Value.(*hujson.Object); !ok && depth < len(c.Path)-1 {
			return nil, c, fmt.Errorf("%s is not an object", strings.Join(c.Path[:depth+1], "."))
		}
	}
	if depth == len(c.Path) {
		if _, ok := at.Value.(hujson.Literal); !ok {
			return nil, c, fmt.Errorf("%s is not a text", strings.Join(c.Path, "."))
		}
		c.Old = string(text[at.StartOffset:at.EndOffset])
		return splice(text, at.StartOffset, at.EndOffset, quote(c.value)), c, nil
	}
	o := object(at)
	c.Made = len(c.Path) - 1 - depth
	l := layoutOf(text, &root)
	begin := at.StartOffset + 1
	added, end := l.member(c.Path[depth:], c.value, depth+1), ""
	if len(o.Members) > 0 {
		// New members are the first: then nothing before and after them changes.
		first := text[begin:o.Members[0].Name.StartOffset]
		lead := first[:len(first)-len(bytes.TrimLeft(first, " \t\r\n"))]
		return splice(text, begin, begin, string(lead)+added+","), c, nil
	}
	if l.newline != "" {
		end = l.line(depth)
		if bytes.HasPrefix(bytes.TrimLeft(text[begin:], " \t\r"), []byte("\n")) {
			end = "" // there is one
		}
	}
	return splice(text, begin, begin, l.line(depth+1)+added+end), c, nil
}

// A layout is how the members of a file are indented.
type layout struct{ newline, indent string }

func (l layout) line(depth int) string {
	if l.newline == "" {
		return ""
	}
	return l.newline + strings.Repeat(l.indent, depth)
}

// member is a member with the objects around its value.
func (l layout) member(path []string, value any, depth int) string {
	colon := ": "
	if l.newline == "" {
		colon = ":"
	}
	if len(path) == 1 {
		return quote(path[0]) + colon + quote(value)
	}
	return quote(path[0]) + colon + "{" + l.line(depth+1) + l.member(path[1:], value, depth+1) + l.line(depth) + "}"
}

func layoutOf(text []byte, root *hujson.Value) layout {
	l := layout{"\n", "  "}
	if bytes.Contains(text, []byte("\r\n")) {
		l.newline = "\r\n"
	}
	o := object(root)
	if len(o.Members) == 0 {
		return l
	}
	lead := text[root.StartOffset+1 : o.Members[0].Name.StartOffset]
	at := bytes.LastIndexByte(lead, '\n')
	switch {
	case at < 0 && !bytes.Contains(text[root.StartOffset:root.EndOffset], []byte("\n")):
		return layout{} // everything is on one line
	case at >= 0 && len(bytes.TrimLeft(lead[at+1:], " \t")) == 0 && at+1 < len(lead):
		l.indent = string(lead[at+1:])
	}
	return l
}

func undoJSON(text []byte, c Change) ([]byte, error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	objects := []*hujson.Value{&root} // the objects on the path
	for i, name := range c.Path {
		objects = append(objects, &object(objects[i]).Members[find(objects[i], name)].Value)
	}
	leaf := objects[len(c.Path)]
	if c.Old != "" {
		return splice(text, leaf.StartOffset, leaf.EndOffset, c.Old), nil
	}
	last := len(c.Path) - 1
	for made := c.Made; made > 0 && len(object(objects[last]).Members) == 1 && bare(objects[last]); made-- {
		last--
	}
	if made := objects[last+1]; c.Null && last == len(c.Path)-1-c.Made {
		return splice(text, made.StartOffset, made.EndOffset, "null"), nil
	}
	return cut(text, objects[last], c.Path[last]), nil
}

// bare reports whether there is no comment in an object with one member.
func bare(v *hujson.Value) bool {
	o := object(v)
	m := o.Members[0]
	return len(bytes.TrimSpace(m.Name.BeforeExtra))+len(bytes.TrimSpace(o.AfterExtra))+len(bytes.TrimSpace(m.Value.AfterExtra)) == 0
}

// cut removes a member with its comma and the space before it.
func cut(text []byte, v *hujson.Value, name string) []byte {
	o := object(v)
	n := find(v, name)
	m := &o.Members[n]
	space := " \t\r\n"
	if len(bytes.TrimSpace(m.Name.BeforeExtra)) > 0 {
		space = " \t" // the line end may belong to a comment
	}
	start := len(bytes.TrimRight(text[:m.Name.StartOffset], space))
	end := m.Value.EndOffset + len(m.Value.AfterExtra)
	comma := end < len(text) && text[end] == ','
	switch {
	case comma:
		end++
	case n > 0: // the last member: the comma before it goes
		before := o.Members[n-1].Value
		at := before.EndOffset + len(before.AfterExtra)
		return append(splice(text[:start], at, at+1, ""), text[m.Value.EndOffset:]...)
	default:
		end = m.Value.EndOffset
	}
	if len(o.Members) == 1 && len(bytes.TrimSpace(text[v.StartOffset+1:start])) == 0 && len(bytes.TrimSpace(text[end:v.EndOffset-1])) == 0 {
		return splice(text, v.StartOffset+1, v.EndOffset-1, "")
	}
	return splice(text, start, end, "")
}

var bom = []byte("\ufeff")

// setLine replaces the value outside of tables, or adds it as the first line: only there it is
// outside of every table without a look at the others.
func setLine(format string, text []byte, c Change) ([]byte, Change, error) {
	if len(c.Path) != 1 {
		return nil, c, errors.New("only values outside of tables can be set")
	}
	if _, _, err := Get(format, text, c.Path...); err != nil {
		return nil, c, err
	}
	key, value, sign, quoted := entry(format, text, c.Path[0])
	with := c.New
	if quoted {
		with = quote(c.value)
	}
	if key >= 0 {
		c.Old = string(text[value.from:value.to])
		return splice(text, value.from, value.to, with), c, nil
	}
	newline := "\n"
	if bytes.Contains(text, []byte("\r\n")) {
		newline = "\r\n"
	}
	at := 0
	if bytes.HasPrefix(text, bom) {
		at = len(bom)
	}
	return splice(text, at, at, c.Path[0]+sign+with+newline), c, nil
}

func undoLine(format string, text []byte, c Change) []byte {
	key, value, _, _ := entry(format, text, c.Path[0])
	if c.Old != "" {
		return splice(text, value.from, value.to, c.Old)
	}
	from := bytes.LastIndexByte(text[:key], '\n') + 1
	if bytes.HasPrefix(text[from:], bom) {
		from += len(bom)
	}
	rest, _, _ := bytes.Cut(text[value.to:], []byte("\n"))
	return splice(text, from, min(len(text), value.to+len(rest)+1), "")
}

// entry returns where a key begins, -1 if there is none, and its value; and how the format writes them.
func entry(format string, text []byte, name string) (key int, value span, sign string, quoted bool) {
	if format == TOML {
		key, value = tomlEntry(text, name)
		return key, value, " = ", true
	}
	key = -1
	for n, at := range variables(text) {
		if n == name { // the last one counts
			key, value = at.key, at.value
		}
	}
	return key, value, "=", false
}

type variable struct {
	key   int
	value span
}

// variables yields the names of a file of lines NAME=VALUE, and where they are.
func variables(text []byte) iter.Seq2[string, variable] {
	return func(yield func(string, variable) bool) {
		at := 0
		for line := range bytes.Lines(text) {
			before, rest, found := bytes.Cut(line, []byte("="))
			name := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(string(bytes.TrimPrefix(before, bom))), "export "))
			value := bytes.TrimSpace(rest)
			from := at + len(before) + 1 + max(0, bytes.Index(rest, value))
			if found && !yield(name, variable{at, span{from, from + len(value)}}) {
				return
			}
			at += len(line)
		}
	}
}

type span struct{ from, to int }

// tomlEntry returns where a key outside of tables begins, and its value; -1 if there is none.
func tomlEntry(text []byte, name string) (int, span) {
	var p unstable.Parser
	p.Reset(text)
	for p.NextExpression() {
		e := p.Expression()
		switch e.Kind { //nolint:exhaustive // other expressions are comments
		case unstable.Table, unstable.ArrayTable:
			return -1, span{}
		case unstable.KeyValue:
			it := e.Key()
			it.Next()
			k := it.Node()
			if string(k.Data) != name || !it.IsLast() {
				continue
			}
			v := e.Value()
			from := int(v.Raw.Offset)
			if v.Raw.Length > 0 {
				return int(k.Raw.Offset), span{from, from + int(v.Raw.Length)}
			}
		}
	}
	return -1, span{}
}
