package main

import (
	"cmp"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/lock"
	"github.com/condensehq/condense/internal/supervise"
)

// configuredPlugins returns the plugins that the configuration declares, in order of name,
// and the configuration.
func (a *app) configuredPlugins() ([]config.Provider, *config.Config, error) {
	reg, err := a.registry()
	if err != nil {
		return nil, nil, err
	}
	opts := a.knownNames(reg)
	opts.Path = a.configPath
	opts.CheckProvider = nil // a program that is not there is found out below, with the others
	c, err := config.Load(opts)
	if err != nil {
		return nil, nil, err
	}
	var plugins []config.Provider
	for _, name := range c.Providers() {
		p, err := c.Provider(name)
		if err != nil {
			return nil, nil, err
		}
		if p.Plugin != "" {
			plugins = append(plugins, *p)
		}
	}
	return plugins, c, nil
}

// digest returns the checksum of what is there now.
func digest(p config.Provider) (string, error) {
	return supervise.Digest(supervise.Spec{Path: p.Plugin, Tree: p.Folder})
}

// pinnedBy says who pins a plugin: the lock file, or the place in the configuration.
func pinnedBy(c *config.Config, p config.Provider, pin lock.Pin) string {
	if pin.SHA256 == "" {
		return ""
	}
	origin, _ := c.Origin("providers", p.Name, "sha256")
	if pin.Lock != "" {
		return fromHere(pin.Lock)
	}
	return cmp.Or(origin.String(), "the configuration")
}
