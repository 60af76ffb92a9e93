package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/config"
)

func (a *app) configSchemaCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Write the JSON schema of configuration files",
		Long: `schema writes the JSON schema of configuration files: the keys with their documentation, types and limits, and
the strategies of this program with their settings. Editors complete and check with it; 'config init' puts it
beside the configuration, and this command brings that file up to date:

  condense config schema -o condense.schema.json`,
		Args: noArguments("name a file with --output"),
		RunE: func(*cobra.Command, []string) error {
			text, err := a.schema()
			if err != nil {
				return err
			}
			if out == "" || out == "-" {
				_, err := a.stdout.Write(text)
				return err
			}
			return writeFile(out, text, newMode)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "`file` to write to (default: standard output)")
	return cmd
}

// schema returns the JSON schema of configurations with the strategies of this program.
func (a *app) schema() ([]byte, error) {
	reg, err := a.registry()
	if err != nil {
		return nil, err
	}
	return config.Schema(slices.Collect(reg.All()), a.knownNames(reg))
}
