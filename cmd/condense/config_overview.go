package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
)

// An overviewLine is what one mode, or a profile without one, comes to.
type overviewLine struct {
	Mode    string   `json:"mode,omitempty"`
	Profile string   `json:"profile"`
	Window  int      `json:"window"`  // tokens, like the two below
	Trigger int      `json:"trigger"` // the smallest conversation that is condensed
	Target  int      `json:"target"`  // where a condensation ends
	Chain   []string `json:"chain"`   // truncation is listed only if the chain names it
}

// explainAll prints a line for every mode, and for every profile that no mode uses.
func (a *app) explainAll(cmd *cobra.Command, c *config.Config, window int, asJSON bool) error {
	lines, err := overview(c, window)
	if err != nil {
		return usage(cmd, "%w", err)
	}
	if asJSON {
		return printJSON(a.stdout, lines)
	}
	t := term.NewTable("mode", "profile", "window", "condenses at", "down to", "chain")
	for _, l := range lines {
		if n := len(l.Chain); n == 0 || l.Chain[n-1] != config.Truncation {
			l.Chain = append(l.Chain, "("+config.Truncation+")")
		}
		t.Row(cmp.Or(l.Mode, "-"), l.Profile, l.Window, l.Trigger, l.Target, strings.Join(l.Chain, " → "))
	}
	return printText(a.stdout, t.Text(""))
}

func overview(c *config.Config, window int) ([]overviewLine, error) {
	// The default profile comes first: it is what an unknown mode gets.
	places := []place{{}}
	for _, m := range c.Modes() {
		places = append(places, place{mode: m})
	}
	var used []string
	var lines []overviewLine
	add := func(p place) error {
		e, err := c.Explain(p.profile, p.mode, window)
		if err != nil {
			return err
		}
		f := newForecast(e.Resolved)
		l := overviewLine{
			Mode: p.mode, Profile: e.Resolved.Profile, Window: e.Resolved.Window,
			Trigger: f.trigger.Used, Target: f.trigger.Budget.Target, Chain: []string{},
		}
		for _, provider := range e.Resolved.Chain {
			l.Chain = append(l.Chain, provider.Name)
		}
		used = append(used, l.Profile)
		lines = append(lines, l)
		return nil
	}
	for _, p := range places {
		if err := add(p); err != nil {
			return nil, err
		}
	}
	for _, name := range c.Profiles() {
		if o, _ := c.Origin("profiles", name); slices.Contains(used, name) || o.Kind == config.FromDefault {
			continue
		}
		if err := add(place{profile: name}); err != nil {
			return nil, err
		}
	}
	return lines, nil
}
