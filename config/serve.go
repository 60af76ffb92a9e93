package config

import (
	"cmp"
	"encoding/json"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/tree"
)

// Serve are the settings of the gateway between agents and the APIs of vendors, complete:
// [Config.Serve] fills in the defaults. Paths are absolute, and empty if there are none; Store is
// empty only if the user has no home folder. Account is a model or [AccountClient].
// A tenant has the limits of Limits where it sets none.
type Serve struct {
	Listen string `json:"listen,omitempty" unit:"address" default:"127.0.0.1:8765" trust:"listens on this address" restart:"true" example:"127.0.0.1:8765" doc:"The address to listen on. Port 0 takes a free one. An address that is not on this machine's loopback needs tokens, and tls or behind_proxy."`
	Admin  struct {
		Listen string `json:"listen,omitempty" unit:"address" trust:"shows what the gateway does at this address" restart:"true" example:"127.0.0.1:8766" doc:"The address of the gateway's own pages. Absent means the loopback, and the port after that of listen, or a free one. An address that is not on this machine's loopback needs tokens, and tls or behind_proxy."`
	} `json:"admin,omitzero" doc:"The gateway's own pages, which are for those who run it: statistics, metrics, health. Agents do not need them."`
	Upstreams map[string]string `json:"upstreams,omitempty" unit:"object" of:"serve.upstreams" rule:"lock" trust:"sends conversations, with the keys of your agents, to this address" doc:"The APIs that requests are forwarded to, without /v1, by name: each is also at the path /NAME of the gateway."`
	Bedrock   struct {
		Sign bool `json:"sign" default:"false" trust:"signs the requests of all callers with the AWS credentials of this machine" example:"true" doc:"Sign requests to Amazon Bedrock with the AWS credentials of this machine, as the AWS SDK finds them: every caller uses that account. The signature of a client holds only for the body and the host that it was made for, so that without sign an agent needs a key of Bedrock (AWS_BEARER_TOKEN_BEDROCK). Needs trust."`
	} `json:"bedrock,omitzero" doc:"Requests to Amazon Bedrock."`
	Compaction struct {
		OpenAI string `json:"openai,omitempty" default:"auto" enum:"auto|upstream|gateway" example:"gateway" doc:"upstream, gateway, or auto: the upstream is asked, and condense answers if it refuses or does not compact. What condense answers only condense can read: the agent goes on with it as long as the key of the API and the store stay the same."`
	} `json:"compaction,omitzero" doc:"Who answers an agent that asks the vendor to compact its conversation, as Codex does of OpenAI."`
	Store     string `json:"store,omitempty" unit:"path" enum:"memory" rule:"database" trust:"keeps what it condensed in this file or database" restart:"true" example:"./gateway.db" doc:"The file that keeps what a restart must not lose: what was condensed, never a key. Absent means condense/serve.db in $XDG_STATE_HOME or ~/.local/state. Several gateways share the address of a PostgreSQL database, 15 or later: postgres://USER@HOST/DATABASE; its password comes from PGPASSWORD or the file in PGPASSFILE. With memory, a restart costs one write of the vendor's prompt cache for each conversation that was condensed. A file or a database needs trust."`
	Retention struct {
		Age  Duration `json:"age,omitzero" unit:"duration" default:"720h" example:"720h" trust:"deletes conversations from the store that were not used for this long" doc:"Conversations that were not used for this long are deleted, once a day: 24h or more."`
		Size int64    `json:"size" unit:"bytes" min:"1Mi" max:"1048576Gi" default:"1Gi" example:"1Gi" trust:"deletes the oldest conversations from the store above this size" doc:"Bytes of condensed conversations above which the oldest are deleted, once a day. What is kept for recall has its own limit, serve.recall.max_size."`
	} `json:"retention,omitzero" doc:"How long the store keeps what was condensed, and what it was condensed from. What is deleted costs one write of the vendor's prompt cache if its conversation goes on. A project's file says so only of the store that it names itself, in serve.store."`
	TokenEnv  string `json:"token_env,omitempty" unit:"variable" rule:"lock" trust:"lets in callers who know the value of this environment variable" example:"CONDENSE_TOKEN" doc:"The environment variable with the token that clients must send. Required off the loopback. Needs trust. Either this or token_file; absent means that no token is needed."`
	TokenFile string `json:"token_file,omitempty" unit:"path" rule:"lock" trust:"lets in callers who know the content of this file" example:"/run/secrets/condense" doc:"The file with the token that clients must send, relative to the file that names it. Needs trust. Either this or token_env."`
	Tokens    string `json:"tokens,omitempty" unit:"path" rule:"lock" trust:"lets in callers who know a token of this file" example:"/etc/condense/tokens" doc:"The file with the hashes of the tokens of several tenants, which 'condense token new' writes; read again when it changes. Needs trust. Either this, token_env or token_file."`
	TLS       struct {
		Cert string `json:"cert,omitempty" unit:"path" restart:"true" example:"/etc/condense/tls.crt" doc:"The file with the certificate and those of its issuers, in PEM. Needs key too."`
		Key  string `json:"key,omitempty" unit:"path" restart:"true" example:"/etc/condense/tls.key" doc:"The file with the private key of the certificate, in PEM."`
	} `json:"tls,omitzero" rule:"lock" trust:"shows this certificate to callers" doc:"The certificate of the gateway: with it, both addresses that it listens on speak HTTPS. Their content is read again when it changes."`
	Proxied    bool                   `json:"behind_proxy" default:"false" trust:"accepts keys and conversations unencrypted, from what is said to be a proxy" example:"true" doc:"Says that clients reach the gateway only through a reverse proxy that speaks HTTPS with them, so that it may listen off the loopback without tls. It needs tokens nevertheless."`
	KeyFile    string                 `json:"key_file,omitempty" unit:"path" rule:"lock" trust:"hashes with the key in this file" restart:"true" example:"/run/secrets/condense.key" doc:"The file with the server key, at least 32 random bytes, the same for all gateways with one store: the hashes that tell clients apart and the seal of compactions are made with it. Absent means a key in the store. With another key, no conversation is recognized."`
	Audit      string                 `json:"audit,omitempty" unit:"path" rule:"lock" trust:"writes who did what into this file" restart:"true" example:"/var/log/condense/audit.log" doc:"The file that records who did what, as lines of JSON: requests, refusals, epochs, recalls, uses of the admin pages; never what was said, and never a key. It may be renamed or cut while the gateway runs. Needs trust. Absent records nothing."`
	Limits     ServeLimits            `json:"limits,omitzero" rule:"lock" trust:"lets each caller use this much" doc:"What each tenant may use; without tokens of tenants, all clients together. Absent or 0 is no limit. A request above a limit is answered with 429."`
	Tenants    map[string]ServeLimits `json:"tenants,omitempty" of:"serve.limits" rule:"lock" trust:"lets this caller use this much" doc:"Limits of single tenants, by name. What one does not set is that of limits."`
	Observe    bool                   `json:"observe" default:"false" example:"true" less:"true" doc:"Forward every request untouched, and report what would have been saved."`
	Record     string                 `json:"record,omitempty" unit:"path" default:"off" enum:"off" trust:"writes your conversations into this folder" example:"./sessions" doc:"The folder in which every conversation is recorded as a journal that only you can read, for condense view, recall and compare. off records nothing. A folder needs trust."`
	Account    string                 `json:"account,omitempty" default:"off" refers:"model" trust:"has this model read your conversations" example:"cheap" doc:"The model that writes an account of each conversation next to its requests, when an epoch comes near; off for none. client asks the agent's own model with the agent's own key, never with the login of a plan. An epoch has the account if it is ready, next to verbatim parts; no request waits for it. All but off need trust."`
	Source     string                 `json:"source,omitempty" unit:"path" trust:"reads files of this folder that agents have read" example:"/home/me/src" doc:"A folder: of the files that an agent has read below it, a strategy may show the model the outline after a condensation (folded_chars of native). The agent must name its working directory, as Claude Code and Codex do. Absent reads no file. Needs trust."`
	MaxBody    int64                  `json:"max_body" unit:"bytes" min:"1Ki" max:"1Gi" default:"32Mi" example:"32Mi" less:"fewer" doc:"Bytes of a request, uncompressed, up to which it is read and condensed; of a conversation that the gateway knows, eight times as many. A larger one is forwarded as it came."`
	Deadline   Duration               `json:"deadline,omitzero" unit:"duration" default:"5s" example:"5s" less:"more" doc:"How long the condensation of a request may take that the vendor would refuse without it; it is less where so many wait that the last one would wait for 50s. After that the request is truncated. No other request waits for a condensation."`
	Drain      Duration               `json:"drain,omitzero" unit:"duration" default:"30s" example:"30s" doc:"How long answers in progress may go on after the first signal to end. A second signal ends at once."`
	DrainDelay Duration               `json:"drain_delay" unit:"duration" enum:"off" example:"5s" doc:"How long after that signal new requests are served still, while /readyz answers 503 and balancers learn of it. Then the address is closed, and drain begins. Absent, it is 5s, and off where the gateway listens on the loopback."`
	Ingest     struct {
		Lossless  bool `json:"lossless" default:"true" example:"true" less:"false" doc:"Shorten new tool results where nothing is lost: their layout."`
		MaxResult int  `json:"max_result" unit:"tokens" default:"0" example:"8k" doc:"Tokens above which a new tool result is shortened to its relevant lines, for every agent. 0 shortens none but those of serve.recall.max_result. An agent that has not read a result yet may ask for it again."`
	} `json:"ingest,omitzero" doc:"What happens to a tool result before it is sent for the first time."`
	Recall struct {
		MCP       bool  `json:"mcp" default:"true" example:"true" doc:"Serve /mcp, keep what condensed views point to in the store, and write handles into the views of agents that have its tool recall. With false nothing of that is done, except for the views of conversations to which tool adds its tool."`
		Tool      bool  `json:"tool" default:"true" example:"true" doc:"Add the tool condense_recall to the requests of new conversations and answer its calls, for agents without MCP. Requests of a known agent with a recall secret (it has the tools of mcp), with the login of a plan, without tools, that forbid or force calls or want a format, with such a tool already, or whose answers the vendor stores do not get it. false, as --recall mcp or off, adds none."`
		MaxSize   int64 `json:"max_size" unit:"bytes" min:"1Ki" max:"1024Gi" default:"1Gi" example:"1Gi" doc:"Bytes that may be kept for recall, compressed. When that is reached, no more is kept, and views that are condensed then have no handles; what is there remains until its conversation is deleted (serve.retention)."`
		MaxResult int   `json:"max_result" unit:"tokens" default:"8k" example:"8k" doc:"Tokens above which a new tool result is shortened to its relevant lines, with a handle for the rest, for agents that can recall. 0 shortens none."`
	} `json:"recall,omitzero" doc:"How agents get back what was condensed."`
	Epoch struct {
		Target  float64 `json:"target" unit:"percent" max:"90" default:"0" example:"25" doc:"Percent of the context window that an epoch should end at. 0 is the target of the profile. If that has none either, an epoch leaves half of the conversation in windows of 200,000 tokens or more, and about a quarter in smaller ones: docs/decisions/0032-epoch-defaults.md."`
		Cold    bool    `json:"cold" default:"true" example:"true" less:"false" doc:"Condense when the vendor's prompt cache has expired or is lost anyway: after a pause longer than its lifetime, or because the agent changed its model, tools or effort."`
		Payback bool    `json:"payback" default:"true" example:"true" less:"false" doc:"Condense when the turns that are still to be expected save more than the epoch costs, by the vendor's prices of its cache."`
		MinSize int     `json:"min_size" unit:"tokens" default:"0" example:"20k" doc:"Tokens of the conversation, without system prompt and tools, below which neither cold nor payback makes an epoch. 0 is half of the most that it can have, at most 60,000: the decision record on defaults has the measurement."`
		Risk    float64 `json:"risk" unit:"percent" max:"100" default:"0" example:"4" doc:"The most that an epoch for payback may cost if the conversation ended with it, in percent of what the conversation has cost so far; what epochs have saved may be risked, too. 0 is 4, and 100 practically no limit."`
		Prepare float64 `json:"prepare" unit:"percent" min:"1" max:"100" default:"85" example:"70" doc:"Percent of the size at which a conversation is due. From there on, providers that ask a language model work beside the requests, and what they made is used when it is due, if nothing that it replaces has changed."`
	} `json:"epoch,omitzero" doc:"When everything older is condensed in one step, and how far. Between two epochs nothing that was sent changes. The limit and the threshold of the profile always make one."`
	Modes []ServeRule `json:"modes,omitzero" of:"serve.modes" doc:"Rules for the profile or mode of a request, in order: the first whose conditions all hold decides. A header or the path of the request comes first; without either, and without a rule, the default profile holds."`
}

// ServeLimits are the rights of a tenant. 0 is no limit.
type ServeLimits struct {
	Requests    int64   `json:"requests" unit:"count" example:"120" doc:"Requests per minute."`
	Concurrent  int64   `json:"concurrent" unit:"count" example:"16" doc:"Requests at the same time, until their answers have ended, and open WebSockets. 0 is 1,024 requests for each key of a vendor."`
	Bytes       int64   `json:"bytes" unit:"bytes" example:"200Mi" doc:"Bytes of requests per minute, as they are sent. A single larger request is let through; the next has to wait."`
	ModelEpochs int64   `json:"model_epochs" unit:"count" example:"50" doc:"Condensations by a chain that asks a language model, and rounds of new results for which a provider does, per day (UTC). Above it, the built-in chain condenses, and results stay whole."`
	Cost        float64 `json:"cost" unit:"dollars" example:"20" doc:"US dollars per day (UTC), by the table of prices. Models without a known price cost nothing here."`
}

// A ServeRule chooses the profile or the mode of requests. An empty condition always holds. One
// of Mode and Profile is set.
type ServeRule struct {
	Model   string `json:"model,omitempty" min:"1" example:"claude-haiku-*" doc:"Holds for requests for this model; * is any text."`
	Agent   string `json:"agent,omitempty" min:"1" example:"claude-code" doc:"Holds for requests of this agent: claude, codex, opencode, pi and others that condense wrap knows."`
	System  string `json:"system,omitempty" min:"1" example:"\"Plan mode is active\"" doc:"Holds for requests with this phrase in the system prompt."`
	Mode    string `json:"mode,omitempty" refers:"mode" example:"plan" doc:"The mode of these requests. Either this or profile."`
	Profile string `json:"profile,omitempty" refers:"profile" example:"sonnet" doc:"The profile of these requests. Either this or mode."`
}

// upstreams are the keys of [Serve.Upstreams].
type upstreams struct {
	Anthropic string `json:"anthropic" unit:"url" default:"https://api.anthropic.com" rule:"secure" example:"https://api.anthropic.com" doc:"The API for requests in Anthropic's protocol."`
	OpenAI    string `json:"openai" unit:"url" default:"https://api.openai.com" rule:"secure" example:"https://api.openai.com" doc:"The API for requests in OpenAI's protocols, Chat Completions and Responses."`
	Gemini    string `json:"gemini" unit:"url" rule:"secure spoken usual" example:"https://generativelanguage.googleapis.com" doc:"The Gemini API; usually Google's own host."`
	Vertex    string `json:"vertex" unit:"url" rule:"secure spoken usual" example:"https://us-east5-aiplatform.googleapis.com" doc:"Google's Vertex AI, for models of Anthropic and of Google; usually the host of the region in the path of each request."`
	Azure     string `json:"azure" unit:"url" rule:"secure spoken usual" example:"https://RESOURCE.openai.azure.com" doc:"A resource of Azure OpenAI or Microsoft Foundry, for clients whose endpoint is the gateway's with /azure."`
	Bedrock   string `json:"bedrock" unit:"url" rule:"secure spoken usual" example:"https://bedrock-runtime.us-east-1.amazonaws.com" doc:"Amazon Bedrock in a region."`
	Other     string `json:"NAME" unit:"url" rule:"secure spoken" example:"openai+https://openrouter.ai/api/v1" doc:"An upstream of any other name, for clients whose base URL is the gateway's with /NAME. Its address begins with the API that it speaks, and a +: anthropic, openai, both (by the path), gemini, vertex, azure, bedrock, or pass for another API, all of which is forwarded unread."`
}

// The words that the keys store, record and account accept in place of a path or a model.
const (
	StoreMemory   = "memory" // nothing outlives the process
	RecordOff     = "off"
	AccountOff    = "off"
	AccountClient = "client" // the agent's own model, with the agent's own key
)

// A Duration is written as in 45s, and as off if it is 0, which its key must allow: enum:"off".
type Duration time.Duration

const durationOff = "off"

// MarshalText writes d in the form of a file.
func (d Duration) MarshalText() ([]byte, error) {
	if d == 0 {
		return []byte(durationOff), nil
	}
	return []byte(time.Duration(d).String()), nil
}

// UnmarshalText reads the output of MarshalText.
func (d *Duration) UnmarshalText(text []byte) error {
	if string(text) == durationOff {
		*d = 0
		return nil
	}
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// Serve returns the section serve. It shares no memory with the configuration.
func (c *Config) Serve() Serve {
	s := *c.values.Serve
	s.Upstreams, s.Tenants = maps.Clone(s.Upstreams), maps.Clone(s.Tenants)
	s.Modes = slices.Clone(s.Modes)
	return s
}

// ReadAtStart returns the settings of the gateway that it reads at its start only, by key. Those
// that are not set are empty.
func (c *Config) ReadAtStart() map[string]string {
	out := map[string]string{}
	var read func(at place, p tree.Path)
	read = func(at place, p tree.Path) {
		for _, f := range fieldsAt(at) {
			switch sub := p.With(f.key); {
			case f.kind == kindObject:
				read(f.of, sub)
			case f.restart:
				v, _ := lookup(c.raw, sub)
				text, isText := v.(string)
				if !isText && v != nil {
					text = compact(v)
				}
				out[sub.String()] = text
			}
		}
	}
	read(inServe, tree.Path{string(inServe)})
	return out
}

// complete adds the values that depend on others or on the environment. Raw is the section as merged.
func (s *Serve) complete(raw map[string]any, env environment) error {
	s.Store = cmp.Or(s.Store, defaultStore(env))
	if s.Account == AccountOff {
		s.Account = ""
	}
	if s.Record == RecordOff {
		s.Record = ""
	}
	if host, _, err := net.SplitHostPort(s.Listen); raw["drain_delay"] == nil && err == nil && !loopback(host) {
		s.DrainDelay = Duration(balancerDelay)
	}
	tenants, _ := raw["tenants"].(map[string]any)
	for name, set := range tenants {
		limits := s.Limits
		text, err := json.Marshal(set)
		if err == nil {
			err = json.Unmarshal(text, &limits)
		}
		if err != nil {
			return err
		}
		s.Tenants[name] = limits
	}
	return nil
}

// minRetention is the least time that a store keeps a conversation: a deleted conversation cannot be restored.
const minRetention = 24 * time.Hour

// balancerDelay is the default of drain_delay off the loopback: balancers ask every few seconds, or
// hear of the end with some delay.
const balancerDelay = 5 * time.Second

// defaultStore is a file in the folder for state of the XDG Base Directory Specification, on
// every system.
func defaultStore(env environment) string {
	dir := env.get("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home := cmp.Or(env.get("HOME"), env.get("USERPROFILE"))
		if home == "" {
			return ""
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "condense", "serve.db")
}

// tenantName is what 'condense token new' accepts.
var tenantName = plain.Pattern(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// serve checks the section serve: its addresses and tokens, and the names of its rules.

func (v *validator) serve() {
	s := v.c.values.Serve
	p := tree.Path{string(inServe)}
	tokens := ""
	for _, source := range []struct{ key, value string }{{"token_env", s.TokenEnv}, {"token_file", s.TokenFile}, {"tokens", s.Tokens}} {
		switch {
		case source.value == "":
		case tokens == "":
			tokens = source.key
		default:
			v.fail(p.With(source.key), &fault{problem: "cannot be combined with " + tokens, allowed: "set one of the two"})
		}
	}
	if s.Account == "client-plan" {
		v.fail(p.With("account"), &fault{problem: "client-plan is gone: no account is written with the login of a plan", allowed: "set client for agents with an API key, or a model of the section models"})
	}
	cert := s.TLS
	if (cert.Cert == "") != (cert.Key == "") {
		v.fail(p.With("tls"), &fault{problem: "has no cert or no key", allowed: "set both"})
	}
	if age := p.With("retention").With("age"); s.Retention.Age < Duration(minRetention) && v.c.origins[age.ID()].Kind != FromFlag {
		v.fail(age, &fault{problem: "is less than a day", allowed: "keep conversations for 24h or more; 'condense store gc --age' deletes at once"})
	}
	encrypted := cert.Cert != "" || s.Proxied
	if s.Proxied && tokens == "" {
		v.fail(p.With("behind_proxy"), &fault{problem: "is set, and no token is: everyone who reaches the proxy could send requests", allowed: "set serve.tokens, serve.token_env or serve.token_file too"})
	}
	for _, l := range []struct {
		p       tree.Path
		address string
	}{{p.With("listen"), s.Listen}, {p.With("admin").With("listen"), s.Admin.Listen}} {
		host, _, err := net.SplitHostPort(l.address)
		switch {
		case err != nil || v.faulty(l.p) || loopback(host):
		case tokens == "":
			v.fail(l.p, &fault{
				problem: "is not on the loopback, and no token is set: everyone who reaches it could send requests",
				allowed: "set serve.tokens, serve.token_env or serve.token_file too, or listen on 127.0.0.1",
			})
		case !encrypted:
			v.fail(l.p, &fault{
				problem: "is not on the loopback, and would be sent keys and conversations unencrypted",
				allowed: "set serve.tls too, or serve.behind_proxy if a reverse proxy speaks HTTPS in front of it, or listen on 127.0.0.1",
			})
		}
	}
	for _, name := range sortedKeys(s.Tenants) {
		if !tenantName().MatchString(name) {
			v.fail(p.With("tenants").With(name), &fault{problem: "no tenant can have this name", allowed: "must be letters, digits and ._- only, at most 64, with a letter or digit first"})
		}
	}
	for i, rule := range s.Modes {
		at := p.With("modes").With(strconv.Itoa(i))
		faulty := func(keys ...string) bool {
			return slices.ContainsFunc(keys, func(key string) bool { return v.faulty(at.With(key)) })
		}
		if v.faulty(at) && v.exact[at.ID()] {
			continue // it is no rule
		}
		if rule.Model == "" && rule.Agent == "" && rule.System == "" && !faulty("model", "agent", "system") {
			v.fail(at, &fault{problem: "has no condition", allowed: "must have model, agent or system; for all other requests set default_profile"})
		}
		_, declared := v.c.values.Modes[rule.Mode]
		switch {
		case faulty("mode", "profile"):
		case (rule.Mode == "") == (rule.Profile == ""):
			v.fail(at, &fault{problem: "does not choose", allowed: "must have either mode or profile"})
		case rule.Profile != "":
			v.profile(at.With("profile"), rule.Profile)
		case !declared:
			v.fail(at.With("mode"), v.unknown(toMode, rule.Mode, v.c.Modes))
		}
	}
}
