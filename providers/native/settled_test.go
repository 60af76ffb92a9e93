package native_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/model"
)

// Who asks again and again by hand, with nothing said in between, gets what is there: no
// model is asked, and the last messages stay. The acknowledgement is an ordinary message in
// formats that record no kinds.
func TestNothingNewIsNotSummarizedAgain(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{
		`{}`, `{"preset":"keep_recent"}`, `{"preset":"rolling"}`, `{"preset":"sections"}`,
		`{"recent_tokens":2100}`, `{"min_tokens":3000}`, `{"keep_first":2,"recent_messages":1}`,
	} {
		t.Run(settings, func(t *testing.T) {
			t.Parallel()
			gen := &fake{info: model.Info{Window: 1 << 20}}
			p := open(t, settings, gen)
			first := session(12, 12_000)
			first.Messages = append(first.Messages, coretest.Conversation(core.Message{ID: "q", Role: core.RoleUser, Parts: []core.Part{core.Text("And?")}})...)
			first.Trigger = core.TriggerManual
			res, err := p.Condense(t.Context(), first)
			if err != nil {
				t.Fatal(err)
			}
			asked := len(gen.asks)
			if asked == 0 {
				t.Fatal("the first time, the model was not asked")
			}
			view := res.Messages
			for i := range view {
				m := &view[i]
				if m.ID == "" {
					m.ID = fmt.Sprint("new", i)
				}
				if m.Kind == core.KindMarker {
					m.Kind = core.KindOriginal
				}
				m.Tokens = core.MessageTokens(coretest.Counter{}, *m)
			}
			for range 3 {
				again := coretest.HalfRequest(view)
				again.Trigger = core.TriggerManual
				again.Budget.Window, again.Budget.Limit = first.Budget.Window, first.Tokens()
				res, err := p.Condense(t.Context(), again)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(view, res.Messages); diff != "" || len(gen.asks) != asked {
					t.Fatalf("asked %d times more; the messages changed (-before +after):\n%s", len(gen.asks)-asked, diff)
				}
			}
		})
	}
}

// Roo-Code of 2025 keeps the last three messages, be they one half of a call with its result.
// A host rejects that; so in a session with tools this setting never worked.
func TestRooKeepsWholePairsOfTools(t *testing.T) {
	t.Parallel()
	for cut := range 4 {
		req := session(12, 12_000)
		req.Messages = req.Messages[:len(req.Messages)-cut]
		if len(core.Pending(req.Messages)) > 0 {
			continue // a turn that is not over is left to Roo-Code's defects
		}
		res, err := open(t, `{"preset":"keep_recent","parity":"roo"}`, &fake{info: model.Info{Window: 1 << 20}}).Condense(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if err := core.Verify(req, res); err != nil {
			t.Errorf("without the last %d messages: %v", cut, err)
		}
		if n := len(res.Messages); n < 5 || n > 7 {
			t.Errorf("without the last %d messages: %d messages are left: %s", cut, n, shape(res.Messages))
		}
	}
}
