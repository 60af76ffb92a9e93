package lab_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/lab"
)

// TestVerified: a verdict holds only if the strategy is ahead in both halves of the sessions, with the sessions of a project in one half; a
// mode with too few sessions for two halves has none. The conclusion says the same.
func TestVerified(t *testing.T) {
	t.Parallel()
	ahead := func(int) float64 { return 0.8 }
	onlyIn := func(project, of int) func(i int) float64 {
		return func(i int) float64 {
			if i%of == project {
				return 0.8
			}
			return 0.48
		}
	}
	for _, c := range []struct {
		name               string
		sessions, projects int
		f                  func(i int) float64
		all, mode          bool   // whether a is the best
		text               string // of the verdict on the mode
	}{
		{"both halves", 20, 4, ahead, true, true, "a keeps most of what was needed later: 0.80, +0.30 against b (95 % interval +0.30 to +0.30, 20 sessions); it holds in both halves: +0.30 against b in one half of the sessions"},
		{"one project", 20, 1, ahead, true, true, "it holds in both halves"},
		{"one of two projects", 20, 2, onlyIn(0, 2), false, false, "but it does not hold in both halves: "},
		{"sessions of one project", 20, 1, func(i int) float64 { return onlyIn(0, 2)(i / 10) }, true, true, "it holds in both halves"},
		{"too few", 11, 3, ahead, true, false, "none is called the best: a keeps most of what was needed later: 0.80, +0.30 against b (95 % interval +0.30 to +0.30, 11 sessions); too few sessions to verify it on halves (11 of the 12 needed)"},
		{"enough", 12, 3, ahead, true, true, "it holds in both halves"},
	} {
		r := rows(c.sessions, c.f)
		rename := func(s *string) {
			var i int
			if _, err := fmt.Sscanf(*s, "session %d", &i); err != nil {
				t.Fatal(err)
			}
			*s = fmt.Sprintf("p%d--%02d", i%c.projects, i*7%20)
		}
		for i := range r.Sessions {
			rename(&r.Sessions[i].Name)
		}
		for i := range r.Rows {
			rename(&r.Rows[i].Session)
		}
		r = lab.Concluded(r)
		if v := r.Verdicts[0]; v.Mode != "" || v.Shown != c.all {
			t.Errorf("%s: of all sessions: %+v", c.name, v)
		}
		if v := r.Verdicts[1]; v.Mode != "code" || v.Shown != c.mode || !strings.Contains(v.Text, c.text) {
			t.Errorf("%s: %+v", c.name, v)
		}
		if winner, _ := r.Winner("code"); (winner == "a") != c.mode {
			t.Errorf("%s: the winner is %q", c.name, winner)
		}
		if c.all == strings.HasPrefix(r.Conclusion, "no strategy is shown") || c.mode != strings.HasSuffix(r.Conclusion, "; by mode: code a.") {
			t.Errorf("%s: %s", c.name, r.Conclusion)
		}
	}
	r := rows(6, ahead)
	r.Unverified = true
	if r = lab.Concluded(r); !r.Verdicts[1].Shown || strings.Contains(r.Verdicts[1].Text, "half") {
		t.Errorf("unverified: %+v", r.Verdicts[1])
	}
}

// TestReplayConclusion names the cheapest policy that loses little, against the baselines that can happen, what the halves say, and the
// session that most of the money is of.
func TestReplayConclusion(t *testing.T) {
	t.Parallel()
	r := playedSessions(8)
	for _, name := range []string{lab.Recorded, lab.Window} {
		r.Policies = append(r.Policies, lab.StrategyInfo{Name: name})
	}
	for i := range r.Sessions {
		r.Sessions[i].Source = fmt.Sprint("source", i%4)
		r.Sessions[i].Tokens = 100
		for _, name := range []string{lab.Recorded, lab.Window} {
			r.Plays = append(r.Plays, lab.Played{Session: r.Sessions[i].Name, Policy: name, Tariff: "t", USD: 0.5, Untouched: 1, Had: new(1.0)})
		}
	}
	for i := range r.Plays {
		p := &r.Plays[i]
		for k := range r.Sessions {
			if r.Sessions[k].Name == p.Session {
				p.Source = r.Sessions[k].Source
			}
		}
		if p.Session == "s3" {
			p.USD *= 100
			p.Untouched *= 100
		}
	}
	got := lab.ConcludedReplay(r).Conclusion
	for _, want := range []string{
		"of the policies that lose at most 2 % of the text in use, mild costs least: ", " USD in 8 sessions at the prices of t, +59.9 % against the agents' own compactions (53.50), +59.9 % against truncation in a full window (53.50)",
		"; it is the cheapest of both halves of the sessions", "; one session, s3, is 94 % of that.",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
