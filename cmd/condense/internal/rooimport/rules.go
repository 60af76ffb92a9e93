package rooimport

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/secret"
	"github.com/condensehq/condense/internal/tree"
)

func (r *importer) globals() {
	v := &r.Values
	if auto, from, ok := r.setting("autoCondenseContext"); ok {
		if b, isBool := auto.(bool); isBool {
			v.Auto = &b
			r.took(from, "auto", "")
		}
	}
	v.Threshold = new(100.0) // Roo's default
	if t, from, ok := r.setting("autoCondenseContextPercent"); ok {
		p, isNumber := t.(float64)
		switch clamped := min(max(p, 5), 100); {
		case !isNumber:
			r.ignored(from, "not a number")
		case clamped != p:
			v.Threshold = &clamped
			r.took(from, "threshold", fmt.Sprintf("%v is outside 5 to 100 and became %v", p, clamped))
		default:
			v.Threshold = &p
			r.took(from, "threshold", "")
		}
	} else {
		r.took("Roo's default of 100 %", "threshold", "")
	}
}

// prompt takes the user's condensing prompt from the current or the older setting.
func (r *importer) prompt() {
	var texts []Note
	if prompts, from, ok := r.setting("customSupportPrompts"); ok {
		if m, isMap := prompts.(map[string]any); isMap {
			if s, isText := m["CONDENSE"].(string); isText {
				texts = append(texts, Note{From: from + ".CONDENSE", Note: s})
			}
		}
	}
	if old, from, ok := r.setting("customCondensingPrompt"); ok {
		if s, isText := old.(string); isText {
			texts = append(texts, Note{From: from, Note: s})
		}
	}
	taken := false
	for _, t := range texts {
		switch {
		case strings.TrimSpace(t.Note) == "":
		case secret.Shown(t.Note):
			r.ignored(t.From, "contains what looks like a secret")
		case taken:
			r.ignored(t.From, "customSupportPrompts.CONDENSE replaced it")
		case !r.summarizes:
			r.ignored(t.From, "no profile writes summaries")
		default:
			// In Roo Code this prompt replaces the built-in one. The setting prompt would add to it.
			r.summarySetting("prompt_text", t.Note)
			r.took(t.From, "providers."+summary+".settings.prompt_text", "")
			taken = true
		}
	}
}

// thresholds takes the thresholds of profiles, which are stored by the id of the profile.
func (r *importer) thresholds() {
	own, from, _ := r.setting("profileThresholds")
	byID, _ := own.(map[string]any)
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		at := from + "." + tree.Path{id}.String()
		name, known := r.ids[id]
		t, isNumber := byID[id].(float64)
		switch {
		case !known:
			r.ignored(at, "no profile has this id")
		case isNumber && t == -1:
			r.ignored(at, "-1 inherits, as here")
		case !isNumber || t < 5 || t > 100:
			r.ignored(at, "outside 5 to 100, which Roo ignores too")
		default:
			p := r.Values.Profiles[name]
			p.Threshold = &t
			r.Values.Profiles[name] = p
			r.took(at, tree.Path{"profiles", name, "threshold"}.String(), "")
		}
	}
	own, from, _ = r.setting("profileCondenseOverrides") // of Kilo Code
	byID, _ = own.(map[string]any)
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		r.override(from+"."+tree.Path{id}.String(), id, byID[id])
	}
}

// override takes a threshold of Kilo Code, a percentage or a number of tokens.
func (r *importer) override(from, id string, v any) {
	o, _ := v.(map[string]any)
	name, known := r.ids[id]
	p := r.Values.Profiles[name]
	switch {
	case !known:
		r.ignored(from, "no profile has this id")
		return
	case o["enabled"] != true:
		r.ignored(from, "not enabled")
		return
	case o["mode"] == "tokens":
		n, ok := wholeTokens(o["tokens"])
		if !ok {
			r.ignored(from, "not a number of tokens")
			return
		}
		p.MaxContextTokens, p.Threshold = &config.Amount{Tokens: n}, new(100.0)
		r.took(from, tree.Path{"profiles", name, "max_context_tokens"}.String(), "")
	default:
		t, ok := o["percent"].(float64)
		if !ok || t < 5 || t > 100 {
			r.ignored(from, "outside 5 to 100")
			return
		}
		p.Threshold = &t
		r.took(from, tree.Path{"profiles", name, "threshold"}.String(), "")
	}
	r.Values.Profiles[name] = p
}

func (r *importer) modes() {
	byMode := maps.Clone(r.export.ProviderProfiles.ModeAPIConfigs)
	from := "providerProfiles.modeApiConfigs."
	if len(byMode) == 0 {
		own, at, _ := r.setting("modeApiConfigs") // of older versions
		byMode = map[string]string{}
		m, _ := own.(map[string]any)
		for mode, id := range m {
			if s, ok := id.(string); ok {
				byMode[mode] = s
			}
		}
		from = at + "."
	}
	for _, mode := range slices.Sorted(maps.Keys(byMode)) {
		at := from + tree.Path{mode}.String()
		name, known := r.ids[byMode[mode]]
		switch wrong := badName(mode); {
		case !known:
			r.ignored(at, "no profile has this id")
		case wrong != "":
			r.ignored(at, "its name "+wrong)
		default:
			if r.Values.Modes == nil {
				r.Values.Modes = map[string]config.ModeValues{}
			}
			r.Values.Modes[mode] = config.ModeValues{Profile: name}
			r.took(at, tree.Path{"modes", mode}.String(), "")
		}
	}
}

// summarySetting sets a setting of the provider that condenses as Roo does.
func (r *importer) summarySetting(key, value string) {
	settings := map[string]string{}
	_ = json.Unmarshal(r.Values.Providers[summary].Settings, &settings) // written here, so valid
	settings[key] = value
	raw, _ := json.Marshal(settings) //nolint:errchkjson // strings can be encoded
	r.Values.Providers[summary] = config.ProviderValues{Strategy: strategy, Settings: raw}
}

// condensingModel takes the profile that condenses for all others, a setting of Zoo and formerly
// of Roo.
func (r *importer) condensingModel() {
	v, from, ok := r.setting("condensingApiConfigId")
	id, _ := v.(string)
	if !ok || id == "" {
		return
	}
	if !r.summaries {
		r.ignored(from, "there is no strategy "+strategy)
		return
	}
	name, known := r.ids[id]
	model := r.Values.Profiles[name].Model
	if _, declared := r.Values.Models[model]; !known || !declared {
		r.ignored(from, "no profile with a usable model has this id")
		return
	}
	r.condenses = model
	r.took(from, "providers."+summary+".settings.model", "Roo removed this setting in January 2026; here it is in use")
	r.check(from, "providers."+summary+".settings.model", "this model reads the conversations of all profiles, whatever their vendors; remove it if each profile's own model is to summarize")
}
