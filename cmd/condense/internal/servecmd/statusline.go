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
	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/live/store"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/live"
)

// maxStatusInput is how much of standard input is read, in bytes. Claude Code writes about a thousand.
const maxStatusInput = 1 << 20

func statuslineCommand(a *cli.App) *cobra.Command {
	l := &liveFlags{app: a, output: "table"}
	var at statusPlace
	cmd := &cobra.Command{
		Use:   "statusline",
		Short: "Print one line about a running conversation, for a status line",
		Long: `statusline prints one line about the running conversation of an agent: its size and window, when it will be condensed, and its last condensation.
It prints nothing if there is no such conversation.

On standard input it reads the JSON that Claude Code gives its status line. Without that, it takes the conversation used last in the folder --dir,
or in this folder. 'condense wrap --status' sets it for one run.`,
		Example: `  condense wrap --status claude
  tmux set -g status-right '#(condense statusline --dir "#{pane_current_path}")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := at.read(a.Stdin); err != nil {
				return err
			}
			return l.with(cmd, func(d desk) error {
				all, err := d.Conversations(cmd.Context(), time.Now().Add(-recent))
				if err != nil {
					return err
				}
				if c := at.find(all); c != nil {
					term.Printf(a.Stdout, "%s\n", statusOf(c))
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&at.session, "session", "", "`id` that the agent gives its session")
	f.StringVar(&at.folder, "dir", "", "`folder` that the agent works in (default: this one)")
	f.StringVar(&l.store, "store", "", "`file` or database that the gateways keep their state in (default: serve.store)")
	f.StringVar(&l.admin, "admin", "", "`URL` of a gateway's own pages, in place of a store")
	return cmd
}

// A statusPlace says whose status is shown.
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

// statusOf is the status line of a conversation.
func statusOf(c *control.Conversation) string {
	parts := []string{"condense " + filled(c)}
	switch {
	case c.Observed:
		parts = append(parts, "only observed")
	case c.Order != nil && c.Order.Waits != "":
		parts = append(parts, c.Order.Do+" waits: "+c.Order.Waits)
	case c.Order != nil && c.Order.Do == live.OrderUndo:
		parts = append(parts, "undone with the next request")
	case c.Order == nil && !c.Paused && c.Waits != "":
		parts = append(parts, "condenses soon, waits for "+c.Waits)
	case c.Order != nil, !c.Paused && c.DueIn == 1:
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
	switch e := c.LastEpoch; {
	case c.Undone:
		parts = append(parts, "last condensation undone")
	case e != nil && c.Condensed:
		parts = append(parts, fmt.Sprintf("last %s→%s by %s; undo: condense live undo %s", size.Short(e.Before), size.Short(e.After), cmp.Or(c.Provider, "truncation"), c.Short()))
	}
	if c.Priced && c.Saved >= .005 { // half a cent
		parts = append(parts, "saved "+money(c))
	}
	return strings.Join(parts, " · ")
}

// filled is the size of a conversation, with its window.
func filled(c *control.Conversation) string {
	if c.Window <= 0 {
		return size.Short(c.Size)
	}
	return fmt.Sprintf("%s/%s %d%%", size.Short(c.Size), size.Short(c.Window), 100*c.Size/c.Window)
}

// statusCommandLine is the command of a status line, for a shell. The address of a database can have a password, and other users of the
// machine can read arguments: the command reads it from the configuration, as this one did.
func statusCommandLine(configured, path string) (string, error) {
	if path == config.StoreMemory || path == "" {
		return "", errors.New("--status: the store is memory, which another process cannot read: name a file with --store")
	}
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	quoted := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	line := quoted(program) + " statusline"
	if configured != "" {
		if configured, err = filepath.Abs(configured); err != nil {
			return "", err
		}
		line += " --config " + quoted(configured)
	}
	if !store.IsPostgres(path) {
		line += " --store " + quoted(path)
	}
	return line, nil
}
