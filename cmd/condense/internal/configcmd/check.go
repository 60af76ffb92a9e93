package configcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/plugins"
)

// A configListing is the result of check for one configuration, as JSON.
type configListing struct {
	// Files are the files that were read; of an invalid configuration, only the named file.
	Files    []string      `json:"files"`
	Faults   config.Errors `json:"faults"`
	Warnings config.Errors `json:"warnings"`
	// Policy is the lines of the policies that it was held to.
	Policy []config.Setting `json:"policy,omitempty"`
}

func configCheckCommand(a *cli.App) *cobra.Command {
	var asJSON, strict bool
	cmd := &cobra.Command{
		Use: "check [FILE | FOLDER]...", Short: "Report every fault of the configuration, with its position",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && a.ConfigPath != "" {
				return cli.Usage(cmd, "--config cannot be combined with files as arguments")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{""}
			}
			args, err := configsIn(args)
			if err != nil {
				return cli.Usage(cmd, "%w", err)
			}
			var faults config.Errors
			warned := false
			list := []configListing{}
			for _, file := range args {
				l, err := checkConfig(cmd.Context(), a, file, strict)
				if err != nil {
					return err
				}
				faults = append(faults, l.Faults...)
				warned = warned || len(l.Warnings) > 0
				list = append(list, l)
			}
			if asJSON {
				if err := term.PrintJSON(a.Stdout, list); err != nil {
					return err
				}
			} else {
				for _, l := range list {
					printConfigListing(a.Stdout, a.Stderr, l)
				}
			}
			switch {
			case len(faults) > 0:
				return faults
			case strict && warned:
				return &cli.ExitError{Code: cli.ExitUsage}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&strict, "strict", false, "fail on warnings too, and leave out whether this machine trusts the files")
	return cmd
}

// configsIn replaces folders by the configurations in them.
func configsIn(args []string) ([]string, error) {
	var files []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil || !info.IsDir() {
			files = append(files, arg) // what is missing is said when it is read
			continue
		}
		n := len(files)
		err = filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && slices.Contains(config.ProjectFiles(), d.Name()) {
				files = append(files, path)
			}
			return err
		})
		if err == nil && len(files) == n {
			err = fmt.Errorf("%s: none of %s is in it", arg, strings.Join(config.ProjectFiles(), ", "))
		}
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// checkConfig checks the configuration in a file, or the active one if file is empty. A strict check is of the file and not of the
// machine, which may trust it or not.
func checkConfig(ctx context.Context, a *cli.App, file string, strict bool) (configListing, error) {
	l := configListing{Files: []string{}, Faults: config.Errors{}, Warnings: config.Errors{}}
	if file != "" {
		l.Files = append(l.Files, file)
	}
	examined := examinations{ctx: ctx, done: map[string]examination{}, problems: map[string]error{}, digests: map[string]string{}}
	checker := a.Checker()
	checker.Plugin = examined.of
	opts := a.Names()
	opts.Path, opts.CheckProvider = cmp.Or(file, a.ConfigPath), checker.Declared
	c, err := a.LoadWith(opts)
	if err != nil {
		if !errors.As(err, &l.Faults) {
			return l, err
		}
		return l, nil
	}
	l.Files = append(l.Files[:0], plain.Each(c.Files(), cli.FromHere)...)
	l.Warnings, l.Policy = append(l.Warnings, c.Warnings()...), c.Policy()
	if !strict {
		l.Warnings = append(l.Warnings, tuning(c)...)
	}
	checker = a.Checker()
	l.Faults, err = checker.Chains(c)
	l.Warnings = append(l.Warnings, checker.Warnings(c)...)
	if err != nil {
		return l, err
	}
	pins, err := examined.pinWarnings(c)
	l.Warnings = append(l.Warnings, pins...)
	return l, err
}

// tuning warns of parts that a gateway does not use before the file is trusted, though all other commands do.
func tuning(c *config.Config) (warnings config.Errors) {
	for _, claims := range c.Claims() {
		claims.Parts = slices.DeleteFunc(claims.Parts, func(p config.Claim) bool { return !p.Tunes })
		if claims.Trusted || len(claims.Parts) == 0 {
			continue
		}
		key := claims.Names()[0]
		if n := len(claims.Parts) - 1; n > 0 {
			key += fmt.Sprintf(" and %d more", n)
		}
		warnings = append(warnings, &config.Error{
			Key: key, Origin: claims.Parts[0].Origin,
			Problem: "serve and wrap do not start with it: " + claims.Remedy(),
		})
	}
	return warnings
}

// The examinations of the plugins of a configuration, each read and started once with the same settings, although a configuration may
// be loaded twice and several providers may be one plugin.
type examinations struct {
	ctx      context.Context //nolint:containedctx // of the command; CheckProvider has none
	done     map[string]examination
	problems map[string]error  // why a plugin did not start, by provider
	digests  map[string]string // by program and folder
}

type examination struct {
	faults []config.ProviderFault
	err    error // it did not start
}

// digest returns the checksum of a plugin.
func (e *examinations) digest(p config.Provider) (string, error) {
	id := p.Plugin + "\x00" + p.Folder
	if e.digests[id] != "" {
		return e.digests[id], nil
	}
	var err error
	e.digests[id], err = plugins.Digest(p)
	return e.digests[id], err
}

// of returns the faults of a plugin: its program is missing, or refuses its settings. A plugin that is not approved, or has changed
// since, is not started.
func (e *examinations) of(c *config.Config, p config.Provider) []config.ProviderFault {
	if wrong := plugins.Program(p.Plugin); wrong != "" {
		return []config.ProviderFault{{Key: []string{"plugin"}, Problem: wrong, Allowed: "must be a program"}}
	}
	if p.Withheld != "" {
		return nil
	}
	pin, err := plugins.Pin(c, p)
	if err != nil {
		return nil // pinWarnings says so
	}
	if is, err := e.digest(p); err != nil || is != pin {
		return nil // likewise
	}
	id := strings.Join([]string{p.Plugin, p.Folder, pin, string(p.Settings), strings.Join(p.Env, ",")}, "\x00")
	x, done := e.done[id]
	if !done {
		x.faults, x.err = plugins.Examine(e.ctx, p, pin)
		e.done[id] = x
	}
	if x.err != nil {
		e.problems[p.Name] = x.err
	}
	return x.faults
}

// pinWarnings reports plugins that would not be started, because they are not approved, have changed since, or did
// not start when they were examined; and that their settings are not checked.
func (e *examinations) pinWarnings(c *config.Config) (config.Errors, error) {
	declared, err := plugins.Declared(c)
	if err != nil {
		return nil, err
	}
	var warnings config.Errors
	for _, p := range declared {
		is := ""
		if p.Withheld == "" && p.Pin != "" {
			is, err = e.digest(p.Provider)
		}
		problem := ""
		switch {
		case p.Withheld != "":
			problem = "would be skipped: " + p.Withheld
		case err != nil:
			problem = err.Error()
		case p.Pin == "":
			problem = fmt.Sprintf("is not pinned and would not be started: if you trust it, run 'condense plugin pin %s'", p.Name)
		case is != p.Pin:
			problem = fmt.Sprintf("is not what was pinned and would not be started: it has the checksum %s, pinned is %s; if you trust it, run 'condense plugin pin %s'", is, p.Pin, p.Name)
		case e.problems[p.Name] != nil:
			problem = fmt.Sprintf("does not start: %v", e.problems[p.Name])
		default:
			continue
		}
		if _, set := c.Origin("providers", p.Name, "settings"); set {
			problem += notChecked(&p, e.problems[p.Name])
		}
		warnings = append(warnings, &config.Error{Origin: p.Origin, Key: "providers." + p.Name, Problem: problem})
	}
	return warnings, nil
}

// notChecked tells the user that the settings of a plugin were not checked, and when they will be. The plugin was not
// started, or did not start.
func notChecked(p *plugins.Plugin, problem error) string {
	if problem == nil {
		return "; until then its settings are not checked"
	}
	if _, known := plugins.Known(p.Pin); known {
		return "; its settings were compared with the description that it gave of itself before"
	}
	return fmt.Sprintf("; its settings were not checked: 'condense plugin test %s' tries the plugin", cli.FromHere(p.Plugin))
}

func printConfigListing(stdout, stderr io.Writer, l configListing) {
	for _, w := range l.Warnings {
		term.Printf(stderr, "warning: %v\n", w)
	}
	switch {
	case len(l.Faults) > 0: // printed as the error
	case len(l.Files) == 0:
		term.Printf(stdout, "no configuration file; using the defaults ('condense config init' writes a file)\n")
	default:
		term.Printf(stdout, "%s: OK\n", strings.Join(l.Files, ", "))
	}
}
