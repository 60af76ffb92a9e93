package golden

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
)

// decodeValue decodes one JSON value into nil, bool, string, number, []any and
// map[string]any.
func decodeValue(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return replace(v, canonical), nil
}

// canonical spells a number as a reduced fraction, so that two numbers are equal exactly when their spellings are. No float is
// involved: nothing is rounded, and nothing overflows.
func canonical(v any) any {
	if n, ok := v.(json.Number); ok {
		if r, ok := new(big.Rat).SetString(string(n)); ok {
			return json.Number(r.RatString())
		}
	}
	return v
}

// replace replaces v and every value in it, the inner ones first.
func replace(v any, by func(any) any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = replace(v[i], by)
		}
	case map[string]any:
		for k := range v {
			v[k] = replace(v[k], by)
		}
	}
	return by(v)
}
