// Package size reads and writes numbers of tokens and bytes, and amounts of money, in the form that users write: for
// the configuration, the flags, the budgets of comparisons and all output.
package size

import (
	"math"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/plain"
)

// Units describes the input of Parse, for messages.
const Units = "64000, 64k (64,000) or 64Ki (65,536)"

var form = plain.Pattern(`^([0-9][0-9_]*(?:\.[0-9]+)?)\s*([kKmMgG]i?)?$`)

// units are the units of vendors of models: 128k is 128,000; 32Ki is 32,768.
var units = map[string]float64{"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30}

// Parse reads 64000, 64_000, 64k, 1.5M, 64Ki or 1Gi. It reports false for anything else, such as
// negative numbers, fractions, and numbers above 2^53.
func Parse(text string) (int64, bool) {
	m := form().FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(m[1], "_", ""), 64)
	v *= units[strings.ToLower(m[2])]
	if err != nil || v != math.Trunc(v) || v > 1<<53 {
		return 0, false
	}
	return int64(v), true
}

// HasUnit reports whether text is a size with a unit.
func HasUnit(text string) bool {
	m := form().FindStringSubmatch(strings.TrimSpace(text))
	return m != nil && m[2] != ""
}

// Plural writes a count of things: 1 line, 2,000 lines.
func Plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return Group(n) + " " + thing + "s"
}

// Dollars writes an amount of US dollars with a number of decimals: $0.84, -$12.50. What rounds to nothing has no sign.
func Dollars(amount float64, decimals int) string {
	if math.Abs(amount) < math.Pow10(-decimals)/2 {
		amount = 0
	}
	return strings.Replace("$"+strconv.FormatFloat(amount, 'f', decimals, 64), "$-", "-$", 1)
}

// Number writes x with at most one decimal.
func Number(x float64) string { return strconv.FormatFloat(float64(int(x*10+0.5))/10, 'f', -1, 64) }

// Group writes n with thousands separators: 1,234,567.
func Group(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Short writes a number of tokens in a few characters, rounded: 940, 142k, 1.0M.
func Short(tokens int) string {
	const thousand, million = 1000, 1_000_000
	switch {
	case tokens < thousand:
		return strconv.Itoa(tokens)
	case tokens < million-thousand/2:
		return strconv.Itoa((tokens+thousand/2)/thousand) + "k"
	}
	return strconv.FormatFloat(float64(tokens)/million, 'f', 1, 64) + "M"
}
