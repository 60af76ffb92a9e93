package main

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/transcript"
)

func (a *app) repairCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "repair FILE|- -o NEW",
		Short: "Save what can be read of a damaged journal",
		Long: `repair reads a journal of which a line is damaged, and writes one with every record that can be read, before and
after the damage. Each line that cannot is named on standard error with what was done about it. FILE stays as it is,
so nothing of it is lost. Messages that a damaged condensation hid are in view again. Where two programs wrote at once,
messages of the same ID are all kept.`,
		Example: `  condense repair session.condense.jsonl -o repaired.condense.jsonl`,
		Args:    oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if sameFile(args[0], out) {
				return usage(cmd, "--output: %s is the damaged journal itself; name another file", out)
			}
			o, err := a.output(out, args[0])
			if err != nil {
				return err
			}
			defer o.close()
			return a.repair(cmd.Context(), args[0], o)
		},
	}
	a.limitFlag(cmd)
	cmd.Flags().StringVarP(&out, "output", "o", "", "`file` to write to (default: standard output)")
	return cmd
}

// repair writes what can be read of a journal.
func (a *app) repair(ctx context.Context, path string, o *output) error {
	opts := a.readOptions(path, "")
	data, err := input(ctx, a, path, func(r io.Reader) ([]byte, error) { return transcript.ReadAll(r, opts.MaxBytes) })
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	j, faults, err := history.Repair(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, f := range faults {
		printf(a.stderr, "%s: %v\n", path, f)
	}
	printf(a.stderr, "%s: %s and %s kept, %s at fault\n", path,
		plural(len(j.Messages()), "message"), plural(len(j.Condensations()), "condensation"), plural(len(faults), "line"))
	var b bytes.Buffer
	if err := history.Encode(&b, j); err != nil {
		return err
	}
	if err := o.write(b.Bytes()); err != nil {
		return err
	}
	if len(faults) == 0 {
		return errNothing
	}
	return nil
}
