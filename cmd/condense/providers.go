package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/registry"
)

// A strategyListing is a strategy as JSON.
type strategyListing struct {
	Name     string             `json:"name"`
	Doc      string             `json:"doc"`
	Settings []registry.Setting `json:"settings"`
}

func (a *app) providersCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "providers [NAME]",
		Short: "List the strategies, or describe one and its settings",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(cmd, "want at most one name; got %d", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			reg, err := a.registry()
			if err != nil {
				return err
			}
			var list []registry.Strategy
			if len(args) == 1 {
				s, err := reg.Get(args[0])
				if err != nil {
					return err
				}
				list = append(list, s)
			} else {
				for s := range reg.All() {
					list = append(list, s)
				}
			}
			if asJSON {
				return printStrategiesJSON(a.stdout, list)
			}
			if len(args) == 1 {
				printStrategy(a.stdout, list[0])
				return nil
			}
			t := term.NewTable("", "")
			for _, s := range list {
				first, _, _ := strings.Cut(s.Doc, ".")
				t.Row(s.Name, strings.Join(strings.Fields(first), " ")+".")
			}
			_ = printText(a.stdout, t.Text(""))
			printf(a.stdout, "\nEvery chain ends with truncation to the budget, which need not be named.\n'condense providers NAME' describes one and its settings.\n")
			return nil
		},
	}
	completeArgument(cmd, a.strategyNames)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printStrategy(w io.Writer, s registry.Strategy) {
	printf(w, "%s\n\n%s\n\nSettings:\n", s.Name, s.Doc)
	for _, set := range s.Settings() {
		printf(w, "  %-12s %s (%s, default %s)", set.Name, set.Doc, set.Type, set.Default)
		if len(set.Enum) > 0 {
			printf(w, ": %s", strings.Join(set.Enum, ", "))
		}
		printf(w, "\n")
	}
}

func printStrategiesJSON(w io.Writer, list []registry.Strategy) error {
	out := make([]strategyListing, len(list))
	for i, s := range list {
		out[i] = strategyListing{s.Name, s.Doc, s.Settings()}
	}
	return printJSON(w, out)
}
