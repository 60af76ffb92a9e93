package lab_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/testkit"
)

// TestRecorded: at a recorded compaction the result is the summary of that one, at a share of the tokens too, and at any
// other cut there is none.
func TestRecorded(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	items := lab.Demo()[1:2]
	s := session(t, items[0].Name)
	if len(s.Compactions) != 1 || s.Compactions[0].Summary == "" {
		t.Fatalf("%s has no recorded compaction", items[0].Name)
	}
	answered := 0
	recorded := lab.RecordedStrategy(lab.Recorded)
	strategy := lab.Strategy{Name: "asks", Unchecked: true, Provider: framing{func(ctx context.Context, req *core.Request) (*core.Result, error) {
		res, err := recorded.Provider.Condense(ctx, req)
		if err != nil {
			return nil, err
		}
		answered++
		if !slices.ContainsFunc(res.Messages, func(m core.Message) bool {
			return core.EqualParts(m.Parts, []core.Part{core.Text(s.Compactions[0].Summary)})
		}) {
			t.Errorf("the summary is not among %d messages", len(res.Messages))
		}
		return &core.Result{Messages: say(req, fit(req, s.Compactions[0].Summary))}, nil
	}}}
	r := run(t, items, lab.Options{Budgets: budgets(t, "real", "10%@real", "25%")}, strategy)
	at := map[string]bool{}
	for _, row := range r.Rows {
		if row.Strategy != "asks" {
			continue
		}
		at[row.Budget] = true
		if strings.HasSuffix(row.Budget, "real") != (row.Outcome == core.OutcomeApplied) {
			t.Errorf("%s: %s, %s", row.Budget, row.Outcome, row.Error)
		}
		if row.Budget == "10%@real" && (row.Cut != "compaction 1" || row.Room < row.Before/10-1 || row.Room > row.Before/10+1) {
			t.Errorf("%s: %d tokens of %d at %s", row.Budget, row.Room, row.Before, row.Cut)
		}
	}
	if len(at) != 3 || answered < 2 {
		t.Errorf("%d answers, budgets %v", answered, at)
	}
	if _, err := recorded.Provider.Condense(t.Context(), &core.Request{}); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("outside of a comparison: %v", err)
	}
}
