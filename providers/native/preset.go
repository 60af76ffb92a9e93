package native

import "slices"

// A preset is a way of working that somebody else has described: nothing but defaults for
// the settings.
type preset struct {
	Name     string
	Doc      string
	Source   string
	settings Config
}

// presets are all there are, the default one first. docs/native.md is made of this table.
var presets = []preset{
	{
		Name:   "fresh_start",
		Doc:    "The summary replaces everything before it. Commands of the task, signatures of the files read and the environment are added to it.",
		Source: "Roo-Code since January 2026",
		settings: Config{
			SummaryRole: roleUser, Heading: "## Conversation Summary\n",
			MaxOutput: 8192, Prompt: "handover", PromptAs: "user",
			Request: requestText, ReadFirst: true, Margin: 0.1, ClipChars: 8000, Overlap: 0.05, MaxCalls: 32, Parallel: 4,
			UserWordsShare: 0.1, UserWordsTokens: 20_000, KeepUnanswered: true, CommandBlocks: true, Environment: true, FoldedChars: 50_000,
			Parity: "none",
		},
	},
	{
		Name:   "keep_recent",
		Doc:    "The first message, the summary of the middle, the last three messages.",
		Source: "Roo-Code until January 2026",
		settings: Config{
			KeepFirst: 1, RecentMessages: 3,
			SummaryRole: roleAssistant,
			MaxOutput:   8192, Prompt: "handover", PromptAs: "system",
			Request: requestText, ReadFirst: true, Margin: 0.1, ClipChars: 8000, Overlap: 0.05, MaxCalls: 32, Parallel: 4,
			UserWordsShare: 0.1, UserWordsTokens: 20_000, KeepUnanswered: true, CommandBlocks: true,
			Parity: "none",
		},
	},
	{
		Name:   "rolling",
		Doc:    "The summary, an acknowledgement, the newest messages from a user's turn on. Each summary takes up the one before.",
		Source: "Ripple",
		settings: Config{
			RecentMessages: 6, RecentShare: 0.25, SnapToUser: true,
			SummaryRole: roleUser, Heading: "Summary of the conversation so far:\n", Acknowledgement: "Understood. I continue from this summary.",
			MaxOutput: 4096, Prompt: "state", PromptAs: "user",
			Request: requestText, Margin: 0.1, ClipChars: 6000, Overlap: 0.05, MaxCalls: 32, Parallel: 4,
			UserWordsShare: 0.1, UserWordsTokens: 20_000, KeepUnanswered: true, CommandBlocks: true,
			Parity: "none",
		},
	},
	{
		Name:   "sections",
		Doc:    "Older stretches of the conversation become a short summary each; what is recent stays.",
		Source: "a description of a hybrid of window and summaries, 2026",
		settings: Config{
			RecentShare: 0.25,
			SummaryRole: roleAssistant, Heading: "[Condensed %d messages]: ", SectionMessages: 20,
			MaxOutput: 200, Prompt: "section", PromptAs: "user",
			Request: requestText, Margin: 0.1, ClipChars: 8000, Overlap: 0.05, MaxCalls: 64, Parallel: 4,
			UserWordsShare: 0.1, UserWordsTokens: 20_000, KeepUnanswered: true, CommandBlocks: true,
			Parity: "none",
		},
	},
}

// presetConfig returns the settings of a preset, which share nothing with the table.
func presetConfig(name string) (Config, bool) {
	for _, p := range presets {
		if p.Name == name {
			c := p.settings
			c.Preset = name
			c.FoldedIgnore = slices.Clone(c.FoldedIgnore)
			if c.FoldedIgnore == nil {
				c.FoldedIgnore = []string{}
			}
			return c, true
		}
	}
	return Config{}, false
}

func presetNames() []string {
	var names []string
	for _, p := range presets {
		names = append(names, p.Name)
	}
	return names
}
