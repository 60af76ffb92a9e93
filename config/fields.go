package config

import (
	"regexp"
	"slices"
)

// A place is a part of a file that has fields.
type place string

const (
	atTop      place = "top level"
	inProfile  place = "profile"
	inMode     place = "mode"
	inProvider place = "provider"
	inModel    place = "model"
	inPrice    place = "price"

	inServe      place = "serve"
	inAdmin      place = "serve.admin"
	inTLS        place = "serve.tls"
	inLimits     place = "serve.limits"
	inRetention  place = "serve.retention"
	inUpstreams  place = "serve.upstreams"
	inCompaction place = "serve.compaction"
	inIngest     place = "serve.ingest"
	inRecall     place = "serve.recall"
	inEpoch      place = "serve.epoch"
	inRule       place = "serve.modes"
)

// A kind says how a field's value is written and read.
type kind int

const (
	kindBool      kind = iota
	kindPercent        // 70 or "70%"
	kindTokens         // 4000, "4k", "4Ki"
	kindAmount         // tokens, or "2%" of the window
	kindDollars        // a number, not negative
	kindText           // any string
	kindEnum           // one of field.enum
	kindName           // the name of something that field.refers to
	kindNames          // a list of such names
	kindVariables      // a list of names of environment variables
	kindDuration       // "45s"
	kindHash           // SHA-256, 64 hexadecimal digits
	kindVariable       // the name of an environment variable
	kindURL            // http or https
	kindAddress        // host:port, to listen on
	kindBytes          // 4000, "4k", "4Ki"
	kindCount          // 600, "1k"
	kindPath           // a file, relative to the one that names it, or one of field.enum
	kindFree           // any mapping, passed on as JSON
	kindObject         // an object with the fields of field.of
	kindSection        // a mapping of names to objects with the fields of field.of
	kindObjects        // a list of objects with the fields of field.of
)

// A reference is the kind of thing that a name refers to.
type reference string

const (
	toProfile   reference = "profile"
	toMode      reference = "mode"
	toProvider  reference = "provider"
	toModel     reference = "model"
	toStrategy  reference = "strategy"
	toTokenizer reference = "tokenizer"
)

// A field is one key that a file may contain. The table of all fields makes the defaults,
// the checks, the schema for editors and the reference documentation.
type field struct {
	key      string
	kind     kind
	in       []place
	def      any     // built-in default, nil if none
	min, max float64 // limits, both included; max 0 means none
	fraction bool    // numbers below 1 are fractions: 0.1 is 10 %
	inherits bool    // -1 inherits
	soft     bool    // a preset may lift the limits, see [policy.Exceptions]
	secure   bool    // of addresses: https, or on this machine
	spoken   bool    // of addresses: begins with an API that is spoken there
	database bool    // of paths: the address of a PostgreSQL database is allowed too
	refers   reference
	enum     []string
	of       place
	example  string
	doc      string // one paragraph; the first sentence is also used alone
}

var everywhere = []place{atTop, inProfile, inMode}

// fields is the table. Its order is that of the documentation.
var fields = []field{
	{
		key: "profile", kind: kindName, refers: toProfile, in: []place{inMode}, example: "sonnet",
		doc: "The profile of this mode; absent means default_profile. A mode that sets nothing else may be written as the name of the profile.",
	},
	{
		key: "extends", kind: kindName, refers: toProfile, in: []place{inProfile}, example: "base",
		doc: "Another profile, to inherit from before the top level.",
	},
	{
		key: "preset", kind: kindEnum, enum: presetNames(), in: []place{inProfile}, example: "roo",
		doc: "A set of values; the profile's own override them. roo is the rule of Roo Code: a buffer of 10 %, thresholds outside 5 to 100 ignored, half of the conversation truncated.",
	},
	{
		key: "model", kind: kindName, refers: toModel, in: []place{inProfile}, example: "anthropic/claude-sonnet-4-5",
		doc: "The model that the agent uses: a name of the section models, or provider/model or model of the built-in table. It sets the window.",
	},
	{
		key: "window", kind: kindTokens, in: []place{inProfile}, min: 1, max: maxTokens, inherits: true, example: "32768",
		doc: "Size of the context window in tokens. Required if the model is not in the built-in table; overrides the table.",
	},
	{
		key: "auto", kind: kindBool, in: everywhere, def: true, example: "true",
		doc: "Condense without a request. With false, the threshold and the caps are ignored, and no language model and no plugin is used; a conversation that exceeds the limit is still condensed, by providers that cost nothing.",
	},
	{
		key: "threshold", kind: kindPercent, in: everywhere, def: 80.0, min: 5, max: 100, inherits: true, soft: true, example: "80",
		doc: "Percent of the context window at which to condense. For a number of tokens use max_context_tokens.",
	},
	{
		key: "default_profile", kind: kindName, refers: toProfile, in: []place{atTop}, def: defaultProfile, example: "sonnet",
		doc: "The profile of every mode that names none. Required if several profiles are declared; a single one is the default.",
	},
	{
		key: "chain", kind: kindNames, refers: toProvider, in: everywhere, def: []any{}, example: "[lossless, summary]",
		doc: "Providers to try, in this order. Truncation follows the last one and acts above the limit only; named as the last one, it acts at the threshold too, as it does alone: [truncation] or []. A declared provider with the name of the default one replaces it.",
	},
	{
		key: "target", kind: kindPercent, in: everywhere, def: 0.0, max: 99, inherits: true, example: "40",
		doc: "Percent of the context window that a condensation should not exceed. 0 chooses the middle between the fixed tokens and the trigger. Must be below the threshold; if the limit or a cap triggers earlier, the target moves below that.",
	},
	{
		key: "buffer", kind: kindPercent, in: everywhere, def: 10.0, max: 90, fraction: true, inherits: true, example: "10",
		doc: "Percent of the context window to keep free, because counting is never exact. A number below 1 is a fraction: 0.1 is 10 %.",
	},
	{
		key: "max_context_tokens", kind: kindAmount, in: everywhere, def: int64(0), inherits: true, example: "150k",
		doc: "Condense above this number of tokens, whatever the percentage. 0 is no cap.",
	},
	{
		key: "min_gain", kind: kindPercent, in: everywhere, def: 10.0, max: 90, inherits: true, example: "10",
		doc: "Percent of the removable tokens that a condensation must save to be used. The system prompt, tools and protected messages cannot be removed.",
	},
	{
		key: "min_new_tokens", kind: kindAmount, in: everywhere, def: "5%", inherits: true, example: "5%",
		doc: "Tokens that must be new since the last attempt to condense before the next automatic one. A conversation that exceeds the limit does not wait.",
	},
	{
		key: "min_size", kind: kindAmount, in: everywhere, def: int64(0), inherits: true, example: "20k",
		doc: "Tokens below which nothing is condensed automatically, unless it exceeds the limit. A lower target is raised to it. 0 is no minimum. Must not be above max_context_tokens.",
	},
	{
		key: "max_output", kind: kindTokens, in: everywhere, def: int64(0), max: maxTokens, inherits: true, soft: true, example: "8192",
		doc: "Tokens to keep free for the model's answer: the maximum output that the agent requests. 0 means unknown; then 8,192 are kept free, or a fifth of the window if that is less.",
	},
	{
		key: "tokenizer", kind: kindName, refers: toTokenizer, in: everywhere, def: "o200k_base", example: "o200k_base",
		doc: "The encoding to count tokens with.",
	},
	{
		key: "prompt", kind: kindText, in: everywhere, def: "", example: `"Keep every decision and its reason."`,
		doc: "Additional instructions for models that write summaries. To replace the instructions of the strategy native, set its prompt_text.",
	},
	{
		key: "originals", kind: kindEnum, enum: []string{OriginalsNone, OriginalsParts}, in: everywhere, def: OriginalsNone, example: "parts",
		doc: "Files for the originals of condensed messages: none or parts. With parts, what a condensation hides or rewrites is also written verbatim to FILE.history/part-1.jsonl, part-2.jsonl and so on next to the conversation, where the agent can read it; summaries of native and stubs of smart name the file, extracts of smart do not. Either way condense recall returns it from the conversation's own file.",
	},
	{
		key: "profiles", kind: kindSection, of: inProfile, in: []place{atTop},
		doc: "Profiles by name. A profile is what an agent is configured to use: a model, its window, and when and how to condense.",
	},
	{
		key: "modes", kind: kindSection, of: inMode, in: []place{atTop},
		doc: "Modes by name. A mode is what the agent is doing: code, ask, architect. It uses a profile and may override it.",
	},
	{
		key: "providers", kind: kindSection, of: inProvider, in: []place{atTop},
		doc: "Providers by name, for use in chains. A provider is a strategy with settings; two providers may share a strategy.",
	},
	{
		key: "models", kind: kindSection, of: inModel, in: []place{atTop},
		doc: "Models by name, for profiles and for the settings of providers that use a model.",
	},
	{
		key: "strategy", kind: kindName, refers: toStrategy, in: []place{inProvider}, example: "smart",
		doc: "The built-in strategy. Either this or plugin.",
	},
	{
		key: "plugin", kind: kindPath, in: []place{inProvider}, example: "./condense-provider-ours",
		doc: "The program of a strategy that is not built in, relative to the file that names it. It is not searched for in PATH. Needs trust. Either this or strategy.",
	},
	{
		key: "sha256", kind: kindHash, in: []place{inProvider}, example: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		doc: "The checksum that the plugin must have to be started: of its program, or of its folder. Absent means the one that condense trust or condense plugin pin has stored in your own configuration folder.",
	},
	{
		key: "folder", kind: kindPath, in: []place{inProvider}, example: "./ours",
		doc: "The folder of a plugin of several files, which contains plugin: all its files are pinned, and run from a copy. Absent means that the program is a single file.",
	},
	{
		key: "env", kind: kindVariables, in: []place{inProvider}, example: "[HTTPS_PROXY, OUR_API_KEY]",
		doc: "Environment variables that the plugin sees. Needs trust. Absent means only PATH, LANG, LC_*, TZ and SYSTEMROOT, which every plugin sees.",
	},
	{
		key: "timeout", kind: kindDuration, in: []place{inProvider}, def: "2m", example: "45s",
		doc: "How long the provider may take before the next one is tried.",
	},
	{
		key: "settings", kind: kindFree, in: []place{inProvider}, example: "{preset: balanced}",
		doc: "Settings of the strategy; condense providers lists them.",
	},
	{
		key: "api", kind: kindEnum, enum: []string{"anthropic", "openai"}, in: []place{inModel}, example: "anthropic",
		doc: "The protocol to speak; openai for every compatible endpoint.",
	},
	{
		key: "model", kind: kindText, min: 1, in: []place{inModel}, example: "claude-haiku-4-5",
		doc: "The model's id as its API knows it; absent means the name of this entry.",
	},
	{
		key: "base_url", kind: kindURL, in: []place{inModel}, example: "http://localhost:11434/v1",
		doc: "The address of the API, if it is not the vendor's. Needs trust. A key is sent to an https address or this machine only.",
	},
	{
		key: "api_key_env", kind: kindVariable, in: []place{inModel}, example: "ANTHROPIC_API_KEY",
		doc: "The environment variable with the API key. Keys themselves are refused in files. Any variable but the vendor's usual one needs trust. Either this or api_key_file; absent means the vendor's usual one, ANTHROPIC_API_KEY or OPENAI_API_KEY, and none with a base_url.",
	},
	{
		key: "api_key_file", kind: kindPath, in: []place{inModel}, example: "/run/secrets/anthropic",
		doc: "The file with the API key, relative to the file that names it. Needs trust. Either this or api_key_env.",
	},
	{
		key: "window", kind: kindTokens, in: []place{inModel}, min: 1, max: maxTokens, example: "200000",
		doc: "Size of the context window in tokens, if the built-in table does not know it or is wrong.",
	},
	{
		key: "max_output", kind: kindTokens, in: []place{inModel}, max: maxTokens, example: "8192",
		doc: "The maximum output that the agent requests of this model, in tokens; used by profiles that set none.",
	},
	{
		key: "images", kind: kindBool, in: []place{inModel}, example: "true",
		doc: "Whether the model reads images. Absent means that it does at Anthropic's own API only. Models that do not are sent a description in words.",
	},
	{
		key: "price", kind: kindObject, of: inPrice, in: []place{inModel},
		doc: "The price of the model, if the built-in table does not know it or is wrong; {input: 0, output: 0} for a model without cost. Needs trust.",
	},
	{key: "input", kind: kindDollars, in: []place{inPrice}, example: "3", doc: "US dollars per million input tokens."},
	{key: "output", kind: kindDollars, in: []place{inPrice}, example: "15", doc: "US dollars per million output tokens."},
	{key: "cache_read", kind: kindDollars, in: []place{inPrice}, example: "0.3", doc: "US dollars per million input tokens read from the cache."},
	{key: "cache_write", kind: kindDollars, in: []place{inPrice}, example: "3.75", doc: "US dollars per million input tokens written to the cache."},
	{
		key: "serve", kind: kindObject, of: inServe, in: []place{atTop},
		doc: "The gateway between agents and the APIs of vendors: condense serve and condense wrap.",
	},
	{
		key: "listen", kind: kindAddress, in: []place{inServe}, def: "127.0.0.1:8765", example: "127.0.0.1:8765",
		doc: "The address to listen on. Port 0 takes a free one. An address that is not on this machine's loopback needs tokens, and tls or behind_proxy. Needs trust. Read at the start only.",
	},
	{
		key: "tls", kind: kindObject, of: inTLS, in: []place{inServe},
		doc: "The certificate of the gateway: with it, both addresses that it listens on speak HTTPS. The files are read again when they change. Needs trust.",
	},
	{key: "cert", kind: kindPath, in: []place{inTLS}, example: "/etc/condense/tls.crt", doc: "The file with the certificate and those of its issuers, in PEM. Needs key too."},
	{key: "key", kind: kindPath, in: []place{inTLS}, example: "/etc/condense/tls.key", doc: "The file with the private key of the certificate, in PEM."},
	{
		key: "behind_proxy", kind: kindBool, in: []place{inServe}, def: false, example: "true",
		doc: "Says that clients reach the gateway only through a reverse proxy that speaks HTTPS with them, so that it may listen off the loopback without tls. It needs tokens nevertheless. Needs trust.",
	},
	{
		key: "admin", kind: kindObject, of: inAdmin, in: []place{inServe},
		doc: "The gateway's own pages, which are for those who run it: statistics, metrics, health. Agents do not need them.",
	},
	{
		key: "listen", kind: kindAddress, in: []place{inAdmin}, example: "127.0.0.1:8766",
		doc: "The address of the gateway's own pages. Absent means the loopback, and the port after that of listen, or a free one. An address that is not on this machine's loopback needs tokens, and tls or behind_proxy. Needs trust. Read at the start only.",
	},
	{
		key: "upstreams", kind: kindObject, of: inUpstreams, in: []place{inServe},
		doc: "The APIs that requests are forwarded to, without /v1, by name: each is also at the path /NAME of the gateway. Needs trust.",
	},
	{key: "anthropic", kind: kindURL, secure: true, in: []place{inUpstreams}, def: "https://api.anthropic.com", example: "https://api.anthropic.com", doc: "The API for requests in Anthropic's protocol."},
	{key: "openai", kind: kindURL, secure: true, in: []place{inUpstreams}, def: "https://api.openai.com", example: "https://api.openai.com", doc: "The API for requests in OpenAI's protocols, Chat Completions and Responses."},
	{
		key: anyName, kind: kindURL, secure: true, spoken: true, in: []place{inUpstreams}, example: "openai+https://openrouter.ai/api/v1",
		doc: "An upstream of any other name, for clients whose base URL is the gateway's with /NAME. Before its address is what it speaks, and a +: anthropic, openai, both (by the path), or pass for another API, such as Gemini's, all of which is forwarded unread.",
	},
	{
		key: "compaction", kind: kindObject, of: inCompaction, in: []place{inServe},
		doc: "Who answers an agent that asks the vendor to compact its conversation, as Codex does of OpenAI.",
	},
	{
		key: "openai", kind: kindEnum, enum: []string{"auto", "upstream", "gateway"}, in: []place{inCompaction}, def: "auto", example: "gateway",
		doc: "upstream, gateway, or auto: the upstream is asked, and condense answers if it refuses or does not compact. What condense answers only condense can read: the agent goes on with it as long as the key of the API and the store stay the same.",
	},
	{
		key: "store", kind: kindPath, database: true, enum: []string{StoreMemory}, in: []place{inServe}, example: "./gateway.db",
		doc: "The file that keeps what a restart must not lose: what was condensed, never a key. Absent means condense/serve.db in $XDG_STATE_HOME or ~/.local/state. Several gateways share the address of a PostgreSQL database, 15 or later: postgres://USER@HOST/DATABASE; its password comes from PGPASSWORD or the file in PGPASSFILE. With memory, a restart costs one write of the vendor's prompt cache for each conversation that was condensed. A file or a database needs trust. Read at the start only.",
	},
	{
		key: "retention", kind: kindObject, of: inRetention, in: []place{inServe},
		doc: "How long the store keeps what was condensed, and what it was condensed from. What is deleted costs one write of the vendor's prompt cache if its conversation goes on.",
	},
	{key: "age", kind: kindDuration, in: []place{inRetention}, def: "720h", example: "720h", doc: "Conversations that were not used for this long are deleted, once a day."},
	{key: "size", kind: kindBytes, in: []place{inRetention}, def: int64(1 << 30), min: 1 << 20, max: 1 << 50, example: "1Gi", doc: "Bytes of condensed conversations above which the oldest are deleted, once a day. What is kept for recall has its own limit, serve.recall.max_size."},
	{
		key: "token_env", kind: kindVariable, in: []place{inServe}, example: "CONDENSE_TOKEN",
		doc: "The environment variable with the token that clients must send. Required off the loopback. Needs trust. Either this or token_file; absent means that no token is needed.",
	},
	{
		key: "token_file", kind: kindPath, in: []place{inServe}, example: "/run/secrets/condense",
		doc: "The file with the token that clients must send, relative to the file that names it. Needs trust. Either this or token_env.",
	},
	{
		key: "tokens", kind: kindPath, in: []place{inServe}, example: "/etc/condense/tokens",
		doc: "The file with the hashes of the tokens of several tenants, which 'condense token new' writes; read again when it changes. Needs trust. Either this, token_env or token_file.",
	},
	{
		key: "key_file", kind: kindPath, in: []place{inServe}, example: "/run/secrets/condense.key",
		doc: "The file with the server key, at least 32 random bytes, the same for all gateways with one store: the hashes that tell clients apart and the seal of compactions are made with it. Absent means a key in the store. With another key, no conversation is recognized. Needs trust. Read at the start only.",
	},
	{
		key: "audit", kind: kindPath, in: []place{inServe}, example: "/var/log/condense/audit.log",
		doc: "The file that records who did what, as lines of JSON: requests, refusals, epochs, recalls, uses of the admin pages; never what was said, and never a key. It may be renamed or cut while the gateway runs. Needs trust. Absent records nothing.",
	},
	{
		key: "limits", kind: kindObject, of: inLimits, in: []place{inServe},
		doc: "What each tenant may use; without tokens of tenants, all clients together. Absent or 0 is no limit. A request above a limit is answered with 429.",
	},
	{key: "requests", kind: kindCount, in: []place{inLimits}, max: maxTokens, example: "120", doc: "Requests per minute."},
	{key: "concurrent", kind: kindCount, in: []place{inLimits}, max: maxTokens, example: "16", doc: "Requests at the same time, until their answers have ended."},
	{key: "bytes", kind: kindBytes, in: []place{inLimits}, max: maxTokens, example: "200Mi", doc: "Bytes of requests per minute, as they are sent. A single larger request is let through; the next has to wait."},
	{key: "model_epochs", kind: kindCount, in: []place{inLimits}, max: maxTokens, example: "50", doc: "Condensations by a chain that asks a language model, per day (UTC). Above it, the built-in chain condenses; no request is refused."},
	{key: "cost", kind: kindDollars, in: []place{inLimits}, max: maxTokens, example: "20", doc: "US dollars per day (UTC), by the table of prices. Models without a known price cost nothing here."},
	{
		key: "tenants", kind: kindSection, of: inLimits, in: []place{inServe},
		doc: "Limits of single tenants, by name. What one does not set is that of limits.",
	},
	{
		key: "observe", kind: kindBool, in: []place{inServe}, def: false, example: "true",
		doc: "Forward every request untouched, and report what would have been saved.",
	},
	{
		key: "account", kind: kindName, refers: toModel, in: []place{inServe}, def: AccountOff, example: "cheap",
		doc: "The model that writes an account of each conversation next to its requests, when an epoch comes near; off for none. client asks the agent's own model with the agent's own key, but not with the login of a plan; client-plan with that too. An epoch has the account if it is ready, next to verbatim parts; no request waits for it. All but off need trust.",
	},
	{
		key: "shadow", kind: kindNames, refers: toProfile, in: []place{inServe}, example: "[default]",
		doc: "At most three profiles whose chains condense at each epoch too, without being sent: the gateway's page compares what they would have kept. A chain that asks a language model does not run. Read at the start only.",
	},
	{
		key: "record", kind: kindPath, enum: []string{RecordOff}, in: []place{inServe}, def: RecordOff, example: "./sessions",
		doc: "The folder in which every conversation is recorded as a journal that only you can read, for condense view, recall and compare. off records nothing. A folder needs trust.",
	},
	{
		key: "max_body", kind: kindBytes, in: []place{inServe}, def: int64(32 << 20), min: 1024, max: 1 << 30, example: "32Mi",
		doc: "Bytes of a request, uncompressed, up to which it is read and condensed. A larger one is forwarded as it came.",
	},
	{
		key: "deadline", kind: kindDuration, in: []place{inServe}, def: "5s", example: "5s",
		doc: "How long the condensation of a request may take that the vendor would refuse without it; it is less where several wait. After that the request is truncated. No other request waits for a condensation.",
	},
	{
		key: "drain", kind: kindDuration, in: []place{inServe}, def: "30s", example: "30s",
		doc: "How long answers in progress may go on after the first signal to end. A second signal ends at once.",
	},
	{
		key: "drain_delay", kind: kindDuration, enum: []string{durationOff}, in: []place{inServe}, example: "5s",
		doc: "How long after that signal new requests are served still, while /readyz answers 503 and balancers learn of it. Then the address is closed, and drain begins. Absent, it is 5s, and off where the gateway listens on the loopback.",
	},
	{
		key: "ingest", kind: kindObject, of: inIngest, in: []place{inServe},
		doc: "What happens to a tool result before it is sent for the first time.",
	},
	{
		key: "lossless", kind: kindBool, in: []place{inIngest}, def: true, example: "true",
		doc: "Shorten new tool results where nothing is lost: their layout.",
	},
	{
		key: "max_result", kind: kindTokens, in: []place{inIngest}, def: int64(0), max: maxTokens, example: "8k",
		doc: "Tokens above which a new tool result is shortened to its relevant lines, for every agent. 0 shortens none but those of serve.recall.max_result. An agent that has not read a result yet may ask for it again.",
	},
	{
		key: "recall", kind: kindObject, of: inRecall, in: []place{inServe},
		doc: "How agents get back what was condensed.",
	},
	{
		key: "mcp", kind: kindBool, in: []place{inRecall}, def: true, example: "true",
		doc: "Serve /mcp, keep what condensed views point to in the store, and write handles into the views of agents that have its tool recall. With false nothing of that is done, except for the views of conversations to which tool adds its tool.",
	},
	{
		key: "tool", kind: kindBool, in: []place{inRecall}, def: false, example: "false",
		doc: "Add the tool condense_recall to the requests of new conversations and answer its calls, for agents without MCP. Requests with the login of a plan, without tools, with such a tool already, or whose answers the vendor stores do not get it.",
	},
	{
		key: "max_size", kind: kindBytes, in: []place{inRecall}, def: int64(1 << 30), min: 1024, max: 1 << 40, example: "1Gi",
		doc: "Bytes that may be kept for recall, compressed. When that is reached, no more is kept, and views that are condensed then have no handles; what is there remains until its conversation is deleted (serve.retention).",
	},
	{
		key: "max_result", kind: kindTokens, in: []place{inRecall}, def: int64(8000), max: maxTokens, example: "8k",
		doc: "Tokens above which a new tool result is shortened to its relevant lines, with a handle for the rest, for agents that can recall. 0 shortens none.",
	},
	{
		key: "epoch", kind: kindObject, of: inEpoch, in: []place{inServe},
		doc: "When everything older is condensed in one step, and how far. Between two epochs nothing that was sent changes. The limit and the threshold of the profile always make one.",
	},
	{
		key: "target", kind: kindPercent, in: []place{inEpoch}, def: 0.0, max: 90, example: "25",
		doc: "Percent of the context window that an epoch should end at. 0 is the target of the profile or, if it has none, half of the conversation, without system prompt and tools, in windows of 200,000 tokens or more. In smaller ones it is a quarter, a fifth where reading the cache costs less than a tenth of the price of input, and three tenths where writing it costs nothing extra; but for cold and payback at least 20,000 tokens of the conversation.",
	},
	{
		key: "cold", kind: kindBool, in: []place{inEpoch}, def: true, example: "true",
		doc: "Condense when the vendor's prompt cache has expired or is lost anyway: after a pause longer than its lifetime, or because the agent changed its model, tools or effort.",
	},
	{
		key: "payback", kind: kindBool, in: []place{inEpoch}, def: true, example: "true",
		doc: "Condense when the turns that are still to be expected save more than the epoch costs, by the vendor's prices of its cache.",
	},
	{
		key: "min_size", kind: kindTokens, in: []place{inEpoch}, def: int64(0), max: maxTokens, example: "20k",
		doc: "Tokens of the conversation, without system prompt and tools, below which neither cold nor payback makes an epoch. 0 is half of the most that it can have, at most 60,000: the decision record on defaults has the measurement.",
	},
	{
		key: "risk", kind: kindPercent, in: []place{inEpoch}, def: 0.0, max: 100, example: "4",
		doc: "The most that an epoch for payback may cost if the conversation ended with it, in percent of what the conversation has cost so far; what epochs have saved may be risked, too. 0 is 4, and 100 practically no limit.",
	},
	{
		key: "modes", kind: kindObjects, of: inRule, in: []place{inServe},
		doc: "Rules for the profile or mode of a request, in order: the first whose conditions all hold decides. A header or the path of the request comes first; without either, and without a rule, the default profile holds.",
	},
	{
		key: "model", kind: kindText, min: 1, in: []place{inRule}, example: "claude-haiku-*",
		doc: "Holds for requests for this model; * is any text.",
	},
	{
		key: "agent", kind: kindText, min: 1, in: []place{inRule}, example: "claude-code",
		doc: "Holds for requests of this agent: claude, codex, opencode, pi and others that condense wrap knows.",
	},
	{
		key: "system", kind: kindText, min: 1, in: []place{inRule}, example: `"Plan mode is active"`,
		doc: "Holds for requests with this phrase in the system prompt.",
	},
	{
		key: "mode", kind: kindName, refers: toMode, in: []place{inRule}, example: "plan",
		doc: "The mode of these requests. Either this or profile.",
	},
	{
		key: "profile", kind: kindName, refers: toProfile, in: []place{inRule}, example: "sonnet",
		doc: "The profile of these requests. Either this or mode.",
	},
}

// The words that the keys store and record accept in place of a path.
const (
	StoreMemory = "memory" // nothing outlives the process
	RecordOff   = "off"
	durationOff = "off"
)

const (
	// inherit is the number that inherits.
	inherit = -1
	// unknownOutput is the number of tokens to keep free for the answer if max_output is
	// unknown, as in Roo Code. In small windows it is the window divided by unknownShare; Roo
	// has no such bound.
	unknownOutput = 8192
	unknownShare  = 5
	// maxTokens keeps arithmetic on tokens exact and far from overflow.
	maxTokens = 1e12
	// defaultProfile is the profile that exists without a file.
	defaultProfile = "default"
	// defaultWindow is its window.
	defaultWindow = 200_000
)

// fieldsAt returns the fields of p, in order of documentation.
func fieldsAt(p place) []field {
	var at []field
	for _, f := range fields {
		if slices.Contains(f.in, p) {
			at = append(at, f)
		}
	}
	return at
}

// fieldAt returns the field of that key at p.
func fieldAt(p place, key string) (field, bool) {
	for _, f := range fields {
		if f.key == key && slices.Contains(f.in, p) {
			return f, true
		}
	}
	if p == inUpstreams && key != anyName && upstreamName.MatchString(key) {
		f, ok := fieldAt(p, anyName)
		f.key = key
		return f, ok
	}
	return field{}, false
}

// anyName is the key of the field that describes all keys of a place that have no field of their own.
const anyName = "NAME"

var upstreamName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// fieldsOf returns the fields of p, and those of the other names in values.
func fieldsOf(p place, values map[string]any) []field {
	at := fieldsAt(p)
	for _, name := range sortedKeys(values) {
		if f, ok := fieldAt(p, name); ok && !slices.ContainsFunc(at, func(f field) bool { return f.key == name }) {
			at = append(at, f)
		}
	}
	return at
}

func keysAt(p place) []string {
	var keys []string
	for _, f := range fieldsAt(p) {
		keys = append(keys, f.key)
	}
	return keys
}

// sections are the keys of the top level that hold named objects.
var sections = map[string]place{
	"profiles": inProfile, "modes": inMode, "providers": inProvider, "models": inModel,
}
