package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/internal/tree"
	"github.com/condensehq/condense/model"
)

// The values of the setting originals.
const (
	OriginalsNone  = "none"  // the conversation's own file has them
	OriginalsParts = "parts" // they are also written to files next to the conversation
)

// Resolved has the values for one profile in one mode. All are final; none is -1 for inherit.
// It shares no memory with the configuration.
type Resolved struct {
	Profile string `json:"profile"`
	Mode    string `json:"mode,omitempty"` // as requested, even if it is not declared
	Model   Model  `json:"model"`
	Window  int    `json:"window"` // tokens
	// MaxOutput is the maximum output that the agent requests, in tokens, 0 if unknown.
	// Reserve is the number of tokens to keep free for the answer: MaxOutput, or if that is 0
	// then 8192, but at most a fifth of the window unless the preset roo is used.
	MaxOutput int  `json:"max_output"`
	Reserve   int  `json:"reserve"`
	Auto      bool `json:"auto"`
	// Threshold, Buffer and Target are percentages of the window. Divided by 100, a buffer
	// written as 10 is exactly the number 0.1. A Target of 0 leaves the choice to the policy:
	// the middle between the fixed tokens and the trigger.
	Threshold float64 `json:"threshold"`
	Buffer    float64 `json:"buffer"`
	Target    float64 `json:"target"`
	// MaxContextTokens is the cap in tokens, 0 for none.
	MaxContextTokens int         `json:"max_context_tokens"`
	MinGain          float64     `json:"min_gain"`       // percent of the tokens that can be removed
	MinNewTokens     int         `json:"min_new_tokens"` // since the last condensation
	MinSize          int         `json:"min_size"`       // tokens, 0 for no minimum
	When             policy.When `json:"when,omitzero"`
	// KeepFirst and KeepUsers are the messages at the beginning and the newest messages of the user that nothing removes or
	// changes. KeepCalls and KeepErrors are the same for tool calls and failed results.
	KeepFirst  int    `json:"keep_first"`
	KeepUsers  int    `json:"keep_users"`
	KeepCalls  bool   `json:"keep_calls"`
	KeepErrors bool   `json:"keep_errors"`
	Tokenizer  string `json:"tokenizer"`
	Prompt     string `json:"prompt"` // empty: the provider's own
	// Originals is OriginalsNone or OriginalsParts.
	Originals string `json:"originals"`
	// Chain has the providers to try, in order. Truncation always follows and is not listed.
	Chain []Provider `json:"chain"`
	// Ingest has the providers that shorten new tool results.
	Ingest []Provider `json:"ingest,omitempty"`
	// RooRule reports whether the profile starts from the preset roo.
	RooRule bool `json:"roo_rule,omitempty"`
	// Exceptions are the exceptions of the preset. If numbers are Unchecked, a threshold of a profile
	// outside 5 to 100 has been replaced by the inherited one.
	policy.Exceptions `json:"-"`

	found map[string]*found
}

// A Provider is a strategy with settings, ready to be opened.
type Provider struct {
	Name     string `json:"name"`
	Strategy string `json:"strategy,omitempty"` // of a built-in one; empty for a plugin
	Plugin   string `json:"plugin,omitempty"`   // absolute path of the program
	SHA256   string `json:"sha256,omitempty"`   // its checksum in lower case, empty if none is set
	// Folder is the absolute path of the folder that all files of the plugin are in; empty
	// if it is the program alone.
	Folder string   `json:"folder,omitempty"`
	Env    []string `json:"env,omitempty"` // environment variables that the plugin sees
	// Withheld, if not empty, says that the provider must not be used because the file that
	// declares it is not trusted. Strategy, Plugin and Env are empty then. See [Claims].
	Withheld string `json:"withheld,omitempty"`
	// Limits are the quota of language models in one call.
	Limits model.Quota `json:"limits,omitzero"`
	// Timeout is always positive.
	Timeout time.Duration `json:"timeout"`
	// Settings is a JSON object, {} if there are none.
	Settings json.RawMessage `json:"settings"`
	// SettingsDir is the absolute path of the folder of the file with the settings, or of the
	// working directory if they are in no file.
	SettingsDir string `json:"-"`
	// Origin is where the provider is declared.
	Origin Origin `json:"origin"`
}

// IsModule reports whether the program of a plugin is a module of WebAssembly, which is not executed by the system.
func IsModule(plugin string) bool { return strings.EqualFold(filepath.Ext(plugin), ".wasm") }

// MarshalJSON writes the timeout in the form of a file, "45s".
func (p Provider) MarshalJSON() ([]byte, error) {
	type plain Provider
	return json.Marshal(struct {
		plain
		Timeout string `json:"timeout"`
	}{plain(p), p.Timeout.String()})
}

// A Step is one level of inheritance in the search for a value.
type Step struct {
	Level  string `json:"level"` // mode code, profile sonnet, preset roo, model cheap, top level, default
	Value  any    `json:"value"` // nil if the level sets none
	Origin Origin `json:"origin"`
	Used   bool   `json:"used"`
	Note   string `json:"note,omitempty"` // why it was not used
}

// Origin returns where the value of a key came from: "threshold", "max_context_tokens".
func (r *Resolved) Origin(key string) Origin {
	if f := r.found[key]; f != nil && f.used != nil {
		return f.used.Origin
	}
	return Origin{}
}

// Steps returns the levels at which the value of a key was looked up, nearest first, up to the
// one that has it.
func (r *Resolved) Steps(key string) []Step { return r.found[key].all() }

// Resolve returns the values for a profile in a mode. An empty profile means the one that the
// mode names, or the default profile. An empty mode, or one that is not declared, overrides
// nothing. The error says that there is no such profile, or that the numbers of this profile
// do not fit the numbers of this mode, if the configuration does not combine the two itself.
func (c *Config) Resolve(profile, mode string) (*Resolved, error) {
	r, err := c.resolveWindow(profile, mode, 0)
	if err != nil {
		return nil, err
	}
	c.override.apply(r)
	return r, nil
}

// resolveWindow is Resolve with another window than the profile's, if it is not 0.
func (c *Config) resolveWindow(profile, mode string, window int) (*Resolved, error) {
	r, errs := c.resolve(profile, mode, window)
	if len(errs) > 0 {
		return nil, errs.sorted()
	}
	chain, err := c.providers(r, "chain")
	if err != nil {
		return nil, err
	}
	r.Chain = c.withAccount(chain)
	r.Ingest, err = c.providers(r, "ingest")
	return r, err
}

// Providers returns the providers of Chain and of Ingest.
func (r *Resolved) Providers() []Provider { return slices.Concat(r.Chain, r.Ingest) }

// accountStrategy is the strategy of the provider that serve.account adds.
const accountStrategy = "handover"

// withAccount returns the chain of a gateway: serve.account names the model of its first provider. A chain that has none stays, and
// one with
// an account of its own.
func (c *Config) withAccount(chain []Provider) []Provider {
	name := c.values.Serve.Account
	if !c.opts.Serving || name == "" || len(chain) == 0 || slices.ContainsFunc(chain, func(p Provider) bool { return p.Strategy == accountStrategy }) {
		return chain
	}
	settings, err := json.Marshal(map[string]string{"model": name})
	if err != nil {
		return chain
	}
	f, _ := fieldAt(inProvider, "timeout")
	standard, _ := f.def().(string)
	timeout, _ := time.ParseDuration(standard)
	return append([]Provider{{Name: "serve.account", Strategy: accountStrategy, Timeout: timeout, Settings: settings, Origin: Origin{Kind: FromDefault}}}, chain...)
}

// The labels of levels that have no name.
const (
	topLevel     = "top level"
	defaultLabel = "default"
)

// resolve is Resolve without the chain's providers.
func (c *Config) resolve(profile, mode string, window int) (*Resolved, Errors) {
	chosen := Step{Level: "argument", Origin: Origin{Kind: FromArgument}, Used: true}
	if profile == "" {
		if profile = c.values.Modes[mode].Profile; profile != "" {
			chosen.Level, chosen.Origin = "mode "+mode, c.origins[tree.Path{"modes", mode, "profile"}.ID()]
		} else {
			profile = c.values.DefaultProfile
			chosen.Level, chosen.Origin = topLevel, c.origins["default_profile"]
		}
	}
	chosen.Value = profile
	c.lines.mu.Lock()
	defer c.lines.mu.Unlock()
	l := c.line(lineID{profile: profile})
	if l == nil {
		f := unknownName(toProfile, profile, c.Profiles())
		return nil, Errors{{Origin: chosen.Origin, Key: "profile", Problem: f.problem, Allowed: f.allowed, Suggestion: f.suggestion}}
	}
	r := &Resolved{Profile: profile, Mode: mode, RooRule: l.rule != policy.Exceptions{}, Exceptions: l.rule, found: map[string]*found{}}
	if _, ok := c.values.Modes[mode]; ok {
		l = c.newLine(l, c.at("mode "+mode, tree.Path{"modes", mode}))
	}
	for _, f := range fieldsAt(inProfile) {
		if f.key != "extends" && f.key != "preset" { // which are not inherited
			r.found[f.key] = l.find(f.key)
		}
	}
	argument := func(s Step) *found { return &found{value: s.Value, used: &s, steps: []Step{s}} }
	r.found["profile"] = argument(chosen)

	if name := r.text("model"); name != "" {
		m, err := c.Model(name)
		r.Model = Model{Name: name, ID: name}
		if err == nil {
			r.Model = *m
		}
	}
	r.Window = r.tokens("window")
	if window > 0 {
		r.Window = window
		at := r.found["window"].at
		r.found["window"] = argument(Step{Level: "argument", Value: window, Origin: Origin{Kind: FromArgument}, Used: true})
		r.found["window"].at = at
	}
	if r.Window == 0 {
		return nil, Errors{c.noWindow(r)}
	}
	r.MaxOutput = r.tokens("max_output")
	r.Reserve = r.reserve()
	r.Auto, _ = r.found["auto"].value.(bool)
	r.Threshold = r.percent("threshold")
	r.Buffer = r.percent("buffer")
	r.MinGain = r.percent("min_gain")
	for key, to := range r.amounts() {
		*to = r.tokens(key)
	}
	r.When.MaxMessages, r.When.MaxToolResults, r.When.MaxResultsShare = r.tokens("max_messages"), r.tokens("max_tool_results"), r.percent("max_results_share")
	r.When.MaxAge, _ = time.ParseDuration(r.text("max_age")) // 0 for none
	r.KeepFirst, r.KeepUsers = r.tokens("keep_first"), r.tokens("keep_users")
	r.KeepCalls, _ = r.found["keep_calls"].value.(bool)
	r.KeepErrors, _ = r.found["keep_errors"].value.(bool)
	r.Tokenizer = r.text("tokenizer")
	r.Originals = r.text("originals")
	r.Prompt = r.text("prompt")
	r.Target = r.percent("target")
	return r, c.fit(r)
}

// amounts are the numbers of tokens that may be written as a share of the window.
func (r *Resolved) amounts() map[string]*int {
	return map[string]*int{"max_context_tokens": &r.MaxContextTokens, "min_new_tokens": &r.MinNewTokens, "min_size": &r.MinSize}
}

func (r *Resolved) reserve() int {
	if r.MaxOutput != 0 {
		return r.MaxOutput
	}
	if r.UnknownReserve > 0 {
		return r.UnknownReserve
	}
	return min(unknownOutput, r.Window/unknownShare)
}

// ForWindow returns r with another window, in tokens, and the values that depend on it: the reserve for the answer, and the
// amounts that are written as a share of the window. A MinSize that was not above MaxContextTokens stays so. The
// result shares memory with r.
func (r *Resolved) ForWindow(window int) *Resolved {
	own := *r
	own.Window = window
	own.Reserve = own.reserve()
	for key, to := range own.amounts() {
		if share, ok := r.found[key].value.(string); ok {
			*to = tokensOf(share, window)
		}
	}
	if r.MinSize <= r.MaxContextTokens {
		own.MinSize = min(own.MinSize, own.MaxContextTokens)
	}
	return &own
}

// providers makes the chain that r has under a key.
func (c *Config) providers(r *Resolved, key string) ([]Provider, error) {
	chain := []Provider{}
	names, _ := r.found[key].value.([]any)
	for _, v := range names {
		name, _ := v.(string)
		p, err := c.Provider(name)
		if err != nil {
			return nil, err
		}
		chain = append(chain, *p)
	}
	return chain, nil
}

// Truncation is the provider at the end of every chain. It acts above the limit only, unless a
// chain names it: then it acts at the threshold too. No other provider may have its name.
const Truncation = "truncation"

// truncates is the strategy of [Truncation].
const truncates = "slidingwindow"

// Provider returns one provider: declared, or built in.
func (c *Config) Provider(name string) (*Provider, error) {
	f, _ := fieldAt(inProvider, "timeout")
	standard, _ := f.def().(string)
	p := &Provider{Name: name, Settings: json.RawMessage("{}"), Origin: Origin{Kind: FromDefault}}
	p.SettingsDir = c.dirOf(tree.Path{"providers", name, "settings"})
	declared, ok := c.values.Providers[name]
	switch {
	case name == Truncation:
		p.Strategy = truncates
	case !ok:
		if !slices.Contains(c.opts.Builtin, name) {
			return nil, c.errorAt(tree.Path{"providers"}, unknownName(toProvider, name, c.chainNames()))
		}
		p.Strategy = name
	default:
		p.Strategy, p.Plugin, p.SHA256 = declared.Strategy, declared.Plugin, strings.ToLower(declared.SHA256)
		if p.Plugin != "" {
			p.SHA256 = cmp.Or(p.SHA256, c.opts.enforced.pin(name))
			p.Folder, p.Env = declared.Folder, slices.Clone(declared.Env)
		}
		if p.Withheld = c.withheld[tree.Path{"providers", name}.ID()]; p.Withheld != "" {
			p.Strategy, p.Plugin, p.SHA256, p.Folder, p.Env = "", "", "", "", nil
		}
		if len(declared.Settings) > 0 && p.Withheld == "" {
			p.Settings = slices.Clone(declared.Settings)
		}
		p.Origin = c.originOf(tree.Path{"providers", name})
	}
	if declared.Limits != nil {
		p.Limits = *declared.Limits
	}
	if _, set := c.origins[tree.Path{"providers", name, "limits", "model_calls"}.ID()]; !set {
		f, _ := fieldAt("provider.limits", "model_calls")
		calls, _ := f.def().(int64)
		p.Limits.ModelCalls = int(calls)
	}
	timeout, err := time.ParseDuration(cmp.Or(declared.Timeout, standard))
	if err != nil {
		return nil, fmt.Errorf("providers.%s.timeout: %w", name, err)
	}
	p.Timeout = timeout
	return p, nil
}

// dirOf returns the folder that the path in the value at p is relative to.
func (c *Config) dirOf(p tree.Path) string {
	if o := c.origins[p.ID()]; o.Kind == FromFile {
		if dir, err := filepath.Abs(filepath.Dir(o.File)); err == nil {
			return dir
		}
	}
	return c.opts.Dir
}

// originOf returns the origin of the key at p or, without one, the origin of its value.
func (c *Config) originOf(p tree.Path) Origin {
	if o, ok := c.keys[p.ID()]; ok {
		return o
	}
	return c.origins[p.ID()]
}

// An Override replaces values of every profile and mode, as the flags of a command line do.
// The zero value of a field replaces nothing.
type Override struct {
	Window    int // tokens; amounts written as a share of the window follow it
	MaxOutput int // tokens
	Tokenizer string
	Originals string     // [OriginalsNone] or [OriginalsParts]
	Chain     []Provider // empty but not nil means truncation only; then nothing shortens new results
}

// Override returns a configuration that resolves as c does, except for the values of o, which
// are not checked.
func (c *Config) Override(o Override) *Config {
	d := *c
	d.override = o
	return &d
}

func (o *Override) apply(r *Resolved) {
	if o.Window > 0 {
		*r = *r.ForWindow(o.Window)
	}
	r.MaxOutput = cmp.Or(o.MaxOutput, r.MaxOutput)
	r.Tokenizer = cmp.Or(o.Tokenizer, r.Tokenizer)
	r.Originals = cmp.Or(o.Originals, r.Originals)
	if o.Chain != nil {
		r.Chain, r.Ingest = slices.Clone(o.Chain), nil
	}
}

// Rule returns the policy of r.
func (r *Resolved) Rule() policy.Rule {
	return policy.Rule{
		Window: r.Window, MaxOutput: r.MaxOutput, Buffer: r.Buffer, Auto: r.Auto,
		Threshold: r.Threshold, MaxContextTokens: r.MaxContextTokens, MinSize: r.MinSize,
		Target: r.Target, MinGain: r.MinGain, MinNewTokens: r.MinNewTokens, When: r.When, Exceptions: r.Exceptions,
	}
}

// noWindow is the fault of a profile whose window is unknown.
func (c *Config) noWindow(r *Resolved) *Error {
	p := tree.Path{"profiles", r.Profile}
	if r.Model.Name == "" {
		return c.errorAt(p, &fault{problem: "has neither window nor model", allowed: "set one of them"})
	}
	wrong := &fault{
		problem: fmt.Sprintf("the window of model %q is not known", plain.Abbreviate(r.Model.Name)),
		allowed: "set " + p.With("window").String() + " to its number of tokens",
	}
	if looksSecret(r.Model.Name) {
		wrong.problem = "the window of this model is not known"
	}
	if _, declared := c.values.Models[r.Model.Name]; declared {
		wrong.allowed += ", or " + tree.Path{"models", r.Model.Name, "window"}.String()
	} else {
		wrong.suggestion = suggest.Key(r.Model.Name, c.modelNames(r.Model.Name))
	}
	return c.errorAt(r.found["model"].at, wrong)
}

// limit is the number of tokens that may be sent. It is not rounded and may be negative.
func (r *Resolved) limit() float64 { return float64(r.Window)*(1-r.Buffer/100) - float64(r.Reserve) }

// trigger is the number of tokens at which a conversation is condensed, and the setting that says so.
func (r *Resolved) trigger() (tokens float64, by string) {
	tokens, by = r.Threshold*float64(r.Window)/100, "threshold"
	if l := r.limit(); l < tokens {
		tokens, by = l, "limit"
	}
	if most := float64(r.MaxContextTokens); most > 0 && most < tokens {
		tokens, by = most, "max_context_tokens"
	}
	return tokens, by
}

// fit checks that the numbers of r fit together. An Unchecked rule has no invalid numbers.
func (c *Config) fit(r *Resolved) Errors {
	if r.Unchecked {
		return nil
	}
	var errs Errors
	fail := func(key string, f *fault) { errs = append(errs, c.errorAt(r.found[key].at, f).withKey(r, key)) }
	if r.limit() < 1 {
		fail("window", &fault{
			problem: fmt.Sprintf("nothing is left of a window of %s tokens: minus a buffer of %v %% and %s for the answer it is %s",
				size.Group(r.Window), r.Buffer, size.Group(r.Reserve), size.Group(int(math.Floor(r.limit())))),
			allowed: "set max_output to what the agent asks for, or a larger window",
		})
	}
	if r.Target >= r.Threshold {
		fail("target", &fault{
			problem: fmt.Sprintf("%v %% is not below the threshold of profile %s, %v %%", r.Target, r.Profile, r.Threshold),
			allowed: "must be below, or every request would condense again; 0 chooses one",
		})
	}
	if r.MaxContextTokens > 0 && r.MinSize > r.MaxContextTokens {
		fail("min_size", &fault{
			problem: fmt.Sprintf("%s tokens are more than max_context_tokens of profile %s, %s", size.Group(r.MinSize), r.Profile, size.Group(r.MaxContextTokens)),
			allowed: "must not be above",
		})
	}
	return errs
}

// withKey sets the key to the key of the profile, if the value is in no file.
func (e *Error) withKey(r *Resolved, key string) *Error {
	if len(r.found[key].at) < 2 && e.Origin.Kind != FromFile {
		e.Key = tree.Path{"profiles", r.Profile, key}.String()
	}
	return e
}
