package main

import (
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

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/compare"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/host"
	"github.com/condensehq/condense/internal/near"
	"github.com/condensehq/condense/providers/slidingwindow"
	"github.com/condensehq/condense/registry"
)

// usualContestants are compared if nothing is named: what the configuration has, and these.
var usualContestants = []string{"smart/balanced", "smart/lossless", "smart/observation_masking", "slidingwindow/budget", "slidingwindow/half"}

// presetSettings are the settings that NAME/PRESET may mean, the first that a strategy has.
var presetSettings = []string{"preset", "mode"}

// contestants opens what --strategies names. The host owns the providers.
func (a *app) contestants(cmd *cobra.Command, c *comparison) (*host.Host, []compare.Strategy, error) {
	reg, err := a.registry()
	if err != nil {
		return nil, nil, err
	}
	conf, err := a.load(reg)
	if err != nil {
		return nil, nil, err
	}
	// Chains of profiles that nobody compares need not be opened.
	h, err := host.Open(cmd.Context(), conf, reg, &host.Options{
		Model: a.model, Reattach: os.Getenv("CONDENSE_REATTACH"),
		Adjust: func(r *config.Resolved) { r.Chain = nil },
	})
	if err != nil {
		return nil, nil, err
	}
	b := &booth{host: h, config: conf, registry: reg, profile: c.profile, program: program()}
	strategies, err := b.open(cmd.Context(), c.strategies)
	if err != nil {
		return nil, nil, errors.Join(usage(cmd, "--strategies: %w", err), h.Close())
	}
	return h, strategies, nil
}

// A booth turns words into strategies.
type booth struct {
	host     *host.Host
	config   *config.Config
	registry *registry.Registry
	profile  string
	program  string // what this program is, for keys
}

func (b *booth) open(ctx context.Context, lists []string) ([]compare.Strategy, error) {
	var words []string
	for _, list := range lists {
		words = append(words, splitOutside(list, ',')...)
	}
	if len(words) == 0 {
		words = slices.Concat(b.declared(), usualContestants)
	}
	var out []compare.Strategy
	var errs []error
	seen := map[string]string{} // what a name stands for
	for _, word := range words {
		expanded := []string{word}
		if word == "all" {
			expanded = b.everything(ctx)
		}
		for _, w := range expanded {
			s, err := b.strategy(ctx, w)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			switch first, ok := seen[s.Name]; {
			case !ok:
				seen[s.Name] = w
				out = append(out, s)
			case first != w:
				errs = append(errs, fmt.Errorf("%s stands for two strategies: %s and %s", s.Name, first, w))
			}
		}
	}
	return out, errors.Join(errs...)
}

// declared returns the providers that the user's own configuration declares.
func (b *booth) declared() []string {
	return slices.DeleteFunc(b.config.Providers(), func(name string) bool {
		p, err := b.config.Provider(name)
		return err != nil || p.Origin.Kind == config.FromPreset || p.Origin.Kind == config.FromDefault
	})
}

// everything returns every preset of the strategies that can be opened without a language
// model.
func (b *booth) everything(ctx context.Context) []string {
	var out []string
	for s := range b.registry.All() {
		presets := presetsOf(s)
		if len(presets.Enum) == 0 {
			presets.Enum = []string{""}
		}
		for _, p := range presets.Enum {
			settings := json.RawMessage("{}")
			name := s.Name
			if p != "" {
				settings, name = preset(presets.Name, p), s.Name+"/"+p
			}
			if opened, err := s.Open(ctx, settings, registry.Env{}); err == nil && core.Close(opened) == nil {
				out = append(out, name)
			}
		}
	}
	return out
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

func preset(setting, value string) json.RawMessage {
	raw, _ := json.Marshal(map[string]string{setting: value}) //nolint:errchkjson // strings
	return raw
}

// strategy opens [LABEL=][bare:]WORD[+WORD]….
func (b *booth) strategy(ctx context.Context, word string) (compare.Strategy, error) {
	fault := func(err error) (compare.Strategy, error) { return compare.Strategy{}, err }
	label, rest, labelled := strings.Cut(word, "=")
	if !labelled || strings.ContainsAny(label, "{:") {
		label, rest = word, word
	}
	alone := false
	if r, ok := strings.CutPrefix(rest, "bare:"); ok {
		rest, alone = r, true
	}
	var chain []config.Provider
	for _, w := range splitOutside(rest, '+') {
		providers, err := b.providers(w)
		if err != nil {
			return fault(err)
		}
		chain = append(chain, providers...)
	}
	s := compare.Strategy{Name: label}
	taken := map[string]bool{host.Truncation: true}
	var about []string
	for i, p := range chain {
		provider, err := b.host.Provider(ctx, p, b.profile)
		if err != nil {
			return fault(fmt.Errorf("%s: %w", word, err))
		}
		for name, n := p.Name, i+1; taken[p.Name]; n++ {
			p.Name = fmt.Sprintf("%s (%d)", name, n)
		}
		taken[p.Name] = true
		s.Chain = append(s.Chain, core.Candidate{Name: p.Name, Provider: provider, Timeout: p.Timeout})
		about = append(about, description(p))
	}
	if !alone {
		s.Chain = append(s.Chain, core.Candidate{Name: host.Truncation, Provider: slidingwindow.New(slidingwindow.DefaultConfig())})
		about = append(about, "truncation")
	}
	s.About = strings.Join(about, ", then ")
	s.Key = b.key(chain, alone)
	return s, nil
}

// description says what a provider is, as its entry in a configuration would.
func description(p config.Provider) string {
	what := p.Strategy
	if p.Plugin != "" {
		what = "plugin " + fromHere(p.Plugin)
	}
	if s := string(p.Settings); s != "" && s != "{}" {
		what += " " + s
	}
	return what
}

// key names all that a result follows from, so that nothing stale comes from a cache: the
// program, what was asked for, and the models.
func (b *booth) key(chain []config.Provider, alone bool) string {
	if b.program == "" {
		return ""
	}
	for i := range chain {
		chain[i].Origin = config.Origin{}
	}
	values := b.config.Values()
	text, err := json.Marshal(map[string]any{
		"program": b.program, "chain": chain, "alone": alone, "models": values.Models, "profile": b.profile,
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

// providers returns what one word stands for.
func (b *booth) providers(word string) ([]config.Provider, error) {
	if profile, ok := strings.CutPrefix(word, "profile:"); ok {
		if !slices.Contains(b.config.Profiles(), profile) {
			return nil, fmt.Errorf("no profile %q%s", profile, near.DidYouMean(profile, b.config.Profiles()))
		}
		r, err := b.config.Resolve(profile, "")
		if err != nil {
			return nil, err
		}
		return r.Chain, nil
	}
	name, settings := word, json.RawMessage(nil)
	if i := strings.IndexByte(word, '{'); i >= 0 {
		name, settings = word[:i], json.RawMessage(word[i:])
		if !json.Valid(settings) {
			return nil, fmt.Errorf("%s: %s is not JSON", name, settings)
		}
	}
	base, variant, hasVariant := strings.Cut(name, "/")
	p, err := b.config.Provider(base)
	if err != nil {
		return nil, err
	}
	if settings != nil {
		p.Settings = settings
	}
	if !hasVariant {
		return []config.Provider{*p}, nil
	}
	if p.Plugin != "" {
		return nil, fmt.Errorf("%s is a plugin: say its settings as %s{JSON}", base, base)
	}
	s, err := b.registry.Get(p.Strategy)
	if err != nil {
		return nil, err
	}
	presets := presetsOf(s)
	if !slices.Contains(presets.Enum, variant) {
		return nil, fmt.Errorf("%s has no preset %q%s; there are %s", base, variant, near.DidYouMean(variant, presets.Enum), strings.Join(presets.Enum, ", "))
	}
	if p.Settings, err = withSetting(settings, presets.Name, variant); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p.Name = name
	return []config.Provider{*p}, nil
}

func withSetting(settings json.RawMessage, name, value string) (json.RawMessage, error) {
	if settings == nil {
		return preset(name, value), nil
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(settings, &all); err != nil {
		return nil, fmt.Errorf("%s: want a JSON object", settings)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	all[name] = text
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
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == sep && depth == 0:
			out = append(out, s[start:i])
			start = i + 1
		}
	}
	out = append(out, s[start:])
	return slices.DeleteFunc(out, func(w string) bool { return strings.TrimSpace(w) == "" })
}
