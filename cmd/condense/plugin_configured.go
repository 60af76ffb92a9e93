package main

import (
	"os"
	"path/filepath"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/plugins"
)

// configuredPlugins returns the plugins that the configuration declares, in order of name,
// and the configuration.
func (a *app) configuredPlugins() ([]plugins.Plugin, *config.Config, error) {
	reg, err := a.registry()
	if err != nil {
		return nil, nil, err
	}
	opts := a.knownNames(reg)
	opts.Path = a.configPath
	opts.CheckProvider = nil // a program that is not there is reported below, with the others
	c, err := config.Load(opts)
	if err != nil {
		return nil, nil, err
	}
	a.sayUntrusted(c)
	declared, err := plugins.Declared(c)
	if err != nil {
		return nil, nil, err
	}
	a.sayOldLocks(declared)
	return declared, c, nil
}

// oldLock is the file that approved plugins before approvals were the user's own.
const oldLock = "condense.lock"

// sayOldLocks says which files approve nothing any more, although they once did.
func (a *app) sayOldLocks(declared []plugins.Plugin) {
	said := map[string]bool{}
	for _, p := range declared {
		dir := filepath.Dir(p.Origin.File)
		if p.Origin.Kind != config.FromFile || said[dir] || p.Pin != "" {
			continue
		}
		said[dir] = true
		file := filepath.Join(dir, oldLock)
		if _, err := os.Stat(file); err == nil {
			printf(a.stderr, "condense: %s approves nothing: approvals are kept outside of the project now; run 'condense plugin pin', and remove the file\n", fromHere(file))
		}
	}
}
