package lab_test

import (
	"testing"

	"github.com/condensehq/condense/internal/lab"
)

// The verdicts over all modes are one sentence, which does not say more than they do.
func TestConclusion(t *testing.T) {
	shown := func(budget, best string) lab.Verdict { return lab.Verdict{Budget: budget, Best: best, Shown: true} }
	for _, tt := range []struct {
		verdicts []lab.Verdict
		want     string
	}{
		{nil, ""},
		{[]lab.Verdict{shown("10%", "a"), shown("25%", "a"), shown("50%", "a")}, "a keeps most of what was needed later at 10%, 25% and 50%."},
		{[]lab.Verdict{{Budget: "10%", Best: "b", Ties: []string{"a"}}, shown("25%", "a"), shown("50%", "b")}, "a keeps most of what was needed later at 25%; b does at 50%; at 10% the data do not decide."},
		{[]lab.Verdict{{Budget: "10%", Best: "b", Ties: []string{"a"}}, {Budget: "25%", Best: "a", Ties: []string{"b"}}}, "No strategy is shown to keep most of what was needed later: b is ahead, but not shown to be better than a."},
		{[]lab.Verdict{{Budget: "10%", Few: true}, {Budget: "10%", Mode: "code", Best: "a", Shown: true}}, "2 sessions are not enough for a verdict."},
		{[]lab.Verdict{{Budget: "10%", Mode: "code", Best: "a", Shown: true}}, ""},
	} {
		r := &lab.Report{Verdicts: tt.verdicts, Sessions: make([]lab.SessionInfo, 2)}
		if got := r.Conclusion(); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.verdicts, got, tt.want)
		}
	}
}

// A policy is named that loses little and costs least, against what was recorded if that is known.
func TestReplayConclusion(t *testing.T) {
	line := func(policy string, usd, lost float64, sessions int) lab.ReplayLine {
		return lab.ReplayLine{Scope: lab.ScopeAll, Policy: policy, Tariff: "m", USD: usd, Sessions: sessions, Epochs: 3, Values: map[string]lab.Estimate{"lost": {Mean: lost}}}
	}
	other := line("cheap elsewhere", 1, 0, 9)
	other.Tariff = "other"
	for _, tt := range []struct {
		lines []lab.ReplayLine
		want  string
	}{
		{[]lab.ReplayLine{line("untouched", 100, 0, 9), line("recorded", 50, 0, 9), line("a", 40, .01, 9), line("b", 20, .1, 9), other}, "a costs least of those that lose at most 2 % of what was used: $40.00, 20 % less than recorded ($50.00), on 9 sessions."},
		{[]lab.ReplayLine{line("untouched", 100, 0, 2), line("a", 40, .01, 2)}, "a costs least of those that lose at most 2 % of what was used: $40.00, 60 % less than untouched ($100.00), on 2 sessions, too few to rely on."},
		{[]lab.ReplayLine{line("untouched", 100, 0, 9), line("recorded", 50, 0, 9), line("a", 60, .01, 9), line("b", 20, .1, 9)}, "No policy that loses at most 2 % of what was used costs less than recorded."},
		{[]lab.ReplayLine{{Scope: lab.ScopeAll, Policy: "untouched", Tariff: "m"}, {Scope: lab.ScopeAll, Policy: "a", Tariff: "m"}}, "Nothing was condensed: no session is long enough for this window."},
		{[]lab.ReplayLine{line("a", 60, .01, 9)}, ""},
	} {
		r := &lab.ReplayReport{Lines: tt.lines, Tariffs: []lab.Tariff{{Name: "m"}}, Policies: make([]lab.StrategyInfo, 2)}
		if got := r.Conclusion(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
