package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/suggest"
)

// A condition is one of --fail-on: a change of a measure that is not accepted.
type condition struct {
	measure string
	less    bool // than by
	by      float64
	text    string
}

// measureAliases are what people call measures by.
var measureAliases = map[string]string{
	"recall": lab.MeasurePanel, "needed": lab.MeasurePanel, "cost": "usd", "time": "ms", "tokens": lab.MeasureKept,
}

func parseConditions(s string) ([]condition, error) {
	names := slices.Sorted(maps.Keys(measureAliases))
	for _, m := range lab.Measures() {
		names = append(names, m.Name)
	}
	var out []condition
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
			return nil, fmt.Errorf("%q: %q is no number", text, strings.TrimSpace(text[i+1:]))
		}
		out = append(out, condition{name, text[i] == '<', by, text})
	}
	return out, nil
}

// broken reports whether a change is one that is not accepted. A change that chance alone
// may have made is none.
func (c condition) broken(d lab.Difference) bool {
	if !d.Shown {
		return false
	}
	if c.less {
		return d.Mean < c.by
	}
	return d.Mean > c.by
}

// since says what changed since an older result, and fails if a condition is broken.
func (a *app) since(c *comparison, r, old *lab.Report, conditions []condition) error {
	asked := []string{lab.MeasurePanel, lab.MeasureUser, lab.MeasureKept}
	for _, cond := range conditions {
		if !slices.Contains(asked, cond.measure) {
			asked = append(asked, cond.measure)
		}
	}
	var broken []string
	compared := 0
	printf(a.stderr, "since %s:\n", c.against)
	for _, s := range r.Strategies {
		if s.Bound || !slices.ContainsFunc(old.Strategies, func(o lab.StrategyInfo) bool { return o.Name == s.Name }) {
			continue
		}
		for _, measure := range asked {
			d := r.Since(old, s.Name, measure)
			if d.Sessions == 0 {
				continue
			}
			compared++
			change := "no change shown"
			if d.Shown {
				change = "changed"
			}
			printf(a.stderr, "  %-28s %-8s %+.3f (95 %% interval %+.3f to %+.3f, %s): %s\n",
				s.Name, measure, d.Mean, d.Low, d.High, plural(d.Sessions, "session"), change)
			for _, cond := range conditions {
				if cond.measure == measure && cond.broken(d) {
					broken = append(broken, fmt.Sprintf("%s of %s is %+.3f (%s)", measure, s.Name, d.Mean, cond.text))
				}
			}
		}
	}
	switch {
	case compared == 0:
		return fmt.Errorf("%s has no strategy and session in common with this result", c.against)
	case len(broken) > 0:
		return errors.New("worse than " + c.against + ": " + strings.Join(broken, "; "))
	}
	return nil
}
