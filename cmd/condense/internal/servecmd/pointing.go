package servecmd

import (
	_ "embed"

	"github.com/condensehq/condense/internal/live/agents"
)

// A Point describes how to point an agent at the gateway. In its texts, {base} stands for the gateway's address;
// {openai}, {anthropic/v1} and {vertex/v1} for the addresses of clients that expect /v1 at the end; {foundry} for the
// address of Anthropic's API in Microsoft Foundry; and {file} for the path of File.
type Point struct {
	// Skills is the user's folder of skills, with a folder for each; nil if none is known.
	Skills   *Settings
	Env      map[string]string // variables
	Args     []string          // arguments before the user's
	Without  []string          // first arguments of the user, with which there is no conversation: no Args then
	Merge    string            // a variable with a configuration in JSON: Keys are set in the user's value
	Override string            // a flag for settings in JSON that win over files: Keys of a file that wins over Env
	Status   []Key             // with Override: the status line, whose command is {status}
	FileName string            // a file for one run, outside of the user's folders, with the text File
	File     string
	Provider *Provider
	Recall   *Recall // nil: the agent cannot be given a server of MCP for one run
	Meter    *Meter  // nil: the agent has no plugins that show a line
	Own      *Own    // nil: it does not say what it knows about its models

	Need      *Need             // nil: the agent can be wrapped as it is
	Settings  []Settings        // the files that set addresses, in the order in which they win; Install writes the last
	Elsewhere map[string]string // variables that make the agent use other APIs, and which
}

// A Need is a condition for wrapping an agent.
type Need struct {
	Any  []string // one of these variables is set; nil: the agent cannot be wrapped
	Text string   // for people: why, and what to do
}

// A Settings file can set addresses.
type Settings struct {
	Path   string // ~ is the home folder; relative: of the project
	Dir    string // the variable that replaces the folder of Path, and perhaps a folder in it
	Inside string // the variable that has the path
	Upward bool   // also in the folders above the working directory
	Format string // json or toml
	Keys   []Key
	Recall []Key // entry for the gateway's MCP server, if its address has a recall secret; empty: not possible in this file
	Wins   bool  // over Env
}

// A Recall configures an agent for the gateway's MCP server. In its texts {mcp} is the address, {secret} the recall
// secret for it, and {mcpfile} the path of a file with the text File. Args contain no secret: other users of the
// machine can read arguments.
type Recall struct {
	Args []string
	Env  map[string]string
	Keys []Key // in Merge
	File string
	Add  string // the command that adds the server to the agent's settings, where [Settings] cannot
}

// A Meter is a plugin that shows the status line inside the agent. It runs the program in CONDENSE_STATUSLINE, a JSON array. In its texts
// {plugin} is the path of a file Name with the text Plugin.
type Meter struct {
	Name     string
	Plugin   string
	Args     []string
	Variable string // has the path of a settings file
	File     string // the name of that file
	Settings string // its text
}

//go:embed meter/pi.ts
var piMeter string

//go:embed meter/opencode.js
var openCodeMeter string

// A Key of a settings file has an address.
type Key struct {
	API   string   // the API of the address
	Path  []string // names
	Value string   // for the gateway
}

// A Provider is a choice in a settings file that makes the agent use another address in the same file. Args point
// that address at the gateway; {provider} is its name.
type Provider struct {
	Choice  string // the key with the name
	Builtin string // the name for which Point is right
	Table   string // with the providers
	Address string // the key of a provider with its address
	API     string
	Args    []string
}

var claudeKeys = []Key{{agents.Anthropic, []string{"env", "ANTHROPIC_BASE_URL"}, "{base}"}}

var openCodeKeys = []Key{
	{agents.Anthropic, []string{"provider", "anthropic", "options", "baseURL"}, "{anthropic/v1}"},
	{agents.OpenAI, []string{"provider", "openai", "options", "baseURL"}, "{openai}"},
}

var openCodeMCP = &Recall{Keys: []Key{
	{Path: []string{"mcp", "condense", "type"}, Value: "remote"},
	{Path: []string{"mcp", "condense", "url"}, Value: "{mcp}"},
	{Path: []string{"mcp", "condense", "headers", "X-Condense-Recall"}, Value: "{secret}"},
}}

var openCodeRecall = []Key{{Path: []string{"mcp", "condense", "type"}, Value: "remote"}, {Path: []string{"mcp", "condense", "url"}, Value: "{base}/mcp"}}

func kiloFile(name string) Settings {
	return Settings{Path: "~/.config/kilo/" + name, Dir: "XDG_CONFIG_HOME/kilo", Format: "json", Keys: openCodeKeys, Recall: openCodeRecall}
}

var piKeys = []Key{{agents.Anthropic, []string{"providers", "anthropic", "baseUrl"}, "{base}"}, {agents.OpenAI, []string{"providers", "openai", "baseUrl"}, "{openai}"}}

// points are how agents are pointed, by name.
var points = map[string]Point{
	"claude-code": {
		Env: map[string]string{
			"ANTHROPIC_BASE_URL": "{base}", "ANTHROPIC_VERTEX_BASE_URL": "{vertex/v1}", "ANTHROPIC_BEDROCK_BASE_URL": "{base}",
			"ANTHROPIC_FOUNDRY_BASE_URL": "{foundry}", "ANTHROPIC_FOUNDRY_RESOURCE": "", // the agent takes only one of both
		},
		Override: "--settings",
		Own: &Own{
			Model: agents.Source{Flags: []string{"--model"}, Env: "ANTHROPIC_MODEL", Key: []string{"model"}},
		},
		Skills: &Settings{Path: "~/.claude/skills", Dir: "CLAUDE_CONFIG_DIR"},
		Status: []Key{{Path: []string{"statusLine", "type"}, Value: "command"}, {Path: []string{"statusLine", "command"}, Value: "{status}"}},
		// With = the flags take one value; otherwise they take the user's prompt too.
		Recall: &Recall{
			Args: []string{"--mcp-config={mcpfile}", "--allowedTools=mcp__condense__recall,mcp__condense__search,mcp__condense__status"},
			Add:  "claude mcp add --scope user --transport http condense {mcp}",
			File: `{"mcpServers": {"condense": {"type": "http", "url": "{mcp}", "headers": {"X-Condense-Recall": "{secret}"}}}}` + "\n",
		},
		Without:   []string{"agents", "auth", "auto-mode", "config", "doctor", "install", "mcp", "migrate-installer", "plugin", "plugins", "setup-token", "update", "upgrade", "--version", "-v", "--help", "-h"},
		Elsewhere: map[string]string{},
		Settings: []Settings{
			{Path: "/etc/claude-code/managed-settings.json", Format: "json", Keys: claudeKeys, Wins: true},
			{Path: "/Library/Application Support/ClaudeCode/managed-settings.json", Format: "json", Keys: claudeKeys, Wins: true},
			{Path: ".claude/settings.local.json", Format: "json", Keys: claudeKeys, Wins: true},
			{Path: ".claude/settings.json", Format: "json", Keys: claudeKeys, Wins: true},
			{Path: "~/.claude/settings.json", Dir: "CLAUDE_CONFIG_DIR", Format: "json", Keys: claudeKeys, Wins: true},
		},
	},
	"codex": {
		Own: &Own{
			Files: []Settings{{Path: ".codex/config.toml", Upward: true, Format: "toml"}, {Path: "~/.codex/models_cache.json", Dir: "CODEX_HOME", Format: "json"}},
			List:  []string{"debug", "models", "--bundled"},
			ID:    "slug", Context: [][]string{{"context_window"}}, First: "priority",
			Model: agents.Source{Flags: []string{"-m", "--model", "model"}, Key: []string{"model"}},
		},
		Recall: &Recall{
			Args: []string{"-c", `mcp_servers.condense.url="{mcp}"`, "-c", `mcp_servers.condense.bearer_token_env_var="CONDENSE_RECALL"`},
			Env:  map[string]string{"CONDENSE_RECALL": "{secret}"},
			Add:  "codex mcp add condense --url {mcp}",
		},
		Skills: &Settings{Path: "~/.codex/skills", Dir: "CODEX_HOME"},
		// The provider remains "openai": its name selects the sessions that resume offers.
		Args: []string{"-c", `openai_base_url="{openai}"`},
		Settings: []Settings{
			{Path: "~/.codex/config.toml", Dir: "CODEX_HOME", Format: "toml", Keys: []Key{{agents.OpenAI, []string{"openai_base_url"}, "{openai}"}}},
		},
		Provider: &Provider{
			Choice: "model_provider", Builtin: "openai", Table: "model_providers", Address: "base_url", API: agents.OpenAI,
			Args: []string{"-c", `model_providers.{provider}.base_url="{openai}"`},
		},
	},
	"opencode": {
		Own: &Own{
			Files: []Settings{
				{Path: ".opencode/opencode.json", Upward: true, Format: "json"}, {Path: ".opencode/opencode.jsonc", Upward: true, Format: "json"},
				{Path: "~/.cache/opencode/models.json", Dir: "XDG_CACHE_HOME/opencode", Format: "json"},
			},
			Within: []string{"anthropic", "openai"}, ID: "id", Context: [][]string{{"limit", "input"}, {"limit", "context"}},
			Model: agents.Source{Flags: []string{"-m", "--model"}, Key: []string{"model"}},
		},
		Merge:  "OPENCODE_CONFIG_CONTENT",
		Skills: &Settings{Path: "~/.config/opencode/skill", Dir: "XDG_CONFIG_HOME/opencode"},
		Meter: &Meter{
			Name: "condense-meter.js", Plugin: openCodeMeter,
			Variable: "OPENCODE_TUI_CONFIG", File: "tui.json", Settings: `{"plugin": ["{plugin}"]}` + "\n",
		},
		Recall: openCodeMCP,
		Settings: []Settings{
			{Path: "opencode.jsonc", Format: "json", Keys: openCodeKeys, Upward: true},
			{Path: "opencode.json", Format: "json", Keys: openCodeKeys, Upward: true},
			{Inside: "OPENCODE_CONFIG", Format: "json", Keys: openCodeKeys},
			{Path: "~/.config/opencode/opencode.jsonc", Dir: "XDG_CONFIG_HOME/opencode", Format: "json", Keys: openCodeKeys, Recall: openCodeRecall},
			{Path: "~/.config/opencode/opencode.json", Dir: "XDG_CONFIG_HOME/opencode", Format: "json", Keys: openCodeKeys, Recall: openCodeRecall},
		},
	},
	"pi": {
		Own: &Own{
			Files:  []Settings{{Path: "~/.pi/agent/settings.json", Dir: "PI_CODING_AGENT_DIR", Format: "json"}},
			Within: []string{"anthropic", "openai"}, ID: "id", Context: [][]string{{"contextWindow"}},
			Model:    agents.Source{Flags: []string{"--model"}, Key: []string{"defaultModel"}},
			Provider: agents.Source{Flags: []string{"--provider"}, Key: []string{"defaultProvider"}},
		},
		Args:     []string{"-e", "{file}"},
		Without:  []string{"install", "remove", "uninstall", "update", "list", "config"},
		FileName: "condense.ts",
		Meter:    &Meter{Name: "condense-meter.ts", Plugin: piMeter, Args: []string{"-e", "{plugin}"}},
		File: `export default function (pi) {
  pi.registerProvider("anthropic", { baseUrl: "{base}" });
  pi.registerProvider("openai", { baseUrl: "{openai}" });
}
`,
		Settings: []Settings{{Path: "~/.pi/agent/models.json", Dir: "PI_CODING_AGENT_DIR", Format: "json", Keys: piKeys}},
	},
	"gemini": {
		Own: &Own{
			Files: []Settings{{Path: ".gemini/settings.json", Format: "json"}, {Path: "~/.gemini/settings.json", Format: "json"}},
			Model: agents.Source{Flags: []string{"-m", "--model"}, Env: "GEMINI_MODEL", Key: []string{"model", "name"}},
		},
		Env:       map[string]string{"GOOGLE_GEMINI_BASE_URL": "{base}", "GOOGLE_VERTEX_BASE_URL": "{base}"},
		Elsewhere: map[string]string{"GOOGLE_GENAI_USE_GCA": "the login with Google"},
	},
	"copilot": {
		// Without /v1, which one of its kinds of provider adds by itself, and the gateway for the other.
		Env: map[string]string{"COPILOT_PROVIDER_BASE_URL": "{base}"},
		Need: &Need{
			Any: []string{
				"COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_API_KEY_COMMAND", "COPILOT_PROVIDER_BEARER_TOKEN", "COPILOT_PROVIDER_BASE_URL",
			},
			Text: "GitHub's own models do not come through condense; with the key of a vendor: " +
				"COPILOT_PROVIDER_API_KEY=KEY COPILOT_MODEL=MODEL condense wrap copilot, and COPILOT_PROVIDER_TYPE=anthropic for Anthropic's",
		},
		Without: []string{"help", "login", "logout", "plugin", "update", "version", "--version", "-v", "--help", "-h"},
	},
	"kilo": {
		Own:   &Own{},
		Merge: "KILO_CONFIG_CONTENT",
		Meter: &Meter{
			Name: "condense-meter.js", Plugin: openCodeMeter,
			Variable: "KILO_TUI_CONFIG", File: "tui.json", Settings: `{"plugin": ["{plugin}"]}` + "\n",
		},
		Recall:   openCodeMCP,
		Settings: []Settings{kiloFile("kilo.jsonc"), kiloFile("kilo.json")},
	},
	"cline": {Need: &Need{
		Text: "it takes an address from its own settings only, and works in a process that outlives the command; start condense serve, then: " +
			"cline auth -p openai-compatible -k KEY -m MODEL -b http://127.0.0.1:8765/v1",
	}},
	"aider": {Env: map[string]string{"OPENAI_API_BASE": "{openai}", "ANTHROPIC_API_BASE": "{base}", "ANTHROPIC_BASE_URL": "{base}"}},
	"goose": {Env: map[string]string{"OPENAI_HOST": "{base}", "ANTHROPIC_HOST": "{base}"}},
	"qwen": {
		Env: map[string]string{"OPENAI_BASE_URL": "{openai}"},
		Own: &Own{Model: agents.Source{Flags: []string{"-m", "--model"}, Env: "OPENAI_MODEL"}},
	},
	"any": {Env: map[string]string{
		"ANTHROPIC_BASE_URL": "{base}", "ANTHROPIC_API_BASE": "{base}", "OPENAI_BASE_URL": "{openai}", "OPENAI_API_BASE": "{openai}",
	}},
}

// pointOf returns how an agent is pointed at the gateway.
func pointOf(a *agents.Agent) Point { return points[a.Name] }
