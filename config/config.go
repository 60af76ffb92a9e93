// Package config reads the user's settings: thresholds, chains of providers, profiles and
// modes, from files, the environment and flags.
//
// [Load] merges five layers, each overriding the one before: built-in defaults, the user's
// file, the project's file, the environment (CONDENSE_…), flags. The result is a [Config]:
// complete, valid and immutable, so any number of goroutines may use it. All faults of all
// layers are reported at once, as [Errors]. [Config.Resolve] returns the values for a profile
// and a mode. [Watch] keeps a configuration current while its files change.
//
// A value that is absent or -1 inherits: a mode from its profile, a profile from the one it
// extends, the last profile from the top level, and the top level of a file from the layers below.
//
// The package knows no strategies and does not interpret their settings. [Options] lists the
// names that exist and has a function that checks settings.
package config

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/v2"

	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/tree"
)

// Options say where to look and which names exist. The zero value looks where a command line
// tool would, and accepts any name of a strategy or tokenizer.
type Options struct {
	// Path is a file to read instead of looking for any, as given by a flag.
	Path string
	// Dir is where the search for the project's file begins, upward to the root of its
	// repository. Paths in variables and flags are relative to it. Empty means the working
	// directory.
	Dir string
	// Env is the environment as [os.Environ] returns it. Nil means the environment of the process.
	Env []string
	// Flags set single values: "profiles.code.threshold" to "70". Values have the same form
	// as in the environment.
	Flags map[string]string
	// Builtin, Chain, Strategies and Tokenizers are filled in by the function Open of the root
	// package, as far as they are nil. CheckProvider is for programs that report all faults of
	// a file at their positions, as 'condense config check' does.
	//
	// Builtin are the providers that a chain may name without a declaration. Each is the
	// strategy of the same name with its default settings.
	Builtin []string
	// Chain is the chain used if no level sets one, by names of Builtin. A declared provider
	// of such a name replaces the built-in one. Empty is truncation only.
	Chain []string
	// Strategies are the strategies that providers may name. Nil accepts any.
	Strategies []string
	// Tokenizers are the encodings that exist. Nil accepts any.
	Tokenizers []string
	// CheckProvider returns the faults in the settings of a provider. It is called for every
	// declared provider that has no other fault. Of the Config it may use the models only. A
	// provider that is withheld for lack of trust has its Plugin set, which CheckProvider
	// must not start. Nil checks nothing.
	CheckProvider func(*Config, Provider) []ProviderFault
	// Trust reports whether the parts of a file that need trust have it, see [Claims]. It is
	// called for every file with such parts, found or named by Path, except those in the
	// user's own configuration folder, perhaps more than once. Nil means the user's agreements
	// from 'condense trust'. A program that ships a file of its own returns true for that file.
	// Providers and models without trust are in the configuration, but are not used: see
	// [Provider.Withheld] and [Model.Withheld].
	Trust func(Claims) bool
	// Require reports whether a part that needs trust must not be withheld: then Load returns an
	// [*UntrustedError] in its place, and a [Watcher] keeps the configuration that it has. A gateway
	// requires its section serve, because without it anyone may call it, and conversations go
	// elsewhere. It may be called several times. Nil requires nothing.
	Require func(Claim) bool
	// Serving adds what [Serve.Account] names as the first provider of every chain that has one. A gateway sets it.
	Serving bool
	// IgnoreEnv are variables that begin with CONDENSE_ but belong to other programs.
	IgnoreEnv []string

	enforced enforced // by the policies, for Load
}

// A ProviderFault is a fault that [Options.CheckProvider] found. It is reported with all other
// faults, at the position of the value.
type ProviderFault struct {
	// Key is the path of the value below the provider: settings, mode. Empty means the provider.
	Key []string
	// AtName reports that the key is wrong, not its value.
	AtName     bool
	Problem    string
	Allowed    string // the valid values; may be empty
	Suggestion string // the name that was probably meant; may be empty
	// Warning reports a value that works and should be changed.
	Warning bool
}

// A Config is a complete and valid configuration. It never changes; all methods may be
// called by any number of goroutines.
type Config struct {
	values   Values
	raw      map[string]any
	origins  map[string]Origin
	keys     map[string]Origin
	history  map[string][]Setting // the values of each layer, lowest first
	files    []string             // in order of reading
	warnings Errors
	claims   []Claims
	withheld map[string]string // why a provider or model is not used, by path.id
	opts     Options
	override Override
	lines    *lines
	names    map[string][]string // of the sections profiles, modes, providers and models, sorted
}

// Default returns the configuration without any file, variable or flag.
func Default() *Config {
	c, err := New(Values{}, Options{})
	if err != nil {
		panic("config: invalid built-in defaults: " + err.Error()) // a test loads them
	}
	return c
}

// Load reads the configuration: defaults, the user's file, the project's file, environment,
// flags; and the policies of the administrator, see [PolicyValues]. The error is an [Errors] with every fault, or an [*UntrustedError]. Parts without trust are
// checked as all others, before they are withheld.
func Load(opts Options) (*Config, error) {
	if opts.Env == nil {
		opts.Env = os.Environ()
	}
	c, err := load(opts, false)
	if err == nil && slices.ContainsFunc(c.claims, func(claims Claims) bool { return !claims.Trusted }) {
		if err = c.required(); err == nil {
			c, err = load(opts, true)
		}
	}
	if err == nil {
		err = c.required() // the files may have changed
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

func load(opts Options, withholds bool) (*Config, error) {
	env := environment(opts.Env)
	files, errs := find(&opts, env)
	var wrong Errors
	opts.enforced, wrong = readPolicies(policyFiles(machinePolicy(), env), &opts)
	b := newBuilder(opts)
	b.withholds = withholds
	b.errs = append(b.errs, wrong...)
	b.errs = append(b.errs, errs...)
	links := map[string]string{}
	for _, file := range files {
		if target := outside(file, env); target != "" {
			links[disk.FromHere(file)] = target
		}
		layer, errs := readFile(file, &b.opts, atTop)
		b.errs = append(b.errs, errs...)
		if layer != nil {
			b.judge(file, layer)
			b.add(layer)
		}
	}
	b.add(checkVariables(env.variables(opts.IgnoreEnv), envSpelling, FromEnv, b.k.Raw(), &b.opts))
	flags := plain.Each(sortedKeys(opts.Flags), func(key string) variable { return variable{key, key, opts.Flags[key]} })
	b.add(checkVariables(flags, dottedSpelling, FromFlag, b.k.Raw(), &b.opts))
	c, err := b.build(&Config{files: files})
	if faults, ok := err.(Errors); ok && len(links) > 0 { //nolint:errorlint // of build, unwrapped
		return nil, faults.unseen(links)
	}
	if err == nil {
		c.warnings = c.warnings.unseen(links)
	}
	return c, err
}

// New makes a configuration from the defaults and values, without files, environment and
// flags. Of opts, it uses Dir and the names that exist.
func New(values Values, opts Options) (*Config, error) {
	b := newBuilder(opts)
	layer, errs := values.layer(&b.opts)
	if layer == nil {
		return nil, errs
	}
	b.add(layer)
	return b.build(&Config{})
}

// Files returns the files that were read, lowest layer first.
func (c *Config) Files() []string { return slices.Clone(c.files) }

// Warnings returns the settings that are valid but probably not intended.
func (c *Config) Warnings() Errors { return slices.Clone(c.warnings) }

// Values returns a copy of the merged values, defaults included.
func (c *Config) Values() Values {
	values, err := decode(c.raw, c.opts.Env)
	if err != nil {
		return c.values // it was decoded before and cannot fail now
	}
	return values
}

// Profiles returns the names of all profiles, sorted.
func (c *Config) Profiles() []string { return slices.Clone(c.names["profiles"]) }

// Modes returns the names of all declared modes, sorted.
func (c *Config) Modes() []string { return slices.Clone(c.names["modes"]) }

// Providers returns the names of all declared providers, sorted.
func (c *Config) Providers() []string { return slices.Clone(c.names["providers"]) }

// Models returns the names of all declared models, sorted.
func (c *Config) Models() []string { return slices.Clone(c.names["models"]) }

// Origin returns where the value at a key came from, for example
// Origin("profiles", "gpt-4.1", "threshold"). False means that no layer has the key.
func (c *Config) Origin(key ...string) (Origin, bool) {
	o, ok := c.origins[tree.Path(key).ID()]
	return o, ok
}

// A builder merges layers.
type builder struct {
	k       *koanf.Koanf
	opts    Options
	origins map[string]Origin
	keys    map[string]Origin
	history map[string][]Setting
	soft    []softError
	errs    Errors

	claims    []Claims
	warnings  Errors
	withheld  map[string]string
	withholds bool // removes parts without trust; else they are only marked
}

func newBuilder(opts Options) *builder {
	if opts.Env == nil {
		opts.Env = os.Environ()
	}
	opts.Dir = cmp.Or(opts.Dir, ".")
	if dir, err := filepath.Abs(opts.Dir); err == nil {
		opts.Dir = dir
	}
	b := &builder{
		// A koanf is not safe for concurrent use while loading, so each load makes its own. It
		// splits keys at its delimiter, so that is one that no name contains.
		k: koanf.New(tree.Sep), opts: opts, origins: map[string]Origin{}, keys: map[string]Origin{},
		history: map[string][]Setting{}, withheld: map[string]string{},
	}
	b.add(defaults(opts))
	return b
}

// def returns the default of a field, nil if it has none.
func (o *Options) def(f field) any {
	if f.key != "chain" || len(o.Chain) == 0 {
		return o.enforced.standard(f, f.def())
	}
	return plain.Each(o.Chain, func(name string) any { return name })
}

// defaults is the lowest layer.
func defaults(opts Options) *checker {
	c := newChecker(&opts, opts.Dir, func(tree.Position) Origin { return Origin{Kind: FromDefault} })
	c.values = c.defaults(atTop, nil)
	window := tree.Path{"profiles", defaultProfile, "window"}
	c.values["profiles"] = map[string]any{defaultProfile: map[string]any{"window": int64(defaultWindow)}}
	providers := map[string]any{}
	for _, p := range presets() {
		for name, v := range p.providers {
			providers[name] = v
			for key := range v {
				c.origins[tree.Path{"providers", name, key}.ID()] = Origin{Kind: FromPreset, Name: p.name}
			}
			c.origins[tree.Path{"providers", name}.ID()] = Origin{Kind: FromPreset, Name: p.name}
		}
	}
	c.values["providers"] = providers
	for p := window; len(p) > 0; p = p[:len(p)-1] {
		c.origins[p.ID()] = Origin{Kind: FromDefault}
	}
	return c
}

// defaults returns the defaults of the fields at a place, and of the objects in it.
func (c *checker) defaults(at place, p tree.Path) map[string]any {
	values := map[string]any{}
	for _, f := range fieldsAt(at) {
		def := c.opts.def(f)
		if f.kind == kindObject {
			def = c.defaults(f.of, p.With(f.key))
		}
		if def != nil {
			values[f.key] = def
			c.origins[p.With(f.key).ID()] = Origin{Kind: FromDefault}
		}
	}
	return values
}

// add merges a layer over the layers below.
func (b *builder) add(c *checker) {
	b.errs = append(b.errs, c.errs...)
	c.errs = nil
	b.soft = append(b.soft, c.soft...)
	before := b.k.Raw()
	b.inheritBelow(c)
	b.replaceChoices(c, before)
	if err := b.k.Load(confmap.Provider(c.values, ""), nil); err != nil {
		b.errs = append(b.errs, &Error{Origin: Origin{Kind: FromProgram}, Problem: err.Error()})
		return
	}
	for _, id := range sortedKeys(c.origins) {
		p := tree.Path(strings.Split(id, tree.Sep))
		if v, ok := lookup(c.values, p); ok {
			if _, isMap := v.(map[string]any); !isMap {
				b.history[id] = append(b.history[id], Setting{Key: p.String(), Value: v, Origin: c.origins[id]})
			}
		}
		if v, ok := lookup(before, p); ok {
			if _, isList := v.([]any); isList {
				b.forget(id) // a replaced list has no old elements
			}
		}
		b.origins[id] = c.origins[id]
	}
	maps.Copy(b.keys, c.keys)
}

// inheritBelow drops each -1 that inherits the value of the layers below, as if it were absent: at
// the top level of a file, and everywhere in the environment and the flags. In a profile or a mode
// of a file, -1 inherits from the next level.
func (b *builder) inheritBelow(c *checker) {
	for _, id := range sortedKeys(c.origins) {
		p := tree.Path(strings.Split(id, tree.Sep))
		v, ok := lookup(c.values, p)
		if !ok || !isInherit(v) || !inherits(p) || len(p) > 1 && !c.vars {
			continue
		}
		b.history[id] = append(b.history[id], Setting{Key: p.String(), Value: v, Origin: c.origins[id]})
		parent, _ := lookup(c.values, p[:len(p)-1])
		if m, ok := parent.(map[string]any); ok {
			delete(m, p[len(p)-1])
		}
		delete(c.origins, id)
	}
}

// inherits reports whether -1 means to inherit at p.
func inherits(p tree.Path) bool {
	places := map[string]place{"profiles": inProfile, "modes": inMode}
	switch at, ok := places[p[0]]; {
	case len(p) == 1:
		f, _ := fieldAt(atTop, p[0])
		return f.inherits
	case len(p) == 3 && ok:
		f, _ := fieldAt(at, p[2])
		return f.inherits
	}
	return false
}

// replaceChoices removes values of the lower layers that contradict the choices of c: the
// settings of another strategy, the other source of an API key.
func (b *builder) replaceChoices(c *checker, before map[string]any) {
	providers, _ := c.values["providers"].(map[string]any)
	for name, v := range providers {
		p := tree.Path{"providers", name}
		above, _ := v.(map[string]any)
		below, _ := lookup(before, p)
		old, _ := below.(map[string]any)
		for _, key := range []string{"strategy", "plugin"} {
			if above[key] != nil && old != nil && above[key] != old[key] {
				if b.withholds { // else nothing is opened with its replacement
					delete(b.withheld, p.ID())
				}
				b.remove(p)
			}
		}
	}
	other := func(p tree.Path, v any, sources ...string) {
		above, _ := v.(map[string]any)
		for _, key := range sources {
			for _, other := range sources {
				if above[key] != nil && above[other] == nil {
					b.remove(p.With(other))
				}
			}
		}
	}
	declared, _ := c.values["models"].(map[string]any)
	for name, v := range declared {
		other(tree.Path{"models", name}, v, "api_key_env", "api_key_file")
	}
	other(tree.Path{"serve"}, c.values["serve"], "token_env", "token_file", "tokens")
}

func (b *builder) remove(p tree.Path) {
	b.k.Delete(p.ID())
	delete(b.origins, p.ID())
	delete(b.history, p.ID())
	b.forget(p.ID())
}

func (b *builder) forget(id string) {
	for key := range b.origins {
		if strings.HasPrefix(key, id+tree.Sep) {
			delete(b.origins, key)
			delete(b.history, key)
		}
	}
}

// lookup returns the value at a path of nested mappings.
func lookup(m map[string]any, p tree.Path) (any, bool) {
	var v any = m
	for _, name := range p {
		inner, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = inner[name]; !ok {
			return nil, false
		}
	}
	return v, true
}

// build decodes and checks the merged layers as a whole.
func (b *builder) build(c *Config) (*Config, error) {
	c.raw, c.origins, c.keys, c.history, c.opts = b.k.Raw(), b.origins, b.keys, b.history, b.opts
	c.claims, c.withheld = b.claims, b.withheld
	values, err := decode(c.raw, c.opts.Env)
	if err != nil {
		// The kinds of fields and the types disagree.
		b.errs = append(b.errs, &Error{Origin: Origin{Kind: FromProgram}, Problem: err.Error()})
		return nil, b.errs.ordered()
	}
	c.values, c.lines = values, &lines{of: map[lineID]*line{}}
	c.names = map[string][]string{
		"profiles": sortedKeys(values.Profiles), "modes": sortedKeys(values.Modes),
		"providers": sortedKeys(values.Providers), "models": sortedKeys(values.Models),
	}
	v := validator{c: c, errs: b.errs, soft: b.soft, warnings: b.warnings}
	v.validate()
	if err := v.errs.ordered(); err != nil {
		return nil, err
	}
	c.warnings = v.warnings.sorted()
	return c, nil
}

// decode returns merged values, with those that depend on others.
func decode(raw map[string]any, env environment) (Values, error) {
	var values Values
	text, err := json.Marshal(raw)
	if err != nil {
		return values, err
	}
	if err := json.Unmarshal(text, &values); err != nil || values.Serve == nil {
		return values, err
	}
	serve, _ := raw["serve"].(map[string]any)
	return values, values.Serve.complete(serve, env)
}
