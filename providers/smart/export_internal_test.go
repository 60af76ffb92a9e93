package smart

// Presets returns the names of the presets.
func Presets() []string { return presetNames() }
