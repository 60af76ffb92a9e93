package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/tree"
)

// layer checks v by itself.
func (v Values) layer(opts *Options) (*checker, Errors) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, Errors{{Origin: Origin{Kind: FromProgram}, Problem: err.Error()}}
	}
	root, syntax := tree.ParseJSON(text)
	if syntax != nil {
		return nil, Errors{{Origin: Origin{Kind: FromProgram}, Problem: syntax.Problem}}
	}
	c := newChecker(opts, opts.Dir, func(tree.Position) Origin { return Origin{Kind: FromProgram} })
	c.check(root, atTop)
	return c, c.errs
}

// An Amount is a number of tokens, or a percentage of the window if Percent is not 0.
type Amount struct {
	Tokens  int
	Percent float64
}

// of returns the amount in tokens for a window of that size, rounded up.
func (a Amount) of(window int) int {
	if a.Percent == 0 {
		return a.Tokens
	}
	return ceil(a.Percent * float64(window) / 100)
}

// String returns a in the form of a file: "4000", "2%".
func (a Amount) String() string {
	if a.Percent != 0 {
		return strconv.FormatFloat(a.Percent, 'f', -1, 64) + "%"
	}
	return strconv.Itoa(a.Tokens)
}

// MarshalJSON writes a number, or a string with a percent sign.
func (a Amount) MarshalJSON() ([]byte, error) {
	if a.Percent != 0 {
		return json.Marshal(a.String())
	}
	return json.Marshal(a.Tokens)
}

// UnmarshalJSON reads the output of MarshalJSON.
func (a *Amount) UnmarshalJSON(text []byte) error {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	switch v := v.(type) {
	case float64:
		*a = Amount{Tokens: int(v)}
		return nil
	case string:
		if p, err := strconv.ParseFloat(strings.TrimSuffix(v, "%"), 64); err == nil && strings.HasSuffix(v, "%") {
			*a = Amount{Percent: p}
			return nil
		}
	}
	return fmt.Errorf("%s is neither a number of tokens nor a percentage", text)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// ceil rounds up to a whole number of tokens, with a tolerance for binary fractions.
func ceil(v float64) int { return int(math.Ceil(v - 1e-9)) }
