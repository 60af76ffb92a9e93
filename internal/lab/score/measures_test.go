package score_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
)

// even returns a session of n messages with 1,000 tokens each by bytes4: the user first, then in turn.
func even(n int) *score.Session {
	s := &score.Session{ID: "even", Source: "here"}
	for i := range n {
		m := user(strings.Repeat("word", 1000))
		if i%2 == 1 {
			m.Role = core.RoleAssistant
		}
		m.ID = fmt.Sprint("m", i)
		s.Messages = append(s.Messages, m)
	}
	core.Measure(bytes4{}, s.Messages)
	for i := range s.Messages {
		s.Messages[i].Tokens = 1000
	}
	return s
}

func TestCuts(t *testing.T) {
	t.Parallel()
	compacted := func(n, at, keptFrom int, summary string) *score.Session {
		s := even(n)
		s.Compactions = []score.Compaction{{At: at, KeptFrom: keptFrom, Summary: summary}}
		return s
	}
	for _, c := range []struct {
		name    string
		session *score.Session
		want    string // name, messages before, end of the future, tokens
	}{
		{"a long one", even(120), "32k 31 111 31000, 64k 63 120 63000, 100k 99 120 99000"},
		{"too little follows the last cut", even(110), "32k 31 110 31000, 64k 63 110 63000, 100k 99 110 99000"},
		{"nearly nothing follows it", even(106), "32k 31 106 31000, 64k 63 106 63000"},
		{"a short one", even(30), "50% 15 30 15000"},
		{"too little follows its second cut", even(34), "50% 17 34 17000"},
		{"one of few turns", even(10), ""},
		{"none", even(0), ""},
		{"compacted", compacted(120, 50, 48, "Done so far."), "32k 31 111 31000, compaction 1 50 120 50000"},
		{"compacted without a summary", compacted(120, 50, 48, ""), "32k 31 111 31000"},
		{"compacted early", compacted(120, 18, 18, "Done so far."), ""},
		{"compacted late", compacted(120, 114, 114, "Done so far."), "32k 31 111 31000, 64k 63 120 63000, 100k 99 120 99000"},
	} {
		var got []string
		for _, cut := range score.Cuts(c.session, bytes4{}) {
			got = append(got, fmt.Sprint(cut.Name, " ", cut.At, " ", cut.End, " ", cut.Tokens))
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s: got %q, want %q", c.name, s, c.want)
		}
	}
	cuts := score.Cuts(compacted(120, 50, 48, strings.Repeat("word", 700)), bytes4{})
	summary := core.MessageTokens(bytes4{}, user(strings.Repeat("word", 700)))
	if last := cuts[len(cuts)-1]; last.Budget != summary+2000 || last.Compaction != 0 {
		t.Errorf("the recorded compaction %d left %d tokens, want number 0 with %d and 2,000", last.Compaction, last.Budget, summary)
	}
}

func TestCutAt(t *testing.T) {
	t.Parallel()
	s := even(40)
	s.Compactions = []score.Compaction{{At: 25, KeptFrom: 25, Summary: "Done."}}
	for at, want := range map[int]bool{-1: false, 0: false, 1: true, 25: true, 26: false, 40: false, 41: false} {
		if cut, ok := score.CutAt(s, "here", at); ok != want || ok && (cut.At != at || cut.Tokens != 1000*at || len(cut.Prefix()) != at) {
			t.Errorf("at %d: got %v, %d of %d tokens, want %v", at, ok, cut.At, cut.Tokens, want)
		}
	}
	if _, ok := score.CutAt(even(40), "here", 30); ok {
		t.Error("a session was cut where only five turns follow")
	}
}

// The panel is the mean of the families that have enough to say something.
func TestPanel(t *testing.T) {
	t.Parallel()
	half, none := score.Share{Kept: 1, Needed: 2}, score.Share{}
	for _, c := range []struct {
		score score.Score
		want  float64
		ok    bool
	}{
		{score.Score{CFRR: half, FNR4: score.Share{Kept: 1, Needed: 1}, RW: none}, 0.75, true},
		{score.Score{CFRR: half, FNR4: half, RW: score.Share{Needed: 4}}, 1.0 / 3, true},
		{score.Score{RW: half}, 0.5, true},
		{score.Score{FRR: half, UIR: half, Recent: half}, 0, false},
	} {
		if got, ok := c.score.Panel(); ok != c.ok || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: got %v (%v), want %v (%v)", c.score, got, ok, c.want, c.ok)
		}
	}
	// Seven runs of four words and four rare words are too few, eight and five are enough.
	for words, want := range map[int][2]float64{10: {0, 0}, 11: {8, 0}} {
		text := strings.Join(strings.Fields("one1 two2 three3 four4 five5 six6 seven7 eight8 nine9 ten10 eleven11")[:words], " ")
		s := cutAt(t, []core.Message{user(text), agent(core.Text("Yes."))}, []core.Message{agent(core.Text(text))}, nil)
		got := s.Score(nil)
		if got.FNR4.Needed != want[0] || got.RW.Needed != want[1] {
			t.Errorf("%d words: %v runs and rare words of weight %v are needed, want %v", words, got.FNR4.Needed, got.RW.Needed, want)
		}
	}
	for words, want := range map[int]bool{4: false, 5: true} {
		rare := strings.Join(strings.Fields("harbour lantern granite meadow thistle")[:words], "\n")
		s := cutAt(t, []core.Message{user(rare), agent(core.Text("Yes."))}, []core.Message{agent(core.Text(rare))}, nil)
		if _, ok := s.Score(nil).RW.Value(); ok != want {
			t.Errorf("%d rare words are needed: measured %v, want %v", words, ok, want)
		}
	}
}

// What a view has of a line that was changed: the names in it, and nothing else.
func TestAltered(t *testing.T) {
	t.Parallel()
	s := cutAt(t, before, []core.Message{agent(core.Text("now decodeHeader returns"))}, nil)
	for _, c := range []struct {
		name, text    string
		plain, graded float64 // shares of the names: anywhere; with credit
	}{
		{"kept", "return decodeHeader(b)", 1, 0.5},
		{"indented and quoted", `    "return decodeHeader(b)",`, 1, 0.5},
		{"with another argument", "return decodeHeader(c)", 1, 0},
		{"misspelt", "return decodeHaeder(b)", 0, 0},
		{"missing", "}", 0, 0},
	} {
		got := s.Score([]core.Message{user(c.text)})
		plain, _ := got.FRR.Value()
		graded, _ := got.CFRR.Value()
		if plain != c.plain || math.Abs(graded-c.graded) > 1e-9 {
			t.Errorf("%s: got %v and %v, want %v and %v", c.name, plain, graded, c.plain, c.graded)
		}
	}
}

// A name is far if more than a tenth of the tokens and more than six messages follow its last place.
func TestFar(t *testing.T) {
	t.Parallel()
	for messages, want := range map[int]bool{4: false, 6: false, 7: true, 12: true} {
		said := []core.Message{user("look at farName now")}
		for range messages {
			said = append(said, agent(core.Text("I have looked at this and that and found nothing of note.")))
		}
		s := cutAt(t, said, []core.Message{agent(core.Text("so farName"))}, nil)
		if n := s.Needs(nil); len(n) != 1 || n[0].Far != want || n[0].Last != 0 || n[0].By != len(said) {
			t.Errorf("%d messages after it: %+v, want far %v, last in 0, needed by %d", messages, n, want, len(said))
		}
	}
	said := []core.Message{user("look at farName now"), agent(core.Text(strings.Repeat("a long answer ", 500)))}
	s := cutAt(t, said, []core.Message{agent(core.Text("so farName"))}, nil)
	if s.Needs(nil)[0].Far {
		t.Error("one long message makes a name far")
	}
}

// What one later message asks for weighs 12 at most, however many names it has.
func TestOneMessageIsBounded(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("some_name_%d", i))
	}
	text := strings.Join(names, "\n")
	said := []core.Message{user(text)}
	for range 40 {
		said = append(said, agent(core.Text("Yes.")), user("Go on."))
	}
	s := cutAt(t, said, []core.Message{agent(core.Text(text)), user("other"), agent(core.Text("some_name_1 again"))}, nil)
	if got := s.Score(nil).CFRR.Needed; math.Abs(got-12) > 1e-9 {
		t.Errorf("40 names of one message weigh %v, want 12", got)
	}
	list := s.Needs(nil)
	if len(list) != 40 || !slices.IsSortedFunc(list, func(a, b score.Need) int { return cmp.Compare(b.Weight, a.Weight) }) {
		t.Errorf("%d names, want 40 with the heaviest first", len(list))
	}
}

func TestRecent(t *testing.T) {
	t.Parallel()
	var said []core.Message
	for i := range 14 {
		said = append(said, user(fmt.Sprint("message number ", i)))
	}
	s := cutAt(t, said, nil, nil)
	for _, c := range []struct {
		name string
		view []core.Message
		want float64
	}{
		{"all", said, 1},
		{"the last ten", said[4:], 1},
		{"the first ten", said[:10], 0.6},
		{"one, twice", []core.Message{said[13], said[13]}, 0.1},
		{"one of another author", []core.Message{agent(core.Text("message number 13"))}, 0},
		{"one with a word more", []core.Message{user("message number 13 .")}, 0},
		{"nothing", nil, 0},
	} {
		if got, _ := s.Score(c.view).Recent.Value(); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// A strategy that has what was first said after the cut knows the future.
func TestForetold(t *testing.T) {
	t.Parallel()
	future := "rename every stale cursor before closing files"
	s := cutAt(t, before, []core.Message{agent(core.Text(future))}, nil)
	for text, want := range map[string]float64{future: 1, "rename every stale cursor today": 0.25, "never": 0} {
		got := s.Score([]core.Message{user(text)}).Foretold
		if v, ok := got.Value(); !ok || v != want {
			t.Errorf("%q: %v of %v are foretold, want a share of %v", text, got.Kept, got.Needed, want)
		}
	}
	if got := s.Score(before).Foretold; got.Kept != 0 {
		t.Errorf("the conversation itself foretells %v", got.Kept)
	}
}

// Bounds are never above the budget, give the same for the same seed, and keep groups whole.
func TestBoundsKeepTheBudget(t *testing.T) {
	t.Parallel()
	s := cutAt(t, before, []core.Message{agent(core.Text("now decodeHeader and reader.go and readRecord and 48879"))}, nil)
	prefix := s.Cut()
	all := prefix.Tokens
	tokens := func(view []core.Message) int {
		n := 0
		for i := range view {
			n += core.MessageTokens(bytes4{}, view[i])
		}
		return n
	}
	rapid.Check(t, func(rt *rapid.T) {
		budget, seed := rapid.IntRange(1, all+20).Draw(rt, "budget"), rapid.Uint64().Draw(rt, "seed")
		for name, view := range map[string]func() []core.Message{
			"random lines": func() []core.Message { return s.RandomLines(budget, seed, bytes4{}) },
			"keep last":    func() []core.Message { return score.KeepLast(prefix.Prefix(), budget, bytes4{}) },
		} {
			got := view()
			if n := tokens(got); n > budget {
				rt.Fatalf("%s: %d tokens, the budget is %d", name, n, budget)
			}
			if !slices.EqualFunc(got, view(), core.Message.Equal) {
				rt.Fatalf("%s: a second call differs", name)
			}
			if name == "keep last" && s.Score(got).PairErrors > 0 {
				rt.Fatalf("%s: a group is torn: %v", name, got)
			}
		}
	})
	if got := score.KeepLast(prefix.Prefix(), all, bytes4{}); len(got) != len(before) {
		t.Errorf("all of it fits, %d messages are kept of %d", len(got), len(before))
	}
}

// More messages never score less, in any measure, and the same view always scores the same.
func TestMoreIsNotLess(t *testing.T) {
	t.Parallel()
	s := cutAt(t, before, []core.Message{agent(core.Text("now decodeHeader(b) and reader.go, readRecord and 48879: bad magic"))}, nil)
	rapid.Check(t, func(rt *rapid.T) {
		var some, more []core.Message
		for _, m := range before {
			switch rapid.IntRange(0, 2).Draw(rt, "in") {
			case 0:
				some, more = append(some, m), append(more, m)
			case 1:
				more = append(more, m)
			}
		}
		a, b := s.Score(some), s.Score(more)
		for name, pair := range map[string][2]score.Share{
			"plain": {a.FRR, b.FRR}, "grounded": {a.GFRR, b.GFRR}, "cfrr": {a.CFRR, b.CFRR}, "fnr4": {a.FNR4, b.FNR4}, "user": {a.UIR, b.UIR},
			"artefacts": {a.Artefacts, b.Artefacts}, "errors": {a.Errors, b.Errors}, "recent": {a.Recent, b.Recent},
		} {
			if pair[0].Kept > pair[1].Kept+1e-9 || pair[0].Needed != pair[1].Needed {
				rt.Fatalf("%s: %v of fewer messages, %v of more", name, pair[0], pair[1])
			}
			if pair[1].Kept > pair[1].Needed+1e-9 {
				rt.Fatalf("%s: more is kept than was needed: %v", name, pair[1])
			}
		}
		if a.CFRR.Kept > a.GFRR.Kept+1e-9 || a.GFRR.Kept > a.FRR.Kept+1e-9 {
			rt.Fatalf("credit %v, grounded %v, anywhere %v: want them in this order", a.CFRR.Kept, a.GFRR.Kept, a.FRR.Kept)
		}
		if again := s.Score(some); again != a {
			rt.Fatalf("a second time it scores %+v, before %+v", again, a)
		}
	})
}

// TestResultCuts: a cut after a long result measures that result alone, by the five turns after it.
func TestResultCuts(t *testing.T) {
	long := strings.Repeat("a line of the result with some_name\n", 100)
	s := &score.Session{Messages: []core.Message{
		{ID: "u", Role: core.RoleUser, Parts: []core.Part{core.Text("find it")}},
		{ID: "c", Role: core.RoleAssistant, Parts: []core.Part{core.ToolCall{ID: "1", Name: "Bash", Args: `{"command":"x"}`}}},
		{ID: "r", Role: core.RoleUser, Tokens: score.LongResult + 1, Parts: []core.Part{core.ToolResult{CallID: "1", Content: []core.Part{core.Text(long)}}}},
	}}
	for range score.TurnsAfterResult - 1 {
		s.Messages = append(s.Messages, core.Message{Role: core.RoleAssistant, Parts: []core.Part{core.Text("some_name")}})
	}
	if cuts := score.ResultCuts(s); len(cuts) > 0 {
		t.Errorf("%d cuts with too little after them", len(cuts))
	}
	for range 3 {
		s.Messages = append(s.Messages, core.Message{Role: core.RoleAssistant, Parts: []core.Part{core.Text("more")}})
	}
	cuts := score.ResultCuts(s)
	if len(cuts) != 1 {
		t.Fatalf("%d cuts, want 1", len(cuts))
	}
	cut := &cuts[0]
	if p := cut.Prefix(); len(p) != 1 || p[0].ID != "r" || cut.End != 1+score.TurnsAfterResult || len(cut.Before) != 2 || cut.Before[0].ID != "u" || cut.Before[1].ID != "c" {
		t.Errorf("got %d messages, %d in all, after %d others", len(p), cut.End, len(cut.Before))
	}
}
