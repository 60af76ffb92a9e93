package filecmd

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/sessions"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/transcript"
)

func handoffCommand(a *cli.App) *cobra.Command {
	var names []string
	for _, agent := range sessions.Agents() {
		names = append(names, agent.Name)
	}
	var (
		r        = resumption{App: a}
		from, to string
		force    bool
		quiet    bool
	)
	known := strings.Join(names, ", ")
	cmd := &cobra.Command{
		Use:   "handoff --from AGENT --to AGENT [ID]",
		Short: "Go on with a session of one agent in another, condensed",
		Long: `handoff converts a session that one agent recorded into a session of another, condensed if it is due, and prints the command
with which the other agent goes on. Without ID it takes the session of the current folder that was written to last. The
session itself is not changed. Thinking and encrypted reasoning, which only the vendor that made them accepts, are left out.`,
		Example: `  condense handoff --from claude --to codex
  eval "$(condense handoff --from codex --to pi --force)"`,
		Args: func(cmd *cobra.Command, args []string) error {
			for _, x := range []struct{ flag, name string }{{"from", from}, {"to", to}} {
				if x.name == "" {
					return cli.Usage(cmd, "--%s: name an agent: %s", x.flag, known)
				}
				if !strings.Contains(" "+known+",", " "+x.name+",") {
					return cli.Usage(cmd, "--%s: no agent %q%s; there are %s", x.flag, x.name, suggest.DidYouMean(x.name, names), known)
				}
			}
			switch {
			case from == to:
				return cli.Usage(cmd, "condense resume %s goes on with a session in the same agent", from)
			case len(args) > 1:
				return cli.Usage(cmd, "want one ID; got %d", len(args))
			case len(args) == 1:
				if err := agentOf(from).CheckID(args[0]); err != nil {
					return cli.Usage(cmd, "%w", err)
				}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.find(cmd.Context(), from, args); err != nil {
				return err
			}
			defer r.session.Close()
			if force {
				r.turn.Trigger = core.TriggerManual
			}
			return r.handOff(cmd, agentOf(to), quiet)
		},
	}
	r.flags(a, cmd)
	r.chainFlags(a, cmd)
	a.LimitFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "the `agent` that recorded the session: "+known)
	f.StringVar(&to, "to", "", "the `agent` that goes on")
	f.BoolVar(&force, "force", false, "condense even if it is not due")
	f.BoolVarP(&quiet, "quiet", "q", false, "no report on standard error")
	cli.Complete(cmd, "from", names)
	cli.Complete(cmd, "to", names)
	return cmd
}

// handOff writes the session, condensed if it is due, as a session of another agent.
func (r *resumption) handOff(cmd *cobra.Command, to *sessions.Agent, quiet bool) error {
	s := r.session
	d, err := r.Read(cmd.Context(), s.Path, s.Agent.Format)
	if err != nil {
		return err
	}
	h, err := r.open(cmd.Context(), cmd, r.App)
	if err != nil {
		return err
	}
	defer h.Close()
	dir, err := r.folder()
	if err != nil {
		return err
	}
	turn, request, _ := r.selection.turn(d)
	turn.Window, turn.MaxOutput = 0, 0 // the other agent's model counts its own tokens
	turn.Trigger, turn.NoRecall, turn.Dir = r.turn.Trigger, true, dir
	report, err := manage(cmd.Context(), h, condense.ResumeConversation(d.Journal), turn, nil, !quiet)
	if report != nil && !quiet {
		printReport(r.Stderr, s.Where(), d.Format, to.Format, request, r.readers, report)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.Where(), err)
	}
	var b bytes.Buffer
	warnings, err := d.Write(&b, to.Format)
	if err != nil {
		return err
	}
	// Adopt writes the folder.
	warnings = slices.DeleteFunc(warnings, func(w transcript.Warning) bool {
		return strings.Contains(w.Text, "the directory of the session is not known")
	})
	if !quiet {
		r.Warn("left out for "+to.Title, warnings)
	}
	other, err := to.Adopt(cmd.Context(), dir, b.Bytes(), time.Now())
	if err != nil {
		return fmt.Errorf("session for %s: %w", to.Title, err)
	}
	term.Printf(r.Stderr, "session %s of %s is as it was; %s goes on with %s\n", s.ID, s.Agent.Title, to.Title, other.Where())
	r.session = other
	term.Printf(r.Stdout, "%s\n", r.command(other.ID))
	return nil
}

// folder returns the folder of the session, or the current one if it is gone.
func (r *resumption) folder() (string, error) {
	if dir, err := workingDir(r.session.Dir); r.session.Dir != "" && err == nil {
		return filepath.Abs(dir)
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", errors.New("the folder of the session is gone; go to the folder to work in")
	}
	return dir, nil
}
