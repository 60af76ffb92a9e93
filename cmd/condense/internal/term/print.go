// Package term writes text and tables for users, without characters that control a terminal.
//
// Format strings are the program's own. Arguments and cells are cleaned by package plain, because
// names of tools and messages, keys, paths and errors come from outside. No other package of the
// command line may call fmt.Fprint or its variants; a test enforces that.
package term

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"github.com/mattn/go-isatty"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// Printf is fmt.Fprintf with arguments that cannot control a terminal and cannot start a line. Only
// an error that joins several errors may have several lines.
func Printf(w io.Writer, format string, args ...any) {
	for i := range args {
		args[i] = cleaned(args[i])
	}
	fmt.Fprintf(w, format, args...)
}

// PrintText prints text that may have several lines.
func PrintText(w io.Writer, text string) error {
	_, err := io.WriteString(w, plain.Text(text))
	return err
}

// Indented is text of several lines, such as the output of a compiler, with an indent before each
// line but the first.
type Indented struct{ Text, By string }

func (i Indented) String() string { return strings.ReplaceAll(plain.Text(i.Text), "\n", "\n"+i.By) }

func cleaned(arg any) any {
	switch v := arg.(type) {
	case Indented:
		return v.String()
	case string:
		return plain.Line(v)
	case error:
		return ErrorText(v)
	case fmt.Stringer:
		return plain.Line(v.String())
	}
	switch v := reflect.ValueOf(arg); {
	case v.Kind() == reflect.String: // core.Role
		return plain.Line(v.String())
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8: // json.RawMessage
		return plain.Line(string(v.Bytes()))
	case v.CanInt(), v.CanUint(), v.CanFloat(), v.Kind() == reflect.Bool:
		return arg
	}
	return plain.Line(fmt.Sprint(arg))
}

// ErrorText returns the text of an error, with a line for each error that it joins. The text of
// one of them cannot start another line.
func ErrorText(err error) string {
	text := err.Error()
	switch wrapper := err.(type) { //nolint:errorlint // the layers are looked at one by one
	case interface{ Unwrap() []error }:
		var raw, clean []string
		for _, e := range wrapper.Unwrap() {
			raw, clean = append(raw, e.Error()), append(clean, ErrorText(e))
		}
		if before, after, ok := strings.Cut(text, strings.Join(raw, "\n")); ok && len(raw) > 0 {
			return plain.Line(before) + strings.Join(clean, "\n") + plain.Line(after)
		}
	default:
		if inner := errors.Unwrap(err); inner != nil && inner.Error() != "" {
			if before, after, ok := strings.Cut(text, inner.Error()); ok {
				return plain.Line(before) + ErrorText(inner) + plain.Line(after)
			}
		}
	}
	return plain.Line(text)
}

// PrintJSON prints v as JSON, with invisible characters escaped.
func PrintJSON(w io.Writer, v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, rawjson.Visible(b.String()))
	return err
}

// PrintData writes content unchanged, for other programs. On a terminal it is cleaned.
func PrintData(w io.Writer, data []byte) error {
	if IsTerminal(w) {
		return PrintText(w, string(data))
	}
	_, err := w.Write(data)
	return err
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f := File(stream)
	return f != nil && isatty.IsTerminal(f.Fd())
}

// An Output remembers that its file could not be written, such as on a full disk: few commands look after every line.
type Output struct {
	io.Writer
	Err error
}

// Write writes to the file.
func (o *Output) Write(p []byte) (int, error) {
	n, err := o.Writer.Write(p)
	o.Err = cmp.Or(o.Err, err)
	return n, err
}

// File returns the file that a standard stream is; nil if it is none.
func File(stream any) *os.File {
	if o, ok := stream.(*Output); ok {
		stream = o.Writer
	}
	f, _ := stream.(*os.File)
	return f
}

// Confirm asks a yes-or-no question. An answer that does not begin with y means no.
func Confirm(in io.Reader, out io.Writer, question string) bool {
	Printf(out, "%s [y/N] ", question)
	answer, err := bufio.NewReader(in).ReadString('\n')
	return err == nil && strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "y")
}
