package native

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/roo"
	"github.com/condensehq/condense/internal/testkit/golden"
)

// rooUI is an input of what the person sees.
type rooUI []*roo.UIMessage

func (h *rooUI) UnmarshalJSON(data []byte) (err error) {
	*h, err = roo.ParseUI(data)
	return err
}

// A rooStep is something that happens to a task.
type rooStep struct {
	Op            string          `json:"op"`
	Messages      rooHistory      `json:"messages"`
	UI            rooUI           `json:"clineMessages"`
	Options       rooOptions      `json:"options"`
	EventTS       float64         `json:"clineTs"`
	Fraction      float64         `json:"fracToRemove"`
	TS            json.RawMessage `json:"ts"` // a number; for delete, a list of them
	Index         *float64        `json:"toIndex"`
	IncludeTarget bool            `json:"includeTargetMessage"`
	SkipCleanup   bool            `json:"skipCleanup"`
}

// A rooTask is a task between two steps.
type rooTask struct {
	messages []*roo.Message
	ui       []*roo.UIMessage
	ids      rooIDs
}

// do takes one step and returns what Roo reports of it.
func (t *rooTask) do(s *rooStep) (result any, err error) {
	now := func() time.Time { return time.UnixMilli(recordedNow) }
	before := t.messages
	result = struct{}{}
	switch s.Op {
	case "append":
		t.messages = append(slices.Clone(t.messages), s.Messages...)
		t.ui = append(slices.Clone(t.ui), s.UI...)
	case "cleanup":
		t.messages = roo.Cleanup(t.messages)
	case "delete":
		var gone []float64
		err = json.Unmarshal(s.TS, &gone)
		t.messages = slices.DeleteFunc(slices.Clone(t.messages), func(m *roo.Message) bool {
			ts, ok := m.TS()
			return ok && slices.Contains(gone, ts)
		})
	case "summarize", "manage":
		r := rooResult{}
		if s.Op == "summarize" {
			r = summarizeAsRoo(before, &s.Options, &t.ids)
		} else if r, err = manageAsRoo(before, &s.Options, &t.ids); err != nil {
			return nil, err
		}
		t.messages = r.stored
		switch {
		case r.Summary != nil:
			err = t.event(s.EventTS, "condense_context", "contextCondense", map[string]any{"condenseId": r.CondenseID, "summary": *r.Summary})
		case r.TruncationID != "":
			err = t.event(s.EventTS, "sliding_window_truncation", "contextTruncation", map[string]any{"truncationId": r.TruncationID})
		}
		if s.Op == "manage" {
			r.Same = new(slices.Equal(r.stored, before))
		}
		r.Requests, r.Summary, r.ErrorParams = nil, nil, nil // not recorded here
		result = r
	case "truncate":
		r := roo.Truncate(before, s.Fraction, t.ids.next, now)
		t.messages = r.Messages
		err = t.event(s.EventTS, "sliding_window_truncation", "contextTruncation", map[string]any{"truncationId": r.ID})
		result = map[string]any{"truncationId": r.ID, "messagesRemoved": r.Removed}
	case "rewind":
		err = t.rewind(s, now)
	default:
		return nil, fmt.Errorf("no step %q", s.Op)
	}
	return result, err
}

func (t *rooTask) rewind(s *rooStep, now func() time.Time) error {
	opts := &roo.RewindOptions{IncludeTarget: s.IncludeTarget, SkipCleanup: s.SkipCleanup}
	var r *roo.Rewound
	var err error
	switch {
	case s.TS != nil:
		var ts float64
		if err := json.Unmarshal(s.TS, &ts); err != nil {
			return err
		}
		r, err = roo.RewindToTimestamp(t.ui, t.messages, ts, opts)
	case s.Index != nil:
		r, err = rewindToFraction(t.ui, t.messages, *s.Index, now, opts)
	default:
		return errors.New("a rewind needs ts or toIndex")
	}
	if err != nil {
		return err
	}
	t.ui, t.messages = r.UI, r.Messages
	return nil
}

// rewindToFraction is [roo.RewindToIndex] for any number that JavaScript takes for an index.
// No message has a fractional index, so its time is unknown, and the slice ends below it.
func rewindToFraction(
	ui []*roo.UIMessage, messages []*roo.Message, index float64, now func() time.Time, opts *roo.RewindOptions,
) (*roo.Rewound, error) {
	whole := int(index)
	if float64(whole) == index {
		return roo.RewindToIndex(ui, messages, whole, now, opts)
	}
	r, err := roo.RewindToIndex(ui[:min(whole, len(ui))], messages, whole, now, opts)
	if err != nil {
		return nil, err
	}
	r.RemovedUI = ui[min(whole, len(ui)):]
	return r, nil
}

// event records what happened in the messages for the user interface, as the task does.
func (t *rooTask) event(ts float64, say, member string, value any) error {
	data, err := json.Marshal([]any{map[string]any{"ts": ts, "type": "say", "say": say, member: value}})
	if err != nil {
		return err
	}
	ui, err := roo.ParseUI(data)
	t.ui = append(slices.Clone(t.ui), ui...)
	return err
}

// TestGoldenScenario replays whole lives of tasks: condensing, truncation, rewinding and
// new messages in any order.
func TestGoldenScenario(t *testing.T) {
	t.Parallel()
	type input struct {
		Messages rooHistory `json:"messages"`
		UI       rooUI      `json:"clineMessages"`
		Steps    []rooStep  `json:"steps"`
	}
	type output struct {
		Op        string          `json:"op"`
		Result    any             `json:"result"`
		Stored    json.RawMessage `json:"stored"`
		Effective json.RawMessage `json:"effective"`
		UI        []float64       `json:"clineTs"`
	}
	golden.Run(t, "scenario", func(in input) (any, error) {
		task := rooTask{messages: in.Messages, ui: in.UI}
		steps := []output{}
		var threw error // a vector may record it as its output, or as the result of the step
		for i := range in.Steps {
			s := &in.Steps[i]
			result, err := task.do(s)
			if err != nil {
				threw = fmt.Errorf("step %d, %s: %w", i, s.Op, err)
				result = map[string]any{"throws": "Error"}
			}
			o := output{Op: s.Op, Result: result, Stored: roo.Encode(task.messages), Effective: roo.Encode(roo.Effective(task.messages)), UI: []float64{}}
			for _, u := range task.ui {
				ts, _ := u.TS()
				o.UI = append(o.UI, ts)
			}
			steps = append(steps, o)
		}
		return map[string]any{"steps": steps}, threw
	}, &golden.Options{Ignore: []string{"telemetry"}})
}
