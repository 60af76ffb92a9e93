package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/registry"

	"github.com/condensehq/condense/internal/plugins"
	"github.com/condensehq/condense/internal/resolver"
)

// The exit codes.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2 // the command was used wrongly, or its configuration is invalid
	exitNothing = 3 // check, run, undo: there is nothing to do; the output is written all the same
)

// run is the program: it executes one command and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	switch usage := (*usageError)(nil); {
	case err == nil:
		return exitDone
	case errors.Is(err, errNothing):
		if errors.As(err, new(nothing)) {
			printf(stderr, "condense: %v\n", err)
		}
		return exitNothing
	case errors.As(err, &usage):
		printf(stderr, "condense: %v\n", err)
		if usage.command != "" {
			printf(stderr, "Try '%s --help'.\n", usage.command)
		}
		return exitUsage
	case errors.As(err, new(config.Errors)):
		printf(stderr, "condense: invalid configuration:\n%v\n", err)
		return exitUsage
	default:
		printf(stderr, "condense: %v\n", err)
		return exitFailed
	}
}

// errNothing ends a command that found nothing to do and has said so.
var errNothing = errors.New("nothing to do")

// A nothing is an errNothing that says why.
type nothing string

func (n nothing) Error() string        { return string(n) }
func (n nothing) Is(target error) bool { return target == errNothing }

// A usageError says that a command was used wrongly.
type usageError struct {
	command string // whose help to point at
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usage(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{cmd.CommandPath(), fmt.Errorf(format, args...)}
}

// An app is what the commands share.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	configPath     string
	model          string          // for providers that name none
	maxInput       sizeFlag        // of a transcript
	untrusted      map[string]bool // digests of the claims that were said to be skipped
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "condense",
		Short: "Shorten conversations with language models, losing nothing",
		Long: `condense shortens recorded conversations between people, language models and their tools, so that the
work can go on when the context window is nearly full. It reads and writes the files of other tools. Only
providers that ask a language model need a key and a network, and say before what that would cost.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          unknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	root.Version = version() + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	root.SetVersionTemplate("condense {{.Version}}\n")
	root.PersistentFlags().StringVar(&a.configPath, "config", "", "configuration `file` (default: condense.yaml, upward to the root of the repository)")
	root.AddCommand(
		a.runCommand(), a.checkCommand(), a.viewCommand(), a.inspectCommand(),
		a.rewindCommand(), a.undoCommand(), a.recallCommand(), a.protectCommand(), a.repairCommand(), a.compareCommand(), a.providersCommand(), a.configCommand(), a.trustCommand(), a.pluginCommand(), a.versionCommand(),
	)
	return root
}

// unknownCommand reports an argument that names no command beneath cmd.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return usage(cmd, "unknown command %q%s", args[0], suggest.DidYouMean(args[0], names))
}

// flagError says what is wrong with a flag, and which one was probably meant.
func flagError(cmd *cobra.Command, err error) error {
	text := err.Error()
	if invalid := (*pflag.InvalidValueError)(nil); errors.As(err, &invalid) {
		cause := invalid.Unwrap()
		if errors.Is(cause, strconv.ErrSyntax) || errors.Is(cause, strconv.ErrRange) {
			cause = errors.New("want a number") // Go's words are about functions
		}
		return usage(cmd, "--%s: %q: %w", invalid.GetFlag().Name, invalid.GetValue(), cause)
	}
	if name, ok := strings.CutPrefix(text, "unknown flag: --"); ok {
		return usage(cmd, "unknown flag --%s%s", name, suggest.DidYouMean(name, flagNames(cmd)))
	}
	return usage(cmd, "%s", text)
}

func flagNames(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// registry returns the strategies that the program knows.
func (a *app) registry() (*registry.Registry, error) {
	return resolver.Strategies()
}

// load reads the configuration, and says which parts of it are not used for want of trust.
// The built-in strategies can be named in chains as they are.
func (a *app) load(reg *registry.Registry) (*config.Config, error) {
	return a.loadFile(reg, a.configPath)
}

// loadFile is load for a file that was named; empty means those that are found.
func (a *app) loadFile(reg *registry.Registry, file string) (*config.Config, error) {
	opts := a.knownNames(reg)
	opts.Path = file
	c, err := config.Load(opts)
	if err != nil {
		return nil, err
	}
	a.sayUntrusted(c)
	declared, err := plugins.Declared(c)
	if err != nil {
		return nil, err
	}
	a.sayOldLocks(declared)
	return c, nil
}
