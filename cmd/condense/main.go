// Command condense shortens recorded conversations between people, language models and
// their tools, and shows what it did and why.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/comparecmd"
	"github.com/condensehq/condense/cmd/condense/internal/configcmd"
	"github.com/condensehq/condense/cmd/condense/internal/filecmd"
	"github.com/condensehq/condense/cmd/condense/internal/plugincmd"
	"github.com/condensehq/condense/cmd/condense/internal/servecmd"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/internal/resolver"
)

// run is the program: it executes one command and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	strategies, err := resolver.Strategies()
	if err != nil {
		term.Printf(stderr, "condense: %v\n", err)
		return cli.ExitFailed
	}
	root := root(&cli.App{Stdin: stdin, Stdout: stdout, Stderr: stderr, Strategies: strategies})
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err = root.ExecuteContext(ctx)
	exit := (*cli.ExitError)(nil)
	switch usage := (*cli.UsageError)(nil); {
	case err == nil:
		return cli.ExitDone
	case errors.As(err, &exit):
		return exit.Code
	case errors.Is(err, cli.ErrNothing):
		if errors.As(err, new(cli.NothingError)) {
			term.Printf(stderr, "condense: %v\n", err)
		}
		return cli.ExitNothing
	case errors.As(err, &usage):
		term.Printf(stderr, "condense: %v\n", err)
		if usage.Command != "" {
			term.Printf(stderr, "Try '%s --help'.\n", usage.Command)
		}
		return cli.ExitUsage
	case errors.As(err, new(config.Errors)):
		term.Printf(stderr, "condense: invalid configuration:\n%v\n", err)
		return cli.ExitUsage
	case errors.As(err, new(*config.UntrustedError)):
		term.Printf(stderr, "condense: %v\n", err)
		return cli.ExitUsage
	default:
		term.Printf(stderr, "condense: %v\n", err)
		return cli.ExitFailed
	}
}

func root(a *cli.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "condense",
		Short: "Shorten conversations with language models, losing nothing",
		Long: `condense shortens recorded conversations between users, language models and their tools, so that the work can go
on when the context window is nearly full. It reads and writes the files of other tools. Only providers that call a
language model need a key and a network; they report the cost first.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cli.UnknownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(cli.FlagError)
	root.Version = cli.Version() + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	root.SetVersionTemplate("condense {{.Version}}\n")
	root.PersistentFlags().StringVar(&a.ConfigPath, "config", "", "configuration `file` (default: condense.yaml, upward to the root of the repository)")
	root.AddCommand(filecmd.Commands(a)...)
	root.AddCommand(comparecmd.Command(a), comparecmd.LearnCommand(a))
	root.AddCommand(servecmd.Commands(a)...)
	root.AddCommand(configcmd.Commands(a)...)
	root.AddCommand(plugincmd.Command(a), a.VersionCommand())
	return root
}

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	ctx, limit := cli.WithCleanup(ctx)
	caught := endOnSignal(cancel, limit)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	if n := caught(); n != 0 && code == cli.ExitFailed {
		code = n
	}
	os.Exit(code)
}

// endOnSignal makes the first SIGINT or SIGTERM cancel the command. A second signal ends the
// process at once, as does a command that runs longer than limit allows: files are written under
// another name first, so no half file remains. The returned function gives the exit code of the
// caught signal, 128 plus its number as in a shell, or 0 if there was none.
func endOnSignal(cancel context.CancelCauseFunc, limit func() time.Duration) func() int {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	codes := make(chan int, 1)
	go func() {
		s := <-signals
		code := signalCode(s)
		codes <- code
		cancel(received{s})
		select {
		case s := <-signals:
			code = signalCode(s)
		case <-time.After(limit()):
		}
		os.Exit(code)
	}()
	return func() int {
		select {
		case code := <-codes:
			return code
		default:
			return 0
		}
	}
}

// A received signal is the cause of the end of a context, as with signal.NotifyContext.
type received struct{ signal os.Signal }

func (r received) Error() string { return r.signal.String() + " signal received" }

func (r received) Is(target error) bool { return target == context.Canceled }

func signalCode(s os.Signal) int {
	if n, ok := s.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return cli.ExitFailed
}
