package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/catalog"
	"github.com/condensehq/condense/internal/tree"
	"github.com/condensehq/condense/model"
)

// The structs of this file and [Serve] declare every setting, once. The name of a key is its json
// tag; the other tags make its checks, the schema, the explanation, the need for trust and the
// reference documentation:
//
//	doc      its meaning: one paragraph, whose first sentence is also used alone
//	unit     how a value is written and read, see units; for a string without unit, any text
//	default  the built-in value, as in a file
//	min, max limits, both included
//	enum     the values allowed, or the words allowed in place of a path or a duration
//	refers   the kind of thing that a name refers to
//	of       the place of the settings of each entry
//	rule     exceptions, see field
//	trust    the effect of the setting, as a predicate: a project's file needs the user's trust for it
//	less     the values with which a gateway shortens less than without the setting: true, false, more or fewer. A project's
//	         file may set them for a gateway without trust, and nothing else
//	restart  says that the gateway reads it at its start only
//	example  a value for the documentation

// Values are the content of a configuration file. Their JSON form is a JSON configuration
// file. Absent (nil) means inherit, and so does -1 for numbers.
type Values struct {
	Tuning
	DefaultProfile string                    `json:"default_profile,omitempty" default:"default" refers:"profile" example:"sonnet" doc:"The profile of every mode that names none. Required if several profiles are declared; a single one is the default."`
	Profiles       map[string]ProfileValues  `json:"profiles,omitempty" of:"profile" doc:"Profiles by name. A profile is what an agent is configured to use: a model, its window, and when and how to condense."`
	Modes          map[string]ModeValues     `json:"modes,omitempty" of:"mode" doc:"Modes by name. A mode is what the agent is doing: code, ask, architect. It uses a profile and may override it."`
	Providers      map[string]ProviderValues `json:"providers,omitempty" of:"provider" doc:"Providers by name, for use in chains. A provider is a strategy with settings; two providers may share a strategy."`
	Models         map[string]ModelValues    `json:"models,omitempty" of:"model" doc:"Models by name, for profiles and for the settings of providers that use a model."`
	Serve          *Serve                    `json:"serve,omitempty" doc:"The gateway between agents and the APIs of vendors: condense serve and condense wrap."`
}

// Tuning are the values that the top level, a profile and a mode may set. Percentages are 0 to
// 100, of the context window; MinGain is of the tokens that can be removed. Chain is nil to
// inherit; empty is truncation only. So is Ingest; empty is none.
type Tuning struct {
	Auto             *bool    `json:"auto,omitempty" default:"true" example:"true" less:"false" doc:"Condense without a request. With false, the threshold and the caps are ignored, and no language model and no plugin is used; a conversation that exceeds the limit is still condensed, by providers that cost nothing."`
	Threshold        *float64 `json:"threshold,omitempty" unit:"percent" min:"5" max:"100" default:"80" rule:"inherits soft" example:"80" less:"more" doc:"Percent of the context window at which to condense. For a number of tokens use max_context_tokens."`
	Chain            []string `json:"chain,omitzero" default:"[]" refers:"provider" example:"[lossless, summary]" doc:"Providers to try, in this order. Truncation follows the last one and acts above the limit only; named as the last one, it acts at the threshold too, as it does alone: [truncation] or []. A declared provider with the name of the default one replaces it."`
	Ingest           []string `json:"ingest,omitzero" default:"[]" refers:"provider" example:"[logs]" doc:"Providers that shorten new tool results before they are first sent, in this order. The built-in one, serve.ingest, follows. They may change nothing else, and each request of a gateway waits for them, up to serve.deadline; condense hook asks them too."`
	Target           *float64 `json:"target,omitempty" unit:"percent" max:"99" default:"0" rule:"inherits" example:"40" doc:"Percent of the context window that a condensation should not exceed. 0 chooses the middle between the fixed tokens and the trigger. Must be below the threshold; if the limit or a cap triggers earlier, the target moves below that."`
	Buffer           *float64 `json:"buffer,omitempty" unit:"percent" max:"90" default:"10" rule:"inherits fraction" example:"10" less:"fewer" doc:"Percent of the context window to keep free, because counting is never exact. A number below 1 is a fraction: 0.1 is 10 %."`
	MaxContextTokens *Amount  `json:"max_context_tokens,omitempty" unit:"amount" default:"0" rule:"inherits" example:"150k" doc:"Condense above this number of tokens, whatever the percentage. 0 is no cap."`
	MinGain          *float64 `json:"min_gain,omitempty" unit:"percent" max:"90" default:"10" rule:"inherits" example:"10" less:"more" doc:"Percent of the removable tokens that a condensation must save to be used. The system prompt, tools and protected messages cannot be removed."`
	MinNewTokens     *Amount  `json:"min_new_tokens,omitempty" unit:"amount" default:"5%" rule:"inherits" example:"5%" doc:"Tokens that must be new since the last attempt to condense before the next automatic one. A conversation that exceeds the limit does not wait."`
	MinSize          *Amount  `json:"min_size,omitempty" unit:"amount" default:"0" rule:"inherits" example:"20k" doc:"Tokens below which nothing is condensed automatically, unless it exceeds the limit. A lower target is raised to it. 0 is no minimum. Must not be above max_context_tokens."`
	MaxMessages      *int     `json:"max_messages,omitempty" unit:"count" default:"0" rule:"inherits" example:"240" doc:"Condense when more messages than this came since the last condensation. 0 is none, as in the next keys. Half of what can be removed goes, or down to the target."`
	MaxToolResults   *int     `json:"max_tool_results,omitempty" unit:"count" default:"0" rule:"inherits" example:"60" doc:"Condense when more results of tools than this came since the last condensation."`
	MaxAge           *string  `json:"max_age,omitempty" unit:"duration" enum:"none" default:"none" example:"6h" doc:"Condense when the first message since the last condensation is older; in the gateway, when the last condensation or the first request is. none is no limit."`
	MaxResultsShare  *float64 `json:"max_results_share,omitempty" unit:"percent" max:"100" default:"0" rule:"inherits" example:"70" doc:"Condense when the results of tools since the last condensation are more than this percent of the tokens of all messages, and these are a tenth of the window."`
	KeepFirst        *int     `json:"keep_first,omitempty" unit:"count" default:"0" rule:"inherits" example:"1" doc:"Number of messages at the beginning that nothing removes or changes: no provider, and not truncation. System prompts, which always stay, do not count."`
	KeepUsers        *int     `json:"keep_users,omitempty" unit:"count" default:"0" rule:"inherits" example:"2" doc:"Number of newest messages of the user that nothing removes or changes. What an agent's program puts into messages of the user does not count."`
	KeepCalls        *bool    `json:"keep_calls,omitempty" default:"false" example:"true" doc:"Nothing removes or changes tool calls; their results stay, but may be shortened."`
	KeepErrors       *bool    `json:"keep_errors,omitempty" default:"false" example:"true" doc:"Nothing removes or changes the results of tools that failed."`
	MaxOutput        *int     `json:"max_output,omitempty" unit:"tokens" default:"0" rule:"inherits soft" example:"8192" doc:"Tokens to keep free for the model's answer: the maximum output that the agent requests. 0 means unknown; then 8,192 are kept free, or a fifth of the window if that is less."`
	Tokenizer        *string  `json:"tokenizer,omitempty" default:"o200k_base" refers:"tokenizer" example:"o200k_base" doc:"The encoding to count tokens with; tiktoken/o200k_base and tiktoken/cl100k_base count with tiktoken-go, which is slower."`
	Prompt           *string  `json:"prompt,omitempty" default:"" example:"\"Keep every decision and its reason.\"" doc:"Additional instructions for models that write summaries. To replace the instructions of the strategy native, set its prompt_text."`
	Originals        *string  `json:"originals,omitempty" default:"none" enum:"none|parts" example:"parts" doc:"Files for the originals of condensed messages: none or parts. With parts, what a condensation hides or rewrites is also written verbatim to FILE.history/part-1.jsonl, part-2.jsonl and so on next to the conversation, where the agent can read it; summaries of native and stubs of smart name the file, extracts of smart do not. Either way condense recall returns it from the conversation's own file."`
}

// ProfileValues are a profile: the configuration of an agent.
type ProfileValues struct {
	Extends string `json:"extends,omitempty" refers:"profile" example:"base" doc:"Another profile, to inherit from before the top level."`
	Preset  string `json:"preset,omitempty" enum:"roo" example:"roo" doc:"A set of values; the profile's own override them. roo is the rule of Roo Code: a buffer of 10 %, thresholds outside 5 to 100 ignored, half of the conversation truncated."`
	Model   string `json:"model,omitempty" refers:"model" example:"anthropic/claude-sonnet-4-5" doc:"The model that the agent uses: a name of the section models, or provider/model or model of the built-in table. It sets the window."`
	Window  *int   `json:"window,omitempty" unit:"tokens" min:"1" rule:"inherits" example:"32768" doc:"Size of the context window in tokens. Required if the model is not in the built-in table; overrides the table."`
	Tuning
}

// ModeValues are a mode: the current activity of an agent.
type ModeValues struct {
	Profile string `json:"profile,omitempty" refers:"profile" example:"sonnet" doc:"The profile of this mode; absent means default_profile. A mode that sets nothing else may be written as the name of the profile."`
	Tuning
}

// ProviderValues are a provider: a strategy, built in or a plugin, with settings.
type ProviderValues struct {
	Strategy string          `json:"strategy,omitempty" refers:"strategy" example:"smart" doc:"The built-in strategy. Either this or plugin."`
	Plugin   string          `json:"plugin,omitempty" unit:"path" trust:"starts this program" example:"./condense-provider-ours" doc:"The program of a strategy that is not built in, or a module of WebAssembly (.wasm), relative to the file that names it. It is not searched for in PATH. Needs trust. Either this or strategy."`
	Folder   string          `json:"folder,omitempty" unit:"path" trust:"runs it from this folder" example:"./ours" doc:"The folder of a plugin of several files, which contains plugin: all its files are pinned, and run from a copy. Absent means that the program is a single file."`
	SHA256   string          `json:"sha256,omitempty" unit:"hash" trust:"approves the program with this checksum" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" doc:"The checksum that the plugin must have to be started: of its program, or of its folder. Absent means the one that condense trust or condense plugin pin has stored in your own configuration folder."`
	Env      []string        `json:"env,omitempty" unit:"variable" trust:"hands the program these environment variables" example:"[HTTPS_PROXY, OUR_API_KEY]" doc:"Environment variables that the plugin sees. Needs trust. Absent means only PATH, LANG, LC_*, TZ and SYSTEMROOT, which every plugin sees."`
	Limits   *model.Quota    `json:"limits,omitempty" doc:"The most that the provider may use of language models in one call: model_calls are requests, 64 by default, usd their cost in US dollars; 0 is no limit."`
	Timeout  string          `json:"timeout,omitempty" unit:"duration" default:"2m" example:"45s" doc:"How long the provider may take before the next one is tried."`
	Settings json.RawMessage `json:"settings,omitempty" unit:"settings" trust:"hands the program these settings" example:"{preset: balanced}" doc:"Settings of the strategy; condense providers lists them. Those of a plugin need trust."`
}

// ModelValues are a model: a language model and how to reach it.
type ModelValues struct {
	API        string       `json:"api,omitempty" enum:"anthropic|openai" example:"anthropic" doc:"The protocol to speak; openai for every compatible endpoint."`
	Model      string       `json:"model,omitempty" min:"1" example:"claude-haiku-4-5" doc:"The model's id as its API knows it; absent means the name of this entry."`
	BaseURL    string       `json:"base_url,omitempty" unit:"url" example:"http://localhost:11434/v1" doc:"The address of the API, if it is not the vendor's. Needs trust. A key is sent to an https address or this machine only."`
	APIKeyEnv  string       `json:"api_key_env,omitempty" unit:"variable" example:"ANTHROPIC_API_KEY" doc:"The environment variable with the API key. Keys themselves are refused in files. Any variable but the vendor's usual one needs trust. Either this or api_key_file; absent means the vendor's usual one, ANTHROPIC_API_KEY or OPENAI_API_KEY, and none with a base_url."`
	APIKeyFile string       `json:"api_key_file,omitempty" unit:"path" example:"/run/secrets/anthropic" doc:"The file with the API key, relative to the file that names it. Needs trust. Either this or api_key_env."`
	Window     int          `json:"window,omitempty" unit:"tokens" min:"1" example:"200000" doc:"Size of the context window in tokens, if the built-in table does not know it or is wrong."`
	MaxOutput  int          `json:"max_output,omitempty" unit:"tokens" example:"8192" doc:"The maximum output that the agent requests of this model, in tokens; used by profiles that set none."`
	Images     *bool        `json:"images,omitempty" example:"true" doc:"Whether the model reads images. Absent means that it does at Anthropic's own API only. Models that do not are sent a description in words."`
	Embeddings bool         `json:"embeddings,omitempty" example:"true" doc:"It turns texts into vectors, for providers that ask for them, with api: openai. One model may have it."`
	Price      *model.Price `json:"price,omitempty" of:"price" doc:"The price of the model, if the built-in table does not know it or is wrong; {input: 0, output: 0} for a model without cost. Needs trust."`
}

// A Model is a language model, as the configuration and the built-in table describe it.
type Model struct {
	Name       string      `json:"name,omitempty"` // as written; empty if the profile names none
	API        string      `json:"api,omitempty"`  // anthropic or openai; empty if unknown
	ID         string      `json:"id,omitempty"`   // as the API knows it
	BaseURL    string      `json:"base_url,omitempty"`
	APIKeyEnv  string      `json:"api_key_env,omitempty"`
	APIKeyFile string      `json:"api_key_file,omitempty"` // absolute
	Window     int         `json:"window,omitempty"`       // tokens, 0 if unknown
	MaxOutput  int         `json:"max_output,omitempty"`   // tokens, as configured for this model; 0 if not
	Output     int         `json:"output,omitempty"`       // tokens of its longest answer, 0 if unknown
	Price      model.Price `json:"price"`                  // zero if unknown
	// Tiers are the higher prices of long requests, if the built-in table has any and the
	// configuration sets no price.
	Tiers []model.Tier `json:"tiers,omitempty"`
	// Free reports that the configuration sets the price to zero, as for a local model.
	Free bool `json:"free,omitempty"`
	// Images reports that it reads images: as configured, or as all models of its vendor do.
	Images bool `json:"images,omitempty"`
	// Embeddings reports that it is the model for vectors.
	Embeddings bool `json:"embeddings,omitempty"`
	// Withheld, if not empty, says that the model must not be used because the file that
	// declares it is not trusted, or because a policy forbids it. API, BaseURL and the key are empty then. See [Claims].
	Withheld string `json:"withheld,omitempty"`
}

// Model returns a model of the section models, completed from the built-in table, or else one
// of the table, by "provider/id" or id.
func (c *Config) Model(name string) (*Model, error) {
	m, err := modelOf(c, name)
	if err != nil {
		return nil, err
	}
	m.Withheld = cmp.Or(c.withheld[tree.Path{"models", name}.ID()], c.opts.enforced.forbids(m))
	if m.Withheld != "" {
		m.API, m.BaseURL, m.APIKeyEnv, m.APIKeyFile = "", "", "", ""
	}
	return m, nil
}

// modelOf is Model, whether it may be asked or not.
func modelOf(c *Config, name string) (*Model, error) {
	declared, ok := c.values.Models[name]
	if !ok {
		known, err := catalog.Lookup(name)
		if err != nil {
			return nil, fmt.Errorf("%w; or declare it in the section models", err)
		}
		return fromTable(name, known), nil
	}
	m := &Model{Name: name, ID: declared.Model}
	m.ID = cmp.Or(m.ID, name)
	known, err := catalog.Lookup(m.ID)
	if declared.API != "" {
		if k, errAPI := catalog.Lookup(declared.API + "/" + m.ID); errAPI == nil {
			known, err = k, nil
		}
	}
	if err != nil {
		known = &catalog.Model{} // the declaration is all there is
	}
	id := m.ID
	*m = *fromTable(name, known)
	m.ID = id
	m.API = cmp.Or(declared.API, m.API)
	m.BaseURL, m.APIKeyEnv, m.APIKeyFile = declared.BaseURL, declared.APIKeyEnv, declared.APIKeyFile
	m.Window, m.MaxOutput = cmp.Or(declared.Window, m.Window), declared.MaxOutput
	m.Images, m.Embeddings = readsImages(m), declared.Embeddings
	if declared.Images != nil {
		m.Images = *declared.Images
	}
	if declared.Price != nil {
		m.Price, m.Tiers = *declared.Price, nil
		m.Free = m.Price == model.Price{}
	}
	return m, nil
}

func fromTable(name string, known *catalog.Model) *Model {
	m := &Model{Name: name, ID: known.ID, Window: known.Window, Output: known.Output, Price: known.Price, Tiers: slices.Clone(known.Tiers)}
	if f, _ := fieldAt(inModel, "api"); slices.Contains(f.enum, known.Provider) {
		m.API = known.Provider
	}
	m.Images = readsImages(m)
	return m
}

// readsImages reports whether all models with the API and address of m read images. The table
// does not know it of others, and a model that reads none refuses the whole request.
func readsImages(m *Model) bool { return m.API == "anthropic" && m.BaseURL == "" }

// modelNames returns the names of models to suggest for a wrong one.
func (c *Config) modelNames(like string) []string {
	names := c.Models()
	full := strings.Contains(like, "/")
	for m := range catalog.All() {
		if full {
			names = append(names, m.Name())
		} else {
			names = append(names, m.ID)
		}
	}
	return names
}
