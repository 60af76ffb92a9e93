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
// agent and the user after it. The JSON of the [Report] has a row for every result, tables of means with intervals,
// paired differences, verdicts and warnings. The same seed gives the same report, whatever the
// number of jobs. No model is called except by strategies that use one.
//
// bench/measures.md has the formula of every measure, how it can mislead, and the JSON of a
// report. The command is condense compare.
package compare

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/plain"
)

// A Strategy is one provider or a chain of them, to be compared.
type Strategy struct {
	Name string // unique; shown in tables
	// Provider condenses. It may be called for several conversations at a time.
	Provider core.CondensationProvider
	// Chain is used if Provider is nil. Its providers are called in order until the target is met.
	Chain []core.NamedProvider
	// About describes the strategy and its settings in one line.
	About string
	// Key identifies the strategy, its version and its settings in the cache: results with the same
	// key are not measured again. Empty means no caching.
	Key string
	// Unchecked measures the provider's result even if it breaks rules, and does not run it a second time: for
	// programs of others. There is no chain.
	Unchecked bool
	// Truncation is the name of the provider in Chain that truncates the result of the others; empty if none does.
	// Its savings do not count as the strategy's own.
	Truncation string
	// SizeOf is the name of a strategy earlier in the list. Its result is the budget, so that both are compared at the
	// same size; empty means the budget of the run. It does not run in rounds and with canaries.
	SizeOf string
}

// An Item is a recorded session that is opened when it is needed.
type Item struct {
	Name string // path of the file; unique
	// Canaries names the sentences to plant in the session. Their survival is then measured instead of later use.
	Canaries string
	// Evidence says that the file is a conversation with gold evidence, not a transcript.
	Evidence bool
	Open     func() (io.ReadCloser, error)
}

// Options adjust [Run]. A nil pointer and the zero value of every field mean the defaults.
type Options struct {
	// Budgets; default 10 %, 25 % and 50 % of the prefix.
	Budgets []Budget
	// Modes selects the sessions of these modes; default all.
	Modes []string
	// Encoding counts tokens: see package tokens. Default o200k_base, exact.
	Encoding string
	// Seed of all random draws. The same seed gives the same report.
	Seed uint64
	// Jobs is the number of sessions that are processed at a time; default 1.
	Jobs int
	// Rounds is how often a long session is condensed as it grows; zero means never.
	Rounds int
	// Repeat is how often a strategy that asks a language model runs at every cut and budget; default 3. Rows have the means.
	// Other strategies are deterministic and run once; so do rounds and canaries.
	Repeat int
	// ByFolder makes folders of sessions the samples, not sessions: sessions of one project are alike. Intervals are then over
	// folders; means stay over sessions.
	ByFolder bool
	// Cache is a folder for results; empty means none. See [Strategy.Key].
	Cache string
	// MaxUSD stops the run when model calls have cost this much, as far as prices are known; zero
	// means no limit. Running calls finish, so a little more may be spent.
	MaxUSD float64
	// Now is the clock; default time.Now. With a constant clock two runs give the same report byte for byte.
	Now func() time.Time
}

// A Budget says where sessions are cut and how many tokens a strategy may leave. Exactly one field is
// set, or Share and Real: the recorded compactions, each with that share of the prefix.
type Budget struct {
	// Share is a percentage of the prefix, between 0 and 100. A session is cut where it would exceed 32k, 64k and 100k tokens.
	Share float64
	// Window is a context window in tokens. A session is cut where the recommended policy would
	// first condense it, and may have the target of that policy.
	Window int
	// Real selects the recorded compactions, each with the tokens that it left.
	Real bool
	// Results selects the long results of tools, each with half of its tokens.
	Results bool
}

// String returns b as condense compare --budget reads it.
func (b Budget) String() string { return lab.Budget(b).String() }

// A Report is the result of a comparison. Its JSON is stable, and has all of it.
type Report struct {
	// Partial reports whether the run stopped before all sessions were finished.
	Partial bool
	// Warnings say why numbers may mislead.
	Warnings []string

	all *lab.Report
}

func reportOf(all *lab.Report, err error) (*Report, error) {
	if all == nil {
		return nil, err
	}
	r := &Report{Partial: all.Partial, all: all}
	r.Warnings = append(r.Warnings, plain.Each(all.Warnings, func(w lab.Warning) string { return w.Text })...)
	return r, err
}

// Difference returns by how much strategy a is above b in a measure, over all budgets and modes. It is meant for
// tests of providers.
func (r *Report) Difference(a, b, measure string) Difference {
	return differenceOf(r.all.Difference(a, b, measure))
}

// WriteJSON writes r, indented by one space, with a final newline.
func (r *Report) WriteJSON(w io.Writer) error { return r.all.WriteJSON(w) }

// MarshalJSON returns what [Report.WriteJSON] writes, without white space.
func (r *Report) MarshalJSON() ([]byte, error) { return json.Marshal(r.all) }

// A Difference says by how much strategy A is above B in a measure, paired by cut, on the sessions where both have a result.
type Difference struct {
	Measure, A, B   string
	Mean, Low, High float64 // the mean, and its 95 % interval
	Sessions        int
	// Shown reports whether the interval excludes zero, on at least six sessions.
	Shown bool

	of lab.Difference
}

func differenceOf(d lab.Difference) Difference {
	return Difference{d.Measure, d.A, d.B, d.Mean, d.Low, d.High, d.Sessions, d.Shown, d}
}

// NotBelow reports whether the data show that A is at most margin below B: the interval is above
// -margin, on at least six sessions.
func (d Difference) NotBelow(margin float64) bool { return d.of.NotBelow(margin) }

// Below reports whether the data show that A is more than margin below B, on at least six sessions.
func (d Difference) Below(margin float64) bool { return d.of.Below(margin) }

// String returns d as a sentence.
func (d Difference) String() string { return d.of.String() }

// Names of measures, for [Report.Difference]. bench/measures.md lists all.
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
// If ctx ends, or [Options.MaxUSD] is spent, Run returns the report on the sessions that are
// finished together with the error. With a cache, the next run continues from there. Providers are
// called for several conversations at a time if [Options.Jobs] is above 1.
func Run(ctx context.Context, sessions []Item, strategies []Strategy, opts *Options) (*Report, error) {
	opts = cmp.Or(opts, &Options{})
	o := lab.Options{
		Modes: opts.Modes, Encoding: opts.Encoding, Seed: opts.Seed, Jobs: opts.Jobs, Rounds: opts.Rounds, Repeat: opts.Repeat,
		ByFolder: opts.ByFolder, Cache: opts.Cache, MaxUSD: opts.MaxUSD, Now: opts.Now,
	}
	o.Budgets = plain.Each(opts.Budgets, func(b Budget) lab.Budget { return lab.Budget(b) })
	items := plain.Each(sessions, func(s Item) lab.Item { return lab.Item(s) })
	all := plain.Each(strategies, func(s Strategy) lab.Strategy { return lab.Strategy(s) })
	return reportOf(lab.Run(ctx, items, all, &o))
}

// Find returns the sessions that paths name, sorted by name: files, folders with everything in
// them that looks like a transcript, patterns as of [path/filepath.Glob], and "demo:" for the
// sessions of [Demo]. It reads no file. A path that names nothing is an error.
func Find(paths ...string) ([]Item, error) {
	found, err := lab.Find(paths...)
	return itemsOf(found), err
}

// Demo returns the ten sessions that come with the program: small, real, of several agents. They
// are too few to choose a strategy by.
func Demo() []Item { return itemsOf(lab.Demo()) }

func itemsOf(all []lab.Item) (items []Item) {
	return plain.Each(all, func(it lab.Item) Item { return Item(it) })
}
