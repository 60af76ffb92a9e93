package lab

import (
	_ "embed"
	"encoding/json"

	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/lab/truth"
)

// A Measure is one number of a [Row]. bench/measures.md has the formulas.
type Measure struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// Unit is "share" (0 to 1), "tokens", "messages", "bytes", "ms", "calls", "USD",
	// "turns" or "faults".
	Unit string `json:"unit"`
	// Better is 1 if more is better, -1 if less is better, 0 if neither.
	Better int    `json:"better"`
	Doc    string `json:"doc"`
}

// Names of measures that other code uses.
const (
	MeasurePanel = "panel"
	// MeasureReachable is the panel, counting content that is kept or that a visible handle or path with lines leads
	// to.
	MeasureReachable = "reachable"
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
var measures = func() (all []Measure) {
	if err := json.Unmarshal(measuresJSON, &all); err != nil {
		panic(err)
	}
	return all
}()

//go:embed measures.json
var measuresJSON []byte

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
		"cfrr": s.CFRR, "fnr4": s.FNR4, "rw": s.RW, MeasureFar: s.CFAR, "grounded": s.GFRR, "plain": s.FRR, MeasureReachable: s.Reach, "altered": s.Altered, "stale": s.Stale,
		MeasureUser: s.UIR, "artefacts": s.Artefacts, "errors": s.Errors, "recent": s.Recent, "foretold": s.Foretold,
	} {
		v, ok := share.Value()
		put(name, v, ok)
	}
	values["faults"] = float64(s.PairErrors)
}

// Truth reads the first messages of a session, which views of them are held against.
func Truth(s *score.Session, upto int) *truth.History {
	return truth.Read(s.Messages[:upto], func(m, part int) bool {
		o := s.Origin(m, part)
		return o == score.OriginUser || o == score.OriginUnknown
	})
}

// truths adds the shares of what is not so.
func truths(values map[string]float64, t epoch.Truth) {
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
