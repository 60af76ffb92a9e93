package configcmd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
)

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
		Use: "init", Short: "Write a commented configuration to start from", Args: cli.NoArguments("name the file with --output"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			render := func(schema string) (string, error) { return config.Init(schema, a.Names()), nil }
			return writeConfig(a, cmd, cmp.Or(out, a.ConfigPath, configFile), force, render)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "`file` to write, - for standard output (default: "+configFile+")")
	cmd.Flags().BoolVar(&force, "force", false, "overwrite existing files")
	return cmd
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
