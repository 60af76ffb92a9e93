package report_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"html"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/lab/report"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/tokens"
)

// hostile is text that tries to escape from its element or attribute.
const hostile = "</script></style><script>alert(1)</script><img src=x onerror=alert(2)>\"'`{{.}}]]>--><!--\u202e\u2066\x00\x1b\x7f\xff\u2028"

// newReport returns a report with hostile text in every name and rows of three sessions.
func newReport() *lab.Report {
	share := func(v float64) lab.Estimate {
		return lab.Estimate{Mean: v, Low: v - 0.1, High: v + 0.1, Sessions: 3}
	}
	kinds := map[tokens.Kind]int{tokens.KindUser: 1200, tokens.KindToolResult: 34567}
	line := func(name string, bound bool, v float64) lab.Line {
		return lab.Line{
			Strategy: name, Bound: bound, Sessions: 3, Cuts: 3, KindsBefore: kinds, KindsAfter: map[tokens.Kind]int{tokens.KindUser: 600},
			Values: map[string]lab.Estimate{"panel": share(v), "far": share(v / 2), "kept": share(0.25), "ms": {Mean: 1234.5, Low: 1, High: 2000, Sessions: 3}},
		}
	}
	r := &lab.Report{
		Format: lab.ReportFormat, Encoding: "o200k_base",
		Strategies: []lab.StrategyInfo{{Name: lab.KeepLast, Bound: true}, {Name: "mine" + hostile, About: hostile}},
		Budgets:    []string{"25%"}, Modes: []string{"code" + hostile}, Measures: lab.Measures(),
		Skipped:  []lab.Skipped{{Name: hostile, Reason: hostile}},
		Warnings: []lab.Warning{{Strategy: "mine" + hostile, Text: hostile, Unfit: true}},
		Verdicts: []lab.Verdict{{Budget: "25%", Best: "mine" + hostile, Shown: true, Text: "mine keeps most " + hostile, Disagreement: "the yardsticks disagree" + hostile, AtSize: []string{"mine against other at the same size" + hostile}}},
		CanaryLines: []lab.CanaryLine{
			{Strategy: "mine" + hostile, Budget: "20%", Type: "rule", Kept: []lab.Estimate{share(0.75), {Mean: 0.5, Low: 0.5, High: 0.5, Sessions: 1}}, FirstLost: 2, Stale: &lab.Estimate{Mean: 0.25, Low: 0.25, High: 0.25}},
			{Strategy: "other", Budget: "20%", Type: "rule", Kept: []lab.Estimate{{Mean: 1, Low: 1, High: 1, Sessions: 3}}},
		},
	}
	for _, mode := range []string{"", r.Modes[0]} {
		r.Tables = append(r.Tables, lab.Table{Budget: "25%", Mode: mode, Lines: []lab.Line{line(lab.KeepLast, true, 1), line("mine"+hostile, false, 0.123456)}})
	}
	for _, session := range []string{"/logs/a" + hostile, "/logs/b", "/logs/c"} {
		r.Sessions = append(r.Sessions, lab.SessionInfo{Name: session, Mode: r.Modes[0], Tokens: 1000, Cuts: []string{"32k"}})
		for _, s := range r.Strategies {
			r.Rows = append(r.Rows, lab.Row{
				Strategy: s.Name, Budget: "25%", Session: session, Mode: r.Modes[0], Cut: "32k", Before: 100, Room: 25, After: 20,
				Outcome: core.OutcomeApplied, Values: map[string]float64{"panel": 0.5, "ms": math.Pi}, KindsAfter: kinds,
			})
		}
	}
	return r
}

func newDetail(r *lab.Report, row int, text string) *lab.Detail {
	part := []lab.DetailPart{{Type: "text", Name: hostile, Text: text}}
	return &lab.Detail{
		Row: r.Rows[row],
		Messages: []lab.DetailMessage{
			{At: 0, State: lab.StateHidden, Role: core.RoleUser, Parts: part, TokensBefore: 80},
			{At: -1, State: lab.StateNew, Role: core.RoleUser, Parts: part, TokensAfter: 5},
			{At: 1, State: lab.StateRewritten, Role: core.RoleAssistant, Parts: part, After: part, TokensBefore: 20, TokensAfter: 15},
		},
		Needs: []score.Need{{Kind: score.UnitPath, Text: "a.go", Weight: 1, Messages: []int{0}}},
	}
}

func write(t *testing.T, r *lab.Report, details []*lab.Detail, opts *report.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.Write(&b, r, details, opts); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var dataElement = regexp.MustCompile(`<script type="application/gzip" id="([^"]+)">([^<]*)</script>`)

// blocks returns the JSON of the elements for the script, by ID.
func blocks(t *testing.T, page string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, m := range dataElement.FindAllStringSubmatch(page, -1) {
		raw, err := base64.StdEncoding.DecodeString(m[2])
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		out[m[1]] = string(text)
	}
	return out
}

// What ran several times shows how far apart the runs are: in the tables of measures, rounds and canaries.
func TestSpreadOnThePage(t *testing.T) {
	r := newReport()
	if page := write(t, r, nil, nil); strings.Contains(page, "runs 0.") || strings.Contains(page, `id="repeated"`) {
		t.Error("a spread of single runs")
	}
	apart := func(least, most float64) lab.Estimate {
		return lab.Estimate{Mean: 0.65, Low: 0.5, High: 0.75, Sessions: 3, Runs: &lab.Spread{Runs: 3, Least: least, Most: most}}
	}
	r.Tables[0].Lines[1].Values["panel"] = apart(0.612, 0.701)
	r.RoundLines = []lab.RoundLine{{Strategy: "mine", Round: 1, Values: map[string]lab.Estimate{"once": apart(0.622, 0.711)}}}
	r.CanaryLines[1].Kept[0] = apart(0.632, 0.721)
	page := write(t, r, nil, nil)
	if !strings.Contains(page, `id="repeated"`) {
		t.Error("nothing says that something ran several times")
	}
	// In a table of a measure twice: by budget, and by measure.
	for text, times := range map[string]int{"3 runs 0.61–0.70": 2, "3 runs 0.62–0.71": 1, "3 runs 0.63–0.72": 1} {
		if got := strings.Count(page, `<small class="runs">`+text); got < times {
			t.Errorf("%q is on the page %d times, want %d", text, got, times)
		}
	}
}

// Names and messages add no active elements to the page.
func TestHostileText(t *testing.T) {
	r := newReport()
	page := write(t, r, []*lab.Detail{newDetail(r, 1, hostile)}, &report.Options{Title: hostile, Command: hostile})
	if n := strings.Count(page, "<script>"); n != 1 {
		t.Errorf("the page has %d scripts, want the one that is ours", n)
	}
	for _, s := range []string{"<img", "onerror=alert(2)>", "<script>alert"} {
		if strings.Contains(page, s) {
			t.Errorf("the page has %q as it was in the session", s)
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
	for _, sign := range []string{"⟦U+202E⟧", "␀", "␛", "␡", "⟦U+2028⟧"} {
		if !strings.Contains(html.UnescapeString(page), sign) {
			t.Errorf("%s does not show", sign)
		}
	}
}

// The policy allows our script and nothing else, and the page names nothing to load.
func TestPolicy(t *testing.T) {
	page := write(t, newReport(), nil, nil)
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)
	if policy == nil {
		t.Fatal("the page has no policy")
	}
	for part := range strings.SplitSeq(html.UnescapeString(policy[1]), ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), " ")
		switch name {
		case "default-src", "base-uri", "form-action":
			if value != "'none'" {
				t.Errorf("%s is %s", name, value)
			}
		case "script-src":
			if strings.Contains(value, "unsafe") || strings.Contains(value, "*") || !strings.HasPrefix(value, "'sha256-") {
				t.Errorf("script-src is %s", value)
			}
		case "style-src":
		default:
			t.Errorf("%s %s", name, value)
		}
	}
	head, _, _ := strings.Cut(page, "<script>")
	if m := regexp.MustCompile(`(?:src|href|url\()=?["']?(?:https?:)?//`).FindString(head); m != "" {
		t.Errorf("the page loads something: %s", m)
	}
}

// Every mean of the report is in a table, in full, with what a reader sees.
func TestNumbers(t *testing.T) {
	page := write(t, newReport(), nil, nil)
	for _, s := range []string{
		`<td data-v="0.123456"><button type="button">0.12 <small>0.02–0.22</small></button></td>`,
		`<td data-v="1234.5"><button type="button">1,235 <small>1.0–2,000</small></button></td>`,
		`<td data-v="600">600 <small>50 %</small></td>`,
		`<td data-v="600">600 <small>2 %</small></td>`,
		`<td data-v="3">3</td><td data-v="0.75">0.75 <small>0.65–0.85</small></td><td data-v="0.5">0.50</td><td data-v="2">round 2</td><td data-v="0.25">0.25</td><td class="none">`,
		`<td data-v="1">1.00</td><td class="none"><span class="hush">not defined</span>–</td><td>never</td>`,
		`<span class="at-size">mine against other at the same size`,
		`<span class="worse">the yardsticks disagree`,
	} {
		if !strings.Contains(page, s) {
			t.Errorf("the page lacks %s", s)
		}
	}
	var d struct {
		Tables []lab.Table
		Rows   struct {
			Session []int
			Values  map[string][]*float64
		}
		Sessions []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(blocks(t, page)["data"]), &d); err != nil {
		t.Fatal(err)
	}
	if got := d.Tables[0].Lines[1].Values["panel"].Mean; got != 0.123456 {
		t.Errorf("the script gets %v, want 0.123456", got)
	}
	if n := len(d.Rows.Session); n != 6 {
		t.Errorf("the script gets %d rows, want 6", n)
	}
	if got := *d.Rows.Values["ms"][0]; got != 3.1416 {
		t.Errorf("a row has %v, want five digits of pi", got)
	}
	if got := d.Sessions[1].Name; got != "b" {
		t.Errorf("a session is called %q, want it without the folder that all are in", got)
	}
}

// The page says what is left out to limit its size, and the rest works.
func TestBounds(t *testing.T) {
	r := newReport()
	noise := make([]byte, 50_000)
	for i := range noise {
		noise[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[(i*i*7919+i*31)%36]
	}
	details := []*lab.Detail{newDetail(r, 1, string(noise)), newDetail(r, 3, "short")}
	for _, c := range []struct {
		name string
		opts report.Options
		want []string
		not  []string
	}{
		{"all", report.Options{}, []string{"Text of 2 sessions in 2 views", "All 6 measurements", "longer than 16,000 bytes"}, []string{"left out to bound"}},
		{"text", report.Options{MaxText: 900}, []string{"Text of 1 session in 1 views", "1 more views were left out"}, nil},
		{"none", report.Options{MaxText: -1}, []string{"No text of any session"}, nil},
		{"rows", report.Options{MaxRows: 3}, []string{"2 of 6 measurements"}, []string{"All 6"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			page := strings.Join(strings.Fields(write(t, r, details, &c.opts)), " ")
			for _, s := range c.want {
				if !strings.Contains(page, s) {
					t.Errorf("the page does not say %q", s)
				}
			}
			for _, s := range c.not {
				if strings.Contains(page, s) {
					t.Errorf("the page says %q", s)
				}
			}
		})
	}
	stray := newDetail(r, 0, "")
	stray.Row.Cut = "elsewhere"
	if err := report.Write(io.Discard, r, []*lab.Detail{stray}, nil); err == nil || !strings.Contains(err.Error(), "elsewhere") {
		t.Errorf("got %v for a detail of no row, want an error that names it", err)
	}
}

// The same input gives the same page, byte for byte.
func TestDeterministic(t *testing.T) {
	r := newReport()
	details := []*lab.Detail{newDetail(r, 1, "a"), newDetail(r, 3, "b")}
	first, second := write(t, r, details, nil), write(t, r, details, nil)
	if first != second {
		t.Error("two pages of one report differ")
	}
}

// A page of canaries alone has no parts about what was needed.
func TestCanariesAlone(t *testing.T) {
	r := newReport()
	r.Rows, r.Tables, r.Verdicts = nil, nil, nil
	page := write(t, r, nil, nil)
	for s, want := range map[string]bool{`id="canaries"`: true, "planted in 3 sessions": true, `id="verdicts"`: false, `id="numbers"`: false, "were cut at": false} {
		if strings.Contains(page, s) != want {
			t.Errorf("the page has %q: %v, want %v", s, !want, want)
		}
	}
}

// A page of conversations with evidence alone has their table, and no parts about what was needed.
func TestEvidenceAlone(t *testing.T) {
	r := newReport()
	r.Rows, r.Tables, r.Verdicts, r.CanaryLines = nil, nil, nil, nil
	r.EvidenceLines = []lab.EvidenceLine{{Strategy: "mine" + hostile, Budget: "25%", Ability: "order" + hostile, Questions: 1234, Kept: lab.Estimate{Mean: 0.5, Low: 0.5, High: 0.5, Sessions: 3}}}
	page := write(t, r, nil, nil)
	for s, want := range map[string]bool{`id="evidence"`: true, "3 conversations were condensed": true, `<td data-v="1234">1,234</td><td data-v="0.5">0.50`: true, `id="verdicts"`: false, "were cut at": false, "planted": false} {
		if strings.Contains(page, s) != want {
			t.Errorf("the page has %q: %v, want %v", s, !want, want)
		}
	}
}

// The script gets the verdict on every name.
func TestFiveVerdicts(t *testing.T) {
	r := newReport()
	d := newDetail(r, 1, "text")
	want := []string{"kept", "reachable", "missing", "altered", "stale"}
	d.Needs = nil
	for _, v := range want {
		d.Needs = append(d.Needs, score.Need{Kind: score.UnitPath, Text: v, Verdict: score.Verdict(v)})
	}
	var b struct {
		Views []struct{ Found []struct{ Verdict string } }
	}
	if err := json.Unmarshal([]byte(blocks(t, write(t, r, []*lab.Detail{d}, nil))["text-0"]), &b); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range b.Views[0].Found {
		got = append(got, f.Verdict)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the script gets %q, want %q", got, want)
	}
}

// The conclusion comes first; a note on a measure is told once, however many verdicts it belongs to; a strategy that keeps less than random
// lines is marked, and only where it does.
func TestConclusionNotesAndMarks(t *testing.T) {
	r := newReport()
	r.Conclusion = "budget 25%: mine keeps most <b>of all</b>."
	const note = "counts the user's sentences only word for word"
	for _, budget := range []string{"25%", "50%"} {
		r.Verdicts = append(r.Verdicts, lab.Verdict{Budget: budget, Mode: r.Modes[0], Best: "mine", Shown: true, Losses: []lab.Loss{{Measure: lab.MeasureUser, To: lab.KeepLast, Why: note}}})
	}
	r.Strategies = append(r.Strategies, lab.StrategyInfo{Name: lab.Random, Bound: true})
	for i, random := range []float64{0.5, 0.1} { // all modes, and the mode
		line := r.Tables[i].Lines[0]
		line.Strategy, line.Values = lab.Random, map[string]lab.Estimate{lab.MeasurePanel: {Mean: random, Sessions: 3}}
		r.Tables[i].Lines = append(r.Tables[i].Lines, line)
	}
	page := write(t, r, nil, nil)
	_, after, _ := strings.Cut(page, `<p class="conclusion">`)
	if got, _, _ := strings.Cut(after, "</p>"); html.UnescapeString(got) != r.Conclusion || strings.Contains(got, "<") || !strings.Contains(after, `<p class="lead">`) {
		t.Errorf("the conclusion is %q", got)
	}
	if n := strings.Count(page, html.EscapeString(note)); n != 1 {
		t.Errorf("the note is there %d times", n)
	}
	if n := strings.Count(page, "below random lines at 25%"); n != 1 {
		t.Errorf("%d marks, want those of mine over all modes", n)
	}
}

// An empty report is a page too, as after a run that was stopped at once.
func TestEmpty(t *testing.T) {
	page := write(t, &lab.Report{Format: lab.ReportFormat, Partial: true, Measures: lab.Measures()}, nil, nil)
	if !strings.Contains(page, "Stopped early") || !strings.Contains(page, "0 sessions") {
		t.Error("the page does not say that there is nothing")
	}
}

// Choose keeps the rows of all strategies for one cut together, and modes take turns.
func TestChoose(t *testing.T) {
	r := &lab.Report{}
	for i, mode := range []string{"code", "code", "ask"} {
		name := "s" + strconv.Itoa(i)
		r.Sessions = append(r.Sessions, lab.SessionInfo{Name: name, Mode: mode, Tokens: 100 - i})
		for _, budget := range []string{"10%", "25%", "50%"} {
			for _, strategy := range []string{"a", "b"} {
				r.Rows = append(r.Rows, lab.Row{Strategy: strategy, Budget: budget, Session: name, Mode: mode, Cut: "32k", After: 1})
			}
		}
		r.Rows = append(r.Rows, lab.Row{Strategy: "c", Budget: "10%", Session: name, Outcome: core.OutcomeFailed})
	}
	for n, want := range map[int]string{
		0: "", 1: "", 2: "s1 25%", 5: "s1 25%, s2 25%", 6: "s0 50%, s1 25%, s2 25%",
		1000: "s0 10%, s0 25%, s0 50%, s1 10%, s1 25%, s1 50%, s2 10%, s2 25%, s2 50%",
	} {
		var got []string
		rows := report.Choose(r, n)
		for i := 0; i < len(rows); i += 2 {
			if rows[i].Strategy != "a" || rows[i+1].Strategy != "b" {
				t.Fatalf("Choose(%d) divides a cut: %v", n, rows)
			}
			got = append(got, rows[i].Session+" "+rows[i].Budget)
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("Choose(%d) = %s, want %s", n, s, want)
		}
	}
}
