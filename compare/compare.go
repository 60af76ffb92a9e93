// Package compare measures condensation strategies on recorded sessions, and says which one is
// better only where the data show it. It is for a test of your own provider:
//
//	report, err := compare.Run(ctx, compare.Demo(), []compare.Strategy{mine, other}, nil)
//	if err != nil {
//		t.Fatal(err)
//	}
//	if d := report.Difference("mine", "other", compare.MeasurePanel); !d.NotBelow(0.02) {
//		t.Error(d)
//	}
//
// [Find] lists sessions: files, folders and patterns, in every format that package transcript
// reads. [Run] cuts each session where it would have overflowed ([Budget]), lets every [Strategy]
// condense the messages before the cut, and measures the result against the messages of the
// agent and the user after it. The [Report] has a row for every result, tables of means with intervals,
// paired differences, verdicts and warnings. The same seed gives the same report, whatever the
// number of jobs. No model is called except by strategies that use one.
//
// bench/measures.md has the formula of every measure, how it can mislead, and the JSON of a
// report. The command is condense compare.
package compare

import (
	"context"
	"io"

	"github.com/condensehq/condense/internal/lab"
)

type (
	// A Strategy is a provider, or a chain of them, with a unique name. Set its Key to have
	// results cached.
	Strategy = lab.Strategy
	// An Item is a recorded session that is opened when it is needed.
	Item = lab.Item
	// Options adjust [Run]. A nil pointer and the zero value of every field mean the defaults.
	Options = lab.Options
	// A Budget says where sessions are cut and how many tokens a strategy may leave.
	Budget = lab.Budget
	// A Report is the result of a comparison. Its JSON is stable: Report.WriteJSON writes it.
	Report = lab.Report
	// A Difference says by how much one strategy is above another in a measure, paired by cut,
	// with a 95 % interval. Its NotBelow and Below methods are for tests.
	Difference = lab.Difference
)

// Names of measures, for the method Difference of a [Report]. bench/measures.md lists all.
const (
	MeasurePanel = lab.MeasurePanel // share of later needs that is left: the headline
	// MeasureReachable is the panel, counting content that is kept or that a visible handle or path with lines leads
	// to.
	MeasureReachable = lab.MeasureReachable
	MeasureFar       = lab.MeasureFar  // of names last seen long before the cut
	MeasureUser      = lab.MeasureUser // the user's sentences, verbatim
	MeasureKept      = lab.MeasureKept // tokens after, as a share of the tokens before
	MeasureSize      = lab.MeasureSize // tokens after, of the budget
)

// Run compares strategies on sessions. A session that cannot be read, or is too short to be cut,
// is listed in the report and skipped.
//
// If ctx ends, or [Options].MaxUSD is spent, Run returns the report on the sessions that are
// finished together with the error. With a cache, the next run continues from there. Providers are
// called for several conversations at a time if Options.Jobs is above 1.
func Run(ctx context.Context, sessions []Item, strategies []Strategy, opts *Options) (*Report, error) {
	return lab.Run(ctx, sessions, strategies, opts)
}

// Find returns the sessions that paths name, sorted by name: files, folders with everything in
// them that looks like a transcript, patterns as of [path/filepath.Glob], and "demo:" for the
// sessions of [Demo]. It reads no file. A path that names nothing is an error.
func Find(paths ...string) ([]Item, error) { return lab.Find(paths...) }

// Demo returns the ten sessions that come with the program: small, real, of several agents. They
// are too few to choose a strategy by.
func Demo() []Item { return lab.Demo() }

// ParseBudget reads a budget: "25%" of the prefix, a context window such as "32k" or "128000", or
// "real" for the recorded compactions.
func ParseBudget(s string) (Budget, error) { return lab.ParseBudget(s) }

// ReadReport reads the JSON that a [Report] writes.
func ReadReport(r io.Reader) (*Report, error) { return lab.ReadReport(r) }
