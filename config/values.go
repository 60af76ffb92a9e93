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
	"github.com/condensehq/condense/model"
)

// Values are the content of a configuration file. Their JSON form is a JSON configuration
// file. Absent (nil) means inherit, and so does -1 for numbers.
type Values struct {
	DefaultProfile string `json:"default_profile,omitempty"`
	Tuning
	Profiles  map[string]ProfileValues  `json:"profiles,omitempty"`
	Modes     map[string]ModeValues     `json:"modes,omitempty"`
	Providers map[string]ProviderValues `json:"providers,omitempty"`
	Models    map[string]ModelValues    `json:"models,omitempty"`
	Serve     *ServeValues              `json:"serve,omitempty"`
}

// YAML returns v as a configuration file, without the values that v leaves to the defaults. The
// error is that of [New] for values that are not valid by themselves.
func (v Values) YAML() (string, error) {
	layer, errs := v.layer(&Options{})
	if err := errs.ordered(); err != nil {
		return "", err
	}
	return writeYAML((&Config{}).showObject(layer.values, atTop, nil))
}

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
	c.check(root)
	return c, c.errs
}

// Tuning are the values that the top level, a profile and a mode may set. Percentages are 0 to
// 100, of the context window; MinGain is of the tokens that can be removed.
type Tuning struct {
	Auto             *bool    `json:"auto,omitempty"`
	Threshold        *float64 `json:"threshold,omitempty"`
	Chain            []string `json:"chain,omitzero"` // nil inherits; empty is truncation only
	Target           *float64 `json:"target,omitempty"`
	Buffer           *float64 `json:"buffer,omitempty"`
	MaxContextTokens *Amount  `json:"max_context_tokens,omitempty"`
	MinGain          *float64 `json:"min_gain,omitempty"`
	MinNewTokens     *Amount  `json:"min_new_tokens,omitempty"`
	MinSize          *Amount  `json:"min_size,omitempty"`
	MaxOutput        *int     `json:"max_output,omitempty"`
	Tokenizer        *string  `json:"tokenizer,omitempty"`
	Prompt           *string  `json:"prompt,omitempty"`
	Originals        *string  `json:"originals,omitempty"`
}

// ProfileValues are a profile: what an agent is configured to use.
type ProfileValues struct {
	Extends string `json:"extends,omitempty"`
	Preset  string `json:"preset,omitempty"`
	Model   string `json:"model,omitempty"`
	Window  *int   `json:"window,omitempty"`
	Tuning
}

// ModeValues are a mode: what an agent is doing.
type ModeValues struct {
	Profile string `json:"profile,omitempty"`
	Tuning
}

// ProviderValues are a provider: a strategy, built in or a plugin, with settings.
type ProviderValues struct {
	Strategy string          `json:"strategy,omitempty"`
	Plugin   string          `json:"plugin,omitempty"`
	SHA256   string          `json:"sha256,omitempty"`
	Folder   string          `json:"folder,omitempty"`
	Env      []string        `json:"env,omitempty"`
	Timeout  string          `json:"timeout,omitempty"`
	Settings json.RawMessage `json:"settings,omitempty"`
}

// ModelValues are a model: a language model and how to reach it.
type ModelValues struct {
	API        string       `json:"api,omitempty"`
	Model      string       `json:"model,omitempty"`
	BaseURL    string       `json:"base_url,omitempty"`
	APIKeyEnv  string       `json:"api_key_env,omitempty"`
	APIKeyFile string       `json:"api_key_file,omitempty"`
	Window     int          `json:"window,omitempty"`
	MaxOutput  int          `json:"max_output,omitempty"`
	Images     *bool        `json:"images,omitempty"`
	Price      *model.Price `json:"price,omitempty"`
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

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

// ceil rounds up to a whole number of tokens, with a tolerance for binary fractions.
func ceil(v float64) int { return int(math.Ceil(v - 1e-9)) }
