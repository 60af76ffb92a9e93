package filecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/internal/mcpserver"
)

func mcpCommand(a *cli.App) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "mcp FILE",
		Short: "Let an agent recall what was condensed: an MCP server for one conversation",
		Long: `mcp is a server of the Model Context Protocol on standard input and output. An agent starts it, and its model can ask for
what is hidden in the conversation in FILE: a journal, a recording of 'condense serve --record', or a session in any other
format. The file may grow; it is read again when it changed, and never written.

The tools are recall (content by handle or message: all of it, lines, head, tail or grep), search (words, in what is hidden)
and status. They serve this file only, and the originals in FILE.history.`,
		Example: `  claude mcp add condense -- condense mcp ~/sessions/claude-1f2e.jsonl
  codex mcp add condense -- condense mcp ~/sessions/codex-1f2e.jsonl`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
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
			f := &followed{app: *a, path: args[0], format: format}
			if _, err := f.state(cmd.Context()); err != nil {
				return err
			}
			f.app.Stderr = io.Discard // what is wrong with the file was said
			_, err := cli.Await(cmd.Context(), func() (struct{}, error) {
				return struct{}{}, mcpserver.Serve(cmd.Context(), mcpserver.New(cli.Version(), f.state), a.Stdin, a.Stdout)
			})
			return err
		},
	}
	a.InputFlags(cmd, &format, nil)
	return cmd
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
	if err == nil && f.info != nil && f.last.Stale == nil && os.SameFile(info, f.info) && info.Size() == f.info.Size() && info.ModTime().Equal(f.info.ModTime()) {
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
	d, err := readOriginals(ctx, &f.app, f.path, f.format)
	if err != nil {
		return err
	}
	r := recalling{near: true}
	r.open(f.path, d)
	if err := r.readParts(); err != nil {
		return err
	}
	f.info = info
	f.last = &mcpserver.State{
		Conversation: r.conversation, Name: filepath.Base(f.path), Format: d.Format, Changed: info.ModTime(),
		Records: cli.RecordCondensations[d.Format] || d.Format == formatOriginals,
	}
	return nil
}
