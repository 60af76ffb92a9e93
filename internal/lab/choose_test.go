package lab_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/lab"
)

// played returns a replay of n sessions under three policies: the default saves 10 %, "mild" 20 %, "harsh" 60 % but
// loses a tenth.
func playedSessions(n int) *lab.ReplayReport {
	r := &lab.ReplayReport{Tariffs: []lab.Tariff{{Name: "t"}}}
	for _, p := range []string{"untouched", "default", "mild", "harsh"} {
		r.Policies = append(r.Policies, lab.StrategyInfo{Name: p})
	}
	for i := range n {
		name := fmt.Sprint("s", i)
		r.Sessions = append(r.Sessions, lab.PlayedSession{Name: name, Mode: "code"})
		for p, v := range map[string][2]float64{"untouched": {0, 0}, "default": {.1, .01}, "mild": {.2 + float64(i%3)/100, .015}, "harsh": {.6, .1}} {
			play := lab.Played{Session: name, Mode: "code", Policy: p, Tariff: "t", USD: 1 - v[0], Untouched: 1, Had: new(1 - v[1])}
			if v[0] > 0 {
				play.Epochs = []lab.PlayedEpoch{{}}
			}
			r.Plays = append(r.Plays, play)
		}
	}
	return r
}

// TestChoose recommends what saves most and loses little, and nothing where it cannot be known.
func TestChoose(t *testing.T) {
	t.Parallel()
	c := playedSessions(8).Choose("code", "default")
	if c.Policy != "mild" || c.Sessions != 8 || c.Cheaper.Mean < .2 || c.Cheaper.Mean > .22 || c.More.Low <= 0 || c.Lost.Mean > .02 {
		t.Errorf("%+v", c)
	}
	if few := playedSessions(5).Choose("code", "default"); few.Policy != "" || !strings.Contains(few.Why, "5 of the 6") {
		t.Errorf("of five sessions: %+v", few)
	}
	if other := playedSessions(8).Choose("ask", "default"); other.Policy != "" || other.Sessions != 0 {
		t.Errorf("of a mode without sessions: %+v", other)
	}
	// As often dearer as cheaper than the default: not shown.
	r := playedSessions(8)
	for i := range r.Plays {
		if p := &r.Plays[i]; p.Policy == "mild" {
			p.USD = 0.9
			if i%8 < 4 {
				p.USD = 0.88
			}
			if p.Session == "s0" {
				p.USD = 0.99
			}
		}
	}
	if c := r.Choose("code", "default"); c.Policy != "" {
		t.Errorf("not shown, but recommended: %+v with %+v more", c, c.More)
	}
}
