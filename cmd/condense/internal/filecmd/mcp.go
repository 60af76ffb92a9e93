package filecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/internal/mcpserver"
	"github.com/condensehq/condense/internal/suggest"
)

func mcpCommand(a *cli.App) *cobra.Command {
	var format, agent string
	var all bool
	cmd := &cobra.Command{
		Use: "mcp FILE | mcp --agent NAME", Short: "Let an agent recall what was condensed: an MCP server for one conversation",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case agent != "" && !slices.Contains(served(), agent):
				return cli.Usage(cmd, "--agent: no agent %q%s; there are %s", agent, suggest.DidYouMean(agent, served()), strings.Join(served(), ", "))
			case agent != "" && len(args) > 0:
				return cli.Usage(cmd, "name a file or --agent, not both")
			case agent != "" && format != "":
				return cli.Usage(cmd, "--format is for a file; the format of an agent's sessions is known")
			case agent != "":
				return nil
			case len(args) == 0:
				return cli.Usage(cmd, "no file; name the conversation that the agent may recall: a journal, a recording of 'condense serve --record', or a session's file")
			case len(args) > 1:
				return cli.Usage(cmd, "want one file; got %d", len(args))
			case args[0] == "-":
				return cli.Usage(cmd, "standard input is for the agent; name a file")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if agent != "" {
				s, err := newAgentSession(a, agent)
				if err != nil {
					return err
				}
				return serveMCP(cmd.Context(), a, s.state, all)
			}
			f := &followed{app: *a, path: args[0], format: format}
			if _, err := f.state(cmd.Context()); err != nil {
				return err
			}
			f.app.Stderr = io.Discard // the file's faults were already reported
			return serveMCP(cmd.Context(), a, f.state, all)
		},
	}
	a.InputFlags(cmd, &format, nil)
	cmd.Flags().StringVar(&agent, "agent", "", "serve the session of the agent that starts this: `name` "+strings.Join(served(), ", "))
	cmd.Flags().BoolVar(&all, "sessions", false, "also offer search_sessions: all sessions in the index of 'condense search --index'")
	cli.Complete(cmd, "agent", served())
	return cmd
}

// serveMCP serves until the agent ends.
func serveMCP(ctx context.Context, a *cli.App, state func(context.Context) (*mcpserver.State, error), all bool) error {
	s := mcpserver.New(cli.Version(), state)
	if all {
		mcpserver.AddSessions(s, searchedSessions)
	}
	_, err := cli.Await(ctx, func() (struct{}, error) { return struct{}{}, mcpserver.Serve(ctx, s, a.Stdin, a.Stdout) })
	return err
}

// followed is a file that is read again when it changed.
type followed struct {
	app          cli.App
	path, format string

	mu   sync.Mutex
	info fs.FileInfo // at the last attempt to read it
	last *mcpserver.State
}

// state returns the conversation as the file has it now. If it cannot be read, because a program is
// about to write it, the state before is returned.
func (f *followed) state(ctx context.Context) (*mcpserver.State, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: want a regular file, which can be read again when it changes", f.path)
	}
	if err == nil && f.info != nil && f.last.Stale == nil &&
		os.SameFile(info, f.info) && info.Size() == f.info.Size() && info.ModTime().Equal(f.info.ModTime()) {
		return f.last, nil
	}
	if err == nil {
		err = f.read(ctx, info)
	}
	if err == nil {
		return f.last, nil
	}
	if f.last == nil || ctx.Err() != nil {
		return nil, err
	}
	stale := *f.last
	stale.Stale = errors.New("it is missing, incomplete or damaged")
	f.last = &stale
	return f.last, nil
}

func (f *followed) read(ctx context.Context, info fs.FileInfo) error {
	r := recalling{near: true}
	if err := r.read(ctx, &f.app, f.path, f.format); err != nil {
		return err
	}
	if err := r.readParts(); err != nil {
		return err
	}
	f.info = info
	f.last = &mcpserver.State{
		Conversation: r.conversation, Name: filepath.Base(f.path), Format: r.format, Changed: info.ModTime(),
		Records: cli.RecordCondensations[r.format] || r.format == formatOriginals,
	}
	return nil
}
