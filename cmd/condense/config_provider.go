package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/registry"
)

// providerChecker returns a check of declared providers: one of a strategy is opened with
// its settings and closed again, a plugin must be a program that could be started.
func (a *app) providerChecker(reg *registry.Registry) func(*config.Config, config.Provider) []config.ProviderFault {
	return func(c *config.Config, p config.Provider) []config.ProviderFault {
		if p.Plugin != "" {
			return pluginFaults(p.Plugin)
		}
		s, err := reg.Get(p.Strategy)
		if err != nil {
			return nil // reported where the name stands
		}
		return settingFaults(s, p.Settings, registry.Env{Model: a.lend(c, p.Name, anyAgent(c)), Dir: p.SettingsDir})
	}
}

// lend returns the function that lends models of c to the named provider under a profile
// with this model, and remembers which.
func (a *app) lend(c *config.Config, provider, agent string) lending {
	lender := condense.NewLender(c, &condense.Options{Model: a.model})
	return func(name string) (model.Generator, error) {
		g, err := lender.Model(agent, name)
		if l := (loan{provider, agent, name}); err == nil && !slices.Contains(a.loans, l) {
			a.loans = append(a.loans, l)
		}
		return g, err
	}
}

// anyAgent returns a model of a profile that there is a client for, for checks that do not
// know of profiles; empty if there is none.
func anyAgent(c *config.Config) string {
	lender := condense.NewLender(c, nil)
	for _, name := range c.Profiles() {
		agent := c.Values().Profiles[name].Model
		if _, err := lender.Model("", agent); err == nil && agent != "" {
			return agent
		}
	}
	return ""
}

// A lending is how a host lends language models: that of [registry.Env].
type lending func(name string) (model.Generator, error)

// A loan is a language model that a provider uses, by the name that it asked for.
type loan struct{ provider, agent, model string }

func pluginFaults(program string) []config.ProviderFault {
	shown := fromHere(program)
	fault := func(problem string) []config.ProviderFault {
		return []config.ProviderFault{{Key: []string{"plugin"}, Problem: problem, Allowed: "must be a program"}}
	}
	switch info, err := os.Stat(program); {
	case os.IsNotExist(err):
		return fault("there is no file " + shown)
	case err != nil:
		return fault(err.Error())
	case !info.Mode().IsRegular():
		return fault(shown + " is not a file")
	case info.Mode().Perm()&0o111 == 0 && runtime.GOOS != "windows":
		return fault(shown + " is not executable")
	}
	return nil
}

// settingFaults returns everything that is wrong with the settings of a strategy, each
// under the setting that is to blame as far as the strategy says so.
//
// A strategy reports one wrong type at a time. So what was blamed is taken out and the rest
// tried again, until nothing new comes.
func settingFaults(s registry.Strategy, raw json.RawMessage, env registry.Env) []config.ProviderFault {
	settings := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &settings); err != nil {
		return []config.ProviderFault{settingFault("", "must be a mapping", "")}
	}
	var known []string
	for _, set := range s.Settings() {
		known = append(known, set.Name)
	}
	var faults []config.ProviderFault
	for name := range settings {
		if !slices.Contains(known, name) {
			delete(settings, name)
			faults = append(faults, unknownSetting(s.Name, name, known))
		}
	}
	for first := true; ; first = false {
		blamed := false
		for name, problem := range openFaults(s, settings, known, env) {
			_, set := settings[name]
			if set || first {
				faults = append(faults, settingFault(name, problem, ""))
			}
			blamed = blamed || set
			delete(settings, name)
		}
		if !blamed {
			return faults
		}
	}
}

func unknownSetting(strategy, name string, known []string) config.ProviderFault {
	f := settingFault(name, "unknown setting of "+strategy, suggest.Name(name, known))
	f.AtName = true
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

// openFaults opens a provider and returns what was wrong, by the name of the setting; ""
// if it is none in particular.
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
	text := strings.TrimPrefix(err.Error(), "open "+s.Name+": ")
	text = strings.TrimPrefix(text, "settings: ")
	faults := map[string]string{}
	for line := range strings.SplitSeq(text, "\n") {
		name, problem := blame(line, known)
		if before, twice := faults[name]; twice {
			problem = before + "; " + problem
		}
		faults[name] = problem
	}
	return faults
}

// blame splits what a strategy says, `mode: "haf" is none of …`, into the setting and the
// problem. Of what lies deeper, `passes.0.keep: …`, the rest of the way stays in the text.
func blame(line string, known []string) (name, problem string) {
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
