package report_test

import (
	"bytes"
	"encoding/json"
	"html"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/report"
)

// newReplay returns a replay of a session with hostile text in every name.
func newReplay() *lab.ReplayReport {
	e := func(v float64) lab.Estimate { return lab.Estimate{Mean: v, Low: v - 0.1, High: v + 0.1, Sessions: 7} }
	had, paid := 0.75, 3
	return &lab.ReplayReport{
		Format: lab.ReportFormat, Encoding: "o200k_base", Window: 200_000,
		Policies: []lab.StrategyInfo{{Name: "untouched"}, {Name: "mine" + hostile, About: hostile}},
		Tariffs:  []lab.Tariff{{Name: "model" + hostile}},
		Sessions: []lab.PlayedSession{{Name: "/logs/a" + hostile}, {Name: "/logs/b"}},
		Skipped:  []lab.Skipped{{Name: hostile, Reason: hostile}},
		Plays: []lab.Played{
			{Session: "/logs/a" + hostile, Policy: "untouched", Tariff: "model" + hostile, USD: 4, Untouched: 4, Size: []int{100, 300, 500}, Cached: []int{0, 100, 300}},
			{
				Session: "/logs/a" + hostile, Policy: "mine" + hostile, Tariff: "model" + hostile, USD: 3, Untouched: 4, Had: &had, Error: hostile, Size: []int{100, 300, 200}, Cached: []int{0, 100, 50},
				Epochs: []lab.PlayedEpoch{{Request: 2, Reason: "payback", Before: 500, After: 200, Paid: &paid}},
			},
		},
		Lines: []lab.ReplayLine{
			{Scope: lab.ScopeAll, Policy: "untouched", Tariff: "model" + hostile, Sessions: 7, USD: 4, Untouched: 4, Worst: 1, Values: map[string]lab.Estimate{}},
			{
				Scope: lab.ScopeAll, Policy: "mine" + hostile, Tariff: "model" + hostile, Sessions: 7, USD: 3, Untouched: 4, Saved: 0.25, Worst: 1.5, Sent: 600, HitRate: 0.25, Epochs: 1,
				Values: map[string]lab.Estimate{"cheaper": e(0.25), "lost": e(0.3)},
			},
		},
	}
}

func writeReplay(t *testing.T, r *lab.ReplayReport) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.WriteReplay(&b, r, &report.Options{Title: hostile, Command: hostile}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The page of a replay has the money and the loss of every policy as text, and every request for the script.
func TestReplay(t *testing.T) {
	page := writeReplay(t, newReplay())
	for _, s := range []string{
		`>75.0 <small>65.0–85.0</small></td>`, `>30.00 <small>20.00–40.00</small></td>`,
		`<td data-v="25">25.0</td>`, `<td data-v="1.5">1.50</td>`, `<td data-v="3">3.00</td>`, `Every request of every session`,
	} {
		if !strings.Contains(page, s) {
			t.Errorf("the page lacks %s", s)
		}
	}
	var d struct {
		Plays []struct {
			Session, Policy int
			Size, Cached    []int
			Epochs          []lab.PlayedEpoch
		}
	}
	if err := json.Unmarshal([]byte(blocks(t, page)["data"]), &d); err != nil {
		t.Fatal(err)
	}
	if n := len(d.Plays); n != 2 {
		t.Fatalf("the script gets %d plays, want 2", n)
	}
	if got := d.Plays[1]; got.Policy != 1 || got.Size[2] != 200 || got.Cached[2] != 50 || got.Epochs[0].Request != 2 || *got.Epochs[0].Paid != 3 {
		t.Errorf("the script gets %+v", got)
	}
}

// Names add no active elements to the page of a replay.
func TestReplayHostileText(t *testing.T) {
	page := writeReplay(t, newReplay())
	if n := strings.Count(page, "<script>"); n != 1 {
		t.Errorf("the page has %d scripts, want the one that is ours", n)
	}
	for _, s := range []string{"<img", "onerror=alert(2)>", "<script>alert"} {
		if strings.Contains(page, s) {
			t.Errorf("the page has %q as it was in a name", s)
		}
	}
	if !strings.Contains(page, html.EscapeString("<img src=x onerror=alert(2)>")) {
		t.Error("the text is not in the page")
	}
	all := page
	for _, text := range blocks(t, page) {
		all += text
	}
	if i := strings.IndexAny(all, "\u202e\u2066\x00\x1b\x7f\u2028"); i >= 0 {
		t.Errorf("the page has a character that acts: %q", all[max(0, i-40):i+10])
	}
}

// Sessions whose requests would make the page too large are left out as a whole, and the page says so.
func TestReplayBounds(t *testing.T) {
	r := newReplay()
	r.Plays[0].Size = make([]int, 700_000)
	r.Plays[0].Cached = make([]int, 700_000)
	page := writeReplay(t, r)
	if !strings.Contains(page, "The requests of 1 of 2 sessions") {
		t.Error("the page does not say what is left out")
	}
	if !strings.Contains(writeReplay(t, &lab.ReplayReport{Partial: true}), "Stopped early") {
		t.Error("the page of nothing does not say that the replay was stopped")
	}
}
