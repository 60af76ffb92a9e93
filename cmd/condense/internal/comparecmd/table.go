package comparecmd

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
)

// roundColumns are the columns of the table of rounds.
var roundColumns = []column{
	{lab.MeasurePanel, "needed later"},
	{"once", "condensed once"},
	{lab.MeasureUser, "user's words"},
	{"once_user", "condensed once"},
	{"first_user", "user's words of the beginning"},
	{"first_files", "files of the beginning"},
}

// writeRounds writes the shares left after every round, if there are rounds.
func writeRounds(w io.Writer, r *lab.Report, markdown bool, width int) {
	if len(r.RoundLines) == 0 {
		return
	}
	titles := append([]string{"strategy", ">round", ">sessions"}, plain.Each(roundColumns, func(c column) string { return ">" + c.title })...)
	t := newRunsTable(markdown, 3, titles, append([]string{"strategy", ">runs", ">round"}, titles[3:]...))
	for i := range r.RoundLines {
		l := &r.RoundLines[i]
		sessions := 0
		for _, e := range l.Values {
			sessions = max(sessions, e.Sessions)
		}
		row, runs, apart := []any{l.Strategy, l.Round, sessions}, 0, []any{}
		for _, c := range roundColumns {
			text, between := "", ""
			if e, ok := l.Values[c.measure]; ok {
				text = fmt.Sprintf("%.3f ±%.3f", e.Mean, (e.High-e.Low)/2)
				if s := e.Runs; s != nil {
					runs, between = max(runs, s.Runs), spreadText(s, 3)
				}
			}
			row, apart = append(row, text), append(apart, between)
		}
		t.row(l.Strategy, row, runs > 0, append([]any{l.Strategy, runs, l.Round}, apart...))
	}
	t.print(w, "condensed in rounds", width)
}

// A runsTable is a table by strategy, with another one of how far apart the runs are, if any ran several times.
type runsTable struct {
	main, spread       *term.Table
	markdown, repeated bool
	last               string // strategy
}

func newRunsTable(markdown bool, repeat int, titles, spread []string) *runsTable {
	t := &runsTable{main: term.NewTable(titles...), spread: term.NewTable(spread...), markdown: markdown}
	t.main.Repeat(repeat)
	t.spread.Repeat(repeat)
	return t
}

// row adds a row of a strategy, and one of its runs if there are several.
func (t *runsTable) row(strategy string, row []any, several bool, runs []any) {
	if !t.markdown && t.last != "" && strategy != t.last {
		t.main.Divide()
	}
	t.last = strategy
	t.main.Row(row...)
	if several {
		t.spread.Row(runs...)
		t.repeated = true
	}
}

func (t *runsTable) print(w io.Writer, title string, width int) {
	printTable(w, t.main, title, t.markdown, width)
	if t.repeated {
		printTable(w, t.spread, title+", "+spreadTitle, t.markdown, width)
	}
}

// A column is a measure in a table. The other formats have all measures.
type column struct{ measure, title string }

var tableColumns = []column{
	{lab.MeasurePanel, "needed later"},
	{lab.MeasureGain, "predicts"},
	{lab.MeasureFar, "far back"},
	{lab.MeasureUser, "user's words"},
	{lab.MeasureReachable, "reachable"},
	{"artefacts", "files"},
	{"errors", "errors"},
	{"wrong_author", "wrong author"},
	{"superseded", "old lines"},
	{"outcomes", "outcomes"},
	{lab.MeasureKept, "tokens left"},
	{lab.MeasureOwn, "saved by itself"},
	{lab.MeasureFailed, "failed"},
	{"head_bytes", "cached prefix"},
	{"ms", "ms"},
	{"calls", "model calls"},
	{"usd", "USD"},
}

// writeTables writes verdicts, warnings and tables. Width is the terminal's in characters; zero means no limit.
func writeTables(w io.Writer, r *lab.Report, markdown, perMode bool, width int) {
	term.Printf(w, "%s, %s, counted with %s, seed %d\n", size.Plural(len(r.Sessions), "session"), size.Plural(len(r.Rows), "result"), r.Encoding, r.Seed)
	for _, s := range r.Skipped {
		term.Printf(w, "skipped %s: %s\n", s.Name, s.Reason)
	}
	for _, x := range r.Warnings {
		term.Printf(w, "warning: %s\n", strings.TrimPrefix(x.Strategy+": ", ": ")+x.Text)
	}
	term.Printf(w, "\n")
	if len(r.Rows) > 0 {
		writeVerdicts(w, r, bullet(markdown))
	}
	for i := range r.Tables {
		t := &r.Tables[i]
		if t.Mode != "" && !perMode {
			continue
		}
		title := "budget " + t.Budget
		if t.Mode != "" {
			title += ", mode " + t.Mode
		}
		printTable(w, linesTable(t, columnsOf(r)), title, markdown, width)
		writeSpread(w, t, columnsOf(r), title, markdown, width)
	}
	writePeers(w, r, markdown, width)
	writeRounds(w, r, markdown, width)
	writeCanaries(w, r, markdown, width)
	writeEvidence(w, r, markdown, width)
	if len(r.Rows)+len(r.Canaries) == 0 && len(r.Evidence) > 0 {
		term.Printf(w, "\nShares of 1, means over questions, with the half width of the 95 %% interval over conversations.\n")
		return
	}
	term.Printf(w, "\nShares of 1, means over sessions, with the half width of the 95 %% interval. 'condense compare --output html' shows the sessions and messages that they come from.\n")
}

// writeVerdicts writes the verdict on every budget, over all modes and for every mode with enough sessions.
func writeVerdicts(w io.Writer, r *lab.Report, bullet string) {
	term.Printf(w, "%sconclusion: %s\n", bullet, r.Conclusion)
	silent := map[string][]string{}
	for _, v := range r.Verdicts {
		if v.Mode != "" && v.Few {
			silent[v.Budget] = append(silent[v.Budget], v.Mode)
		}
	}
	said := map[string]bool{} // explanations: once, although several verdicts need them
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		switch {
		case v.Mode == "":
			writeVerdict(w, v, bullet+"budget "+v.Budget, said)
			if modes := silent[v.Budget]; len(modes) > 0 && len(r.Modes) > 1 {
				term.Printf(w, "%sbudget %s, by mode: not enough sessions of %s; a verdict needs 6\n", bullet, v.Budget, strings.Join(modes, ", "))
			}
		case !v.Few:
			writeVerdict(w, v, bullet+"budget "+v.Budget+", mode "+v.Mode, said)
		}
	}
	for _, name := range winners(r) {
		for _, s := range r.Strategies {
			if s.Name == name && s.About != "" {
				term.Printf(w, "%s%s is %s\n", bullet, name, s.About)
			}
		}
	}
}

// writeVerdict writes a verdict and the losses of its winner.
func writeVerdict(w io.Writer, v *lab.Verdict, scope string, said map[string]bool) {
	term.Printf(w, "%s: %s\n", scope, v.Text)
	if v.Disagreement != "" {
		term.Printf(w, "  %s\n", v.Disagreement)
	}
	if losses := v.WorseIn(); losses != "" {
		term.Printf(w, "  %s\n", losses)
	}
	for _, text := range v.Explained() {
		if !said[text] {
			term.Printf(w, "    %s\n", text)
		}
		said[text] = true
	}
	for _, text := range v.AtSize {
		term.Printf(w, "  %s\n", text)
	}
}

// winners returns the strategies that are shown to be the best, in the order of the verdicts.
func winners(r *lab.Report) []string {
	var out []string
	for _, v := range r.Verdicts {
		if v.Shown && !slices.Contains(out, v.Best) {
			out = append(out, v.Best)
		}
	}
	return out
}

func bullet(markdown bool) string {
	if markdown {
		return "- "
	}
	return ""
}

// columnsOf returns the columns that are not empty or zero in every line.
func columnsOf(r *lab.Report) []column {
	return plain.Only(tableColumns, func(c column) bool {
		return slices.ContainsFunc(r.Tables, func(t lab.Table) bool {
			return slices.ContainsFunc(t.Lines, func(l lab.Line) bool { return l.Values[c.measure].Mean != 0 })
		})
	})
}

// linesTable returns the table of the lines of t.
func linesTable(t *lab.Table, columns []column) *term.Table {
	titles := append([]string{"strategy", ">sessions"}, plain.Each(columns, func(c column) string { return ">" + c.title })...)
	out := term.NewTable(titles...)
	bound := false
	for i := range t.Lines {
		l := &t.Lines[i]
		if i > 0 && bound && !l.Bound {
			out.Divide()
		}
		bound = l.Bound
		cells := plain.Each(columns, func(c column) any { return cell(l, c.measure) })
		out.Row(append([]any{l.Strategy, l.Sessions}, cells...)...)
	}
	return out
}

// writeSpread writes how far apart the runs of strategies are, if any ran several times.
func writeSpread(w io.Writer, t *lab.Table, columns []column, title string, markdown bool, width int) {
	titles := append([]string{"strategy", ">runs"}, plain.Each(columns, func(c column) string { return ">" + c.title })...)
	out, repeated := term.NewTable(titles...), false
	for i := range t.Lines {
		l := &t.Lines[i]
		runs, row := 0, []any{}
		for _, c := range columns {
			text := ""
			if s := l.Values[c.measure].Runs; s != nil {
				runs = s.Runs
				text = spreadText(s, cmp.Or(digits[c.measure], 3))
			}
			row = append(row, text)
		}
		if runs > 0 {
			out.Row(append([]any{l.Strategy, runs}, row...)...)
			repeated = true
		}
	}
	if repeated {
		printTable(w, out, title+", "+spreadTitle, markdown, width)
	}
}

const spreadTitle = "spread of the runs: least–most (standard deviation) of their means"

func spreadText(s *lab.Spread, digits int) string {
	return fmt.Sprintf("%.*f–%.*f (%.*f)", digits, s.Least, digits, s.Most, digits, s.Deviation)
}

// printTable prints a table below its title.
func printTable(w io.Writer, t *term.Table, title string, markdown bool, width int) {
	heading, text := "\n%s\n", t.Boxed(width)
	if markdown {
		heading, text = "\n### %s\n\n", t.Markdown()
	}
	term.Printf(w, heading, title)
	_ = term.PrintText(w, text) // the page is written to a buffer first
}

// digits are those after the point of measures that are no shares.
var digits = map[string]int{"ms": 1, "calls": 1, "usd": 4}

func cell(l *lab.Line, measure string) string {
	e, ok := l.Values[measure]
	if !ok {
		return ""
	}
	if n, ok := digits[measure]; ok {
		return strconv.FormatFloat(e.Mean, 'f', n, 64)
	}
	return fmt.Sprintf("%.3f ±%.3f", e.Mean, (e.High-e.Low)/2)
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// writeCSV writes every number of every table on a line of its own.
func writeCSV(w io.Writer, r *lab.Report) error {
	out := csv.NewWriter(w)
	write := func(fields ...string) { _ = out.Write(fields) } // out keeps the error
	line := func(budget, mode, strategy string, bound bool, measure, unit string, e *lab.Estimate) {
		runs := []string{"1", "", "", ""}
		if s := e.Runs; s != nil {
			runs = []string{strconv.Itoa(s.Runs), number(s.Least), number(s.Most), number(s.Deviation)}
		}
		numbers := []string{number(e.Mean), number(e.Low), number(e.High), strconv.Itoa(e.Sessions)}
		write(slices.Concat([]string{budget, mode, strategy, strconv.FormatBool(bound), measure, unit}, numbers, runs)...)
	}
	write("budget", "mode", "strategy", "bound", "measure", "unit", "mean", "low", "high", "sessions", "runs", "least", "most", "deviation")
	for i := range r.Tables {
		t := &r.Tables[i]
		for j := range t.Lines {
			l := &t.Lines[j]
			for _, m := range r.Measures {
				if e, ok := l.Values[m.Name]; ok {
					line(t.Budget, t.Mode, l.Strategy, l.Bound, m.Name, m.Unit, &e)
				}
			}
		}
	}
	for i := range r.CanaryLines {
		l := &r.CanaryLines[i]
		share := func(name string, e *lab.Estimate) {
			if e != nil {
				line(l.Budget, "", l.Strategy, false, "canary_"+string(l.Type)+"_"+name, "share", e)
			}
		}
		for k := range l.Kept {
			share("round_"+strconv.Itoa(k+1), &l.Kept[k])
		}
		share("stale", l.Stale)
		share("misled", l.Misled)
	}
	for i := range r.EvidenceLines {
		l := &r.EvidenceLines[i]
		measure := "evidence"
		switch {
		case l.Role != "":
			measure += "_role_" + string(l.Role)
		case l.Ability != "":
			measure += "_ability_" + l.Ability
		}
		if l.Questions > 0 {
			line(l.Budget, "", l.Strategy, false, measure, "share", &l.Kept)
		}
		if l.Left != nil {
			line(l.Budget, "", l.Strategy, false, "evidence_left", "share", l.Left)
		}
	}
	out.Flush()
	return out.Error()
}
