//go:build unix

package main

import (
	"slices"

	"github.com/condensehq/condense/internal/testkit/upstream"
)

// A client is a row of the table: a program from npm, or, without one, an agent of our own.
type client struct {
	wire, name string
	pkg        string            // at npm
	program    string            // below node_modules, as a pattern; "" runs node
	args       []string          // {task}
	env        []string          // besides the variables of where
	home       map[string]string // files below the home folder; {url}
	own        upstream.Client   // without pkg
	// replaces begins the text that the client itself writes in place of old results when it has many, each time with a break.
	replaces string
}

// Keys are dummies in the shape of real ones, by which the gateway finds the vendor of some.
const (
	google = "ya29." + "dummy"
	opus   = "claude-opus-5-5" // binds thinking to what came before
	secret = "AWS_SECRET_ACCESS_KEY=" + amazonSecret
	keyID  = "AWS_ACCESS_KEY_ID=" + amazonKey
	region = "AWS_REGION=us-east-1"
)

// The credentials that the scripted vendor takes signatures of, which only the gateway has.
const amazonKey, amazonSecret = "AKIADUMMY", "dummy"

// ofClient makes it the key of a client, which the vendor knows only if the gateway observes.
const ofClient = "OFCLIENT"

const (
	anthropicMessages = "Anthropic Messages"
	chatCompletions   = "OpenAI Chat Completions"
	responses         = "OpenAI Responses"
	webSocket         = "OpenAI Responses, WebSocket"
	vertexAnthropic   = "Vertex AI: Anthropic"
	foundry           = "Microsoft Foundry: Anthropic"
	azure             = "Azure OpenAI"
	gemini            = "Gemini"
	vertexGemini      = "Vertex AI: Gemini"
	invokeModel       = "Amazon Bedrock: InvokeModel"
	converse          = "Amazon Bedrock: Converse"
)

// where says a client of an API the gateway's address and its key.
var where = map[string][]string{
	anthropicMessages: {"ANTHROPIC_API_KEY=dummy", "ANTHROPIC_BASE_URL={url}", "BASE_URL={url}/v1"},
	chatCompletions:   {"OPENAI_API_KEY=dummy", "OPENAI_BASE_URL={url}/v1"},
	responses:         {"OPENAI_API_KEY=dummy", "OPENAI_BASE_URL={url}/v1", "BASE_URL={url}/v1"},
	vertexAnthropic:   {"ACCESS_TOKEN=" + google, "ANTHROPIC_VERTEX_BASE_URL={url}/v1"},
	foundry:           {"ANTHROPIC_FOUNDRY_API_KEY=dummy", "ANTHROPIC_FOUNDRY_BASE_URL={url}/azure/anthropic"},
	azure:             {"AZURE_OPENAI_API_KEY=dummy", "OPENAI_API_VERSION=2025-04-01-preview", "OPENAI_BASE_URL={url}/azure/openai"},
	gemini: {
		"GEMINI_API_KEY=dummy", "GOOGLE_GEMINI_BASE_URL={url}", "GOOGLE_GENERATIVE_AI_API_KEY=dummy", "BASE_URL={url}/v1beta",
	},
	vertexGemini: {"ACCESS_TOKEN=" + google, "GOOGLE_VERTEX_BASE_URL={url}"},
	invokeModel:  {region, "ANTHROPIC_BEDROCK_BASE_URL={url}", "AWS_ENDPOINT_URL_BEDROCK_RUNTIME={url}"},
	converse:     {region, "AWS_ENDPOINT_URL_BEDROCK_RUNTIME={url}"},
}

var clients = byWire([]client{
	sdk(anthropicMessages, "@anthropic-ai/sdk", "", opus, "anthropic.mjs", "sdk"),
	sdk(anthropicMessages, "@ai-sdk/anthropic", "", "claude-sonnet-5", "ai-sdk.mjs", "anthropic"),
	claude(anthropicMessages, opus),
	{
		wire: anthropicMessages, name: "OpenCode", pkg: "opencode-linux-x64-baseline", program: "opencode-*/bin/opencode",
		args: []string{"run", "-m", "anthropic/claude-sonnet-4-5", "{task}"},
		env: []string{
			"OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_SHARE=1",
			`OPENCODE_PERMISSION={"*":"allow"}`, "npm_config_registry=http://127.0.0.1:1/", // it installs a package of its own otherwise
		},
		home: map[string]string{".config/opencode/opencode.json": `{"provider": {"anthropic": {"options": {"baseURL": "{url}/v1"}}}}`},
	},
	{
		wire: anthropicMessages, name: "pi", pkg: "@earendil-works/pi-coding-agent", program: "@earendil-works/pi-coding-agent/dist/cli.js",
		args: []string{"--provider", "anthropic", "--model", "claude-sonnet-4-5", "--thinking", "medium", "-p", "{task}"},
		env:  []string{"PI_OFFLINE=1"},
		home: map[string]string{".pi/agent/models.json": `{"providers": {"anthropic": {"baseUrl": "{url}"}}}`},
	},
	sdk(chatCompletions, "openai", "", "gpt-5.1", "openai-chat.mjs", "OpenAI"),
	sdk(responses, "openai", "", "gpt-5.6", "openai-responses.mjs", "whole"),
	sdk(responses, "openai", ", by `previous_response_id`", "gpt-5.6", "openai-responses.mjs", "stored"),
	sdk(responses, "@ai-sdk/openai", "", "gpt-5.6", "ai-sdk.mjs", "openai"),
	{
		wire: webSocket, name: "Codex", pkg: "@openai/codex", program: "@openai/codex-*/vendor/*/bin/codex",
		args: []string{"exec", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", "{task}"},
		env:  []string{"CODEX_API_KEY=dummy"},
		home: map[string]string{".codex/config.toml": "openai_base_url = \"{url}/v1\"\nmodel = \"gpt-5.1\"\n" +
			"check_for_update_on_startup = false\n[features]\nplugins = false\n[analytics]\nenabled = false\n"},
	},
	sdk(vertexAnthropic, "@anthropic-ai/vertex-sdk", "", opus+"@1", "anthropic.mjs", "vertex"),
	claude(vertexAnthropic, opus, "CLAUDE_CODE_USE_VERTEX=1", "CLAUDE_CODE_SKIP_VERTEX_AUTH=1",
		"ANTHROPIC_CUSTOM_HEADERS=Authorization: Bearer "+google, "ANTHROPIC_VERTEX_PROJECT_ID=p", "CLOUD_ML_REGION=us-east5"),
	sdk(foundry, "@anthropic-ai/foundry-sdk", "", opus, "anthropic.mjs", "foundry"),
	claude(foundry, opus, "CLAUDE_CODE_USE_FOUNDRY=1"),
	sdk(azure, "openai", ", `AzureOpenAI`", "gpt-5.1", "openai-chat.mjs", "AzureOpenAI"),
	sdk(gemini, "@google/genai", "", "gemini-3-pro-preview", "genai.mjs", "gemini"),
	sdk(gemini, "@ai-sdk/google", "", "gemini-2.5-pro", "ai-sdk.mjs", "google"),
	{
		wire: gemini, name: "Gemini CLI", replaces: "<tool_output_masked>", pkg: "@google/gemini-cli", program: "@google/gemini-cli/bundle/gemini.js",
		args: []string{"--model", "gemini-2.5-pro", "--approval-mode=yolo", "-p", "{task}"},
		env:  []string{"GEMINI_CLI_TRUST_WORKSPACE=true"},
		home: map[string]string{".gemini/settings.json": `{"security": {"auth": {"selectedType": "gemini-api-key"}}, ` +
			`"privacy": {"usageStatisticsEnabled": false}, "general": {"disableAutoUpdate": true}}`},
	},
	sdk(vertexGemini, "@google/genai", "", "gemini-2.5-pro", "genai.mjs", "vertex"),
	keyed(sdk(invokeModel, "@anthropic-ai/bedrock-sdk", "", profile, "anthropic.mjs", "bedrock")),
	signed(sdk(invokeModel, "@anthropic-ai/bedrock-sdk", "", profile, "anthropic.mjs", "bedrock")),
	keyed(sdk(invokeModel, "@aws-sdk/client-bedrock-runtime", "", profile, "bedrock.mjs", "invoke")),
	signed(sdk(invokeModel, "@aws-sdk/client-bedrock-runtime", "", profile, "bedrock.mjs", "invoke")),
	keyed(claude(invokeModel, profile, "CLAUDE_CODE_USE_BEDROCK=1")),
	keyed(sdk(converse, "@aws-sdk/client-bedrock-runtime", "", profile, "bedrock.mjs", "converse")),
	signed(sdk(converse, "@aws-sdk/client-bedrock-runtime", "", profile, "bedrock.mjs", "converse")),
})

// sdk is a loop of bench/wires/clients on the package of a vendor.
func sdk(wire, pkg, how, model, loop, argument string) client {
	return client{
		wire: wire, name: "`" + pkg + "`" + how, pkg: pkg, args: []string{loop, "{task}", argument}, env: []string{"MODEL=" + model},
	}
}

// keyed is a client of Amazon's with a key, which passes through. A signed one has credentials of its own, which the vendor
// does not know: the gateway signs.
func keyed(c client) client { return with(c, ", key", "AWS_BEARER_TOKEN_BEDROCK=ABSK"+"dummy") }

func signed(c client) client { return with(c, ", signature", keyID+ofClient, secret) }

func with(c client, how string, env ...string) client {
	c.name, c.env = c.name+how, append(c.env, env...)
	return c
}

func claude(wire, model string, env ...string) client {
	return client{
		wire: wire, name: "Claude Code", pkg: "@anthropic-ai/claude-code", program: "@anthropic-ai/claude-code-*/claude",
		args: []string{"--model", model, "--allowedTools", "Bash,Agent", "-p", "{task}"},
		// A model with a window of 60,000 tokens does not answer with 128,000, which the agent asks for otherwise.
		env: append(env, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_MAX_OUTPUT_TOKENS=8000"),
	}
}

// byWire adds our own clients, and returns all by API, in the order in which the list names these.
func byWire(list []client) []client {
	list = append(list, ours()...)
	first := func(c client) int {
		return slices.IndexFunc(list, func(other client) bool { return other.wire == c.wire })
	}
	return slices.SortedStableFunc(slices.Values(list), func(a, b client) int { return first(a) - first(b) })
}

// ours are small agents of our own, which send whole histories in as few words as the API allows.
func ours() (all []client) {
	for _, w := range wires {
		all = append(all, client{wire: w.name, name: "Go: whole answers; streams", own: w.client})
	}
	chained := upstream.Client{API: upstream.Responses, Model: "gpt-5.6", Thinking: "medium", Chained: true}
	all = append(all, client{wire: responses, name: "Go, by `previous_response_id`: whole answers; streams", own: chained})
	chained.Chained, chained.Socket = false, true
	return append(all, client{wire: webSocket, name: "Go", own: chained})
}
