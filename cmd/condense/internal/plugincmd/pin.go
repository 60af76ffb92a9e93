package plugincmd

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/internal/trust"
)

func pluginPinCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "pin [NAME|PATH...]", Short: "Approve plugins as they are now, by their checksums",
		RunE: func(cmd *cobra.Command, args []string) error {
			declared, c, err := a.LoadPlugins()
			if err != nil {
				return err
			}
			chosen := declared
			if len(args) > 0 {
				chosen = nil
			} else if len(declared) == 0 {
				return cli.Usage(cmd, "the configuration declares no plugin; name the program to pin")
			}
			for _, arg := range args {
				found, err := pluginsNamed(arg, declared, c)
				if err != nil {
					return err
				}
				chosen = append(chosen, found...)
			}
			return pin(a, trust.Open(c.TrustDir()), chosen)
		},
	}
}

// pluginsNamed returns the plugins that an argument means: the provider of that name, providers with that program or
// folder, or else a program that no provider uses.
func pluginsNamed(arg string, declared []plugins.Plugin, c *config.Config) ([]plugins.Plugin, error) {
	path, err := filepath.Abs(arg)
	if err != nil {
		return nil, err
	}
	var names []string
	var found []plugins.Plugin
	for _, p := range declared {
		if p.Name == arg {
			return []plugins.Plugin{p}, nil
		}
		names = append(names, p.Name)
		if p.Plugin == path || p.Folder == path {
			found = append(found, p)
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if p, err := c.Provider(arg); err == nil {
			return nil, fmt.Errorf("provider %s is not a plugin: the strategy %s is built in and needs no pin", arg, p.Strategy)
		}
		return nil, fmt.Errorf("there is no plugin and no file %q%s", arg, suggest.DidYouMean(arg, names))
	}
	if err != nil {
		return nil, err
	}
	p := plugins.Plugin{Provider: config.Provider{Plugin: path}}
	if info.IsDir() {
		p.Folder = path
	}
	if p.Pin, err = trust.Open(c.TrustDir()).Pin(p.Target()); err != nil {
		return nil, err
	}
	return []plugins.Plugin{p}, nil
}

// pluginNamed returns the first plugin that an argument means. One that it names must be trusted.
func pluginNamed(a *cli.App, arg string) (p plugins.Plugin, err error) {
	declared, c, err := a.LoadPlugins()
	if err != nil {
		return p, err
	}
	found, err := pluginsNamed(arg, declared, c)
	if err != nil {
		return p, err
	}
	if p = found[0]; p.Name == arg && p.Withheld != "" {
		return p, fmt.Errorf("provider %s: %s", arg, p.Withheld)
	}
	return p, nil
}

// pin approves the plugins: all of them or, after an error, none.
func pin(a *cli.App, store trust.Store, chosen []plugins.Plugin) error {
	var errs []error
	var said bytes.Buffer
	var sums []trust.Entry
	for _, p := range chosen {
		sum, err := pinOne(&said, p)
		if err != nil {
			errs = append(errs, err)
		}
		if sum != "" {
			target, folder := p.Target()
			sums = append(sums, trust.PluginEntry(target, folder, sum))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("nothing was pinned: %w", err)
	}
	for _, e := range sums {
		if err := store.Add(e); err != nil {
			return err
		}
	}
	_, err := said.WriteTo(a.Stdout)
	return err
}

// pinOne prints the effect of pinning a plugin, and returns the checksum to store; empty if nothing changes.
func pinOne(w io.Writer, p plugins.Plugin) (string, error) {
	target, _ := p.Target()
	name := cmp.Or(p.Name, filepath.Base(target))
	sum, err := plugins.Digest(p.Provider)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	if p.SHA256 != "" && p.SHA256 != sum {
		return "", fmt.Errorf("%s: the configuration has another checksum, which counts: %s says %s, it is %s; change it there, or remove it and pin again",
			name, p.By, p.SHA256, sum)
	}
	term.Printf(w, "%s  %s\n", name, cli.FromHere(target))
	switch {
	case p.SHA256 != "":
		term.Printf(w, "  as in %s\n  %s\n", p.By, sum)
		return "", nil
	case p.Pin == sum:
		term.Printf(w, "  unchanged\n  %s\n", sum)
		return "", nil
	}
	term.Printf(w, "  was  %s\n  is   %s\n", cmp.Or(p.Pin, "not pinned"), sum)
	return sum, nil
}
