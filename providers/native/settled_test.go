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
		`{"recent_share":0.1}`, `{"keep_first":2,"recent_messages":1}`,
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
