// Package tree reads YAML and JSON into one tree of values with their positions in the
// file. Its limits on depth and number of values bound the cost of a hostile file, if the
// caller bounds its size with [MaxFile].
package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/secret"
)

// A Position in a text, counted from 1. Zero means unknown.
type Position struct{ Line, Column int }

// A Node is a value of a file as written, with its position. All formats are parsed into the
// same tree, so that one check serves them all.
type Node struct {
	At    Position
	Shape Shape
	Value any    // of a scalar: nil, bool, int64, float64 or string
	Text  string // of a scalar, as written, without quotes
	Pairs []Pair
	Items []*Node
}

// A Pair is an entry of a mapping.
type Pair struct {
	Key   string
	At    Position // of the key
	Value *Node
}

// A Shape is the kind of a node.
type Shape int

// The shapes of nodes.
const (
	Scalar Shape = iota
	Mapping
	Sequence
)

// The limits of a file. No sensible configuration comes near them, and a hostile one cannot
// exhaust memory or stack. MaxFile is in bytes.
const (
	MaxFile  = 4 << 20
	maxNodes = 200_000
	maxDepth = 100
)

// Describe returns the type or value of n, for messages about wrong types. It never quotes a long string.
func (n *Node) Describe() string {
	switch n.Shape {
	case Mapping:
		return "a mapping"
	case Sequence:
		return "a list"
	case Scalar:
	}
	switch v := n.Value.(type) {
	case nil:
		return "empty"
	case string:
		if secret.Shown(v) {
			return "a string"
		}
		return fmt.Sprintf("the string %q", plain.Abbreviate(v))
	case bool:
		return fmt.Sprintf("the boolean %t", v)
	default:
		return fmt.Sprintf("the number %v", v)
	}
}

// Plain returns n as decoded JSON: nil, bool, int64, float64, string, []any, map[string]any.
func (n *Node) Plain() any {
	switch n.Shape {
	case Mapping:
		m := make(map[string]any, len(n.Pairs))
		for _, p := range n.Pairs {
			m[p.Key] = p.Value.Plain()
		}
		return m
	case Sequence:
		return append([]any{}, plain.Each(n.Items, (*Node).Plain)...)
	case Scalar:
	}
	return n.Value
}

// An Error is a text that is not valid in its format.
type Error struct {
	At      Position
	Problem string
}

// Parse reads a file in the format yaml or json. The tree of an empty file is a mapping
// without pairs.
func Parse(format string, text []byte) (*Node, *Error) {
	text = []byte(strings.TrimPrefix(string(text), "\ufeff"))
	if format == "yaml" {
		return ParseYAML(text)
	}
	return ParseJSON(text)
}

// Decode reads a table that a program has in it as YAML into a value, as [json.Unmarshal] does. An unknown key is an error.
func Decode(text []byte, into any) error {
	n, fault := ParseYAML(text)
	if fault != nil {
		return fmt.Errorf("%d:%d: %s", fault.At.Line, fault.At.Column, fault.Problem)
	}
	out, err := json.Marshal(n.Plain())
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(out))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// A textIndex turns byte offsets into positions.
type textIndex struct {
	text  []byte
	lines []int // offsets of the first bytes of lines
}

func newTextIndex(text []byte) *textIndex {
	x := &textIndex{text: text, lines: []int{0}}
	for i, b := range text {
		if b == '\n' {
			x.lines = append(x.lines, i+1)
		}
	}
	return x
}

func (x *textIndex) position(offset int) Position {
	offset = min(max(offset, 0), len(x.text))
	line, found := slices.BinarySearch(x.lines, offset)
	if !found {
		line-- // the last one that begins before offset
	}
	return Position{line + 1, utf8.RuneCount(x.text[x.lines[line]:offset]) + 1}
}

// A budget bounds the nodes of one text.
type budget struct{ nodes int }

// take counts a value at a depth of the tree.
func (b *budget) take(at Position, depth int) *Error {
	if b.nodes--; b.nodes < 0 {
		return &Error{at, "more values than any configuration needs; aliases count each time"}
	}
	if depth > maxDepth {
		return &Error{at, "nested too deeply"}
	}
	return nil
}

func duplicate(key string, at, first Position) *Error {
	return &Error{at, fmt.Sprintf("duplicate key %q (first set on line %d)", key, first.Line)}
}

// A Path is a key, one name for each level. Names may contain any character except control
// characters. Since they may contain dots, a path is never handled as a dotted string.
type Path []string

// Sep joins the names of a path into a map key. Names with control characters are refused, so
// none contains it.
const Sep = "\x1f"

// ID returns p as a key of a map.
func (p Path) ID() string { return strings.Join(p, Sep) }

// With returns p and one more name, in new memory.
func (p Path) With(name string) Path {
	q := make(Path, len(p), len(p)+1)
	copy(q, p)
	return append(q, name)
}

var plainName = plain.Pattern(`^[A-Za-z0-9_-]+$`)

// String returns p as users write it: profiles."gpt-4.1".threshold, chain[0].
func (p Path) String() string {
	var b strings.Builder
	before := ""
	for i, name := range p {
		n, err := strconv.Atoi(name)
		inList := err == nil && (before == "chain" || before == "env" || before == "modes" && i == 2) // serve.modes
		before = name
		if inList {
			fmt.Fprintf(&b, "[%d]", n)
			continue
		}
		if i > 0 {
			b.WriteByte('.')
		}
		if plainName().MatchString(name) {
			b.WriteString(name)
		} else {
			b.WriteString(strconv.Quote(name))
		}
	}
	return b.String()
}

// ParseJSON reads one JSON value. All positions are exact, even in syntax errors.
func ParseJSON(text []byte) (*Node, *Error) {
	if !utf8.Valid(text) {
		return nil, invalidUTF8(text)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return &Node{Shape: Mapping, At: Position{1, 1}}, nil
	}
	r := jsonReader{index: newTextIndex(text), dec: json.NewDecoder(bytes.NewReader(text)), budget: budget{maxNodes}}
	r.dec.UseNumber()
	root, err := r.read(0)
	if err != nil {
		return nil, err
	}
	if _, end := r.dec.Token(); !errors.Is(end, io.EOF) {
		return nil, &Error{r.here(), "not valid JSON: text after the end"}
	}
	return root, nil
}

type jsonReader struct {
	index *textIndex
	dec   *json.Decoder
	budget
}

// here returns the position of the next token.
func (r *jsonReader) here() Position {
	i := int(r.dec.InputOffset())
	for i < len(r.index.text) && bytes.IndexByte([]byte(" \t\r\n,:"), r.index.text[i]) >= 0 {
		i++
	}
	return r.index.position(i)
}

func (r *jsonReader) token() (json.Token, *Error) {
	at := r.here()
	tok, err := r.dec.Token()
	if err == nil {
		return tok, nil
	}
	problem := "the file ends too early"
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		problem = syntax.Error()
		at = r.index.position(int(syntax.Offset) - 1)
	} else if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		problem = err.Error()
	}
	return nil, &Error{at, "not valid JSON: " + problem}
}

func (r *jsonReader) read(depth int) (*Node, *Error) {
	out := &Node{At: r.here()}
	if err := r.take(out.At, depth); err != nil {
		return nil, err
	}
	tok, err := r.token()
	if err != nil {
		return nil, err
	}
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '[' {
			return r.array(out, depth)
		}
		return r.object(out, depth)
	case json.Number:
		out.Text = tok.String()
		if v, err := strconv.ParseInt(out.Text, 10, 64); err == nil {
			out.Value = v
			return out, nil
		}
		v, err := tok.Float64()
		if err != nil {
			return nil, &Error{out.At, fmt.Sprintf("the number %s is out of range", plain.Abbreviate(out.Text))}
		}
		out.Value = v
	case string:
		out.Text, out.Value = tok, tok
	case bool:
		out.Text, out.Value = strconv.FormatBool(tok), tok
	}
	return out, nil
}

func (r *jsonReader) array(out *Node, depth int) (*Node, *Error) {
	out.Shape = Sequence
	for r.dec.More() {
		item, err := r.read(depth + 1)
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, item)
	}
	_, err := r.token()
	return out, err
}

func (r *jsonReader) object(out *Node, depth int) (*Node, *Error) {
	out.Shape = Mapping
	seen := map[string]Position{}
	for r.dec.More() {
		at := r.here()
		tok, err := r.token()
		if err != nil {
			return nil, err
		}
		key, ok := tok.(string)
		if !ok {
			return nil, &Error{at, "not valid JSON: a key must be a string"}
		}
		if first, twice := seen[key]; twice {
			return nil, duplicate(key, at, first)
		}
		seen[key] = at
		value, err := r.read(depth + 1)
		if err != nil {
			return nil, err
		}
		out.Pairs = append(out.Pairs, Pair{key, at, value})
	}
	_, err := r.token()
	return out, err
}
