package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/resolver"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/registry"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Write, check and explain the configuration",
		Long: `One file decides when conversations are condensed, by which providers, and how far: for each profile (a model
and its thresholds) and each mode (what the agent is doing). The commands here write such a file, say what is
wrong with one, and where each value comes from.`,
		Example: `  condense config init
  condense config check
  condense config explain
  condense config explain --mode architect`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		a.configInitCommand(), a.configCheckCommand(), a.configShowCommand(),
		a.configExplainCommand(), a.configSchemaCommand(), a.configImportCommand(),
	)
	return cmd
}

// noArguments refuses any; what is the usual guess at what they were meant for.
func noArguments(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usage(cmd, "unexpected argument %q; %s", args[0], what)
		}
		return nil
	}
}

// knownNames returns options with the names that exist in this program. With them the
// configuration is checked down to the settings of its providers.
func (a *app) knownNames(reg *registry.Registry) config.Options {
	return resolver.Names(reg, config.Options{CheckProvider: a.checker(reg).Declared})
}

func (a *app) checker(reg *registry.Registry) *resolver.Checker {
	return &resolver.Checker{Registry: reg, Models: a.models()}
}

// models returns the options of the model resolver that the flags ask for.
func (a *app) models() resolver.ModelOptions { return resolver.ModelOptions{Default: a.model} }

// loadChecked loads the configuration that a command is about: the file named, or those
// that --config, the environment and the working directory lead to.
func (a *app) loadChecked(file string) (*config.Config, error) {
	reg, err := a.registry()
	if err != nil {
		return nil, err
	}
	if file == "" {
		return a.load(reg)
	}
	return a.loadFile(reg, file)
}

// A place is a profile and a mode, as chosen by flags.
type place struct{ profile, mode string }

func (p *place) flags(a *app, cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.profile, "profile", "", "`name` of the profile (default: that of the mode, or the default profile)")
	cmd.Flags().StringVar(&p.mode, "mode", "", "`name` of the mode")
	a.completePlace(cmd)
}

func (p *place) given() bool { return *p != place{} }

// check reports a profile or mode that does not exist. If none is declared, any mode will do,
// and is worth a word.
func (p *place) check(cmd *cobra.Command, a *app, c *config.Config) error {
	r, err := c.Resolve(p.profile, p.mode)
	if err != nil {
		return usage(cmd, "%w", err)
	}
	if p.mode != "" && len(c.Modes()) == 0 {
		printf(a.stderr, "mode %q is not declared and has profile %q\n", p.mode, r.Profile)
	}
	return a.checkNames(cmd, c, p.mode)
}

// checkNames reports a mode that is not declared where modes are, and a model of --model that
// does not exist. A host program may have modes of its own; who types one means one of these.
func (a *app) checkNames(cmd *cobra.Command, c *config.Config, mode string) error {
	if modes := c.Modes(); mode != "" && len(modes) > 0 && !slices.Contains(modes, mode) {
		return usage(cmd, "--mode: there is no mode %q; there are %s%s", mode, strings.Join(modes, ", "), suggest.DidYouMean(mode, modes))
	}
	if a.model != "" {
		if _, err := resolver.NewModels(c, a.models()).Model("", a.model); err != nil {
			return usage(cmd, "--model: %w", err)
		}
	}
	return nil
}

// fromHere shortens the path of a file below the working directory.
func fromHere(path string) string {
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(wd, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
