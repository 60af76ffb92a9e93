package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/internal/suggest"
)

func (a *app) pluginNewCommand() *cobra.Command {
	var lang, out, replace string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Write a plugin to start from",
		Long: `new writes a plugin that works as it is, with a test that runs the conformance suite, into a new folder: the
one of -o, or NAME. The plugin shortens old results of tools; change that to what you want. Nothing is
overwritten. There are templates in Go, Node and Python.

A plugin in Go needs the module github.com/condensehq/condense. Where this program was not built from a
release of it, the plugin is built with the checkout that --replace names; without the flag, with the one
that the working folder is in, or that this program was built from.`,
		Example: `  condense plugin new tidy
  condense plugin new tidy -o plugins/condense-tidy --replace ~/src/condense`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(cmd, "want one name, such as tidy; got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := newNaming(args[0])
			if err != nil {
				return usage(cmd, "%w", err)
			}
			l, ok := templateLangs[lang]
			if !ok {
				return usage(cmd, "--lang: no template in %q%s; there are %s", lang,
					suggest.DidYouMean(lang, langNames()), strings.Join(langNames(), ", "))
			}
			if !l.replaces && replace != "" {
				return usage(cmd, "--replace is for Go; a plugin in %s has all it needs in its folder", lang)
			}
			if l.replaces {
				if err := n.require(version(), replace); err != nil {
					return usage(cmd, "%w", err)
				}
			}
			dir := cmp.Or(out, args[0])
			written, err := writeTemplate(lang, dir, n)
			if err != nil {
				return err
			}
			printf(a.stderr, "wrote %s: %s\n\nnext:\n  cd %s\n", dir, strings.Join(written, ", "), dir)
			for _, line := range l.next(n) {
				printf(a.stderr, "  %s\n", line)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&lang, "lang", "go", "`language` of the plugin: "+strings.Join(langNames(), ", "))
	f.StringVarP(&out, "output", "o", "", "`folder` to write to; it must not exist or be empty (default: NAME)")
	f.StringVar(&replace, "replace", "", "`folder` of a checkout of condense to build with")
	complete(cmd, "lang", langNames())
	return cmd
}

// A naming is what the templates are filled with.
type naming struct {
	Program  string // condense-my-plugin
	Strategy string // my_plugin
	Module   string // of a plugin in Go
	Version  string // of condense that it requires
	Replace  string // the checkout in its place; may be empty
}

var pluginName = regexp.MustCompile(`^[a-z][a-z0-9]*([-_][a-z0-9]+)*$`)

func newNaming(name string) (*naming, error) {
	bare := strings.TrimPrefix(name, "condense-")
	if !pluginName.MatchString(bare) {
		return nil, fmt.Errorf("%q is no name for a plugin: want lower-case letters and digits, with - or _ between words", name)
	}
	program := "condense-" + strings.ReplaceAll(bare, "_", "-")
	return &naming{
		Program: program, Strategy: strings.ReplaceAll(bare, "-", "_"), Module: "example.com/" + program, Version: "v0.0.0",
	}, nil
}

// writeTemplate writes the template of a language to a folder that is not there or empty,
// and returns the names of its files.
func writeTemplate(lang, dir string, n *naming) (written []string, err error) {
	files, err := renderTemplate(lang, n)
	if err != nil {
		return nil, err
	}
	switch entries, err := os.ReadDir(dir); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case len(entries) > 0:
		return nil, fmt.Errorf("%s is not empty, and nothing is overwritten; use -o for another folder", dir)
	}
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a source folder is nobody's secret
			return nil, err
		}
		if err := os.WriteFile(path, f.data, f.mode); err != nil {
			return nil, err
		}
		top, _, below := strings.Cut(f.name, "/")
		if below {
			top += "/"
		}
		if !slices.Contains(written, top) {
			written = append(written, top)
		}
	}
	return written, nil
}
