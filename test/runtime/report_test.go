package runtime_test

import (
	"encoding/json"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/tokens"
)

// TestReportAddsUp: the numbers of a report agree with each other and with the
// conversation.
func TestReportAddsUp(t *testing.T) {
	h := open(t, config.Values{}, config.Override{Window: 20000})
	for _, path := range testkit.Sessions(t) {
		d := read(t, plain(t, path))
		c := condense.ResumeConversation(d.Journal)
		turn := condense.Turn{System: "You are terse.", Tools: []byte(`[{"name":"x"}]`)}
		r, err := h.Manage(t.Context(), c, turn)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		before, after := 0, 0
		for _, k := range tokens.Kinds() {
			ch, ok := r.Tokens.ByKind[k]
			if !ok {
				t.Errorf("%s: no tokens of kind %s, not even none", path, k)
			}
			before += ch.Before
			after += ch.After
		}
		if before != r.Tokens.Before || after != r.Tokens.After {
			t.Errorf("%s: the kinds add up to %d and %d, the totals are %d and %d", path, before, after, r.Tokens.Before, r.Tokens.After)
		}
		check, err := h.Check(c, turn)
		if err != nil || check.Used != r.Tokens.After {
			t.Errorf("%s: the report ends with %d tokens, a check counts %d (%v)", path, r.Tokens.After, check.Used, err)
		}
		m := r.Messages
		if m.Before-m.Hidden+m.Inserted != m.After || len(c.View()) != m.After {
			t.Errorf("%s: %+v does not add up, the view has %d", path, m, len(c.View()))
		}
		if n := len(r.Attempts); r.Acted && r.Attempts[n-1].TokensAfter != r.Tokens.After {
			t.Errorf("%s: the last attempt ends with %d tokens, the report with %d", path, r.Attempts[n-1].TokensAfter, r.Tokens.After)
		}
		if _, err := json.Marshal(r); err != nil {
			t.Error(err)
		}
	}
}

// TestSwitchingTokenizers: a conversation is measured again when a profile counts
// with another tokenizer.
func TestSwitchingTokenizers(t *testing.T) {
	h := open(t, config.Values{
		Profiles: map[string]config.ProfileValues{
			"exact": {Window: new(100000)},
			"rough": {Window: new(100000), Tuning: config.Tuning{Tokenizer: new("chars4")}},
		},
		DefaultProfile: "exact",
	}, config.Override{})
	c := condense.NewConversation()
	if err := c.Append(core.Message{ID: "1", Role: core.RoleUser, Parts: []core.Part{core.Text("Antidisestablishmentarianism, internationalization.")}}); err != nil {
		t.Fatal(err)
	}
	used := func(profile string) int {
		t.Helper()
		d, err := h.Check(c, condense.Turn{Profile: profile})
		if err != nil {
			t.Fatal(err)
		}
		return d.Used
	}
	exact, rough := used("exact"), used("rough")
	if exact == rough || rough != 4+13 {
		t.Errorf("got %d and %d tokens, want two numbers, the second 17", exact, rough)
	}
	if again := used("exact"); again != exact {
		t.Errorf("got %d tokens, before it were %d", again, exact)
	}
}
