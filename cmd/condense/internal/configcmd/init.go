package configcmd

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/rooimport"
)

func configImportCommand(a *cli.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Import the settings of another tool",
		Args:  cli.UnknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(configImportRooCommand(a))
	return cmd
}

func configImportRooCommand(a *cli.App) *cobra.Command {
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
				return cli.Usage(cmd, "--output and --force need --write")
			}
			imported, err := importRoo(a, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				if err := term.PrintJSON(a.Stdout, imported); err != nil {
					return err
				}
			} else {
				printImport(a.Stderr, args[0], imported)
			}
			switch {
			case write:
				return writeConfig(a, cmd, cmp.Or(out, a.ConfigPath, configFile), force, imported.YAML)
			case asJSON:
				return nil
			}
			return writeConfig(a, cmd, "-", force, imported.YAML)
		},
	}
	writeConfigFlags(cmd, &out, &force)
	cmd.Flags().BoolVar(&write, "write", false, "write the file; without it, it is only shown")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was taken and ignored, and the values, as JSON")
	return cmd
}

func oneExport(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return cli.Usage(cmd, "want one settings export; got %d (in the editor: Settings, About, Export)", len(args))
	}
	return nil
}

func importRoo(a *cli.App, file string) (*rooimport.Import, error) {
	var (
		text []byte
		err  error
		name = file
	)
	if file == "-" {
		name = "standard input"
		text, err = io.ReadAll(a.Stdin)
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, err
	}
	imported, err := rooimport.Read(text, slices.Contains(a.Strategies.Names(), "native"))
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
		term.Printf(w, "%s:\n", section.title)
		for _, n := range section.notes {
			term.Printf(w, "  %v\n", n)
		}
	}
	if len(i.Variables) > 0 {
		term.Printf(w, "set these variables to your API keys:\n  %s\n", strings.Join(i.Variables, ", "))
	}
	if len(i.Secrets) > 0 {
		term.Printf(w, "%s holds secrets in clear; none was copied, delete the file:\n  %s\n",
			file, strings.Join(i.Secrets, "\n  "))
	}
}

const (
	configFile = "condense.yaml"
	// schemaFile stands beside the configuration and is named in its first line, so that
	// editors complete and check it without a network and whoever opened the folder.
	schemaFile = "condense.schema.json"
)

func configInitCommand(a *cli.App) *cobra.Command {
	var (
		out   string
		force bool
	)
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a commented configuration to start from",
		Long: `init writes condense.yaml: two chains of providers, one for each of two modes, and every setting with its
default. Beside it goes condense.schema.json, which the first line of condense.yaml names: editors with a YAML
language server complete and check the file with it, offline. Commit both. Nothing is overwritten unless
--force says so.`,
		Args: cli.NoArguments("name the file with --output"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			render := func(schema string) (string, error) { return config.Init(schema, a.Names()), nil }
			return writeConfig(a, cmd, cmp.Or(out, a.ConfigPath, configFile), force, render)
		},
	}
	writeConfigFlags(cmd, &out, &force)
	return cmd
}

func writeConfigFlags(cmd *cobra.Command, out *string, force *bool) {
	cmd.Flags().StringVarP(out, "output", "o", "", "`file` to write, - for standard output (default: "+configFile+")")
	cmd.Flags().BoolVar(force, "force", false, "overwrite what is there")
}

// writeConfig writes a configuration that is rendered with the address of its schema, and
// the schema beside it. Standard output gets the configuration alone, which then names no
// schema.
func writeConfig(a *cli.App, cmd *cobra.Command, file string, force bool, render func(schema string) (string, error)) error {
	if file == "-" {
		text, err := render("")
		if err != nil {
			return err
		}
		_, err = a.Stdout.Write([]byte(text))
		return err
	}
	if ext := strings.ToLower(filepath.Ext(file)); ext != ".yaml" && ext != ".yml" {
		return cli.Usage(cmd, "--output: %s: what is written is YAML; name the file .yaml or .yml", file)
	}
	text, err := render("./" + schemaFile)
	if err != nil {
		return err
	}
	schema, err := schema(a)
	if err != nil {
		return err
	}
	beside := filepath.Join(filepath.Dir(file), schemaFile)
	if err := rival(file); err != nil {
		return err
	}
	if !force {
		// A schema that is the same already is none that would be lost.
		if err := errors.Join(absent(file, nil), absent(beside, schema)); err != nil {
			return err
		}
	}
	// The schema first: a configuration that names one which is not there would be refused
	// by editors.
	for _, f := range []struct {
		path string
		data []byte
	}{{beside, schema}, {file, []byte(text)}} {
		if err := cli.WriteFile(f.path, f.data, cli.NewMode); err != nil {
			return err
		}
	}
	term.Printf(a.Stderr, "wrote %s and %s\n", file, beside)
	return trustWritten(a, file)
}

// absent returns an error if there is a file, unless with the content that is welcome.
func absent(path string, welcome []byte) error {
	switch there, err := os.ReadFile(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case welcome != nil && slices.Equal(there, welcome):
		return nil
	}
	return fmt.Errorf("%s exists and would be overwritten; use --force if you want that, or --output for another file", path)
}

// rival returns an error if a configuration of another format stands in the same folder:
// with two, neither would count.
func rival(file string) error {
	base := filepath.Base(file)
	name := strings.TrimSuffix(base, filepath.Ext(base))
	if name != strings.TrimSuffix(configFile, filepath.Ext(configFile)) {
		return nil
	}
	for _, ext := range []string{".yaml", ".yml", ".toml", ".json"} {
		other := filepath.Join(filepath.Dir(file), name+ext)
		if filepath.Base(other) == base {
			continue
		}
		if _, err := os.Stat(other); err == nil {
			return fmt.Errorf("%s is there already, and two configurations in one folder are an error; remove it, or use --output for another folder", other)
		}
	}
	return nil
}
