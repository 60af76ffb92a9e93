package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/size"
)

// Visible returns s with visible signs in place of characters that are invisible or act on the text around
// them: C0 and C1 controls, characters that change the direction of text, zero-width spaces, tags. Newlines
// and tabs are unchanged. Invalid UTF-8 becomes U+FFFD.
func Visible(s string) string {
	if strings.IndexFunc(s, acts) < 0 && utf8.ValidString(s) && !strings.Contains(s, "\r") {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	s = strings.ReplaceAll(s, "\r\n", "\n")
	for _, r := range s {
		switch {
		case !acts(r):
			b.WriteRune(r)
		case r < 0x20:
			b.WriteRune(0x2400 + r) // the pictures of the controls
		case r == 0x7f:
			b.WriteRune('␡')
		default:
			fmt.Fprintf(&b, "⟦U+%04X⟧", r)
		}
	}
	return b.String()
}

// acts reports whether r is invisible or acts on the text around it.
func acts(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0:
		return true
	case r == 0x061c, r == 0x200b, r >= 0x200e && r <= 0x200f, r == 0x2028, r == 0x2029,
		r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f, r == 0xfeff, r >= 0xfff9 && r <= 0xfffb,
		r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return false
}

// line returns s as one visible line of at most n runes.
func line(s string, n int) string {
	return plain.First(strings.Join(strings.Fields(Visible(s)), " "), n-1)
}

// cut returns s, or the beginning and the end of s if it has more than most bytes, and the number of bytes
// left out.
func cut(s string, most int) (string, int) {
	if len(s) <= most {
		return s, 0
	}
	head, tail := plain.Back(s, most*3/4), plain.On(s, len(s)-most/4)
	out := tail - head
	return fmt.Sprintf("%s\n\n[… %s bytes are left out of this page …]\n\n%s", s[:head], thousands(out), s[tail:]), out
}

// cleaned returns a copy of r in which every name and text is visible. Names are also in attributes and in
// the data of the script, and must be the same everywhere.
func cleaned(r *lab.Report) *lab.Report {
	out := *r
	out.Strategies = each(r.Strategies, func(s *lab.StrategyInfo) { makeVisible(&s.Name, &s.About) })
	out.Modes = each(r.Modes, func(s *string) { makeVisible(s) })
	out.Sessions = each(r.Sessions, func(s *lab.SessionInfo) { makeVisible(&s.Name, &s.Source, &s.Mode) })
	out.Skipped = each(r.Skipped, func(s *lab.Skipped) { makeVisible(&s.Name, &s.Reason) })
	out.Rows = each(r.Rows, func(x *lab.Row) {
		makeVisible(&x.Strategy, &x.Session, &x.Source, &x.Mode, &x.Cut, &x.Provider, &x.Error)
	})
	out.RoundLines = each(r.RoundLines, func(x *lab.RoundLine) { makeVisible(&x.Strategy) })
	out.Tables = each(r.Tables, func(t *lab.Table) {
		makeVisible(&t.Mode)
		t.Lines = each(t.Lines, func(l *lab.Line) { makeVisible(&l.Strategy) })
	})
	out.Differences = each(r.Differences, func(d *lab.Difference) { makeVisible(&d.Mode, &d.A, &d.B) })
	makeVisible(&out.Conclusion)
	out.Verdicts = each(r.Verdicts, func(v *lab.Verdict) {
		v.Halves = nil
		makeVisible(&v.Mode, &v.Best, &v.Text, &v.Disagreement)
		v.Ties = each(v.Ties, func(s *string) { makeVisible(s) })
		v.AtSize = each(v.AtSize, func(s *string) { makeVisible(s) })
	})
	out.CanaryLines = each(r.CanaryLines, func(l *lab.CanaryLine) { makeVisible(&l.Strategy) })
	out.EvidenceLines = each(r.EvidenceLines, func(l *lab.EvidenceLine) { makeVisible(&l.Strategy, &l.Ability) })
	out.Warnings = each(r.Warnings, func(x *lab.Warning) { makeVisible(&x.Strategy, &x.Text) })
	return &out
}

// each returns a copy of list with clean applied to every item.
func each[T any](list []T, clean func(*T)) []T {
	out := slices.Clone(list)
	for i := range out {
		clean(&out[i])
	}
	return out
}

func makeVisible(texts ...*string) {
	for _, t := range texts {
		*t = Visible(*t)
	}
}

// thousands writes n with commas, and a minus sign where it is negative.
func thousands(n int) string { return strings.Replace(size.Group(n), "-", "−", 1) }

// number formats v for its unit. The script does the same: see web/src/format.js. A browser test compares
// them.
func number(unit string, v float64) string {
	switch unit {
	case "share":
		return fixed(v, 2)
	case "tokens", "messages", "bytes":
		return thousands(int(math.Round(v)))
	case "USD":
		if v != 0 && math.Abs(v) < 0.01 {
			return fixed(v, 4)
		}
		return fixed(v, 2)
	case "ms":
		if math.Abs(v) >= 100 {
			return thousands(int(math.Round(v)))
		}
		return fixed(v, 1)
	}
	return fixed(v, 1)
}

func fixed(v float64, digits int) string {
	s := strconv.FormatFloat(v, 'f', digits, 64)
	if rest, ok := strings.CutPrefix(s, "-"); ok {
		if strings.Trim(rest, "0.") == "" {
			return rest
		}
		return "−" + rest
	}
	return s
}

// A cell is a number in a table.
type cell struct {
	Defined bool
	Value   string // in full, to sort by
	Text    string
	Range   string // the interval
	Runs    string // how far apart single runs are
	// Mean, Low and High are positions of a bar, in percent of the axis from 0 to 1.
	Mean, Low, High float64
}

func estimate(m *lab.Measure, values map[string]lab.Estimate) cell {
	e, ok := values[m.Name]
	if !ok {
		return cell{}
	}
	c := cell{
		Defined: true, Value: strconv.FormatFloat(e.Mean, 'g', -1, 64), Text: number(m.Unit, e.Mean),
		Mean: percent(e.Mean), Low: percent(e.Low), High: percent(e.High),
	}
	if e.Low != e.High {
		c.Range = number(m.Unit, e.Low) + "–" + number(m.Unit, e.High)
	}
	if s := e.Runs; s != nil {
		c.Runs = fmt.Sprintf("%d runs %s–%s", s.Runs, number(m.Unit, s.Least), number(m.Unit, s.Most))
	}
	return c
}

func percent(v float64) float64 { return math.Round(1000*min(1, max(0, v))) / 10 }
