package supervise

import (
	"slices"
	"strings"
)

// baseEnv is what every plugin may see of the host's environment: where programs are (a
// script's #! line needs it), how people write, what time it is, and what Windows programs
// do not start without. None of it is secret. Everything else, keys above all, stays here.
var baseEnv = []string{"PATH", "LANG", "LC_*", "TZ", "SYSTEMROOT"}

// environment returns what a plugin sees, as a list of NAME=value: the host's values that
// are allowed, then what is set, then own.
func environment(host, allow, own []string) []string {
	var env []string
	allow = slices.Concat(baseEnv, allow)
	for _, kv := range host {
		name, _, _ := strings.Cut(kv, "=")
		if slices.ContainsFunc(allow, func(pattern string) bool { return passes(pattern, name) }) {
			env = append(env, kv)
		}
	}
	for _, a := range allow {
		if strings.Contains(a, "=") {
			env = append(env, a)
		}
	}
	return append(env, own...)
}

func passes(pattern, name string) bool {
	if strings.Contains(pattern, "=") || name == "" {
		return false
	}
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}
