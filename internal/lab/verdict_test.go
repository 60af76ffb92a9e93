package lab_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/testkit"
)

// rows makes a report of sessions on which strategy a has the panel that f returns and b
// half. Nothing is derived from it yet.
func rows(sessions int, f func(i int) float64) *lab.Report {
	r := &lab.Report{Format: lab.ReportFormat, Budgets: []string{"25%"}, Strategies: []lab.StrategyInfo{{Name: "a"}, {Name: "b"}}}
	for i := range sessions {
		name := fmt.Sprint("session ", i)
		r.Sessions = append(r.Sessions, lab.SessionInfo{Name: name, Mode: "code"})
		for _, s := range []string{"a", "b"} {
			v := 0.5
			if s == "a" {
				v = f(i)
			}
			r.Rows = append(r.Rows, lab.Row{Strategy: s, Budget: "25%", Session: name, Mode: "code", Cut: "32k", Outcome: core.OutcomeApplied, Values: map[string]float64{"panel": v, "size": 1}})
		}
	}
	return r
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		name     string
		sessions int
		f        func(i int) float64
		want     string
		shown    bool
	}{
		{"clearly better", 20, func(i int) float64 { return 0.6 + float64(i%3)/100 }, "a keeps most", true},
		{"clearly worse", 20, func(i int) float64 { return 0.4 - float64(i%3)/100 }, "b keeps most", true},
		{"noise", 20, func(int) float64 { return 0.5 + 0.2*rng.NormFloat64() }, "no difference shown between", false},
		{"too few", 3, func(int) float64 { return 0.9 }, "not enough sessions (3 of the 6 needed)", false},
	} {
		r := lab.Concluded(rows(c.sessions, c.f))
		v := r.Verdicts[0]
		if !strings.Contains(v.Text, c.want) || v.Shown != c.shown {
			t.Errorf("%s: got %q (shown %v), want %q", c.name, v.Text, v.Shown, c.want)
		}
	}
}

// The verdict is about recall alone, and lists the losses of the winner.
func TestAVerdictSaysWhatTheWinnerLoses(t *testing.T) {
	t.Parallel()
	report := func(errors, recent, ms [2]float64) lab.Verdict {
		t.Helper()
		in := rows(12, func(i int) float64 { return 0.7 + float64(i%3)/100 })
		for i := range in.Rows {
			k := 0
			if in.Rows[i].Strategy == "b" {
				k = 1
			}
			noise := float64(i/2%3) / 100 // by session
			in.Rows[i].Values["errors"], in.Rows[i].Values["recent"], in.Rows[i].Values["ms"] = errors[k]+noise*float64(1-k), recent[k]+noise*float64(1-k), ms[k]
		}
		r := lab.Concluded(in)
		return r.Verdicts[0]
	}
	v := report([2]float64{0.06, 0.24}, [2]float64{0.8, 0.4}, [2]float64{140, 0.2})
	if want := "a is worse in: errors (0.07; 0.24 with b), time (140.0 ms; 0.2 ms with b)"; v.WorseIn() != want {
		t.Errorf("got %q, want %q", v.WorseIn(), want)
	}
	if why := strings.Join(v.Explained(), "; "); !strings.Contains(why, "errors: counts errors that were fixed") || !strings.Contains(why, "time: ") {
		t.Errorf("the losses are explained as %q", why)
	}
	newer := lab.Verdict{Best: "a", Losses: []lab.Loss{{Measure: "charm", To: "b", Value: 0.1, Other: 0.2}}}
	if want := "a is worse in: charm (0.10; 0.20 with b)"; newer.WorseIn() != want {
		t.Errorf("a measure of a newer report: got %q, want %q", newer.WorseIn(), want)
	}
	// A difference that is not shown, or too small to notice, is no loss.
	v = report([2]float64{0.24, 0.245}, [2]float64{0.8, 0.4}, [2]float64{9, 0.2})
	if v.WorseIn() != "" {
		t.Errorf("got %q, want nothing", v.WorseIn())
	}
}

// An interval of 95 % should miss the truth in about one of twenty samples, with few
// sessions as with many.
func TestIntervalsCover(t *testing.T) {
	t.Parallel()
	testkit.Slow(t)
	const samples = 200
	for _, sessions := range []int{6, 12, 40} {
		rng := rand.New(rand.NewPCG(3, 4))
		missed := 0
		for range samples {
			d := rows(sessions, func(int) float64 { return 0.5 + 0.1 + 0.2*rng.NormFloat64() }).Difference("a", "b", "panel")
			if d.Low > 0.1 || d.High < 0.1 {
				missed++
			}
		}
		if share := float64(missed) / samples; share > 0.09 || share < 0.02 {
			t.Errorf("%d sessions: %.0f %% of the intervals miss the truth, want about 5 %%", sessions, 100*share)
		}
	}
}

// Sessions of one project are alike: five copies of each must not make the interval narrower.
func TestIntervalsOverFolders(t *testing.T) {
	t.Parallel()
	effect := func(i int) float64 { return 0.5 + 0.01*float64(i*i%7) }
	one := rows(8, effect).Difference("a", "b", "panel")
	copies := rows(40, func(i int) float64 { return effect(i / 5) })
	for i := range copies.Rows {
		name := "project%d/%d"
		if i/10%2 == 1 {
			name = "all/project%d--%d"
		}
		copies.Rows[i].Session = fmt.Sprintf(name, i/10, i)
		if i%2 == 1 {
			copies.Rows[i].Session = copies.Rows[i-1].Session
		}
	}
	narrow := copies.Difference("a", "b", "panel")
	copies.ByFolder = true
	wide := copies.Difference("a", "b", "panel")
	if math.Abs(wide.Low-one.Low) > 1e-9 || math.Abs(wide.High-one.High) > 1e-9 || wide.Folders != 8 || wide.Sessions != 40 {
		t.Errorf("over folders %v; want the interval of 8 sessions, %v", wide, one)
	}
	if narrow.Low <= wide.Low || narrow.High >= wide.High {
		t.Errorf("over sessions %v, over folders %v: the test tests nothing", narrow, wide)
	}
	few := rows(20, func(i int) float64 { return 0.6 + float64(i%3)/100 })
	few.ByFolder = true // all are in one
	r := lab.Concluded(few)
	if v := r.Verdicts[0]; v.Text != "not enough folders (1 of the 6 needed)" || v.Shown {
		t.Errorf("20 sessions in a folder: %q, shown %v", v.Text, v.Shown)
	}
}

func TestSince(t *testing.T) {
	t.Parallel()
	before := rows(12, func(int) float64 { return 0.7 })
	after := rows(12, func(int) float64 { return 0.6 })
	d := after.Since(before, "a", "panel")
	if !d.Shown || d.Mean > -0.09 || !d.Below(0.03) || d.NotBelow(0.03) {
		t.Errorf("a loss of 0.1 is %v", d)
	}
	if d := after.Since(before, "b", "panel"); d.Shown || d.Mean != 0 || !d.NotBelow(0) {
		t.Errorf("no change is %v", d)
	}
}

// None is called the best if another one is shown to be better by gain, and the verdict says so in a sentence.
func TestAVerdictNeedsGain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		panel func(i int) float64
		gain  func(i int) float64 // of b, where a has 0.5
		text  string
		shown bool
		want  string // begins the disagreement
	}{
		{"gain agrees", func(i int) float64 { return 0.6 + float64(i%3)/100 }, func(int) float64 { return 0.4 }, "a keeps most", true, ""},
		{"no difference in gain", func(i int) float64 { return 0.6 + float64(i%3)/100 }, func(i int) float64 { return 0.4 + float64(i%2)/5 }, "a keeps most", true, ""},
		{
			"gain disagrees", func(i int) float64 { return 0.6 + float64(i%3)/100 }, func(i int) float64 { return 0.6 + float64(i%3)/100 }, "none is called the best: a keeps most", false,
			"The two yardsticks disagree: a keeps more of what was needed later, but b predicts better what was written next (gain +0.11, ",
		},
		{
			"gain alone sees a difference", func(i int) float64 { return 0.41 + float64(i%2)/5 }, func(i int) float64 { return 0.6 + float64(i%3)/100 }, "no difference shown between a, b", false,
			"The two yardsticks disagree: of what was needed later no difference is shown between a and b, but b predicts better",
		},
	} {
		in := rows(12, c.panel)
		for i := range in.Rows {
			in.Rows[i].Values[lab.MeasureGain] = 0.5
			if in.Rows[i].Strategy == "b" {
				in.Rows[i].Values[lab.MeasureGain] = c.gain(i / 2)
			}
		}
		r := lab.Concluded(in)
		for _, v := range r.Verdicts { // over all modes, and of the mode
			if v.Shown != c.shown || !strings.HasPrefix(v.Text, c.text) || !strings.HasPrefix(v.Disagreement, c.want) || (c.want == "") != (v.Disagreement == "") || len(v.ByGain) > 0 != (c.want != "") {
				t.Errorf("%s: got %q, %q, shown %v", c.name, v.Text, v.Disagreement, v.Shown)
			}
		}
	}
}
