package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"
)

// errDev ends a single round of plugin dev that found a fault and has said so.
var errDev = errors.New("the plugin needs work: see above")

func (a *app) pluginDevCommand() *cobra.Command {
	var (
		d    dev
		once bool
	)
	cmd := &cobra.Command{
		Use:   "dev DIR|FILE",
		Short: "Build and try a plugin whenever it is saved",
		Long: `dev builds the plugin in DIR, runs it, has it condense a conversation to half its size, as the first of a
chain that ends with truncation, and prints what became of it: tokens before and after, each rule that was
broken and how to mend it, and what the plugin logged. When a file in DIR is saved it begins anew. Ctrl-C ends
it, and the plugin with it.

A folder with Go in it is built with 'go build'. In any other language name the FILE that is run: it begins
with #! and is executable; in DIR it is found if it is the only such file. The plugin runs unpinned and
within the limits that it has in use.`,
		Example: `  condense plugin dev .
  condense plugin dev ./plugin.py --trace session.jsonl --settings '{"keep": 3}'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(cmd, "want the folder of one plugin, such as . ; got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if d.settings != "" && !json.Valid([]byte(d.settings)) {
				return usage(cmd, "--settings: %s is not JSON", d.settings)
			}
			src, err := findSource(args[0])
			if err != nil {
				return usage(cmd, "%w", err)
			}
			d.app, d.source = a, src
			if d.temp, err = os.MkdirTemp("", "condense-dev-*"); err != nil {
				return err
			}
			defer os.RemoveAll(d.temp) //nolint:errcheck // nothing depends on it
			if once {
				return d.round(cmd.Context())
			}
			return d.watch(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&d.trace, "trace", "", "`file` with a conversation to condense (default: one that comes with condense)")
	f.StringVar(&d.format, "format", "", "its `format` (default: detected)")
	f.StringVar(&d.settings, "settings", "", "settings of the plugin, a `JSON` object (default: its own)")
	f.BoolVar(&once, "once", false, "do it once; exit code 1 if the plugin cannot be built, fails or breaks a rule")
	complete(cmd, "format", formatNames())
	return cmd
}

// A dev is one run of plugin dev.
type dev struct {
	app                     *app
	source                  *source
	temp                    string // folder for what is built
	trace, format, settings string
}

// devPoll is how often the sources are looked at. People do not notice less.
const devPoll = 300 * time.Millisecond

// watch does a round after every change until ctx is done, which is how it is meant to end.
func (d *dev) watch(ctx context.Context) error {
	var files snapshot
	tick := time.NewTicker(devPoll)
	defer tick.Stop()
	for {
		next, err := takeSnapshot(ctx, d.source.root, d.trace, files)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if files == nil || next.differs(files) {
			if files != nil {
				printf(d.app.stdout, "\n%s changed\n", next.changed(files))
			}
			files = next
			if err := d.round(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, errDev) {
				printf(d.app.stdout, "%v\n", indented{err.Error(), ""})
			}
			if ctx.Err() == nil {
				printf(d.app.stdout, "waiting for a change; Ctrl-C ends\n")
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// round builds the plugin and tries it.
func (d *dev) round(ctx context.Context) error {
	start := time.Now()
	path, err := d.source.build(ctx, d.temp, d.app.stdout)
	if err != nil {
		return err
	}
	if path != d.source.program {
		printf(d.app.stdout, "built in %s\n", time.Since(start).Round(time.Millisecond))
	}
	return d.try(ctx, path)
}
