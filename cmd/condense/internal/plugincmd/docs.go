package plugincmd

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/registry"
)

func pluginDocsCommand(a *cli.App) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "docs NAME|PATH",
		Short: "Write a page about a plugin and its settings, in Markdown",
		Long: `docs writes a page with a plugin's description of itself: its documentation, and its settings with types, defaults and
allowed values. NAME is a provider of the configuration; it must be approved. PATH is a program that you wrote, which is
run as 'plugin test' does, unapproved.`,
		Example: `  condense plugin docs ./condense-tidy -o SETTINGS.md
  condense plugin docs tidy`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usage(cmd, "want one plugin, by its name in the configuration or its path; got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			page, err := pluginPage(cmd.Context(), a, args[0])
			if err != nil {
				return err
			}
			if out == "" || out == "-" {
				_, err := a.Stdout.Write(page)
				return err
			}
			return cli.WriteFile(out, page, cli.NewMode)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "`file` to write to (default: standard output)")
	return cmd
}

// pluginPage returns the page of the plugin that an argument means: an approved one of the configuration, or a program.
func pluginPage(ctx context.Context, a *cli.App, arg string) ([]byte, error) {
	declared, c, err := a.LoadPlugins()
	if err != nil {
		return nil, err
	}
	found, err := pluginsNamed(arg, declared, c)
	if err != nil {
		return nil, err
	}
	p := found[0]
	if p.Name == arg {
		if p.Withheld != "" {
			return nil, fmt.Errorf("provider %s: %s", arg, p.Withheld)
		}
		d, err := plugins.About(ctx, p)
		if err != nil {
			return nil, err
		}
		return page(d.Name, d.Doc, d.Settings), nil
	}
	d, err := (&plugins.Trial{Plugin: config.Provider{Name: "plugin", Plugin: p.Plugin, Folder: p.Folder}}).Describe(ctx)
	if err != nil {
		return nil, err
	}
	return page(d.Name, d.Doc, d.Settings), nil
}

// page returns the Markdown page of a strategy.
func page(name, doc string, settings []registry.Setting) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n", name, strings.TrimSpace(doc))
	if len(settings) == 0 {
		b.WriteString("\nIt has no settings.\n")
		return []byte(b.String())
	}
	b.WriteString("\n## Settings\n\n| setting | type | default | meaning |\n|---|---|---|---|\n")
	registry.Nested(settings, func(s registry.Setting, _ int) {
		def, meaning := "", cell(s.Doc)
		if len(s.Fields) == 0 && len(s.Default) > 0 {
			def = "`" + cell(string(s.Default)) + "`"
		}
		if len(s.Enum) > 0 {
			var values []string
			for _, v := range s.Enum {
				text, _ := json.Marshal(v) //nolint:errchkjson // a string
				values = append(values, "`"+cell(string(text))+"`")
			}
			meaning = strings.TrimSpace(meaning + " One of " + strings.Join(values, ", ") + ".")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", cell(s.Name), cell(s.Type), def, meaning)
	})
	fmt.Fprintf(&b, "\n```yaml\nproviders:\n  %s:\n    plugin: ./PROGRAM\n    settings:\n", name)
	for _, s := range settings {
		if def := string(s.Default); def != "" && def != "null" {
			fmt.Fprintf(&b, "      %s: %s\n", s.Name, def)
		}
	}
	b.WriteString("```\n")
	return []byte(b.String())
}

// cell is a text in a table of Markdown.
func cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}
