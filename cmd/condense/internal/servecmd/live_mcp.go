package servecmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/internal/live/control"
	"github.com/condensehq/condense/internal/mcpserver"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/live"
)

func (l *liveFlags) mcpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Let an agent's model direct conversations: an MCP server with these commands",
		Long: `mcp is a server of the Model Context Protocol on standard input and output, with the tools list, show, now, undo, pause, resume, protect and
unprotect. It needs serve.live.mcp: true in your configuration: a model with these tools can have every conversation of the store condensed, and
read the beginnings of its messages.

Without an ID a tool means the session of Claude Code that has started the server, or the only running conversation, or the only one in this folder.`,
		Example: `  claude mcp add condense-live -- condense live mcp
  codex mcp add condense-live -- condense live mcp --admin http://127.0.0.1:8766`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return l.with(cmd, func(d desk) error {
				if !l.config.Serve().Live.MCP {
					return errors.New("the tools are off: set serve.live.mcp: true in your configuration to let models direct conversations")
				}
				ctx := cmd.Context()
				server := mcpserver.NewLive(cli.Version(), &liveTools{flags: l, cmd: cmd, desk: d})
				_, err := cli.Await(ctx, func() (struct{}, error) {
					return struct{}{}, mcpserver.Serve(ctx, server, l.app.Stdin, l.app.Stdout)
				})
				return err
			})
		},
	}
}

// liveTools answer a model's calls like the commands.
type liveTools struct {
	flags *liveFlags
	cmd   *cobra.Command
	desk  desk
}

// List describes the conversations of the last hour.
func (m *liveTools) List(ctx context.Context) (string, error) {
	all, err := m.desk.Conversations(ctx, time.Now().Add(-recent))
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "no conversation was used in the last hour", nil
	}
	return listed(all), nil
}

// one returns the conversation with an ID, or the model's own.
func (m *liveTools) one(id string) (*control.Conversation, error) {
	var args []string
	if id = strings.TrimSpace(id); id != "" {
		args = []string{id}
	}
	return m.flags.chosenOne(m.cmd, m.desk, args)
}

// Show prints the view of a conversation.
func (m *liveTools) Show(ctx context.Context, id string) (string, error) {
	c, err := m.one(id)
	if err != nil {
		return "", err
	}
	v, err := m.desk.Show(ctx, c)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	printShown(&b, v)
	return b.String(), nil
}

// Undo gives the cost of an undo or, if that is confirmed, asks for it.
func (m *liveTools) Undo(ctx context.Context, id string, confirmed bool) (string, error) {
	c, err := m.one(id)
	if err != nil {
		return "", err
	}
	p, err := m.desk.Plan(ctx, c)
	if err != nil {
		return "", fmt.Errorf("%s: %w", c.Short(), err)
	}
	if !confirmed {
		return planned(c, p) + "nothing was undone yet: call undo again with confirm if the user agrees", nil
	}
	return m.done(ctx, c, live.OrderUndo, &control.Ask{})
}

// Do performs an action.
func (m *liveTools) Do(ctx context.Context, id, action string, a *mcpserver.Action) (string, error) {
	ask := control.Ask{Profile: a.Profile, Provider: a.Provider, Text: a.Text, Message: a.Message}
	switch {
	case action == live.OrderNow:
		if err := setTarget(m.cmd, a.Target, &ask); err != nil {
			return "", err
		}
		if err := m.flags.knows(m.cmd, &ask); err != nil {
			return "", err
		}
	case strings.HasSuffix(action, "protect") && (a.Text == "") == (a.Message == 0):
		return "", errors.New("name a text, or the number of a message")
	}
	c, err := m.one(id)
	if err != nil {
		return "", err
	}
	return m.done(ctx, c, action, &ask)
}

func (m *liveTools) done(ctx context.Context, c *control.Conversation, action string, ask *control.Ask) (string, error) {
	if err := m.desk.Do(ctx, c, action, ask); err != nil {
		return "", fmt.Errorf("%s: %w", c.Short(), err)
	}
	return c.Short() + ": " + sayings[action](c), nil
}

// sayings describe the effect of each action.
var sayings = map[string]func(*control.Conversation) string{
	live.OrderNow:  func(*control.Conversation) string { return "is condensed before its next request" },
	live.OrderUndo: func(*control.Conversation) string { return "its last condensation is undone with the next request" },
	"pause": func(*control.Conversation) string {
		return "is condensed only where the vendor would refuse it, until 'condense live resume'"
	},
	"resume": func(*control.Conversation) string { return "is condensed as ever" },
	"protect": func(c *control.Conversation) string {
		return "is kept verbatim from now on; " + size.Plural(len(c.Protections), "protection")
	},
	"unprotect": func(*control.Conversation) string { return "is not protected any more" },
}
