package lock

import (
	"cmp"

	"github.com/condensehq/condense/config"
)

// A Pin says which digest a plugin must have.
type Pin struct {
	SHA256 string // in lower case; empty if nobody approved the plugin
	// Lock is the path of the lock file that says so; empty if the configuration itself
	// does, which counts for more, or nobody.
	Lock string
}

// Find returns what pins the plugin p: the configuration, or the lock file beside it. The
// error is that of [Read].
func Find(p config.Provider) (Pin, error) {
	if p.SHA256 != "" {
		return Pin{SHA256: p.SHA256}, nil
	}
	if p.PluginDir == "" {
		return Pin{}, nil // made by a program, which would have said so
	}
	f, err := Read(p.PluginDir)
	if err != nil {
		return Pin{}, err
	}
	sum := f.Digest(Target(p))
	if sum == "" {
		return Pin{}, nil
	}
	return Pin{SHA256: sum, Lock: f.Path()}, nil
}

// Target returns what of the plugin p is pinned: its folder if it has one, else its program.
func Target(p config.Provider) (path string, folder bool) {
	return cmp.Or(p.Folder, p.Plugin), p.Folder != ""
}
