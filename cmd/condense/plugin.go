package main

import "github.com/spf13/cobra"

// pluginCommand holds what authors and users of plugins need.
func (a *app) pluginCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "Pin, list and test providers that are programs of their own",
		Long: `A plugin is a program that condense starts and asks to shorten conversations. The configuration names it,
and only a program whose checksum was approved with 'condense plugin pin' is ever started.`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand( // in the order of an author's work
		a.pluginNewCommand(),
		a.pluginDevCommand(),
		a.pluginTestCommand(),
		a.pluginPinCommand(),
		a.pluginListCommand(),
	)
	return cmd
}
