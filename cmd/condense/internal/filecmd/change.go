package filecmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/transcript"
)

// recordProtections are the formats that record protection.
var recordProtections = map[string]bool{"condense": true}

func protectCommand(a *cli.App) *cobra.Command {
	var off bool
	c := change{Rewriting: cli.Rewriting{Keeps: plain.Set(cli.FormatNames())}} // the command refuses formats that lose it
	cmd := &cobra.Command{
		Use: "protect FILE|- MESSAGE...", Short: "Keep messages verbatim",
		Args: cli.Arguments(2, -1, "want a file and the messages to protect"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.apply(a, cmd, args[0], func(d *transcript.Document) error {
				if !recordProtections[d.Format] {
					return cli.Usage(cmd, "the format %s cannot record that a message is protected; 'condense run --to condense' makes a journal, which can",
						d.Format)
				}
				return protect(a, d, args[1:], !off)
			})
		},
	}
	c.flags(a, cmd)
	cmd.Flags().BoolVar(&off, "off", false, "end the protection")
	return cmd
}

// protect protects the named messages, or ends their protection. If one name is unknown it changes
// nothing.
func protect(a *cli.App, d *transcript.Document, names []string, on bool) error {
	ids := make([]string, len(names))
	for i, name := range names {
		id, err := messageNamed(d.Journal, name)
		if err != nil {
			return err
		}
		ids[i] = id
	}
	timeline := d.Journal.Timeline()
	at := plain.Index(timeline, func(e history.Entry) string { return e.Message.ID })
	for _, id := range ids {
		state := "is protected"
		if !on {
			state = "is no longer protected"
		}
		if timeline[at[id]].Message.Protected != on {
			if err := d.Journal.Protect(on, id); err != nil {
				return err
			}
		}
		if by := timeline[at[id]].HiddenBy; len(by) > 0 {
			state += ", and stays hidden by condensation " + by[len(by)-1] + " until that is undone"
		}
		term.Printf(a.Stderr, "message %s %s\n", id, state)
	}
	return nil
}

func repairCommand(a *cli.App) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "repair FILE|- -o NEW", Short: "Recover a damaged journal", Args: cli.OneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cli.SameFile(args[0], out) {
				return cli.Usage(cmd, "--output: %s is the damaged journal; name another file", out)
			}
			o, err := a.Output(out, args[0])
			if err != nil {
				return err
			}
			defer o.Close()
			return repair(cmd.Context(), a, args[0], o)
		},
	}
	a.LimitFlag(cmd)
	cmd.Flags().StringVarP(&out, "output", "o", "", "`file` to write to (default: standard output)")
	return cmd
}

// repair writes the readable records of a journal.
func repair(ctx context.Context, a *cli.App, path string, o *cli.Output) error {
	opts := a.ReadOptions(path, "")
	data, err := cli.Input(ctx, a, path, func(r io.Reader) ([]byte, error) { return transcript.ReadAll(r, opts.MaxBytes) })
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	j, faults, err := history.Repair(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, f := range faults {
		term.Printf(a.Stderr, "%s: %v\n", path, f)
	}
	term.Printf(a.Stderr, "%s: %s and %s recovered, %s damaged\n", path,
		size.Plural(len(j.Messages()), "message"), size.Plural(len(j.Condensations()), "condensation"), size.Plural(len(faults), "line"))
	var b bytes.Buffer
	if err := history.Encode(&b, j); err != nil {
		return err
	}
	if err := o.Write(b.Bytes()); err != nil {
		return err
	}
	if len(faults) == 0 {
		return cli.ErrNothing
	}
	return nil
}

// A change is a command that changes the view of a conversation.
type change struct {
	cli.Rewriting

	inPlace bool
}

func (c *change) flags(a *cli.App, cmd *cobra.Command) {
	a.InputFlags(cmd, &c.Format, nil)
	cmd.Flags().StringVarP(&c.Out, "output", "o", "", "`file` to write to (default: standard output)")
	cmd.Flags().BoolVarP(&c.inPlace, "in-place", "i", false, "change the file itself")
	cmd.MarkFlagsMutuallyExclusive("output", "in-place")
	c.Flags(cmd)
}

// apply reads the file, changes its journal, and writes it.
func (c *change) apply(a *cli.App, cmd *cobra.Command, path string, do func(*transcript.Document) error) error {
	if c.inPlace && path == "-" {
		return cli.Usage(cmd, "--in-place: standard input cannot be changed in place")
	}
	c.In = path
	if c.inPlace {
		c.Out = path
	}
	defer c.Close()
	if err := c.Open(a, cmd); err != nil {
		return err
	}
	done := do(c.Document)
	if done != nil {
		done = fmt.Errorf("%s: %w", path, done)
	}
	// The output is written even if there is nothing to change: scripts expect it.
	if done != nil && (c.inPlace || !errors.Is(done, cli.ErrNothing)) {
		return done
	}
	if err := c.Finish(a); err != nil {
		return err
	}
	return done
}

func rewindCommand(a *cli.App) *cobra.Command {
	var (
		c  = change{Rewriting: cli.Rewriting{Keeps: cli.RecordRewinds, Lost: "what the rewind drops"}}
		to string
	)
	cmd := &cobra.Command{
		Use: "rewind --to ID|INDEX FILE|-", Short: "Go back to a message of a conversation", Args: cli.OneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if to == "" {
				return cli.Usage(cmd, "--to: name the message to go back to")
			}
			return c.apply(a, cmd, args[0], func(d *transcript.Document) error {
				id, err := messageNamed(d.Journal, to)
				if err != nil {
					return err
				}
				before := d.Journal.Len()
				if err := d.Journal.Rewind(id); err != nil {
					return err
				}
				term.Printf(a.Stderr, "rewound to message %s: from %s to %s messages in view\n", id, size.Group(before), size.Group(d.Journal.Len()))
				if cli.RecordRewinds[d.Format] {
					term.Printf(a.Stderr, "'condense undo --rewind' restores what was dropped\n")
				}
				return nil
			})
		},
	}
	c.flags(a, cmd)
	cmd.Flags().StringVar(&to, "to", "", "last `message` to keep: its ID, or its number from 1")
	return cmd
}

// messageNamed returns the ID of a message that is named by ID or by its number from 1.
func messageNamed(j *history.Journal, name string) (string, error) {
	if m, ok := j.Message(name); ok {
		return m.ID, nil
	}
	messages := j.Messages()
	if n, err := strconv.Atoi(name); err == nil {
		if n < 1 || n > len(messages) {
			return "", fmt.Errorf("no message %d; there are 1 to %d", n, len(messages))
		}
		return messages[n-1].ID, nil
	}
	ids := plain.Each(messages, func(m core.Message) string { return m.ID })
	if slices.ContainsFunc(j.Dropped(), func(e history.Entry) bool { return e.Original.ID == name }) {
		return "", fmt.Errorf("message %q was dropped by a rewind; 'condense undo --rewind' restores it", name)
	}
	return "", fmt.Errorf("no message %q%s; 'condense view --all' lists them", name, suggest.DidYouMean(name, ids))
}

func undoCommand(a *cli.App) *cobra.Command {
	var rewind bool
	c := change{Rewriting: cli.Rewriting{Keeps: cli.RecordCondensations, Lost: "what the condensation made"}}
	cmd := &cobra.Command{
		Use: "undo FILE|- [CONDENSATION]", Short: "Undo a condensation or a rewind",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) < 1 || len(args) > 2:
				return cli.Usage(cmd, "want a file and at most one condensation; got %d arguments", len(args))
			case rewind && len(args) == 2:
				return cli.Usage(cmd, "--rewind undoes the latest rewind; name no condensation")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.apply(a, cmd, args[0], func(d *transcript.Document) error {
				if rewind {
					return undoRewind(a, d)
				}
				return undo(a, d, strings.Join(args[1:], ""))
			})
		},
	}
	c.flags(a, cmd)
	cmd.Flags().BoolVar(&rewind, "rewind", false, "undo the latest rewind instead of a condensation")
	return cmd
}

// undo undoes a condensation: the named one, or the latest if name is empty.
func undo(a *cli.App, d *transcript.Document, name string) error {
	id, err := condensationNamed(d.Journal.Condensations(), name, d.Format)
	if err != nil {
		return err
	}
	before := d.Journal.Len()
	if err := d.Journal.Undo(id); err != nil {
		return err
	}
	term.Printf(a.Stderr, "condensation %s undone: from %s to %s messages in view\n", id, size.Group(before), size.Group(d.Journal.Len()))
	return nil
}

// undoRewind undoes the latest rewind.
func undoRewind(a *cli.App, d *transcript.Document) error {
	before := d.Journal.Len()
	to, err := d.Journal.UndoRewind()
	if errors.Is(err, history.ErrNoRewind) {
		text := "nothing to undo: no rewind is recorded"
		if !cli.RecordRewinds[d.Format] {
			text += fmt.Sprintf("; the format %s cannot record any ('condense run --to condense' does)", d.Format)
		}
		return cli.NothingError(text)
	}
	if err != nil {
		return err
	}
	term.Printf(a.Stderr, "rewind to message %s undone: from %s to %s messages in view\n",
		to, size.Group(before), size.Group(d.Journal.Len()))
	return nil
}

// condensationNamed returns the ID of the condensation whose ID is or begins with name, or of the latest if name is
// empty. The error is ErrNothing if there is none at all.
func condensationNamed(all []history.Condensation, name, format string) (string, error) {
	if len(all) == 0 {
		text := "nothing to undo: no condensation is recorded"
		if !cli.RecordCondensations[format] {
			text += fmt.Sprintf("; the format %s cannot record any ('condense run --to condense' does)", format)
		}
		return "", cli.NothingError(text)
	}
	if name == "" {
		return all[len(all)-1].ID, nil
	}
	ids := plain.Each(all, func(c history.Condensation) string { return c.ID })
	matches := plain.Only(ids, func(id string) bool { return strings.HasPrefix(id, name) })
	switch {
	case slices.Contains(ids, name):
		return name, nil
	case len(matches) == 1:
		return matches[0], nil
	}
	return "", fmt.Errorf("no condensation %q; there are %s", name, strings.Join(ids, ", "))
}
