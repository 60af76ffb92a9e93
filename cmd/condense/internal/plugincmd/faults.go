package plugincmd

import (
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// repairs tell an author how to repair a broken rule. The rule itself states its requirement.
var repairs = map[string]string{
	"answer":             "return the messages unchanged if there is nothing to do, or an error if you cannot shorten them",
	"valid-parts":        "put only texts, images and opaque blocks into results, and no part that is nil or a pointer",
	"known-ids":          "leave the ID of a message of your own empty; the host assigns one",
	"unique-ids":         "return each message once; copy its parts into a message without an ID if you want them twice",
	"keep-order":         "return messages in the order of the request: iterate over them once, and omit or replace",
	"keep-role":          "hide the message and add one of your own, of kind summary or marker, instead of changing its role",
	"new-role":           "give a message of your own the role user or assistant and the kind summary or marker",
	"keep-protected":     "skip messages with Protected set, as core.KeepGroups (Go), call.hideUnless (Node) and call.hide_unless (Python) do",
	"keep-system":        "skip system messages, as core.KeepGroups does",
	"keep-request":       "keep the messages that req.Unanswered returns, and rewrite only tool results in them; core.KeepGroups (Go), call.hideUnless (Node) and call.hide_unless (Python) keep them",
	"keep-words":         "keep texts of users as they are, replace parts of them by a mark such as [… 3 lines left out] or [redacted], or hide the message; put your own text into a new message",
	"not-empty":          "hide a message that would be empty, or keep a text that says what was removed",
	"keep-calls":         "keep calls and results in their messages; rewrite the arguments of a call, not its ID or its tool",
	"keep-pairs":         "keep or hide whole groups of calls and results, as core.KeepGroups (Go), call.hideUnless (Node) and call.hide_unless (Python) do",
	"keep-pending":       "keep every message that core.Pending returns: its result is still to come",
	"no-split":           "put a message of your own before or after a group of core.Groups, and never after a last call",
	"keep-media":         "replace what you remove by a text such as [… image left out]",
	"keep-reasoning":     "return reasoning unchanged, or remove all of it",
	"first-role":         "keep the first user message, or begin with a summary whose role is user",
	"declared-abilities": "declare what your provider does (Only in Go, abilities in Node and Python), or do not do it",
	"no-growth":          "count what you insert with the host's counter, and do not rewrite what would not get smaller",

	"return":          "check indices and nil before use; the log above has the trace of the panic",
	"answer-ordinary": "return a result; return an error only for what you cannot do",
	"heed-context":    "check ctx.Err() in loops and pass ctx to everything that waits; return an error that wraps it",
	"leave-request":   "clone slices before you change them, as slices.Clone(req.Messages) does",
	"plausible-usage": "report what the model's API reported, and zero if no model was asked",
}

// A fault is a rule that was broken, and how.
type fault struct{ rule, text string }

// printFaults prints the reasons why the answer of a plugin was invalid, and the repairs for its author.
func printFaults(w io.Writer, err error) {
	faults := faultsOf(err)
	if len(faults) == 0 {
		term.Printf(w, "    %v\n", term.Indented{Text: err.Error(), By: "    "})
		return
	}
	for _, r := range append(core.Rules(), coretest.Contract()...) {
		const most = 3 // of each rule: the others are similar
		count := 0
		for _, f := range faults {
			if f.rule != r.Name {
				continue
			}
			if count++; count <= most {
				term.Printf(w, "    %s\n", f.text)
			}
		}
		if count > most {
			term.Printf(w, "    and %d more like it\n", count-most)
		}
		if count > 0 {
			term.Printf(w, "      rule:   %s\n      repair: %s\n", r.Text, repairs[r.Name])
		}
	}
}

// faultsOf returns the broken rules that err reports: detected by the host, or by the plugin's SDK, which checks
// before it answers.
func faultsOf(err error) []fault {
	var faults []fault
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		for rule := range repairs {
			if i := strings.Index(line, rule+": "); i == 0 || i > 0 && strings.HasSuffix(line[:i], ": ") {
				faults = append(faults, fault{rule, line[i:]})
				break
			}
		}
	}
	return faults
}

// authorLogs returns the loggers for a plugin's output and for its logs of calls.
func authorLogs(w io.Writer) (output, calls *slog.Logger) {
	mu := new(sync.Mutex)
	return slog.New(cli.AuthorLog{Mu: mu, W: w, Level: slog.LevelInfo, Stream: true}), slog.New(cli.AuthorLog{Mu: mu, W: w, Level: slog.LevelDebug})
}
