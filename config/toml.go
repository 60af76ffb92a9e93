package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	ktoml "github.com/knadh/koanf/parsers/toml/v2"
	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// parseTOML reads a TOML document. Its values are those of the parser; places come from a
// second walk over its syntax tree, exact for keys and for values other than arrays, which
// are placed at their key.
func parseTOML(text []byte) (*node, *syntaxError) {
	if !utf8.Valid(text) {
		return nil, invalidUTF8(text)
	}
	if at, deep := tomlTooDeep(text); deep {
		return nil, &syntaxError{at, "nested too deeply"}
	}
	w := tomlWalk{index: newTextIndex(text), places: map[string]tomlPlace{}, counts: map[string]int{}, defined: map[string]bool{}}
	w.walk(text)
	if w.deep {
		return nil, &syntaxError{w.deepAt, "nested too deeply"}
	}
	values, err := ktoml.Parser().Unmarshal(text)
	if err != nil {
		out := &syntaxError{problem: "not valid TOML: " + strings.TrimPrefix(err.Error(), "toml: ")}
		if d, ok := errors.AsType[*toml.DecodeError](err); ok {
			out.at.line, out.at.column = d.Position()
		} else {
			out.at = w.again
		}
		return nil, out
	}
	return tomlNode(values, nil, w.places, position{1, 1}), nil
}

// tomlTooDeep finds brackets that would exhaust the stack of the parser, which has no limit
// of its own. It counts those in texts too: no text of a configuration has so many.
func tomlTooDeep(text []byte) (position, bool) {
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
	return position{}, false
}

// A tomlPlace is where a key and its value stand.
type tomlPlace struct{ key, value position }

func tomlNode(v any, p path, places map[string]tomlPlace, at position) *node {
	out := &node{at: at}
	switch v := v.(type) {
	case map[string]any:
		out.shape = mapping
		for _, key := range sortedKeys(v) {
			sub := p.with(key)
			where, ok := places[sub.id()]
			if !ok {
				where = tomlPlace{at, at}
			}
			out.pairs = append(out.pairs, pair{key, where.key, tomlNode(v[key], sub, places, where.value)})
		}
	case []any:
		out.shape = sequence
		for i, item := range v {
			sub := p.with(strconv.Itoa(i))
			where, ok := places[sub.id()]
			if !ok {
				where = tomlPlace{at, at}
			}
			out.items = append(out.items, tomlNode(item, sub, places, where.value))
		}
	case int64:
		out.value, out.text = v, strconv.FormatInt(v, 10)
	case float64:
		out.value, out.text = v, strconv.FormatFloat(v, 'g', -1, 64)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			out.value = out.text // a text is refused wherever a number is expected
		}
	case bool:
		out.value, out.text = v, strconv.FormatBool(v)
	case string:
		out.value, out.text = v, v
	case time.Time:
		out.text = v.Format(time.RFC3339Nano)
		out.value = out.text
	default: // local dates and times
		out.text = fmt.Sprint(v)
		out.value = out.text
	}
	return out
}

// walk notes the places of everything in a valid document; it stops at the first fault.
func (w *tomlWalk) walk(text []byte) {
	w.parser.Reset(text)
	var table path
	for !w.deep && w.parser.NextExpression() {
		e := w.parser.Expression()
		if e.Kind == unstable.KeyValue {
			w.keyValue(e, table)
			continue
		}
		if e.Kind != unstable.Table && e.Kind != unstable.ArrayTable {
			continue // a comment
		}
		table = w.header(e)
		if e.Kind == unstable.ArrayTable {
			n := w.counts[table.id()]
			w.counts[table.id()] = n + 1
			at := w.places[table.id()].key
			table = table.with(strconv.Itoa(n))
			w.places[table.id()] = tomlPlace{at, at}
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
	deepAt  position
	again   position // of the first key that stands twice; of these the parser gives no place
}

func (w *tomlWalk) at(n *unstable.Node) position {
	return w.index.position(int(n.Raw.Offset))
}

// keys follows the keys of a header or an entry, noting each part that is new.
func (w *tomlWalk) keys(it unstable.Iterator, p path) (path, position) {
	var at position
	for it.Next() {
		k := it.Node()
		at = w.at(k)
		if len(p) > maxDepth {
			w.deep, w.deepAt = true, at
			return p, at
		}
		p = p.with(string(k.Data))
		if _, known := w.places[p.id()]; !known {
			w.places[p.id()] = tomlPlace{at, at}
		}
		// Within an array of tables, keys belong to its last table.
		if n := w.counts[p.id()]; n > 0 && !it.IsLast() {
			p = p.with(strconv.Itoa(n - 1))
		}
	}
	return p, at
}

func (w *tomlWalk) header(e *unstable.Node) path {
	p, at := w.keys(e.Key(), nil)
	if e.Kind == unstable.Table {
		w.define(p, at)
	}
	return p
}

func (w *tomlWalk) define(p path, at position) {
	id := p.id()
	if w.defined[id] && w.again.line == 0 {
		w.again = at
	}
	w.defined[id] = true
}

func (w *tomlWalk) keyValue(e *unstable.Node, table path) {
	p, at := w.keys(e.Key(), table)
	w.define(p, at)
	w.places[p.id()] = tomlPlace{at, w.value(e.Value(), p, at)}
}

// value notes the places inside v and returns that of v.
func (w *tomlWalk) value(v *unstable.Node, p path, key position) position {
	if w.deep {
		return key
	}
	if v.Kind == unstable.Array {
		i := 0
		for it := v.Children(); it.Next(); {
			if it.Node().Kind == unstable.Comment {
				continue
			}
			sub := p.with(strconv.Itoa(i))
			i++
			if len(sub) > maxDepth {
				w.deep, w.deepAt = true, key
				return key
			}
			at := w.value(it.Node(), sub, key)
			w.places[sub.id()] = tomlPlace{at, at}
		}
		return key
	}
	if v.Kind == unstable.InlineTable {
		for it := v.Children(); it.Next(); {
			w.keyValue(it.Node(), p)
		}
	}
	if v.Kind == unstable.Bool { // the parser gives no place, but its text is a piece of the file
		return w.index.position(int(w.parser.Range(v.Data).Offset))
	}
	return w.at(v)
}
