package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
)

// agree says what a comparison would spend on language models, if anything, and asks
// before it does. Where no answer is possible, --yes or --max-cost must have.
func (a *app) agree(cmd *cobra.Command, c *comparison, items []lab.Item, strategies []lab.Strategy, opts *lab.Options) error {
	if !anyEstimates(strategies) {
		return nil
	}
	plan, err := lab.NewPlan(cmd.Context(), items, strategies, opts)
	if err != nil {
		return err
	}
	u := plan.Usage
	if u.Calls == 0 {
		return nil
	}
	printf(a.stderr, "%s, %d results to measure, %d of them known: at most %s\n",
		plural(plan.Sessions, "session"), plan.Rows, plan.Cached, usageText(u))
	if u.USD == 0 && u.Unpriced == 0 || c.yes || c.maxUSD > 0 {
		return nil
	}
	costly, free := priced(plan, strategies)
	if f, ok := a.stdin.(*os.File); !ok || !isatty.IsTerminal(f.Fd()) {
		without := ""
		if len(free) > 0 {
			without = ", or leave it out: --strategies '" + strings.Join(free, ",") + "'"
		}
		return usage(cmd, "%s would spend money: agree with --yes, bound it with --max-cost%s", strings.Join(costly, ", "), without)
	}
	printf(a.stderr, "what spends it: %s\n", strings.Join(costly, ", "))
	printf(a.stderr, "continue? [y/N] ")
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if err != nil || !strings.HasPrefix(strings.ToLower(strings.TrimSpace(answer)), "y") {
		return errors.New("not agreed; nothing was spent")
	}
	return nil
}

// priced returns the strategies that would spend money, each with what at most, and those
// that would not.
func priced(plan lab.Plan, strategies []lab.Strategy) (costly, free []string) {
	for i := range strategies {
		name := strategies[i].Name
		switch u := plan.ByStrategy[name]; {
		case u.Calls == 0:
			free = append(free, name)
		case u.Unpriced > 0:
			costly = append(costly, name+" (price unknown)")
		default:
			costly = append(costly, fmt.Sprintf("%s (%.4f USD)", name, u.USD))
		}
	}
	return costly, free
}

func anyEstimates(strategies []lab.Strategy) bool {
	for i := range strategies {
		for _, c := range strategies[i].Chain {
			if _, ok := c.Provider.(core.CostEstimator); ok {
				return true
			}
		}
	}
	return false
}
