package config

import (
	"fmt"
	"strings"
)

// A position is a place in a text, counted from 1; zero means unknown.
type position struct{ line, column int }

// A node is a value of a file as it was written, with its place. The three formats are
// parsed into the same tree, so that there is one check for all of them.
type node struct {
	at    position
	shape shape
	value any    // of a scalar: nil, bool, int64, float64 or string
	text  string // of a scalar: as written, without quotes
	pairs []pair
	items []*node
}

// A pair is an entry of a mapping.
type pair struct {
	key   string
	at    position // of the key
	value *node
}

type shape int

const (
	scalar shape = iota
	mapping
	sequence
)

// limits of a file; no sensible configuration comes near them, and a hostile one cannot
// exhaust memory or stack.
const (
	maxFileBytes = 4 << 20
	maxNodes     = 200_000
	maxDepth     = 100
)

// describe says what n is, for messages about wrong types. It never quotes a long text.
func (n *node) describe() string {
	switch n.shape {
	case mapping:
		return "a mapping"
	case sequence:
		return "a list"
	case scalar:
	}
	switch v := n.value.(type) {
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
	if looksSecret(s) {
		return "a text"
	}
	return fmt.Sprintf("the text %q", abbreviate(s))
}

func abbreviate(s string) string {
	const longest = 40
	if r := []rune(s); len(r) > longest {
		return string(r[:longest]) + "…"
	}
	return s
}

// plain returns n as JSON would hold it.
func (n *node) plain() any {
	switch n.shape {
	case mapping:
		m := make(map[string]any, len(n.pairs))
		for _, p := range n.pairs {
			m[p.key] = p.value.plain()
		}
		return m
	case sequence:
		items := make([]any, len(n.items))
		for i, item := range n.items {
			items[i] = item.plain()
		}
		return items
	case scalar:
	}
	return n.value
}

// A syntaxError is a text that its parser refuses.
type syntaxError struct {
	at      position
	problem string
}

// parse reads a file into a tree. The tree of an empty file is a mapping without pairs.
func parse(format string, text []byte) (*node, *syntaxError) {
	text = []byte(strings.TrimPrefix(string(text), "\ufeff"))
	switch format {
	case "yaml":
		return parseYAML(text)
	case "toml":
		return parseTOML(text)
	default:
		return parseJSON(text)
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

func (x *textIndex) position(offset int) position {
	offset = min(max(offset, 0), len(x.text))
	lo, hi := 0, len(x.lines)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; x.lines[mid] <= offset {
			lo = mid
		} else {
			hi = mid
		}
	}
	return position{lo + 1, len([]rune(string(x.text[x.lines[lo]:offset]))) + 1}
}
