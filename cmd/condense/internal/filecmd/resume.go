package filecmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/sessions"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/policy"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/transcript"
)

func resumeCommand(a *cli.App) *cobra.Command {
	names, r := agentNames(true), resumption{App: a}
	var show bool
	cmd := &cobra.Command{
		Use: "resume " + strings.Join(names, "|") + " [ID]", Short: "Go on with a recorded session of an agent, condensed",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return cli.Usage(cmd, "no agent; name one of %s", strings.Join(names, ", "))
			case !slices.Contains(names, args[0]):
				return cli.Usage(cmd, "sessions of %q cannot be resumed; there are %s%s", args[0], strings.Join(names, ", "), suggest.DidYouMean(args[0], names))
			}
			return checkID(cmd, args[0], args[1:])
		},
		RunE: func(cmd *cobra.Command, args []string) error { return r.start(cmd, args[0], args[0], args[1:], show) },
	}
	f := r.newFlags(cmd)
	f.StringVar(&r.turn.Instructions, "instructions", "", "`text` with your instructions, for providers that use it")
	f.BoolVar(&show, "print", false, "show what would be done, and write nothing")
	cli.CompleteArgument(cmd, func() []string { return names })
	return cmd
}

// A resumption is a session that is to be condensed for its agent.
type resumption struct {
	*cli.App
	selection
	session      *sessions.Session
	turn         condense.Turn // from the flags
	force, quiet bool
}

// newFlags adds the flags of a new session.
func (r *resumption) newFlags(cmd *cobra.Command) *pflag.FlagSet {
	r.flags(r.App, cmd)
	r.chainFlags(r.App, cmd)
	r.LimitFlag(cmd)
	f := cmd.Flags()
	f.BoolVar(&r.force, "force", false, "condense even if it is not due")
	f.BoolVarP(&r.quiet, "quiet", "q", false, "no report on standard error")
	return f
}

// start makes a new session for an agent, from one of the same or of another agent.
func (r *resumption) start(cmd *cobra.Command, from, to string, id []string, show bool) error {
	if err := r.find(cmd.Context(), from, id); err != nil {
		return err
	}
	defer r.session.Close()
	if r.force {
		r.turn.Trigger = core.TriggerManual
	}
	return r.do(cmd, agentOf(to), show, r.quiet)
}

// checkID checks the arguments that may name a session of an agent.
func checkID(cmd *cobra.Command, agent string, ids []string) error {
	if len(ids) > 1 {
		return cli.Usage(cmd, "want one ID; got %d", len(ids))
	}
	for _, id := range ids {
		if err := agentOf(agent).CheckID(id); err != nil {
			return cli.Usage(cmd, "%w", err)
		}
	}
	return nil
}

// agentNames returns the agents whose sessions are found; made are those for which sessions are made too.
func agentNames(made bool) (names []string) {
	return plain.Each(plain.Only(sessions.Agents(), func(agent *sessions.Agent) bool { return !made || !agent.ReadOnly }),
		func(agent *sessions.Agent) string { return agent.Name })
}

// agentOf returns the named agent.
func agentOf(name string) *sessions.Agent {
	all := sessions.Agents()
	return all[slices.IndexFunc(all, func(a *sessions.Agent) bool { return a.Name == name })]
}

// find finds the session of the named agent: with an ID, or the newest of the current folder.
func (r *resumption) find(ctx context.Context, name string, id []string) (err error) {
	agent := agentOf(name)
	if len(id) > 0 {
		r.session, err = agent.Find(ctx, id[0])
		return err
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	r.session, err = agent.Newest(ctx, here)
	if errors.Is(err, sessions.ErrNone) {
		err = fmt.Errorf("%w; name a session by its ID, or go to its folder", err)
	}
	return err
}

// do condenses a copy for an agent: the session's own, or another one.
func (r *resumption) do(cmd *cobra.Command, to *sessions.Agent, show, quiet bool) error {
	s, other := r.session, to != r.session.Agent
	d, err := r.Read(cmd.Context(), s.Path, s.Agent.Format)
	if err != nil {
		return err
	}
	w, err := wholeOf(s.Beside, d.Journal)
	if err != nil {
		return err
	}
	var waiting *wait
	if !quiet {
		waiting = r.watch(r.App, s.Where())
	}
	h, err := r.open(cmd.Context(), cmd, r.App)
	if err != nil {
		return err
	}
	defer h.Close()
	turn, request, vendor := r.selection.turn(d)
	turn.Instructions, turn.Estimate, turn.Trigger = r.turn.Instructions, !quiet, r.turn.Trigger
	turn.Dir, _ = workingDir(s.Dir) // it may be gone
	turn.Numbers = w.numbers(d.Journal.View())
	made, err := s.Copy(time.Now())
	if other {
		turn.Window, turn.MaxOutput, vendor = 0, 0, nil // the other agent's model counts its own tokens
		if turn.Dir, err = filepath.Abs(turn.Dir); err == nil {
			made, err = to.New(turn.Dir, time.Now())
		}
	}
	if err != nil {
		return err
	}
	c := condense.ResumeConversation(d.Journal)
	c.KeepOriginals(originalsDir(made.Path))
	if show {
		return r.show(cmd, h, c, turn, request, vendor, made)
	}
	report, err := manage(waiting.listen(cmd.Context()), h, c, turn, vendor, !quiet)
	if report != nil && !quiet {
		printReport(r.Stderr, s.Where(), d.Format, to.Format, request, r.readers, report)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", s.Where(), err)
	case !other && !report.Acted:
		return r.unchanged(report.Decision)
	}
	return r.write(cmd.Context(), d, w, made, quiet)
}

// show prints the planned changes.
func (r *resumption) show(cmd *cobra.Command, h *condense.Host, c *condense.Conversation, turn condense.Turn, request string, vendor *vendorCount,
	copied *sessions.Session,
) error {
	l := checkListing{File: r.session.Where(), Request: request, Vendor: vendor, Reads: r.readers}
	if err := l.check(cmd.Context(), h, c, turn); err != nil {
		return err
	}
	printDecision(r.Stderr, &l)
	if err := l.Err(); err != nil {
		return fmt.Errorf("%s: %w", l.File, err)
	}
	if !l.Act {
		return r.unchanged(l.Reason)
	}
	term.Printf(r.Stderr, "a condensed copy would be written, with a new ID, as in\n  %s\nand the command to go on would be, with that ID,\n", copied.Where())
	term.Printf(r.Stderr, "  %s\n", commandOf(copied))
	return nil
}

// unchanged prints the command for the session itself.
func (r *resumption) unchanged(why policy.Reason) error {
	term.Printf(r.Stdout, "%s\n", commandOf(r.session))
	text := "nothing was condensed; --force condenses a copy that is not due"
	switch {
	case why == policy.ReasonNothingNew:
		text = fmt.Sprintf("nothing was said since it was last condensed, by condense or by %s itself (as with /compact)", r.session.Agent.Title)
	case r.turn.Trigger == core.TriggerManual:
		text = "nothing of it can be removed, with --force neither"
	}
	return cli.NothingError(fmt.Sprintf("session %s goes on as it is: %s", r.session.ID, text))
}

// write writes the new session and, before it, the whole that its view promises, and prints the command to go on.
func (r *resumption) write(ctx context.Context, d *transcript.Document, w *whole, made *sessions.Session, quiet bool) error {
	s, to, named := r.session, made.Agent, made.Path
	var b bytes.Buffer
	warnings, err := d.Write(&b, to.Format)
	if err != nil {
		return err
	}
	promised := w.ids != nil || len(d.Journal.Condensations()) > 0
	if promised {
		if err := w.keep(d.Journal, made.Path); err != nil {
			return fmt.Errorf("keep the conversation beside %s: %w", made.Path, err)
		}
	}
	done := fmt.Sprintf("session %s is as it was; its copy is %s", s.ID, made.Where())
	if to == s.Agent {
		r.Warn(made.Where(), warnings)
		err = s.Write(ctx, made, b.Bytes())
	} else {
		warnings = slices.DeleteFunc(warnings, func(w transcript.Warning) bool { // Adopt writes the folder
			return quiet || strings.Contains(w.Text, "the directory of the session is not known")
		})
		r.Warn("left out for "+to.Title, warnings)
		err = made.Adopt(ctx, b.Bytes())
		done = fmt.Sprintf("session %s of %s is as it was; %s goes on with %s", s.ID, s.Agent.Title, to.Title, made.Where())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write the session for %s: %w", to.Title, err), os.RemoveAll(originalsDir(made.Path)))
	}
	if !to.InFiles() {
		named = made.ID
	}
	term.Printf(r.Stderr, "%s\n", done)
	if promised && !quiet {
		term.Printf(r.Stderr, "its numbers: condense recall %s m12; %s itself recalls under condense wrap, or by the MCP server: condense mcp --agent %s\n", named, to.Title, to.Name)
	}
	term.Printf(r.Stdout, "%s\n", commandOf(made))
	return nil
}

// commandOf returns the command to go on with a session, from here.
func commandOf(s *sessions.Session) string {
	command := s.Command()
	here, err := os.Stat(".")
	there, missing := os.Stat(s.Dir)
	if s.Dir != "" && err == nil && missing == nil && !os.SameFile(here, there) {
		command = "cd '" + strings.ReplaceAll(s.Dir, "'", `'\''`) + "' && " + command
	}
	return command
}
