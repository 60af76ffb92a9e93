package main

import (
	"github.com/spf13/cobra"

	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/transcript"
)

// recordProtections are the formats that record which messages are protected.
var recordProtections = map[string]bool{"condense": true}

func (a *app) protectCommand() *cobra.Command {
	var off bool
	c := change{rewriting: rewriting{keeps: map[string]bool{}}}
	for _, format := range formatNames() {
		c.keeps[format] = true // the command refuses those that lose it
	}
	cmd := &cobra.Command{
		Use:   "protect FILE|- MESSAGE...",
		Short: "Have messages kept word for word",
		Long: `protect has messages kept word for word by every strategy from now on, truncation included. They are named by ID
or by number, as 'condense view --all' shows them. It is recorded in the file, so only a journal (format "condense")
can hold it; with --off the protection ends. A message that is hidden already stays hidden until that is undone.`,
		Example: `  condense protect session.condense.jsonl 1 12 -i
  condense protect --off session.condense.jsonl 12 -i`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage(cmd, "want a file and the messages to protect")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.apply(a, cmd, args[0], func(d *transcript.Document) error {
				if !recordProtections[d.Format] {
					return usage(cmd, "the format %s cannot record that a message is protected; 'condense run --to condense' makes a journal, which can", d.Format)
				}
				return a.protect(d, args[1:], !off)
			})
		},
	}
	c.flags(a, cmd)
	cmd.Flags().BoolVar(&off, "off", false, "end the protection")
	return cmd
}

// protect protects the messages that are named, or ends their protection: all, or none if one
// of the names is wrong.
func (a *app) protect(d *transcript.Document, names []string, on bool) error {
	ids := make([]string, len(names))
	for i, name := range names {
		id, err := messageNamed(d, name)
		if err != nil {
			return err
		}
		ids[i] = id
	}
	entries := map[string]*history.Entry{}
	timeline := d.Journal.Timeline()
	for i := range timeline {
		entries[timeline[i].Message.ID] = &timeline[i]
	}
	for _, id := range ids {
		state := "is protected"
		if !on {
			state = "is not protected any more"
		}
		if entries[id].Message.Protected != on {
			if err := d.Journal.Protect(id, on); err != nil {
				return err
			}
		}
		if by := entries[id].HiddenBy; len(by) > 0 {
			state += ", and stays hidden by condensation " + by[len(by)-1] + " until that is undone"
		}
		printf(a.stderr, "message %s %s\n", id, state)
	}
	return nil
}
