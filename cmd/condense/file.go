package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/transcript"
)

// oneFile demands exactly one file; "-" is standard input.
func oneFile(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 1:
		return nil
	case 0:
		return usage(cmd, "no file; name a transcript, or - for standard input")
	default:
		return usage(cmd, "want one file; got %d", len(args))
	}
}

// read reads a transcript from a file or, if the path is "-", standard input. What was
// repaired or ignored is said on standard error.
func (a *app) read(path, format string) (*transcript.Document, error) {
	r := a.stdin
	name := "standard input"
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // it was only read
		r, name = f, path
	}
	d, err := transcript.Read(r, &transcript.ReadOptions{Format: format, Name: name})
	if err != nil {
		return nil, err
	}
	a.warn(name, d.Warnings)
	return d, nil
}

func (a *app) warn(name string, warnings []transcript.Warning) {
	const most = 10
	for i, w := range warnings {
		if i == most {
			fmt.Fprintf(a.stderr, "%s: and %d more warnings\n", name, len(warnings)-most)
			return
		}
		fmt.Fprintf(a.stderr, "%s: warning: %v\n", name, w)
	}
}

// formatFlags adds --format and, if to is not nil, --to.
func formatFlags(cmd *cobra.Command, format, to *string) {
	names := strings.Join(formatNames(), ", ")
	cmd.Flags().StringVar(format, "format", "", "`format` of the file: "+names+" (default: found out)")
	complete(cmd, "format", formatNames())
	if to != nil {
		cmd.Flags().StringVar(to, "to", "", "`format` of the output (default: that of the file)")
		complete(cmd, "to", formatNames())
	}
}

func formatNames() []string {
	var names []string
	for _, f := range transcript.Formats() {
		names = append(names, f.Name)
	}
	return names
}

// complete makes the shell offer values for a flag.
func complete(cmd *cobra.Command, flag string, values []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	if err != nil {
		panic(err) // the flag does not exist: a slip in the code above
	}
}
