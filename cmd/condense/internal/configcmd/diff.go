package configcmd

import (
	"cmp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
)

// A difference is a value that two configurations give a mode, or a profile that no mode uses.
type difference struct {
	Mode    string `json:"mode,omitempty"` // both are empty for the default profile
	Profile string `json:"profile,omitempty"`
	Value   string `json:"value"`
	First   string `json:"first"` // empty if it has none
	Second  string `json:"second"`
}

func configDiffCommand(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Compare by mode what two configurations do; exit code 1 if it differs",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 || a.ConfigPath != "" {
				return cli.Usage(cmd, "want two files, and no --config")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			var both [2]*config.Config
			for i, file := range args {
				c, err := a.Load(file)
				if err == nil {
					err = a.Sound(c)
				}
				if err != nil {
					return err
				}
				both[i] = c
			}
			found := differences(a, both)
			if asJSON {
				if err := term.PrintJSON(a.Stdout, found); err != nil {
					return err
				}
			} else if len(found) > 0 {
				t := term.NewTable("mode", "value", args[0], args[1])
				for _, d := range found {
					where := cmp.Or(d.Mode, "-")
					if d.Profile != "" {
						where = "profile " + d.Profile
					}
					t.Row(where, d.Value, d.First, d.Second)
				}
				if err := term.PrintText(a.Stdout, t.Text("")); err != nil {
					return err
				}
			}
			if len(found) > 0 {
				return &cli.ExitError{Code: cli.ExitFailed}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// differences compares the default profile, all modes of both, and the profiles that no mode uses.
func differences(a *cli.App, both [2]*config.Config) []difference {
	union := func(a, b []string) []string { return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b)))) }
	places := []cli.Place{{}}
	for _, m := range union(both[0].Modes(), both[1].Modes()) {
		places = append(places, cli.Place{Mode: m})
	}
	for _, p := range union(both[0].Profiles(), both[1].Profiles()) {
		if slices.ContainsFunc(both[:], func(c *config.Config) bool {
			o, ok := c.Origin("profiles", p)
			return ok && o.Kind != config.FromDefault
		}) {
			places = append(places, cli.Place{Profile: p})
		}
	}
	found, used := []difference{}, map[string]bool{}
	for _, at := range places {
		if at.Profile != "" && used[at.Profile] {
			continue
		}
		var values [2]map[string]string
		var order []string
		for i, c := range both {
			values[i] = map[string]string{}
			for _, v := range valuesAt(a, c, at) {
				values[i][v.Key] = v.Value
				if !slices.Contains(order, v.Key) {
					order = append(order, v.Key)
				}
			}
		}
		if len(values[0]) == 0 || len(values[1]) == 0 {
			found = append(found, difference{at.Mode, at.Profile, "profile", values[0]["profile"], values[1]["profile"]})
			continue
		}
		used[values[0]["profile"]], used[values[1]["profile"]] = true, true
		for _, key := range order {
			if first, second := values[0][key], values[1][key]; first != second {
				found = append(found, difference{at.Mode, at.Profile, key, first, second})
			}
		}
	}
	return found
}

// valuesAt returns what decides at a place: its values, the chain with its settings, and who reads conversations. It is empty for a
// profile that the configuration does not have.
func valuesAt(a *cli.App, c *config.Config, at cli.Place) []config.Explained {
	e, err := c.Explain(at.Profile, at.Mode, 0)
	if err != nil {
		return nil
	}
	values := slices.Clone(e.Values)
	for _, p := range e.Resolved.Providers() {
		values = append(values, config.Explained{Key: "provider " + p.Name, Value: providerLine(&p)})
	}
	for _, r := range a.Readers(c, e.Resolved) {
		values = append(values, config.Explained{Key: "who reads for " + r.Provider, Value: r.Reader.String()})
	}
	return values
}
