// Package plugincmd has the commands of condense plugin, for authors and users of plugins.
package plugincmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/registry"
)

// Command returns condense plugin.
func Command(a *cli.App) *cobra.Command {
	return cli.Group(
		"plugin", "Write, test, judge, install, pin, list and document providers that are separate programs",
		// In the order in which an author needs them.
		pluginNewCommand(a), pluginSDKCommand(a), pluginDevCommand(a), pluginTestCommand(a), pluginJudgeCommand(a), pluginInstallCommand(a),
		pluginUpdateCommand(a), pluginOutdatedCommand(a), pluginRemoveCommand(a), pluginPinCommand(a), pluginListCommand(a), pluginDocsCommand(a),
	)
}

// A pluginListing is a configured plugin as JSON.
type pluginListing struct {
	Name     string `json:"name"`
	Path     string `json:"path"`
	Folder   string `json:"folder,omitempty"`
	Origin   string `json:"origin"`
	Pinned   bool   `json:"pinned"`
	PinnedBy string `json:"pinned_by,omitempty"` // the user, or a place in the configuration
	SHA256   string `json:"sha256,omitempty"`    // as pinned
	Found    string `json:"found,omitempty"`     // the current checksum of the program
	Matches  bool   `json:"matches"`
	// About is the plugin's description of itself; absent if it was not started.
	About   *pluginAbout `json:"about,omitempty"`
	Problem string       `json:"problem,omitempty"` // why it cannot be used
}

// A pluginAbout is the description that a plugin gives of itself.
type pluginAbout struct {
	Strategy string             `json:"strategy"`
	Version  string             `json:"version"`
	Doc      string             `json:"doc"`
	SDK      string             `json:"sdk"`
	Settings []registry.Setting `json:"settings"`
	// Abilities are those that it declares; the host lets it do nothing else.
	Abilities core.Abilities `json:"abilities"`
}

func pluginListCommand(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the configured plugins: whether they are pinned, and how they describe themselves",
		Args: cli.NoArguments("'condense plugin test PATH' tries one plugin"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			declared, _, err := a.LoadPlugins()
			if err != nil {
				return err
			}
			list := []pluginListing{}
			for _, p := range declared {
				l, err := listPlugin(cmd.Context(), p)
				if err != nil {
					return err
				}
				list = append(list, l)
			}
			if asJSON {
				return term.PrintJSON(a.Stdout, list)
			}
			if len(list) == 0 {
				term.Printf(a.Stdout, "The configuration declares no plugin.\n")
			}
			for i, l := range list {
				if i > 0 {
					term.Printf(a.Stdout, "\n")
				}
				printPlugin(a.Stdout, l)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// listPlugin returns the listing of a plugin. It starts the plugin if it is pinned.
func listPlugin(ctx context.Context, p plugins.Plugin) (pluginListing, error) {
	l := pluginListing{Name: p.Name, Path: p.Plugin, Folder: p.Folder, Origin: p.Origin.String()}
	if l.Problem = p.Withheld; l.Problem != "" {
		return l, nil
	}
	l.SHA256, l.Pinned, l.PinnedBy = p.Pin, p.Pin != "", p.By
	var err error
	l.Found, err = plugins.Digest(p.Provider)
	l.Matches = l.Pinned && l.Found == l.SHA256
	switch {
	case err != nil:
		l.Problem = err.Error()
	case !l.Pinned:
		l.Problem = fmt.Sprintf("not pinned: if you trust it, run 'condense plugin pin %s'", p.Name)
	case !l.Matches:
		l.Problem = fmt.Sprintf("not what was pinned: if you changed or updated it yourself, run 'condense plugin pin %s', otherwise find out who did", p.Name)
	default:
		d, err := plugins.Describe(ctx, p.Provider, p.Pin)
		if err != nil {
			l.Problem = err.Error()
		}
		if d != nil { // one that refuses its settings describes itself too
			l.About = &pluginAbout{d.Name, d.Version, d.Doc, d.SDK, d.Settings, d.Abilities}
		}
	}
	return l, ctx.Err()
}

func printPlugin(w io.Writer, l pluginListing) {
	term.Printf(w, "%s  %s\n", l.Name, cli.FromHere(l.Path))
	if l.Folder != "" {
		term.Printf(w, "  folder    %s\n", cli.FromHere(l.Folder))
	}
	if l.Pinned {
		term.Printf(w, "  pinned    %s  %s\n", l.SHA256, l.PinnedBy)
	}
	if l.Found != "" && !l.Matches {
		term.Printf(w, "  found     %s\n", l.Found)
	}
	if l.Problem != "" {
		term.Printf(w, "  problem   %s\n", term.Indented{Text: l.Problem, By: "            "})
	}
	if l.About != nil {
		term.Printf(w, "  strategy  %s %s (%s)\n", l.About.Strategy, l.About.Version, l.About.SDK)
		printAbout(w, l.About.Doc, l.About.Abilities, l.About.Settings)
	}
}

// printAbout writes the documentation of a plugin and its settings.
func printAbout(w io.Writer, doc string, may core.Abilities, settings []registry.Setting) {
	if doc != "" {
		term.Printf(w, "            %s\n", strings.Join(strings.Fields(doc), " "))
	}
	term.Printf(w, "  abilities %s\n", may.Told())
	registry.Nested(settings, func(s registry.Setting, _ int) {
		term.Printf(w, "  setting   %s: %s (%s", s.Name, s.Doc, s.Type)
		if len(s.Default) > 0 && len(s.Fields) == 0 {
			term.Printf(w, ", default %s", plain.First(string(s.Default), 60))
		}
		term.Printf(w, ")")
		if len(s.Enum) > 0 {
			term.Printf(w, ": %s", strings.Join(s.Enum, ", "))
		}
		term.Printf(w, "\n")
	})
}
