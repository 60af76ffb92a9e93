// Package configcmd has the commands for the configuration: config, providers and trust.
package configcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/registry"
)

// Commands returns the commands of this package.
func Commands(a *cli.App) []*cobra.Command {
	group := cli.Group(
		"config", "Write, check and explain the configuration",
		configInitCommand(a), configCheckCommand(a), configShowCommand(a), configExplainCommand(a), configDiffCommand(a), configSchemaCommand(a),
	)
	return []*cobra.Command{providersCommand(a), group, trustCommand(a)}
}

func configSchemaCommand(a *cli.App) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "schema", Short: "Write the JSON schema of configuration files", Args: cli.NoArguments("name a file with --output"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := ownSchema(cmd.Context(), a)
			if err != nil {
				return err
			}
			return a.Put(out, text)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "`file` to write to (default: standard output)")
	return cmd
}

// schema returns the JSON schema of configurations with the strategies of this program.
func schema(a *cli.App) ([]byte, error) {
	return config.Schema(slices.Collect(a.Strategies.All()), a.Names())
}

// ownSchema returns the schema of the active configuration; without one, the general schema.
func ownSchema(ctx context.Context, a *cli.App) ([]byte, error) {
	declared, c, err := a.LoadPlugins()
	if errors.As(err, new(config.Errors)) {
		term.Printf(a.Stderr, "the configuration has faults, so the schema is without its names and plugins: 'condense config check' shows them\n")
		return schema(a)
	}
	if err != nil || len(c.Files()) == 0 {
		text, wrong := schema(a)
		return text, errors.Join(err, wrong)
	}
	settings := map[string][]registry.Setting{}
	for _, p := range declared {
		if p.Withheld != "" || p.Pin == "" {
			term.Printf(a.Stderr, "provider %s is not approved, so its settings are not in the schema\n", p.Name)
			continue
		}
		d, err := plugins.About(ctx, p)
		switch {
		case err != nil:
			term.Printf(a.Stderr, "the settings of provider %s are not in the schema: %v\n", p.Name, err)
		case len(d.Settings) > 0:
			settings[p.Name] = d.Settings
		}
	}
	return c.Schema(slices.Collect(a.Strategies.All()), settings)
}

func configShowCommand(a *cli.App) *cobra.Command {
	var (
		at     cli.Place
		asJSON bool
	)
	cmd := &cobra.Command{
		Use: "show", Short: "Show the merged configuration, or the values for a profile and mode",
		Args: cli.NoArguments("'condense config explain KEY' explains one key"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.Load("")
			if err != nil {
				return err
			}
			if at.Given() {
				if err := at.Check(cmd, a, c); err != nil {
					return err
				}
				return showPlace(a, c, at, asJSON)
			}
			if asJSON {
				return term.PrintJSON(a.Stdout, c.Values())
			}
			text, err := c.Show()
			if err != nil {
				return err
			}
			printPolicy(a, c)
			return term.PrintText(a.Stdout, text)
		},
	}
	at.Flags(a, cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func showPlace(a *cli.App, c *config.Config, at cli.Place, asJSON bool) error {
	e, err := c.Explain(at.Profile, at.Mode, 0)
	if err != nil {
		return err
	}
	if asJSON {
		return term.PrintJSON(a.Stdout, struct {
			*config.Resolved
			Reads []cli.Reader `json:"reads,omitempty"`
		}{e.Resolved, a.Readers(c, e.Resolved)})
	}
	printPolicy(a, c)
	t := term.NewTable("", "")
	if at.Mode != "" {
		t.Row("mode", at.Mode)
	}
	for _, v := range e.Values {
		t.Row(v.Key, v.Value)
	}
	for _, p := range e.Resolved.Providers() {
		t.Row("provider "+p.Name, fmt.Sprintf("%s, %v", providerLine(&p), p.Origin))
	}
	for _, reader := range a.Readers(c, e.Resolved) {
		t.Row("reads", reader)
	}
	return term.PrintText(a.Stdout, t.Text(""))
}

// printPolicy prints the policies in force as comments: what config show prints can be the text of a file.
func printPolicy(a *cli.App, c *config.Config) {
	for _, s := range c.Policy() {
		text, _ := json.Marshal(s.Value) //nolint:errchkjson // lists and numbers of a file
		term.Printf(a.Stdout, "# policy: %s %s, from %v\n", s.Key, text, s.Origin)
	}
}

// providerLine says which strategy or plugin a provider is, and how it is set.
func providerLine(p *config.Provider) string {
	return fmt.Sprintf("%s %s, timeout %s", cmp.Or(p.Strategy, cli.FromHere(p.Plugin)), p.Settings, duration(p.Timeout))
}

// duration formats d as in a configuration: 2m, not 2m0s.
func duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// A strategyListing is a strategy as JSON.
type strategyListing struct {
	Name     string             `json:"name"`
	Doc      string             `json:"doc"`
	Settings []registry.Setting `json:"settings"`
	// Abilities are those that it declares; the host lets it do nothing else.
	Abilities core.Abilities `json:"abilities"`
}

func listingOf(s registry.Strategy) strategyListing {
	return strategyListing{s.Name, s.Doc, s.Settings(), s.Abilities}
}

func providersCommand(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "providers [NAME]", Short: "List the strategies and providers, or describe one",
		Args: cli.Arguments(0, 1, "want at most one name; got %d"),
		RunE: func(cmd *cobra.Command, args []string) error {
			list := []strategyListing{}
			if len(args) == 1 {
				s, err := describe(cmd.Context(), a, args[0])
				if err != nil {
					return err
				}
				list = append(list, s)
			} else {
				list = append(list, plain.Each(slices.Collect(a.Strategies.All()), listingOf)...)
			}
			if asJSON {
				return term.PrintJSON(a.Stdout, list)
			}
			if len(args) == 1 {
				printStrategy(a.Stdout, list[0])
				return nil
			}
			t := term.NewTable("", "")
			for _, s := range list {
				t.Row(s.Name, firstSentence(s.Doc))
			}
			_ = term.PrintText(a.Stdout, t.Text(""))
			printConfigured(a)
			term.Printf(a.Stdout, "\nEvery chain ends with truncation to the budget, which is added if the chain does not name it.\n'condense providers NAME' describes one and its settings.\n")
			return nil
		},
	}
	cli.CompleteArgument(cmd, func() []string {
		return slices.Concat(a.Strategies.Names(), []string{config.Truncation}, a.Configured((*config.Config).Providers))
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// printConfigured lists the providers that the configuration declares. It starts nothing.
func printConfigured(a *cli.App) {
	declared, c, err := a.LoadPlugins()
	if err != nil {
		return // 'config check' reports it; the strategies exist without a configuration
	}
	t := term.NewTable("", "", "")
	n := 0
	for _, name := range c.Providers() {
		if o, _ := c.Origin("providers", name); o.Kind == config.FromPreset {
			continue
		}
		n++
		if i := slices.IndexFunc(declared, func(p plugins.Plugin) bool { return p.Name == name }); i >= 0 {
			about := "Not described yet: 'condense providers " + name + "' starts it."
			switch d, known := plugins.Known(declared[i].Pin); {
			case declared[i].Withheld != "" || declared[i].Pin == "":
				about = "Not approved, so it is not started."
			case known:
				about = firstSentence(d.Doc)
			}
			t.Row(name, "plugin "+cli.FromHere(declared[i].Plugin), about)
			continue
		}
		about := ""
		p, err := c.Provider(name)
		if err != nil {
			continue
		}
		if s, err := a.Strategies.Get(p.Strategy); err == nil {
			about = firstSentence(s.Doc)
		}
		t.Row(name, "strategy "+p.Strategy, about)
	}
	if n > 0 {
		term.Printf(a.Stdout, "\nProviders of the configuration:\n")
		_ = term.PrintText(a.Stdout, t.Text("  "))
	}
}

func firstSentence(doc string) string {
	first, _, _ := strings.Cut(doc, ".")
	return strings.Join(strings.Fields(first), " ") + "."
}

// describe returns the strategy of that name, the truncation at the end of every chain, or a provider of the
// configuration. A plugin is started to describe itself, if it is approved.
func describe(ctx context.Context, a *cli.App, name string) (strategyListing, error) {
	s, unknown := a.Strategies.Get(name)
	switch {
	case unknown == nil:
		return listingOf(s), nil
	case name == config.Truncation:
		return strategyListing{Name: name, Doc: truncation, Settings: []registry.Setting{}, Abilities: core.Hides | core.Rewrites | core.Inserts}, nil
	}
	declared, c, err := a.LoadPlugins()
	if err != nil || !slices.Contains(c.Providers(), name) {
		return strategyListing{}, unknown // the error about the name is more useful than a fault of the configuration
	}
	for _, p := range declared {
		if p.Name == name {
			return describePlugin(ctx, p)
		}
	}
	p, err := c.Provider(name)
	if err != nil {
		return strategyListing{}, err
	}
	if s, err = a.Strategies.Get(p.Strategy); err != nil {
		return strategyListing{}, err
	}
	doc := fmt.Sprintf("Provider of the configuration: strategy %s with the settings %s.\n\n%s", s.Name, p.Settings, s.Doc)
	return strategyListing{name, doc, s.Settings(), s.Abilities}, nil
}

func describePlugin(ctx context.Context, p plugins.Plugin) (strategyListing, error) {
	if p.Withheld != "" {
		return strategyListing{}, fmt.Errorf("provider %s: %s", p.Name, p.Withheld)
	}
	d, err := plugins.About(ctx, p)
	if err != nil {
		return strategyListing{}, err
	}
	doc := fmt.Sprintf("Provider of the configuration: plugin %s, which describes itself as %s %s.\n\n%s",
		cli.FromHere(p.Plugin), d.Name, d.Version, d.Doc)
	return strategyListing{p.Name, doc, d.Settings, d.Abilities}, nil
}

// truncation describes the provider that no configuration declares.
const truncation = `The end of every chain: hides the oldest messages until the conversation fits, as slidingwindow does with its
default settings. It is added to every chain and acts when the conversation is still above its limit; a chain that
names it last lets it act at the threshold, too. It has no settings of its own: to truncate in another way,
declare a provider of the strategy slidingwindow and name it in the chain.`

func printStrategy(w io.Writer, s strategyListing) {
	term.Printf(w, "%s\n\n%s\n\nAbilities: %s.\n", s.Name, term.Indented{Text: s.Doc, By: ""}, s.Abilities.Told())
	if len(s.Settings) > 0 {
		term.Printf(w, "\nSettings:\n")
	}
	width := 12
	registry.Nested(s.Settings, func(set registry.Setting, _ int) { width = max(width, len(set.Name)) })
	registry.Nested(s.Settings, func(set registry.Setting, depth int) {
		term.Printf(w, "  %s%-*s %s (%s", strings.Repeat("  ", depth), width, set.Name, set.Doc, set.Type)
		if len(set.Fields) == 0 {
			term.Printf(w, ", default %s", set.Default)
		}
		term.Printf(w, ")")
		if len(set.Enum) > 0 {
			term.Printf(w, ": %s", strings.Join(set.Enum, ", "))
		}
		term.Printf(w, "\n")
	})
}
