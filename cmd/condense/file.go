package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/transcript"
)

// defaultMaxInput is far above any recorded session. A conversation takes twice to forty
// times its file in memory: the more, the shorter its messages are.
const defaultMaxInput sizeFlag = 256 << 20

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

// input hands a file or, if the path is "-", standard input to read. If ctx ends it returns
// at once, also while a terminal, a pipe or a FIFO gives nothing.
func input[T any](ctx context.Context, a *app, path string, read func(io.Reader) (T, error)) (T, error) {
	v, err := await(ctx, func() (T, error) {
		if path == "-" {
			return read(a.stdin)
		}
		f, err := os.Open(path) // which waits, if it is a FIFO
		if err != nil {
			var none T
			return none, err
		}
		defer f.Close() //nolint:errcheck // it was only read
		return read(f)
	})
	if errors.As(err, new(*transcript.TooLargeError)) {
		err = fmt.Errorf("%w; if it is a conversation, raise the limit with --max-input", err)
	}
	return v, err
}

// read reads a transcript from a file or, if the path is "-", standard input. What was
// repaired or ignored is said on standard error.
func (a *app) read(ctx context.Context, path, format string) (*transcript.Document, error) {
	opts := a.readOptions(path, format)
	d, err := input(ctx, a, path, func(r io.Reader) (*transcript.Document, error) { return transcript.Read(r, opts) })
	if err != nil {
		return nil, err
	}
	a.warn(opts.Name, d.Warnings)
	return d, nil
}

func (a *app) readOptions(path, format string) *transcript.ReadOptions {
	opts := &transcript.ReadOptions{Format: format, Name: path, MaxBytes: int64(a.maxInput)}
	if path == "-" {
		opts.Name = "standard input"
	}
	return opts
}

// warn says what was repaired, ignored or lost; the same thing in many messages once, with
// the first of them.
func (a *app) warn(name string, warnings []transcript.Warning) {
	const most = 10
	times := map[string]int{}
	var first []transcript.Warning
	for _, w := range warnings {
		if times[w.Text]++; times[w.Text] == 1 {
			first = append(first, w)
		}
	}
	for i, w := range first {
		if i == most {
			printf(a.stderr, "%s: and %d more kinds of warning\n", name, len(first)-most)
			return
		}
		more := ""
		if n := times[w.Text] - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more times)", n)
		}
		printf(a.stderr, "%s: warning: %v%s\n", name, w, more)
	}
}

// inputFlags adds the flags about what is read and, if to is not nil, --to.
func (a *app) inputFlags(cmd *cobra.Command, format, to *string) {
	names := strings.Join(formatNames(), ", ")
	cmd.Flags().StringVar(format, "format", "", "`format` of the file: "+names+" (default: detected)")
	complete(cmd, "format", formatNames())
	a.limitFlag(cmd)
	if to != nil {
		cmd.Flags().StringVar(to, "to", "", "`format` of the output (default: that of the file)")
		complete(cmd, "to", outputFormats())
	}
}

// limitFlag adds --max-input.
func (a *app) limitFlag(cmd *cobra.Command) {
	a.maxInput = defaultMaxInput
	cmd.Flags().Var(&a.maxInput, "max-input", "`size` in bytes above which a file is refused, uncompressed, as in 2Gi")
}

// outputFormats returns the names of the formats that any conversation can be written in.
func outputFormats() []string {
	var names []string
	for _, f := range transcript.Formats() {
		if !f.ReadOnly {
			names = append(names, f.Name)
		}
	}
	return names
}

func formatNames() []string {
	var names []string
	for _, f := range transcript.Formats() {
		names = append(names, f.Name)
	}
	return names
}
