package comparecmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/plain"
)

// against prints the differences from the reference in --against, and returns an error if a condition is broken.
func against(a *cli.App, c *comparison, r, old *lab.Report, conditions []lab.Condition) error {
	broken := slices.Concat(plain.Each(plain.Only(conditions, lab.Condition.OfFailures),
		func(c lab.Condition) []string { return c.Failing(r) })...)
	worse, err := differences(a, c, r, old, conditions)
	if broken = append(broken, worse...); len(broken) > 0 {
		err = errors.Join(err, errors.New("not accepted: "+strings.Join(broken, "; ")))
	}
	return err
}

// differences compares the strategies of r with the strategies of old or, without old, with the strategy in --against.
func differences(a *cli.App, c *comparison, r, old *lab.Report, conditions []lab.Condition) ([]string, error) {
	if c.against == "" {
		return nil, nil
	}
	title, other := "since", func(s, measure string) lab.Difference { return r.Since(old, s, measure) }
	if old == nil {
		title, other = "against", func(s, measure string) lab.Difference { return r.Difference(s, c.against, measure) }
	}
	asked := []string{lab.MeasurePanel, lab.MeasureUser, lab.MeasureKept}
	for _, cond := range conditions {
		if !cond.OfFailures() && !slices.Contains(asked, cond.Measure) {
			asked = append(asked, cond.Measure)
		}
	}
	var broken []string
	compared := 0
	term.Printf(a.Stderr, "%s %s:\n", title, c.against)
	for _, s := range r.Strategies {
		same := func(o lab.StrategyInfo) bool { return o.Name == s.Name }
		if s.Bound || old == nil && s.Name == c.against || old != nil && !slices.ContainsFunc(old.Strategies, same) {
			continue
		}
		for _, measure := range asked {
			d := other(s.Name, measure)
			if d.Sessions == 0 {
				continue
			}
			compared++
			result := "no difference shown"
			if d.Shown {
				result = "different"
			}
			term.Printf(a.Stderr, "  %-28s %-8s %+.3f (95 %% interval %+.3f to %+.3f, %s): %s\n",
				s.Name, measure, d.Mean, d.Low, d.High, d.Of(), result)
			for _, cond := range conditions {
				if cond.Measure == measure && cond.Broken(d) {
					broken = append(broken, fmt.Sprintf("%s of %s is %+.3f %s %s (%s)", measure, s.Name, d.Mean, title, c.against, cond.Text))
				}
			}
		}
	}
	if compared == 0 {
		return nil, fmt.Errorf("%s has no strategy and session in common with this result", c.against)
	}
	return broken, nil
}
