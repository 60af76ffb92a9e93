package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/condensehq/condense/internal/testkit/golden"
	"github.com/condensehq/condense/internal/testkit/roo"
)

// A rooStep is something that happens to a task.
type rooStep struct {
	Op            string          `json:"op"`
	Messages      rooHistory      `json:"messages"`
	UI            json.RawMessage `json:"clineMessages"`
	Options       rooOptions      `json:"options"`
	EventTS       float64         `json:"clineTs"`
	Fraction      float64         `json:"fracToRemove"`
	TS            json.RawMessage `json:"ts"` // a number; for delete, a list of them
	Index         *float64        `json:"toIndex"`
	IncludeTarget bool            `json:"includeTargetMessage"`
	SkipCleanup   bool            `json:"skipCleanup"`
}

// A rooState is what Roo recorded after a step.
type rooState struct {
	Op        string          `json:"op"`
	Result    json.RawMessage `json:"result"`
	Stored    rooHistory      `json:"stored"`
	Effective json.RawMessage `json:"effective"`
	UI        json.RawMessage `json:"clineTs"`
}

// TestGoldenScenario replays the condensing in whole lives of tasks. Each step begins with
// what Roo recorded after the one before. The steps that Roo takes without a provider, such
// as a rewind, are as recorded: package transcript tests that their files are read right.
func TestGoldenScenario(t *testing.T) {
	t.Parallel()
	type input struct {
		Messages rooHistory      `json:"messages"`
		UI       json.RawMessage `json:"clineMessages"`
		Steps    []rooStep       `json:"steps"`
	}
	golden.RunRecorded(t, "scenario", func(in input, output json.RawMessage) (any, error) {
		var recorded struct {
			Steps []rooState `json:"steps"`
		}
		if err := json.Unmarshal(output, &recorded); err != nil || recorded.Steps == nil {
			return output, errors.Join(err, errors.New("the scenario throws"))
		}
		before := in.Messages
		var ids rooIDs
		for i := range in.Steps {
			s, state := &in.Steps[i], &recorded.Steps[i]
			var r rooResult
			var err error
			switch s.Op {
			case "summarize":
				r = summarizeAsRoo(before, &s.Options, &ids)
			case "manage":
				r, err = manageAsRoo(before, &s.Options, &ids)
				r.Same = new(slices.Equal(r.stored, before))
			case "truncate":
				ids.next()
			}
			if s.Op == "summarize" || s.Op == "manage" {
				if err != nil {
					return nil, fmt.Errorf("step %d, %s: %w", i, s.Op, err)
				}
				r.Requests, r.Summary, r.ErrorParams = nil, nil, nil // not recorded here
				if state.Result, err = json.Marshal(r); err != nil {
					return nil, err
				}
				state.Stored, state.Effective = r.stored, roo.Encode(roo.Effective(r.stored))
			}
			before = state.Stored
		}
		return recorded, nil
	}, &golden.Options{Ignore: []string{"telemetry"}})
}
