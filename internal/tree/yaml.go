package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/condensehq/condense/internal/plain"
)

// ParseYAML reads one YAML document. Positions of keys and values are exact; for positions of syntax errors see
// yamlFault.
func ParseYAML(text []byte) (*Node, *Error) {
	if !utf8.Valid(text) {
		return nil, invalidUTF8(text)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return &Node{Shape: Mapping, At: Position{1, 1}}, nil
	} else if err != nil {
		return nil, yamlFault(text, err)
	}
	var next yaml.Node
	if err := dec.Decode(&next); err == nil {
		return nil, &Error{Position{next.Line, next.Column}, "a second document begins here; a file has one configuration"}
	} else if !errors.Is(err, io.EOF) {
		return nil, yamlFault(text, err)
	}
	r := yamlReader{budget: budget{maxNodes}, open: map[*yaml.Node]bool{}}
	return r.read(&doc, 0)
}

func invalidUTF8(text []byte) *Error {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return &Error{newTextIndex(text).position(i), "not valid UTF-8"}
		}
		i += size
	}
	return &Error{Position{1, 1}, "not valid UTF-8"}
}

// A yamlReader converts the parser's nodes. It follows aliases and applies merge keys.
type yamlReader struct {
	budget
	open map[*yaml.Node]bool // nodes with an anchor that are being read
}

func (r *yamlReader) read(n *yaml.Node, depth int) (*Node, *Error) {
	at := Position{n.Line, n.Column}
	if err := r.take(at, depth); err != nil {
		return nil, err
	}
	if n.Anchor != "" {
		if r.open[n] {
			return nil, &Error{at, fmt.Sprintf("&%s contains itself", n.Anchor)}
		}
		r.open[n] = true
		defer delete(r.open, n)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		child, err := r.read(n.Content[0], depth)
		if err == nil && child.Shape == Scalar && child.Value == nil {
			return &Node{Shape: Mapping, At: Position{1, 1}}, nil // comments only
		}
		return child, err
	case yaml.AliasNode:
		child, err := r.read(n.Alias, depth+1)
		if child != nil {
			copied := *child
			copied.At = at
			child = &copied
		}
		return child, err
	case yaml.SequenceNode:
		out := &Node{Shape: Sequence, At: at}
		for _, c := range n.Content {
			item, err := r.read(c, depth+1)
			if err != nil {
				return nil, err
			}
			out.Items = append(out.Items, item)
		}
		return out, nil
	case yaml.MappingNode:
		return r.mapping(n, depth)
	case yaml.ScalarNode:
		if n.ShortTag() == "!!binary" { // its text would be taken as the value
			return nil, &Error{at, "!!binary is not read: write the text itself"}
		}
		return yamlScalar(n)
	}
	return nil, &Error{at, "not a value"}
}

func (r *yamlReader) mapping(n *yaml.Node, depth int) (*Node, *Error) {
	out := &Node{Shape: Mapping, At: Position{n.Line, n.Column}}
	seen := map[string]Position{}
	var merged []*Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		at := Position{k.Line, k.Column}
		value, err := r.read(v, depth+1)
		if err != nil {
			return nil, err
		}
		if k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		if k.Kind != yaml.ScalarNode {
			return nil, &Error{at, "a key must be a scalar"}
		}
		if k.ShortTag() == "!!merge" {
			if value.Shape == Sequence {
				merged = append(merged, value.Items...)
			} else {
				merged = append(merged, value)
			}
			continue
		}
		if first, twice := seen[k.Value]; twice {
			return nil, duplicate(k.Value, at, first)
		}
		seen[k.Value] = at
		out.Pairs = append(out.Pairs, Pair{k.Value, at, value})
	}
	for _, m := range merged {
		if m.Shape != Mapping {
			return nil, &Error{m.At, "<< merges mappings only"}
		}
		for _, p := range m.Pairs {
			if _, own := seen[p.Key]; !own {
				seen[p.Key] = p.At
				out.Pairs = append(out.Pairs, p)
			}
		}
	}
	return out, nil
}

func yamlScalar(n *yaml.Node) (*Node, *Error) {
	out := &Node{At: Position{n.Line, n.Column}, Text: n.Value}
	fail := func() (*Node, *Error) {
		return nil, &Error{out.At, fmt.Sprintf("%q is not a valid %s", plain.Abbreviate(n.Value), n.ShortTag())}
	}
	switch n.ShortTag() {
	case "!!null":
	case "!!bool":
		var v bool
		if n.Decode(&v) != nil {
			return fail()
		}
		out.Value = v
	case "!!int":
		var v int64
		if n.Decode(&v) != nil {
			var f float64 // beyond 64 bits
			if n.Decode(&f) != nil {
				return fail()
			}
			out.Value = f
			return out, nil
		}
		out.Value = v
	case "!!float":
		var v float64
		if n.Decode(&v) != nil {
			return fail()
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, &Error{out.At, fmt.Sprintf("%s is not a finite number", n.Value)}
		}
		out.Value = v
	default: // strings, and dates: no setting is a date
		out.Value = n.Value
	}
	return out, nil
}
