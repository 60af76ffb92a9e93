package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/internal/resolver"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/registry"
)

// Registry returns the strategies that the program knows.
func (a *App) Registry() (*registry.Registry, error) {
	return resolver.Strategies()
}

// Load reads the configuration, and says which parts of it are not used for want of trust.
// The built-in strategies can be named in chains as they are.
func (a *App) Load(reg *registry.Registry) (*config.Config, error) {
	return a.loadFile(reg, a.ConfigPath)
}

// loadFile is load for a file that was named; empty means those that are found.
func (a *App) loadFile(reg *registry.Registry, file string) (*config.Config, error) {
	opts := a.KnownNames(reg)
	opts.Path = file
	c, err := config.Load(opts)
	if err != nil {
		return nil, err
	}
	a.SayUntrusted(c)
	declared, err := plugins.Declared(c)
	if err != nil {
		return nil, err
	}
	a.SayOldLocks(declared)
	return c, nil
}

// CompletePlace offers the profiles and modes of the configuration.
func (a *App) CompletePlace(cmd *cobra.Command) {
	CompleteNames(cmd, "profile", func() []string { return a.Configured((*config.Config).Profiles) })
	CompleteNames(cmd, "mode", func() []string { return a.Configured((*config.Config).Modes) })
}

// Configured returns names of the configuration; none if it is wrong.
func (a *App) Configured(names func(*config.Config) []string) []string {
	c, err := a.LoadChecked("")
	if err != nil {
		return nil
	}
	return names(c)
}

// ProviderNames are the providers of the configuration and the strategies.
func (a *App) ProviderNames() []string {
	names := a.Configured((*config.Config).Providers)
	return append(names, a.StrategyNames()...)
}

func (a *App) StrategyNames() []string {
	reg, err := a.Registry()
	if err != nil {
		return nil
	}
	return reg.Names()
}

// KnownNames returns options with the names that exist in this program. With them the
// configuration is checked down to the settings of its providers.
func (a *App) KnownNames(reg *registry.Registry) config.Options {
	return resolver.Names(reg, config.Options{CheckProvider: a.Checker(reg).Declared})
}

func (a *App) Checker(reg *registry.Registry) *resolver.Checker {
	return &resolver.Checker{Registry: reg, Models: a.Models()}
}

// Models returns the options of the model resolver that the flags ask for.
func (a *App) Models() resolver.ModelOptions { return resolver.ModelOptions{Default: a.Model} }

// LoadChecked loads the configuration that a command is about: the file named, or those
// that --config, the environment and the working directory lead to.
func (a *App) LoadChecked(file string) (*config.Config, error) {
	reg, err := a.Registry()
	if err != nil {
		return nil, err
	}
	if file == "" {
		return a.Load(reg)
	}
	return a.loadFile(reg, file)
}

// A Place is a profile and a mode, as chosen by flags.
type Place struct{ Profile, Mode string }

func (p *Place) Flags(a *App, cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.Profile, "profile", "", "`name` of the profile (default: that of the mode, or the default profile)")
	cmd.Flags().StringVar(&p.Mode, "mode", "", "`name` of the mode")
	a.CompletePlace(cmd)
}

func (p *Place) Given() bool { return *p != Place{} }

// Check reports a profile or mode that does not exist. If none is declared, any mode will do,
// and is worth a word.
func (p *Place) Check(cmd *cobra.Command, a *App, c *config.Config) error {
	r, err := c.Resolve(p.Profile, p.Mode)
	if err != nil {
		return Usage(cmd, "%w", err)
	}
	if p.Mode != "" && len(c.Modes()) == 0 {
		term.Printf(a.Stderr, "mode %q is not declared and has profile %q\n", p.Mode, r.Profile)
	}
	return a.CheckNames(cmd, c, p.Mode)
}

// CheckNames reports a mode that is not declared where modes are, and a model of --model that
// does not exist. A host program may have modes of its own; who types one means one of these.
func (a *App) CheckNames(cmd *cobra.Command, c *config.Config, mode string) error {
	if modes := c.Modes(); mode != "" && len(modes) > 0 && !slices.Contains(modes, mode) {
		return Usage(cmd, "--mode: there is no mode %q; there are %s%s", mode, strings.Join(modes, ", "), suggest.DidYouMean(mode, modes))
	}
	if a.Model != "" {
		if _, err := resolver.NewModels(c, a.Models()).Model("", a.Model); err != nil {
			return Usage(cmd, "--model: %w", err)
		}
	}
	return nil
}

// FromHere shortens the path of a file below the working directory.
func FromHere(path string) string {
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(wd, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// oldLock is the file that approved plugins before approvals were the user's own.
const oldLock = "condense.lock"

// SayOldLocks says which files approve nothing any more, although they once did.
func (a *App) SayOldLocks(declared []plugins.Plugin) {
	said := map[string]bool{}
	for _, p := range declared {
		dir := filepath.Dir(p.Origin.File)
		if p.Origin.Kind != config.FromFile || said[dir] || p.Pin != "" {
			continue
		}
		said[dir] = true
		file := filepath.Join(dir, oldLock)
		if _, err := os.Stat(file); err == nil {
			term.Printf(a.Stderr, "condense: %s approves nothing: approvals are kept outside of the project now; run 'condense plugin pin', and remove the file\n", FromHere(file))
		}
	}
}

// SayUntrusted says once which parts of the configuration are not used.
func (a *App) SayUntrusted(c *config.Config) {
	for _, claims := range c.Claims() {
		if claims.Trusted || a.untrusted[claims.Digest] {
			continue
		}
		if a.untrusted == nil {
			a.untrusted = map[string]bool{}
		}
		a.untrusted[claims.Digest] = true
		term.Printf(a.Stderr, "condense: skipped: %s; %s\n", strings.Join(claims.Names(), ", "), claims.Remedy())
	}
}
