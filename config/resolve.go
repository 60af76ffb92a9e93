package config

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/models"
)

// Resolved is what holds for one profile in one mode. All values are final: nothing in it
// inherits any more. It shares nothing with the configuration that could be changed.
type Resolved struct {
	Profile string `json:"profile"`
	Mode    string `json:"mode,omitempty"` // as asked for, also if the configuration has no such mode
	Model   Model  `json:"model"`
	Window  int    `json:"window"` // tokens
	// MaxOutput is what the agent asks the model for as maximum output, 0 if unknown.
	// Reserve is what to keep free for it: MaxOutput, or if that is 0 then 8192, but at most
	// a fifth of the window unless Roo's rule holds.
	MaxOutput int  `json:"max_output"`
	Reserve   int  `json:"reserve"`
	Auto      bool `json:"auto"`
	// Threshold, Buffer and Target are percentages of the window. Divided by 100, a buffer
	// written as 10 is exactly the number 0.1. A Target of 0 leaves the choice to the policy:
	// the middle between what cannot be removed and what triggers.
	Threshold float64 `json:"threshold"`
	Buffer    float64 `json:"buffer"`
	Target    float64 `json:"target"`
	// MaxContextTokens is the cap in tokens, 0 for none.
	MaxContextTokens int     `json:"max_context_tokens"`
	MinGain          float64 `json:"min_gain"`       // percent of the conversation's tokens
	MinNewTokens     int     `json:"min_new_tokens"` // since the last condensation
	MinSize          int     `json:"min_size"`       // tokens to keep, 0 for no minimum
	Tokenizer        string  `json:"tokenizer"`
	Prompt           string  `json:"prompt"` // empty: the provider's own
	// Chain holds the providers to ask, in order. Truncation follows the last one always
	// and is not listed.
	Chain []Provider `json:"chain"`
	// RooRule says that numbers mean what they mean to Roo Code: no check of the limit
	// against zero, negative MaxOutput as it is. A threshold of a profile outside 5 to 100
	// has been replaced by the inherited one.
	RooRule bool `json:"roo_rule,omitempty"`

	steps map[string][]Step
	at    map[string][]string // the key that the value was found at
}

// A Provider is a strategy with settings, ready to be opened.
type Provider struct {
	Name     string `json:"name"`
	Strategy string `json:"strategy,omitempty"` // of a built-in one; empty for a plugin
	Plugin   string `json:"plugin,omitempty"`   // absolute path of the program
	SHA256   string `json:"sha256,omitempty"`   // its checksum in lower case, empty if none is set
	// Timeout is always positive.
	Timeout time.Duration `json:"timeout"`
	// Settings is a JSON object, {} if there are none.
	Settings json.RawMessage `json:"settings"`
	// Origin is where the provider is declared.
	Origin Origin `json:"origin"`
}

// MarshalJSON writes the timeout as a file has it, "45s".
func (p Provider) MarshalJSON() ([]byte, error) {
	type plain Provider
	return json.Marshal(struct {
		plain
		Timeout string `json:"timeout"`
	}{plain(p), p.Timeout.String()})
}

// A Model is a language model as far as the configuration and the built-in table know it.
type Model struct {
	Name       string       `json:"name,omitempty"` // as written; empty if the profile names none
	API        string       `json:"api,omitempty"`  // anthropic or openai; empty if unknown
	ID         string       `json:"id,omitempty"`   // as the API knows it
	BaseURL    string       `json:"base_url,omitempty"`
	APIKeyEnv  string       `json:"api_key_env,omitempty"`
	APIKeyFile string       `json:"api_key_file,omitempty"` // absolute
	Window     int          `json:"window,omitempty"`       // tokens, 0 if unknown
	MaxOutput  int          `json:"max_output,omitempty"`   // as configured for this model, 0 if it is not
	Output     int          `json:"output,omitempty"`       // the longest answer it can give, 0 if unknown
	Price      models.Price `json:"price"`                  // zero if unknown
	// Tiers are the higher prices of long requests, if the built-in table has any and the
	// configuration sets no price.
	Tiers []models.Tier `json:"tiers,omitempty"`
}

// A Step is one level that a value was looked for at, nearest first.
type Step struct {
	Level  string `json:"level"` // mode code, profile sonnet, preset roo, model cheap, top level, default
	Value  any    `json:"value"` // nil if the level sets none
	Origin Origin `json:"origin"`
	Used   bool   `json:"used"`
	Note   string `json:"note,omitempty"` // why it was not used
}

// Origin returns where the value of a field came from; the field is named by its key:
// "threshold", "max_context_tokens".
func (r *Resolved) Origin(key string) Origin {
	for _, s := range r.steps[key] {
		if s.Used {
			return s.Origin
		}
	}
	return Origin{}
}

// Steps returns the levels that the value of a field was looked for at, up to the one that
// had it.
func (r *Resolved) Steps(key string) []Step { return slices.Clone(r.steps[key]) }

// Resolve returns what holds for a mode under a profile. An empty profile means the one
// that the mode names, or the default profile. An empty mode, or one that is not declared,
// overrides nothing. An error says that there is no such profile, or that the numbers of a
// profile and a mode that the configuration does not bring together do not fit.
func (c *Config) Resolve(profile, mode string) (*Resolved, error) {
	return c.resolveWindow(profile, mode, 0)
}

// resolveWindow is Resolve for another window than the profile's, if it is not 0.
func (c *Config) resolveWindow(profile, mode string, window int) (*Resolved, error) {
	r, errs := c.resolve(profile, mode, window)
	if len(errs) > 0 {
		return nil, errs.sorted()
	}
	chain, err := c.providers(r)
	if err != nil {
		return nil, err
	}
	r.Chain = chain
	return r, nil
}

// A level is one place that values are inherited through.
type level struct {
	label  string
	path   path           // in the configuration; nil for the top level and what is not in it
	values map[string]any // may be nil
	origin Origin         // of values that are not in the configuration
}

// The labels of levels that have no name.
const (
	topLevel     = "top level"
	defaultLabel = "default"
)

// lineage returns a profile and those it extends, nearest first, and whether one of them
// has Roo's rule. It is empty if a name is unknown or the profiles form a circle.
func (c *Config) lineage(profile string) (names []string, roo bool) {
	for name := profile; name != ""; {
		p, ok := c.values.Profiles[name]
		if !ok || slices.Contains(names, name) {
			return nil, false
		}
		names = append(names, name)
		if preset, ok := presetNamed(p.Preset); ok && preset.rooRule {
			roo = true
		}
		name = p.Extends
	}
	return names, roo
}

func (c *Config) levels(profiles []string, mode string) []level {
	at := func(label string, p path) level {
		v, _ := lookup(c.raw, p)
		m, _ := v.(map[string]any)
		return level{label: label, path: p, values: m}
	}
	var levels []level
	if _, ok := c.values.Modes[mode]; ok {
		levels = append(levels, at("mode "+mode, path{"modes", mode}))
	}
	modelSeen := false
	for _, name := range profiles {
		levels = append(levels, at("profile "+name, path{"profiles", name}))
		p := c.values.Profiles[name]
		if p.Model != "" && !modelSeen {
			modelSeen = true
			if m, err := c.Model(p.Model); err == nil {
				levels = append(levels, c.modelLevel(m))
			}
		}
		if preset, ok := presetNamed(p.Preset); ok {
			levels = append(levels, level{
				label: "preset " + preset.name, values: preset.values,
				origin: Origin{Kind: FromPreset, Name: preset.name},
			})
		}
	}
	return append(levels, at(topLevel, nil), defaultLevel())
}

// modelLevel makes what is known about a model a level of inheritance: below the profile
// that names the model, above all that this profile inherits.
func (c *Config) modelLevel(m *Model) level {
	l := level{label: "model " + m.Name, values: map[string]any{}, origin: Origin{Kind: FromModel, Name: m.Name}}
	declared := c.values.Models[m.Name]
	if declared.Window > 0 || declared.MaxOutput > 0 {
		l.path = path{"models", m.Name}
	}
	if m.Window > 0 {
		l.values["window"] = int64(m.Window)
	}
	if m.MaxOutput > 0 {
		l.values["max_output"] = int64(m.MaxOutput)
	}
	return l
}

func defaultLevel() level {
	l := level{label: defaultLabel, values: map[string]any{}, origin: Origin{Kind: FromDefault}}
	for _, f := range fieldsAt(atTop) {
		if f.def != nil {
			l.values[f.key] = f.def
		}
	}
	return l
}

// A finder looks values up along levels and remembers how.
type finder struct {
	c      *Config
	levels []level
	roo    bool
	steps  map[string][]Step
	at     map[string][]string
}

// find returns the value of a field, nil if no level has one.
func (f *finder) find(key string) any {
	for _, l := range f.levels {
		v, has := l.values[key]
		step := Step{Level: l.label, Value: v, Origin: l.origin}
		if l.path != nil || l.label == topLevel {
			if o, ok := f.c.origins[l.path.with(key).id()]; ok {
				step.Origin = o
			}
		}
		switch {
		case !has || v == nil:
			step.Note = "not set"
			step.Origin = Origin{}
		case isInherit(v):
			step.Note = "inherits"
		case step.Origin.Kind == FromDefault && l.label != defaultLabel && key != "window":
			continue // merged into the top level; the default level says it
		case key == "window" && step.Origin.Kind == FromDefault && f.knowsWindow():
			step.Note = "the model's window is known"
		case key == "threshold" && f.roo && l.label != topLevel && l.label != defaultLabel && outsideThreshold(v):
			step.Note = "ignored by Roo's rule"
		default:
			step.Used = true
		}
		f.steps[key] = append(f.steps[key], step)
		if step.Used {
			f.at[key] = l.path.with(key)
			return v
		}
	}
	return nil
}

// knowsWindow reports whether a level after the built-in window has one.
func (f *finder) knowsWindow() bool {
	return slices.ContainsFunc(f.levels, func(l level) bool { return l.origin.Kind == FromModel && l.values["window"] != nil })
}

func isInherit(v any) bool {
	n, ok := number(v)
	return ok && n == inherit
}

func outsideThreshold(v any) bool {
	f, _ := fieldAt(atTop, "threshold")
	n, _ := number(v)
	return n < f.min || n > f.max
}

func (f *finder) percent(key string) float64 {
	n, _ := number(f.find(key))
	return n
}

func (f *finder) tokens(key string, window int) int {
	switch v := f.find(key).(type) {
	case string:
		var a Amount
		if text, err := json.Marshal(v); err == nil && a.UnmarshalJSON(text) == nil {
			return a.Of(window)
		}
	case int64:
		return int(v)
	case float64:
		return int(v)
	}
	return 0
}

func (f *finder) text(key string) string {
	s, _ := f.find(key).(string)
	return s
}

// resolve is Resolve without the chain's providers.
func (c *Config) resolve(profile, mode string, window int) (*Resolved, Errors) {
	chosen := Step{Level: "argument", Origin: Origin{Kind: FromArgument}, Used: true}
	if profile == "" {
		if profile = c.values.Modes[mode].Profile; profile != "" {
			chosen.Level, chosen.Origin = "mode "+mode, c.origins[path{"modes", mode, "profile"}.id()]
		} else {
			profile = c.values.DefaultProfile
			chosen.Level, chosen.Origin = topLevel, c.origins["default_profile"]
		}
	}
	chosen.Value = profile
	names, roo := c.lineage(profile)
	if len(names) == 0 {
		f := unknownName(toProfile, profile, c.Profiles())
		return nil, Errors{{Origin: chosen.Origin, Key: "profile", Problem: f.problem, Allowed: f.allowed, Suggestion: f.suggestion}}
	}
	f := finder{c: c, levels: c.levels(names, mode), roo: roo, steps: map[string][]Step{}, at: map[string][]string{}}
	r := &Resolved{Profile: profile, Mode: mode, RooRule: roo, steps: f.steps, at: f.at}
	f.steps["profile"] = []Step{chosen}

	if name := f.text("model"); name != "" {
		m, err := c.Model(name)
		r.Model = Model{Name: name, ID: name}
		if err == nil {
			r.Model = *m
		}
	}
	r.Window = f.tokens("window", 0)
	if window > 0 {
		r.Window = window
		f.steps["window"] = []Step{{Level: "argument", Value: window, Origin: Origin{Kind: FromArgument}, Used: true}}
	}
	if r.Window == 0 {
		return nil, Errors{c.noWindow(r, &f)}
	}
	r.MaxOutput = f.tokens("max_output", r.Window)
	r.Reserve = r.MaxOutput
	if r.Reserve == 0 {
		r.Reserve = unknownOutput
		if !roo {
			r.Reserve = min(unknownOutput, r.Window/unknownShare)
		}
	}
	r.Auto, _ = f.find("auto").(bool)
	r.Threshold = f.percent("threshold")
	r.Buffer = f.percent("buffer")
	r.MinGain = f.percent("min_gain")
	r.MaxContextTokens = f.tokens("max_context_tokens", r.Window)
	r.MinNewTokens = f.tokens("min_new_tokens", r.Window)
	r.MinSize = f.tokens("min_size", r.Window)
	r.Tokenizer = f.text("tokenizer")
	r.Prompt = f.text("prompt")
	r.Target = f.percent("target")
	errs := c.fit(r)
	f.find("chain")
	return r, errs
}

// noWindow says what to do about a window that nobody knows.
func (c *Config) noWindow(r *Resolved, f *finder) *Error {
	p := path{"profiles", r.Profile}
	if r.Model.Name == "" {
		return c.errorAt(p, &fault{problem: "has neither window nor model", allowed: "set one of them"})
	}
	wrong := &fault{
		problem: fmt.Sprintf("the window of model %q is not known", abbreviate(r.Model.Name)),
		allowed: "set " + p.with("window").String() + " to its number of tokens",
	}
	if looksSecret(r.Model.Name) {
		wrong.problem = "the window of this model is not known"
	}
	if _, declared := c.values.Models[r.Model.Name]; declared {
		wrong.allowed += ", or " + path{"models", r.Model.Name, "window"}.String()
	} else {
		wrong.suggestion = nearest(r.Model.Name, c.modelNames(r.Model.Name))
	}
	return c.errorAt(f.at["model"], wrong)
}

// limit is what may be sent, in tokens. It is neither rounded nor limited to zero.
func (r *Resolved) limit() float64 {
	return float64(r.Window)*(1-r.Buffer/100) - float64(r.Reserve)
}

// trigger is the number of tokens that a conversation is condensed at, and what sets it.
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

// fit checks that the numbers of r fit together. Under Roo's rule no number is refused.
func (c *Config) fit(r *Resolved) Errors {
	if r.RooRule {
		return nil
	}
	var errs Errors
	fail := func(key string, f *fault) {
		errs = append(errs, c.errorAt(r.at[key], f).withKey(r, key))
	}
	if r.limit() < 1 {
		fail("window", &fault{
			problem: fmt.Sprintf("nothing is left of a window of %d tokens: minus a buffer of %v %% and %d for the answer it is %v",
				r.Window, r.Buffer, r.Reserve, math.Floor(r.limit())),
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
			problem: fmt.Sprintf("%d tokens are more than max_context_tokens of profile %s, %d", r.MinSize, r.Profile, r.MaxContextTokens),
			allowed: "must not be above",
		})
	}
	return errs
}

// withKey fills in what is missing if the value stands in no file: the profile's key.
func (e *Error) withKey(r *Resolved, key string) *Error {
	if len(r.at[key]) < 2 && e.Origin.Kind != FromFile {
		e.Key = path{"profiles", r.Profile, key}.String()
	}
	return e
}

// Model returns what is known about a model: one of the section models, or of the built-in
// table by "provider/id" or id. What the section does not say, the table adds.
func (c *Config) Model(name string) (*Model, error) {
	declared, ok := c.values.Models[name]
	if !ok {
		known, err := models.Lookup(name)
		if err != nil {
			return nil, fmt.Errorf("%w; or declare it in the section models", err)
		}
		return fromTable(name, known), nil
	}
	m := &Model{Name: name, ID: declared.Model}
	if m.ID == "" {
		m.ID = name
	}
	known, err := models.Lookup(m.ID)
	if declared.API != "" {
		if k, errAPI := models.Lookup(declared.API + "/" + m.ID); errAPI == nil {
			known, err = k, nil
		}
	}
	if err != nil {
		known = &models.Model{} // then what is declared is all there is
	}
	id := m.ID
	*m = *fromTable(name, known)
	m.ID = id
	m.API = either(declared.API, m.API)
	m.BaseURL, m.APIKeyEnv, m.APIKeyFile = declared.BaseURL, declared.APIKeyEnv, declared.APIKeyFile
	m.Window, m.MaxOutput = either(declared.Window, m.Window), declared.MaxOutput
	if declared.Price != nil {
		m.Price, m.Tiers = *declared.Price, nil
	}
	return m, nil
}

func fromTable(name string, known *models.Model) *Model {
	m := &Model{
		Name: name, ID: known.ID, Window: known.Window, Output: known.Output,
		Price: known.Price, Tiers: slices.Clone(known.Tiers),
	}
	if f, _ := fieldAt(inModel, "api"); slices.Contains(f.enum, known.Provider) {
		m.API = known.Provider
	}
	return m
}

func either[T comparable](first, second T) T {
	var zero T
	if first != zero {
		return first
	}
	return second
}

// modelNames returns the names that a model could have been meant by.
func (c *Config) modelNames(like string) []string {
	names := c.Models()
	full := strings.Contains(like, "/")
	for m := range models.All() {
		if full {
			names = append(names, m.Name())
		} else {
			names = append(names, m.ID)
		}
	}
	return names
}

// providers makes the chain of r.
func (c *Config) providers(r *Resolved) ([]Provider, error) {
	chain := []Provider{}
	var names []any
	for _, s := range r.steps["chain"] {
		if s.Used {
			names, _ = s.Value.([]any)
		}
	}
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

// Provider returns one provider: declared, or built in.
func (c *Config) Provider(name string) (*Provider, error) {
	f, _ := fieldAt(inProvider, "timeout")
	standard, _ := f.def.(string)
	p := &Provider{Name: name, Settings: json.RawMessage("{}"), Origin: Origin{Kind: FromDefault}}
	declared, ok := c.values.Providers[name]
	if !ok {
		if !slices.Contains(c.opts.Builtin, name) {
			return nil, c.errorAt(path{"providers"}, unknownName(toProvider, name, c.chainNames()))
		}
		p.Strategy = name
	} else {
		p.Strategy, p.Plugin, p.SHA256 = declared.Strategy, declared.Plugin, strings.ToLower(declared.SHA256)
		if len(declared.Settings) > 0 {
			p.Settings = slices.Clone(declared.Settings)
		}
		p.Origin = c.originOf(path{"providers", name})
	}
	timeout, err := time.ParseDuration(either(declared.Timeout, standard))
	if err != nil {
		return nil, fmt.Errorf("providers.%s.timeout: %w", name, err)
	}
	p.Timeout = timeout
	return p, nil
}

// originOf returns where the key at p stands, or else its value.
func (c *Config) originOf(p path) Origin {
	if o, ok := c.keys[p.id()]; ok {
		return o
	}
	return c.origins[p.id()]
}
