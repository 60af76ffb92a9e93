package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/registry"
)

// A configListing is what check found, as JSON.
type configListing struct {
	// Files are those that were read; of a wrong configuration only the one that was asked
	// for is known.
	Files    []string      `json:"files"`
	Faults   config.Errors `json:"faults"`
	Warnings config.Errors `json:"warnings"`
}

func (a *app) configCheckCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check [FILE...]",
		Short: "Say everything that is wrong with the configuration, and where",
		Long: `check reads the configuration as every command does, or each FILE in the place of it, and reports all faults
at once, each with file, line and column, the key, what would be right, and the name that was probably meant.
Every provider is opened with its settings. It exits with 0 if there is no fault (there may be warnings), with
2 if there is one.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && a.configPath != "" {
				return usage(cmd, "--config and files given as arguments do not go together")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{""}
			}
			var faults config.Errors
			list := []configListing{}
			for _, file := range args {
				l, err := a.checkConfig(file)
				if err != nil {
					return err
				}
				faults = append(faults, l.Faults...)
				list = append(list, l)
			}
			if asJSON {
				if err := printJSON(a.stdout, list); err != nil {
					return err
				}
			} else {
				for _, l := range list {
					printConfigListing(a.stdout, a.stderr, l)
				}
			}
			if len(faults) > 0 {
				return faults
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// checkConfig checks the configuration in a file, or the one in force if file is empty.
func (a *app) checkConfig(file string) (configListing, error) {
	l := configListing{Files: []string{}, Faults: config.Errors{}, Warnings: config.Errors{}}
	if file != "" {
		l.Files = append(l.Files, file)
	}
	c, err := a.loadChecked(file)
	if err != nil {
		if !errors.As(err, &l.Faults) {
			return l, err
		}
		return l, nil
	}
	l.Files = l.Files[:0]
	for _, f := range c.Files() {
		l.Files = append(l.Files, fromHere(f))
	}
	l.Warnings = append(l.Warnings, c.Warnings()...)
	l.Faults, err = a.chainFaults(c)
	l.Warnings = append(l.Warnings, a.modelWarnings(c)...)
	if err != nil {
		return l, err
	}
	pins, err := pinWarnings(c)
	l.Warnings = append(l.Warnings, pins...)
	return l, err
}

// pinWarnings says which plugins would not be started, because nobody approved them or
// because they are not what was approved.
func pinWarnings(c *config.Config) (config.Errors, error) {
	plugins, err := pluginsOf(c)
	if err != nil {
		return nil, err
	}
	var warnings config.Errors
	for _, p := range plugins {
		is := ""
		if p.Withheld == "" && p.pin != "" {
			is, err = digest(p.Provider)
		}
		problem := ""
		switch {
		case p.Withheld != "":
			problem = "would be skipped: " + p.Withheld
		case err != nil:
			problem = err.Error()
		case p.pin == "":
			problem = fmt.Sprintf("is not pinned and would not be started: if you trust it, run 'condense plugin pin %s'", p.Name)
		case is != p.pin:
			problem = fmt.Sprintf("is not what was pinned and would not be started: it has the checksum %s, pinned is %s; if you trust it, run 'condense plugin pin %s'", is, p.pin, p.Name)
		default:
			continue
		}
		warnings = append(warnings, &config.Error{Origin: p.Origin, Key: "providers." + p.Name, Problem: problem})
	}
	return warnings, nil
}

// chainFaults returns what is wrong with providers in the chains that they stand in: those
// that need no declaration are looked at here alone, and the model of a profile is known.
func (a *app) chainFaults(c *config.Config) (config.Errors, error) {
	a.loans = nil
	reg, err := a.registry()
	if err != nil {
		return nil, err
	}
	faults, seen := config.Errors{}, map[string]bool{}
	look := func(profile, mode string) error {
		r, err := c.Resolve(profile, mode)
		if err != nil {
			return err
		}
		for _, p := range r.Chain {
			s, err := reg.Get(p.Strategy)
			id := p.Name + "\x00" + r.Model.Name
			if err != nil || seen[id] {
				continue
			}
			seen[id] = true
			for _, f := range settingFaults(s, p.Settings, registry.Env{Model: a.lend(c, p.Name, r.Model.Name), Dir: p.SettingsDir}) {
				key := strings.Join(append([]string{p.Name}, f.Key...), ".")
				faults = append(faults, &config.Error{
					Origin: r.Origin("chain"), Key: "chain", Problem: fmt.Sprintf("%s under profile %s: %s", key, r.Profile, f.Problem), Allowed: f.Allowed,
				})
			}
		}
		return nil
	}
	for _, name := range c.Profiles() {
		if err := look(name, ""); err != nil {
			return nil, err
		}
	}
	for _, name := range c.Modes() {
		if err := look("", name); err != nil {
			return nil, err
		}
	}
	return faults, nil
}

// modelWarnings says which providers could not ask their language model as things are.
// Keys come and go with the environment, so it is no fault of the configuration.
func (a *app) modelWarnings(c *config.Config) config.Errors {
	lender := condense.NewLender(c, &condense.Options{Model: a.model})
	var warnings config.Errors
	for _, l := range a.loans {
		err := lender.Check(l.agent, l.model)
		if err == nil {
			continue
		}
		w := &config.Error{Key: "providers." + l.provider, Problem: fmt.Sprintf("would be skipped: %v", err)}
		for _, key := range [][]string{{"models", l.model}, {"providers", l.provider}, {"chain"}} {
			if o, ok := c.Origin(key...); ok {
				w.Origin = o
				break
			}
		}
		if !slices.ContainsFunc(warnings, func(v *config.Error) bool { return v.Error() == w.Error() }) {
			warnings = append(warnings, w)
		}
	}
	return warnings
}

func printConfigListing(stdout, stderr io.Writer, l configListing) {
	for _, w := range l.Warnings {
		printf(stderr, "warning: %v\n", w)
	}
	switch {
	case len(l.Faults) > 0: // printed with the exit code
	case len(l.Files) == 0:
		printf(stdout, "no configuration file; the defaults hold ('condense config init' writes one)\n")
	default:
		printf(stdout, "%s: OK\n", strings.Join(l.Files, ", "))
	}
}
