package plugins

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/internal/wire/caller"
	"github.com/condensehq/condense/registry"
)

// maxStarts is how often a plugin is started to find all faults of its settings: one fault may hide others.
const maxStarts = 6

// Examine starts a configured plugin with its settings and returns their faults, each with its setting. The plugin
// decides: settings that it accepts have no faults. Its description locates the faults and suggests corrections.
//
// If the plugin does not start, the error says why, and the settings are compared with the last description, if there
// is one.
func Examine(ctx context.Context, p config.Provider, pin string) (found []config.ProviderFault, _ error) {
	settings := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(p.Settings)) > 0 {
		if err := json.Unmarshal(p.Settings, &settings); err != nil {
			return []config.ProviderFault{{Key: []string{"settings"}, Problem: "must be a mapping"}}, nil
		}
	}
	var faults, warnings []config.ProviderFault
	defer func() { found = append(found, warnings...) }()
	for range maxStarts {
		d, err := Describe(ctx, p, pin)
		if d != nil && warnings == nil {
			warnings = Renamed([]string{"settings"}, settings, d.Settings)
		}
		bad, refuses := errors.AsType[*caller.SettingsError](err)
		switch {
		case err == nil:
			return faults, nil
		case !refuses && len(faults) > 0:
			return faults, nil // it was started before, and its faults are known
		case !refuses:
			if d, known := Known(pin); known {
				faults = describedFaults(d.Name, d.Settings, settings, []string{"settings"}, d.Settings)
			}
			return faults, err
		}
		refused := refusedFaults(d, bad, settings)
		faults = append(faults, refused...)
		removed := false
		for _, f := range refused {
			removed = remove(settings, f.Key[1:]) || removed
		}
		if !removed || len(settings) == 0 {
			return faults, nil
		}
		if p.Settings, err = json.Marshal(settings); err != nil {
			return nil, err
		}
	}
	return faults, nil
}

// refusedFaults returns the faults of settings that a plugin refused: faults by its description, and the plugin's
// reports on other settings.
func refusedFaults(d *caller.Description, bad *caller.SettingsError, settings map[string]json.RawMessage) []config.ProviderFault {
	var faults []config.ProviderFault
	if d != nil {
		faults = describedFaults(d.Name, d.Settings, settings, []string{"settings"}, d.Settings)
	}
	shown := len(faults)
	for _, p := range bad.Problems {
		key := []string{"settings"}
		if p.Key != "" {
			key = append(key, keyPath(p.Key, settings)...)
		}
		hidden := slices.ContainsFunc(faults[:shown], func(f config.ProviderFault) bool { return isBelow(f.Key, key) || isBelow(key, f.Key) })
		if !hidden {
			faults = append(faults, config.ProviderFault{Key: key, Problem: p.Message})
		}
	}
	return faults
}

// Renamed returns a warning for each setting, below the path at, that has a former name.
func Renamed(at []string, settings map[string]json.RawMessage, known []registry.Setting) []config.ProviderFault {
	var warnings []config.ProviderFault
	for _, s := range known {
		for _, was := range s.Was {
			if _, set := settings[was]; set {
				warnings = append(warnings, config.ProviderFault{
					Key: append(slices.Clone(at), was), AtName: true, Warning: true, Problem: fmt.Sprintf("is called %s now", s.Name),
				})
			}
		}
		var inner map[string]json.RawMessage
		if len(s.Fields) > 0 && json.Unmarshal(settings[s.Name], &inner) == nil {
			warnings = append(warnings, Renamed(append(slices.Clone(at), s.Name), inner, s.Fields)...)
		}
	}
	return warnings
}

// remove deletes the setting at a path, or the value that contains it, and reports whether there was one.
func remove(settings map[string]json.RawMessage, path []string) bool {
	if len(path) == 0 || settings[path[0]] == nil {
		return false
	}
	if inner := map[string]json.RawMessage{}; len(path) > 1 && json.Unmarshal(settings[path[0]], &inner) == nil && remove(inner, path[1:]) {
		if text, err := json.Marshal(inner); err == nil {
			settings[path[0]] = text
			return true
		}
	}
	delete(settings, path[0])
	return true
}

// keyPath splits the key of a problem. A setting may have a dot in its name.
func keyPath(key string, settings map[string]json.RawMessage) []string {
	if _, whole := settings[key]; whole {
		return []string{key}
	}
	return strings.Split(key, ".")
}

// isBelow reports whether the path of a setting equals another, or leads through it.
func isBelow(path, other []string) bool {
	return len(path) >= len(other) && slices.Equal(path[:len(other)], other)
}

// describedFaults compares settings with a description: names, types and values. All are the settings of the plugin,
// to find a name that belongs elsewhere.
func describedFaults(plugin string, known []registry.Setting, settings map[string]json.RawMessage, at []string, all []registry.Setting) []config.ProviderFault {
	var faults []config.ProviderFault
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		key := append(slices.Clone(at), name)
		i := slices.IndexFunc(known, func(s registry.Setting) bool { return s.Name == name || slices.Contains(s.Was, name) })
		if i < 0 {
			faults = append(faults, unknownSetting(plugin, key, known, all))
			continue
		}
		if inner := map[string]json.RawMessage{}; len(known[i].Fields) > 0 && json.Unmarshal(settings[name], &inner) == nil {
			faults = append(faults, describedFaults(plugin, known[i].Fields, inner, key, all)...)
			continue
		}
		if f, wrong := valueFault(&known[i], settings[name]); wrong {
			f.Key = key
			faults = append(faults, f)
		}
	}
	return faults
}

func unknownSetting(plugin string, key []string, known, all []registry.Setting) config.ProviderFault {
	f := config.ProviderFault{Key: key, AtName: true, Problem: "unknown setting of " + plugin}
	name := key[len(key)-1]
	var names, elsewhere []string
	names = append(names, plain.Each(known, func(s registry.Setting) string { return s.Name })...)
	registry.Nested(all, func(s registry.Setting, _ int) {
		if s.Name == name || strings.HasSuffix(s.Name, "."+name) || suggest.Fold(s.Name) == suggest.Fold(name) {
			elsewhere = append(elsewhere, s.Name)
		}
	})
	if f.Suggestion = suggest.Key(name, names); f.Suggestion == "" {
		f.Suggestion = suggest.Name(name, names)
	}
	switch {
	case f.Suggestion == "" && len(elsewhere) > 0:
		f.Suggestion = elsewhere[0]
	case f.Suggestion != "":
	case len(names) > 0:
		f.Allowed = "there are " + strings.Join(names, ", ")
	default:
		f.Allowed = "there are none"
	}
	return f
}

// valueFault returns the fault of a value by the plugin's description. Null, and values of types that it does not
// describe, are left to the plugin.
func valueFault(s *registry.Setting, raw json.RawMessage) (config.ProviderFault, bool) {
	have := typeOf(raw)
	isNumber := s.Type == "integer" || s.Type == "number"
	switch {
	case have == "null":
	case s.Type == "integer" && have == "number":
		if _, err := strconv.ParseInt(string(raw), 10, 64); err != nil {
			return config.ProviderFault{Problem: fmt.Sprintf("is %s; want an integer", raw)}, true
		}
	case isNumber && have != "number", s.Type == "string" && have != "string", s.Type == "boolean" && have != "boolean",
		s.Type == "array" && have != "array", s.Type == "object" && len(s.Fields) > 0 && have != "object":
		return config.ProviderFault{Problem: fmt.Sprintf("got a JSON %s; want %s", have, s.Type)}, true
	}
	var text string
	if len(s.Enum) == 0 || json.Unmarshal(raw, &text) != nil || slices.Contains(s.Enum, text) {
		return config.ProviderFault{}, false
	}
	values := slices.Clone(s.Enum)
	for i, v := range values {
		if v == "" {
			values[i] = `""`
		}
	}
	return config.ProviderFault{
		Problem: fmt.Sprintf("%q is none of %s", text, strings.Join(values, ", ")), Suggestion: suggest.Key(text, s.Enum),
	}, true
}

// typeOf names the JSON type of a value.
func typeOf(raw json.RawMessage) string {
	switch raw = bytes.TrimSpace(raw); {
	case len(raw) == 0, raw[0] == 'n':
		return "null"
	case raw[0] == '"':
		return "string"
	case raw[0] == 't', raw[0] == 'f':
		return "boolean"
	case raw[0] == '[':
		return "array"
	case raw[0] == '{':
		return "object"
	}
	return "number"
}
