package native_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/model"
)

// TestWhatStays holds what each setting keeps word for word. The conversation has twelve
// turns of four messages, m1 to m48, and each turn about 1,000 tokens of a window of
// 12,000.
func TestWhatStays(t *testing.T) {
	t.Parallel()
	request := func() *core.Request { return session(12, 12_000) }
	for _, c := range []struct {
		name, settings string
		change         func(*core.Request)
		want           string // IDs of what stays, with S for a summary and A for an acknowledgement
	}{
		{name: "nothing", settings: `{}`, want: "S"},
		{name: "a question nobody answered", settings: `{}`, change: func(r *core.Request) {
			r.Messages = append(r.Messages, coretest.Conversation(core.Message{ID: "q", Role: core.RoleUser, Parts: []core.Part{core.Text("And?")}})...)
		}, want: "S q"},
		{name: "such a question, unwanted", settings: `{"keep_unanswered":false}`, change: func(r *core.Request) {
			r.Messages = append(r.Messages, coretest.Conversation(core.Message{ID: "q", Role: core.RoleUser, Parts: []core.Part{core.Text("And?")}})...)
		}, want: "S"},
		{name: "the first and the last three", settings: `{"preset":"keep_recent"}`, want: "m1 S m46 m47 m48"},
		{name: "two first", settings: `{"keep_first":2,"recent_messages":1}`, want: "m1 m2 m3 S m48"},
		{name: "from a user's turn on", settings: `{"preset":"rolling"}`, want: "S A m45 m46 m47 m48"},
		{name: "no acknowledgement", settings: `{"preset":"rolling","acknowledgement":""}`, want: "S m45 m46 m47 m48"},
		{name: "by tokens", settings: `{"recent_tokens":2100}`, want: "S m40 m41 m42 m43 m44 m45 m46 m47 m48"},
		{name: "by share", settings: `{"recent_share":0.1}`, want: "S m44 m45 m46 m47 m48"},
		{name: "the smaller of two limits", settings: `{"recent_share":0.5,"recent_messages":1}`, want: "S m48"},
		{name: "a least size in tokens", settings: `{"min_tokens":7000}`, change: func(r *core.Request) { r.Budget.Target = 8000; r.Budget.Limit = 8000 }, want: "S m38 m39 m40 m41 m42 m43 m44 m45 m46 m47 m48"},
		{name: "a least size as a share", settings: `{"min_share":0.9,"recent_messages":1}`, want: "S m40 m41 m42 m43 m44 m45 m46 m47 m48"},
		{name: "what is protected", settings: `{}`, change: func(r *core.Request) { r.Messages[9].Protected = true }, want: "S m10 m11"},
		{name: "a system message", settings: `{}`, change: func(r *core.Request) { r.Messages[8].Role = core.RoleSystem }, want: "m9 S"},
		{name: "a call that is open", settings: `{}`, change: func(r *core.Request) {
			r.Messages = append(r.Messages, coretest.Conversation(core.Message{ID: "open", Role: core.RoleAssistant, Parts: []core.Part{coretest.Call("z")}})...)
		}, want: "S open"},
		{name: "sections", settings: `{"preset":"sections","section_messages":16,"recent_messages":4,"max_output":100}`, want: strings.Repeat("S ", 3) + "m45 m46 m47 m48"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			req := request()
			if c.change != nil {
				c.change(req)
			}
			gen := &fake{info: model.Info{Window: 1 << 20}}
			res, err := open(t, c.settings, gen).Condense(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if err := core.Verify(req, res); err != nil {
				t.Error(err)
			}
			var got []string
			for _, m := range res.Messages {
				switch {
				case m.ID != "":
					got = append(got, m.ID)
				case m.Kind == core.KindSummary:
					got = append(got, "S")
				default:
					got = append(got, "A")
				}
			}
			if got := strings.Join(got, " "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			// What is read is what is hidden, and the beginning; never what stays at the end.
			read := ""
			for _, ask := range gen.asks {
				read += allText(ask.Messages)
			}
			for i, m := range req.Messages[:48] {
				if i%4 == 3 && !strings.Contains(" "+c.want+" ", " "+m.ID+" ") {
					wantAll(t, "what was read", read, fmt.Sprintf("Answer number %d.", i/4))
				}
			}
			if strings.HasSuffix(c.want, "m48") {
				wantNone(t, "what was read", read, "Answer number 11.")
			}
		})
	}
}

// TestReadFirst: the model that writes the summary knows the task, though it is kept, unless
// the settings say otherwise.
func TestReadFirst(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]bool{`{"preset":"keep_recent"}`: true, `{"preset":"keep_recent","read_first":false}`: false} {
		gen := &fake{info: model.Info{Window: 1 << 20}}
		if _, err := open(t, settings, gen).Condense(t.Context(), session(12, 12_000)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(allText(gen.asks[0].Messages), "Request number 0."); got != want {
			t.Errorf("%s: the first message is read: %v", settings, got)
		}
	}
}

// TestSummaryRole holds that the summary is said by whom the settings want, unless the
// conversation would begin with the assistant.
func TestSummaryRole(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]string{
		`{}`:                           "summary:user",
		`{"summary_role":"assistant"}`: "summary:user",
		`{"summary_role":"assistant","keep_first":1}`: "user summary:assistant",
		`{"preset":"keep_recent"}`:                    "user summary:assistant",
	} {
		res, err := open(t, settings, &fake{info: model.Info{Window: 1 << 20}}).Condense(t.Context(), session(12, 12_000))
		if err != nil {
			t.Fatal(err)
		}
		if got := shape(res.Messages); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", settings, got, want)
		}
	}
}
