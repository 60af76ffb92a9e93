package plugincmd

import (
	_ "embed"
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
var repairs = func() map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(repairsText) {
		rule, repair, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[rule] = repair
	}
	return all
}()

//go:embed repairs.txt
var repairsText string

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
