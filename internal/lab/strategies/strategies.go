// Package strategies opens the strategies that the --strategies flag of condense compare names, and
// writes the best of each mode as a part of a configuration.
package strategies

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/resolver"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/providers/slidingwindow"
	"github.com/condensehq/condense/registry"
)

// usual lists the strategies that are compared by default, in addition to those of the configuration.
var usual = []string{
	"smart/balanced", headTailName, "smart/lossless", "smart/observation_masking", fittedMasking, "slidingwindow/budget", "slidingwindow/half",
}

// fittedMasking removes old results until the target is met, so that no truncation follows, which presets with a
// fixed number need.
const fittedMasking = `masking fitted=smart{"passes":[{"pass":"mask","keep":0,"until_target":true}]}`

// presetSettings are the settings that NAME/PRESET may set: the first of them that a strategy has.
var presetSettings = []string{"preset", "mode"}

// Models resolves the names of language models. The agent is the model of the profile, for providers that name
// none.
type Models interface {
	Model(agent, name string) (model.Generator, error)
	// Check returns an error if the model cannot be called, for example because its key is not set.
	Check(agent, name string) error
	// Reader says which model that is.
	Reader(agent, name string) resolver.Reader
}

// An Opener opens strategies by name.
type Opener struct {
	Host     *condense.Host // owns the providers
	Config   *config.Config
	Registry *registry.Registry
	Models   Models
	Profile  string                                // for the language model of providers that name none; optional
	Model    string                                // of providers that name none; optional
	Usual    []string                              // strategies that are opened if none is named, after those of the configuration; optional
	Path     func(path string) string              // how a path is shown; optional
	Pin      func(config.Provider) (string, error) // returns the approved checksum of a plugin; without one its results are not cached
	Others   []string                              // names of other programs in the comparison, for NAME~peers
}

// A Set holds opened strategies.
type Set struct {
	Strategies []lab.Strategy
	Chains     map[string][]config.Provider // by the name of a strategy, without the truncation that follows
	// LeftOut are errors of default strategies that cannot be used.
	LeftOut []error
}

// Open opens the strategies of lists, each with commas between several; see the help of condense compare for their
// form. If lists name none, it opens the configuration's and a few built-in ones, without those whose language model
// cannot be called. For a named strategy that is an error.
func (b *Opener) Open(ctx context.Context, lists []string) (*Set, error) {
	out := &Set{Chains: map[string][]config.Provider{}}
	words := slices.Concat(plain.Each(lists, func(list string) []string { return splitOutside(list, ',') })...)
	named := len(words) > 0
	if !named {
		words = append(b.declared(), usual...)
		if b.Usual != nil {
			words = append(b.declared(), b.Usual...)
		}
	}
	var errs []error
	seen := map[string]string{} // the word that defined each name
	for _, word := range words {
		expanded := []string{word}
		if word == "all" {
			expanded = b.everything(ctx)
		} else if name, ok := strings.CutSuffix(word, "~peers"); ok {
			expanded = nil
			expanded = append(expanded, plain.Each(b.Others, func(other string) string { return name + "~" + other })...)
		}
		for _, w := range expanded {
			s, chain, err := b.strategy(ctx, w)
			var mute *muteError
			switch {
			case err == nil:
			case !named && errors.As(err, &mute):
				out.LeftOut = append(out.LeftOut, err)
				continue
			default:
				errs = append(errs, err)
				continue
			}
			switch first, ok := seen[s.Name]; {
			case !ok:
				seen[s.Name] = w
				out.Strategies = append(out.Strategies, s)
				out.Chains[s.Name] = chain
			case first != w:
				errs = append(errs, fmt.Errorf("%s names two strategies: %s and %s", s.Name, first, w))
			}
		}
	}
	return out, errors.Join(errs...)
}

// A muteError means that a provider cannot call its language model.
type muteError struct {
	provider string
	err      error
}

func (e *muteError) Error() string {
	return fmt.Sprintf("%s cannot call its language model: %v", e.provider, e.err)
}
func (e *muteError) Unwrap() error { return e.err }

// mute returns a muteError if p, in the chain of a profile, has a language model that cannot be called, for
// example because its key is not set.
func (b *Opener) mute(ctx context.Context, p *config.Provider, profile string) error {
	s, err := b.Registry.Get(p.Strategy)
	if err != nil {
		return nil //nolint:nilerr // a plugin; other faults show when it is opened
	}
	r, err := b.Config.Resolve(profile, "")
	if err != nil {
		return err
	}
	var asked []string
	opened, err := s.Open(ctx, p.Settings, registry.Env{Dir: p.SettingsDir, Model: func(name string) (model.Generator, error) {
		asked = append(asked, name)
		return b.Models.Model(r.Model.Name, name)
	}})
	if err != nil {
		return nil //nolint:nilerr // said when the host opens it
	}
	if err := core.Close(opened); err != nil {
		return err
	}
	for _, name := range asked {
		if err := b.Models.Check(r.Model.Name, name); err != nil {
			return &muteError{p.Name, err}
		}
	}
	return nil
}

// declared returns the providers that the user's own configuration declares and that may be used.
func (b *Opener) declared() []string {
	return slices.DeleteFunc(b.Config.Providers(), func(name string) bool {
		p, err := b.Config.Provider(name)
		return err != nil || p.Withheld != "" || p.Origin.Kind == config.FromPreset || p.Origin.Kind == config.FromDefault
	})
}

// everything returns every preset of the strategies that can be opened without a language model.
func (b *Opener) everything(ctx context.Context) []string {
	var out []string
	for s := range b.Registry.All() {
		variants := variantsOf(s)
		if len(variants) == 0 {
			variants = []variant{{}}
		}
		for _, v := range variants {
			settings, name := json.RawMessage("{}"), s.Name
			if v.name != "" {
				name += "/" + v.name
				settings = fmt.Appendf(nil, `{%q: %s}`, v.setting, v.value)
			}
			opened, err := s.Open(ctx, settings, registry.Env{})
			if err != nil || core.Close(opened) != nil {
				continue
			}
			if _, asks := opened.(core.CostEstimator); !asks {
				out = append(out, name)
			}
		}
	}
	return append(out, headTailName, fittedMasking)
}

func presetsOf(s registry.Strategy) registry.Setting {
	for _, name := range presetSettings {
		for _, set := range s.Settings() {
			if set.Name == name {
				return set
			}
		}
	}
	return registry.Setting{}
}

// strategy opens [LABEL=][bare:]WORD[+WORD]….
func (b *Opener) strategy(ctx context.Context, word string) (lab.Strategy, []config.Provider, error) {
	fault := func(err error) (lab.Strategy, []config.Provider, error) { return lab.Strategy{}, nil, err }
	label, rest, labelled := strings.Cut(word, "=")
	if !labelled || strings.ContainsAny(label, "{:") || strings.HasPrefix(label, "external[") {
		label, rest = word, word
	}
	if list, ok := strings.CutPrefix(rest, "external["); ok {
		var command []string
		if err := json.Unmarshal([]byte("["+list), &command); err != nil || len(command) == 0 {
			return fault(errors.New(`external: want the program and its arguments as a JSON list, such as peer=external["node","peer.mjs"]`))
		}
		s, err := lab.External(label, command)
		if own := program(); s.Key != "" && own != "" {
			s.Key = own + " " + s.Key
		} else {
			s.Key = ""
		}
		return s, nil, err
	}
	alone := false
	if r, ok := strings.CutPrefix(rest, "bare:"); ok {
		rest, alone = r, true
	}
	sizeOf := ""
	if i := strings.LastIndexByte(rest, '~'); i > strings.LastIndexByte(rest, '}') {
		rest, sizeOf = rest[:i], rest[i+1:]
	}
	if rest == lab.Recorded {
		s := lab.RecordedStrategy(label)
		if s.Key = program(); s.Key != "" {
			s.Key += " recorded"
		}
		return s, nil, nil
	}
	if rest == headTailName {
		return headTailStrategy(label, sizeOf, alone), nil, nil
	}
	var chain []config.Provider
	var profiles []string // profiles whose language models they use
	for _, w := range splitOutside(rest, '+') {
		providers, profile, err := b.providers(w)
		if err != nil {
			return fault(err)
		}
		chain = append(chain, providers...)
		profiles = append(profiles, slices.Repeat([]string{cmp.Or(b.Profile, profile)}, len(providers))...)
	}
	s := lab.Strategy{Name: label, Key: b.key(chain, profiles, alone), SizeOf: sizeOf}
	taken := map[string]bool{condense.Truncation: true}
	var about []string
	for i, p := range chain {
		provider, err := b.Host.Provider(ctx, p, profiles[i])
		if _, asks := provider.(core.CostEstimator); asks && err == nil {
			err = b.mute(ctx, &p, profiles[i])
		}
		if err != nil {
			return fault(fmt.Errorf("%s: %w", word, err))
		}
		for name, n := p.Name, i+1; taken[p.Name]; n++ {
			p.Name = fmt.Sprintf("%s (%d)", name, n)
		}
		taken[p.Name] = true
		s.Chain = append(s.Chain, core.NamedProvider{Name: p.Name, Provider: provider, Timeout: p.Timeout})
		about = append(about, b.description(p))
	}
	if !alone {
		s.Chain = append(s.Chain, core.NamedProvider{Name: condense.Truncation, Provider: slidingwindow.New(slidingwindow.DefaultConfig())})
		s.Truncation = condense.Truncation
		about = append(about, "truncation")
	}
	s.About = strings.Join(about, ", then ")
	if sizeOf != "" {
		s.About += ", at the size that " + sizeOf + " leaves"
	}
	return s, chain, nil
}

// description returns the strategy or plugin of a provider and its settings.
func (b *Opener) description(p config.Provider) string {
	what := p.Strategy
	if p.Plugin != "" {
		path := p.Plugin
		if b.Path != nil {
			path = b.Path(path)
		}
		what = "plugin " + path
	}
	if s := string(p.Settings); s != "" && s != "{}" {
		what += " " + s
	}
	return what
}

// key returns a key for the cache: a hash of everything that a result depends on, which is the program, the
// chain and the models.
func (b *Opener) key(chain []config.Provider, profiles []string, alone bool) string {
	program := program()
	if program == "" {
		return ""
	}
	chain = slices.Clone(chain)
	for i := range chain {
		chain[i].Origin = config.Origin{}
		if chain[i].Plugin == "" {
			continue
		}
		if b.Pin == nil {
			return ""
		}
		pin, err := b.Pin(chain[i])
		if chain[i].SHA256 = pin; err != nil || pin == "" {
			return ""
		}
	}
	values := b.Config.Values()
	text, err := json.Marshal(map[string]any{
		"program": program, "chain": chain, "alone": alone, "models": values.Models, "profiles": profiles, "model": b.Model,
	})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// program returns the checksum of the running program; "" if it cannot be read.
var program = sync.OnceValue(func() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // it was only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
})

// providers returns the providers of one word, and the profile if the word is a chain of the configuration.
func (b *Opener) providers(word string) ([]config.Provider, string, error) {
	for _, kind := range []struct {
		prefix string
		names  []string
	}{{"profile", b.Config.Profiles()}, {"mode", b.Config.Modes()}} {
		name, ok := strings.CutPrefix(word, kind.prefix+":")
		if !ok {
			continue
		}
		if !slices.Contains(kind.names, name) {
			return nil, "", fmt.Errorf("no %s %q%s", kind.prefix, name, suggest.DidYouMean(name, kind.names))
		}
		profile, mode := name, ""
		if kind.prefix == "mode" {
			profile, mode = "", name
		}
		r, err := b.Config.Resolve(profile, mode)
		if err != nil {
			return nil, "", err
		}
		return r.Chain, r.Profile, nil
	}
	p, err := b.provider(word)
	if err != nil {
		return nil, "", err
	}
	return []config.Provider{*p}, "", nil
}

// provider returns the provider for NAME, NAME/PRESET or either with {JSON}.
func (b *Opener) provider(word string) (*config.Provider, error) {
	name, settings := word, json.RawMessage(nil)
	if i := strings.IndexByte(word, '{'); i >= 0 {
		name, settings = word[:i], json.RawMessage(word[i:])
		if !json.Valid(settings) {
			return nil, fmt.Errorf("%s: %s is not JSON", name, settings)
		}
	}
	base, form, hasVariant := strings.Cut(name, "/")
	p, err := b.Config.Provider(base)
	if err != nil {
		return nil, err
	}
	if p.Withheld != "" {
		return nil, fmt.Errorf("provider %s: %s", base, p.Withheld)
	}
	if settings != nil {
		p.Settings = settings
	}
	if !hasVariant {
		return p, nil
	}
	if p.Plugin != "" {
		return nil, fmt.Errorf("%s is a plugin: write its settings as %s{JSON}", base, base)
	}
	s, err := b.Registry.Get(p.Strategy)
	if err != nil {
		return nil, err
	}
	v, err := findVariant(s, form)
	if err != nil {
		return nil, fmt.Errorf("%s has %w", base, err)
	}
	if p.Settings, err = withSetting(settings, v.setting, v.value); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p.Name = name
	return p, nil
}

// withSetting returns settings, a JSON object or nil, with one of them changed.
func withSetting(settings json.RawMessage, name string, value json.RawMessage) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if settings != nil {
		if err := json.Unmarshal(settings, &all); err != nil {
			return nil, fmt.Errorf("%s: want a JSON object", settings)
		}
	}
	all[name] = value
	return json.Marshal(all)
}

// splitOutside splits s at sep, but not within braces or strings.
func splitOutside(s string, sep byte) []string {
	var out []string
	depth, quoted, start := 0, false, 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"' && depth > 0:
			quoted = !quoted
		case quoted:
		case c == '{', c == '[' && (depth > 0 || strings.HasSuffix(s[start:i], "external")): // a label may have others
			depth++
		case (c == '}' || c == ']') && depth > 0:
			depth--
		case c == sep && depth == 0:
			out = append(out, s[start:i])
			start = i + 1
		}
	}
	out = append(out, s[start:])
	return slices.DeleteFunc(out, func(w string) bool { return strings.TrimSpace(w) == "" })
}
