package main

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/supervise"
	"github.com/condensehq/condense/internal/trust"
)

// A plugged is a configured plugin and what approves it.
type plugged struct {
	config.Provider // with its program, also if it is withheld

	pin string // the checksum that is approved; empty if none is
	by  string // the place in the configuration, or the user
}

// approvedByUser is who approves what the user pinned.
const approvedByUser = "approved by you"

// configuredPlugins returns the plugins that the configuration declares, in order of name,
// and the configuration.
func (a *app) configuredPlugins() ([]plugged, *config.Config, error) {
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
	plugins, err := pluginsOf(c)
	if err != nil {
		return nil, nil, err
	}
	a.sayOldLocks(plugins)
	return plugins, c, nil
}

func pluginsOf(c *config.Config) ([]plugged, error) {
	var plugins []plugged
	declared := c.Values().Providers
	for _, name := range c.Providers() {
		p, err := c.Provider(name)
		if err != nil {
			return nil, err
		}
		if p.Withheld != "" {
			p.Plugin, p.Folder = declared[name].Plugin, declared[name].Folder
		}
		if p.Plugin == "" {
			continue
		}
		l := plugged{Provider: *p, pin: p.SHA256}
		if l.pin != "" {
			origin, _ := c.Origin("providers", name, "sha256")
			l.by = cmp.Or(origin.String(), "the configuration")
		} else {
			if l.pin, err = trust.Open(c.TrustDir()).Pin(l.target()); err != nil {
				return nil, err
			}
			if l.pin != "" {
				l.by = approvedByUser
			}
		}
		plugins = append(plugins, l)
	}
	return plugins, nil
}

// target returns what of the plugin is approved: its folder if it has one, else its program.
func (p *plugged) target() (path string, folder bool) {
	return cmp.Or(p.Folder, p.Plugin), p.Folder != ""
}

// digest returns the checksum of what is there now.
func digest(p config.Provider) (string, error) {
	return supervise.Digest(supervise.Spec{Path: p.Plugin, Tree: p.Folder})
}

// oldLock is the file that approved plugins before approvals were the user's own.
const oldLock = "condense.lock"

// sayOldLocks says which files approve nothing any more, although they once did.
func (a *app) sayOldLocks(plugins []plugged) {
	said := map[string]bool{}
	for _, p := range plugins {
		dir := filepath.Dir(p.Origin.File)
		if p.Origin.Kind != config.FromFile || said[dir] || p.pin != "" {
			continue
		}
		said[dir] = true
		file := filepath.Join(dir, oldLock)
		if _, err := os.Stat(file); err == nil {
			printf(a.stderr, "condense: %s approves nothing: approvals are kept outside of the project now; run 'condense plugin pin', and remove the file\n", fromHere(file))
		}
	}
}
