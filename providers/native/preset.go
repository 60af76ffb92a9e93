package native

import "github.com/condensehq/condense/core"

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
	for i := range presets {
		if presets[i].Name == name {
			return &presets[i]
		}
	}
	return &presets[0]
}

// presetConfig returns the settings of a preset.
func presetConfig(name string) (Config, bool) {
	p := findPreset(name)
	c := p.settings
	c.Preset = p.Name
	return c, p.Name == name
}

func presetNames() []string {
	var names []string
	for _, p := range presets {
		names = append(names, p.Name)
	}
	return names
}
