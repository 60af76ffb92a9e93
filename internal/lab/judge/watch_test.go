package judge_test

import (
	"context"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/lab/judge"
)

// A provider of new results tells by the trigger what it is asked: judged with --ingest, it acts.
func TestNewResultsAreAskedForAsSuch(t *testing.T) {
	req := coretest.HalfRequest(coretest.Session())
	asked := 0
	only := fake{core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
		if asked++; req.Trigger != core.TriggerIngest {
			t.Errorf("call %d: the trigger is %q", asked, req.Trigger)
		}
		return &core.Result{Messages: req.Messages}, nil
	})}
	if _, err := coretest.Ingest(&judge.Watch{Plugin: only, Ingest: true}).Condense(t.Context(), req); err != nil || asked < 2 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}

type fake struct{ core.CondensationProvider }

func (fake) Abilities() core.Abilities { return 0 }
func (fake) PeakMemory() int64         { return 0 }
