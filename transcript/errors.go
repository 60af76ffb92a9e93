package transcript

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/condensehq/condense/internal/codec/syntax"
)

// A TooLargeError reports a file that is larger than allowed.
type TooLargeError struct {
	Limit int64 // bytes
}

func (e *TooLargeError) Error() string {
	if e.Limit >= 1<<20 && e.Limit%(1<<20) == 0 {
		return fmt.Sprintf("larger than %d MiB", e.Limit>>20)
	}
	return fmt.Sprintf("larger than %d bytes", e.Limit)
}

// A SyntaxError reports where a file is not valid in its format.
type SyntaxError struct {
	Name    string // of the file; empty if unknown
	Line    int    // the first is 1; zero if unknown
	Message int    // number of the message concerned, the first is 1; zero if none
	Offset  int    // bytes before it
	Found   string // the content there
	Want    string // the expected content
}

// Error returns the file, the line, the message, the found and the expected content.
func (e *SyntaxError) Error() string {
	var b strings.Builder
	if e.Name != "" {
		b.WriteString(e.Name + ": ")
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", e.Line)
	}
	if e.Message > 0 {
		fmt.Fprintf(&b, "message %d: ", e.Message)
	}
	b.WriteString("found " + e.Found)
	if e.Want != "" {
		b.WriteString("; want " + e.Want)
	}
	return b.String()
}

// locate returns e with the name of the file and the line of its offset in data.
func locate(e *syntax.Error, name string, data []byte) *SyntaxError {
	line := 1 + bytes.Count(data[:min(e.Offset, len(data))], []byte("\n"))
	return &SyntaxError{Name: name, Line: line, Message: e.Message, Offset: e.Offset, Found: e.Found, Want: e.Want}
}

// A Warning is something that was repaired, ignored or lost. The rest is usable.
type Warning struct {
	Message string // ID of the message concerned; empty if none
	Text    string
}

// String returns the message's ID and the text.
func (w Warning) String() string {
	if w.Message == "" {
		return w.Text
	}
	return "message " + w.Message + ": " + w.Text
}
