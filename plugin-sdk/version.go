// Package pluginsdk turns a strategy into a program: a plugin that condense starts. An author
// imports it in addition to core and registry:
//
//	func main() { pluginsdk.Main(strategy) }
//
// The same [registry.Strategy] can be compiled into a host instead. The protocol between host
// and plugin is hidden here; docs/protocol.md describes it for authors in other languages.
package pluginsdk

import "runtime/debug"

// version returns the version of the program's module, or the commit of its build.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	return "devel"
}

// sdkVersion returns the version of this module in the program.
func sdkVersion() string {
	const module = "github.com/condensehq/condense"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == module && m.Version != "" {
			return m.Version
		}
	}
	return "devel"
}
