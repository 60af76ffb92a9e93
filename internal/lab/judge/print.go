package judge

import (
	"bytes"
	"cmp"
	_ "embed" // the page
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
)

// A Line is a line of a card: the first ones are the summary.
type Line struct{ Key, Text string }

// Lines returns the card in words.
func (c *Card) Lines() []Line {
	k, r := &c.Conformance, &c.Recorded
	deterministic := "whether it is deterministic was not measured"
	if k.Deterministic != nil {
		deterministic = map[bool]string{true: "deterministic", false: "not deterministic: one request had two answers"}[*k.Deterministic]
	}
	own := "its own share of the saving was not measured"
	if e := c.all().Own; e != nil {
		own = fmt.Sprintf("%.2f of the saving was its own, %.2f %s's", e.Mean, 1-e.Mean, cmp.Or(c.Before, "truncation"))
	}
	speed := "not measured"
	if r.MSPerMB50 > 0 {
		speed = fmt.Sprintf("%s ms per MB, %s at the 95th percentile", size.Number(r.MSPerMB50), size.Number(r.MSPerMB95))
	}
	memory := ""
	if r.PeakMemory > 0 {
		memory = fmt.Sprintf("; %d MB of memory at most", (r.PeakMemory+1<<20-1)>>20)
	}
	lines := []Line{{"verdict", c.Verdict + ": " + c.Why}}
	if c.Models != "" {
		lines = append(lines, Line{"models", c.Models})
	}
	lines = append(lines, []Line{
		{"plugin", fmt.Sprintf("%s %s (%s); %s", c.Name, c.Version, c.SDK, c.May)},
		{"conformance", fmt.Sprintf("%s, %d failed, %d declined; it acted in %d of %d; %s", size.Plural(k.Cases, "case"), k.Failed, k.Declined, k.Acted, k.Cases, deterministic)},
		{"recorded", fmt.Sprintf("%s to a quarter: it acted in %d of %d calls above the target (%d in all, %d failed, %d invalid); %s",
			size.Plural(r.Sessions, "session"), r.Acted, r.Due, r.Calls, r.Failed, r.Invalid, own)},
		{"speed", fmt.Sprintf("%s%s; ready after %s ms", speed, memory, size.Number(c.ReadyMS))},
		{"sizes", fmt.Sprintf("conversations of %d to %d messages, median %d; it changes those of %d and more; --sessions judges it on others", r.Messages[0], r.Messages[2], r.Messages[1], r.From)},
	}...)
	if r := c.Readers; r != nil {
		_, rows := r.Table(r.Budgets[0])
		shares := plain.Each(rows, func(row []any) string { return fmt.Sprintf("%s %s", row[0], row[2]) })
		lines = append(lines, Line{"readers", fmt.Sprintf("%s to a quarter, asked and graded by %s, read by %s, %s; answered: %s",
			size.Plural(r.Sessions, "session"), r.Author, r.Reader, c.Spent, strings.Join(shares, "; "))})
	}
	return lines
}

// columns are the columns of the table by mode.
func (c *Card) columns() []string {
	heads := []string{"mode", ">kept", ">own share", ">by itself", ">tokens left"}
	for _, name := range c.rivals() {
		if heads = append(heads, ">"+name); c.Before == "" {
			heads = append(heads, ">at its size")
		}
	}
	return heads
}

// Rows returns the table by mode: kept shares and paired differences.
func (c *Card) Rows() (rows [][]any) {
	for i := range c.Modes {
		m := &c.Modes[i]
		row := []any{cmp.Or(m.Mode, "all"), hundredths(m.Kept), hundredths(m.Own), hundredths(m.Alone), hundredths(m.Left)}
		if m.Kept != nil {
			row[0] = fmt.Sprintf("%s (%d)", cmp.Or(m.Mode, "all"), m.Kept.Sessions)
		}
		for _, name := range c.rivals() {
			for _, own := range []bool{false, true} {
				if own && c.Before != "" {
					continue
				}
				cell := ""
				for _, a := range m.Against {
					if a.Than == name && a.Own == own {
						cell = fmt.Sprintf("%.2f (%+.2f: %+.2f to %+.2f)", a.Kept.Mean, a.Difference.Mean, a.Difference.Low, a.Difference.High)
					}
				}
				row = append(row, cell)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func hundredths(e *lab.Estimate) string {
	if e == nil {
		return ""
	}
	return fmt.Sprintf("%.2f", e.Mean)
}

// legend explains the table.
func (c *Card) legend() string {
	others := "Of the built-in strategies: what they keep in the same chain, and at the size that the plugin leaves by itself"
	if c.Before != "" {
		others = "Of the rest of the chain: what it keeps alone"
	}
	return "Shares of 1: what was needed later and is kept, in a chain with truncation; the plugin's share of what that chain saved; what is " +
		"kept, and the tokens that are left, without the rest. " + others + "; in brackets what the plugin keeps more, with the paired 95 % interval."
}

// Notes returns weaknesses, broken rules and floors.
func (c *Card) Notes() []Line {
	var out []Line
	for _, l := range c.Worse {
		out = append(out, Line{"worse", fmt.Sprintf("%s, next to %s: %+.2f, 95 %% interval %+.2f to %+.2f, %s", l.Measure, l.Than,
			l.Difference.Mean, l.Difference.Low, l.Difference.High, l.Difference.Of())})
	}
	for _, f := range c.Conformance.Findings {
		out = append(out, Line{"fault", fmt.Sprintf("%s in %q: %s", f.Rule, f.Case, f.Text)})
	}
	for _, f := range c.Floors {
		key := "floor"
		if !f.Met {
			key = "MISSED"
		}
		out = append(out, Line{key, f.Text})
	}
	return out
}

// Text returns the card as text. A function lays out its tables; a title that begins with ">" aligns its column to the right.
func Text(c *Card, table func(titles []string, rows [][]any) string) []byte {
	var b bytes.Buffer
	write := func(lines []Line) {
		for _, l := range lines {
			fmt.Fprintf(&b, "%-12s %s\n", l.Key, plain.Line(l.Text))
		}
	}
	write(c.Lines())
	text := "\n" + table(c.columns(), c.Rows()) + "\n" + c.legend() + "\n"
	if c.Readers != nil {
		text += "\n" + table(c.Readers.Table(c.Readers.Budgets[0]))
	}
	b.WriteString(plain.Text(text))
	if notes := c.Notes(); len(notes) > 0 {
		b.WriteString("\n")
		write(notes)
	}
	return b.Bytes()
}

// Markdown returns a table for a README.
func Markdown(c *Card) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "| condense | %s %s |\n|---|---|\n", Cell(c.Name), Cell(c.Version))
	lines := slices.DeleteFunc(c.Lines(), func(l Line) bool { return l.Key == "plugin" })
	for _, l := range append(append(lines, Line{"abilities", c.May}), c.Notes()...) {
		fmt.Fprintf(&b, "| %s | %s |\n", l.Key, Cell(l.Text))
	}
	return []byte(b.String())
}

//go:embed card.html
var page string

var pageTemplate = template.Must(template.New("card").Parse(page))

// HTML returns a page.
func HTML(c *Card) ([]byte, error) {
	heads := c.columns()
	for i := range heads {
		heads[i] = strings.TrimPrefix(heads[i], ">")
	}
	var b bytes.Buffer
	err := pageTemplate.Execute(&b, struct {
		*Card

		Heads  []string
		Legend string
	}{c, heads, c.legend()})
	return b.Bytes(), err
}

// Cell is a text in a table of Markdown.
func Cell(s string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", `\|`)
}
