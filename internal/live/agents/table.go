package agents

import "github.com/condensehq/condense/internal/live/wire"

// A Point says how an agent is pointed at the gateway. In its texts {anthropic} is the gateway's
// address as Anthropic's SDKs take it, {openai} the one that OpenAI's take, which ends in /v1,
// {host} the address alone, and {file} the path of File.
type Point struct {
	Env      map[string]string // variables
	Merge    string            // the variable among them whose JSON is merged into what the user has in it
	Args     []string          // arguments before the user's
	File     string            // a file for this run, outside of the user's folders; its name is FileName
	FileName string
	Settings []Settings // files that the agent reads, in the order in which they win; the last is the user's own
}

// A Settings file can set the addresses that Point sets.
type Settings struct {
	Path   string            // ~ is the home folder; relative: of the project
	Dir    string            // the variable that replaces the folder of Path
	Inside string            // the variable that has the whole path
	Format string            // json or toml
	Keys   map[string]string // for each API, where the address is: names with dots between them
	Wins   bool              // over what Point sets
	Upward bool              // also in folders above the working directory
}

// The names of the APIs that addresses belong to, as in --upstream.
const (
	Anthropic = "anthropic"
	OpenAI    = "openai"
)

// Any is an agent that is not known.
var Any = &all[len(all)-1]

// attribution is the first block of Claude Code's system prompt. Older versions have a text for
// every request in it, newer ones a hash of the first message and a mark of sub-agents.
var attribution = []wire.Volatile{{Begin: "x-anthropic-billing-header:"}}

var claudeKeys = map[string]string{Anthropic: "env.ANTHROPIC_BASE_URL"}

var openCodeKeys = map[string]string{Anthropic: "provider.anthropic.options.baseURL", OpenAI: "provider.openai.options.baseURL"}

var all = []Agent{
	{
		Name: "claude-code", Aliases: []string{"claude"}, Title: "Claude Code", Command: "claude",
		Get: "npm install -g @anthropic-ai/claude-code", Tested: "2.1.330",
		Point: Point{
			Env: map[string]string{"ANTHROPIC_BASE_URL": "{anthropic}"},
			Settings: []Settings{
				{Path: "/etc/claude-code/managed-settings.json", Format: "json", Keys: claudeKeys, Wins: true},
				{Path: "/Library/Application Support/ClaudeCode/managed-settings.json", Format: "json", Keys: claudeKeys, Wins: true},
				{Path: ".claude/settings.local.json", Format: "json", Keys: claudeKeys, Wins: true},
				{Path: ".claude/settings.json", Format: "json", Keys: claudeKeys, Wins: true},
				{Path: "~/.claude/settings.json", Dir: "CLAUDE_CONFIG_DIR", Format: "json", Keys: claudeKeys, Wins: true},
			},
		},
		userAgents: []string{"claude-cli/", "claude-code/"},
		sessions:   []string{"X-Claude-Code-Session-Id"},
		subAgents:  []string{"X-Claude-Code-Agent-Id"},
		Volatile:   attribution,
		summaries:  []string{"CRITICAL: Respond with TEXT ONLY", "Your task is to create a detailed summary of "},
	},
	{
		Name: "codex", Title: "Codex", Command: "codex",
		Get: "npm install -g @openai/codex", Tested: "0.169.0",
		Point: Point{
			// The provider remains "openai": its name selects the sessions that resume offers.
			Args: []string{"-c", `openai_base_url="{openai}"`},
			Settings: []Settings{
				{Path: "~/.codex/config.toml", Dir: "CODEX_HOME", Format: "toml", Keys: map[string]string{OpenAI: "openai_base_url"}},
			},
		},
		userAgents: []string{"codex_", "codex-", "Codex"},
		sessions:   []string{"Session-Id", "Session_id"},
		subAgents:  []string{"Thread-Id"},
		summaries:  []string{"You are performing a CONTEXT CHECKPOINT COMPACTION"},
	},
	{
		Name: "opencode", Title: "OpenCode", Command: "opencode",
		Get: "npm install -g opencode-ai", Tested: "1.18.33",
		Point: Point{
			Env:   map[string]string{"OPENCODE_CONFIG_CONTENT": `{"provider":{"anthropic":{"options":{"baseURL":"{anthropic}/v1"}},"openai":{"options":{"baseURL":"{openai}"}}}}`},
			Merge: "OPENCODE_CONFIG_CONTENT",
			Settings: []Settings{
				{Path: "opencode.jsonc", Format: "json", Keys: openCodeKeys, Upward: true},
				{Path: "opencode.json", Format: "json", Keys: openCodeKeys, Upward: true},
				{Inside: "OPENCODE_CONFIG", Format: "json", Keys: openCodeKeys},
				{Path: "~/.config/opencode/opencode.jsonc", Dir: "XDG_CONFIG_HOME/opencode", Format: "json", Keys: openCodeKeys},
				{Path: "~/.config/opencode/opencode.json", Dir: "XDG_CONFIG_HOME/opencode", Format: "json", Keys: openCodeKeys},
			},
		},
		userAgents: []string{"opencode/"},
		sessions:   []string{"X-Opencode-Session", "X-Session-Affinity", "X-Session-Id", "Session-Id"},
		systems:    []system{{"You are a title generator", Title}, {"You are a context summarization agent", Summary}},
	},
	{
		Name: "pi", Title: "pi", Command: "pi",
		Get: "npm install -g @earendil-works/pi-coding-agent", Tested: "0.74.2",
		Point: Point{
			Args:     []string{"-e", "{file}"},
			FileName: "condense.ts",
			File: `export default function (pi) {
  pi.registerProvider("anthropic", { baseUrl: "{anthropic}" });
  pi.registerProvider("openai", { baseUrl: "{openai}" });
}
`,
			Settings: []Settings{{
				Path: "~/.pi/agent/models.json", Dir: "PI_CODING_AGENT_DIR", Format: "json",
				Keys: map[string]string{Anthropic: "providers.anthropic.baseUrl", OpenAI: "providers.openai.baseUrl"},
			}},
		},
		head:     []byte("operating inside pi, a coding agent harness"),
		sessions: []string{"Session_id", "Session-Id"},
		systems:  []system{{"You are a context summarization assistant", Summary}},
	},
	{
		Name: "gemini", Aliases: []string{"gemini-cli"}, Title: "Gemini CLI", Command: "gemini",
		Get:        "npm install -g @google/gemini-cli",
		Refuse:     "it speaks Gemini's own API, which the gateway does not read yet",
		userAgents: []string{"GeminiCLI/"},
	},
	{
		Name: "aider", Title: "aider", Command: "aider", Get: "see https://aider.chat",
		Point: Point{Env: map[string]string{"OPENAI_API_BASE": "{openai}", "ANTHROPIC_API_BASE": "{anthropic}", "ANTHROPIC_BASE_URL": "{anthropic}"}},
	},
	{
		Name: "goose", Title: "goose", Command: "goose", Get: "see https://block.github.io/goose",
		Point: Point{Env: map[string]string{"OPENAI_HOST": "{host}", "ANTHROPIC_HOST": "{host}"}},
	},
	{
		Name: "qwen", Aliases: []string{"qwen-code"}, Title: "Qwen Code", Command: "qwen", Get: "npm install -g @qwen-code/qwen-code",
		Point:      Point{Env: map[string]string{"OPENAI_BASE_URL": "{openai}"}},
		userAgents: []string{"QwenCode/"},
		summaries:  []string{"First, reason in your scratchpad. Then, generate the "},
	},
	{ // the last row
		Name: "any", Title: "any other agent",
		Point: Point{Env: map[string]string{
			"ANTHROPIC_BASE_URL": "{anthropic}", "ANTHROPIC_API_BASE": "{anthropic}", "OPENAI_BASE_URL": "{openai}", "OPENAI_API_BASE": "{openai}",
		}},
		Volatile: attribution,
	},
}
