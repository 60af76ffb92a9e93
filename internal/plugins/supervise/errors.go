package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
)

// ErrClosed means that a [Process] was closed.
var ErrClosed = errors.New("closed")

// An unavailableError says why a plugin is not asked. It wraps [core.ErrUnavailable] and
// the error of the call's context, if that is the reason. An earlier failure is in its text
// only: an error that wraps a [*CrashError] means that this call met a crash.
type unavailableError struct {
	plugin string
	why    string
	ctx    error
	before error
}

// Error returns the reason and its cause.
func (e *unavailableError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "plugin %s: %s", e.plugin, e.why)
	for _, err := range []error{e.ctx, e.before} {
		if err != nil {
			fmt.Fprintf(&text, " (%v)", err)
		}
	}
	return text.String()
}

// Unwrap returns [core.ErrUnavailable] and the error of the context.
func (e *unavailableError) Unwrap() []error {
	if e.ctx == nil {
		return []error{core.ErrUnavailable}
	}
	return []error{core.ErrUnavailable, e.ctx}
}

// A lateError says that a call had no answer by its deadline. It wraps
// [context.DeadlineExceeded].
type lateError struct{ plugin string }

// Error names the plugin.
func (e *lateError) Error() string { return fmt.Sprintf("plugin %s: no answer in time", e.plugin) }

// Unwrap returns [context.DeadlineExceeded].
func (e *lateError) Unwrap() error { return context.DeadlineExceeded }

// A startError says why a plugin did not start.
type startError struct {
	plugin string
	err    error
}

// Error names the plugin.
func (e *startError) Error() string { return fmt.Sprintf("start plugin %s: %v", e.plugin, e.err) }

// Unwrap returns the reason.
func (e *startError) Unwrap() error { return e.err }

// A shortError limits the text of an error and removes control characters from it.
type shortError struct{ err error }

func short(err error) error { return &shortError{err} }

// Error returns the text.
func (e *shortError) Error() string {
	return clip(printable(strings.ReplaceAll(e.err.Error(), "\n", "; ")), maxAttrBytes)
}

// Unwrap returns the whole error.
func (e *shortError) Unwrap() error { return e.err }

// wait rounds d for display.
func wait(d time.Duration) time.Duration {
	switch {
	case d <= 0:
		return 0
	case d < time.Second:
		return d.Round(time.Millisecond)
	}
	return d.Round(100 * time.Millisecond)
}

// A CrashError says that the process of a plugin ended unexpectedly.
type CrashError struct {
	Plugin string
	PID    int
	Status string        // how it ended: exit status 2, signal: killed
	Reason error         // why the host killed it; nil if it ended by itself
	Panic  string        // the headline of its crash report; may be empty
	Output string        // its crash report, or the end of its output; may be empty
	Uptime time.Duration // since it was launched
	Calls  int64         // that it had answered
	Lost   int           // calls that ended with it
}

// Error describes the crash in one line.
func (e *CrashError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "plugin %s ", e.Plugin)
	switch {
	case e.Reason != nil:
		fmt.Fprintf(&b, "was killed: %v", e.Reason)
	case ranOutOfMemory(e.Panic):
		fmt.Fprintf(&b, "ran out of memory (%s)", e.Status)
	case e.Status == "exit status 0":
		b.WriteString("exited by itself with exit status 0,")
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

// memoryLines are parts of the messages of runtimes that run out of memory: Go's, Node's, Python's, Rust's and C++'s.
var memoryLines = []string{
	"runtime: out of memory", "fatal error: out of memory", "cannot allocate memory", "fatal error: runtime: cannot allocate",
	"<--- Last few GCs", "JavaScript heap out of memory", "MemoryError", "memory allocation of", "std::bad_alloc",
}

func ranOutOfMemory(headline string) bool {
	return slices.ContainsFunc(memoryLines, func(text string) bool { return strings.Contains(headline, text) })
}

// saysMore reports whether a headline about memory is informative: the first line of Node's
// is not.
func saysMore(headline string) bool { return !strings.Contains(headline, "<---") }

// attrs returns the attributes for the log.
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

// Unwrap returns the reason of the host for killing the process.
func (e *CrashError) Unwrap() error { return e.Reason }

// beginsCrash reports whether line is the first that a runtime writes about a crash: Go's,
// Python's, Node's, Rust's.
func beginsCrash(line string) bool {
	return slices.ContainsFunc(crashLines, func(prefix string) bool { return strings.HasPrefix(line, prefix) }) ||
		strings.HasPrefix(line, "thread '") && strings.Contains(line, "panicked at") || nodePlace().MatchString(line)
}

var crashLines = []string{
	"panic: ", "fatal error: ", "runtime: ", "SIGSEGV", "SIGQUIT", "unexpected fault address",
	"Traceback (most recent call last)",
	"Uncaught ", "[UnhandledPromiseRejection", "# Fatal", "<--- Last few GCs",
}

// headlineOf summarizes the output of a crash in one line: the error and, if known, its place.
func headlineOf(lines []string) string {
	switch first := lines[0]; {
	case strings.HasPrefix(first, "Traceback"):
		// Python writes the error at the end, in the first line that is not indented.
		for i, l := range lines[1:] {
			if l[0] != ' ' && l[0] != '\t' {
				return clip(l, 300) + pythonFrame(lines[1:i+1])
			}
		}
		return clip(first, 300)
	case nodePlace().MatchString(first):
		return clip(nodeError(lines), 300) + nodeFrame(lines)
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

// pythonFrame finds the line of Python code that failed: the last frame outside of the SDK, which is in a folder
// named condense.
func pythonFrame(lines []string) string {
	for _, l := range slices.Backward(lines) {
		file, rest, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(l), `File "`), `", line `)
		if !ok || strings.HasPrefix(file, "<") || path.Base(path.Dir(file)) == "condense" {
			continue
		}
		number, _, _ := strings.Cut(rest, ",")
		return " at " + clip(path.Base(file)+":"+number, 100)
	}
	return ""
}

// nodePlace matches the first line of what Node writes about an uncaught error: the place in Node itself or in a file.
var nodePlace = plain.Pattern(`^(node:internal/|(file://)?/.*\.[cm]?[jt]s:\d+$)`)

// nodeError returns the error that Node writes below the mark in a line of the code.
func nodeError(lines []string) string {
	said := slices.IndexFunc(lines, func(l string) bool { return strings.Trim(l, " \t^") == "" }) + 1
	if said == 0 { // no mark
		said = slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "Error") })
	}
	text := lines[max(0, min(said, len(lines)-1))]
	if _, reason, ok := strings.Cut(text, " The promise rejected with the reason "); ok {
		return "a promise that nobody waits for was rejected: " + reason
	}
	return text
}

// nodeFrame finds the line of JavaScript that failed: the first frame that belongs to no library, or the place, which has no column.
func nodeFrame(lines []string) string {
	for _, l := range slices.Concat(lines[1:], []string{"at " + lines[0] + ":1"}) {
		frame, ok := strings.CutPrefix(strings.TrimSpace(l), "at ")
		if !ok || strings.Contains(frame, "node:") || strings.Contains(frame, "/node_modules/") || strings.Contains(frame, "/condense/") {
			continue
		}
		file, _, _ := strings.Cut(strings.TrimSuffix(path.Base(frame), ")"), " ")
		if i := strings.LastIndexByte(file, ':'); i > 0 { // the column
			return " at " + clip(file[:i], 100)
		}
	}
	return ""
}

// clip shortens s to about n bytes.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:plain.Back(s, n)] + "…"
}

// printable removes characters from a plugin's text that could control a terminal or forge a log.
func printable(s string) string { return plain.Strip(strings.ToValidUTF8(s, "\ufffd"), "\t") }

// explainStart explains an error of exec. It drops the path, which is our copy's.
func explainStart(err error) error {
	if pe := new(os.PathError); errors.As(err, &pe) {
		err = pe.Err
	}
	switch {
	case isNoExec(err):
		return errors.New("it is not a program for this system: it was built for another system, is empty, or is a script without a #! line")
	case errors.Is(err, os.ErrNotExist):
		return errors.New("the interpreter or loader that it names does not exist")
	case errors.Is(err, os.ErrPermission):
		return errors.New("it may not be executed: the folder for temporary files may be mounted noexec; set TMPDIR to another folder")
	}
	return err
}

var errData = errors.New("it cannot run")

// early explains the end of a process that was never ready.
func (c *child) early() error {
	when := "before its handshake"
	if c.addr.Load() != nil {
		when = "before it was ready"
	}
	headline, all := c.out.crash()
	for _, h := range hints {
		if strings.Contains(all, h.text) {
			return fmt.Errorf("it ended %s (%s): %s", when, c.status, h.meaning)
		}
	}
	switch said := cmp.Or(headline, c.out.lastLines(3)); {
	case c.status == fmt.Sprintf("exit status %d", ExitData):
		return fmt.Errorf("%w: %s", errData, said)
	case said == "":
		return fmt.Errorf("it ended %s (%s) and wrote nothing", when, c.status)
	default:
		return fmt.Errorf("it ended %s (%s); it wrote: %s", when, c.status, said)
	}
}

// hints explain messages of plugins that do not start.
var hints = []struct{ text, meaning string }{
	{"This binary is a plugin. These are not meant to be executed directly.", "it is a plugin for another program: its handshake has another cookie"},
	{"is a plugin of condense, which shortens", "it does not accept this host's handshake: it was built for another release of condense"},
	{"bind: invalid argument", "the path of its socket is too long: set TMPDIR to a shorter folder"},
}
