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
		{name: "the first and the last three", settings: `{"preset":"keep_recent"}`, want: "m1 S m46 m47 m48"},
		{name: "two first", settings: `{"keep_first":2,"recent_messages":1}`, want: "m1 m2 m3 S m48"},
		{name: "from a user's turn on", settings: `{"preset":"rolling"}`, want: "S A m45 m46 m47 m48"},
		{name: "by share", settings: `{"recent_share":0.1}`, want: "S m44 m45 m46 m47 m48"},
		{name: "the smaller of two limits", settings: `{"recent_share":0.5,"recent_messages":1}`, want: "S m48"},
		{name: "what is protected", settings: `{}`, change: func(r *core.Request) { r.Messages[9].Protected = true }, want: "S m10 m11"},
		{name: "a system message", settings: `{}`, change: func(r *core.Request) { r.Messages[8].Role = core.RoleSystem }, want: "m9 S"},
		{name: "a call that is open", settings: `{}`, change: func(r *core.Request) {
			r.Messages = append(r.Messages, coretest.Conversation(core.Message{ID: "open", Role: core.RoleAssistant, Parts: []core.Part{coretest.Call("z")}})...)
		}, want: "S open"},
		{name: "sections", settings: `{"preset":"sections","recent_messages":4,"max_output":100}`, want: strings.Repeat("S ", 2) + "m45 m46 m47 m48"},
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

// TestReadFirst: the model that writes the summary knows the task, though it is kept, if
// the preset says so.
func TestReadFirst(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]bool{`{"preset":"keep_recent"}`: true, `{"preset":"sections","keep_first":1}`: false} {
		gen := &fake{info: model.Info{Window: 1 << 20}}
		if _, err := open(t, settings, gen).Condense(t.Context(), session(12, 12_000)); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(allText(gen.asks[0].Messages), "Request number 0."); got != want {
			t.Errorf("%s: the first message is read: %v", settings, got)
		}
	}
}

// TestSummaryRole holds that the summary is said by the one that the preset names, unless the
// conversation would begin with the assistant.
func TestSummaryRole(t *testing.T) {
	t.Parallel()
	for settings, want := range map[string]string{
		`{}`:                                   "summary:user",
		`{"preset":"sections"}`:                "summary:user",
		`{"preset":"sections","keep_first":1}`: "user summary:assistant",
		`{"preset":"keep_recent"}`:             "user summary:assistant",
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
