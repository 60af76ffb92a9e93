package lab

import "github.com/condensehq/condense/internal/lab/score"

// A Measure is one number of a [Row]. docs/comparing.md has the formulas.
type Measure struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// Unit is "share" (0 to 1), "tokens", "messages", "bytes", "ms", "calls", "USD",
	// "turns" or "faults".
	Unit string `json:"unit"`
	// Better is 1 if more is better, -1 if less is, 0 if it only describes.
	Better int    `json:"better"`
	Doc    string `json:"doc"`
	// OfOracle says that the oracle's value is an upper bound worth dividing by.
	OfOracle bool `json:"of_oracle,omitempty"`
}

// The names of the measures that other code refers to.
const (
	MeasurePanel = "panel"
	MeasureFar   = "far"
	MeasureUser  = "user"
	MeasureSize  = "size"
	MeasureKept  = "kept"
)

// measures are all, in the order in which a report should list them.
var measures = []Measure{
	{Name: MeasurePanel, Title: "needed later", Unit: "share", Better: 1, OfOracle: true, Doc: "Mean of cfrr, fnr4 and rw: how much of what the agent later needed is still there. The headline number."},
	{Name: "cfrr", Title: "names in context", Unit: "share", Better: 1, OfOracle: true, Doc: "Paths, identifiers, numbers and quotes that were needed later, by weight, with credit for the text around them."},
	{Name: "fnr4", Title: "word for word", Unit: "share", Better: 1, OfOracle: true, Doc: "Runs of four words that were written again later."},
	{Name: "rw", Title: "rare words", Unit: "share", Better: 1, OfOracle: true, Doc: "Rare plain words that were needed later, by weight."},
	{Name: MeasureFar, Title: "needed from far back", Unit: "share", Better: 1, OfOracle: true, Doc: "cfrr of what was last seen long before the cut: what truncation always loses."},
	{Name: "grounded", Title: "names, grounded", Unit: "share", Better: 1, Doc: "Names that were needed later and are in text that says something about them."},
	{Name: "plain", Title: "names, anywhere", Unit: "share", Better: 1, Doc: "Names that were needed later and are anywhere in the result. A bare list of names gets this right and nothing else."},
	{Name: MeasureUser, Title: "user's words", Unit: "share", Better: 1, Doc: "Sentences that the person typed, word for word, weighted by length up to 40 words."},
	{Name: "artefacts", Title: "files touched", Unit: "share", Better: 1, Doc: "Files that the agent touched: half for the name, half for the lines of the last state."},
	{Name: "errors", Title: "errors", Unit: "share", Better: 1, Doc: "Lines of tool results that report a fault, the newest 200."},
	{Name: "recent", Title: "last ten messages", Unit: "share", Better: 1, Doc: "Of the last ten messages those that are kept word for word."},
	{Name: MeasureKept, Title: "tokens left", Unit: "share", Better: -1, Doc: "Tokens after, of those before."},
	{Name: MeasureSize, Title: "of the budget", Unit: "share", Better: 0, Doc: "Tokens after, of the budget. Above 1.03 the strategy did not do what was asked."},
	{Name: "lawful", Title: "valid", Unit: "share", Better: 1, Doc: "Whether every rule of core.Verify was kept. Anything below 1 is a defect."},
	{Name: "faults", Title: "faults added", Unit: "faults", Better: -1, Doc: "Calls without results, results without calls, repeated IDs and blank messages that were not there before."},
	{Name: "stable", Title: "stable", Unit: "share", Better: 1, Doc: "Whether a second run on its own result with the same budget changes nothing. Not asked of what calls a model."},
	{Name: "head_messages", Title: "head untouched, messages", Unit: "share", Better: 1, Doc: "Messages at the head that stayed byte for byte, of those before: what a vendor's prompt cache keeps."},
	{Name: "head_bytes", Title: "head untouched, bytes", Unit: "share", Better: 1, Doc: "The same, by bytes of content."},
	{Name: "payback", Title: "break-even after", Unit: "turns", Better: -1, Doc: "Turns until what writing the new prompt to the cache and the model calls cost is saved by shorter prompts. Absent if it never is."},
	{Name: "ms", Title: "time", Unit: "ms", Better: -1, Doc: "Milliseconds that the strategy took, token counts cached."},
	{Name: "calls", Title: "model calls", Unit: "calls", Better: -1, Doc: "Calls to language models."},
	{Name: "usd", Title: "model cost", Unit: "USD", Better: -1, Doc: "What the calls cost, as far as prices are known."},
	{Name: "foretold", Title: "foretold", Unit: "share", Better: 0, Doc: "Of the word runs that are nowhere before the cut, those that the result has. More than a few percent means that the strategy knows the future."},
}

// Measures returns all measures in the order in which a report should list them.
func Measures() []Measure { return append([]Measure(nil), measures...) }

// measureOf returns the measure of that name; of one that is unknown, as in a report of a
// newer program, there is only the name.
func measureOf(name string) Measure {
	for _, m := range measures {
		if m.Name == name {
			return m
		}
	}
	return Measure{Name: name, Title: name}
}

// scores puts what the scorer measured into values; what is not defined is left out.
func scores(values map[string]float64, s score.Score) {
	put := func(name string, v float64, ok bool) {
		if ok {
			values[name] = v
		}
	}
	p, ok := s.Panel()
	put(MeasurePanel, p, ok)
	for name, share := range map[string]score.Share{
		"cfrr": s.CFRR, "fnr4": s.FNR4, "rw": s.RW, MeasureFar: s.CFAR, "grounded": s.GFRR, "plain": s.FRR,
		MeasureUser: s.UIR, "artefacts": s.Artefacts, "errors": s.Errors, "recent": s.Recent, "foretold": s.Foretold,
	} {
		v, ok := share.Value()
		put(name, v, ok)
	}
	values["faults"] = float64(s.PairErrors)
}
