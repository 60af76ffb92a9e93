package config

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/internal/tree"
)

// A validator checks the merged values as a whole: that names exist and numbers fit together.
type validator struct {
	c        *Config
	errs     Errors
	warnings Errors
	soft     []softError

	names map[string]bool // that a chain may contain
	sound map[string]bool // profiles without a fault, nor one in a profile that they extend
	// The first counted errs by key, and by every key above theirs.
	exact, faults map[string]bool
	counted       int
}

// tuned checks the section of a profile or mode at p, and the profile that it names under a key.
func (v *validator) tuned(p tree.Path, t *Tuning, key, profile string) {
	v.chain(p.With("chain"), t.Chain)
	v.chain(p.With("ingest"), t.Ingest)
	v.tokenizer(p.With("tokenizer"), t.Tokenizer)
	if profile != "" {
		v.profile(p.With(key), profile)
	}
}

func (v *validator) validate() {
	c := v.c
	v.names, v.sound, v.exact, v.faults = setOf(c.chainNames()...), map[string]bool{}, map[string]bool{}, map[string]bool{}
	v.defaultProfile()
	v.chain(tree.Path{"chain"}, c.values.Chain)
	v.chain(tree.Path{"ingest"}, c.values.Ingest)
	v.tokenizer(tree.Path{"tokenizer"}, c.values.Tokenizer)
	for _, name := range c.Profiles() {
		profile := c.values.Profiles[name]
		v.tuned(tree.Path{"profiles", name}, &profile.Tuning, "extends", profile.Extends)
	}
	for _, name := range c.Modes() {
		mode := c.values.Modes[name]
		v.tuned(tree.Path{"modes", name}, &mode.Tuning, "profile", mode.Profile)
	}
	v.unusedProfiles()
	v.providers()
	v.models()
	v.serve()
	v.cycles()
	v.softErrors()
	v.forbidden(v.numbers())
}

func (v *validator) fail(p tree.Path, f *fault) { v.errs = append(v.errs, v.c.errorAt(p, f)) }

func (v *validator) warn(p tree.Path, problem string) {
	v.warnings = append(v.warnings, v.c.errorAt(p, &fault{problem: problem}))
}

// mostUnused is how many unused names of a kind are warned of one by one.
const mostUnused = 10

// unused warns that nothing names the values at the paths.
func (v *validator) unused(paths []tree.Path, problem string) {
	for i, p := range paths[:min(len(paths), mostUnused)] {
		if n := len(paths) - mostUnused; i == mostUnused-1 && n > 0 {
			problem += fmt.Sprintf(" (and %s more)", size.Group(n))
		}
		v.warn(p, problem)
	}
}

// errorAt makes an error about the value at p, placed at the nearest enclosing value that has
// an origin.
func (c *Config) errorAt(p tree.Path, f *fault) *Error {
	origin := Origin{Kind: FromDefault}
	for q := p; len(q) > 0; q = q[:len(q)-1] {
		if o, ok := c.origins[q.ID()]; ok {
			origin = o
			if len(q) < len(p) { // of an enclosing value, the key is the better place
				if o, ok := c.keys[q.ID()]; ok {
					origin = o
				}
			}
			break
		}
	}
	return &Error{Origin: origin, Key: p.String(), Problem: f.problem, Allowed: f.allowed, Suggestion: f.suggestion, id: p.ID()}
}

// There may be thousands of names and of faults: a message lists so many names, so many faults suggest one, and after so many no
// provider is opened to find more.
const (
	maxListed    = 50
	maxSuggested = 100
	maxFaults    = 1000
)

// unknownName is the fault of a name that is not one of known.
func unknownName(kind reference, name string, known []string) *fault {
	f := &fault{problem: fmt.Sprintf("there is no %s %q", kind, plain.Abbreviate(name)), suggestion: suggest.Key(name, known)}
	if looksSecret(name) {
		f.problem = fmt.Sprintf("there is no such %s", kind)
	}
	f.allowed = "there are " + listed(known)
	if len(known) == 0 {
		f.allowed = "none is declared"
	}
	return f
}

// unknown is unknownName for the next fault of v.
func (v *validator) unknown(kind reference, name string, known func() []string) *fault {
	f := &fault{problem: fmt.Sprintf("there is no such %s", kind)}
	if len(v.errs) < maxSuggested {
		f = unknownName(kind, name, known())
	}
	return f
}

func (v *validator) profile(p tree.Path, name string) {
	if _, ok := v.c.values.Profiles[name]; !ok {
		v.fail(p, v.unknown(toProfile, name, v.c.Profiles))
	}
}

// defaultProfile chooses the default profile if default_profile is not set: the built-in one,
// or the only one declared.
func (v *validator) defaultProfile() {
	c, key := v.c, tree.Path{"default_profile"}
	if c.origins[key.ID()].Kind != FromDefault {
		v.profile(key, c.values.DefaultProfile)
		return
	}
	declared := plain.Only(c.Profiles(), func(name string) bool { return c.origins[tree.Path{"profiles", name}.ID()].Kind != FromDefault })
	switch {
	case len(declared) == 0 || slices.Contains(declared, defaultProfile):
	case len(declared) == 1:
		c.values.DefaultProfile = declared[0]
		c.raw["default_profile"] = declared[0]
		c.origins[key.ID()] = Origin{Kind: FromComputed, Name: "the only profile"}
	default:
		c.origins[key.ID()] = c.keys["profiles"] // where the user should look
		v.fail(key, &fault{
			problem: fmt.Sprintf("not set, and %d profiles are declared", len(declared)),
			allowed: "set it to one of " + listed(declared),
		})
	}
}

// maxProviders is how many providers a chain may have: each that fails costs its timeout.
const maxProviders = 50

func (v *validator) chain(p tree.Path, names []string) {
	if len(names) > maxProviders {
		v.fail(p, &fault{problem: fmt.Sprintf("has %s providers", size.Group(len(names))), allowed: fmt.Sprintf("must have at most %d", maxProviders)})
		return
	}
	for i, name := range names {
		switch {
		case name == Truncation && i < len(names)-1:
			v.fail(p.With(strconv.Itoa(i)), &fault{
				problem: "truncation is not the last of the chain",
				allowed: fmt.Sprintf("must be last, because it always succeeds and %s would never be tried", strings.Join(names[i+1:], ", ")),
			})
		case !v.names[name]:
			v.fail(p.With(strconv.Itoa(i)), v.unknown(toProvider, name, v.c.chainNames))
		}
	}
}

// chainNames returns the names that a chain may contain.
func (c *Config) chainNames() []string {
	names := append(c.Providers(), c.opts.Builtin...)
	names = append(names, Truncation)
	slices.Sort(names)
	return slices.Compact(names)
}

func (v *validator) tokenizer(p tree.Path, name *string) {
	known := v.c.opts.Tokenizers
	if name != nil && known != nil && !slices.Contains(known, *name) {
		v.fail(p, unknownName(toTokenizer, *name, known))
	}
}

func (v *validator) providers() {
	used := setOf(slices.Concat(v.c.values.Chain, v.c.values.Ingest)...)
	for _, p := range v.c.values.Profiles {
		maps.Copy(used, setOf(slices.Concat(p.Chain, p.Ingest)...))
	}
	for _, m := range v.c.values.Modes {
		maps.Copy(used, setOf(slices.Concat(m.Chain, m.Ingest)...))
	}
	var idle []tree.Path
	for _, name := range v.c.Providers() {
		p, provider := tree.Path{"providers", name}, v.c.values.Providers[name]
		switch {
		case v.faulty(p):
		case name == Truncation:
			v.fail(p, &fault{problem: "reserved name: every chain ends with truncation", allowed: "must have another name"})
		case provider.Strategy == "" && provider.Plugin == "":
			f := &fault{problem: "has neither strategy nor plugin", allowed: "must have one of them"}
			if known := v.c.opts.Strategies; known != nil {
				f.allowed += "; strategies: " + strings.Join(known, ", ")
			}
			v.fail(p, f)
		case provider.Strategy != "" && provider.Plugin != "":
			v.fail(p.With("plugin"), &fault{problem: "cannot be combined with strategy", allowed: "set one of the two"})
		case provider.SHA256 != "" && provider.Plugin == "":
			v.fail(p.With("sha256"), &fault{problem: "has no plugin to check", allowed: "is for plugins only"})
		case provider.Folder != "" && provider.Plugin == "":
			v.fail(p.With("folder"), &fault{problem: "has no plugin in it", allowed: "is for plugins only"})
		case len(provider.Env) > 0 && provider.Plugin == "":
			v.fail(p.With("env"), &fault{problem: "has no plugin to see it", allowed: "is for plugins only"})
		case provider.Folder != "" && !within(provider.Folder, provider.Plugin):
			v.fail(p.With("folder"), &fault{
				problem: fmt.Sprintf("is %s, which does not contain the plugin %s", disk.FromHere(provider.Folder), disk.FromHere(provider.Plugin)),
				allowed: "must be a folder that contains the plugin",
			})
		}
		if known := v.c.opts.Strategies; provider.Strategy != "" && known != nil && !slices.Contains(known, provider.Strategy) {
			v.fail(p.With("strategy"), unknownName(toStrategy, provider.Strategy, known))
		}
		if check := v.c.opts.CheckProvider; check != nil && !v.faulty(p) && len(v.errs) < maxFaults {
			v.foreign(p, check)
		}
		if !used[name] && v.c.origins[p.ID()].Kind != FromPreset {
			idle = append(idle, p)
		}
	}
	v.unused(idle, "no chain names this provider")
}

// unusedProfiles warns of profiles that nothing of the configuration names.
func (v *validator) unusedProfiles() {
	c := v.c
	used := setOf(c.values.DefaultProfile)
	for _, m := range c.values.Modes {
		used[m.Profile] = true
	}
	for _, p := range c.values.Profiles {
		used[p.Extends] = true
	}
	for _, r := range c.values.Serve.Modes {
		used[r.Profile] = true
	}
	var idle []tree.Path
	for _, name := range c.Profiles() {
		if p := (tree.Path{"profiles", name}); !used[name] && c.origins[p.ID()].Kind != FromDefault {
			idle = append(idle, p)
		}
	}
	v.unused(idle, "no mode, profile or rule names this profile: only --profile and requests that name it use it")
}

// within reports whether the file is in the folder or below it.
func within(folder, file string) bool {
	rel, err := filepath.Rel(folder, file)
	return err == nil && rel != "." && filepath.IsLocal(rel)
}

// foreign reports the faults that check finds in the provider at p.
func (v *validator) foreign(p tree.Path, check func(*Config, Provider) []ProviderFault) {
	provider, err := v.c.Provider(p[1])
	if err != nil {
		v.fail(p, &fault{problem: err.Error()})
		return
	}
	if provider.Withheld != "" {
		provider.Plugin = v.c.values.Providers[p[1]].Plugin // check may test whether it exists
	}
	for _, f := range check(v.c, *provider) {
		key := p
		for _, name := range f.Key {
			key = key.With(name)
		}
		e := v.c.errorAt(key, &fault{problem: f.Problem, allowed: f.Allowed, suggestion: f.Suggestion})
		if f.AtName {
			e.Origin = v.c.originOf(key)
		}
		if f.Warning {
			v.warnings = append(v.warnings, e)
			continue
		}
		v.errs = append(v.errs, e)
	}
}

func (v *validator) models() {
	for _, name := range v.c.Models() {
		p, model := tree.Path{"models", name}, v.c.values.Models[name]
		if model.APIKeyEnv != "" && model.APIKeyFile != "" {
			v.fail(p.With("api_key_file"), &fault{problem: "cannot be combined with api_key_env", allowed: "set one of the two"})
		}
	}
}

// cycles reports profiles that extend themselves, once for each cycle.
func (v *validator) cycles() {
	done := map[string]bool{}
	for _, start := range v.c.Profiles() {
		var walked []string
		at := map[string]int{}
		for name := start; name != "" && !done[name]; name = v.c.values.Profiles[name].Extends {
			if i, again := at[name]; again {
				cycle := append(walked[i:], name)
				if n := len(cycle); n > maxListed {
					cycle = append(append(cycle[:maxListed-1:maxListed-1], "…"), name)
				}
				v.fail(tree.Path{"profiles", name, "extends"}, &fault{
					problem: "a profile extends itself: " + strings.Join(cycle, " → "),
					allowed: "the last one must extend none",
				})
				break
			}
			at[name] = len(walked)
			walked = append(walked, name)
		}
		for _, name := range walked {
			done[name] = true
		}
	}
}

// softErrors turns numbers outside the limits into errors, or into warnings if the profile's
// preset allows them.
func (v *validator) softErrors() {
	for _, s := range v.soft {
		v.c.lines.mu.Lock()
		l := v.c.line(lineID{profile: s.path[1]})
		v.c.lines.mu.Unlock()
		if l == nil || !l.rule.Unchecked {
			v.errs = append(v.errs, s.err)
			continue
		}
		if s.path[2] == "threshold" {
			w := *s.err
			w.Problem += ", which Roo's rule ignores"
			w.Allowed = "the inherited threshold holds"
			v.warnings = append(v.warnings, &w)
		}
	}
}

// numbers checks the numbers of every profile and every mode, except of those with a fault,
// whose consequences it would report. It returns the others.
func (v *validator) numbers() (all []*Resolved) {
	var errs Errors
	for _, name := range v.c.Profiles() {
		// A declared profile can be used, the built-in one only as the default.
		if v.isSound(name) && (v.c.origins[tree.Path{"profiles", name}.ID()].Kind != FromDefault || v.c.values.DefaultProfile == name) {
			r, wrong := v.c.resolve(name, "", 0)
			errs = append(errs, wrong...)
			v.suspicious(r)
			all = append(all, r)
		}
	}
	for _, name := range v.c.Modes() {
		profile := cmp.Or(v.c.values.Modes[name].Profile, v.c.values.DefaultProfile)
		if v.isSound(profile) && !v.faulty(tree.Path{"modes", name}) {
			r, wrong := v.c.resolve(profile, name, 0)
			errs = append(errs, wrong...)
			all = append(all, r)
		}
	}
	v.errs = append(v.errs, errs...)
	return all
}

// isSound reports whether neither a profile nor one that it extends has a fault.
func (v *validator) isSound(profile string) bool {
	sound, known := v.sound[profile]
	if p, ok := v.c.values.Profiles[profile]; ok && !known {
		v.sound[profile] = false // also in a cycle
		sound = !v.faulty(tree.Path{"profiles", profile}) && (p.Extends == "" || v.isSound(p.Extends))
		v.sound[profile] = sound
	}
	return sound
}

// faulty reports whether there is a fault at p or below.
func (v *validator) faulty(p tree.Path) bool {
	for ; v.counted < len(v.errs); v.counted++ {
		v.exact[v.errs[v.counted].id] = true
		for id := v.errs[v.counted].id; ; {
			v.faults[id] = true
			i := strings.LastIndex(id, tree.Sep)
			if i < 0 {
				break
			}
			id = id[:i]
		}
	}
	return v.faults[p.ID()]
}

func setOf(names ...string) map[string]bool {
	return plain.Set(names)
}

// minWindow is the size in tokens below which a window is probably a mistake.
const minWindow = 2000

// suspicious warns of valid numbers that have no effect.
func (v *validator) suspicious(r *Resolved) {
	if r == nil || r.Window == 0 || r.Unchecked {
		return
	}
	trigger, by := r.trigger()
	if r.Window < minWindow {
		v.warn(r.found["window"].at, fmt.Sprintf("%s tokens: hardly a message fits into such a window; is it in thousands, as in %dk?", size.Group(r.Window), r.Window))
	}
	if r.MaxContextTokens > r.Window {
		v.warn(r.found["max_context_tokens"].at, fmt.Sprintf(
			"%s tokens exceed the window of profile %s, %s: this cap never applies", size.Group(r.MaxContextTokens), r.Profile, size.Group(r.Window)))
	}
	if tokens := r.Target * float64(r.Window) / 100; tokens >= trigger && trigger > 0 {
		v.warn(r.found["target"].at, fmt.Sprintf(
			"%s tokens are not below the %s at which the %s of profile %s triggers: the target moves below that",
			size.Group(int(tokens)), size.Group(int(trigger)), by, r.Profile))
	}
	if float64(r.MinSize) >= trigger && trigger > 0 {
		v.warn(r.found["min_size"].at, fmt.Sprintf(
			"%s tokens are not below the %s at which the %s of profile %s triggers: it will not condense before them",
			size.Group(r.MinSize), size.Group(int(trigger)), by, r.Profile))
	}
	if most := r.Model.Output; most > 0 && r.MaxOutput > most {
		v.warn(r.found["max_output"].at, fmt.Sprintf("%s answers with %s tokens at most", r.Model.Name, size.Group(most)))
	}
}
