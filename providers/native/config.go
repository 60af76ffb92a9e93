package native

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Config are the settings of a [Provider]. Tokens are those of the host's counter, shares
// are of the window of the agent's model.
type Config struct {
	Preset string `json:"preset" enum:"fresh_start|keep_recent|rolling|sections" doc:"sets the defaults of all other settings"`

	KeepFirst      int     `json:"keep_first" doc:"messages kept at the beginning, unless they take more than a quarter of the room"`
	RecentMessages int     `json:"recent_messages" doc:"largest number of recent messages to keep; 0 means any number. If all three limits of recent messages are 0, none are kept"`
	RecentTokens   int     `json:"recent_tokens" doc:"largest number of tokens of recent messages to keep; 0 means any"`
	RecentShare    float64 `json:"recent_share" doc:"largest share of the window for recent messages; 0 means any"`
	KeepUnanswered bool    `json:"keep_unanswered" doc:"keep what the user typed after the last message of the assistant unchanged, unless it takes more than a quarter of the room"`
	SnapToUser     bool    `json:"snap_to_user" doc:"begin the recent messages with a user message, if there is one"`
	MinTokens      int     `json:"min_tokens" doc:"keep more recent messages until the conversation has this many tokens, but never beyond the target"`
	MinShare       float64 `json:"min_share" doc:"the same as a share of the window; the larger of the two applies"`

	SummaryRole     string `json:"summary_role" enum:"user|assistant" doc:"role of the summary; a conversation never begins with the assistant because of it"`
	Heading         string `json:"heading" doc:"first words of the summary; %d is the number of messages that it replaces"`
	Acknowledgement string `json:"acknowledgement" doc:"answer of the assistant to a summary with the role user, if a user message is next; empty for none"`
	SectionMessages int    `json:"section_messages" doc:"number of messages for each summary; 0 means one summary for all"`

	Model      string `json:"model" doc:"name of the configured model that writes; empty means the host's choice"`
	MaxOutput  int    `json:"max_output" doc:"largest size of a summary in tokens; half of the room if that is less"`
	Prompt     string `json:"prompt" enum:"handover|state|section" doc:"name of built-in instructions"`
	PromptText string `json:"prompt_text" doc:"your own instructions instead of the built-in ones"`
	PromptFile string `json:"prompt_file" doc:"file with your own instructions; relative to the folder of the configuration"`
	PromptAs   string `json:"prompt_as" enum:"user|system" doc:"where the instructions are: in the last message, or in the system prompt"`

	Request   string  `json:"request" enum:"text|native|prefix" doc:"how the model is shown the conversation: tools as text, tools as tools, or the unchanged request of the agent, so that the vendor's prompt cache is used"`
	ReadFirst bool    `json:"read_first" doc:"the model also reads the first messages that are kept"`
	Margin    float64 `json:"margin" doc:"share of the summary model's window that a request leaves free, because tokenizers differ"`
	ClipChars int     `json:"clip_chars" doc:"if a request is too long: characters to keep of a tool's result or arguments"`
	Overlap   float64 `json:"overlap" doc:"if a conversation is read in parts: share of a part that repeats the one before"`
	MaxCalls  int     `json:"max_calls" doc:"largest number of calls to the model for one condensation"`
	Parallel  int     `json:"parallel" doc:"number of parts read at the same time"`

	UserWordsShare  float64  `json:"user_words_share" doc:"share of the window for what the user typed, kept verbatim next to the summary; 0 means none"`
	UserWordsTokens int      `json:"user_words_tokens" doc:"largest number of tokens for it; 0 means any"`
	CommandBlocks   bool     `json:"command_blocks" doc:"repeat <command> blocks of the first message next to every summary"`
	Environment     bool     `json:"environment" doc:"add the environment details to the summary, unless the user requested it"`
	FoldedChars     int      `json:"folded_chars" doc:"characters for signatures of the files that were read, newest first; 0 means none"`
	FoldedIgnore    []string `json:"folded_ignore" doc:"patterns, as in .gitignore, of files without signatures"`

	Parity string `json:"parity" enum:"none|roo" doc:"roo: behave as Roo-Code where this provider is more careful, for comparisons; the host may reject the result"`
}

// DefaultConfig returns the settings of the default preset, fresh_start.
func DefaultConfig() Config {
	c, _ := presetConfig(presets[0].Name)
	return c
}

// UnmarshalJSON sets c to the preset that data names, the default one if it names none,
// and then to what else it says. Unknown settings are errors.
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
	oneOf("summary_role", c.SummaryRole, "user", "assistant")
	oneOf("prompt", c.Prompt, "handover", "state", "section")
	oneOf("prompt_as", c.PromptAs, "user", "system")
	oneOf("request", c.Request, "text", "native", "prefix")
	oneOf("parity", c.Parity, "none", "roo")
	for _, n := range []struct {
		name  string
		value int
		least int
	}{
		{"keep_first", c.KeepFirst, 0},
		{"recent_messages", c.RecentMessages, 0},
		{"recent_tokens", c.RecentTokens, 0},
		{"min_tokens", c.MinTokens, 0},
		{"section_messages", c.SectionMessages, 0},
		{"max_output", c.MaxOutput, 1},
		{"clip_chars", c.ClipChars, 100},
		{"max_calls", c.MaxCalls, 1},
		{"parallel", c.Parallel, 1},
		{"user_words_tokens", c.UserWordsTokens, 0},
		{"folded_chars", c.FoldedChars, 0},
	} {
		if n.value < n.least {
			fault("%s: %d is less than %d", n.name, n.value, n.least)
		}
	}
	for _, s := range []struct {
		name  string
		value float64
		most  float64
	}{
		{"recent_share", c.RecentShare, 1},
		{"min_share", c.MinShare, 1},
		{"margin", c.Margin, 0.9},
		{"overlap", c.Overlap, 0.5},
		{"user_words_share", c.UserWordsShare, 1},
	} {
		if !(s.value >= 0 && s.value <= s.most) {
			fault("%s: %v is not between 0 and %v", s.name, s.value, s.most)
		}
	}
	if c.PromptText != "" && c.PromptFile != "" {
		fault("prompt_file: prompt_text is set too; use one of them")
	}
	if c.Request == requestPrefix && c.PromptAs == "system" {
		fault("prompt_as: with request prefix the system prompt is the agent's; use user")
	}
	return errors.Join(errs...)
}

// The ways to show a model the conversation.
const (
	requestText   = "text"
	requestNative = "native"
	requestPrefix = "prefix"
)

// The roles of a summary.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
)

const parityRoo = "roo"
