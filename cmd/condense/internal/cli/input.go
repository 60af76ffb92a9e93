package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/transcript"
)

// defaultMaxInput is far above any recorded session. In memory a conversation takes 2 to 40 times
// the size of its file: the shorter its messages, the more.
const defaultMaxInput SizeFlag = 256 << 20

// OneFile accepts exactly one file; "-" is standard input.
func OneFile(cmd *cobra.Command, args []string) error {
	switch len(args) {
	case 1:
		return nil
	case 0:
		return Usage(cmd, "no file; name a transcript, or - for standard input")
	default:
		return Usage(cmd, "want one file; got %d", len(args))
	}
}

// Input calls read with a file or, if the path is "-", standard input. It returns as soon as ctx
// ends, even while a terminal, a pipe or a FIFO blocks.
func Input[T any](ctx context.Context, a *App, path string, read func(io.Reader) (T, error)) (T, error) {
	v, err := Await(ctx, func() (T, error) {
		if path == "-" {
			return read(a.Stdin)
		}
		f, err := os.Open(path) // blocks on a FIFO
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

// Read reads a transcript from a file or, if the path is "-", standard input. It
// reports repaired and ignored content on standard error.
func (a *App) Read(ctx context.Context, path, format string) (*transcript.Document, error) {
	opts := a.ReadOptions(path, format)
	d, err := Input(ctx, a, path, func(r io.Reader) (*transcript.Document, error) {
		data, err := transcript.ReadAll(r, opts.MaxBytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", opts.Name, err)
		}
		d, err := transcript.Read(bytes.NewReader(data), opts)
		if err == nil && len(d.Journal.Timeline()) == 0 {
			err = noMessages(opts.Name, d.Format, data)
		}
		return d, err
	})
	if err != nil {
		return nil, err
	}
	a.Warn(opts.Name, d.Warnings)
	return d, nil
}

// noMessages returns an error for a log with events but without messages, which names them: "0 tokens" would be an answer about another
// file. It returns nil for a conversation that has not begun.
func noMessages(name, format string, data []byte) error {
	kinds, lines := map[string]int{}, 0
	for line := range bytes.Lines(data) {
		var event struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(line, &event) == nil && event.Type != "" {
			kinds[event.Type]++
			lines++
		}
	}
	const least = 2 // a new session begins with a line about itself
	if lines < least || format == "condense" {
		return nil
	}
	found := plain.Each(slices.Sorted(maps.Keys(kinds)), func(k string) string { return fmt.Sprintf("%s %d", plain.Line(k), kinds[k]) })
	return fmt.Errorf("%s: no messages in %s of the format %s: %s; if it holds a conversation, name its format with --format",
		name, size.Plural(lines, "line"), format, strings.Join(found, ", "))
}

// ReadOptions returns the options for reading a file.
func (a *App) ReadOptions(path, format string) *transcript.ReadOptions {
	opts := &transcript.ReadOptions{Format: format, Name: path, MaxBytes: int64(a.maxInput)}
	if path == "-" {
		opts.Name = "standard input"
	}
	return opts
}

// Warn reports repairs, ignored content and losses. A warning that applies to many messages is printed once, for the
// first of them.
func (a *App) Warn(name string, warnings []transcript.Warning) {
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
			term.Printf(a.Stderr, "%s: and %s\n", name, size.Plural(len(first)-most, "other warning"))
			return
		}
		more := ""
		if n := times[w.Text] - 1; n > 0 {
			more = fmt.Sprintf(" (and in %s)", size.Plural(n, "other place"))
		}
		term.Printf(a.Stderr, "%s: warning: %v%s\n", name, w, more)
	}
}

// InputFlags adds --format, --max-input and, if to is not nil, --to.
func (a *App) InputFlags(cmd *cobra.Command, format, to *string) {
	names := strings.Join(FormatNames(), ", ")
	cmd.Flags().StringVar(format, "format", "", "`format` of the file: "+names+" (default: detected)")
	Complete(cmd, "format", FormatNames())
	a.LimitFlag(cmd)
	if to != nil {
		cmd.Flags().StringVar(to, "to", "", "`format` of the output: "+strings.Join(OutputFormats(), ", ")+" (default: the file's)")
		Complete(cmd, "to", OutputFormats())
	}
}

// LimitFlag adds --max-input.
func (a *App) LimitFlag(cmd *cobra.Command) {
	a.maxInput = defaultMaxInput
	cmd.Flags().Var(&a.maxInput, "max-input", "largest uncompressed `size` of a file in bytes, as in 2Gi")
}

// OutputFormats returns the names of the formats that can be written.
func OutputFormats() []string {
	return plain.Each(plain.Only(transcript.Formats(), func(f transcript.Format) bool { return !f.ReadOnly }),
		func(f transcript.Format) string { return f.Name })
}

// FormatNames returns the names of all formats.
func FormatNames() []string {
	return plain.Each(transcript.Formats(), func(f transcript.Format) string { return f.Name })
}

// Await returns the result of f, or the cause of ctx's end as soon as ctx ends. It is for work
// that cannot be interrupted: reading from a terminal or a pipe, parsing, counting. f then keeps
// running until the process ends, so it must not write anything.
func Await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		v, err := f()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}
