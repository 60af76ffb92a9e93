package lab

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/suggest"
)

// A Condition is a change of a measure that is not accepted, or a share of failures.
type Condition struct {
	Measure string
	Text    string // as written
	below   bool   // the change is not accepted below by; else above
	by      float64
}

// measureAliases are other names of measures, for conditions.
var measureAliases = map[string]string{"recall": MeasurePanel, "needed": MeasurePanel, "cost": "usd", "time": "ms", "tokens": MeasureKept}

// ParseConditions reads conditions separated by commas, such as "recall<-0.03,size>0.05".
func ParseConditions(s string) ([]Condition, error) {
	names := slices.Sorted(maps.Keys(measureAliases))
	names = append(names, plain.Each(Measures(), func(m Measure) string { return m.Name })...)
	var out []Condition
	for text := range strings.SplitSeq(s, ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		i := strings.IndexAny(text, "<>")
		if i < 0 {
			return nil, fmt.Errorf("%q: want MEASURE<CHANGE or MEASURE>CHANGE, such as recall<-0.03", text)
		}
		name := strings.TrimSpace(text[:i])
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("%q: no measure %q%s; there are %s", text, name, suggest.DidYouMean(name, names), strings.Join(names, ", "))
		}
		name = cmp.Or(measureAliases[name], name)
		by, err := strconv.ParseFloat(strings.TrimSpace(text[i+1:]), 64)
		if err != nil || math.IsNaN(by) {
			return nil, fmt.Errorf("%q: %q is not a number", text, strings.TrimSpace(text[i+1:]))
		}
		out = append(out, Condition{name, text, text[i] == '<', by})
	}
	return out, nil
}

// OfFailures reports whether c is about the share of cuts at which a strategy failed, rather than about a change.
func (c Condition) OfFailures() bool { return c.Measure == MeasureFailed }

// Failing returns a text for every strategy and budget of r whose share of failed cuts violates c.
func (c Condition) Failing(r *Report) []string {
	var out []string
	for i := range r.Tables {
		t := &r.Tables[i]
		if t.Mode != "" {
			continue
		}
		for j := range t.Lines {
			if e, ok := t.Lines[j].Values[c.Measure]; ok && c.exceeded(e.Mean) {
				out = append(out, fmt.Sprintf("%s of %s at %s is %.3f (%s)", c.Measure, t.Lines[j].Strategy, t.Budget, e.Mean, c.Text))
			}
		}
	}
	return out
}

// Broken reports whether d violates c. A change that may be due to chance does not.
func (c Condition) Broken(d Difference) bool { return d.Shown && c.exceeded(d.Mean) }

func (c Condition) exceeded(v float64) bool {
	if c.below {
		return v < c.by
	}
	return v > c.by
}
