package lab_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/model"
)

// TestRecordedModel: at a recorded compaction the model answers with the summary of that one, at a share of the
// tokens too, and at any other cut it is unavailable.
func TestRecordedModel(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	items := lab.Demo()[1:2]
	s := session(t, items[0].Name)
	if len(s.Compactions) != 1 || s.Compactions[0].Summary == "" {
		t.Fatalf("%s has no recorded compaction", items[0].Name)
	}
	answered := 0
	strategy := lab.Strategy{Name: "asks", Provider: framing{func(ctx context.Context, req *core.Request) (*core.Result, error) {
		a, err := lab.Recorded().Generate(ctx, &model.Prompt{})
		if err != nil {
			return nil, err
		}
		answered++
		if a.Text != s.Compactions[0].Summary {
			t.Errorf("the model answers %.60q", a.Text)
		}
		return &core.Result{Messages: say(req, fit(req, a.Text))}, nil
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
	if _, err := lab.Recorded().Generate(t.Context(), &model.Prompt{}); !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("outside of a comparison: %v", err)
	}
}
