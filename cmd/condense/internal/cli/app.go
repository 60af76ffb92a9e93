// Package cli is shared by the commands: the program's streams and flags, usage errors, reading and writing
// conversations, and the configuration.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/registry"
)

// The exit codes.
const (
	ExitDone    = 0
	ExitFailed  = 1
	ExitUsage   = 2 // wrong arguments or flags, or an invalid configuration
	ExitNothing = 3 // check, run, undo: nothing to do; the output is written anyway
)

// ErrNothing ends a command that found nothing to do and has reported it.
var ErrNothing = errors.New("nothing to do")

// A NothingError is an [ErrNothing] with a reason to print.
type NothingError string

func (n NothingError) Error() string { return string(n) }

// Is reports whether target is [ErrNothing].
func (n NothingError) Is(target error) bool { return target == ErrNothing }

// A UsageError reports wrong arguments or flags.
type UsageError struct {
	Command string // the command whose help applies
	err     error
}

func (e *UsageError) Error() string { return e.err.Error() }

func (e *UsageError) Unwrap() error { return e.err }

// An ExitError ends the program with an exit code and no further message.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return "exit code " + strconv.Itoa(e.Code) }

// Usage returns a usage error of a command.
func Usage(cmd *cobra.Command, format string, args ...any) error {
	return &UsageError{cmd.CommandPath(), fmt.Errorf(format, args...)}
}

// An App holds the state that commands share.
type App struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Strategies     *registry.Registry  // the program's strategies
	Own            []registry.Strategy // Strategies without the built-in ones
	ConfigPath     string              // --config
	Model          string              // --model: for providers that name none

	maxInput SizeFlag        // of a transcript, in bytes
	reported map[string]bool // digests of untrusted claims that were already reported
}

// UnknownCommand reports an argument that is no subcommand of cmd.
func UnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	names := plain.Each(cmd.Commands(), (*cobra.Command).Name)
	return Usage(cmd, "unknown command %q%s", args[0], suggest.DidYouMean(args[0], names))
}

// FlagError reports an invalid flag and suggests the one that was probably meant.
func FlagError(cmd *cobra.Command, err error) error {
	text := err.Error()
	if invalid := (*pflag.InvalidValueError)(nil); errors.As(err, &invalid) {
		return Usage(cmd, "--%s: %q: %w", invalid.GetFlag().Name, invalid.GetValue(), invalid.Unwrap())
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

// Group returns a command that only has commands below it.
func Group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: UnknownCommand, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(commands...)
	return cmd
}

// Agree asks the user about what was printed, unless yes.
func (a *App) Agree(cmd *cobra.Command, yes bool, question string) error {
	switch {
	case yes:
		return nil
	case !term.IsTerminal(a.Stdin):
		return Usage(cmd, "there is no terminal to ask on: read the above, and agree with --yes")
	case !term.Confirm(a.Stdin, a.Stderr, question):
		return errors.New("not agreed; nothing changed")
	}
	return nil
}

// NoArguments refuses arguments; hint suggests another command line.
func NoArguments(hint string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return Usage(cmd, "unexpected argument %q; %s", args[0], hint)
		}
		return nil
	}
}

// Arguments refuses fewer or more arguments; most is -1 for any number. In text %d stands for the number given.
func Arguments(least, most int, text string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if n := len(args); n < least || most >= 0 && n > most {
			return Usage(cmd, "%s", strings.ReplaceAll(text, "%d", strconv.Itoa(n)))
		}
		return nil
	}
}

// cleanupTime is how long a command may usually take to end after a signal, to stop plugins and to
// remove unfinished files.
const cleanupTime = 5 * time.Second

type cleanupKey struct{}

// WithCleanup returns a context through which a command can ask for more time to end; limit returns
// that time.
func WithCleanup(ctx context.Context) (in context.Context, limit func() time.Duration) {
	asked := new(atomic.Int64)
	asked.Store(int64(cleanupTime))
	return context.WithValue(ctx, cleanupKey{}, asked), func() time.Duration { return time.Duration(asked.Load()) }
}

// EndWithin asks for this time to end after a signal.
func EndWithin(ctx context.Context, limit time.Duration) {
	if asked, ok := ctx.Value(cleanupKey{}).(*atomic.Int64); ok {
		asked.Store(int64(limit))
	}
}

// VersionCommand returns condense version.
func (a *App) VersionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: NoArguments("version takes none"),
		RunE: func(*cobra.Command, []string) error { return term.PrintText(a.Stdout, VersionText()) },
	}
}

// version is set by the linker where the go command cannot know it, as in a build from an archive of the sources:
// -ldflags "-X github.com/condensehq/condense/cmd/condense/internal/cli.version=v1.2.3".
var version string

// with is set by 'condense build': the modules that were built in, each with its version, separated by commas.
var with string

// module is the module of this package.
const module = "github.com/condensehq/condense"

// Version returns the version of condense that the linker or the go command recorded in the program.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	switch {
	case !ok:
		return "(devel)"
	case info.Main.Path == module && info.Main.Version != "":
		return info.Main.Version
	}
	// In a program with strategies of its own, condense is a dependency.
	i := slices.IndexFunc(info.Deps, func(m *debug.Module) bool { return m.Path == module && m.Replace == nil })
	if i < 0 {
		return "(devel)"
	}
	return info.Deps[i].Version
}

// origins are parts of the paths to which package managers install programs.
var origins = [][2]string{{"node_modules", "npm"}, {"Cellar", "Homebrew"}}

// origin says who built and installed the program at path.
func origin(path string) string {
	for _, o := range origins {
		if slices.Contains(strings.Split(filepath.ToSlash(path), "/"), o[0]) {
			return o[1]
		}
	}
	info, ok := debug.ReadBuildInfo()
	switch {
	case with != "":
		return "condense build"
	case version != "":
		return "a release"
	case !ok || info.Main.Path != module:
		return "a program that contains it"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "a checkout, commit " + s.Value
		}
	}
	if info.Main.Sum != "" { // of a module that the go command downloaded
		return "go install"
	}
	return "a folder with its sources"
}

// VersionText returns the versions of condense and of its modules and where the program comes from, in lines.
func VersionText() string {
	var text strings.Builder
	fmt.Fprintf(&text, "condense %s %s %s/%s\n", Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	if path, err := os.Executable(); err == nil {
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			path = resolved
		}
		fmt.Fprintf(&text, "  %s, from %s\n", path, origin(path))
	}
	for m := range strings.SplitSeq(with, ",") {
		if m != "" {
			fmt.Fprintf(&text, "  with %s\n", strings.Replace(m, "@", " ", 1))
		}
	}
	return text.String()
}
