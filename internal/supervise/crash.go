package supervise

import (
	"fmt"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/condensehq/condense/internal/plain"
)

// A CrashError says that the process of a plugin ended when it should not have.
type CrashError struct {
	Plugin string
	PID    int
	Status string        // how it ended: exit status 2, signal: killed
	Reason error         // why the host killed it; nil if it ended by itself
	Panic  string        // the headline of what it wrote about it; may be empty
	Output string        // the first or the last of what it wrote; may be empty
	Uptime time.Duration // since it was launched
	Calls  int64         // that it had answered
	Lost   int           // calls that it took with it
}

// Error says what happened in one line.
func (e *CrashError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "plugin %s ", e.Plugin)
	switch {
	case e.Reason != nil:
		fmt.Fprintf(&b, "was killed: %v", e.Reason)
	case ranOutOfMemory(e.Panic):
		fmt.Fprintf(&b, "ran out of memory (%s)", e.Status)
	case e.Status == "exit status 0":
		b.WriteString("ended by itself, as if its work were done (exit status 0),")
	default:
		fmt.Fprintf(&b, "crashed (%s)", e.Status)
	}
	fmt.Fprintf(&b, " after %s and %d calls", e.Uptime.Round(time.Millisecond), e.Calls)
	if ranOutOfMemory(e.Panic) && !saysMore(e.Panic) {
		return b.String()
	}
	if e.Panic != "" {
		b.WriteString(": " + e.Panic)
	}
	return b.String()
}

// memoryLines begin or are in what runtimes write when they have no memory left: Go's, Node's,
// Python's, Rust's and C++'s.
var memoryLines = []string{
	"runtime: out of memory", "fatal error: out of memory", "cannot allocate memory", "fatal error: runtime: cannot allocate",
	"<--- Last few GCs", "JavaScript heap out of memory", "MemoryError", "memory allocation of", "std::bad_alloc",
}

func ranOutOfMemory(headline string) bool {
	return slices.ContainsFunc(memoryLines, func(text string) bool { return strings.Contains(headline, text) })
}

// saysMore reports whether a headline about memory tells a person anything: the first line of
// Node's does not.
func saysMore(headline string) bool { return !strings.Contains(headline, "<---") }

// attrs are what the log has.
func (e *CrashError) attrs() []slog.Attr {
	a := []slog.Attr{
		slog.String("plugin", e.Plugin), slog.Int("pid", e.PID), slog.String("status", e.Status),
		slog.Duration("uptime", wait(e.Uptime)), slog.Int64("calls", e.Calls), slog.Int("lost_calls", e.Lost),
	}
	if e.Reason != nil {
		a = append(a, slog.Any("reason", e.Reason))
	}
	if e.Panic != "" {
		a = append(a, slog.String("panic", e.Panic))
	}
	if e.Output != "" {
		a = append(a, slog.String("output", e.Output))
	}
	return a
}

// Unwrap returns the reason of the host's.
func (e *CrashError) Unwrap() error { return e.Reason }

// beginsCrash reports whether line is the first that a runtime writes about a crash: Go's,
// Python's, Node's, Rust's.
func beginsCrash(line string) bool {
	return slices.ContainsFunc(crashLines, func(prefix string) bool { return strings.HasPrefix(line, prefix) }) ||
		strings.HasPrefix(line, "thread '") && strings.Contains(line, "panicked at")
}

var crashLines = []string{
	"panic: ", "fatal error: ", "runtime: ", "SIGSEGV", "SIGQUIT", "unexpected fault address",
	"Traceback (most recent call last)",
	"node:internal/", "Uncaught ", "[UnhandledPromiseRejection", "# Fatal", "<--- Last few GCs",
}

// headlineOf makes one line of the output of a crash: what happened and, if that can be
// seen, where.
func headlineOf(lines []string) string {
	switch first := lines[0]; {
	case strings.HasPrefix(first, "Traceback"):
		// Python says what at the end: the first line that is not indented.
		for _, l := range lines[1:] {
			if l[0] != ' ' && l[0] != '\t' {
				return clip(l, 300)
			}
		}
		return clip(first, 300)
	case strings.HasPrefix(first, "node:internal/"):
		for _, l := range lines[1:] {
			if strings.Contains(l, "Error") && !strings.HasPrefix(strings.TrimSpace(l), "at ") {
				return clip(l, 300)
			}
		}
		return clip(first, 300)
	default:
		return clip(first, 300) + goFrame(lines)
	}
}

// goFrame finds the line of Go code that panicked: the first frame below the runtime's.
func goFrame(lines []string) string {
	for i, l := range lines[:max(0, len(lines)-1)] {
		file := lines[i+1]
		if !strings.HasPrefix(file, "\t") || strings.HasPrefix(l, "panic(") || strings.HasPrefix(l, "runtime.") || strings.HasPrefix(l, "\t") {
			continue
		}
		file, _, _ = strings.Cut(strings.TrimSpace(file), " ")
		return " at " + clip(path.Base(file), 100)
	}
	return ""
}

// clip shortens s to about n bytes.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// printable removes from a plugin's text what could act on a terminal or forge a log.
func printable(s string) string { return plain.Strip(strings.ToValidUTF8(s, "\ufffd"), "\t") }
