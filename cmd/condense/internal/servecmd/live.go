package servecmd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/live/access"
	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/plain"
)

// recent is how long ago a conversation may have been used to count as running.
const recent = time.Hour

func liveCommand(a *cli.App) *cobra.Command {
	l := &liveFlags{app: a}
	cmd := &cobra.Command{
		Use: "live", Short: "See and direct the conversations of running agents: condense now, undo, pause, protect",
		Args: cli.NoArguments("condense live now, undo, pause, resume, protect, unprotect, show"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if l.open {
				return l.openPage(cmd)
			}
			return l.with(cmd, func(d controller) error { return l.list(cmd, d) })
		},
	}
	cmd.AddCommand(
		l.listCommand(), l.nowCommand(), l.undoCommand(), l.pauseCommand(true), l.pauseCommand(false), l.protectCommand(true), l.protectCommand(false), l.showCommand(),
	)
	f := cmd.PersistentFlags()
	f.StringVar(&l.store, "store", "", "`file` or database that the gateways keep their state in (default: serve.store)")
	f.StringVar(&l.admin, "admin", "", "`URL` of a gateway's own pages, in place of a store")
	f.StringVarP(&l.output, "output", "o", "table", "`format`: table or json")
	cli.Complete(cmd, "output", liveFormats)
	l.listFlags(cmd)
	cmd.Flags().BoolVar(&l.open, "open", false, "open the page of the running gateway in the browser")
	return cmd
}

// openPage opens the page of the latest gateway that shows one, or of the one at --admin.
func (l *liveFlags) openPage(cmd *cobra.Command) error {
	all := announced()
	if l.admin != "" {
		all = []string{strings.TrimRight(l.admin, "/") + "/condense/"}
	}
	if len(all) == 0 {
		return errors.New("no gateway shows a page now: start 'condense serve', or an agent with 'condense wrap --page AGENT'")
	}
	return openPage(cmd.Context(), all[0])
}

var liveFormats = []string{"table", "json"}

// liveFlags are the flags that all commands of live share.
type liveFlags struct {
	app                  *cli.App
	store, admin, output string
	since                time.Duration
	all, open            bool
	config               *config.Config
}

// startOne says how there is something to direct.
const startOne = "start an agent with 'condense wrap AGENT', or a gateway with 'condense serve'"

func neverRun(path string) string {
	return fmt.Sprintf("no gateway has run with the store %s yet: %s", cli.FromHere(path), startOne)
}

// with opens the controller and calls f.
func (l *liveFlags) with(cmd *cobra.Command, f func(controller) error) error {
	if !slices.Contains(liveFormats, l.output) {
		return cli.Usage(cmd, "--output: no format %q; there are %s", l.output, strings.Join(liveFormats, ", "))
	}
	if l.store != "" && l.admin != "" {
		return cli.Usage(cmd, "--store and --admin cannot be combined")
	}
	var err error
	if l.config, err = serving(cmd, l.app, map[string]string{"serve.store": l.store}); err != nil {
		return err
	}
	if l.admin != "" {
		return l.far(cmd, f)
	}
	const or, name = ", or the admin address of a gateway with --admin", "name the admin address of the running gateway with --admin"
	path, err := kept(l.config, or, name, neverRun)
	if err != nil {
		return err
	}
	d, err := control.Open(cmd.Context(), path)
	if err != nil {
		return err
	}
	return errors.Join(f(d), d.Close())
}

// where returns the flags with which a command that is pasted into a shell finds the same conversations, with a space
// in front; empty if it needs none. The address of a database can have a password: the configuration has it.
func (l *liveFlags) where() string {
	path := l.config.Serve().Store
	load := l.app.Names()
	load.Path = ""
	own, err := config.Load(load)
	file, absErr := filepath.Abs(l.app.ConfigPath)
	switch {
	case l.admin != "":
		return " " + shellLine([]string{"--admin", l.admin})
	case err == nil && own.Serve().Store == path:
		return ""
	case !store.IsPostgres(path):
		return " " + shellLine([]string{"--store", path})
	case l.app.ConfigPath != "" && absErr == nil:
		return " " + shellLine([]string{"--config", file})
	}
	return ""
}

// far calls f with the controller of the gateway at an admin address.
func (l *liveFlags) far(cmd *cobra.Command, f func(controller) error) error {
	u, err := url.Parse(l.admin)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return cli.Usage(cmd, "--admin: %q is no address such as http://127.0.0.1:8766", l.admin)
	}
	token, err := readToken(l.config.Serve())
	if err != nil {
		return err
	}
	if host := net.ParseIP(u.Hostname()); token == "" && (u.Hostname() == "localhost" || host != nil && host.IsLoopback()) {
		if token, err = access.Orders(false); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return f(&remote{base: strings.TrimRight(u.Scheme+"://"+u.Host, "/"), token: token})
}

// chosenOne returns the conversation that the user means.
func (l *liveFlags) chosenOne(cmd *cobra.Command, d controller, args []string) (*control.Conversation, error) {
	since := time.Now().Add(-recent)
	if len(args) > 0 {
		since = time.Time{}
	}
	all, err := d.Conversations(cmd.Context(), since)
	if err != nil {
		return nil, err
	}
	if len(args) > 0 {
		return control.Find(all, args[0])
	}
	all = slices.DeleteFunc(all, func(c *control.Conversation) bool { return c.SubAgent != "" })
	switch len(all) {
	case 0:
		return nil, fmt.Errorf("no conversation was used in the last hour: name one of 'condense live --all', or %s", startOne)
	case 1:
		return all[0], nil
	}
	if own := os.Getenv("CLAUDE_CODE_SESSION_ID"); own != "" { // Claude Code has started this command
		if i := slices.IndexFunc(all, func(c *control.Conversation) bool { return c.Session == own }); i >= 0 {
			return all[i], nil
		}
	}
	if here, err := os.Getwd(); err == nil {
		in := slices.DeleteFunc(slices.Clone(all), func(c *control.Conversation) bool { return c.Folder != here })
		if len(in) == 1 {
			return in[0], nil
		}
	}
	ids := plain.Each(all, func(c *control.Conversation) string {
		return strings.Join(strings.Fields(c.Short()+" "+c.Agent+" "+cmp.Or(c.Folder, c.Title)), " ")
	})
	return nil, cli.Usage(cmd, "%d conversations are running, name one: %s", len(all), strings.Join(ids, "; "))
}
