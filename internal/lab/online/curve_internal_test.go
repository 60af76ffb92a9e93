package online

import (
	"fmt"
	"regexp"
	"strings"
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
	svg := string(c.curve("/condense/conversations/c"))
	for n := range len(c.Epochs) {
		if link := fmt.Sprintf(`<a href="/condense/conversations/c#epoch-%d"`, n+1); strings.Count(svg, link) != 1 {
			t.Errorf("%s is not there once", link)
		}
	}
	for _, shape := range []string{`<polyline class="history"`, `<polyline class="sent"`, `<line class="window"`, `<line class="due"`} {
		if !strings.Contains(svg, shape) {
			t.Errorf("no %s", shape)
		}
	}
}

// The window is drawn where it is near; numbers that are not finite, and ids of strangers, write nothing else into the page.
func TestCurveOfAFewTurns(t *testing.T) {
	c := &Evidence{ID: `"><script>`, Window: 200_000, DueAt: 160_000}
	if got := c.curve("") + c.money(); got != "" {
		t.Errorf("a curve without turns: %s", got)
	}
	c.Curve = []Point{{History: 0, Sent: 0}, {History: 150_000, Sent: 150_000, Saved: -.5}, {History: 190_000, Sent: 60_000, Saved: 1.25}}
	svg := string(c.curve(`/condense/conversations/"><script>`) + c.money())
	for _, class := range []string{"window", "due", "money"} {
		if !strings.Contains(svg, `class="`+class+`"`) {
			t.Errorf("no %s: %s", class, svg)
		}
	}
	if bad := regexp.MustCompile(`NaN|Inf|<script`).FindString(svg); bad != "" {
		t.Errorf("%s in %s", bad, svg)
	}
	if !strings.Contains(svg, "$1.25") || !strings.Contains(svg, "-$0.5000") {
		t.Errorf("the money has no numbers: %s", svg)
	}
}

func TestSentence(t *testing.T) {
	priced := &live.Stats{Requests: 40, Cost: 6}
	for _, tt := range []struct {
		stats *live.Stats
		mode  Mode
		want  string
	}{
		{&live.Stats{}, Mode{}, "No request has come yet."},
		{priced, Mode{}, "3 conversations so far, and none was long enough to be condensed."},
		{priced, Mode{Conversations: 2, Epochs: 4, Saved: 2}, "4 epochs in 2 conversations saved $2.00 of $8.00."},
		{priced, Mode{Conversations: 1, Epochs: 1, Saved: -1.5}, "1 epoch in 1 conversation cost $1.50 more than was saved so far."},
		{priced, Mode{Conversations: 1, Epochs: 2, Unpriced: 2, Before: 300_000, After: 90_000}, "2 epochs in 1 conversation made 90,000 tokens of 300,000."},
	} {
		if got := sentence(tt.stats, 3, []Mode{tt.mode}); got != tt.want {
			t.Errorf("%s\nwant %s", got, tt.want)
		}
	}
}
