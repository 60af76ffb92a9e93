package native_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/model"
)

// wordsOf condenses messages, most of them long, and returns the block with the words of the user next to the
// summary, which may have limit tokens.
func wordsOf(t *testing.T, limit int, messages ...core.Message) string {
	t.Helper()
	messages = append(
		messages,
		coretest.Assistant(core.Text(strings.Repeat("A long answer. ", 4000))),
		coretest.User(core.Text("The latest question.")),
		coretest.Assistant(core.Text("An answer.")),
	)
	req := coretest.HalfRequest(coretest.Conversation(messages...))
	gen := &fake{info: model.Info{Window: 1 << 20}}
	settings := fmt.Sprintf(`{"user_words_share":%v}`, min(1, float64(limit)/float64(req.Budget.Window)))
	res, err := open(t, settings, gen).Condense(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := core.Verify(req, res); err != nil {
		t.Error(err)
	}
	for _, p := range res.Messages[0].Parts {
		if s := text(coretest.User(p)); strings.HasPrefix(s, "<user_words ") {
			return s
		}
	}
	return ""
}

// TestWordsOfTheUser: what the user typed is distinguished from what a tool wrote in a
// user message.
func TestWordsOfTheUser(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Use tabs.":                              "<said>\nUse tabs.\n</said>",
		"<task>\nUse tabs.\n</task>":             "<said>\nUse tabs.\n</said>",
		"<feedback>\nUse tabs.\n</feedback>":     "<said>\nUse tabs.\n</said>",
		"a < b </b> is wrong":                    "a < b </b> is wrong",
		"Say </said> and </user_words> at last.": "at last.",
		"Use tabs.\n<environment_details>\nNOISE\n</environment_details>":                       "<said>\nUse tabs.\n</said>",
		"<system-reminder>NOISE</system-reminder>Use tabs.":                                     "<said>\nUse tabs.\n</said>",
		"<command-name>/clear</command-name><local-command-stdout>NOISE</local-command-stdout>": "",
		"[read_file for 'a.go'] Result:\n\nNOISE":                                               "",
		"[new_task completed] Result: NOISE":                                                    "",
		"[attempt_completion] Result:\n<feedback>Use tabs.</feedback>\nNOISE":                   "<said>\nUse tabs.\n</said>",
		"[ERROR] You did not use a tool. NOISE":                                                 "",
		"[Sliding window truncation: 4 messages hidden to reduce context] NOISE":                "",
		"<task-notification>NOISE</task-notification>\nUse tabs.":                               "<said>\nUse tabs.\n</said>",
		"# AGENTS.md\n<INSTRUCTIONS>\nUse tabs.\n</INSTRUCTIONS>":                               "Use tabs.",
		"[x] a list that a person typed":                                                        "[x] a list that a person typed",
	} {
		got := wordsOf(t, 1000, coretest.User(core.Text(text)))
		if n := strings.Count(got, "<said>\n"); want == "" && n != 1 || want != "" && n != 2 {
			t.Errorf("%q: %d messages are repeated:\n%s", text, n, got)
		}
		wantAll(t, text, got, want, "The latest question.")
		wantNone(t, text, got, "NOISE")
	}
}

// TestShortRuleStaysBeforeNewerChatter: where not all that the user typed has room, a rule of a few words is repeated before longer talk
// that is newer, also when it is condensed again.
func TestShortRuleStaysBeforeNewerChatter(t *testing.T) {
	t.Parallel()
	talk := func(n int) (m []core.Message) {
		for i := range n {
			said := fmt.Sprintf("And %d: %s", i, strings.Repeat("something about this and that ", 30))
			m = append(m, coretest.User(core.Text(said)), coretest.Assistant(core.Text("Yes.")))
		}
		return m
	}
	m := append(talk(3), coretest.User(core.Text("RULE-BETA: keep the tests green.")), coretest.Assistant(core.Text("Yes.")),
		coretest.User(core.Text("The build is slow today. Never push to main without a review! It took an hour.")), coretest.Assistant(core.Text("Yes.")))
	got := wordsOf(t, 1000, append(m, talk(12)...)...)
	wantAll(t, "rules", got, "<said>\nRULE-BETA: keep the tests green.\n</said>", "<said>\nNever push to main without a review!\n[… the rest",
		"And 11: ", "The latest question.", "<left_out ")
	summary := core.Message{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("In short."), core.Text(got)}}
	again := wordsOf(t, 1000, append([]core.Message{summary}, talk(12)...)...)
	wantAll(t, "rules, condensed again", again, "RULE-BETA: keep the tests green.", "Never push to main without a review!")
}

// TestWordsHaveALimit holds that the first message and the newest ones are repeated if not
// all can be, that what is missing is said, and that a long one is cut in its middle.
func TestWordsHaveALimit(t *testing.T) {
	t.Parallel()
	var m []core.Message
	for i := range 40 {
		m = append(m, coretest.User(core.Text(fmt.Sprintf("Wish %d. %s end of wish %d.", i, strings.Repeat("please ", 60), i))), coretest.Assistant(core.Text("Yes.")))
	}
	got := wordsOf(t, 1000, m...)
	wantAll(t, "the words", got, "Wish 0.", "end of wish 0.", "Wish 39.", "The latest question.", "<left_out messages=")
	wantNone(t, "the words", got, "Wish 5.", "Wish 20.")
	if n := (coretest.Counter{}).Count(core.Text(got)); n > 1000 || n < 700 {
		t.Errorf("the words have %d tokens, want nearly 1000", n)
	}

	long := "Here is my log: " + strings.Repeat("noise ", 5000) + "Mend it."
	got = wordsOf(t, 1000, coretest.User(core.Text(long)))
	wantAll(t, "the words", got, "Here is my log:", "bytes left out here", "Mend it.")

	for _, limit := range []int{0, 10} {
		if got := wordsOf(t, limit, coretest.User(core.Text("Use tabs."))); got != "" {
			t.Errorf("%d: got %s", limit, got)
		}
	}
}

// TestWordsAreRepeatedOnce holds that words go from summary to summary, word for word and
// once, whatever tags they hold.
func TestWordsAreRepeatedOnce(t *testing.T) {
	t.Parallel()
	l := newLife(t, 20_000, open(t, `{}`, new(fake)))
	odd := "Write \"</said>\" and \"</user_words>\" and <b>bold</b> into the page.\n\n  Keep  the  spaces."
	l.say(coretest.User(core.Text(odd)), coretest.Assistant(core.Text("Done.")))
	var first string
	for i := range 4 {
		for l.tokens() < 16_000 {
			l.turn(fmt.Sprintf("Turn of round %d.", i), 3000)
		}
		l.condense(core.TriggerAutomatic)
		got := text(l.view()[0])
		if n := strings.Count(got, "Keep  the  spaces."); n != 1 {
			t.Fatalf("round %d: the words stand %d times:\n%s", i, n, got)
		}
		_, after, _ := strings.Cut(got, "<said>\n")
		entry, _, _ := strings.Cut(after, "\n</said>")
		if i == 0 {
			first = entry
		}
		if entry != first {
			t.Errorf("round %d: got %q, want %q", i, entry, first)
		}
		for j := range i + 1 {
			wantAll(t, "the words", got, fmt.Sprintf("Turn of round %d.", j))
		}
	}
	if want := strings.NewReplacer("</said>", "<\u2060/said>", "</user_words>", "<\u2060/user_words>").Replace(odd); first != want {
		t.Errorf("got %q, want %q", first, want)
	}
}

// TestModelThatCopiesTheBlock: it does not make two of it.
func TestModelThatCopiesTheBlock(t *testing.T) {
	t.Parallel()
	l := newLife(t, 20_000, open(t, `{}`, &fake{info: model.Info{Window: 1 << 20}, answer: func(ctx context.Context, p *model.Prompt) (*model.Answer, error) {
		block := ""
		if _, after, ok := strings.Cut(allText(p.Messages), "<user_words"); ok {
			in, _, _ := strings.Cut(after, "</user_words>")
			block = "<user_words" + in + "</user_words>"
		}
		return say("It works.\n"+block)(ctx, p)
	}}))
	for i := range 4 {
		for l.tokens() < 16_000 {
			l.turn(fmt.Sprintf("Wish %d of round %d.", l.said, i), 4000)
		}
		l.condense(core.TriggerAutomatic)
	}
	parts := l.view()[0].Parts
	if n := strings.Count(text(coretest.User(parts[len(parts)-1])), "Wish 0 of round 0."); n != 1 {
		t.Errorf("the first wish stands %d times in the block:\n%s", n, allText(l.view()))
	}
}
