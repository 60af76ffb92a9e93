package value

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/dialog"
)

// A failure is a command that failed when it was last run.
type failure struct {
	entry   string
	passage int    // of its result; -1 if only a former extract has it
	key     string // see dialog.CommandKey
}

// failures returns, newest first, the last commands that failed and did not succeed since, and the commands that
// were fixed.
func (w *reading) failures() (out, fixed []failure) {
	seen := map[string]bool{}
	mended := map[string]bool{}
	looked := 0
	for p, pass := range slices.Backward(w.c.Passages) {
		if len(out) == openErrors || looked == openLook {
			return out, fixed
		}
		if !pass.answers() || pass.partial || pass.family != families[dialog.FamilyCommand] {
			continue
		}
		key := dialog.CommandKey(pass.Target)
		if key == "" {
			continue
		}
		if looked++; seen[key] && (mended[key] || len(fixed) == openFixed) {
			continue
		}
		text := w.original(&pass)
		if seen[key] {
			if pass.failed(text) && !dialog.Refused(text) && !slices.ContainsFunc(out, func(f failure) bool { return f.key == key }) {
				mended[key] = true
				fixed = append(fixed, failure{entry: fixedName + oneLine(dialog.BareCommand(pass.Target), openLong/2) + " (was: " + oneLine(errorLine(text), openLong/2) + ")", passage: p, key: key})
			}
			continue
		}
		if dialog.Refused(text) {
			continue
		}
		line := errorLine(text)
		if endMark(text) != "" && dialog.FaultOf(line) == dialog.NoFault && w.saidOpen(key) {
			continue // a former extract has the error, of which nothing is left here
		}
		seen[key] = true
		if pass.failed(text) {
			e := errorName + oneLine(dialog.BareCommand(pass.Target), openLong/2)
			if line != "" {
				e += errorSign + oneLine(line, openLong)
			}
			if h := w.handle(&pass); h != "" && !dialog.Brief(text) {
				e += " " + handleMark + h
			}
			out = append(out, failure{entry: e, passage: p, key: key})
		}
	}
	for _, line := range slices.Backward(w.c.open) {
		e, ok := strings.CutPrefix(line, errorName)
		command, was, _ := strings.Cut(e, errorSign)
		key := dialog.CommandKey(command)
		if ok && seen[key] && !mended[key] && len(fixed) < openFixed && !slices.ContainsFunc(out, func(f failure) bool { return f.key == key }) {
			mended[key] = true
			was, _ = cutHandle(was)
			fixed = append(fixed, failure{entry: fixedName + command + " (was: " + was + ")", passage: -1, key: key})
		}
		if ok && !seen[key] && len(out) < openErrors {
			seen[key] = true
			if rest, h := cutHandle(line); h != "" && w.o.NoHandles {
				line = rest
			}
			out = append(out, failure{entry: line, passage: -1, key: key})
		}
	}
	for _, line := range slices.Backward(w.c.open) {
		e, ok := strings.CutPrefix(line, fixedName)
		command, _, _ := strings.Cut(e, " (was: ")
		key := dialog.CommandKey(command)
		if ok && !mended[key] && len(fixed) < openFixed && !slices.ContainsFunc(out, func(f failure) bool { return f.key == key }) {
			mended[key] = true
			fixed = append(fixed, failure{entry: line, passage: -1, key: key})
		}
	}
	return out, fixed
}

// saidOpen reports whether a former extract lists a command with that key as failed.
func (w *reading) saidOpen(key string) bool {
	return slices.ContainsFunc(w.c.open, func(line string) bool {
		e, ok := strings.CutPrefix(line, errorName)
		command, _, _ := strings.Cut(e, errorSign)
		return ok && dialog.CommandKey(command) == key
	})
}

// errorLine returns the line of a result that best describes the failure: the first in the form of an error, or with a
// word for one, or the last.
func errorLine(text string) string {
	last, maybe := "", ""
	for line := range strings.SplitSeq(text, "\n") {
		if !says(line) || dialog.NamesExit(line) || strings.HasPrefix(line, markStart) || readGap(line) > 0 {
			continue
		}
		switch dialog.FaultOf(line) {
		case dialog.SureFault:
			return line
		case dialog.MaybeFault:
			maybe = cmp.Or(maybe, line)
		case dialog.NoFault:
			last = line
		}
	}
	return cmp.Or(maybe, last)
}

var colours = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)

// oneLine returns at most n bytes of s on one line, without text that a reader of the block could take for its end.
func oneLine(s string, n int) string {
	cut := len(s) > 4*n
	if cut {
		s = s[:4*n]
	}
	s = strings.Join(strings.FieldsFunc(colours.ReplaceAllString(strings.ToValidUTF8(s, ""), ""), func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xa0
	}), " ")
	if len(s) > n {
		s, cut = strings.ToValidUTF8(s[:n], ""), true
	}
	if cut {
		s += GapMark
	}
	return s
}
