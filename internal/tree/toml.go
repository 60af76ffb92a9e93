package tree

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// parseTOML reads a TOML document. Values are from the parser. Positions come from a second walk over its syntax
// tree; they are exact for keys and for values other than arrays, which have the position of their key.
func parseTOML(text []byte) (*Node, *Error) {
	if !utf8.Valid(text) {
		return nil, invalidUTF8(text)
	}
	if at, deep := tomlTooDeep(text); deep {
		return nil, &Error{at, "nested too deeply"}
	}
	w := tomlWalk{index: newTextIndex(text), places: map[string]tomlPlace{}, counts: map[string]int{}, defined: map[string]bool{}}
	w.walk(text)
	if w.deep {
		return nil, &Error{w.deepAt, "nested too deeply"}
	}
	var values map[string]any
	if err := toml.Unmarshal(text, &values); err != nil {
		out := &Error{Problem: "not valid TOML: " + strings.TrimPrefix(err.Error(), "toml: ")}
		if d, ok := errors.AsType[*toml.DecodeError](err); ok {
			out.At.Line, out.At.Column = d.Position()
		} else {
			out.At = w.again
		}
		return nil, out
	}
	return w.node(values, nil, Position{1, 1}), nil
}

// tomlTooDeep finds brackets that would exhaust the stack of the parser, which has no limit of
// its own. It also counts brackets in strings: no string of a configuration has so many.
func tomlTooDeep(text []byte) (Position, bool) {
	depth := 0
	for i, b := range text {
		switch b {
		case '[', '{':
			if depth++; depth > 10*maxDepth {
				return newTextIndex(text).position(i), true
			}
		case ']', '}':
			depth = max(depth-1, 0)
		}
	}
	return Position{}, false
}

// A tomlPlace holds the positions of a key and its value.
type tomlPlace struct{ key, value Position }

// node makes the tree of a decoded value, which is at this position if no other is known.
func (w *tomlWalk) node(v any, p Path, at Position) *Node {
	out := &Node{At: at}
	inner := func(name string, v any) Pair {
		sub := p.With(name)
		where, ok := w.places[sub.ID()]
		if !ok {
			where = tomlPlace{at, at}
		}
		return Pair{name, where.key, w.node(v, sub, where.value)}
	}
	switch v := v.(type) {
	case map[string]any:
		out.Shape = Mapping
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out.Pairs = append(out.Pairs, inner(key, v[key]))
		}
		return out
	case []any:
		out.Shape = Sequence
		for i, item := range v {
			out.Items = append(out.Items, inner(strconv.Itoa(i), item).Value)
		}
		return out
	case int64, bool:
		out.Value, out.Text = v, fmt.Sprint(v)
		return out
	case float64:
		out.Text = strconv.FormatFloat(v, 'g', -1, 64)
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			out.Value = v
			return out
		}
	case time.Time:
		out.Text = v.Format(time.RFC3339Nano)
	default: // strings, local dates and times
		out.Text = fmt.Sprint(v)
	}
	out.Value = out.Text // also of inf and nan: a string is refused where a number is expected
	return out
}

// walk records the positions of everything in a valid document. It stops at the first error.
func (w *tomlWalk) walk(text []byte) {
	w.parser.Reset(text)
	var table Path
	for !w.deep && w.parser.NextExpression() {
		e := w.parser.Expression()
		switch e.Kind { //nolint:exhaustive // other expressions are comments
		case unstable.KeyValue:
			w.keyValue(e, table)
		case unstable.Table:
			var at Position
			table, at = w.keys(e.Key(), nil)
			w.define(table, at)
		case unstable.ArrayTable:
			array, _ := w.keys(e.Key(), nil)
			n := w.counts[array.ID()]
			w.counts[array.ID()] = n + 1
			at := w.places[array.ID()].key
			table = array.With(strconv.Itoa(n))
			w.places[table.ID()] = tomlPlace{at, at}
		}
	}
}

type tomlWalk struct {
	parser  unstable.Parser
	index   *textIndex
	places  map[string]tomlPlace
	defined map[string]bool
	counts  map[string]int // tables of an array seen so far
	deep    bool
	deepAt  Position
	again   Position // of the first duplicate key, for which the parser gives no position
}

func (w *tomlWalk) at(n *unstable.Node) Position {
	return w.index.position(int(n.Raw.Offset))
}

// keys follows the keys of a header or an entry and records each part that is new.
func (w *tomlWalk) keys(it unstable.Iterator, p Path) (Path, Position) {
	var at Position
	for it.Next() {
		k := it.Node()
		at = w.at(k)
		if len(p) > maxDepth {
			w.deep, w.deepAt = true, at
			return p, at
		}
		p = p.With(string(k.Data))
		if _, known := w.places[p.ID()]; !known {
			w.places[p.ID()] = tomlPlace{at, at}
		}
		// In an array of tables, keys belong to the last table.
		if n := w.counts[p.ID()]; n > 0 && !it.IsLast() {
			p = p.With(strconv.Itoa(n - 1))
		}
	}
	return p, at
}

func (w *tomlWalk) define(p Path, at Position) {
	id := p.ID()
	if w.defined[id] && w.again.Line == 0 {
		w.again = at
	}
	w.defined[id] = true
}

func (w *tomlWalk) keyValue(e *unstable.Node, table Path) {
	p, at := w.keys(e.Key(), table)
	w.define(p, at)
	w.places[p.ID()] = tomlPlace{at, w.value(e.Value(), p, at)}
}

// value records the positions in v and returns v's own.
func (w *tomlWalk) value(v *unstable.Node, p Path, key Position) Position {
	if w.deep {
		return key
	}
	if v.Kind == unstable.Array {
		i := 0
		for it := v.Children(); it.Next(); {
			if it.Node().Kind == unstable.Comment {
				continue
			}
			sub := p.With(strconv.Itoa(i))
			i++
			if len(sub) > maxDepth {
				w.deep, w.deepAt = true, key
				return key
			}
			at := w.value(it.Node(), sub, key)
			w.places[sub.ID()] = tomlPlace{at, at}
		}
		return key
	}
	if v.Kind == unstable.InlineTable {
		for it := v.Children(); it.Next(); {
			w.keyValue(it.Node(), p)
		}
	}
	if v.Kind == unstable.Bool { // it has no position, but its text is a slice of the file
		return w.index.position(int(w.parser.Range(v.Data).Offset))
	}
	return w.at(v)
}
