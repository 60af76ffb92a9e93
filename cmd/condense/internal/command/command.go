// Package command is the command line of condense: its root, its commands, and the exit codes of errors.
package command

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"io"
	"strings"

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
	"github.com/condensehq/condense/registry"
)

// Run is the program with strategies of its own in addition to the built-in ones: it executes one command and returns
// the exit code.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, own ...registry.Strategy) int {
	strategies, err := resolver.Strategies(own...)
	if err != nil {
		term.Printf(stderr, "condense: %v\n", err)
		return cli.ExitFailed
	}
	out := &term.Output{Writer: stdout}
	stdout = out
	root := root(&cli.App{Stdin: stdin, Stdout: stdout, Stderr: stderr, Strategies: strategies, Own: own})
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err = root.ExecuteContext(ctx); (err == nil || errors.Is(err, cli.ErrNothing)) && out.Err != nil {
		err = out.Err
	}
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
	var version bool
	root := &cobra.Command{
		Use: "condense", Short: "Shorten conversations with language models, losing nothing", SilenceErrors: true, SilenceUsage: true,
		Args: cli.UnknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case version:
				return term.PrintText(a.Stdout, cli.VersionText())
			case term.IsTerminal(a.Stdout):
				return guide(a, cmd)
			}
			return cmd.Help()
		},
	}
	root.SetFlagErrorFunc(cli.FlagError)
	root.Flags().BoolVarP(&version, "version", "v", false, "print the version")
	root.PersistentFlags().StringVar(&a.ConfigPath, "config", "", "configuration `file` (default: condense.yaml, upward to the root of the repository)")
	root.AddCommand(filecmd.Commands(a)...)
	root.AddCommand(comparecmd.Command(a), comparecmd.LearnCommand(a))
	root.AddCommand(servecmd.Commands(a)...)
	root.AddCommand(configcmd.Commands(a)...)
	root.AddCommand(plugincmd.Command(a), plugincmd.BuildCommand(a), a.VersionCommand(), manCommand(root))
	explain(root)
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for name := range strings.FieldsSeq(g.commands) {
			if cmd, _, err := root.Find([]string{name}); err == nil && cmd != root {
				cmd.GroupID = g.title
			}
		}
	}
	return root
}

// helpText has a section for each command that says more of itself than its name and flags do: what it does, and below "Examples:" how
// it is called.
//
//go:embed help.txt
var helpText string

// explain gives the commands their sections of the help.
func explain(root *cobra.Command) {
	for section := range strings.SplitSeq(strings.TrimPrefix(helpText, "=== "), "\n=== ") {
		name, text, _ := strings.Cut(section, "\n")
		cmd, _, err := root.Find(strings.Fields(name)[1:])
		if err != nil || cmd.CommandPath() != name {
			panic("help.txt: there is no command " + name)
		}
		long, examples, _ := strings.Cut(text, "Examples:\n")
		cmd.Long, cmd.Example = cmp.Or(cmd.Long, strings.TrimSpace(long)), strings.TrimRight(examples, "\n")
	}
}

// groups are the commands by purpose, as condense --help lists them.
var groups = []struct{ title, commands string }{
	{"Condense an agent as it works", "wrap serve agent live stats statusline token store hook mcp"},
	{"Work with recorded sessions", "inspect check run view recall search resume handoff protect undo rewind repair"},
	{"Choose, compare and switch strategies", "learn compare config providers trust"},
	{"Write a provider", "plugin build"},
}
