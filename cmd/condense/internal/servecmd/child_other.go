//go:build !unix

package servecmd

import (
	"fmt"
	"os"
	"os/signal"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
)

// ownedByUser reports whether a file belongs to the user of this process: the temporary folder is the user's own.
func ownedByUser(os.FileInfo) bool { return true }

// runChild runs a program with the standard streams of this process and returns its exit code. The console sends
// Ctrl-C to both; the program decides on its meaning.
func runChild(program string, argv, env []string, a *cli.App) (int, error) {
	files, err := streams(a)
	if err != nil {
		return 0, err
	}
	signal.Reset(os.Interrupt)
	received := make(chan os.Signal, 1)
	signal.Notify(received, os.Interrupt)
	defer signal.Stop(received)
	child, err := os.StartProcess(program, argv, &os.ProcAttr{Env: env, Files: files})
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", program, cli.Cause(err))
	}
	state, err := child.Wait()
	if err != nil {
		return 0, err
	}
	return state.ExitCode(), nil
}
