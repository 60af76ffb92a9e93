package lab

import (
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/lab/truth"
)

// A Measure is one number of a [Row]. docs/comparing-measures.md has the formulas.
type Measure struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// Unit is "share" (0 to 1), "tokens", "messages", "bytes", "ms", "calls", "USD",
	// "turns" or "faults".
	Unit string `json:"unit"`
	// Better is 1 if more is better, -1 if less is better, 0 if neither.
	Better int    `json:"better"`
	Doc    string `json:"doc"`
	// OfOracle reports whether the value of the oracle is an upper bound.
	OfOracle bool `json:"of_oracle,omitempty"`
}

// Names of measures that other code uses.
const (
	MeasurePanel = "panel"
	// MeasureReachable is the panel, counting content that is kept or that a visible handle or path with lines leads
	// to.
	MeasureReachable = "reachable"
	// MeasureLabelled is like it, but counts only handles whose label names the content.
	MeasureLabelled = "labelled"
	// MeasureGain is the conditional compression gain, which is independent of the panel: a verdict needs both.
	MeasureGain = "gain"
	MeasureFar  = "far"
	MeasureUser = "user"
	MeasureSize = "size"
	MeasureKept = "kept"
	// MeasureOwn is the share of the saving due to the strategy itself; the rest is due to the truncation after it.
	MeasureOwn = "own"
	// MeasureFailed is 1 where a provider of the strategy failed, was rejected or could not work, else 0.
	MeasureFailed = "failed"
)

// measures are all measures, in the order of a report.
var measures = []Measure{
	{Name: MeasurePanel, Title: "needed later", Unit: "share", Better: 1, OfOracle: true, Doc: "Mean of cfrr, fnr4 and rw: how much of what the agent needed later is left. The headline number."},
	{Name: MeasureReachable, Title: "reachable", Unit: "share", Better: 1, Doc: "The panel, with everything counted as kept that a handle or a path with lines in the result leads to: one recall or one read brings it back."},
	{Name: MeasureLabelled, Title: "reachable by label", Unit: "share", Better: 1, Doc: "The panel, with everything counted as kept that a handle leads to whose label names its file, with the lines if it gives any, or its command. A bare handle does not count: no reader can know what it leads to."},
	{Name: "cfrr", Title: "names in context", Unit: "share", Better: 1, OfOracle: true, Doc: "Paths, identifiers, numbers and quotes that were needed later, by weight, with credit for the text around them."},
	{Name: "fnr4", Title: "word for word", Unit: "share", Better: 1, OfOracle: true, Doc: "Runs of four words that were written again later."},
	{Name: "rw", Title: "rare words", Unit: "share", Better: 1, OfOracle: true, Doc: "Rare plain words that were needed later, by weight."},
	{Name: MeasureFar, Title: "needed from far back", Unit: "share", Better: 1, OfOracle: true, Doc: "cfrr of names last seen long before the cut, which truncation always loses."},
	{Name: "grounded", Title: "names, grounded", Unit: "share", Better: 1, Doc: "Names that were needed later and are left in text that says something about them."},
	{Name: "plain", Title: "names, anywhere", Unit: "share", Better: 1, Doc: "Names that were needed later and are anywhere in the result. A bare list of names scores well here and nowhere else."},
	{Name: "altered", Title: "names altered", Unit: "share", Better: -1, Doc: "Names that were needed later and are left without the text around them, and not reachable."},
	{Name: "stale", Title: "names stale", Unit: "share", Better: -1, Doc: "Names that were needed later and are only left in a line that was replaced before the cut, without what replaced it."},
	{Name: MeasureUser, Title: "user's words", Unit: "share", Better: 1, Doc: "Sentences that the user typed, verbatim, weighted by length up to 40 words."},
	{Name: "artefacts", Title: "files touched", Unit: "share", Better: 1, Doc: "Files that the agent touched: half for the name, half for the lines of the last state."},
	{Name: "errors", Title: "errors", Unit: "share", Better: 1, Doc: "Lines of tool results that report an error, the newest 200."},
	{Name: MeasureGain, Title: "predicts what follows", Unit: "share", Better: 1, Doc: "Conditional compression gain: how many of the bytes that everything before the cut saves in compressing what was written next the result saves."},
	{Name: "anchors", Title: "lines edited next", Unit: "share", Better: 1, Doc: "Lines that the agent quotes in its next edits, and that no tool showed again."},
	{Name: "torn", Title: "messages torn", Unit: "share", Better: -1, Doc: "Typed messages of which sentences were moved, or closed up without a mark."},
	{Name: "legible", Title: "results in readable units", Unit: "share", Better: 1, Doc: "Lines of tool results in runs of five or more as they were, or in whole results."},
	{Name: "decisions", Title: "decisions", Unit: "share", Better: 1, Doc: "Sentences of the assistant that state a cause, a choice or a finding, verbatim, without those of the last twelve messages."},
	{Name: "wrong_author", Title: "wrong author", Unit: "share", Better: -1, Doc: "Of the lines that the result gives as the user's, those that somebody else wrote."},
	{Name: "superseded", Title: "superseded lines", Unit: "share", Better: -1, Doc: "Of the lines of files in the result, those that an edit or a newer read replaced, shown without the newer text."},
	{Name: "outcomes", Title: "outcomes", Unit: "share", Better: 1, Doc: "Identifiers of what calls started or created (agents, jobs, issues, commits), while nobody saw its end."},
	{Name: "recent", Title: "last ten messages", Unit: "share", Better: 1, Doc: "The share of the last ten messages that is kept verbatim."},
	{Name: MeasureKept, Title: "tokens left", Unit: "share", Better: -1, Doc: "Tokens after, as a share of those before."},
	{Name: MeasureSize, Title: "of the budget", Unit: "share", Better: 0, Doc: "Tokens after, as a share of the budget. Above 1.03 the strategy missed the budget."},
	{Name: MeasureOwn, Title: "saved by itself", Unit: "share", Better: 0, Doc: "Of the tokens saved, the share that the strategy itself saved. The truncation that follows it saved the rest."},
	{Name: MeasureFailed, Title: "failed", Unit: "share", Better: -1, Doc: "The share of the cuts at which a provider of the strategy failed, was rejected or could not work, also if truncation did its work."},
	{Name: "lawful", Title: "valid", Unit: "share", Better: 1, Doc: "Whether every rule of core.Verify was kept. Anything below 1 is a defect."},
	{Name: "faults", Title: "faults added", Unit: "faults", Better: -1, Doc: "Calls without results, results without calls, repeated IDs and blank messages that were not there before."},
	{Name: "stable", Title: "stable", Unit: "share", Better: 1, Doc: "Whether a second run on the result with the same budget changes nothing. Not measured for strategies that call a model."},
	{Name: "head_messages", Title: "cached prefix, messages", Unit: "share", Better: 1, Doc: "The share of the messages before, from the first on, that is unchanged byte for byte: what a prompt cache still serves."},
	{Name: "head_bytes", Title: "cached prefix, bytes", Unit: "share", Better: 1, Doc: "The same, by bytes of content."},
	{Name: "payback", Title: "break-even after", Unit: "turns", Better: -1, Doc: "Turns until shorter prompts have saved what the model calls and writing the new prompt to the cache cost. Absent if they never do."},
	{Name: "ms", Title: "time", Unit: "ms", Better: -1, Doc: "Milliseconds that the strategy took, with token counts cached."},
	{Name: "calls", Title: "model calls", Unit: "calls", Better: -1, Doc: "Calls to language models."},
	{Name: "usd", Title: "model cost", Unit: "USD", Better: -1, Doc: "What the calls cost, as far as prices are known."},
	{Name: "foretold", Title: "foretold", Unit: "share", Better: 0, Doc: "Runs of words that first appear after the cut and are in the result. More than a few percent means that the strategy knows the future."},
}

// Measures returns all measures, in the order of a report.
func Measures() []Measure { return append([]Measure(nil), measures...) }

// measureOf returns the measure with that name. For an unknown measure, as in a report of a newer program, only the
// name is set.
func measureOf(name string) Measure {
	for _, m := range measures {
		if m.Name == name {
			return m
		}
	}
	return Measure{Name: name, Title: name}
}

// scores adds the defined results of the scorer to values.
func scores(values map[string]float64, s score.Score) {
	put := func(name string, v float64, ok bool) {
		if ok {
			values[name] = v
		}
	}
	p, ok := s.Panel()
	put(MeasurePanel, p, ok)
	for name, share := range map[string]score.Share{
		"cfrr": s.CFRR, "fnr4": s.FNR4, "rw": s.RW, MeasureFar: s.CFAR, "grounded": s.GFRR, "plain": s.FRR, MeasureReachable: s.Reach, MeasureLabelled: s.Labelled, "altered": s.Altered, "stale": s.Stale,
		MeasureUser: s.UIR, "artefacts": s.Artefacts, "errors": s.Errors, "recent": s.Recent, "foretold": s.Foretold,
	} {
		v, ok := share.Value()
		put(name, v, ok)
	}
	values["faults"] = float64(s.PairErrors)
}

// truths adds the shares of what is not so.
func truths(values map[string]float64, t truth.Report) {
	for name, share := range map[string][2]int{
		"wrong_author": {t.WrongAuthor, t.Claims}, "superseded": {t.Superseded, t.Lines}, "outcomes": {t.Outcomes - t.OutcomesLost, t.Outcomes},
	} {
		if share[1] > 0 {
			values[name] = float64(share[0]) / float64(share[1])
		}
	}
}

// continuation adds the measures that are not in the panel.
func continuation(values map[string]float64, s score.Continuation) {
	for name, share := range map[string]score.Share{MeasureGain: s.Gain, "anchors": s.Anchors, "torn": s.Torn, "legible": s.Legible, "decisions": s.Decisions} {
		if v, ok := share.Value(); ok {
			values[name] = v
		}
	}
}
