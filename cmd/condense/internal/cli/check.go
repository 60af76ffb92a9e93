package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/internal/resolver"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// A Checker checks the providers of a configuration by opening them with their settings,
// and remembers which language models they asked for.
type Checker struct {
	Registry *registry.Registry
	Models   resolver.ModelOptions
	// Plugin returns the faults of a plugin. It must not start a withheld plugin. Nil checks no plugins.
	Plugin func(*config.Config, config.Provider) []config.ProviderFault
	// Unusable returns why a plugin is skipped; nil if it is not. Nil looks at no plugins.
	Unusable func(*config.Config, config.Provider) error

	uses []use

	of     *config.Config // models are of this one
	models *resolver.Models
}

// A use is a language model that a provider asked for, by the name that it used.
type use struct{ provider, agent, model string }

// Declared returns the faults of a provider of c, for [config.Options]: a strategy's provider is opened and closed
// again, a plugin is given to Plugin.
func (k *Checker) Declared(c *config.Config, p config.Provider) []config.ProviderFault {
	if p.Plugin != "" {
		if k.Plugin == nil {
			return nil // it is skipped if it cannot be started
		}
		return k.Plugin(c, p)
	}
	s, err := k.Registry.Get(p.Strategy)
	if err != nil {
		return nil // reported where the name is used
	}
	k.read(c)
	return settingFaults(s, p.Settings, k.env(&p, ""))
}

// Chains returns the faults of the providers in the chains of c, each with the model of the profile. It includes the
// providers that need no declaration, for which Declared is not called.
func (k *Checker) Chains(c *config.Config) (config.Errors, error) {
	k.read(c)
	k.uses = nil
	faults, seen := config.Errors{}, map[string]bool{}
	places := plain.Each(c.Profiles(), func(name string) Place { return Place{Profile: name} })
	places = append(places, plain.Each(c.Modes(), func(name string) Place { return Place{Mode: name} })...)
	for _, at := range places {
		r, err := c.Resolve(at.Profile, at.Mode)
		if err != nil {
			return nil, err
		}
		for _, p := range r.Providers() {
			s, err := k.Registry.Get(p.Strategy)
			id := p.Name + "\x00" + r.Model.Name
			if err != nil || seen[id] {
				continue
			}
			seen[id] = true
			for _, f := range settingFaults(s, p.Settings, k.env(&p, r.Model.Name)) {
				key := strings.Join(append([]string{p.Name}, f.Key...), ".")
				faults = append(faults, &config.Error{
					Origin: r.Origin("chain"), Key: "chain", Problem: fmt.Sprintf("%s under profile %s: %s", key, r.Profile, f.Problem), Allowed: f.Allowed,
				})
			}
		}
	}
	return faults, nil
}

// Warnings returns which of the providers checked so far could not ask their language
// model now. Keys come and go with the environment, so this is not an error of the
// configuration.
func (k *Checker) Warnings(c *config.Config) config.Errors {
	models, seen := resolver.NewModels(c, k.Models), map[string]bool{}
	var warnings config.Errors
	for _, u := range k.uses {
		err := models.Check(u.agent, u.model)
		if err == nil {
			continue
		}
		w := &config.Error{Key: "providers." + u.provider, Problem: fmt.Sprintf("would be skipped: %v", err)}
		for _, key := range [][]string{{"models", u.model}, {"providers", u.provider}, {"chain"}} {
			if o, ok := c.Origin(key...); ok {
				w.Origin = o
				break
			}
		}
		if text := w.Error(); !seen[text] {
			seen[text] = true
			warnings = append(warnings, w)
		}
	}
	return warnings
}

// env returns the environment for opening p under a profile with the model agent.
func (k *Checker) env(p *config.Provider, agent string) registry.Env {
	return registry.Env{Dir: p.SettingsDir, Model: func(name string) (model.Generator, error) {
		g, err := k.models.Model(agent, name)
		if err == nil {
			k.uses = append(k.uses, use{p.Name, agent, name})
		}
		return g, err
	}}
}

// read prepares k for the models of c: once, since a file may declare thousands of providers.
func (k *Checker) read(c *config.Config) {
	if k.of != c {
		k.of, k.models = c, resolver.NewModels(c, k.Models)
	}
}

// Readers returns who would read conversations for the providers in the chain of r, a result of c.Resolve: by provider, without those
// that ask no language model.
func (k *Checker) Readers(c *config.Config, r *config.Resolved) []Reader {
	k.read(c)
	var readers []Reader
	for _, p := range r.Providers() {
		add := func(reader resolver.Reader) { readers = append(readers, Reader{p.Name, p.Strategy, reader}) }
		if p.Withheld != "" {
			add(resolver.Reader{Skipped: p.Withheld})
			continue
		}
		if p.Plugin != "" && k.Unusable != nil {
			if err := k.Unusable(c, p); err != nil {
				add(resolver.Reader{Skipped: err.Error()})
			}
		}
		s, err := k.Registry.Get(p.Strategy) // a plugin has none
		if err != nil {
			continue
		}
		var names []string
		opened, err := s.Open(context.Background(), p.Settings, registry.Env{Dir: p.SettingsDir, Model: func(name string) (model.Generator, error) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
			return k.models.Model(r.Model.Name, name)
		}})
		if err == nil {
			_ = core.Close(opened) // nothing was asked
		}
		for _, name := range names {
			add(k.models.Reader(r.Model.Name, name))
		}
	}
	return readers
}

// A Reader is who reads conversations for a provider of a chain.
type Reader struct {
	Provider string `json:"provider"`
	Strategy string `json:"strategy,omitempty"` // empty for a plugin
	resolver.Reader
}

// String returns one line: "summary native: asks claude-haiku-4-5 at Anthropic".
func (p Reader) String() string {
	return strings.TrimSpace(p.Provider+" "+p.Strategy) + ": " + p.Reader.String()
}

// settingFaults returns everything that is wrong with the settings of a strategy, each
// under the setting that the strategy's error names.
//
// A strategy reports one wrong type at a time, so the settings that were named are removed
// and the rest is tried again until no error is new.
func settingFaults(s registry.Strategy, raw json.RawMessage, env registry.Env) []config.ProviderFault {
	settings := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &settings); err != nil {
		return []config.ProviderFault{settingFault("", "must be a mapping", "")}
	}
	var known []string
	for _, set := range s.Settings() {
		known = append(append(known, set.Name), set.Was...)
	}
	faults := plugins.Renamed([]string{"settings"}, settings, s.Settings())
	for name := range settings {
		if !slices.Contains(known, name) {
			delete(settings, name)
			faults = append(faults, unknownSetting(s, name, known))
		}
	}
	for first := true; ; first = false {
		found := false
		for name, problem := range openFaults(s, settings, known, env) {
			_, set := settings[name]
			if set || first {
				faults = append(faults, settingFault(name, problem, ""))
			}
			found = found || set
			delete(settings, name)
		}
		if !found {
			return faults
		}
	}
}

func unknownSetting(s registry.Strategy, name string, known []string) config.ProviderFault {
	f := settingFault(name, "unknown setting of "+s.Name, suggest.Name(name, known))
	f.AtName = true
	if now := s.Removed(name); now != "" {
		f.Problem, f.Suggestion = "there is no such setting of "+s.Name+" any more: "+now, ""
		return f
	}
	if f.Suggestion == "" && len(known) > 0 {
		f.Allowed = "there are " + strings.Join(known, ", ")
	} else if len(known) == 0 {
		f.Allowed = "there are none"
	}
	return f
}

func settingFault(name, problem, suggestion string) config.ProviderFault {
	f := config.ProviderFault{Key: []string{"settings"}, Problem: problem, Suggestion: suggestion}
	if name != "" {
		f.Key = append(f.Key, name)
	}
	return f
}

// openFaults opens a provider and returns its faults, by the name of the setting; "" if the error names none.
func openFaults(s registry.Strategy, settings map[string]json.RawMessage, known []string, env registry.Env) map[string]string {
	raw, err := json.Marshal(settings)
	if err != nil {
		return map[string]string{"": err.Error()}
	}
	p, err := s.Open(context.Background(), raw, env)
	if err == nil {
		err = core.Close(p)
	}
	if err == nil {
		return nil
	}
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "open "+s.Name+": "), "settings: ")
	faults := map[string]string{}
	for line := range strings.SplitSeq(text, "\n") {
		name, problem := splitFault(line, known)
		if before, twice := faults[name]; twice {
			problem = before + "; " + problem
		}
		faults[name] = problem
	}
	return faults
}

// splitFault splits a line of a strategy's error, such as `mode: "haf" is none of …`, into the setting and the
// problem. The rest of a longer path, as in `passes.0.keep: …`, stays in the problem.
func splitFault(line string, known []string) (name, problem string) {
	for _, k := range known {
		rest, ok := strings.CutPrefix(line, k)
		switch {
		case !ok || rest == "":
		case strings.HasPrefix(rest, ": "):
			return k, rest[2:]
		case rest[0] == '.' || rest[0] == '[':
			return k, fmt.Sprintf("at %s", strings.TrimPrefix(rest, "."))
		}
	}
	return "", line
}
