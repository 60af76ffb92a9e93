package agents

import "github.com/condensehq/condense/internal/live/wire"

// The names of the APIs that addresses belong to, as in --upstream.
const (
	Anthropic = "anthropic"
	OpenAI    = "openai"
	Gemini    = "gemini"
	Vertex    = "vertex"
	Bedrock   = "bedrock"
	Azure     = "azure"
)

// Any is an agent that is not known.
var Any = &all[len(all)-1]

// attribution is the first block of Claude Code's system prompt. Older versions have a text for
// every request in it, newer ones a hash of the first message and a mark of sub-agents.
var attribution = []wire.Volatile{{Begin: "x-anthropic-billing-header:"}}

var all = []Agent{
	{
		Name: "claude-code", Aliases: []string{"claude"}, Title: "Claude Code", Command: "claude",
		Get: "npm install -g @anthropic-ai/claude-code", Tested: "2.1.330",
		userAgents: []string{"claude-cli/", "claude-code/"},
		Reserve:    33_000, // for its summary and an answer
		Set: Sources{
			Window: Source{Env: "CLAUDE_CODE_AUTO_COMPACT_WINDOW", Key: []string{"env", "CLAUDE_CODE_AUTO_COMPACT_WINDOW"}},
			More: []Source{
				{Env: "CLAUDE_CODE_AUTO_COMPACT_WINDOW", Key: []string{"env", "CLAUDE_CODE_AUTO_COMPACT_WINDOW"}},
				{Key: []string{"autoCompactWindow"}},
				{Env: "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", Key: []string{"env", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"}},
				{Env: "DISABLE_AUTO_COMPACT", Key: []string{"env", "DISABLE_AUTO_COMPACT"}},
				{Key: []string{"modelSettings"}},
			},
		},
		// It takes no more than the window of the model, and has smaller ones for some, which change from day to day.
		Later:     &Later{Env: map[string]string{"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "1000000"}, Reserve: 33_000},
		sessions:  []string{"X-Claude-Code-Session-Id"},
		subAgents: []string{"X-Claude-Code-Agent-Id"},
		Volatile:  attribution,
		Reminders: []string{
			"The task tools haven't been used recently", "The TodoWrite tool hasn't been used recently",
			"Plan mode still active", "The date has changed.", "Token usage: ", "USD budget: ",
		},
		summaries: []string{"CRITICAL: Respond with TEXT ONLY", "Your task is to create a detailed summary of "},
	},
	{
		Name: "codex", Title: "Codex", Command: "codex",
		Get: "npm install -g @openai/codex", Tested: "0.171.0",
		userAgents: []string{"codex_", "codex-", "Codex"},
		sessions:   []string{"Session-Id", "Session_id"},
		Set: Sources{
			Window: Source{Flags: []string{"model_context_window"}, Key: []string{"model_context_window"}},
			Limit:  Source{Flags: []string{"model_auto_compact_token_limit"}, Key: []string{"model_auto_compact_token_limit"}},
		},
		// The limit is at most the share of the whole; of what has grown since it last condensed it can be any, and 95 % are the end. 0.132.
		Later: &Later{
			Args:  []string{"-c", `model_auto_compact_token_limit_scope="body_after_prefix"`, "-c", "model_auto_compact_token_limit=100000000"},
			Share: 0.95,
		},
		// codex debug models --bundled
		Windows: []Window{
			{Model: "gpt-6.2-sol", Tokens: 500_000},
			{Model: "gpt-6.1-", Tokens: 500_000},
			{Model: "gpt-daybreak-red", Tokens: 372_000},
			{Model: "gpt-", Tokens: 272_000},
			{Model: "codex-", Tokens: 272_000},
		},
		Share:     0.9,
		subAgents: []string{"Thread-Id"},
		summaries: []string{"You are performing a CONTEXT CHECKPOINT COMPACTION"},
		Deferred:  `eferred tool namespaces:\n`, // Deferred, Added deferred
	},
	{
		Name: "opencode", Title: "OpenCode", Command: "opencode",
		Get: "npm install -g opencode-ai", Tested: "1.18.33",
		userAgents: []string{"opencode/"},
		Reserve:    32_000, // its longest answer
		Input:      20_000,
		Set:        Sources{Spare: Source{Key: []string{"compaction", "reserved"}}, Off: Source{Key: []string{"compaction", "auto"}}},
		Later:      &Later{Key: []string{"compaction", "reserved"}, Value: "8000", Reserve: 32_000, Input: 8000}, // for Input alone
		sessions:   []string{"X-Opencode-Session", "X-Session-Affinity", "X-Session-Id", "Session-Id"},
		systems:    []system{{"You are a title generator", Title}, {"You are a context summarization agent", Summary}},
	},
	{
		Name: "pi", Title: "pi", Command: "pi",
		Get: "npm install -g @earendil-works/pi-coding-agent", Tested: "0.74.2",
		Reserve:  16_384, // the same for its summary: less would shorten that
		Set:      Sources{Spare: Source{Key: []string{"compaction", "reserveTokens"}}, Off: Source{Key: []string{"compaction", "enabled"}}},
		head:     []byte("operating inside pi, a coding agent harness"),
		sessions: []string{"Session_id", "Session-Id"},
		systems:  []system{{"You are a context summarization assistant", Summary}},
	},
	{
		Name: "gemini", Aliases: []string{"gemini-cli"}, Title: "Gemini CLI", Command: "gemini",
		Get: "npm install -g @google/gemini-cli", Tested: "0.61.0",
		userAgents: []string{"GeminiCLI"},
		Share:      0.5, // it takes no file of ours for a run: nobody but its owner may write into the folders above
		Set:        Sources{Share: Source{Key: []string{"model", "compressionThreshold"}}},
		summaries:  []string{"First, reason in your scratchpad. Then, generate the "},
	},
	{
		Name: "copilot", Title: "GitHub Copilot CLI", Command: "copilot",
		Get: "npm install -g @github/copilot", Tested: "1.0.102",
		head: []byte("You are the GitHub Copilot CLI"),
	},
	{
		Name: "kilo", Title: "Kilo CLI", Command: "kilo",
		Get: "npm install -g @kilocode/cli", Tested: "7.7.7",
		userAgents: []string{"kilo/"},
		Reserve:    32_000, // as OpenCode
		sessions:   []string{"X-Session-Affinity", "X-Session-Id"},
	},
	{
		Name: "cline", Title: "Cline CLI", Command: "cline",
		Get: "npm install -g cline", Tested: "3.0.65",
		head: []byte("You are Cline, an AI coding agent"),
	},
	{
		Name: "aider", Title: "aider", Command: "aider", Get: "see https://aider.chat",
	},
	{
		Name: "goose", Title: "goose", Command: "goose", Get: "see https://block.github.io/goose",
	},
	{
		Name: "qwen", Aliases: []string{"qwen-code"}, Title: "Qwen Code", Command: "qwen",
		Get: "npm install -g @qwen-code/qwen-code", Tested: "0.15.10",
		userAgents: []string{"QwenCode/"},
		Share:      0.7, // 0.85 from 0.17 on
		Set:        Sources{Share: Source{Key: []string{"context", "autoCompactThreshold"}}},
		summaries:  []string{"First, reason in your scratchpad. Then, generate the "},
	},
	{ // the last row
		Name: "any", Title: "any other agent",
		Volatile: attribution,
	},
}
