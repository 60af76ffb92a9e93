package browser_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/report"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/testkit/peers"
	"github.com/condensehq/condense/providers/slidingwindow"
)

// hostile is text of a transcript that tries to escape from its element.
const hostile = "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 2'>\u202e\u2066\u0007\u001b[31m&lt;b&gt; {{.}} ${1}"

// hostileSession is a conversation with such text that is long enough to be cut.
func hostileSession(t *testing.T) lab.Item {
	t.Helper()
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	var list []message
	for i := range 60 {
		words := fmt.Sprintf("Look at report_%d.go and at parseValue%d(). %s ", i%7, i%5, hostile)
		list = append(list, message{"user", words + strings.Repeat("what was said before matters later. ", 30)}, message{"assistant", "I see report_" + strconv.Itoa(i%7) + ".go. " + words})
	}
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	return lab.Item{Name: `<i title="x">"evil'` + "\u202e" + `.json`, Open: open}
}

// A fixture is a report, and the page of it.
type fixture struct {
	report  *lab.Report
	details []*lab.Detail
	file    string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	items, err := lab.Find("demo:tau", "demo:aider", "demo:swe-smith")
	if err != nil {
		t.Fatal(err)
	}
	items = append(items, hostileSession(t))
	strategies := openStrategies()
	budgets := []lab.Budget{{Share: 10}, {Share: 40}}
	opts := &lab.Options{Budgets: budgets}
	r, err := lab.Run(t.Context(), items, strategies, opts)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Skipped) > 0 {
		t.Fatalf("a session was skipped: %v", r.Skipped)
	}
	f := &fixture{report: r, file: filepath.Join(t.TempDir(), "report.html")}
	if f.details, err = lab.Examine(t.Context(), items, strategies, report.Choose(r, 1000), opts); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := report.Write(&b, r, f.details, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// openStrategies returns three strategies: one that hides, inserts and rewrites, one that hides, and one that
// exceeds its budget.
func openStrategies() []lab.Strategy {
	half := slidingwindow.DefaultConfig()
	half.Mode = "half"
	window := slidingwindow.New(slidingwindow.DefaultConfig())
	mixed := core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
		res, err := window.Condense(ctx, req)
		if err != nil {
			return nil, err
		}
		for i := range res.Messages {
			m := &res.Messages[i]
			if text, ok := m.Parts[0].(core.Text); ok && len(m.Parts) == 1 && m.ID != "" && !m.Protected && len(text) > 100 {
				m.Parts = []core.Part{text[:100] + "\n…"}
			}
		}
		res.Messages = core.KeepRequest(req, res.Messages)
		return res, nil
	})
	return []lab.Strategy{
		{Name: "mixed", Provider: mixed, About: "about " + hostile},
		{Name: "window", Provider: window},
		{Name: "<b>half</b>", Provider: slidingwindow.New(half)},
	}
}

func TestReport(t *testing.T) {
	tb := openTab(t)
	f := newFixture(t)
	tb.navigate(t, f.file, "")
	t.Run("numbers", func(t *testing.T) { numbers(t, tb, f) })
	t.Run("figures", func(t *testing.T) { figures(t, tb, f) })
	t.Run("from a number to its messages", func(t *testing.T) { drill(t, tb, f) })
	t.Run("keyboard", func(t *testing.T) { keyboard(t, tb, f) })
	t.Run("accessibility", func(t *testing.T) { accessible(t, tb, f) })
	t.Run("narrow", func(t *testing.T) { narrow(t, tb, f) })
	t.Run("nothing of a figure is cut off", func(t *testing.T) { whole(t, tb, f) })
	t.Run("print", func(t *testing.T) { prints(t, tb, f) })
	if got := evaluate[bool](t, tb, `"broken" in window`); got {
		t.Error("text of a session ran as a script")
	}
}

// numbers checks that every mean of the report is in a table, in full and as text.
func numbers(t *testing.T, tb *tab, f *fixture) {
	type shown struct{ Mode, Budget, Strategy, Measure, Value, Text string }
	got := map[[4]string]shown{}
	for _, s := range evaluate[[]shown](t, tb, `[...document.querySelectorAll("table.measures td > button")].map((b) => {
		const td = b.parentElement, scope = td.closest("section.scope"), head = td.closest("table").tHead.rows[0].cells[td.cellIndex];
		return {Mode: scope.dataset.mode, Budget: scope.dataset.budget, Strategy: td.parentElement.dataset.strategy, Measure: head.dataset.measure, Value: td.dataset.v, Text: b.firstChild.textContent.trim()};
	})`) {
		got[[4]string{s.Budget, s.Mode, s.Strategy, s.Measure}] = s
	}
	want := 0
	for _, table := range f.report.Tables {
		for _, l := range table.Lines {
			for name, e := range l.Values {
				want++
				s, ok := got[[4]string{table.Budget, table.Mode, l.Strategy, name}]
				if !ok {
					t.Errorf("%s of %s at %s, mode %q stands nowhere", name, l.Strategy, table.Budget, table.Mode)
					continue
				}
				var v float64
				if err := json.Unmarshal([]byte(s.Value), &v); err != nil || v != e.Mean {
					t.Errorf("%s of %s: the page says %s, the report %v", name, l.Strategy, s.Value, e.Mean)
				}
				text := evaluatedText(s.Text)
				if unit := unitOf(f.report, name); unit == "share" && math.Abs(text-e.Mean) > 0.00501 {
					t.Errorf("%s of %s reads %q, want %.2f", name, l.Strategy, s.Text, e.Mean)
				}
			}
		}
	}
	if len(got) != want {
		t.Errorf("the tables have %d numbers, the report %d", len(got), want)
	}
}

func evaluatedText(s string) float64 {
	var v float64
	_, _ = fmt.Sscan(strings.NewReplacer("−", "-", ",", "").Replace(s), &v) // other text differs
	return v
}

func unitOf(r *lab.Report, measure string) string {
	for _, m := range r.Measures {
		if m.Name == measure {
			return m.Unit
		}
	}
	return ""
}

// figures reads the points of the first figure from the drawing.
func figures(t *testing.T, tb *tab, f *fixture) {
	until[bool](t, tb, `document.querySelector("#curve-figures .drawing svg") !== null`)
	type drawing struct {
		Top, Bottom float64 // of the axis, in pixels
		Y           []float64
	}
	d := evaluate[drawing](t, tb, `(() => {
		const svg = document.querySelector("#curve-figures .drawing svg");
		const at = (e) => Number(e.getAttribute("transform").match(/,([-\d.]+)\)/)[1]);
		const ticks = [...svg.querySelectorAll("[aria-label='y-axis tick label'] text")].map((e) => [Number(e.textContent), at(e)]);
		return {Bottom: ticks.find(([v]) => v === 0)[1], Top: ticks.find(([v]) => v === 1)[1], Y: [...svg.querySelectorAll("[aria-label='dot'] path")].map(at)};
	})()`)
	var got, want []float64
	for _, y := range d.Y {
		got = append(got, (d.Bottom-y)/(d.Bottom-d.Top))
	}
	unfit := map[string]bool{}
	for _, w := range f.report.Warnings {
		if w.Unfit {
			unfit[w.Strategy] = true
		}
	}
	for _, table := range f.report.Tables {
		for _, l := range table.Lines {
			if e, ok := l.Values[lab.MeasurePanel]; ok && table.Mode == "" && !unfit[l.Strategy] {
				want = append(want, e.Mean)
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if len(got) != len(want) {
		t.Fatalf("%d points are drawn, want %d", len(got), len(want))
	}
	for i := range got {
		if math.Abs(got[i]-want[i]) > 0.005 {
			t.Errorf("a point is drawn at %.3f, want %.3f", got[i], want[i])
		}
	}
}

// drill follows a number to its sessions and on to the messages of one.
func drill(t *testing.T, tb *tab, f *fixture) {
	tb.do(t, chromedp.Click(chromedp.CSS(`section.scope:not([hidden]) tr[data-strategy="mixed"] td > button`)))
	until[bool](t, tb, `!document.getElementById("drill").hidden`)
	budget := evaluate[string](t, tb, `new URLSearchParams(location.hash.split("?")[1]).get("budget")`)
	var want []float64
	for _, r := range f.report.Rows {
		if v, ok := r.Values[lab.MeasurePanel]; ok && r.Strategy == "mixed" && r.Budget == budget {
			want = append(want, v)
		}
	}
	slices.Sort(want)
	title := f.report.Measures[slices.IndexFunc(f.report.Measures, func(m lab.Measure) bool { return m.Name == lab.MeasurePanel })].Title
	got := evaluate[[]float64](t, tb, `[...document.querySelectorAll("#drill tbody tr")].map((tr) => Number(tr.cells[[...tr.closest("table").tHead.rows[0].cells].findIndex((th) => th.textContent.startsWith("`+title+`"))].dataset.v))`)
	if len(got) != len(want) {
		t.Fatalf("%d rows are listed, want %d", len(got), len(want))
	}
	for i := range got {
		if math.Abs(got[i]-want[i]) > 1e-4 {
			t.Errorf("row %d says %v, want %v: the worst come first", i, got[i], want[i])
		}
	}
	// The session with the hostile text, by its link.
	tb.do(t, chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll("#drill tbody tr")].find((tr) => tr.textContent.includes("evil")).querySelector("a").click()`))
	until[bool](t, tb, `document.querySelector("#drill .messages > li") !== null`)
	cut := evaluate[string](t, tb, `document.querySelector("#drill .lead").textContent`)
	i := slices.IndexFunc(f.details, func(d *lab.Detail) bool {
		return d.Row.Strategy == "mixed" && d.Row.Budget == budget && strings.Contains(d.Row.Session, "evil") && strings.Contains(cut, "“"+d.Row.Cut+"”")
	})
	if i < 0 {
		t.Fatalf("there is no detail for %q", cut)
	}
	detail := f.details[i]
	counts := map[string]int{}
	for _, m := range detail.Messages {
		counts[m.State]++
	}
	for state, n := range counts {
		if got := evaluate[int](t, tb, fmt.Sprintf(`document.querySelectorAll("#drill .messages > li.%s").length`, state)); got != n {
			t.Errorf("%d messages are %s on the page, want %d", got, state, n)
		}
	}
	needs := map[score.Verdict]int{}
	for _, n := range detail.Needs {
		needs[n.Verdict]++
	}
	for _, v := range []score.Verdict{score.Kept, score.Reachable, score.Missing, score.Altered, score.Stale} {
		if got := evaluate[string](t, tb, fmt.Sprintf(`document.querySelector("#drill .need.%s .count")?.textContent ?? "0,"`, v)); !strings.HasPrefix(got, fmt.Sprintf("%d,", needs[v])) {
			t.Errorf("the page says %q were needed and are %s, want %d", got, v, needs[v])
		}
	}
	// The text of a message, once it is opened.
	text := evaluate[string](t, tb, `(async () => {
		const details = document.querySelector("#drill .messages > li.hidden > details");
		details.open = true;
		await new Promise((r) => setTimeout(r, 100));
		return [...details.querySelectorAll("pre")].map((p) => { const c = p.cloneNode(true); c.querySelectorAll(".hush").forEach((h) => h.remove()); return c.textContent; }).join("");
	})()`)
	for _, s := range []string{"</script><script>window.broken = 1</script><img src=x onerror='window.broken = 2'>", "⟦U+202E⟧", "␛[31m", "&lt;b&gt; {{.}} ${1}"} {
		if !strings.Contains(text, s) {
			t.Errorf("the message does not show %q:\n%.400s", s, text)
		}
	}
	if strings.ContainsAny(text, "\u202e\u2066\u0007\u001b") {
		t.Error("the message holds characters that act on the text")
	}
	tb.do(t, chromedp.Evaluate[chromedp.Void](`document.querySelector(".crumbs a").click()`))
	until[bool](t, tb, `!document.getElementById("report").hidden`)
}

// keyboard does the same without a mouse.
func keyboard(t *testing.T, tb *tab, f *fixture) {
	tb.navigate(t, f.file, "#numbers")
	tb.do(t,
		chromedp.Focus(chromedp.CSS(`section.scope:not([hidden]) table.measures th.num button.sort`)),
		chromedp.KeyEvent("\r"),
	)
	if got := until[string](t, tb, `document.querySelector("section.scope:not([hidden]) table.measures th.num").getAttribute("aria-sort").replace("none", "")`); got != "descending" {
		t.Errorf("Enter on a column's head sorts %s, want descending", got)
	}
	sorted := evaluate[bool](t, tb, `(() => { const v = [...document.querySelectorAll("section.scope:not([hidden]) table.measures")][0].querySelectorAll("tbody tr td:nth-child(2)"); const n = [...v].map((e) => Number(e.dataset.v)); return n.length > 3 && n.every((x, i) => i === 0 || x <= n[i - 1]); })()`)
	if !sorted {
		t.Error("the rows are not sorted")
	}
	tb.do(t, chromedp.KeyEvent("\t"))
	if got := evaluate[string](t, tb, `document.activeElement.tagName`); got != "BUTTON" {
		t.Errorf("Tab leads from a column's head to %s, want the next button", got)
	}
	const number = `section.scope:not([hidden]) tr[data-strategy="window"] td > button`
	tb.do(t, chromedp.Focus(chromedp.CSS(number)), chromedp.KeyEvent("\r"))
	if got := until[string](t, tb, `!document.getElementById("drill").hidden && document.activeElement.textContent`); !strings.Contains(got, "window") {
		t.Errorf("Enter on a number leads to %q, want the heading of its sessions", got)
	}
	tb.do(t, chromedp.Evaluate[chromedp.Void](`history.back()`))
	until[bool](t, tb, `!document.getElementById("report").hidden`)
	if !evaluate[bool](t, tb, `document.activeElement === document.querySelector('`+number+`')`) {
		t.Error("going back does not return to the number")
	}
	// A message opens with the keyboard too.
	tb.navigate(t, f.file, "#messages?row="+strconv.Itoa(rowWithDetail(f)))
	tb.do(t, chromedp.Focus(chromedp.CSS(`.messages > li summary`)), chromedp.KeyEvent("\r"))
	until[bool](t, tb, `document.querySelector(".messages > li details").open && document.querySelector(".messages pre") !== null`)
}

// rowWithDetail returns the index of a row of mixed whose messages are in the page.
func rowWithDetail(f *fixture) int {
	for i, r := range f.report.Rows {
		if r.Strategy == "mixed" && strings.Contains(r.Session, "evil") {
			return i
		}
	}
	return 0
}

// accessible applies the rules of axe to every view, in light and dark.
func accessible(t *testing.T, tb *tab, f *fixture) {
	_, dir := peers.Node(t, "browser-test", untried)
	axe, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	for _, scheme := range []string{"light", "dark"} {
		tb.media(t, &emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme}, &emulation.MediaFeature{Name: "prefers-reduced-motion", Value: "reduce"})
		for _, view := range []string{"#report", "#sessions?strategy=mixed&budget=10%25&mode=&measure=panel", fmt.Sprintf("#messages?row=%d", rowWithDetail(f))} {
			tb.navigate(t, f.file, view)
			until[bool](t, tb, `document.querySelector(".drawing svg") !== null`)
			rules := `{}` // all
			if scheme == "dark" {
				rules = `{runOnly: ["color-contrast"]}`
			}
			violations(t, tb, string(axe), rules, scheme+" "+view)
		}
	}
	tb.media(t)
}

func violations(t *testing.T, tb *tab, axe, rules, where string) {
	t.Helper()
	tb.do(t, chromedp.Evaluate[chromedp.Void](axe+"; void 0"))
	type violation struct {
		ID, Impact, Help string
		Nodes            []string
	}
	found := evaluate[[]violation](t, tb, `(async () => {
		document.querySelectorAll("#report details, #drill details").forEach((d, i) => { if (i < 4) d.open = true; });
		const r = await axe.run(document, {resultTypes: ["violations"], ...`+rules+`});
		return r.violations.map((v) => ({ID: v.id, Impact: v.impact, Help: v.help, Nodes: v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + " " + n.failureSummary)}));
	})()`)
	for _, v := range found {
		if v.Impact == "serious" || v.Impact == "critical" || v.Impact == "moderate" {
			t.Errorf("%s: %s (%s): %s\n%s", where, v.ID, v.Impact, v.Help, strings.Join(v.Nodes, "\n"))
		}
	}
}

// narrow checks that on a phone only tables scroll sideways.
func narrow(t *testing.T, tb *tab, f *fixture) {
	tb.do(t, chromedp.EmulateViewport(390, 844))
	for _, view := range []string{"", "#sessions?strategy=mixed&budget=10%25&mode=&measure=panel", fmt.Sprintf("#messages?row=%d", rowWithDetail(f))} {
		tb.navigate(t, f.file, "?narrow"+view)
		if got := evaluate[int](t, tb, `document.scrollingElement.scrollWidth`); got > 390 {
			wide := evaluate[[]string](t, tb, `[...document.querySelectorAll("main *")].filter((e) => e.getBoundingClientRect().right > 391 && !e.closest(".scroll, .drawing, nav")).slice(0, 5).map((e) => e.outerHTML.slice(0, 120))`)
			t.Errorf("%s is %d pixels wide on a screen of 390: %q", view, got, wide)
		}
	}
	// The conclusion is on the first screen, and no cell of the table of all verdicts is cut.
	tb.navigate(t, f.file, "?first")
	want := strings.Join(strings.Fields(report.Visible(f.report.Conclusion)), " ")
	if got := evaluate[string](t, tb, `(() => { const e = document.querySelector(".conclusion"); return e.getBoundingClientRect().bottom < innerHeight ? e.textContent : ""; })()`); got != want || want == "" {
		t.Errorf("the first screen says %q, want %q", got, want)
	}
	if cut := evaluate[[]string](t, tb, `[...document.querySelectorAll("table.overview td.words")].filter((e) => e.getBoundingClientRect().right > 390 || e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent)`); len(cut) > 0 {
		t.Errorf("cut off on a phone: %q", cut)
	}
	tb.do(t, chromedp.EmulateViewport(1400, 1000))
}

// cutOff is an expression for the texts in figures that are not completely visible.
const cutOff = `[...document.querySelectorAll(".drawing svg")].flatMap((svg) => {
	const frame = svg.closest(".drawing").getBoundingClientRect(); // content outside is hidden
	return [...svg.querySelectorAll("text")].filter((t) => t.textContent.trim() !== "").flatMap((t) => {
		const box = t.getBoundingClientRect(), by = Math.max(box.bottom - frame.bottom, frame.top - box.top, frame.left - box.left, box.right - frame.right);
		return box.width > 0 && by > 0.1 ? [t.textContent + " by " + by.toFixed(1) + " pixels"] : [];
	});
})`

// whole checks that every text in a figure is completely visible, including the descenders of axis titles.
func whole(t *testing.T, tb *tab, f *fixture) {
	for _, width := range []int64{1400, 390} {
		tb.do(t, chromedp.EmulateViewport(width, 1000))
		for _, view := range []string{"", "#sessions?strategy=mixed&budget=10%25&mode=&measure=panel", fmt.Sprintf("#messages?row=%d", rowWithDetail(f))} {
			tb.navigate(t, f.file, fmt.Sprintf("?whole%d", width)+view)
			until[bool](t, tb, `document.querySelector(".drawing svg") !== null`)
			cut := evaluate[[]string](t, tb, cutOff)
			if len(cut) > 0 {
				t.Errorf("%d pixels, %s: cut off: %q", width, view, cut)
			}
		}
	}
	tb.do(t, chromedp.EmulateViewport(1400, 1000))
}

func prints(t *testing.T, tb *tab, f *fixture) {
	tb.navigate(t, f.file, "?print")
	ctx, cancel := context.WithTimeout(tb.ctx, patience)
	defer cancel()
	pdf, err := chromedp.Run(ctx, chromedp.PrintToPDF())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(pdf, []byte("%PDF")) || bytes.Count(pdf, []byte("/Type /Page\n"))+bytes.Count(pdf, []byte("/Type /Page ")) == 0 && len(pdf) < 50_000 {
		t.Errorf("printing gives %d bytes that begin with %q", len(pdf), pdf[:min(20, len(pdf))])
	}
}
