package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/condensehq/condense/internal/plain"
)

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
