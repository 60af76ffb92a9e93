package plugincmd

import (
	"io"
	"log/slog"
	"sync"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/lab/judge"
)

// printFaults prints the reasons why the answer of a plugin was invalid, and the repairs for its author.
func printFaults(w io.Writer, err error) {
	faults := judge.Faults(err)
	if len(faults) == 0 {
		term.Printf(w, "    %v\n", term.Indented{Text: err.Error(), By: "    "})
		return
	}
	for _, r := range append(core.Rules(), coretest.Contract()...) {
		const most = 3 // of each rule: the others are similar
		count, repair := 0, ""
		for _, f := range faults {
			if f.Rule != r.Name {
				continue
			}
			repair = f.Repair
			if count++; count <= most {
				term.Printf(w, "    %s\n", f.Text)
			}
		}
		if count > most {
			term.Printf(w, "    and %d more like it\n", count-most)
		}
		if count > 0 {
			term.Printf(w, "      rule:   %s\n      repair: %s\n", r.Text, repair)
		}
	}
}

// authorLogs returns the loggers for a plugin's output and for its logs of calls.
func authorLogs(w io.Writer) (output, calls *slog.Logger) {
	mu := new(sync.Mutex)
	return slog.New(cli.AuthorLog{Mu: mu, W: w, Level: slog.LevelInfo, Stream: true}), slog.New(cli.AuthorLog{Mu: mu, W: w, Level: slog.LevelDebug})
}
