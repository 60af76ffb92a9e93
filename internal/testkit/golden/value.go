package golden

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"strings"

	"github.com/google/go-cmp/cmp"
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
	return exactNumbers(v), nil
}

// exactNumbers replaces every number in v by its exact decimal value.
func exactNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		return canonical(v)
	case []any:
		for i := range v {
			v[i] = exactNumbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = exactNumbers(v[k])
		}
	}
	return v
}

// canonical spells a number as its digits, without zeros at either end, times a power of
// ten, so that two numbers are equal exactly when their spellings are. No float is
// involved: nothing is rounded, and nothing overflows.
func canonical(n json.Number) json.Number {
	digits, sign := strings.CutPrefix(string(n), "-")
	exponent := new(big.Int)
	if i := strings.IndexAny(digits, "eE"); i >= 0 {
		// The decoder has checked the syntax; SetString takes a sign of either kind.
		exponent.SetString(digits[i+1:], 10)
		digits = digits[:i]
	}
	if whole, fraction, ok := strings.Cut(digits, "."); ok {
		digits = whole + fraction
		exponent.Sub(exponent, big.NewInt(int64(len(fraction))))
	}
	digits = strings.TrimLeft(digits, "0")
	trimmed := strings.TrimRight(digits, "0")
	if trimmed == "" {
		return "0"
	}
	exponent.Add(exponent, big.NewInt(int64(len(digits)-len(trimmed))))
	if sign {
		trimmed = "-" + trimmed
	}
	if exponent.Sign() == 0 {
		return json.Number(trimmed)
	}
	return json.Number(trimmed + "e" + exponent.String())
}

// diffValues says how got differs from want, or nothing.
func diffValues(want, got any) string { return cmp.Diff(want, got) }
