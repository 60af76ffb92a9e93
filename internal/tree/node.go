// Package tree reads YAML, TOML and JSON into one tree of values that know where they are in
// the file. The limits on size, depth and number of values bound what a hostile file costs.
package tree

import (
	"fmt"
	"strings"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/secret"
)

// A position is a place in a text, counted from 1; zero means unknown.
type Position struct{ Line, Column int }

// A node is a value of a file as it was written, with its place. The three formats are
// parsed into the same tree, so that there is one check for all of them.
type Node struct {
	At    Position
	Shape Shape
	Value any    // of a scalar: nil, bool, int64, float64 or string
	Text  string // of a scalar: as written, without quotes
	Pairs []Pair
	Items []*Node
}

// A pair is an entry of a mapping.
type Pair struct {
	Key   string
	At    Position // of the key
	Value *Node
}

type Shape int

const (
	Scalar Shape = iota
	Mapping
	Sequence
)

// limits of a file; no sensible configuration comes near them, and a hostile one cannot
// exhaust memory or stack.
const (
	MaxFile  = 4 << 20
	maxNodes = 200_000
	maxDepth = 100
)

// describe says what n is, for messages about wrong types. It never quotes a long text.
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
		return describeText(v)
	case bool:
		return fmt.Sprintf("the boolean %t", v)
	default:
		return fmt.Sprintf("the number %v", v)
	}
}

// describeText quotes s, unless it may be a secret.
func describeText(s string) string {
	if secret.Shown(s) {
		return "a text"
	}
	return fmt.Sprintf("the text %q", plain.Abbreviate(s))
}

// plain returns n as JSON would hold it.
func (n *Node) Plain() any {
	switch n.Shape {
	case Mapping:
		m := make(map[string]any, len(n.Pairs))
		for _, p := range n.Pairs {
			m[p.Key] = p.Value.Plain()
		}
		return m
	case Sequence:
		items := make([]any, len(n.Items))
		for i, item := range n.Items {
			items[i] = item.Plain()
		}
		return items
	case Scalar:
	}
	return n.Value
}

// A syntaxError is a text that its parser refuses.
type Error struct {
	At      Position
	Problem string
}

// parse reads a file into a tree. The tree of an empty file is a mapping without pairs.
func Parse(format string, text []byte) (*Node, *Error) {
	text = []byte(strings.TrimPrefix(string(text), "\ufeff"))
	switch format {
	case "yaml":
		return ParseYAML(text)
	case "toml":
		return ParseTOML(text)
	default:
		return ParseJSON(text)
	}
}

// A textIndex turns byte offsets into positions.
type textIndex struct {
	text  []byte
	lines []int // offsets of the beginnings of lines
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
	lo, hi := 0, len(x.lines)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; x.lines[mid] <= offset {
			lo = mid
		} else {
			hi = mid
		}
	}
	return Position{lo + 1, len([]rune(string(x.text[x.lines[lo]:offset]))) + 1}
}
