// Package servecmd has the commands that run a gateway between agents and the APIs of their
// models: serve, wrap and agent.
package servecmd

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/live/store"
)

// Commands returns the commands of this group.
func Commands(a *cli.App) []*cobra.Command {
	return []*cobra.Command{serveCommand(a), wrapCommand(a), agentCommand(a), statsCommand(a), liveCommand(a), statuslineCommand(a), storeCommand(a), tokenCommand(a)}
}

func serveCommand(a *cli.App) *cobra.Command {
	var (
		flags         gatewayFlags
		listen, admin string
	)
	cmd := &cobra.Command{
		Use: "serve", Short: "Condense the conversations of running agents: a gateway to their models",
		Args: cli.NoArguments("to run an agent through a gateway of its own: condense wrap"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := flags.open(cmd, a, withoutEmpty(map[string]string{"serve.listen": listen, "serve.admin.listen": admin}), nil)
			if err != nil {
				return err
			}
			return errors.Join(g.serve(cmd.Context(), a), g.Close())
		},
	}
	flags.add(a, cmd)
	cmd.Flags().StringVar(&listen, "listen", "", "`address` to listen on; port 0 takes a free one (default: serve.listen, 127.0.0.1:8765)")
	cmd.Flags().StringVar(&admin, "admin", "", "`address` of the gateway's own pages: statistics, health (default: serve.admin.listen, or the loopback and the next port)")
	return cmd
}

// withoutEmpty removes the settings that are empty, which the configuration has.
func withoutEmpty(set map[string]string) map[string]string {
	maps.DeleteFunc(set, func(_, value string) bool { return value == "" })
	return set
}

// serving loads the configuration with these settings in place of its own, unless they are empty.
func serving(cmd *cobra.Command, a *cli.App, set map[string]string) (*config.Config, error) {
	load := a.Names()
	load.Flags = withoutEmpty(set)
	c, err := a.LoadWith(load)
	if err != nil {
		return nil, named(cmd, err)
	}
	return c, nil
}

// kept returns the store of a configuration, if another process can read it. The texts say more where there is no home folder for it,
// and where it is memory. Missing, if not nil, says what it means that there is no such file.
func kept(c *config.Config, home, memory string, missing func(path string) string) (string, error) {
	path := c.Serve().Store
	switch path {
	case "":
		return "", errors.New("there is no home folder with a store: name a file with --store" + home)
	case config.StoreMemory:
		return "", errors.New("serve.store is memory: " + memory)
	}
	if _, err := os.Stat(path); missing != nil && !store.IsPostgres(path) && errors.Is(err, fs.ErrNotExist) {
		return "", errors.New(missing(path))
	}
	return path, nil
}

func neverUsed(path string) string {
	return "there is no store " + path + ": condense serve has not run with it yet"
}

// gatewayFlags are the flags of the commands that run a gateway.
type gatewayFlags struct {
	place         cli.Place
	upstreams     []string
	store, record string
	account       string // a model
	observe       bool
	way           string   // of recall
	recall        bool     // requests without a recall secret carry the gateway's own
	page          bool     // with alone: the pages are shown, with texts, to the user who has their address
	browse        bool     // a browser opens that page
	alone         bool     // only a child of this process uses it: no token, no certificate, no audit
	keepLimit     bool     // of that child
	knows         *knowing // what that child knows about its models; nil: nothing
	unversioned   []string // upstreams from the agent's own settings whose paths have no /v1
	log, logAs    string
	every         time.Duration // between two looks at the files of the configuration; 0 is the default
}

func (f *gatewayFlags) add(a *cli.App, cmd *cobra.Command) {
	f.place.Flags(a, cmd)
	set := cmd.Flags()
	set.StringArrayVar(&f.upstreams, "upstream", nil, "`NAME=URL` of an API to forward to: anthropic=…, openai=…, or another name, /NAME in the base URL, with what is spoken there: openrouter=openai+https://…; repeat it for each (default: serve.upstreams, the vendors' own)")
	set.StringVar(&f.store, "store", "", "`file` for state that must survive a restart, postgres://… or memory (default: serve.store)")
	set.StringVar(&f.record, "record", "", "`folder` to record conversations in, or off (default: serve.record, off)")
	set.StringVar(&f.account, "account", "", "`model` of the configuration that writes an account of each conversation next to its requests; client for the agent's own with its API key; or off (default: serve.account, off)")
	set.StringVar(&f.way, "recall", "", "`way` in which agents get back what was condensed: mcp, tool (a tool that the gateway adds and answers) or off (default: mcp, and tool where an agent has no such server)")
	cli.Complete(cmd, "recall", []string{"mcp", "tool", "off"})
	set.BoolVar(&f.observe, "observe", false, "forward everything untouched and report what would have been saved")
	set.StringVar(&f.log, "log", "info", "`level` of the log on standard error: "+strings.Join(cli.LogLevels, ", "))
	cli.Complete(cmd, "log", cli.LogLevels)
	set.StringVar(&f.logAs, "log-format", "text", "`form` of its lines: text or json")
	cli.Complete(cmd, "log-format", []string{"text", "json"})
}

// settings returns the flags that were given, as keys of the configuration.
func (f *gatewayFlags) settings(cmd *cobra.Command) (map[string]string, error) {
	set := map[string]string{}
	for _, pair := range f.upstreams {
		name, address, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, cli.Usage(cmd, "--upstream: %q: want NAME=URL, as in openai=http://localhost:11434/v1", pair)
		}
		set["serve.upstreams."+name] = address
	}
	maps.Copy(set, withoutEmpty(map[string]string{"serve.store": f.store, "serve.record": f.record, "serve.account": f.account}))
	switch f.way {
	case "":
	case "mcp", "tool", "off":
		set["serve.recall.mcp"] = strconv.FormatBool(f.way == "mcp")
		set["serve.recall.tool"] = strconv.FormatBool(f.way == "tool")
	default:
		return nil, cli.Usage(cmd, "--recall: %q: want mcp, tool or off", f.way)
	}
	if cmd.Flags().Changed("observe") {
		set["serve.observe"] = strconv.FormatBool(f.observe)
	}
	return set, nil
}

// named replaces the keys of the configuration by the flags that the user typed, if all faults are
// in flags.
func named(cmd *cobra.Command, err error) error {
	faults, ok := errors.AsType[config.Errors](err)
	if !ok || slices.ContainsFunc(faults, func(e *config.Error) bool { return e.Origin.Kind != config.FromFlag }) {
		return err
	}
	var typed []error
	for _, e := range faults {
		name := strings.TrimPrefix(e.Origin.Name, "serve.")
		if of, isUpstream := strings.CutPrefix(name, "upstreams."); isUpstream {
			name = "upstream " + of
			if strings.HasPrefix(e.Suggestion, "serve.") { // the name is none
				e.Problem, e.Suggestion = "the name of an upstream has up to 64 letters, digits, dots and dashes", ""
			}
		}
		e.Key, e.Origin = "", config.Origin{Kind: config.OriginKind("--" + name)}
		typed = append(typed, e)
	}
	return cli.Usage(cmd, "%w", errors.Join(typed...))
}
