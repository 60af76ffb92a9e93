package online

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/condensehq/condense/live"
)

// A long conversation keeps a bounded curve, with its ends and all its epochs.
func TestCurveIsBoundedAndKeepsEpochs(t *testing.T) {
	c := &Evidence{ID: "c"}
	start := time.Unix(0, 0)
	const turns, every = 5000, 400
	for i := range turns {
		turn := &live.Turn{Time: start.Add(time.Duration(i) * time.Minute), History: 1000 * i, Tokens: 1000 * (i % every), Window: 200_000, DueAt: 160_000}
		c.Turns++
		if i > 0 && i%every == 0 {
			e := live.Epoch{Time: turn.Time, Before: 400_000, After: 1000}
			turn.Epoch = &e
			c.Epochs = append(c.Epochs, &Epoch{Epoch: e})
		}
		c.point(turn)
		if len(c.Curve) > maxPoints {
			t.Fatalf("%d points after %d turns", len(c.Curve), i+1)
		}
	}
	if first, last := c.Curve[0], c.Curve[len(c.Curve)-1]; !first.Time.Equal(start) || last.History != 1000*(turns-1) {
		t.Errorf("the curve goes from %v to %v", first, last)
	}
	for _, e := range c.Epochs {
		if !slices.ContainsFunc(c.Curve, func(p Point) bool { return p.Epoch && p.Time.Equal(e.Time) }) {
			t.Errorf("the epoch of %v has no point", e.Time)
		}
	}
}

// What was recalled of an epoch is one entry for each content, and a reader's list does not change.
func TestRecallsOfAnEpoch(t *testing.T) {
	e := &Epoch{}
	e.recalls([]live.Recalled{{What: "result of Read", Handle: "1", Count: 1, Tokens: 5}, {What: "result of Read", Handle: "2", Count: 1}})
	was := e.Pieces
	e.recalls([]live.Recalled{{What: "result of Read", Handle: "1", Count: 1, Tokens: 5}})
	if len(e.Pieces) != 2 || e.Pieces[0].Count != 2 || e.Pieces[0].Tokens != 10 || was[0].Count != 1 {
		t.Errorf("%+v, before that %+v", e.Pieces, was)
	}
	for i := range 2 * maxPieces {
		e.recalls([]live.Recalled{{Handle: strconv.Itoa(i), Count: 1}})
	}
	if len(e.Pieces) != maxPieces {
		t.Errorf("%d contents are kept", len(e.Pieces))
	}
}

func TestSentence(t *testing.T) {
	priced, dear := &live.Stats{Requests: 40, Cost: 6, Saved: 2}, &live.Stats{Requests: 40, Cost: 6, Saved: -1.5}
	for _, tt := range []struct {
		stats *live.Stats
		mode  Mode
		want  string
	}{
		{&live.Stats{}, Mode{}, "No request has come yet."},
		{priced, Mode{}, "3 conversations so far, and none was long enough to be condensed."},
		{priced, Mode{Conversations: 2, Epochs: 4, Saved: 9}, "4 epochs in 2 conversations. Since this gateway started, condensing has saved $2.00 of $8.00."},
		{dear, Mode{Conversations: 1, Epochs: 1}, "1 epoch in 1 conversation. Since this gateway started, condensing has cost $1.50 more than it saved."},
		{priced, Mode{Conversations: 1, Epochs: 2, Unpriced: 2, Before: 300_000, After: 90_000}, "2 epochs in 1 conversation made 90,000 tokens of 300,000."},
	} {
		if got := sentence(tt.stats, 3, []Mode{tt.mode}); got != tt.want {
			t.Errorf("%s\nwant %s", got, tt.want)
		}
	}
}
