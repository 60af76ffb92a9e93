// Package rooimport makes a configuration from the settings export of Roo Code, Zoo Code or
// Kilo Code.
package rooimport

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/secret"
	"github.com/condensehq/condense/internal/tree"
)

// An Import is the result of reading an export.
type Import struct {
	Values config.Values `json:"values"`
	// Took and Ignored list every setting of the export with its treatment.
	Took    []Note `json:"took"`
	Ignored []Note `json:"ignored,omitempty"`
	// Check lists values that the export does not contain and that were assumed.
	Check []Note `json:"check,omitempty"`
	// Variables are the environment variables that Values refers to. The user sets them to the
	// API keys.
	Variables []string `json:"variables,omitempty"`
	// Secrets are the settings of the export that hold secrets. None was copied; the user should
	// delete the export.
	Secrets []string `json:"secrets,omitempty"`
}

// A Note is about one setting: its place, its translation, and the reason.
type Note struct {
	From string `json:"from"`
	To   string `json:"to,omitempty"`
	Note string `json:"note,omitempty"`
}

func (n Note) String() string {
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
	// assumedWindow is the window that Roo assumes of a model that it does not know.
	assumedWindow = 128_000
	// summary is the name of the provider that condenses as Roo does, with this strategy.
	summary  = "summary"
	strategy = "native"
)

// Read reads a settings export. Profiles keep their names and get the preset roo, so that they
// condense when they did before. Secrets are counted, never copied. The result is checked as any
// configuration is. Without summaries, which says that there is a strategy native, the chains of
// the result truncate, as Roo does when a summary fails.
func Read(text []byte, summaries bool) (*Import, error) {
	root, syntax := tree.ParseJSON(text)
	if syntax != nil {
		return nil, fmt.Errorf("line %d: %s", syntax.At.Line, syntax.Problem)
	}
	var export export
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
	r := importer{export: &export, summaries: summaries, global: export.GlobalSettings, ids: map[string]string{}, seen: map[string]bool{}}
	r.findSecrets(root, nil)
	r.globals()
	r.profiles()
	r.condensingModel()
	r.chains()
	r.prompt()
	r.modes()
	r.rest()
	if _, err := config.New(r.Values, config.Options{}); err != nil {
		return nil, fmt.Errorf("the settings make no valid configuration: %w", err)
	}
	return &r.Import, nil
}

// An importer collects an Import.
type importer struct {
	Import
	export    *export
	global    map[string]any
	ids       map[string]string // names of profiles by id
	seen      map[string]bool   // global settings that were read
	summaries bool              // there is a strategy that writes them

	condenses  string // the model that condenses for all profiles; empty if each has its own
	summarizes bool   // a profile has summaries
}

func (r *importer) took(from, to, note string) { r.Took = append(r.Took, Note{from, to, note}) }

func (r *importer) ignored(from, note string) {
	r.Ignored = append(r.Ignored, Note{From: from, Note: note})
}

func (r *importer) check(from, to, note string) { r.Check = append(r.Check, Note{from, to, note}) }

func (r *importer) findSecrets(n *tree.Node, p tree.Path) {
	for _, pair := range n.Pairs {
		sub := p.With(pair.Key)
		if s, ok := pair.Value.Value.(string); ok && s != "" && (secretKey(pair.Key) || secret.Shown(s)) {
			r.Secrets = append(r.Secrets, sub.String())
		}
		r.findSecrets(pair.Value, sub)
	}
	for _, item := range n.Items {
		r.findSecrets(item, p)
	}
}

// setting returns a global setting and where it is, and marks it as read.
func (r *importer) setting(key string) (any, string, bool) {
	r.seen[key] = true
	v, ok := r.global[key]
	return v, "globalSettings." + key, ok && v != nil
}

func (r *importer) profiles() {
	v := &r.Values
	configs := r.export.ProviderProfiles.APIConfigs
	v.Profiles, v.Models = map[string]config.ProfileValues{}, map[string]config.ModelValues{}
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		from := "providerProfiles.apiConfigs." + tree.Path{name}.String()
		if wrong := badName(name); wrong != "" {
			r.ignored(from, "its name "+wrong)
			continue
		}
		settings := configs[name]
		if id, ok := settings["id"].(string); ok {
			r.ids[id] = name
		}
		p := config.ProfileValues{Preset: "roo"}
		used := []string{"id", "apiProvider"}
		used = append(used, r.model(&p, from, name, settings)...)
		if n, ok := wholeTokens(settings["modelMaxTokens"]); ok {
			p.MaxOutput = &n
			used = append(used, "modelMaxTokens")
		}
		r.Values.Profiles[name] = p
		r.took(from, tree.Path{"profiles", name}.String(), "")
		var rest []string
		for _, key := range slices.Sorted(maps.Keys(settings)) {
			if !slices.Contains(used, key) && !secretKey(key) {
				rest = append(rest, key)
			}
		}
		if len(rest) > 0 {
			r.ignored(from, strings.Join(rest, ", "))
		}
	}
	r.defaultProfile()
	r.thresholds()
}

// half is the provider that truncates as Roo does when a summary fails.
const half = "roo_half"

// chains gives each profile the chain of Roo: a summary by its own model, if that can be asked, or by the one that condenses for all.
// Another profile's model is never asked: its vendor would read the conversation.
func (r *importer) chains() {
	v := &r.Values
	switch {
	case len(v.Profiles) == 0:
		return
	case !r.summaries:
		r.check("Roo's summary", "profiles.*.chain", "there is no strategy "+strategy+"; without it half of the conversation is hidden, as in Roo when a summary fails")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(v.Profiles)) {
		p := v.Profiles[name]
		p.Chain = []string{summary, half} // not at the top level: the preset has one of its own
		if _, declared := v.Models[p.Model]; !declared && r.condenses == "" {
			p.Chain = []string{half}
			r.check("providerProfiles.apiConfigs."+tree.Path{name}.String(), tree.Path{"profiles", name, "chain"}.String(),
				"no summary: there is no client for its model, and no other vendor's is asked; half of the conversation is hidden, as in Roo when a summary fails")
		} else {
			r.summarizes = true
		}
		v.Profiles[name] = p
	}
	if r.summarizes {
		settings := map[string]string{"preset": "fresh_start"}
		if r.condenses != "" {
			settings["model"] = r.condenses
		}
		raw, _ := json.Marshal(settings) //nolint:errchkjson // strings can be encoded
		v.Providers = map[string]config.ProviderValues{summary: {Strategy: strategy, Settings: raw}}
	}
}

func (r *importer) defaultProfile() {
	current := r.export.ProviderProfiles.CurrentAPIConfigName
	if _, ok := r.Values.Profiles[current]; ok {
		r.Values.DefaultProfile = current
		r.took("providerProfiles.currentApiConfigName", "default_profile", "")
		return
	}
	if current != "" {
		r.ignored("providerProfiles.currentApiConfigName", "there is no such profile")
	}
	if names := slices.Sorted(maps.Keys(r.Values.Profiles)); len(names) > 0 {
		r.Values.DefaultProfile = names[0]
		r.check("providerProfiles.currentApiConfigName", "default_profile", "not in the export; this is the first profile")
	}
}

// rest notes the global settings that were not read as ignored.
func (r *importer) rest() {
	var rest []string
	for _, key := range slices.Sorted(maps.Keys(r.global)) {
		if !r.seen[key] && !secretKey(key) {
			rest = append(rest, key)
		}
	}
	if len(rest) > 0 {
		r.ignored("globalSettings", strings.Join(rest, ", "))
	}
}

// YAML returns the configuration as a file, with a reference to its schema in the first line
// unless that is empty.
func (i *Import) YAML(schema string) (string, error) {
	text, err := i.Values.YAML()
	if err != nil {
		return "", err
	}
	head := "# Imported from the settings of Roo Code.\n"
	if schema != "" {
		head = "# yaml-language-server: $schema=" + schema + "\n" + head
	}
	return head + text, nil
}

// badName returns why a profile or mode cannot have this name, or "".
func badName(name string) string {
	_, err := config.New(config.Values{Modes: map[string]config.ModeValues{name: {}}}, config.Options{})
	if wrong, ok := errors.AsType[*config.Error](err); ok {
		return strings.TrimPrefix(wrong.Problem, "the name ")
	}
	return ""
}

// window returns the window of a model in tokens, 0 if it is unknown.
func (r *importer) window(name string) int {
	c, err := config.New(config.Values{Models: r.Values.Models}, config.Options{})
	if err != nil {
		return 0
	}
	m, err := c.Model(name)
	if err != nil {
		return 0
	}
	return m.Window
}
