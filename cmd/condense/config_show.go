package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
)

func (a *app) configShowCommand() *cobra.Command {
	var (
		at     place
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the merged configuration, or what it comes to for a profile and mode",
		Long: `show prints what defaults, files, environment and flags add up to, as a file that would load to the same, each
value with a comment that says where it stands. With --profile or --mode it prints what holds there, nothing
inherited any more. No secret is in it: a configuration only names where they are.`,
		Args: noArguments("'condense config explain KEY' explains one key"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.loadChecked("")
			if err != nil {
				return err
			}
			if at.given() {
				if err := at.check(cmd, a, c); err != nil {
					return err
				}
				return a.showPlace(c, at, asJSON)
			}
			if asJSON {
				return printJSON(a.stdout, c.Values())
			}
			text, err := c.Show()
			if err != nil {
				return err
			}
			return printText(a.stdout, text)
		},
	}
	at.flags(a, cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) showPlace(c *config.Config, at place, asJSON bool) error {
	e, err := c.Explain(at.profile, at.mode, 0)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(a.stdout, e.Resolved)
	}
	t := term.NewTable("", "")
	if at.mode != "" {
		t.Row("mode", at.mode)
	}
	for _, v := range e.Values {
		t.Row(v.Key, v.Value)
	}
	for _, p := range e.Resolved.Chain {
		t.Row("provider "+p.Name, fmt.Sprintf("%s %s, %s at most, %v", cmp.Or(p.Strategy, fromHere(p.Plugin)), p.Settings, duration(p.Timeout), p.Origin))
	}
	return printText(a.stdout, t.Text(""))
}

// duration writes d as a file has it: 2m and not 2m0s.
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
