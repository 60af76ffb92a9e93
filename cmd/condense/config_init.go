package main

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

	"github.com/condensehq/condense/config"
)

const (
	configFile = "condense.yaml"
	// schemaFile stands beside the configuration and is named in its first line, so that
	// editors complete and check it without a network and whoever opened the folder.
	schemaFile = "condense.schema.json"
)

func (a *app) configInitCommand() *cobra.Command {
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
		Args: noArguments("name the file with --output"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			reg, err := a.registry()
			if err != nil {
				return err
			}
			render := func(schema string) (string, error) { return config.Init(schema, a.knownNames(reg)), nil }
			return a.writeConfig(cmd, cmp.Or(out, a.configPath, configFile), force, render)
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
func (a *app) writeConfig(cmd *cobra.Command, file string, force bool, render func(schema string) (string, error)) error {
	if file == "-" {
		text, err := render("")
		if err != nil {
			return err
		}
		_, err = a.stdout.Write([]byte(text))
		return err
	}
	if ext := strings.ToLower(filepath.Ext(file)); ext != ".yaml" && ext != ".yml" {
		return usage(cmd, "--output: %s: what is written is YAML; name the file .yaml or .yml", file)
	}
	text, err := render("./" + schemaFile)
	if err != nil {
		return err
	}
	schema, err := a.schema()
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
		if err := writeFile(f.path, f.data, newMode); err != nil {
			return err
		}
	}
	printf(a.stderr, "wrote %s and %s\n", file, beside)
	return a.trustWritten(file)
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
