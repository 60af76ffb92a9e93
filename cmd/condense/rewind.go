package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/suggest"
	"github.com/condensehq/condense/transcript"
)

// A change is a command that undoes something in a conversation.
type change struct {
	rewriting

	inPlace bool
}

func (c *change) flags(a *app, cmd *cobra.Command) {
	a.inputFlags(cmd, &c.format, nil)
	cmd.Flags().StringVarP(&c.out, "output", "o", "", "`file` to write to (default: standard output)")
	cmd.Flags().BoolVarP(&c.inPlace, "in-place", "i", false, "change the file itself")
	cmd.MarkFlagsMutuallyExclusive("output", "in-place")
	c.rewriting.flags(cmd)
}

// apply reads the file, changes its journal, and writes it.
func (c *change) apply(a *app, cmd *cobra.Command, path string, do func(*transcript.Document) error) error {
	if c.inPlace && path == "-" {
		return usage(cmd, "--in-place: standard input cannot be changed")
	}
	c.in = path
	if c.inPlace {
		c.out = path
	}
	defer c.close()
	if err := c.open(a, cmd); err != nil {
		return err
	}
	done := do(c.document)
	if done != nil {
		done = fmt.Errorf("%s: %w", path, done)
	}
	// A script that asked for the output gets it, also if there was nothing to change.
	if done != nil && (c.inPlace || !errors.Is(done, errNothing)) {
		return done
	}
	if err := c.finish(a); err != nil {
		return err
	}
	return done
}

func (a *app) rewindCommand() *cobra.Command {
	var (
		c  = change{rewriting: rewriting{keeps: recordRewinds, lost: "what the rewind drops"}}
		to string
	)
	cmd := &cobra.Command{
		Use:   "rewind --to ID|INDEX FILE|-",
		Short: "Go back to a message of a conversation",
		Long: `rewind drops what came after a message, condensations included: messages that only a dropped condensation
hid come back. The message is named by its ID or by its place in the conversation as it was recorded, from 1
('condense view --all' shows both). In a journal (format "condense") nothing is deleted: the rewind is recorded,
'condense undo --rewind' undoes it, and 'condense recall' still finds what it dropped. In the other formats what it
drops is left out.`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if to == "" {
				return usage(cmd, "--to: name the message to go back to")
			}
			return c.apply(a, cmd, args[0], func(d *transcript.Document) error {
				id, err := messageNamed(d, to)
				if err != nil {
					return err
				}
				before := d.Journal.Len()
				if err := d.Journal.Rewind(id); err != nil {
					return err
				}
				printf(a.stderr, "back at message %s: %s messages in view, %s before\n",
					id, thousands(d.Journal.Len()), thousands(before))
				if recordRewinds[d.Format] {
					printf(a.stderr, "'condense undo --rewind' brings back what was dropped\n")
				}
				return nil
			})
		},
	}
	c.flags(a, cmd)
	cmd.Flags().StringVar(&to, "to", "", "the last `message` to keep: its ID, or its number from 1")
	return cmd
}

// messageNamed finds a message by ID or by its number among those recorded.
func messageNamed(d *transcript.Document, name string) (string, error) {
	if m, ok := d.Journal.Message(name); ok {
		return m.ID, nil
	}
	messages := d.Journal.Messages()
	if n, err := strconv.Atoi(name); err == nil {
		if n < 1 || n > len(messages) {
			return "", fmt.Errorf("no message %d; there are 1 to %d", n, len(messages))
		}
		return messages[n-1].ID, nil
	}
	var ids []string
	for _, m := range messages {
		ids = append(ids, m.ID)
	}
	for _, e := range d.Journal.Dropped() {
		if e.Original.ID == name {
			return "", fmt.Errorf("message %q was dropped by a rewind; 'condense undo --rewind' brings it back", name)
		}
	}
	return "", fmt.Errorf("no message %q%s; 'condense view --all' lists them", name, suggest.DidYouMean(name, ids))
}

func (a *app) undoCommand() *cobra.Command {
	var rewind bool
	c := change{rewriting: rewriting{keeps: recordCondensations, lost: "what the condensation made"}}
	cmd := &cobra.Command{
		Use:   "undo FILE|- [CONDENSATION]",
		Short: "Undo a condensation or a rewind",
		Long: `undo undoes the latest condensation, or the one named, in any order: the messages that it hid or rewrote
are as they were. With --rewind it undoes the latest rewind that is not undone yet: what it dropped is there
again, before what was said since. It works on files that record what was done: condensations in the formats "condense"
and "roo", rewinds in "condense". If there is nothing to undo, the file is written unchanged and the exit code is 3.`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) < 1 || len(args) > 2:
				return usage(cmd, "want a file and at most one condensation; got %d arguments", len(args))
			case rewind && len(args) == 2:
				return usage(cmd, "--rewind undoes the latest rewind; name no condensation")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.apply(a, cmd, args[0], func(d *transcript.Document) error {
				if rewind {
					return a.undoRewind(d)
				}
				return a.undo(d, strings.Join(args[1:], ""))
			})
		},
	}
	c.flags(a, cmd)
	cmd.Flags().BoolVar(&rewind, "rewind", false, "undo the latest rewind instead of a condensation")
	return cmd
}

// undo undoes a condensation: the one named, or the latest if name is empty.
func (a *app) undo(d *transcript.Document, name string) error {
	id, err := condensationNamed(d.Journal.Condensations(), name, d.Format)
	if err != nil {
		return err
	}
	before := d.Journal.Len()
	if err := d.Journal.Undo(id); err != nil {
		return err
	}
	printf(a.stderr, "condensation %s undone: %s messages in view, %s before\n",
		id, thousands(d.Journal.Len()), thousands(before))
	return nil
}

// undoRewind undoes the latest rewind.
func (a *app) undoRewind(d *transcript.Document) error {
	before := d.Journal.Len()
	to, err := d.Journal.UndoRewind()
	if errors.Is(err, history.ErrNoRewind) {
		text := "nothing to undo: no rewind is recorded"
		if !recordRewinds[d.Format] {
			text += fmt.Sprintf("; the format %s cannot record any ('condense run --to condense' does)", d.Format)
		}
		return nothing(text)
	}
	if err != nil {
		return err
	}
	printf(a.stderr, "rewind to message %s undone: %s messages in view, %s before\n",
		to, thousands(d.Journal.Len()), thousands(before))
	return nil
}

// condensationNamed returns the ID of the condensation whose ID is or begins with name;
// the latest if name is empty. The error is errNothing if there is none at all.
func condensationNamed(all []history.Condensation, name, format string) (string, error) {
	if len(all) == 0 {
		text := "nothing to undo: no condensation is recorded"
		if !recordCondensations[format] {
			text += fmt.Sprintf("; the format %s cannot record any ('condense run --to condense' does)", format)
		}
		return "", nothing(text)
	}
	if name == "" {
		return all[len(all)-1].ID, nil
	}
	var ids, matches []string
	for _, c := range all {
		if c.ID == name {
			return c.ID, nil
		}
		ids = append(ids, c.ID)
		if strings.HasPrefix(c.ID, name) {
			matches = append(matches, c.ID)
		}
	}
	if len(matches) == 1 {
		return matches[0], nil
	}
	return "", fmt.Errorf("no condensation %q; there are %s", name, strings.Join(ids, ", "))
}
