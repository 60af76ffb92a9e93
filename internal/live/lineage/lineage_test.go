package lineage_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/live/lineage"
	"github.com/condensehq/condense/internal/live/wire"
)

var begin = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// conversation returns a request with n messages: the user's, then calls and results in turn.
func conversation(n int) []string {
	messages := []string{`{"role":"user","content":"Fix the build."}`}
	for i := 1; i < n; i++ {
		if i%2 == 1 {
			messages = append(messages, fmt.Sprintf(`{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s%d"},{"type":"tool_use","id":"t%d","name":"Bash","input":{"command":"make %d"}}]}`, i, i, i))
		} else {
			messages = append(messages, fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"output %d"}]}`, i-1, i))
		}
	}
	return messages
}

func parse(tb testing.TB, messages []string, fields ...string) (*wire.Request, []wire.Hash) {
	tb.Helper()
	body := `{"model":"claude-opus-5-5","max_tokens":1000,"messages":[` + strings.Join(messages, ",") + `]`
	for _, f := range fields {
		body += "," + f
	}
	r, err := wire.Parse(wire.Messages, []byte(body+"}"), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return r, lineage.Roll(r.Messages)
}

func texts(view [][]byte) string {
	all := make([]string, len(view))
	for i, v := range view {
		all[i] = string(v)
	}
	return strings.Join(all, "\n")
}

// frozen returns the state after a conversation of nine messages had its messages before cut replaced by a summary.
func frozen(tb testing.TB, cut int, bound bool) *lineage.State {
	tb.Helper()
	r, rolling := parse(tb, conversation(9))
	s, kind := lineage.Follow(nil, r, rolling)
	if kind != lineage.New {
		tb.Fatalf("got kind %v, want New", kind)
	}
	if bound {
		s.Adapt(r, rolling, true)
	}
	s.Sent(r, rolling, begin)
	s.ID = "old"
	after, _ := parse(tb, append([]string{`{"role":"user","content":"Summary."}`}, conversation(9)[cut:]...))
	e, err := s.Freeze(r, rolling, lineage.Condensed{After: after.Messages}, begin)
	if err != nil {
		tb.Fatal(err)
	}
	if e.ID != "" || s.Epoch != nil {
		tb.Fatal("Freeze must leave the old state as it is, with its record")
	}
	if e.Epoch.Cut != cut || len(e.Epoch.Block) != 1 {
		tb.Fatalf("got cut %d and a block of %d messages, want %d, 1", e.Epoch.Cut, len(e.Epoch.Block), cut)
	}
	e.Sent(r, rolling, begin.Add(time.Second))
	return e
}

func TestViewAfterAnEpoch(t *testing.T) {
	const summary = `{"role":"user","content":[{"type":"text","text":"Summary."}]}`
	for _, bound := range []bool{false, true} {
		s := frozen(t, 5, bound)
		data, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var restarted lineage.State
		if err := json.Unmarshal(data, &restarted); err != nil {
			t.Fatal(err)
		}
		r, rolling := parse(t, conversation(11))
		got, kind := lineage.Follow([]*lineage.State{&restarted}, r, rolling)
		if kind != lineage.Continue {
			t.Fatalf("got kind %v, want Continue", kind)
		}
		want := summary
		for i, m := range conversation(11)[5:] {
			if bound && i < 4 { // before the epoch's end
				m = strings.ReplaceAll(m, fmt.Sprintf(`{"type":"thinking","thinking":"","signature":"s%d"},`, i+5), "")
			}
			want += "\n" + m
		}
		if got := texts(got.View(r, rolling)); got != want {
			t.Errorf("bound %t: got\n%s\nwant\n%s", bound, got, want)
		}
	}
}

// TestThinkingAfterAChangeOfModelAndBack: an epoch on a model that takes any thinking keeps it. The first model, which refuses
// thinking after other messages, is sent none of it, and its later answers keep theirs.
func TestThinkingAfterAChangeOfModelAndBack(t *testing.T) {
	const other = `"model":"claude-sonnet-4-5"`
	all := conversation(11)
	var s *lineage.State
	for _, turn := range []struct {
		n     int
		model string
		bound bool
		want  string // whose thinking is sent
	}{
		{9, `"model":"claude-opus-5-5"`, true, "s1 s3 s5 s7 "},
		{9, other, false, "s5 s7 "},
		{9, `"model":"claude-opus-5-5"`, true, ""},
		{11, `"model":"claude-opus-5-5"`, true, "s9 "},
		{11, other, false, "s9 "},
	} {
		r, rolling := parse(t, all[:turn.n], turn.model)
		var known []*lineage.State
		if s != nil {
			known = append(known, s)
		}
		s, _ = lineage.Follow(known, r, rolling)
		s.Adapt(r, rolling, turn.bound)
		if !turn.bound && s.Epoch == nil {
			after, _ := parse(t, append([]string{`{"role":"user","content":"Summary."}`}, all[5:9]...))
			var err error
			if s, err = s.Freeze(r, rolling, lineage.Condensed{After: after.Messages}, begin); err != nil {
				t.Fatal(err)
			}
		}
		s.ID = "one"
		got := ""
		for _, m := range s.View(r, rolling) {
			if _, after, ok := strings.Cut(string(m), `"signature":"`); ok {
				got += after[:strings.Index(after, `"`)] + " "
			}
		}
		if got != turn.want {
			t.Errorf("%d messages, %s: thinking %q is sent, want %q", turn.n, turn.model, got, turn.want)
		}
		s.Sent(r, rolling, begin)
	}
}

// TestAnswersInDoubt: a request was sent, and after an epoch again. Two branches go on, each with one of the answers, and none
// of them tells which. Both have the epoch, and leave the thinking of these answers out.
func TestAnswersInDoubt(t *testing.T) {
	r, rolling := parse(t, conversation(9))
	old, _ := lineage.Follow(nil, r, rolling)
	old.Adapt(r, rolling, true)
	old.Sent(r, rolling, begin)
	old.ID = "old"
	after, _ := parse(t, append([]string{`{"role":"user","content":"Summary."}`}, conversation(9)[5:]...))
	s, err := old.Freeze(r, rolling, lineage.Condensed{After: after.Messages}, begin)
	if err != nil {
		t.Fatal(err)
	}
	s.Sent(r, rolling, begin.Add(time.Second))
	s.ID = "new"
	for i, text := range []string{"one", "other"} {
		branch := conversation(11)
		branch[9] = strings.ReplaceAll(branch[9], "s9", text)
		branch[10] = strings.ReplaceAll(branch[10], "output", text)
		r, rolling := parse(t, branch)
		got, kind := lineage.Follow([]*lineage.State{s, old}, r, rolling)
		if got.Epoch == nil || strings.Contains(texts(got.View(r, rolling)), text+`"},{"type":"tool_use"`) {
			t.Errorf("branch %d: kind %v, view\n%s", i, kind, texts(got.View(r, rolling)))
		}
		got.Sent(r, rolling, begin.Add(time.Minute))
		s = got
	}
}

func TestFollow(t *testing.T) {
	s := frozen(t, 5, true)
	s.ID = "s"
	edited := func(n, at int) []string {
		m := conversation(n)
		m[at] = `{"role":"user","content":"Something else."}`
		return m
	}
	tests := []struct {
		name     string
		messages []string
		want     lineage.Kind
		id       string
	}{
		{"the same again", conversation(9), lineage.Continue, "s"},
		{"two more", conversation(11), lineage.Continue, "s"},
		{"back into the kept messages", conversation(7), lineage.Rewind, ""},
		{"back to where they begin", conversation(6), lineage.Rewind, ""},
		{"back to before them", conversation(5), lineage.Compacted, ""},
		{"the newest message edited", edited(9, 8), lineage.Fork, ""},
		{"the first kept message edited", edited(7, 6), lineage.Fork, ""},
		{"the message before the kept ones edited", edited(9, 4), lineage.Compacted, ""},
		{"the first message edited", edited(9, 0), lineage.New, ""},
		{"another conversation", []string{`{"role":"user","content":"Hello."}`}, lineage.New, ""},
	}
	for _, tt := range tests {
		r, rolling := parse(t, tt.messages)
		got, kind := lineage.Follow([]*lineage.State{s}, r, rolling)
		if kind != tt.want || got.ID != tt.id {
			t.Errorf("%s: got kind %v, ID %q, want %v, %q", tt.name, kind, got.ID, tt.want, tt.id)
		}
		if replaced := len(got.View(r, rolling)) != len(tt.messages); replaced != (kind != lineage.New && kind != lineage.Compacted) {
			t.Errorf("%s: kind %v: replaced: %t", tt.name, kind, replaced)
		}
	}
}

// A conversation that went back is answered with its epoch. Another branch, which was used since and has the same
// first messages without the epoch, must not get the next request: the thinking of the answer is bound to what the
// epoch sends.
func TestFollowKnowsTheAnswer(t *testing.T) {
	back := frozen(t, 1, true)
	r, rolling := parse(t, conversation(3))
	back, kind := lineage.Follow([]*lineage.State{back}, r, rolling)
	if kind != lineage.Rewind {
		t.Fatalf("got kind %v, want Rewind", kind)
	}
	back.Sent(r, rolling, begin.Add(time.Minute))
	back.ID = "back"
	other := &lineage.State{ID: "other"}
	r, rolling = parse(t, append(conversation(3), `{"role":"assistant","content":"Otherwise."}`, `{"role":"user","content":"Yes."}`))
	other.Sent(r, rolling, begin.Add(time.Hour))
	r, rolling = parse(t, conversation(5))
	got, _ := lineage.Follow([]*lineage.State{other, back}, r, rolling)
	if got.ID != "back" {
		t.Errorf("got the state %q, want the one whose request was answered", got.ID)
	}
}
