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
	"github.com/condensehq/condense/cmd/condense/internal/rooimport"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
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
		Long: `import roo reads a file from "Export Settings" of Roo Code, Zoo Code or Kilo Code, and prints a configuration that
condenses at the same points. On standard error it reports what it imported, what it ignored and why, and what to
check. With --write it writes condense.yaml and its schema, as 'config init' does.

Such an export contains API keys in plain text. None is copied: the configuration names environment variables
instead. Delete the export when you are done.`,
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
	cmd.Flags().BoolVar(&write, "write", false, "write the file instead of printing it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was imported and ignored, and the values, as JSON")
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
	opts := a.Names()
	c, err := config.New(imported.Values, opts)
	if err == nil {
		err = a.Sound(c)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: nothing was written, because the result would be refused: %w", name, err)
	}
	return imported, nil
}

func printImport(w io.Writer, file string, i *rooimport.Import) {
	for _, section := range []struct {
		title string
		notes []rooimport.Note
	}{{"imported", i.Took}, {"ignored", i.Ignored}, {"please check", i.Check}} {
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
		term.Printf(w, "%s contains secrets in plain text; none was copied; delete the file:\n  %s\n",
			file, strings.Join(i.Secrets, "\n  "))
	}
}

const (
	configFile = "condense.yaml"
	// schemaFile is in the folder of the configuration, which names it in its first line. So editors
	// can complete and check the configuration offline.
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
		Long: `init writes condense.yaml, with two chains of providers, one for each of two modes, and every setting with its default.
It also writes condense.schema.json, which the first line of condense.yaml names: editors with a YAML language server
use it to complete and check the file offline. Commit both. Existing files are overwritten only with --force.`,
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
	cmd.Flags().BoolVar(force, "force", false, "overwrite existing files")
}

// writeConfig writes a configuration, rendered with the path of its schema, and the schema next to
// it. To standard output it writes only the configuration, which then names no schema.
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
		return cli.Usage(cmd, "--output: %s: the output is YAML; name the file .yaml or .yml", file)
	}
	text, err := render("./" + schemaFile)
	if err != nil {
		return err
	}
	schema, err := schema(a)
	if err != nil {
		return err
	}
	schemaPath := filepath.Join(filepath.Dir(file), schemaFile)
	if err := rival(file); err != nil {
		return err
	}
	if !force {
		// An identical schema may be overwritten.
		if err := errors.Join(absent(file, nil), absent(schemaPath, schema)); err != nil {
			return err
		}
	}
	// The schema is written first: editors reject a configuration that names a missing one.
	for _, f := range []struct {
		path string
		data []byte
	}{{schemaPath, schema}, {file, []byte(text)}} {
		if err := cli.WriteFile(f.path, f.data, cli.NewMode); err != nil {
			return err
		}
	}
	term.Printf(a.Stderr, "wrote %s and %s\n", file, schemaPath)
	return trustWritten(a, file)
}

// absent returns an error if the file exists, unless it has the welcome content.
func absent(path string, welcome []byte) error {
	switch there, err := os.ReadFile(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case welcome != nil && slices.Equal(there, welcome):
		return nil
	}
	return fmt.Errorf("%s exists; overwrite it with --force, or name another file with --output", path)
}

// rival returns an error if the folder has a configuration in another format: two in one folder are
// an error.
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
			return fmt.Errorf("%s exists, and two configurations in one folder are an error; remove it, or name a file in another folder with --output", other)
		}
	}
	return nil
}
