package config

// A preset is a set of values that a profile may start from. It ranks between the
// profile's own values and those that the profile inherits.
type preset struct {
	name   string
	doc    string
	values map[string]any
	// rooRule makes numbers mean what they mean to Roo Code, see [Resolved].
	rooRule bool
	// providers are declared with the preset; a user's provider of the same name wins.
	providers map[string]map[string]any
}

// presets is a function because its maps must not be shared.
func presets() []preset {
	return []preset{{
		name:    "roo",
		doc:     "The rule of Roo Code, and its truncation of half the conversation.",
		rooRule: true,
		values: map[string]any{
			"buffer":             10.0,
			"max_context_tokens": int64(0),
			"min_gain":           0.0,
			"min_new_tokens":     int64(0),
			"min_size":           int64(0),
			"chain":              []any{"roo_half"},
		},
		providers: map[string]map[string]any{
			"roo_half": {"strategy": "slidingwindow", "settings": map[string]any{"mode": "half"}},
		},
	}}
}

func presetNames() []string {
	var names []string
	for _, p := range presets() {
		names = append(names, p.name)
	}
	return names
}

func presetNamed(name string) (preset, bool) {
	for _, p := range presets() {
		if p.name == name {
			return p, true
		}
	}
	return preset{}, false
}
