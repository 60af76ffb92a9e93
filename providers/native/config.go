package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Config are the settings of a [Provider]. Tokens are counted by the host's counter, shares
// are of the window of the agent's model.
type Config struct {
	Preset string `json:"preset" enum:"fresh_start|keep_recent|rolling|sections" doc:"the form of the result; it sets the defaults of the other settings"`

	Model      string `json:"model" doc:"name of the configured model that writes; empty means the host's choice"`
	Request    string `json:"request" enum:"text|native|prefix" doc:"how the model is shown the conversation: tools as text, tools as tools, or the unchanged request of the agent, so that the vendor's prompt cache is used"`
	MaxOutput  int    `json:"max_output" doc:"largest size of a summary in tokens; half of the room if that is less"`
	MaxCalls   int    `json:"max_calls" doc:"largest number of calls to the model for one condensation"`
	PromptText string `json:"prompt_text" doc:"your own instructions instead of the preset's"`
	PromptFile string `json:"prompt_file" doc:"file with your own instructions; relative to the folder of the configuration"`

	KeepFirst      int     `json:"keep_first" doc:"messages kept at the beginning, unless they take more than a quarter of the room"`
	RecentMessages int     `json:"recent_messages" doc:"recent messages to keep, with the calls or results that belong to them; 0 means any number. If recent_share is 0 too, none are kept"`
	RecentShare    float64 `json:"recent_share" doc:"largest share of the window for recent messages; 0 means any"`

	UserWordsShare float64 `json:"user_words_share" doc:"share of the window for the user's typed text, kept verbatim next to the summary; 0 means none"`
	FoldedChars    int     `json:"folded_chars" doc:"characters for signatures of the files that were read, newest first; 0 means none"`
}

// DefaultConfig returns the settings of the default preset, fresh_start.
func DefaultConfig() Config {
	c, _ := presetConfig(presets[0].Name)
	return c
}

// UnmarshalJSON sets c to the preset that data names, the default one if it names none, and then applies the
// other settings in data. Unknown settings are errors.
func (c *Config) UnmarshalJSON(data []byte) error {
	named := struct {
		Preset *string `json:"preset"`
	}{&c.Preset}
	if err := json.Unmarshal(data, &named); err != nil {
		return err
	}
	if named.Preset != nil {
		if p, ok := presetConfig(*named.Preset); ok {
			*c = p
		}
	}
	type plain Config // without this method
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode((*plain)(c))
}

// Validate reports every setting that is out of range.
func (c *Config) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	oneOf := func(name, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			fault("%s: %q is none of %s", name, value, strings.Join(allowed, ", "))
		}
	}
	oneOf("preset", c.Preset, presetNames()...)
	oneOf("request", c.Request, requestText, requestNative, requestPrefix)
	for _, n := range []struct {
		name  string
		value int
		least int
	}{
		{"max_output", c.MaxOutput, 1},
		{"max_calls", c.MaxCalls, 1},
		{"keep_first", c.KeepFirst, 0},
		{"recent_messages", c.RecentMessages, 0},
		{"folded_chars", c.FoldedChars, 0},
	} {
		if n.value < n.least {
			fault("%s: %d is less than %d", n.name, n.value, n.least)
		}
	}
	for _, s := range []struct {
		name  string
		value float64
	}{{"recent_share", c.RecentShare}, {"user_words_share", c.UserWordsShare}} {
		if !(s.value >= 0 && s.value <= 1) {
			fault("%s: %v is not between 0 and 1", s.name, s.value)
		}
	}
	if c.PromptText != "" && c.PromptFile != "" {
		fault("prompt_file: prompt_text is set too; use one of them")
	}
	return errors.Join(errs...)
}

// The ways to show a model the conversation.
const (
	requestText   = "text"
	requestNative = "native"
	requestPrefix = "prefix"
)

// Constants of all presets.
const (
	// margin is the share of the window of the model that writes which a request leaves free,
	// because tokenizers differ. Source: Roo-Code's TOKEN_BUFFER_PERCENTAGE.
	margin = 0.1
	// overlap is the share of a part that repeats the one before. Source: docs/decisions/0014-native.md.
	overlap = 0.05
	// parallel is the number of parts read at the same time: few enough for the rate limits of a new account.
	parallel = 4
)
