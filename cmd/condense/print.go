package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"github.com/mattn/go-isatty"

	"github.com/condensehq/condense/internal/plain"
)

// This is where the program prints. Formats are the program's own words; arguments are
// cleaned, because names of tools and messages, keys, paths and errors come from outside: see
// package plain. No other file may call fmt.Fprint and its kin, which a test enforces.

// printf is fmt.Fprintf with arguments that cannot act on a terminal and cannot begin a line.
// An error may have several lines if it joins several errors.
func printf(w io.Writer, format string, args ...any) {
	for i := range args {
		args[i] = cleaned(args[i])
	}
	fmt.Fprintf(w, format, args...)
}

// printText prints text of several lines that the program has made.
func printText(w io.Writer, text string) error {
	_, err := io.WriteString(w, plain.Text(text))
	return err
}

// indented is text of several lines, such as what a compiler says, whose lines after the first
// are indented.
type indented struct{ text, by string }

func (i indented) String() string {
	return strings.ReplaceAll(plain.Text(i.text), "\n", "\n"+i.by)
}

func cleaned(arg any) any {
	switch v := arg.(type) {
	case indented:
		return v.String()
	case string:
		return plain.Line(v)
	case error:
		return errorText(v)
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

// errorText returns the text of an error with a line for each error that is joined in it.
// What one of them says cannot begin another line.
func errorText(err error) string {
	text := err.Error()
	switch wrapper := err.(type) { //nolint:errorlint // the layers are looked at one by one
	case interface{ Unwrap() []error }:
		var raw, clean []string
		for _, e := range wrapper.Unwrap() {
			raw, clean = append(raw, e.Error()), append(clean, errorText(e))
		}
		if before, after, ok := strings.Cut(text, strings.Join(raw, "\n")); ok && len(raw) > 0 {
			return plain.Line(before) + strings.Join(clean, "\n") + plain.Line(after)
		}
	default:
		if inner := errors.Unwrap(err); inner != nil && inner.Error() != "" {
			if before, after, ok := strings.Cut(text, inner.Error()); ok {
				return plain.Line(before) + errorText(inner) + plain.Line(after)
			}
		}
	}
	return plain.Line(text)
}

// printJSON prints v with every character that is not visible escaped.
func printJSON(w io.Writer, v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := io.WriteString(w, plain.JSON(b.String()))
	return err
}

// printData writes content as it is, for other programs; on a terminal it is cleaned.
func printData(w io.Writer, data []byte) error {
	if f, ok := w.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
		return printText(w, string(data))
	}
	_, err := w.Write(data)
	return err
}
