package native_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/model"
)

// rows returns a request with so many rows of data.
func rows(n int) string {
	var b strings.Builder
	b.WriteString("Convert these rows:")
	for k := range n {
		fmt.Fprintf(&b, " row%d", k)
	}
	return b.String() + " END"
}

// pasted returns a long conversation whose last message has text, in a window of so many tokens. With tool set the text
// comes with the result of a call, as where a person types while a tool runs.
func pasted(window int, text string, tool bool) *core.Request {
	var m []core.Message
	for i := range 36 {
		who := coretest.User
		if i%2 == 1 {
			who = coretest.Assistant
		}
		m = append(m, who(core.Text(fmt.Sprintf("M%d ", i)+strings.Repeat("story ", window/75))))
	}
	last := coretest.User(core.Text(text))
	if tool {
		m = append(m, coretest.User(core.Text("Look.")), coretest.Assistant(coretest.Call("last")))
		last = coretest.User(coretest.Result("last", "read"), core.Text(text))
	}
	req := coretest.Request(coretest.Conversation(append(m, last)...), 0)
	req.Budget = core.Budget{Window: window, Limit: window * 17 / 20, Target: window * 2 / 5}
	return req
}

// TestPendingRequestStaysWhole: what the user has just asked is sent as it was typed, wherever the limit allows it.
// History gives way, and no heading says that the request has been dealt with.
func TestPendingRequestStaysWhole(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		window, rows int
		tool         bool
	}{
		{20_000, 500, false},
		{20_000, 1000, false},
		{20_000, 1500, false},
		{20_000, 2500, false},
		{20_000, 4000, false},
		{20_000, 7000, false},
		{20_000, 500, true},
		{20_000, 2500, true},
		{20_000, 7000, true},
		{200_000, 12_000, false},
		{200_000, 50_000, true},
	} {
		req := pasted(c.window, rows(c.rows), c.tool)
		last := req.Messages[len(req.Messages)-1]
		for _, preset := range []string{"fresh_start", "keep_recent", "rolling", "sections"} {
			res, err := open(t, `{"preset":"`+preset+`"}`, &fake{info: model.Info{Window: 1 << 20}}).Condense(t.Context(), req)
			if err != nil {
				t.Errorf("%s, %d rows: %v", preset, c.rows, err)
				continue
			}
			got := res.Messages[len(res.Messages)-1]
			if got.ID != last.ID || !core.EqualParts(got.Parts, last.Parts) {
				t.Errorf("%s, %d rows in a window of %d, with a result %v: the request became %.300s", preset, c.rows, c.window, c.tool, text(got))
			}
			wantNone(t, preset, allText(res.Messages[:len(res.Messages)-1]), "Convert these rows:")
			if n := core.TotalTokens(res.Messages); n > req.Budget.Limit {
				t.Errorf("%s, %d rows: %d tokens are above the limit of %d", preset, c.rows, n, req.Budget.Limit)
			}
			if err := core.Verify(req, res); err != nil {
				t.Errorf("%s, %d rows: %v", preset, c.rows, err)
			}
		}
	}
	// A request that is longer than the limit by itself is left to truncation, which cuts it visibly.
	req := pasted(20_000, rows(9000), false)
	_, err := open(t, `{}`, &fake{info: model.Info{Window: 1 << 20}}).Condense(t.Context(), req)
	if err == nil || !strings.Contains(err.Error(), "of them the user's request, which has no answer yet") {
		t.Errorf("a request above the limit: %v", err)
	}
}

// TestWordsOfTheUserGoLast: no word of the user is left out while something else than the summary stays, and where some
// are, the report says how many tokens.
func TestWordsOfTheUserGoLast(t *testing.T) {
	forEachPreset(t, func(t *testing.T, preset string) {
		rapid.Check(t, func(t *rapid.T) {
			var m []core.Message
			var said []string
			for i := range rapid.IntRange(3, 40).Draw(t, "turns") {
				text := fmt.Sprintf("Message %d of mine: %s over.", i, strings.Repeat("и так далее ", rapid.IntRange(0, 60).Draw(t, "words")))
				said = append(said, text)
				m = append(m, coretest.User(core.Text(text)), coretest.Assistant(core.Text("So."), coretest.Call(fmt.Sprint("c", i))),
					coretest.User(coretest.Result(fmt.Sprint("c", i), strings.Repeat("output ", rapid.IntRange(1, 2000).Draw(t, "output")))), coretest.Assistant(core.Text("Done.")))
			}
			req := coretest.HalfRequest(coretest.Conversation(append(m, coretest.User(core.Text("And now?")))...))
			res, err := open(nopTB{}, `{"preset":"`+preset+`","user_words_share":1}`, &fake{info: model.Info{Window: 1 << 20}}).Condense(t.Context(), req)
			if err != nil || len(res.Messages) == len(req.Messages) {
				return
			}
			all, missing := allText(res.Messages), 0
			for _, s := range said {
				if !strings.Contains(all, s) {
					missing += len(s) / 4
				}
			}
			warned := len(res.Steps) > 0 && strings.Contains(res.Steps[0].Warning, "of the user's words")
			if warned != (missing > 0) {
				t.Fatalf("%d tokens of the user are missing, and the warning is %v", missing, res.Steps)
			}
			for _, kept := range res.Messages {
				if missing > 0 && strings.Contains(text(kept), "output ") {
					t.Fatalf("%d tokens of the user are missing, and output of a tool stays:\n%s", missing, shape(res.Messages))
				}
			}
		})
	})
}

// TestRuleStatedAsAFactStays: a short message may be a rule, though nothing in it sounds like one.
func TestRuleStatedAsAFactStays(t *testing.T) {
	t.Parallel()
	m := []core.Message{coretest.User(core.Text("Build the shop.")), coretest.Assistant(core.Text("Yes."))}
	for _, rule := range []string{"commits in English please", "We deploy on Fridays."} {
		m = append(m, coretest.User(core.Text(rule)), coretest.Assistant(core.Text("Noted.")))
	}
	for i := range 40 {
		m = append(m, coretest.User(core.Text(fmt.Sprintf("Part %d: %s", i, strings.Repeat("something about this ", 40)))), coretest.Assistant(core.Text("Yes.")))
	}
	wantAll(t, "the words", wordsOf(t, 1500, m...), "Build the shop.", "commits in English please", "We deploy on Fridays.", "Part 39: ")
}

// TestLastThreeMessagesOfToolSessions: the third last message stays with its call, where it is the result of one.
func TestLastThreeMessagesOfToolSessions(t *testing.T) {
	t.Parallel()
	req := session(12, 12_000)
	req.Messages = req.Messages[:47] // ends with the result m47 of the call m46
	res, err := open(t, `{"preset":"keep_recent"}`, &fake{info: model.Info{Window: 1 << 20}}).Condense(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, m := range res.Messages {
		ids = append(ids, m.ID)
	}
	if got := strings.Join(ids, " "); got != "m1  m45 m46 m47" {
		t.Errorf("messages %s stay", got)
	}
	req = session(12, 12_000)
	req.Messages = req.Messages[:43] // two calls in a row at the end: m42 and m43, before them m41 of the user
	req.Messages = append(req.Messages, req.Messages[45:47]...)
	res, err = open(t, `{"preset":"keep_recent"}`, &fake{info: model.Info{Window: 1 << 20}}).Condense(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(res.Messages); n != 6 { // the first, the summary, two calls with their results
		t.Errorf("%d messages stay", n)
	}
}
