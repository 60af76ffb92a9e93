package report

import (
	"math"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/lab"
)

// thousands writes n with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	sign := ""
	if n < 0 {
		sign, s = "−", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// number writes v as a reader wants to see a measure of that unit. The script does the
// same, see web/src/format.js; a test in a browser compares them.
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
	Title   string
	// Mean, Low and High are percent of the axis from 0 to 1, for a bar.
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
	return c
}

func percent(v float64) float64 {
	return math.Round(1000*min(1, max(0, v))) / 10
}
