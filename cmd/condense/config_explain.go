package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/config"
)

func (a *app) configExplainCommand() *cobra.Command {
	var (
		at     place
		window sizeFlag
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "explain [KEY | --profile P --mode M]",
		Short: "Say what will happen, and where every value comes from",
		Long: `explain says what the configuration leads to. Without arguments: what each mode and profile comes to, a line
each. With --profile or --mode: every value there, where it stands, what it was inherited through, and the
formula with its numbers. With KEY, such as threshold or profiles.local.window: what it means, who sets it,
and who overrides it. --window shows the numbers for another context window.`,
		Example: `  condense config explain
  condense config explain --mode architect --window 1000000
  condense config explain threshold
  condense config explain 'profiles."gpt-4.1"'`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return usage(cmd, "want at most one key; got %d", len(args))
			case len(args) == 1 && (at.given() || window != 0):
				return usage(cmd, "a key goes with none of --profile, --mode and --window; to explain one value there, name it: modes.architect.threshold")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.loadChecked("")
			if err != nil {
				return err
			}
			switch {
			case len(args) == 1:
				return a.explainKey(cmd, c, args[0], asJSON)
			case at.given():
				if err := at.check(cmd, a, c); err != nil {
					return err
				}
				return a.explainPlace(cmd, c, at, int(window), asJSON)
			}
			return a.explainAll(cmd, c, int(window), asJSON)
		},
	}
	at.flags(a, cmd)
	completeArgument(cmd, func() []string { return a.configured((*config.Config).Keys) })
	cmd.Flags().Var(&window, "window", "context window in `tokens`, as in 64k, to show the numbers for (default: the profile's)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) explainKey(cmd *cobra.Command, c *config.Config, key string, asJSON bool) error {
	list, err := c.ExplainKey(key)
	switch {
	case err == nil:
	case slices.Contains(c.Modes(), key):
		return usage(cmd, "%w; for the mode of this name: --mode %s", err, key)
	case slices.Contains(c.Profiles(), key):
		return usage(cmd, "%w; for the profile of this name: --profile %s", err, key)
	default:
		return usage(cmd, "%w", err)
	}
	if asJSON {
		return printJSON(a.stdout, list)
	}
	for i, e := range list {
		if i > 0 {
			printf(a.stdout, "\n")
		}
		if err := printText(a.stdout, e.String()); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) explainPlace(cmd *cobra.Command, c *config.Config, at place, window int, asJSON bool) error {
	e, err := c.Explain(at.profile, at.mode, window)
	if err != nil {
		return usage(cmd, "%w", err)
	}
	// The numbers are those of the rule that decides, so that they cannot differ from it.
	e.Formula = newForecast(e.Resolved).terms()
	if asJSON {
		return printJSON(a.stdout, e)
	}
	return printText(a.stdout, e.String())
}
