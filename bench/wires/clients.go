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
	args       []string          // {task}, {window}
	env        []string          // {url} is the gateway's
	home       map[string]string // files below the home folder; {url}
	sign       bool              // the gateway signs for Amazon
	own        upstream.Client   // without pkg
}

// Keys are dummies in the shape of real ones, by which the gateway finds the vendor of some.
const (
	bearer  = "AWS_BEARER_TOKEN_BEDROCK=ABSK" + "dummy"
	google  = "ya29." + "dummy"
	opus    = "claude-opus-5-5" // binds thinking to what came before
	secret  = "AWS_SECRET_ACCESS_KEY=" + amazonSecret
	keyID   = "AWS_ACCESS_KEY_ID=" + amazonKey
	region  = "AWS_REGION=us-east-1"
	bedrock = "AWS_ENDPOINT_URL_BEDROCK_RUNTIME={url}"
)

// The credentials that the scripted vendor takes signatures of, which only the gateway has.
const amazonKey, amazonSecret = "AKIADUMMY", "dummy"

func loop(file, argument string) []string { return []string{file, "{task}", argument} }

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
	ollama            = "Ollama"
	invokeModel       = "Amazon Bedrock: InvokeModel"
	converse          = "Amazon Bedrock: Converse"
)

var clients = slices.Concat(
	[]client{
		sdk(anthropicMessages, "@anthropic-ai/sdk", "", loop("anthropic.mjs", "sdk"), "MODEL="+opus, "ANTHROPIC_API_KEY=dummy", "ANTHROPIC_BASE_URL={url}"),
		sdk(anthropicMessages, "@ai-sdk/anthropic", "", loop("ai-sdk.mjs", "anthropic"), "MODEL=claude-sonnet-5", "ANTHROPIC_API_KEY=dummy", "BASE_URL={url}/v1"),
		claude(anthropicMessages, "ANTHROPIC_API_KEY=dummy", "ANTHROPIC_BASE_URL={url}"),
		{
			wire: anthropicMessages, name: "OpenCode", pkg: "opencode-linux-x64-baseline", program: "opencode-*/bin/opencode",
			args: []string{"run", "-m", "anthropic/claude-sonnet-4-5", "{task}"},
			env: []string{
				"ANTHROPIC_API_KEY=dummy", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_SHARE=1",
				`OPENCODE_PERMISSION={"*":"allow"}`, "npm_config_registry=http://127.0.0.1:1/", // it installs a package of its own otherwise
			},
			home: map[string]string{".config/opencode/opencode.json": `{"provider": {"anthropic": {"options": {"baseURL": "{url}/v1"}}}}`},
		},
		{
			wire: anthropicMessages, name: "pi", pkg: "@earendil-works/pi-coding-agent", program: "@earendil-works/pi-coding-agent/dist/cli.js",
			args: []string{"--provider", "anthropic", "--model", "claude-sonnet-4-5", "--thinking", "medium", "-p", "{task}"},
			env:  []string{"ANTHROPIC_API_KEY=dummy", "PI_OFFLINE=1"},
			home: map[string]string{".pi/agent/models.json": `{"providers": {"anthropic": {"baseUrl": "{url}"}}}`},
		},
		sdk(chatCompletions, "openai", "", loop("openai-chat.mjs", "OpenAI"), "MODEL=gpt-5.1", "OPENAI_API_KEY=dummy", "OPENAI_BASE_URL={url}/v1"),
		sdk(responses, "openai", "", loop("openai-responses.mjs", "whole"), "MODEL=gpt-5.6", "OPENAI_API_KEY=dummy", "OPENAI_BASE_URL={url}/v1"),
		sdk(responses, "openai", ", by `previous_response_id`", loop("openai-responses.mjs", "stored"), "MODEL=gpt-5.6", "OPENAI_API_KEY=dummy", "OPENAI_BASE_URL={url}/v1"),
		sdk(responses, "@ai-sdk/openai", "", loop("ai-sdk.mjs", "openai"), "MODEL=gpt-5.6", "OPENAI_API_KEY=dummy", "BASE_URL={url}/v1"),
		{
			wire: webSocket, name: "Codex", pkg: "@openai/codex", program: "@openai/codex-*/vendor/*/bin/codex",
			args: []string{"exec", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", "{task}"},
			env:  []string{"CODEX_API_KEY=dummy"},
			home: map[string]string{".codex/config.toml": "openai_base_url = \"{url}/v1\"\nmodel = \"gpt-5.1\"\ncheck_for_update_on_startup = false\n" +
				"[features]\nplugins = false\n[analytics]\nenabled = false\n"},
		},
		sdk(vertexAnthropic, "@anthropic-ai/vertex-sdk", "", loop("anthropic.mjs", "vertex"), "MODEL="+opus+"@1", "ACCESS_TOKEN="+google, "ANTHROPIC_VERTEX_BASE_URL={url}/v1"),
		claude(vertexAnthropic, "CLAUDE_CODE_USE_VERTEX=1", "CLAUDE_CODE_SKIP_VERTEX_AUTH=1", "ANTHROPIC_CUSTOM_HEADERS=Authorization: Bearer "+google,
			"ANTHROPIC_VERTEX_PROJECT_ID=p", "CLOUD_ML_REGION=us-east5", "ANTHROPIC_VERTEX_BASE_URL={url}/v1"),
		sdk(foundry, "@anthropic-ai/foundry-sdk", "", loop("anthropic.mjs", "foundry"), "MODEL="+opus, "ANTHROPIC_FOUNDRY_API_KEY=dummy", "ANTHROPIC_FOUNDRY_BASE_URL={url}/azure/anthropic"),
		claude(foundry, "CLAUDE_CODE_USE_FOUNDRY=1", "ANTHROPIC_FOUNDRY_API_KEY=dummy", "ANTHROPIC_FOUNDRY_BASE_URL={url}/azure/anthropic"),
		sdk(azure, "openai", ", `AzureOpenAI`", loop("openai-chat.mjs", "AzureOpenAI"), "MODEL=gpt-5.1", "AZURE_OPENAI_API_KEY=dummy", "OPENAI_API_VERSION=2025-04-01-preview", "OPENAI_BASE_URL={url}/azure/openai"),
		sdk(gemini, "@google/genai", "", loop("genai.mjs", "gemini"), "MODEL=gemini-3-pro-preview", "GEMINI_API_KEY=dummy", "GOOGLE_GEMINI_BASE_URL={url}"),
		sdk(gemini, "@ai-sdk/google", "", loop("ai-sdk.mjs", "google"), "MODEL=gemini-2.5-pro", "GOOGLE_GENERATIVE_AI_API_KEY=dummy", "BASE_URL={url}/v1beta"),
		{
			wire: gemini, name: "Gemini CLI", pkg: "@google/gemini-cli", program: "@google/gemini-cli/bundle/gemini.js",
			args: []string{"--model", "gemini-2.5-pro", "--approval-mode=yolo", "-p", "{task}"},
			env:  []string{"GEMINI_API_KEY=dummy", "GOOGLE_GEMINI_BASE_URL={url}", "GEMINI_CLI_TRUST_WORKSPACE=true"},
			home: map[string]string{".gemini/settings.json": `{"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": false}, "general": {"disableAutoUpdate": true}}`},
		},
		sdk(vertexGemini, "@google/genai", "", loop("genai.mjs", "vertex"), "MODEL=gemini-2.5-pro", "ACCESS_TOKEN="+google, "GOOGLE_VERTEX_BASE_URL={url}"),
		sdk(ollama, "ollama", "", loop("ollama.mjs", "{window}"), "MODEL=qwen3:32b", "OLLAMA_HOST={url}"),
		sdk(invokeModel, "@anthropic-ai/bedrock-sdk", ", key", loop("anthropic.mjs", "bedrock"), "MODEL="+profile, region, bearer, "ANTHROPIC_BEDROCK_BASE_URL={url}"),
		signed(sdk(invokeModel, "@anthropic-ai/bedrock-sdk", ", signature", loop("anthropic.mjs", "bedrock"), "MODEL="+profile, region, "ANTHROPIC_BEDROCK_BASE_URL={url}")),
		sdk(invokeModel, "@aws-sdk/client-bedrock-runtime", ", key", loop("bedrock.mjs", "invoke"), "MODEL="+profile, region, bearer, bedrock),
		signed(sdk(invokeModel, "@aws-sdk/client-bedrock-runtime", ", signature", loop("bedrock.mjs", "invoke"), "MODEL="+profile, region, bedrock)),
		claude(invokeModel, "CLAUDE_CODE_USE_BEDROCK=1", region, bearer, "ANTHROPIC_BEDROCK_BASE_URL={url}"),
		sdk(converse, "@aws-sdk/client-bedrock-runtime", ", key", loop("bedrock.mjs", "converse"), "MODEL="+profile, region, bearer, bedrock),
		signed(sdk(converse, "@aws-sdk/client-bedrock-runtime", ", signature", loop("bedrock.mjs", "converse"), "MODEL="+profile, region, bedrock)),
	}, ours())

// sdk is a loop of bench/wires/clients on the package of a vendor.
func sdk(wire, pkg, how string, args []string, env ...string) client {
	return client{wire: wire, name: "`" + pkg + "`" + how, pkg: pkg, args: args, env: env}
}

// signed is a client of Amazon's with credentials of its own, which the vendor does not know.
func signed(c client) client {
	c.sign, c.env = true, append(c.env, keyID+"OFCLIENT", secret)
	return c
}

func claude(wire string, env ...string) client {
	return client{
		wire: wire, name: "Claude Code", pkg: "@anthropic-ai/claude-code", program: "@anthropic-ai/claude-code-*/claude",
		args: []string{"--model", map[bool]string{true: profile, false: opus}[wire == invokeModel], "--allowedTools", "Bash,Agent", "-p", "{task}"},
		// A model with a window of 60,000 tokens does not answer with 128,000, which the agent asks for otherwise.
		env: append(env, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_MAX_OUTPUT_TOKENS=8000"),
	}
}

// ours are small agents of our own, which send whole histories in as few words as the API allows.
func ours() (all []client) {
	for _, w := range wires {
		all = append(all, client{wire: w.name, name: "Go: whole answers; streams", own: w.client})
	}
	chained := upstream.Client{API: upstream.Responses, Model: "gpt-5.6", Thinking: "medium", Chained: true}
	socket := chained
	socket.Chained, socket.Socket = false, true
	return append(all,
		client{wire: responses, name: "Go, by `previous_response_id`: whole answers; streams", own: chained},
		client{wire: webSocket, name: "Go", own: socket})
}
