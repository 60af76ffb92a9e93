package filecmd

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/hook"
	"github.com/condensehq/condense/config"
)

const (
	// hookPatience is how long an agent waits at most, and configPatience for the configuration alone.
	hookPatience   = 10 * time.Second
	configPatience = 2 * time.Second
	// hookLimit is the size in tokens above which results are cut, unless the configuration has one.
	hookLimit = 8000
)

func hookCommand(a *cli.App) *cobra.Command {
	recall := false
	var most cli.SizeFlag
	cmd := &cobra.Command{
		Use: "hook AGENT", Short: "Answer a hook of an agent: shorten a tool result before the model sees it",
		RunE: func(cmd *cobra.Command, args []string) error {
			log := slog.New(slog.NewTextHandler(a.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
			if len(args) != 1 || !slices.Contains(hook.Agents(), args[0]) {
				log.Error("condense hook: want one agent", "known", strings.Join(hook.Agents(), ", "), "got", strings.Join(args, " "))
				return nil
			}
			// However long the condensation takes, the agent goes on: this process ends, and the work in it.
			ctx, cancel := context.WithTimeout(cmd.Context(), hookPatience)
			defer cancel()
			answer, err := cli.Await(ctx, func() ([]byte, error) { return answerHook(ctx, a, args[0], recall, int(most), log) })
			if err != nil {
				log.Error("condense hook: nothing is changed", "error", err)
				return nil
			}
			_, err = a.Stdout.Write(answer)
			return err
		},
	}
	cmd.Flags().BoolVar(&recall, "recall", false, "the model can call recall: cut long results too")
	cmd.Flags().Var(&most, "max-result", "cut results of more than these `tokens` (default: serve.ingest.max_result, else 8k)")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		slog.New(slog.NewTextHandler(a.Stderr, nil)).Error("condense hook: nothing is changed", "error", err)
		return &cli.ExitError{Code: cli.ExitDone} // agents take other codes for an objection
	})
	cli.CompleteArgument(cmd, hook.Agents)
	return cmd
}

func answerHook(ctx context.Context, a *cli.App, agent string, recall bool, most int, log *slog.Logger) ([]byte, error) {
	o := &hook.Options{Lossless: true, Logger: log}
	var err error
	loading, cancel := context.WithTimeout(ctx, configPatience)
	defer cancel()
	load := a.Names() // as a gateway's: the agent is at work in a folder whose files are perhaps a stranger's
	load.Path, load.Require = a.ConfigPath, func(p config.Claim) bool { return p.Tunes }
	switch c, err := cli.Await(loading, func() (*config.Config, error) { return a.LoadToUse(load) }); {
	case err == nil:
		s := c.Serve()
		o.Lossless, o.MaxResult = s.Ingest.Lossless, s.Ingest.MaxResult
		if r, err := c.Resolve("", ""); err == nil && len(r.Ingest) > 0 {
			o.Own, err = condense.Open(ctx, &condense.Options{Strategies: a.Own, Config: c, Model: a.Model, Plugins: cli.Plugins(), Logger: log})
			if err != nil {
				log.WarnContext(ctx, "condense hook: without providers of the configuration", "error", err)
			} else {
				defer o.Own.Close()
			}
		}
	case loading.Err() != nil:
		return nil, fmt.Errorf("the configuration was not read within %s: %w", configPatience, err)
	default:
		log.WarnContext(ctx, "condense hook: without configuration", "error", err)
	}
	if most > 0 {
		o.MaxResult = most
	}
	o.MaxResult = cmp.Or(o.MaxResult, hookLimit)
	if o.Store, err = hook.NewStore(); err != nil || !recall {
		o.MaxResult = 0
	}
	o.Recall = func(ctx context.Context, session, project string, arguments []byte) ([]string, error) {
		s, err := newAgentSession(a, agent)
		if err != nil {
			return nil, err
		}
		s.id, s.project = session, project
		st, err := s.state(ctx)
		if err != nil {
			return nil, err
		}
		return st.Recall(ctx, arguments)
	}
	return hook.Answer(ctx, agent, a.Stdin, o)
}
