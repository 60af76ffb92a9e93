package browser_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/report"
	"github.com/condensehq/condense/internal/testkit/peers"
	"github.com/condensehq/condense/providers/slidingwindow"
)

// newReplay returns a replay of two sessions, one of them hostile, that are condensed at a small window, and its page.
func newReplay(t *testing.T) (*lab.ReplayReport, string) {
	t.Helper()
	items, err := lab.Find("demo:context-evaluator")
	if err != nil {
		t.Fatal(err)
	}
	tariff, err := lab.ParseTariff("claude-opus-4-6")
	if err != nil {
		t.Fatal(err)
	}
	s := lab.Strategy{Name: "cut " + hostile, Provider: slidingwindow.New(slidingwindow.DefaultConfig())}
	r, err := lab.Replay(t.Context(), append(items, hostileSession(t)), []lab.Policy{{Name: s.Name, About: hostile, Strategy: &s}},
		&lab.ReplayOptions{Window: 60_000, Fixed: 5000, Tariffs: []lab.Tariff{tariff}})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Sessions) != 2 {
		t.Fatalf("%d sessions, want 2: %v", len(r.Sessions), r.Skipped)
	}
	var b bytes.Buffer
	if err := report.WriteReplay(&b, r, nil); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "replay.html")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return r, file
}

// TestReplay opens the page of whole sessions.
func TestReplay(t *testing.T) {
	tb := openTab(t)
	r, file := newReplay(t)
	tb.navigate(t, file, "")
	until[bool](t, tb, `document.querySelectorAll(".drawing svg").length === 2`)
	if got := evaluate[int](t, tb, `document.querySelectorAll("#money-figure svg g[aria-label=dot] path").length`); got != 2 {
		t.Errorf("%d points, want one for each of 2 policies", got)
	}
	// The figure of a session marks its epochs, and the table below it lists them.
	var play *lab.Played
	for i := range r.Plays {
		if p := &r.Plays[i]; play == nil || len(p.Epochs) > len(play.Epochs) {
			play = p
		}
	}
	if len(play.Epochs) == 0 {
		t.Fatal("nothing was condensed")
	}
	index := 0
	for i := range r.Sessions {
		if r.Sessions[i].Name == play.Session {
			index = i
		}
	}
	tb.do(t, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`{
		const [session, policy] = document.querySelectorAll("#session-life select");
		session.value = %d; policy.value = 1; policy.dispatchEvent(new Event("change"));
	}`, index)))
	until[bool](t, tb, `document.querySelector("#life-figure svg") !== null`)
	for what, expression := range map[string]string{
		"marks": `document.querySelectorAll("#life-figure svg g[aria-label=rule] line").length`,
		"rows":  `document.querySelectorAll("#life-figure > .scroll tbody tr").length`,
	} {
		if got := evaluate[int](t, tb, expression); got != len(play.Epochs) {
			t.Errorf("%d %s of epochs, want %d", got, what, len(play.Epochs))
		}
	}
	// The numbers of the figure are a table, which the keyboard opens.
	tb.do(t, chromedp.Focus(chromedp.CSS(`#life-figure summary`)), chromedp.KeyEvent("\r"))
	if got := until[int](t, tb, `document.querySelectorAll("#life-figure details tbody tr").length`); got != play.Requests {
		t.Errorf("%d requests are listed, want %d", got, play.Requests)
	}
	if got := evaluate[bool](t, tb, `"broken" in window`); got {
		t.Error("a name ran as a script")
	}
	tb.do(t, chromedp.EmulateViewport(390, 844))
	tb.navigate(t, file, "?narrow")
	until[bool](t, tb, `document.querySelectorAll(".drawing svg").length === 2`)
	if got := evaluate[int](t, tb, `document.scrollingElement.scrollWidth`); got > 390 {
		wide := evaluate[[]string](t, tb, `[...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > 391 && !e.closest(".scroll, .drawing, nav")).slice(0, 5).map((e) => e.outerHTML.slice(0, 120))`)
		t.Errorf("the page is %d pixels wide on a screen of 390: %q", got, wide)
	}
	if cut := evaluate[[]string](t, tb, cutOff); len(cut) > 0 {
		t.Errorf("cut off: %q", cut)
	}
	tb.do(t, chromedp.EmulateViewport(1400, 1000))
	if cut := evaluate[[]string](t, tb, cutOff); len(cut) > 0 {
		t.Errorf("cut off: %q", cut)
	}
	_, dir := peers.Node(t, "browser-test", untried)
	axe, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"light", "dark"} {
		tb.media(t, &emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme})
		tb.navigate(t, file, "?"+scheme)
		violations(t, tb, string(axe), `{}`, scheme+" replay")
	}
	tb.media(t)
}

// TestCanaries opens the page of a run that has nothing but canaries: a table that can be sorted.
func TestCanaries(t *testing.T) {
	tb := openTab(t)
	share := func(v float64) []lab.Estimate { return []lab.Estimate{{Mean: v, Low: v / 2, High: v, Sessions: 6}} }
	r := &lab.Report{Format: lab.ReportFormat, Measures: lab.Measures(), Budgets: []string{"20%"}, CanaryLines: []lab.CanaryLine{
		{Strategy: "a " + hostile, Budget: "20%", Type: "rule", Kept: share(0.5), FirstLost: 1},
		{Strategy: "b", Budget: "20%", Type: "rule", Kept: share(0.75)},
	}}
	var b bytes.Buffer
	if err := report.Write(&b, r, nil, nil); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "canaries.html")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	tb.do(t, chromedp.EmulateViewport(390, 844))
	tb.navigate(t, file, "")
	tb.do(t, chromedp.Focus(chromedp.CSS(`table.canaries th:nth-child(4) button.sort`)), chromedp.KeyEvent("\r"))
	if got := until[string](t, tb, `document.querySelector("table.canaries [aria-sort=descending]") && document.querySelector("table.canaries tbody th").textContent`); got != "b" {
		t.Errorf("sorted by what is left, %q is first, want b", got)
	}
	if got := evaluate[int](t, tb, `document.scrollingElement.scrollWidth`); got > 390 {
		t.Errorf("the page is %d pixels wide on a screen of 390", got)
	}
	_, dir := peers.Node(t, "browser-test", untried)
	axe, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	violations(t, tb, string(axe), `{}`, "canaries")
	if evaluate[bool](t, tb, `"broken" in window`) {
		t.Error("a name ran as a script")
	}
}
