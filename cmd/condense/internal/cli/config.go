package cli

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/disk"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/internal/resolver"
	"github.com/condensehq/condense/internal/suggest"
)

// Names returns options with the names that this program knows, for the file that --config names. With them the configuration is
// checked down to the settings of its providers.
func (a *App) Names() config.Options {
	return resolver.Names(a.Strategies, config.Options{Path: a.ConfigPath, CheckProvider: a.Checker().Declared})
}

// Checker checks the settings of providers with the models that the flags ask for.
func (a *App) Checker() *Checker {
	return &Checker{Registry: a.Strategies, Models: a.Models(), Unusable: func(c *config.Config, p config.Provider) error {
		_, err := Plugins().Approved(c, p)
		return err
	}}
}

// Sound returns the faults of c that show only when its providers are opened for their profiles, as 'condense config check' does.
func (a *App) Sound(c *config.Config) error {
	faults, err := a.Checker().Chains(c)
	if err == nil && len(faults) > 0 {
		err = faults
	}
	return err
}

// Readers returns which language models would read conversations for the chain of r, a result of c.Resolve, and which providers would
// be skipped.
func (a *App) Readers(c *config.Config, r *config.Resolved) []Reader {
	return a.Checker().Readers(c, r)
}

// Models returns the options of the model resolver that the flags ask for.
func (a *App) Models() resolver.ModelOptions { return resolver.ModelOptions{Default: a.Model} }

// Load loads the configuration in a file. Without a file it loads the one found by --config, the environment and the
// working directory. It reports parts that are ignored because they are not trusted.
func (a *App) Load(file string) (*config.Config, error) {
	opts := a.Names()
	opts.Path = cmp.Or(file, a.ConfigPath)
	return a.LoadToUse(opts)
}

// LoadToUse is LoadWith for a command that condenses: it reports plugins that are skipped.
func (a *App) LoadToUse(opts config.Options) (*config.Config, error) {
	c, declared, err := a.load(opts)
	for _, p := range declared {
		if p.Withheld == "" {
			if _, err := Plugins().Approved(c, p.Provider); errors.Is(err, core.ErrUnavailable) {
				a.reportOnce(p.Name, "condense: skipped: %v\n", err)
			}
		}
	}
	return c, err
}

// LoadWith loads a configuration with options that begin with [App.Names].
func (a *App) LoadWith(opts config.Options) (*config.Config, error) {
	c, _, err := a.load(opts)
	return c, err
}

// LoadPlugins loads the configuration and returns the plugins that it declares, in order of name. A plugin whose
// program is missing is no error.
func (a *App) LoadPlugins() ([]plugins.Plugin, *config.Config, error) {
	opts := a.Names()
	opts.CheckProvider = nil
	c, declared, err := a.load(opts)
	return declared, c, err
}

func (a *App) load(opts config.Options) (*config.Config, []plugins.Plugin, error) {
	c, err := config.Load(opts)
	if err != nil {
		return nil, nil, err
	}
	a.reportUntrusted(c)
	declared, err := plugins.Declared(c)
	if err != nil {
		return nil, nil, err
	}
	a.reportOldLocks(declared)
	return c, declared, nil
}

// Plugins returns the runner of a host's plugins. The plugins in CONDENSE_REATTACH run already.
func Plugins() condense.Plugins { return &plugins.Runner{Reattach: os.Getenv("CONDENSE_REATTACH")} }

// Configured returns names of the configuration, for completion; none if it is invalid.
func (a *App) Configured(names func(*config.Config) []string) []string {
	c, err := a.Load("")
	if err != nil {
		return nil
	}
	return names(c)
}

// CompletePlace offers the profiles and modes of the configuration.
func (a *App) CompletePlace(cmd *cobra.Command) {
	CompleteNames(cmd, "profile", func() []string { return a.Configured((*config.Config).Profiles) })
	CompleteNames(cmd, "mode", func() []string { return a.Configured((*config.Config).Modes) })
}

// A Place is a profile and a mode, as the flags choose them.
type Place struct{ Profile, Mode string }

// Flags adds --profile and --mode.
func (p *Place) Flags(a *App, cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.Profile, "profile", "", "`name` of the profile (default: the mode's, or the default profile)")
	cmd.Flags().StringVar(&p.Mode, "mode", "", "`name` of the mode")
	a.CompletePlace(cmd)
}

// Given reports whether one of them was given.
func (p *Place) Given() bool { return *p != Place{} }

// Check reports a profile or mode that does not exist.
func (p *Place) Check(cmd *cobra.Command, a *App, c *config.Config) error {
	if _, err := c.Resolve(p.Profile, p.Mode); err != nil {
		return Usage(cmd, "%w", err)
	}
	return a.CheckNames(cmd, c, p.Mode)
}

// CheckNames reports a mode that is not declared, and a model of --model that
// does not exist. A host program may use other modes; one that is typed must be declared.
func (a *App) CheckNames(cmd *cobra.Command, c *config.Config, mode string) error {
	modes := c.Modes()
	switch {
	case mode == "" || slices.Contains(modes, mode):
	case len(modes) == 0:
		return Usage(cmd, "--mode: there is no mode %q: the configuration declares none", mode)
	default:
		return Usage(cmd, "--mode: there is no mode %q; there are %s%s", mode, strings.Join(modes, ", "), suggest.DidYouMean(mode, modes))
	}
	if a.Model != "" {
		if _, err := resolver.NewModels(c, a.Models()).Model("", a.Model); err != nil {
			return Usage(cmd, "--model: %w", err)
		}
	}
	return nil
}

// FromHere returns the path of a file below the working directory relative to it.
func FromHere(path string) string { return disk.FromHere(path) }

// oldLock is the file in which projects approved plugins before approvals were the user's. Today it has the releases of installed
// plugins, in JSON.
const oldLock = "condense.lock"

func (a *App) reportOldLocks(declared []plugins.Plugin) {
	done := map[string]bool{}
	for _, p := range declared {
		dir := filepath.Dir(p.Origin.File)
		if p.Origin.Kind != config.FromFile || done[dir] || p.Pin != "" {
			continue
		}
		done[dir] = true
		file := filepath.Join(dir, oldLock)
		if text, err := os.ReadFile(file); err == nil && !strings.HasPrefix(string(text), "{") {
			term.Printf(a.Stderr, "condense: %s is no longer used: approvals are kept outside of the project; run 'condense plugin pin', and remove the file\n", FromHere(file))
		}
	}
}

// reportUntrusted reports once which parts of the configuration are not used.
func (a *App) reportUntrusted(c *config.Config) {
	for _, claims := range c.Claims() {
		if claims = claims.Skipped(); !claims.Trusted && len(claims.Parts) > 0 {
			a.reportOnce(claims.Digest, "condense: skipped: %s; %s\n", strings.Join(claims.Names(), ", "), claims.Remedy())
		}
	}
}

// reportOnce prints a message, once for each id.
func (a *App) reportOnce(id, format string, args ...any) {
	if a.reported == nil {
		a.reported = map[string]bool{}
	}
	if !a.reported[id] {
		a.reported[id] = true
		term.Printf(a.Stderr, format, args...)
	}
}
