// Package cli is what the commands share: the streams and flags of the program, the errors of
// wrong use, reading and writing of conversations, and the configuration.
package cli

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/suggest"
)

// The exit codes.
const (
	ExitDone    = 0
	ExitFailed  = 1
	ExitUsage   = 2 // the command was used wrongly, or its configuration is invalid
	ExitNothing = 3 // check, run, undo: there is nothing to do; the output is written all the same
)

// ErrNothing ends a command that found nothing to do and has said so.
var ErrNothing = errors.New("nothing to do")

// A Nothing is an errNothing that says why.
type Nothing string

func (n Nothing) Error() string { return string(n) }

func (n Nothing) Is(target error) bool { return target == ErrNothing }

// A UsageError says that a command was used wrongly.
type UsageError struct {
	Command string // whose help to point at
	err     error
}

func (e *UsageError) Error() string { return e.err.Error() }

func (e *UsageError) Unwrap() error { return e.err }

func Usage(cmd *cobra.Command, format string, args ...any) error {
	return &UsageError{cmd.CommandPath(), fmt.Errorf(format, args...)}
}

// An App is what the commands share.
type App struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	ConfigPath     string
	Model          string          // for providers that name none
	maxInput       SizeFlag        // of a transcript
	untrusted      map[string]bool // digests of the claims that were said to be skipped
}

// UnknownCommand reports an argument that names no command beneath cmd.
func UnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return Usage(cmd, "unknown command %q%s", args[0], suggest.DidYouMean(args[0], names))
}

// FlagError says what is wrong with a flag, and which one was probably meant.
func FlagError(cmd *cobra.Command, err error) error {
	text := err.Error()
	if invalid := (*pflag.InvalidValueError)(nil); errors.As(err, &invalid) {
		cause := invalid.Unwrap()
		if errors.Is(cause, strconv.ErrSyntax) || errors.Is(cause, strconv.ErrRange) {
			cause = errors.New("want a number") // Go's words are about functions
		}
		return Usage(cmd, "--%s: %q: %w", invalid.GetFlag().Name, invalid.GetValue(), cause)
	}
	if name, ok := strings.CutPrefix(text, "unknown flag: --"); ok {
		return Usage(cmd, "unknown flag --%s%s", name, suggest.DidYouMean(name, flagNames(cmd)))
	}
	return Usage(cmd, "%s", text)
}

func flagNames(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// NoArguments refuses any; what is the usual guess at what they were meant for.
func NoArguments(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return Usage(cmd, "unexpected argument %q; %s", args[0], what)
		}
		return nil
	}
}

func (a *App) VersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			term.Printf(a.Stdout, "condense %s %s %s/%s\n", Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}

// Version is what the go command recorded when it built the program.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// noArgs is cobra.NoArgs with an error that says what to do.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usage(cmd, "%s takes no arguments; got %q", cmd.CommandPath(), args[0])
	}
	return nil
}
