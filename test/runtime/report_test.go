package runtime_test

import (
	"encoding/json"
	"fmt"
	"strings"
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

// TestLossOfTheUsersWordsIsSaid: a request that is longer than the limit by itself is cut with a mark, earlier words that
// have no room are counted, and the report warns of both.
func TestLossOfTheUsersWordsIsSaid(t *testing.T) {
	t.Parallel()
	const profile = "profiles: {p: {window: 20000, max_output: 1000, chain: [s]}}\nproviders: {s: {strategy: native, settings: {user_words_share: 0.02}}}\n"
	h := harmHost(t, profile, &scripted{text: "In short."})
	for _, c := range []struct {
		request string
		want    []string
		mark    bool
	}{
		{"And now?", []string{"s: ", " tokens of the user's words, the oldest first, have no room next to the summary; they stay in the originals"}, false},
		{strings.Repeat("a row of data ", 8000) + "END", []string{"the user's request, which has no answer yet, was cut from 28,098 to "}, true},
	} {
		conv := dialogue(t, 17700)
		if err := conv.Append(core.Message{ID: "q", Role: core.RoleUser, Parts: []core.Part{core.Text(c.request)}}); err != nil {
			t.Fatal(err)
		}
		r, err := h.Manage(t.Context(), conv, condense.Turn{})
		if err != nil || !r.Acted {
			t.Fatalf("got acted %v, %v: %s", r.Acted, err, r.Reason)
		}
		for _, want := range c.want {
			if !strings.Contains(strings.Join(r.Warnings, "\n"), want) {
				t.Errorf("the warnings %q lack %q", r.Warnings, want)
			}
		}
		view := conv.View()
		if got := fmt.Sprint(view[len(view)-1].Parts); strings.Contains(got, "[… ") != c.mark || !strings.HasSuffix(got, c.request[len(c.request)-8:]+"]") {
			t.Errorf("the request became %.200s", got)
		}
	}
}
