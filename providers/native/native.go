// Package native has a language model write a summary of a conversation, which takes the place of the messages.
package native

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// Name is the name of the strategy.
const Name = "native"

const doc = `Has a language model write a summary that takes the place of older messages.
A preset gives the result its form: "fresh_start" (Roo-Code) replaces everything,
"keep_recent" keeps the first message and the last three, "rolling" (Ripple) keeps the
newest messages from a user's turn on, "sections" writes a short summary for every stretch
of the conversation. What the user typed is repeated word for word, up to a limit. A
conversation that is longer than the model's window is read in parts.`

// Strategy returns the strategy, for a registry.
func Strategy() registry.Strategy {
	return registry.Define(Name, doc, DefaultConfig,
		func(_ context.Context, c Config, env registry.Env) (core.CondensationProvider, error) {
			gen, err := env.Model(c.Model)
			if err != nil {
				return nil, fmt.Errorf("settings: model: %w", err)
			}
			if c.PromptFile != "" && !filepath.IsAbs(c.PromptFile) {
				c.PromptFile = filepath.Join(env.Dir, c.PromptFile)
			}
			return New(c, gen)
		}).Only(core.Hides | core.Inserts | core.AsksModels)
}

// settings are the user's settings and the style of the preset.
type settings struct {
	Config
	style
}

// A Provider has a model write summaries. It is safe for concurrent use if the model is,
// and does not call it if nothing can be gained.
type Provider struct {
	c      settings
	gen    model.Generator
	system string // the instructions of the model
	prompt string // the instructions for a summary
	fold   folder
}

// New returns a provider with settings that are valid. It reads the file that they name; a
// relative path starts in the working directory.
func New(c Config, gen model.Generator) (*Provider, error) {
	if gen == nil {
		return nil, errors.New("settings: model: there is none")
	}
	style := findPreset(c.Preset).style
	p := &Provider{c: settings{c, style}, gen: gen, system: systemPrompt, prompt: style.prompt, fold: foldFiles}
	own := c.PromptText
	if c.PromptFile != "" {
		data, err := os.ReadFile(c.PromptFile)
		if err != nil {
			return nil, fmt.Errorf("settings: prompt_file: %w", err)
		}
		if own = string(data); strings.TrimSpace(own) == "" {
			return nil, fmt.Errorf("settings: prompt_file: %s is empty", c.PromptFile)
		}
	}
	if own = strings.TrimSpace(own); own != "" {
		p.prompt = own
	}
	return p, nil
}

// Frames implements [core.Framer]: every new text begins with words that package dialog knows.
func (p *Provider) Frames() bool { return true }

// Condense implements [core.CondensationProvider]. The error wraps [core.ErrUnavailable] if the model cannot be
// asked. The result that comes with an error has the usage before it.
func (p *Provider) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if req.Counter == nil {
		return nil, fmt.Errorf("%w: no counter", core.ErrInvalidRequest)
	}
	plan, err := newPlan(req, &p.c)
	if err != nil {
		return nil, err
	}
	if plan == nil {
		return &core.Result{Messages: req.Messages}, nil
	}
	s := &scribe{gen: p.gen}
	messages, err := p.write(ctx, s, plan)
	if err != nil {
		return &core.Result{Usage: s.spent()}, err
	}
	res := &core.Result{Messages: messages, Usage: s.spent()}
	if plan.lost > 0 {
		res.Steps = []core.Step{{Name: "user's words", Warning: fmt.Sprintf(
			"%s of the user's words, the oldest first, have no room next to the summary; they stay in the originals", size.Plural(plan.lost, "token"))}}
	}
	return res, nil
}

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
	oneOf("preset", c.Preset, plain.Each(presets, func(p preset) string { return p.Name })...)
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

// A preset is a way of working that somebody else has described: a style, and defaults for
// the settings.
type preset struct {
	Name     string
	Doc      string
	Source   string
	settings Config
	style    style
}

// A style is the part of a preset that no setting changes.
type style struct {
	prompt          string // the instructions for a summary
	promptInSystem  bool   // and it is in the system prompt, unless that is the agent's
	role            core.Role
	heading         string // first words of the summary; %d is the number of messages that it replaces
	acknowledgement string // answer of the assistant to a summary of the user, if a user message is next; empty for none
	sectionMessages int    // for each summary; 0 means one summary for all
	snapToUser      bool   // the recent messages begin with a user message, if there is one
	readFirst       bool   // the model also reads the first messages that are kept
	environment     bool   // the environment details are added to the summary, unless the user requested it
	clipChars       int    // to keep of a tool's result or arguments, if a request is too long
}

// Both of Roo-Code's defaults.
const (
	rooOutput = 8192
	clipChars = 8000
)

// presets are all there are, the default one first. docs/native.md is made of this table.
var presets = []preset{
	{
		Name:     "fresh_start",
		Doc:      "The summary replaces everything before it. Commands of the task, signatures of the files read and the environment are added to it.",
		Source:   "Roo-Code since January 2026",
		settings: Config{Request: requestText, MaxOutput: rooOutput, MaxCalls: 32, UserWordsShare: 0.25, FoldedChars: 50_000},
		style: style{
			prompt: handoverPrompt, role: core.RoleUser, heading: "## Conversation Summary\n",
			readFirst: true, environment: true, clipChars: clipChars,
		},
	},
	{
		Name:     "keep_recent",
		Doc:      "The first message, the summary of the middle, the last three messages, with the call of a result.",
		Source:   "Roo-Code until January 2026",
		settings: Config{Request: requestText, MaxOutput: rooOutput, MaxCalls: 32, KeepFirst: 1, RecentMessages: 3, UserWordsShare: 0.25},
		style:    style{prompt: handoverPrompt, promptInSystem: true, role: core.RoleAssistant, readFirst: true, clipChars: clipChars},
	},
	{
		Name:     "rolling",
		Doc:      "The summary, an acknowledgement, the newest messages from a user's turn on. Each summary takes up the one before.",
		Source:   "Ripple",
		settings: Config{Request: requestText, MaxOutput: 4096, MaxCalls: 32, RecentMessages: 6, RecentShare: 0.25, UserWordsShare: 0.25},
		style: style{
			prompt: statePrompt, role: core.RoleUser, heading: "Summary of the conversation so far:\n",
			acknowledgement: "Understood. I continue from this summary.", snapToUser: true, clipChars: 6000,
		},
	},
	{
		Name:     "sections",
		Doc:      "Older stretches of the conversation become a short summary each, one for every 20 messages; recent messages stay.",
		Source:   "a description of a hybrid of window and summaries, 2026",
		settings: Config{Request: requestText, MaxOutput: 200, MaxCalls: 64, RecentShare: 0.25, UserWordsShare: 0.25},
		style: style{
			prompt: sectionPrompt, role: core.RoleAssistant, heading: "[Condensed %d messages]: ",
			sectionMessages: 20, clipChars: clipChars,
		},
	},
}

// findPreset returns the preset of a name, the default one if there is none.
func findPreset(name string) *preset {
	return &presets[max(0, slices.IndexFunc(presets, func(p preset) bool { return p.Name == name }))]
}

// presetConfig returns the settings of a preset.
func presetConfig(name string) (Config, bool) {
	p := findPreset(name)
	c := p.settings
	c.Preset = p.Name
	return c, p.Name == name
}
