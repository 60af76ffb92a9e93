package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/tree"
)

// An Import is what could be taken over from another tool's settings.
type Import struct {
	Values Values `json:"values"`
	// Took and Ignored name every setting of the source and what became of it.
	Took    []ImportNote `json:"took"`
	Ignored []ImportNote `json:"ignored,omitempty"`
	// Check are values that the source does not hold and that were assumed.
	Check []ImportNote `json:"check,omitempty"`
	// Variables are the environment variables that the result refers to; they hold the API
	// keys from now on.
	Variables []string `json:"variables,omitempty"`
	// Secrets are the settings of the source that hold secrets. None was copied; the source
	// should be deleted.
	Secrets []string `json:"secrets,omitempty"`

	config *Config
}

// An ImportNote is one setting: where it stood, what it became, and why.
type ImportNote struct {
	From string `json:"from"`
	To   string `json:"to,omitempty"`
	Note string `json:"note,omitempty"`
}

func (n ImportNote) String() string {
	s := n.From
	if n.To != "" {
		s += " → " + n.To
	}
	if n.Note != "" {
		s += " (" + n.Note + ")"
	}
	return s
}

const (
	// rooWindow is what Roo assumes of a model that it does not know.
	rooWindow = 128_000
	// rooSummary is the provider that condenses as Roo does.
	rooSummary  = "summary"
	rooStrategy = "native"
)

// ImportRoo reads the settings export of Roo Code, Zoo Code or Kilo Code. Profiles keep
// their names and get the preset roo, so that they condense when they did before. Secrets
// are counted, never copied. The result is checked as any configuration is. Of opts, only
// Strategies matter: without the one that writes summaries, the chains of the result
// truncate, as Roo does when a summary fails.
func ImportRoo(text []byte, opts Options) (*Import, error) {
	root, syntax := tree.ParseJSON(text)
	if syntax != nil {
		return nil, fmt.Errorf("line %d: %s", syntax.At.Line, syntax.Problem)
	}
	var export rooExport
	plain, err := json.Marshal(root.Plain())
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(plain, &export); err != nil {
		return nil, fmt.Errorf("not a settings export: %w", err)
	}
	if export.GlobalSettings == nil && export.ProviderProfiles.APIConfigs == nil {
		return nil, errors.New("not a settings export: it has neither providerProfiles nor globalSettings")
	}
	r := rooImport{export: &export, summaries: opts.has(rooStrategy), global: export.GlobalSettings, ids: map[string]string{}, seen: map[string]bool{}}
	r.findSecrets(root, nil)
	r.globals()
	r.profiles()
	r.prompt()
	r.modes()
	r.condensingModel()
	r.rest()
	return r.finish()
}

// A rooImport is an import at work.
type rooImport struct {
	Import
	export *rooExport
	global map[string]any
	ids    map[string]string // names of profiles by id
	seen   map[string]bool   // global settings that were looked at
	// summaries says that there is a strategy that writes them.
	summaries bool
}

func (r *rooImport) took(from, to, note string) {
	r.Took = append(r.Took, ImportNote{from, to, note})
}

func (r *rooImport) ignored(from, note string) {
	r.Ignored = append(r.Ignored, ImportNote{From: from, Note: note})
}

func (r *rooImport) findSecrets(n *tree.Node, p tree.Path) {
	for _, pair := range n.Pairs {
		sub := p.With(pair.Key)
		if s, ok := pair.Value.Value.(string); ok && s != "" && (rooSecretKey(pair.Key) || looksSecret(s)) {
			r.Secrets = append(r.Secrets, sub.String())
		}
		r.findSecrets(pair.Value, sub)
	}
	for _, item := range n.Items {
		r.findSecrets(item, p)
	}
}

// setting returns a global setting and marks it as looked at.
func (r *rooImport) setting(key string) (any, string, bool) {
	r.seen[key] = true
	v, ok := r.global[key]
	return v, "globalSettings." + key, ok && v != nil
}

func (r *rooImport) profiles() {
	v := &r.Values
	configs := r.export.ProviderProfiles.APIConfigs
	v.Profiles, v.Models = map[string]ProfileValues{}, map[string]ModelValues{}
	for _, name := range sortedKeys(configs) {
		from := "providerProfiles.apiConfigs." + tree.Path{name}.String()
		if wrong := badName(name); wrong != "" {
			r.ignored(from, "its name "+wrong)
			continue
		}
		settings := configs[name]
		if id, ok := settings["id"].(string); ok {
			r.ids[id] = name
		}
		p := ProfileValues{Preset: "roo"}
		used := []string{"id", "apiProvider"}
		used = append(used, r.model(&p, from, name, settings)...)
		if n, ok := wholeTokens(settings["modelMaxTokens"]); ok {
			p.MaxOutput = &n
			used = append(used, "modelMaxTokens")
		}
		r.Values.Profiles[name] = p
		r.took(from, tree.Path{"profiles", name}.String(), "")
		var rest []string
		for _, key := range sortedKeys(settings) {
			if !slices.Contains(used, key) && !rooSecretKey(key) {
				rest = append(rest, key)
			}
		}
		if len(rest) > 0 {
			r.ignored(from, strings.Join(rest, ", "))
		}
	}
	switch {
	case len(v.Profiles) == 0:
	case !r.summaries:
		r.Check = append(r.Check, ImportNote{"Roo's summary", "profiles.*.chain", "there is no strategy " + rooStrategy + " here; without it half of the conversation is hidden, as in Roo when a summary fails"})
	default:
		v.Providers = map[string]ProviderValues{
			rooSummary: {Strategy: rooStrategy, Settings: json.RawMessage(`{"preset":"fresh_start"}`)},
		}
		for name, p := range v.Profiles {
			p.Chain = []string{rooSummary, "roo_half"} // not at the top level: the preset has one of its own
			v.Profiles[name] = p
		}
	}
	r.defaultProfile()
	r.thresholds()
}

func (r *rooImport) defaultProfile() {
	current := r.export.ProviderProfiles.CurrentAPIConfigName
	if _, ok := r.Values.Profiles[current]; ok {
		r.Values.DefaultProfile = current
		r.took("providerProfiles.currentApiConfigName", "default_profile", "")
		return
	}
	if current != "" {
		r.ignored("providerProfiles.currentApiConfigName", "there is no such profile")
	}
	if names := sortedKeys(r.Values.Profiles); len(names) > 0 {
		r.Values.DefaultProfile = names[0]
		r.Check = append(r.Check, ImportNote{"providerProfiles.currentApiConfigName", "default_profile", "not in the export; the first profile was taken"})
	}
}

// rest names the global settings that nobody looked at.
func (r *rooImport) rest() {
	var rest []string
	for _, key := range sortedKeys(r.global) {
		if !r.seen[key] && !rooSecretKey(key) {
			rest = append(rest, key)
		}
	}
	if len(rest) > 0 {
		r.ignored("globalSettings", strings.Join(rest, ", "))
	}
}

func (r *rooImport) finish() (*Import, error) {
	c, err := New(r.Values, Options{})
	if err != nil {
		return nil, fmt.Errorf("the settings make no configuration: %w", err)
	}
	r.config = c
	return &r.Import, nil
}

// YAML returns the configuration as a file, with a reference to its schema in the first
// line unless that is empty.
func (i *Import) YAML(schema string) (string, error) {
	values := map[string]any{}
	for key, v := range i.config.raw {
		if i.config.origins[key].Kind == FromProgram {
			values[key] = v
		}
	}
	for section := range sections {
		names, _ := values[section].(map[string]any)
		own := map[string]any{}
		for name, v := range names {
			if i.config.origins[tree.Path{section, name}.ID()].Kind == FromProgram {
				own[name] = v
			}
		}
		delete(values, section)
		if len(own) > 0 {
			values[section] = own
		}
	}
	// With no other origins, only what the defaults put into these sections is left out, and
	// nothing gets a comment.
	defaults := maps.Clone(i.config.origins)
	maps.DeleteFunc(defaults, func(_ string, o Origin) bool { return o.Kind != FromDefault })
	text, err := writeYAML((&Config{origins: defaults}).showObject(values, atTop, nil))
	if err != nil {
		return "", err
	}
	return schemaLine(schema) + "# Imported from the settings of Roo Code.\n" + text, nil
}
