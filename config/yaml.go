package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// parseYAML reads one YAML document. Positions are exact to the character for keys and
// values; where a text is refused, see yamlFault.
func parseYAML(text []byte) (*node, *syntaxError) {
	if !utf8.Valid(text) {
		return nil, invalidUTF8(text)
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return &node{shape: mapping, at: position{1, 1}}, nil
	} else if err != nil {
		return nil, yamlFault(text, err)
	}
	var next yaml.Node
	if err := dec.Decode(&next); err == nil {
		return nil, &syntaxError{position{next.Line, next.Column}, "a second document begins here; one file holds one configuration"}
	} else if !errors.Is(err, io.EOF) {
		return nil, yamlFault(text, err)
	}
	r := yamlReader{nodes: maxNodes, open: map[*yaml.Node]bool{}}
	return r.read(&doc, 0)
}

func invalidUTF8(text []byte) *syntaxError {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return &syntaxError{newTextIndex(text).position(i), "not valid UTF-8"}
		}
		i += size
	}
	return &syntaxError{position{1, 1}, "not valid UTF-8"}
}

// A yamlReader turns YAML nodes into ours: aliases are followed, merge keys applied.
type yamlReader struct {
	nodes int
	open  map[*yaml.Node]bool // with an anchor, being read
}

func (r *yamlReader) read(n *yaml.Node, depth int) (*node, *syntaxError) {
	at := position{n.Line, n.Column}
	if r.nodes--; r.nodes < 0 {
		return nil, &syntaxError{at, "more values than any configuration needs, aliases counted each time"}
	}
	if depth > maxDepth {
		return nil, &syntaxError{at, "nested too deeply"}
	}
	if n.Anchor != "" {
		if r.open[n] {
			return nil, &syntaxError{at, fmt.Sprintf("&%s contains itself", n.Anchor)}
		}
		r.open[n] = true
		defer delete(r.open, n)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		child, err := r.read(n.Content[0], depth)
		if err == nil && child.shape == scalar && child.value == nil {
			return &node{shape: mapping, at: position{1, 1}}, nil // comments only
		}
		return child, err
	case yaml.AliasNode:
		child, err := r.read(n.Alias, depth+1)
		if child != nil {
			copied := *child
			copied.at = at
			child = &copied
		}
		return child, err
	case yaml.SequenceNode:
		out := &node{shape: sequence, at: at}
		for _, c := range n.Content {
			item, err := r.read(c, depth+1)
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, item)
		}
		return out, nil
	case yaml.MappingNode:
		return r.mapping(n, depth)
	case yaml.ScalarNode:
		return yamlScalar(n)
	}
	return nil, &syntaxError{at, "not a value"}
}

func (r *yamlReader) mapping(n *yaml.Node, depth int) (*node, *syntaxError) {
	out := &node{shape: mapping, at: position{n.Line, n.Column}}
	seen := map[string]position{}
	var merged []*node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		at := position{k.Line, k.Column}
		value, err := r.read(v, depth+1)
		if err != nil {
			return nil, err
		}
		if k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		if k.Kind != yaml.ScalarNode {
			return nil, &syntaxError{at, "a key must be a plain name"}
		}
		if k.ShortTag() == "!!merge" {
			if value.shape == sequence {
				merged = append(merged, value.items...)
			} else {
				merged = append(merged, value)
			}
			continue
		}
		if first, twice := seen[k.Value]; twice {
			return nil, &syntaxError{at, fmt.Sprintf("duplicate key %q (first set on line %d)", k.Value, first.line)}
		}
		seen[k.Value] = at
		out.pairs = append(out.pairs, pair{k.Value, at, value})
	}
	for _, m := range merged {
		if m.shape != mapping {
			return nil, &syntaxError{m.at, "<< merges mappings only"}
		}
		for _, p := range m.pairs {
			if _, own := seen[p.key]; !own {
				seen[p.key] = p.at
				out.pairs = append(out.pairs, p)
			}
		}
	}
	return out, nil
}

func yamlScalar(n *yaml.Node) (*node, *syntaxError) {
	out := &node{at: position{n.Line, n.Column}, text: n.Value}
	fail := func() (*node, *syntaxError) {
		return nil, &syntaxError{out.at, fmt.Sprintf("%q is not a valid %s", abbreviate(n.Value), n.ShortTag())}
	}
	switch n.ShortTag() {
	case "!!null":
	case "!!bool":
		var v bool
		if n.Decode(&v) != nil {
			return fail()
		}
		out.value = v
	case "!!int":
		var v int64
		if n.Decode(&v) != nil {
			var f float64 // beyond 64 bits
			if n.Decode(&f) != nil {
				return fail()
			}
			out.value = f
			return out, nil
		}
		out.value = v
	case "!!float":
		var v float64
		if n.Decode(&v) != nil {
			return fail()
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, &syntaxError{out.at, fmt.Sprintf("%s is no number that can be used", n.Value)}
		}
		out.value = v
	default: // texts, and dates, which nobody here wants as anything else
		out.value = n.Value
	}
	return out, nil
}
