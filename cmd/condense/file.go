package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
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

// write writes the document to a file, or to standard output if path is "" or "-". The
// file appears whole or not at all.
func (a *app) write(d *transcript.Document, path, format string) error {
	var b bytes.Buffer
	warnings, err := d.Write(&b, format)
	if err != nil {
		return err
	}
	a.warn("output", warnings)
	if path == "" || path == "-" {
		_, err := a.stdout.Write(b.Bytes())
		return err
	}
	return writeFile(path, b.Bytes())
}

// writeFile replaces a file by one with the given content, so that nobody ever sees half
// of it. A file that existed keeps its permissions.
func writeFile(path string, data []byte) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	mode := os.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		if !info.Mode().IsRegular() { // /dev/null, a pipe
			return os.WriteFile(path, data, mode)
		}
		mode = info.Mode().Perm()
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Chmod(mode)
	}
	if err == nil {
		err = tmp.Sync()
	}
	if e := tmp.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // it is of no use
	}
	return err
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
