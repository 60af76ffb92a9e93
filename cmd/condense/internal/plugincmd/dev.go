package plugincmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/registry"
	"github.com/condensehq/condense/tokens"
)

// errDev ends a round of plugin dev that has reported a fault.
var errDev = errors.New("the plugin has faults: see above")

func pluginDevCommand(a *cli.App) *cobra.Command {
	var (
		d          dev
		once, wasm bool
	)
	cmd := &cobra.Command{
		Use: "dev DIR|FILE", Short: "Build and try a plugin whenever it is saved",
		Args: cli.Arguments(1, 1, "want the folder of one plugin, such as . ; got %d"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if d.settings != "" && !json.Valid([]byte(d.settings)) {
				return cli.Usage(cmd, "--settings: %s is not JSON", d.settings)
			}
			if d.rounds < 1 || d.rounds > 20 { // so that each has some messages
				return cli.Usage(cmd, "--rounds: %d; want 1 to 20", d.rounds)
			}
			src, err := findSource(args[0], wasm)
			if err != nil {
				return cli.Usage(cmd, "%w", err)
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
	f.IntVar(&d.rounds, "rounds", 1, "condense the conversation in this `number` of rounds as it grows, with the plugin's state; it may wait before the last")
	f.BoolVar(&d.diff, "diff", false, "print the edits of the plugin, and the lines that texts lose and get")
	f.BoolVar(&d.ingest, "ingest", false, ingestUsage)
	f.BoolVar(&wasm, "wasm", false, "build a plugin in Go as a module of WebAssembly")
	f.BoolVar(&once, "once", false, "try it once; exit code 1 if the plugin cannot be built, fails or breaks a rule")
	cli.Complete(cmd, "format", cli.FormatNames())
	return cmd
}

// A dev is one run of plugin dev.
type dev struct {
	app                     *cli.App
	source                  *source
	temp                    string // folder for the build
	trace, format, settings string
	diff, ingest            bool
	rounds                  int
}

// devPoll is the interval between looks at the sources.
const devPoll = 300 * time.Millisecond

// watch does a round after every change until ctx is done, which is no error.
func (d *dev) watch(ctx context.Context) error {
	var files snapshot
	tick := time.NewTicker(devPoll)
	defer tick.Stop()
	for {
		next, err := takeSnapshot(ctx, d.source.root, d.trace, files)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if files == nil || next.differs(files) {
			if files != nil {
				term.Printf(d.app.Stdout, "\n%s changed\n", next.changed(files))
			}
			files = next
			if err := d.round(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, errDev) {
				term.Printf(d.app.Stdout, "%v\n", term.Indented{Text: err.Error(), By: ""})
			}
			if ctx.Err() == nil {
				term.Printf(d.app.Stdout, "waiting for a change; Ctrl-C ends\n")
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
	path, err := d.source.build(ctx, d.temp, d.app.Stdout)
	if err != nil {
		return err
	}
	if path != d.source.program {
		term.Printf(d.app.Stdout, "built in %s\n", time.Since(start).Round(time.Millisecond))
	}
	return d.try(ctx, path)
}

// try runs the program and lets it condense a conversation. The error is errDev if the
// plugin fails.
func (d *dev) try(ctx context.Context, path string) (err error) {
	req, about, err := d.request(ctx)
	if err != nil {
		return err
	}
	plugin, err := d.trial(path).Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plugin.Close()) }()
	what, err := plugin.Describe(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		term.Printf(d.app.Stdout, "the plugin does not start: %v\n", term.Indented{Text: err.Error(), By: "  "})
		return errDev
	}
	first, _, _ := strings.Cut(what.Doc, ".")
	term.Printf(d.app.Stdout, "%s: %s\n%s\n", what.Name, first, about)
	heard := &heardPlugin{Plugin: plugin, ingest: d.ingest}
	chain, err := d.chain(ctx, what.Name, heard)
	if err != nil {
		return err
	}
	var view []core.Message
	all := req.Messages
	for round, from := 1, 0; round <= d.rounds; round++ {
		to := len(all) * round / d.rounds
		for _, g := range core.Groups(all) { // a call and its result come together
			if g.Start < to && to < g.End {
				to = g.End
			}
		}
		req.Messages, from = append(slices.Clip(view), all[from:to]...), to
		if halve(req); d.rounds > 1 {
			term.Printf(d.app.Stdout, "round %d: %s tokens, wanted %s\n", round, size.Group(req.Tokens()), size.Group(req.Budget.Target))
		}
		req.MayWait = round < d.rounds
		condensed, err := d.run(ctx, chain, heard, req)
		if err != nil {
			return err
		}
		if view = condensed.Messages; condensed.States != nil {
			req.States = condensed.States
		}
	}
	return nil
}

// run lets the chain condense, and prints what came of it. The error is errDev if the plugin, its first link, fails.
func (d *dev) run(ctx context.Context, chain *core.Chain, heard *heardPlugin, req *core.Request) (*core.ChainResult, error) {
	condensed, err := chain.Run(ctx, req)
	if err != nil {
		return nil, err
	}
	for i, at := range condensed.Attempts {
		d.print(at)
		if at.Err != nil {
			printFaults(d.app.Stdout, at.Err)
		}
		if i == 0 && d.diff && heard.answer != nil {
			printEdits(d.app.Stdout, req, heard.answer)
		}
	}
	if condensed.Attempts[0].Err != nil { // skipped without one, it would rather wait, which it may not
		return nil, errDev
	}
	return condensed, nil
}

// halve has a request ask for half of its conversation.
func halve(req *core.Request) {
	total := req.Tokens()
	req.Budget.Window, req.Budget.Limit, req.Budget.Target = 2*total, total, total/2
}

// request returns a request to halve the conversation, which truncation can always do, and
// its description.
func (d *dev) request(ctx context.Context) (*core.Request, string, error) {
	encoding, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		return nil, "", err
	}
	req := &core.Request{Trigger: core.TriggerManual, Counter: tokens.NewCounter(encoding)}
	name := "a session that comes with condense"
	if d.trace == "" {
		if req.Messages, req.System, err = bundled(req.Counter); err != nil {
			return nil, "", err
		}
	} else {
		doc, err := d.app.Read(ctx, d.trace, d.format)
		if err != nil {
			return nil, "", err
		}
		view := doc.Journal.View()
		req.Messages, req.System, name = append(view[:0:0], view...), doc.System, d.trace
	}
	core.Measure(req.Counter, req.Messages)
	if req.System != "" {
		req.Budget.Overhead = req.Counter.Count(core.Text(req.System))
	}
	halve(req)
	return req, fmt.Sprintf("%s: %s messages, %s tokens, wanted %s", name,
		size.Group(len(req.Messages)), size.Group(req.Tokens()), size.Group(req.Budget.Target)), nil
}

// bundled returns a recorded session that comes with condense, its first message protected as a host may do. It has
// every kind of content for a strategy: prose, code, results of tools, long and short.
func bundled(counter core.Counter) ([]core.Message, string, error) {
	items, err := lab.Find("demo:entire-cli")
	if err != nil {
		return nil, "", err
	}
	s, err := items[0].Read(counter)
	if err != nil {
		return nil, "", err
	}
	s.Messages[0].Protected = true
	return s.Messages, s.System, nil
}

// chain returns the chain of the plugin and truncation.
func (d *dev) chain(ctx context.Context, name string, plugin core.CondensationProvider) (*core.Chain, error) {
	strategy, err := d.app.Strategies.Get("slidingwindow")
	if err != nil {
		return nil, err
	}
	truncation, err := strategy.Open(ctx, nil, registry.Env{})
	if err != nil {
		return nil, err
	}
	if name == "truncation" {
		name = "plugin"
	}
	return core.NewChain([]core.NamedProvider{
		{Name: name, Provider: plugin, Timeout: time.Minute},
		{Name: "truncation", Provider: truncation},
	}, nil)
}

func (d *dev) print(at core.Attempt) {
	term.Printf(d.app.Stdout, "  %-16s %-12s", at.Provider, at.Outcome)
	if at.TokensAfter != at.TokensBefore {
		term.Printf(d.app.Stdout, " %s -> %s tokens", size.Group(at.TokensBefore), size.Group(at.TokensAfter))
	}
	if at.Reason != "" && at.Err == nil {
		term.Printf(d.app.Stdout, " %s", at.Reason)
	}
	if at.Duration > 0 {
		term.Printf(d.app.Stdout, " (%s ms)", size.Number(float64(at.Duration.Microseconds())/1000))
	}
	term.Printf(d.app.Stdout, "\n")
}

// trial returns how the program at path is run. Its log goes to standard error: everything
// that it logs in a call, and its output without the debug lines of its SDK.
func (d *dev) trial(path string) *plugins.Trial {
	t := &plugins.Trial{Plugin: config.Provider{Name: d.source.name(), Plugin: path, Settings: json.RawMessage(d.settings)}}
	if d.source.pkg == "" && d.source.command == nil {
		t.Plugin.Folder = d.source.root
	}
	t.Output, t.Calls = authorLogs(d.app.Stderr)
	return t
}
