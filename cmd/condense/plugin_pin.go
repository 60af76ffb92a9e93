package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/lock"
	"github.com/condensehq/condense/internal/near"
)

func (a *app) pluginPinCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "pin [NAME|PATH...]",
		Short: "Approve plugins as they are now: write their checksums into condense.lock",
		Long: `pin computes the SHA-256 of each plugin named, or of all that the configuration declares, and writes it into
condense.lock beside the configuration file that declares the plugin. From then on exactly this program is
started, and no other that takes its place. A plugin with a folder is pinned with every file in it.

A PATH that no provider has is pinned beside the project's configuration. Nothing is started. Put condense.lock
under version control: who reviews a change of it reviews which programs run.`,
		Example: `  condense plugin pin
  condense plugin pin ours
  condense plugin pin ./condense-provider-ours`,
		RunE: func(cmd *cobra.Command, args []string) error {
			plugins, c, err := a.configuredPlugins()
			if err != nil {
				return err
			}
			chosen := plugins
			if len(args) > 0 {
				chosen = nil
			} else if len(plugins) == 0 {
				return usage(cmd, "the configuration declares no plugin; name the program to pin")
			}
			for _, arg := range args {
				found, err := pluginsNamed(arg, plugins, c)
				if err != nil {
					return err
				}
				chosen = append(chosen, found...)
			}
			return a.pin(c, chosen)
		},
	}
}

// pluginsNamed returns the plugins that an argument means: the provider of that name, those
// whose program or folder it is, or else a program that no provider has.
func pluginsNamed(arg string, plugins []config.Provider, c *config.Config) ([]config.Provider, error) {
	path, err := filepath.Abs(arg)
	if err != nil {
		return nil, err
	}
	var names []string
	var found []config.Provider
	for _, p := range plugins {
		if p.Name == arg {
			return []config.Provider{p}, nil
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
			return nil, fmt.Errorf("provider %s is no plugin: the strategy %s is built in and needs no pin", arg, p.Strategy)
		}
		return nil, fmt.Errorf("there is no plugin and no file %q%s", arg, near.DidYouMean(arg, names))
	}
	if err != nil {
		return nil, err
	}
	p := config.Provider{Plugin: path}
	if info.IsDir() {
		p.Folder = path
	}
	beside := "condense.yaml" // in the working directory, if there is no configuration
	if files := c.Files(); len(files) > 0 {
		beside = files[len(files)-1]
	}
	if beside, err = filepath.Abs(beside); err != nil {
		return nil, err
	}
	p.PluginDir = filepath.Dir(beside)
	return []config.Provider{p}, nil
}

// pin approves the plugins. If anything is wrong with one, none is.
func (a *app) pin(c *config.Config, plugins []config.Provider) error {
	files := map[string]*lock.File{}
	var order []*lock.File
	var errs []error
	var said bytes.Buffer
	for _, p := range plugins {
		f, ok := files[p.PluginDir]
		if !ok {
			var err error
			if f, err = lock.Read(p.PluginDir); err != nil {
				return err
			}
			files[p.PluginDir] = f
		}
		changed, err := pinOne(&said, c, f, p)
		if err != nil {
			errs = append(errs, err)
		}
		if changed && !slices.Contains(order, f) {
			order = append(order, f)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("nothing was pinned: %w", err)
	}
	if _, err := said.WriteTo(a.stdout); err != nil {
		return err
	}
	for _, f := range order {
		if err := f.Write(); err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "wrote %s\n", fromHere(f.Path()))
	}
	return nil
}

// pinOne enters a plugin into its lock file, says so, and reports whether that changed it.
func pinOne(w io.Writer, c *config.Config, f *lock.File, p config.Provider) (bool, error) {
	target, folder := lock.Target(p)
	name := cmp.Or(p.Name, filepath.Base(target))
	sum, err := digest(p)
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	if p.SHA256 != "" && p.SHA256 != sum {
		return false, fmt.Errorf("%s: the configuration has another checksum, which counts: %s says %s, it is %s; change it there, or remove it and pin again",
			name, pinnedBy(c, p, lock.Pin{SHA256: p.SHA256}), p.SHA256, sum)
	}
	old := f.Digest(target, folder)
	fmt.Fprintf(w, "%s  %s\n", name, fromHere(target))
	switch {
	case p.SHA256 != "":
		fmt.Fprintf(w, "  as in %s\n  %s\n", pinnedBy(c, p, lock.Pin{SHA256: p.SHA256}), sum)
		return false, nil
	case old == sum:
		fmt.Fprintf(w, "  unchanged\n  %s\n", sum)
		return false, nil
	}
	fmt.Fprintf(w, "  was  %s\n  is   %s\n", cmp.Or(old, "not pinned"), sum)
	return true, f.Set(target, folder, sum)
}
