package comparecmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/cmd/condense/internal/cli"
	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/size"
)

// since prints the changes since an older result, and returns an error if a condition is broken.
func since(a *cli.App, c *comparison, r, old *lab.Report, conditions []lab.Condition) error {
	asked := []string{lab.MeasurePanel, lab.MeasureUser, lab.MeasureKept}
	for _, cond := range conditions {
		if !slices.Contains(asked, cond.Measure) {
			asked = append(asked, cond.Measure)
		}
	}
	var broken []string
	compared := 0
	term.Printf(a.Stderr, "since %s:\n", c.against)
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
			term.Printf(a.Stderr, "  %-28s %-8s %+.3f (95 %% interval %+.3f to %+.3f, %s): %s\n",
				s.Name, measure, d.Mean, d.Low, d.High, size.Plural(d.Sessions, "session"), change)
			for _, cond := range conditions {
				if cond.Measure == measure && cond.Broken(d) {
					broken = append(broken, fmt.Sprintf("%s of %s is %+.3f (%s)", measure, s.Name, d.Mean, cond.Text))
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
