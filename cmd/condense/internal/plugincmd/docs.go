package plugincmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/install"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/judge"
	"github.com/condensehq/condense/internal/lab/strategies"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/registry"
)

func pluginDocsCommand(a *cli.App) *cobra.Command {
	var out, as, folder, requires, stability, source string
	forms := []string{"markdown", "json", "card"}
	var env []string
	cmd := &cobra.Command{
		Use: "docs NAME|PATH|RELEASE", Short: "Write a page about a plugin and its settings, the manifest of a release, or the card of one",
		Args: cli.Arguments(1, 1, "want one plugin, by its name in the configuration or its path; got %d"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(forms, as) {
				return cli.Usage(cmd, "--as: no form %q%s; there are %s", as, suggest.DidYouMean(as, forms), strings.Join(forms, ", "))
			}
			if as == "card" {
				text, err := releaseCard(cmd, a, args[0], source)
				if err != nil {
					return err
				}
				return a.Put(out, text)
			}
			if _, ok := install.ParseVersion(requires); !ok && requires != "" {
				return cli.Usage(cmd, "--requires: %q is not a version such as v1.2.0", requires)
			}
			d, program, err := described(cmd.Context(), a, args[0], folder)
			if err != nil {
				return err
			}
			text := page(d.Name, d.Doc, d.Abilities, d.Settings)
			if as == "json" {
				m := &install.Manifest{
					Name: d.Name, Version: d.Version, Doc: d.Doc, SDK: d.SDK, Abilities: d.Abilities, Env: env, Program: program, Settings: d.Settings,
					Requires: requires, Stability: stability,
				}
				if text, err = json.MarshalIndent(m, "", "  "); err != nil {
					return err
				}
				text = append(text, '\n')
			}
			return a.Put(out, text)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&out, "output", "o", "", "`file` to write to (default: standard output)")
	f.StringVar(&as, "as", "markdown", "`form`: markdown, json (a manifest), card (of a release: the lines that install it and turn it on)")
	f.StringVar(&folder, "folder", "", folderUsage)
	f.StringSliceVar(&env, "env", nil, "`names` of environment variables that it reads, for the manifest")
	f.StringVar(&requires, "requires", "", "oldest `version` of condense that it works with, for the manifest")
	f.StringVar(&stability, "stability", "", "how finished it is, a `word` for the manifest: experimental, beta, stable")
	f.StringVar(&source, "source", "", "where users get the release, for its card: a `source` of 'plugin install' (default: RELEASE)")
	cli.Complete(cmd, "as", forms)
	return cmd
}

// releaseCard returns the text for a page about a release, which is checked as for an installation and not started.
func releaseCard(cmd *cobra.Command, a *cli.App, release, source string) (_ []byte, err error) {
	var i installation
	if err := i.begin(a); err != nil {
		return nil, err
	}
	src, err := i.in.Parse(release, i.wd)
	if err != nil {
		return nil, cli.Usage(cmd, "%w", err)
	}
	s, err := i.in.Stage(cmd.Context(), src, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	about, err := facts(s)
	if err != nil {
		return nil, err
	}
	m := cmp.Or(s.About, &install.Manifest{})
	var b strings.Builder
	fmt.Fprintf(&b, "# %s %s\n\n%s\n\n```sh\ncondense plugin install %s --sha256 %s\n```\n\nIn `condense.yaml`, then `condense trust`:\n\n",
		s.Name, literally(m.Version), literally(m.Doc), cli.Quote(cmp.Or(source, s.Source.String())), s.Release)
	fmt.Fprintf(&b, "```yaml\nproviders:\n  %s\nchain: [%s, smart]\n```\n\n| | |\n|---|---|\n",
		i.declared(s), strategies.YAMLName(s.Name))
	for _, f := range append(about, [2]string{"files", strings.Join(s.Files(), ", ")}) {
		fmt.Fprintf(&b, "| %s | %s |\n", f[0], literally(f[1]))
	}
	return []byte(b.String()), nil
}

var markup = plain.Pattern("[\\\\`*\\[\\]<>#|~&]")

// literally returns a text of a release as a line of Markdown that shows it as it is: it must not hide or imitate the lines to paste.
func literally(s string) string {
	return strings.TrimSpace(markup().ReplaceAllString(plain.Line(s), `\$0`))
}

// described returns the description of the plugin that an argument means: an approved one of the configuration, or a program. Of a
// plugin of several files it returns the program's place in its folder, too.
func described(ctx context.Context, a *cli.App, arg, folder string) (_ *plugins.Description, program string, err error) {
	p, err := pluginNamed(a, arg)
	if err != nil {
		return nil, "", err
	}
	if p.Name == arg {
		d, err := plugins.About(ctx, p)
		return d, within(p.Folder, p.Plugin), err
	}
	if p.Folder, err = folderOf(folder, p.Plugin); err != nil {
		return nil, "", err
	}
	d, err := (&plugins.Trial{Plugin: config.Provider{Name: "plugin", Plugin: p.Plugin, Folder: p.Folder}}).Describe(ctx)
	return d, within(p.Folder, p.Plugin), err
}

// within returns the place of a program in its folder, with slashes; empty if there is no folder.
func within(folder, program string) string {
	rel, err := filepath.Rel(folder, program)
	if folder == "" || err != nil {
		return ""
	}
	return filepath.ToSlash(rel)
}

// page returns the Markdown page of a strategy.
func page(name, doc string, may core.Abilities, settings []registry.Setting) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\nAbilities: %s.\n", name, strings.TrimSpace(doc), may.Told())
	if len(settings) == 0 {
		b.WriteString("\nIt has no settings.\n")
		return []byte(b.String())
	}
	b.WriteString("\n## Settings\n\n| setting | type | default | meaning |\n|---|---|---|---|\n")
	registry.Nested(settings, func(s registry.Setting, _ int) {
		def, meaning := "", judge.Cell(s.Doc)
		if len(s.Fields) == 0 && len(s.Default) > 0 {
			def = "`" + judge.Cell(string(s.Default)) + "`"
		}
		if len(s.Enum) > 0 {
			var values []string
			for _, v := range s.Enum {
				text, _ := json.Marshal(v) //nolint:errchkjson // a string
				values = append(values, "`"+judge.Cell(string(text))+"`")
			}
			meaning = strings.TrimSpace(meaning + " One of " + strings.Join(values, ", ") + ".")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", judge.Cell(s.Name), judge.Cell(s.Type), def, meaning)
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
