package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/rooimport"
	"github.com/spf13/cobra"
)

func (a *app) configImportCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Import the settings of another tool",
		Args:  func(cmd *cobra.Command, args []string) error { return unknownCommand(cmd, args) },
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.configImportRooCommand())
	return cmd
}

func (a *app) configImportRooCommand() *cobra.Command {
	var (
		out                  string
		write, force, asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "roo FILE|-",
		Short: "Import a settings export of Roo Code, Zoo Code or Kilo Code",
		Long: `import roo reads what "Export Settings" of Roo Code, Zoo Code or Kilo Code writes, and prints the configuration
that condenses when they did. On standard error it says what it took, what it ignored and why, and what to
check. With --write it writes condense.yaml and its schema, as 'config init' does.

Such an export holds API keys in clear. None is copied: the configuration names environment variables in
their place. Delete the export when you are done.`,
		Example: `  condense config import roo roo-code-settings.json
  condense config import roo roo-code-settings.json --write`,
		Args: oneExport,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !write && (out != "" || force) {
				return usage(cmd, "--output and --force need --write")
			}
			imported, err := a.importRoo(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				if err := printJSON(a.stdout, imported); err != nil {
					return err
				}
			} else {
				printImport(a.stderr, args[0], imported)
			}
			switch {
			case write:
				return a.writeConfig(cmd, cmp.Or(out, a.configPath, configFile), force, imported.YAML)
			case asJSON:
				return nil
			}
			return a.writeConfig(cmd, "-", force, imported.YAML)
		},
	}
	writeConfigFlags(cmd, &out, &force)
	cmd.Flags().BoolVar(&write, "write", false, "write the file; without it, it is only shown")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was taken and ignored, and the values, as JSON")
	return cmd
}

func oneExport(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage(cmd, "want one settings export; got %d (in the editor: Settings, About, Export)", len(args))
	}
	return nil
}

func (a *app) importRoo(file string) (*rooimport.Import, error) {
	var (
		text []byte
		err  error
		name = file
	)
	if file == "-" {
		name = "standard input"
		text, err = io.ReadAll(a.stdin)
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, err
	}
	reg, err := a.registry()
	if err != nil {
		return nil, err
	}
	imported, err := rooimport.Read(text, slices.Contains(reg.Names(), "native"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return imported, nil
}

func printImport(w io.Writer, file string, i *rooimport.Import) {
	for _, section := range []struct {
		title string
		notes []rooimport.Note
	}{{"took", i.Took}, {"ignored", i.Ignored}, {"please check", i.Check}} {
		if len(section.notes) == 0 {
			continue
		}
		printf(w, "%s:\n", section.title)
		for _, n := range section.notes {
			printf(w, "  %v\n", n)
		}
	}
	if len(i.Variables) > 0 {
		printf(w, "set these variables to your API keys:\n  %s\n", strings.Join(i.Variables, ", "))
	}
	if len(i.Secrets) > 0 {
		printf(w, "%s holds secrets in clear; none was copied, delete the file:\n  %s\n",
			file, strings.Join(i.Secrets, "\n  "))
	}
}
