package servecmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/live/agents"
	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/live/session"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/internal/suggest"
)

// maxStatusInput is how much of standard input is read, in bytes. Claude Code writes about a thousand.
const maxStatusInput = 1 << 20

func statuslineCommand(a *cli.App) *cobra.Command {
	l := &liveFlags{app: a, output: "table"}
	var at statusPlace
	plugin, output := "", "text"
	cmd := &cobra.Command{
		Use: "statusline", Short: "Print one line about a running conversation, for a status line",
		Long: `statusline prints one line about the running conversation of an agent: its size and window, when it will be condensed, and its last condensation.
It prints nothing if there is no such conversation.

On standard input it reads the JSON that Claude Code gives its status line. Without that, it takes the conversation used last in the folder --dir,
or in this folder. 'condense wrap --status' sets it for one run.
--plugin prints a plugin for ` + strings.Join(metered(), " or ") + ` that shows the line there.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if plugin != "" {
				return printPlugin(cmd, a, plugin)
			}
			if !slices.Contains(statusFormats, output) {
				return cli.Usage(cmd, "--output: no format %q; there are %s", output, strings.Join(statusFormats, ", "))
			}
			if err := at.read(a.Stdin); err != nil {
				return err
			}
			err := l.with(cmd, func(d controller) error {
				all, err := d.Conversations(cmd.Context(), time.Now().Add(-recent))
				if err != nil {
					return err
				}
				page := ""
				if len(announced()) > 0 {
					page = " · page: condense live --open"
				}
				switch c := at.find(all); {
				case c == nil && l.admin != "" && at.unnamed(all):
					term.Printf(a.Stderr, "condense: %s there; without a token %s does not say whose: set serve.token_env or serve.token_file\n",
						size.Plural(len(all), "conversation"), l.admin)
					return nil
				case c == nil:
					return nil
				case output == "json":
					m := meterOf(c, l.where())
					m.Line += page
					return term.PrintJSON(a.Stdout, m)
				case output == "hook":
					return term.PrintJSON(a.Stdout, map[string]string{"systemMessage": statusOf(c, l.where()) + page})
				default:
					term.Printf(a.Stdout, "%s%s\n", statusOf(c, l.where()), page)
					return nil
				}
			})
			if err != nil && output == "hook" { // the agent would show only that it failed
				return term.PrintJSON(a.Stdout, map[string]string{"systemMessage": "condense: " + err.Error()})
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&at.session, "session", "", "`id` that the agent gives its session")
	f.StringVar(&at.folder, "dir", "", "`folder` that the agent works in (default: this one)")
	f.StringVar(&l.store, "store", "", "`file` or database that the gateways keep their state in (default: serve.store)")
	f.StringVar(&l.admin, "admin", "", "`URL` of a gateway's own pages, in place of a store")
	f.StringVarP(&output, "output", "o", output, "`format`: text, json for plugins, or hook, as Codex and Claude Code show a hook's message")
	cli.Complete(cmd, "output", statusFormats)
	f.StringVar(&plugin, "plugin", "", "print the plugin of an `agent` that shows the line: "+strings.Join(metered(), ", "))
	cli.Complete(cmd, "plugin", metered())
	return cmd
}

// showing are the agents that can show the status line.
const showing = "Claude Code, Codex, OpenCode, Kilo, pi"

var statusFormats = []string{"text", "json", "hook"}

// metered are the agents with a plugin for the status line.
func metered() []string {
	return slices.DeleteFunc(agents.Names(), func(name string) bool { return pluginOf(agents.Find(name)) == "" })
}

func printPlugin(cmd *cobra.Command, a *cli.App, name string) error {
	agent := agents.Find(name)
	if agent == nil || pluginOf(agent) == "" {
		return cli.Usage(cmd, "--plugin: no plugin for %q; there are %s%s",
			name, strings.Join(metered(), ", "), suggest.DidYouMean(name, metered()))
	}
	_, err := io.WriteString(a.Stdout, pluginOf(agent))
	return err
}

// A meter is the status of a conversation for plugins, which show these texts and compute nothing.
type meter struct {
	Line  string `json:"line"`
	Epoch int    `json:"epoch"`          // the number of the last one; 0 for none
	Last  string `json:"last,omitempty"` // describes the last epoch; a plugin shows it when Epoch changes
	Soon  string `json:"soon,omitempty"` // a warning one request before an epoch
}

// meterOf returns the status of a conversation; where is [liveFlags.where].
func meterOf(c *control.Conversation, where string) meter {
	m := meter{Line: statusOf(c, where), Epoch: c.Epochs, Last: lastEpoch(c, where)}
	if soon(c) {
		m.Soon = filled(c) + "; not now: condense live pause " + c.Short() + where
	}
	return m
}

// soon reports whether an epoch is expected with the next request.
func soon(c *control.Conversation) bool {
	if c.Observed {
		return false
	}
	if o := c.Order; o != nil {
		return o.Do != session.OrderUndo && o.Waits == ""
	}
	return !c.Paused && c.DueIn == 1 && c.Waits == ""
}

// lastEpoch describes the last epoch, with the command that undoes it; empty if none is in effect.
func lastEpoch(c *control.Conversation, where string) string {
	e := c.LastEpoch
	if e == nil || !c.Condensed || c.Undone {
		return ""
	}
	lost := ""
	if e.Lost > 0 {
		lost = ", without " + size.Plural(e.Lost, "token") + " of your words"
	}
	for _, fault := range e.Truth.Faults() {
		lost += ", " + fault
	}
	return fmt.Sprintf("%s→%s by %s%s; undo: condense live undo %s%s",
		size.Short(e.Before), size.Short(e.After), cmp.Or(c.Provider, "truncation"), lost, c.Short(), where)
}

// A statusPlace selects the conversation to show.
type statusPlace struct{ session, folder string }

// read completes the place from standard input, if that is not a terminal, and from the working directory.
func (p *statusPlace) read(stdin io.Reader) error {
	if p.session == "" && p.folder == "" && stdin != nil && !term.IsTerminal(stdin) {
		data, err := io.ReadAll(io.LimitReader(stdin, maxStatusInput))
		if err != nil {
			return err
		}
		var in struct {
			Session   string `json:"session_id"`
			Folder    string `json:"cwd"`
			Workspace struct {
				Folder string `json:"current_dir"`
			} `json:"workspace"`
		}
		if len(strings.TrimSpace(string(data))) > 0 {
			if err := json.Unmarshal(data, &in); err != nil {
				return fmt.Errorf("standard input is not the JSON of a status line: %w", err)
			}
		}
		p.session, p.folder = in.Session, cmp.Or(in.Workspace.Folder, in.Folder)
	}
	if p.session == "" && p.folder == "" {
		var err error
		p.folder, err = os.Getwd()
		return err
	}
	return nil
}

// find returns the conversation of the place that was used last, or nil. All are sorted, the latest first. An agent that names its
// session has no conversation before its first request: another one in the same folder is not shown in its place.
func (p *statusPlace) find(all []*control.Conversation) *control.Conversation {
	i := slices.IndexFunc(all, func(c *control.Conversation) bool {
		if p.session != "" && c.Session != "" {
			return c.SubAgent == "" && c.Session == p.session
		}
		return c.SubAgent == "" && p.folder != "" && c.Folder == p.folder
	})
	if i < 0 {
		return nil
	}
	return all[i]
}

// unnamed reports whether there are conversations, and the folder or session that the place names is known of none.
func (p *statusPlace) unnamed(all []*control.Conversation) bool {
	known := func(c *control.Conversation) bool { return c.Folder != "" || p.session != "" && c.Session != "" }
	return len(all) > 0 && !slices.ContainsFunc(all, known)
}

// statusOf is the status line of a conversation.
func statusOf(c *control.Conversation, where string) string {
	parts := []string{"condense " + filled(c)}
	if c.Condensed && c.History > c.Size {
		parts[0] += " for " + size.Short(c.History)
	}
	switch {
	case c.Observed:
		parts = append(parts, "only observed")
	case c.Order != nil && c.Order.Waits != "":
		parts = append(parts, c.Order.Do+" waits: "+c.Order.Waits)
	case c.Order != nil && c.Order.Do == session.OrderUndo:
		parts = append(parts, "undone with the next request")
	case c.Refused.Lasting():
		parts = append(parts, "NO ANSWER, "+remedied(c.Refused, "see the agent's message"))
	case c.Order == nil && !c.Paused && c.Failing.Lasting():
		parts = append(parts, "CONDENSING FAILS, "+remedied(c.Failing, "compact in the agent, or begin a new session"))
	case c.Order == nil && !c.Paused && c.Waits != "":
		parts = append(parts, "condenses soon, waits for "+c.Waits)
	case soon(c):
		parts = append(parts, "CONDENSES WITH THE NEXT REQUEST")
	case c.Paused:
		parts = append(parts, "paused")
	case c.DueAt > 0:
		due := "condenses at " + size.Short(c.DueAt)
		if c.DueIn > 0 {
			due += fmt.Sprintf(", in ~%d", c.DueIn)
		}
		parts = append(parts, due)
	}
	if c.Undone {
		parts = append(parts, "last condensation undone")
	} else if last := lastEpoch(c, where); last != "" {
		parts = append(parts, fmt.Sprintf("condensed %d×, last %s", c.Epochs, last))
	}
	if c.Fallback != nil {
		parts = append(parts, "IN PLACE OF ANOTHER, "+c.Fallback.Said())
	}
	if c.Money != "" {
		parts = append(parts, c.Money)
	}
	return strings.Join(parts, " · ")
}

// remedied is a failure with what to do about it.
func remedied(f *session.Failing, otherwise string) string {
	return f.Said() + " → " + cmp.Or(control.Advice(f.Status), otherwise)
}

// filled is the size of a conversation, with its window.
func filled(c *control.Conversation) string {
	if c.Window <= 0 {
		return size.Short(c.Size)
	}
	return fmt.Sprintf("%s/%s %d%%", size.Short(c.Size), size.Short(c.Window), 100*c.Size/c.Window)
}

// statusProgram is the program of a status line, with its arguments. The address of a database can have a password, and other users of
// the machine can read arguments: the command reads it from the configuration, as this one did.
func statusProgram(configured, path string) ([]string, error) {
	if path == config.StoreMemory || path == "" {
		return nil, errors.New("--status: the store is memory, which another process cannot read: name a file with --store")
	}
	line, err := statusLine(configured)
	if err == nil && !store.IsPostgres(path) {
		line = append(line, "--store", path)
	}
	return line, err
}

// statusLine is statusProgram for the store of the configuration.
func statusLine(configured string) ([]string, error) {
	program, err := os.Executable()
	line := []string{program, "statusline"}
	if err == nil && configured != "" {
		configured, err = filepath.Abs(configured)
		line = append(line, "--config", configured)
	}
	return line, err
}

// shellLine is a program with its arguments for a shell.
func shellLine(args []string) string {
	return strings.Join(plain.Each(args, func(arg string) string {
		if plainWord().MatchString(arg) {
			return arg
		}
		return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}), " ")
}

var plainWord = plain.Pattern(`^[a-z-]+$`)
