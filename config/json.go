package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// parseJSON reads one JSON value. Positions are exact, of syntax errors too.
func parseJSON(text []byte) (*node, *syntaxError) {
	if !utf8.Valid(text) {
		return nil, invalidUTF8(text)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return &node{shape: mapping, at: position{1, 1}}, nil
	}
	r := jsonReader{index: newTextIndex(text), dec: json.NewDecoder(bytes.NewReader(text)), nodes: maxNodes}
	r.dec.UseNumber()
	root, err := r.read(0)
	if err != nil {
		return nil, err
	}
	if _, end := r.dec.Token(); !errors.Is(end, io.EOF) {
		return nil, &syntaxError{r.here(), "not valid JSON: something follows the end"}
	}
	return root, nil
}

type jsonReader struct {
	index *textIndex
	dec   *json.Decoder
	nodes int
}

// here returns where the next token begins.
func (r *jsonReader) here() position {
	i := int(r.dec.InputOffset())
	for i < len(r.index.text) && bytes.IndexByte([]byte(" \t\r\n,:"), r.index.text[i]) >= 0 {
		i++
	}
	return r.index.position(i)
}

func (r *jsonReader) token() (json.Token, *syntaxError) {
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
	return nil, &syntaxError{at, "not valid JSON: " + problem}
}

func (r *jsonReader) read(depth int) (*node, *syntaxError) {
	out := &node{at: r.here()}
	if r.nodes--; r.nodes < 0 {
		return nil, &syntaxError{out.at, "more values than any configuration needs"}
	}
	if depth > maxDepth {
		return nil, &syntaxError{out.at, "nested too deeply"}
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
		out.text = tok.String()
		if v, err := strconv.ParseInt(out.text, 10, 64); err == nil {
			out.value = v
			return out, nil
		}
		v, err := tok.Float64()
		if err != nil {
			return nil, &syntaxError{out.at, fmt.Sprintf("%s is no number that can be used", abbreviate(out.text))}
		}
		out.value = v
	case string:
		out.text, out.value = tok, tok
	case bool:
		out.text, out.value = strconv.FormatBool(tok), tok
	}
	return out, nil
}

func (r *jsonReader) array(out *node, depth int) (*node, *syntaxError) {
	out.shape = sequence
	for r.dec.More() {
		item, err := r.read(depth + 1)
		if err != nil {
			return nil, err
		}
		out.items = append(out.items, item)
	}
	_, err := r.token()
	return out, err
}

func (r *jsonReader) object(out *node, depth int) (*node, *syntaxError) {
	out.shape = mapping
	seen := map[string]position{}
	for r.dec.More() {
		at := r.here()
		tok, err := r.token()
		if err != nil {
			return nil, err
		}
		key, ok := tok.(string)
		if !ok {
			return nil, &syntaxError{at, "not valid JSON: a key must be a string"}
		}
		if first, twice := seen[key]; twice {
			return nil, &syntaxError{at, fmt.Sprintf("duplicate key %q (first set on line %d)", key, first.line)}
		}
		seen[key] = at
		value, err := r.read(depth + 1)
		if err != nil {
			return nil, err
		}
		out.pairs = append(out.pairs, pair{key, at, value})
	}
	_, err := r.token()
	return out, err
}
