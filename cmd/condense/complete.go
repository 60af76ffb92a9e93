package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/plain"
)

// complete makes the shell offer values for a flag.
func complete(cmd *cobra.Command, flag string, values []string) {
	completeNames(cmd, flag, func() []string { return values })
}

// completeNames makes the shell offer names that are looked up when they are needed.
func completeNames(cmd *cobra.Command, flag string, names func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return beginning(begun, names()), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the flag does not exist: a slip in the code
	}
}

// completeArgument makes the shell offer names for the only argument of a command.
func completeArgument(cmd *cobra.Command, names func() []string) {
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return beginning(begun, names()), cobra.ShellCompDirectiveNoFileComp
	}
}

func beginning(begun string, names []string) []string {
	var out []string
	for _, name := range names {
		if strings.HasPrefix(name, begun) && plain.Line(name) == name {
			out = append(out, name)
		}
	}
	return out
}

// completePlace offers the profiles and modes of the configuration.
func (a *app) completePlace(cmd *cobra.Command) {
	completeNames(cmd, "profile", func() []string { return a.configured((*config.Config).Profiles) })
	completeNames(cmd, "mode", func() []string { return a.configured((*config.Config).Modes) })
}

// configured returns names of the configuration; none if it is wrong.
func (a *app) configured(names func(*config.Config) []string) []string {
	c, err := a.loadChecked("")
	if err != nil {
		return nil
	}
	return names(c)
}

// providerNames are the providers of the configuration and the strategies.
func (a *app) providerNames() []string {
	names := a.configured((*config.Config).Providers)
	return append(names, a.strategyNames()...)
}

func (a *app) strategyNames() []string {
	reg, err := a.registry()
	if err != nil {
		return nil
	}
	return reg.Names()
}
