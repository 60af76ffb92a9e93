package history_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
)

func TestView(t *testing.T) {
	const abcde = "append a b c d e"
	for _, tt := range []struct {
		name  string
		steps []string
		want  string
	}{
		{"nothing", nil, ""},
		{"as appended", []string{"append a", "append b c"}, "a b c"},
		{"hidden", []string{abcde, "condense X hide b d"}, "a c e"},
		{"rewritten", []string{abcde, "condense X rewrite b"}, "a b/X c d e"},
		{"summary behind what it hides", []string{abcde, "condense X hide b c; insert S after c"}, "a S d e"},
		{"summary in front", []string{abcde, "condense X hide a b; insert S"}, "S c d e"},
		{"inserted in the order given", []string{abcde, "condense X insert S after b; insert T after b; insert U; insert V"}, "U V a b S T c d e"},
		{"appended behind a summary at the end", []string{abcde, "condense X hide a b c d e; insert S after e", "append f"}, "S f"},
		{"the later insert is nearer to its anchor", []string{abcde, "condense X insert S after b", "condense Y insert T after b"}, "a b T S c d e"},
		{"behind an inserted message", []string{abcde, "condense X insert S after b", "condense Y hide S; insert T after S"}, "a b T c d e"},
		{"the latest rewrite wins", []string{abcde, "condense X rewrite b", "condense Y rewrite b"}, "a b/Y c d e"},
		{"a rewritten summary", []string{abcde, "condense X hide a; insert S after a", "condense Y rewrite S"}, "S/Y b c d e"},

		{"undo", []string{abcde, "condense X hide b c; insert S after c; rewrite d", "undo X"}, "a b c d e"},
		{"undo of the earlier rewrite", []string{abcde, "condense X rewrite b", "condense Y rewrite b", "undo X"}, "a b/Y c d e"},
		{"undo of the later rewrite", []string{abcde, "condense X rewrite b", "condense Y rewrite b", "undo Y"}, "a b/X c d e"},
		{"undo of both, the older first", []string{abcde, "condense X rewrite b", "condense Y rewrite b", "undo X", "undo Y"}, "a b c d e"},
		{
			"undo of the outer condensation",
			[]string{abcde, "condense X hide a b c; insert S after c", "condense Y hide S d; insert T after d", "undo Y"},
			"S d e",
		},
		{
			"undo of the inner condensation brings back nothing that the outer one covers",
			[]string{abcde, "condense X hide a b c; insert S after c", "condense Y hide S d; insert T after d", "undo X"},
			"T e",
		},
		{
			"undo of both, the inner first",
			[]string{abcde, "condense X hide a b c; insert S after c", "condense Y hide S d; insert T after d", "undo X", "undo Y"},
			"a b c d e",
		},
		{
			"three deep, the inner two undone",
			[]string{
				abcde, "condense X hide a b; insert S after b", "condense Y hide S c; insert T after c", "condense Z hide T d; insert U after d",
				"undo Y", "undo X",
			},
			"U e",
		},
		{
			"three deep, the outermost and the innermost undone",
			[]string{
				abcde, "condense X hide a b; insert S after b", "condense Y hide S c; insert T after c", "condense Z hide T d; insert U after d",
				"undo X", "undo Z",
			},
			"T d e",
		},
		{
			"the outer one does not hide the summary",
			[]string{abcde, "condense X hide a b; insert S after b", "condense Y hide c; insert T after c", "undo X"},
			"a b T d e",
		},
		{
			"of two summaries the outer one hides the first",
			[]string{abcde, "condense X hide a c; insert S after a; insert T after c", "condense Y hide S b; insert U after b", "undo X"},
			"U c d e",
		},
		{
			"of two summaries the outer one hides the last",
			[]string{abcde, "condense X hide a c; insert S after a; insert T after c", "condense Y hide T; insert U after T", "undo X"},
			"a b U d e",
		},
		{
			"a summary substitutes for what was hidden across a message that was kept",
			[]string{abcde, "condense X hide a c; insert S after c", "condense Y hide S; insert T after S", "undo X"},
			"b T d e",
		},
		{
			"messages inserted at one place count as the first",
			[]string{abcde, "condense X hide a b; insert S after b; insert ack after b", "condense Y hide ack c; insert T after c", "undo X"},
			"a b T d e",
		},
		{
			"what is hidden behind all summaries belongs to the last",
			[]string{abcde, "condense X hide b d e; insert S after a; insert T after c", "condense Y hide T; insert U after T", "undo X"},
			"a c U",
		},
		{
			"and not to one before",
			[]string{abcde, "condense X hide b d e; insert S after a; insert T after c", "condense Y hide S; insert U after S", "undo X"},
			"a U b c d e",
		},
		{
			"a condensation that left no message covers nothing and is covered by nothing",
			[]string{abcde, "condense X hide a b", "condense Y hide c; insert T after c", "undo X"},
			"a b T d e",
		},

		{"rewind", []string{abcde, "rewind c"}, "a b c"},
		{"append after a rewind", []string{abcde, "rewind c", "append f"}, "a b c f"},
		{"rewind drops later condensations", []string{"append a b c", "condense X hide a; rewrite b", "append d", "rewind c"}, "a b c"},
		{"rewind keeps earlier condensations", []string{"append a b c", "condense X hide a; insert S after a; rewrite b", "append d e", "rewind d"}, "S b/X c d"},
		{"rewind to a hidden message", []string{abcde, "condense X hide b c; insert S after c", "rewind b"}, "a b"},
		{"rewind to a summary", []string{"append a b", "condense X hide a b; insert S after b", "append c", "rewind S"}, "S"},
		{"rewind to a summary inside what was there then", []string{"append a b c", "condense X hide a; insert S after a", "append d", "rewind S"}, "S b c"},
		{"what is undone stays undone", []string{"append a b", "condense X hide a", "append c", "undo X", "append d", "rewind c"}, "a b c"},
		{
			"rewind between nested condensations",
			[]string{"append a b", "condense X hide a; insert S after a", "append c", "condense Y hide S b; insert T after b", "append d", "rewind c"},
			"S b c",
		},
		{
			"rewind under an undone inner condensation",
			[]string{"append a b", "condense X hide a; insert S after a", "append c", "condense Y hide S b; insert T after b", "append d", "undo X", "rewind c"},
			"a b c",
		},
		{"rewind twice", []string{abcde, "rewind d", "append f", "rewind b", "append g"}, "a b g"},
		{"rewind to the newest", []string{abcde, "rewind e"}, "a b c d e"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := says(replay(t, tt.steps...).View()); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestWhatIsRefusedChangesNothing(t *testing.T) {
	setup := []string{
		"append a b c", "condense X hide a; insert S after a", "append d", "rewind S",
		"append e", "condense Y hide b; insert T after b", "undo Y",
	}
	const view = "S b c e"
	for _, tt := range []struct{ step, want string }{
		{"append f f", `message "f": the ID was used before in this journal`},
		{"append f a", `message "a": the ID was used before in this journal`},
		{"append d", `message "d": the ID was used before in this journal`}, // dropped
		{"append T", `message "T": the ID was used before in this journal`}, // undone
		{"append \xff", `message "\xff": the ID is not valid UTF-8`},
		{"condense  hide b", `a condensation has no ID`},
		{"condense \xff hide b", `condensation "\xff": the ID is not valid UTF-8`},
		{"condense X hide b", `condensation "X": the ID was used before in this journal`},
		{"condense Y hide b", `condensation "Y": the ID was used before in this journal`},
		{"condense Z", `condensation "Z" changes nothing`},
		{"condense Z hide nobody", `condensation "Z" hides message "nobody", which does not exist`},
		{"condense Z hide b a", `condensation "Z" hides message "a", which is not in the view`},
		{"condense Z hide T", `condensation "Z" hides message "T", which is not in the view`},
		{"condense Z hide d", `condensation "Z" hides message "d", which was dropped by a rewind`},
		{"condense Z hide b b", `condensation "Z" hides message "b", which it names before`},
		{"condense Z hide b; rewrite b", `condensation "Z" rewrites message "b", which it names before`},
		{"condense Z rewrite a", `condensation "Z" rewrites message "a", which is not in the view`},
		{"condense Z rewrite b b", `condensation "Z" rewrites message "b", which it names before`},
		{"condense Z hide b; insert U after a", `condensation "Z" inserts after message "a", which is not in the view`},
		{"condense Z hide b; insert U after nobody", `condensation "Z" inserts after message "nobody", which does not exist`},
		{"condense Z hide b; insert a after b", `condensation "Z" inserts: message "a": the ID was used before in this journal`},
		{"condense Z hide b; insert U after b; insert U", `condensation "Z" inserts message "U" twice`},
		{"undo nothing", `undo: there is no condensation "nothing"`},
		{"undo Y", `undo: condensation "Y" is undone already`},
		{"rewind nobody", `rewind: there is no message "nobody"`},
		{"rewind d", `rewind: message "d" was dropped by an earlier rewind`},
		{"rewind T", `rewind: message "T" was inserted by condensation "Y", which is undone`},
	} {
		t.Run(tt.step, func(t *testing.T) {
			j := replay(t, setup...)
			before := encode(t, j)
			if err := do(t, j, tt.step); err == nil || err.Error() != tt.want {
				t.Errorf("got error %v, want %s", err, tt.want)
			}
			if got := says(j.View()); got != view {
				t.Errorf("got view %s, want %s", got, view)
			}
			if diff := cmp.Diff(before, encode(t, j)); diff != "" {
				t.Errorf("the log changed:\n%s", diff)
			}
			run(t, j, "append f", "condense Z hide b") // a refused record must not reserve its ID
		})
	}
	if err := history.New().Append(core.Message{}); err == nil || !strings.HasPrefix(err.Error(), "message 1 of the 1 to append has no ID: ") {
		t.Errorf("got error %v, want that the message has no ID", err)
	}
	j := replay(t, "append a b", "condense X hide a", "rewind a")
	if err := j.Undo("X"); err == nil || err.Error() != `undo: condensation "X" was dropped by a rewind` {
		t.Errorf("got error %v", err)
	}
}

func TestUndoingEverythingGivesBackEveryByte(t *testing.T) {
	j := replay(t, "append a b c d")
	want := slices.Clone(j.View())
	run(
		t, j, "condense X hide a; rewrite b; insert S after a", "condense Y hide S; rewrite b c; insert T after b",
		"condense Z hide b T", "undo Y", "undo Z", "undo X",
	)
	if diff := cmp.Diff(want, j.View(), exactly); diff != "" {
		t.Errorf("view differs from what was appended:\n%s", diff)
	}
	if diff := cmp.Diff(want, j.Messages(), exactly); diff != "" {
		t.Errorf("messages differ from what was appended:\n%s", diff)
	}
}

func TestAccessors(t *testing.T) {
	j := replay(
		t, "append a b c", "condense X hide a; rewrite b; insert S after a", "condense Y hide c; insert T after c",
		"undo Y", "append d", "condense Z hide d", "rewind d",
	)
	if got, want := says(j.Messages()), "a b c d"; got != want {
		t.Errorf("messages: got %s, want %s", got, want)
	}
	if got := j.Condensations(); len(got) != 1 || got[0].ID != "X" || got[0].Provider != "script" {
		t.Errorf("condensations: got %+v, want X", got)
	}
	if got, want := j.Len(), 4; got != want {
		t.Errorf("len: got %d, want %d", got, want)
	}
	for _, id := range []string{"a", "b", "S"} { // hidden, rewritten, inserted
		if m, ok := j.Message(id); !ok || says([]core.Message{m}) != id {
			t.Errorf("message %s: got %+v, %v", id, m, ok)
		}
	}
	for _, id := range []string{"T", "nobody"} {
		if m, ok := j.Message(id); ok {
			t.Errorf("message %s: got %+v, want none", id, m)
		}
	}
	if m := j.View()[1]; m.Source != nil {
		t.Errorf("rewritten message still has the source %s of its former parts", m.Source)
	}
}

func TestTimeline(t *testing.T) {
	j := replay(
		t, "append a b c d", "condense X hide a b; insert S after b", "condense Y hide S; rewrite d; insert T after S",
		"condense Z hide c; insert U after c", "undo Z",
	)
	lines := func() string {
		var b strings.Builder
		for _, e := range j.Timeline() {
			b.WriteString(says([]core.Message{e.Original}) + "=" + says([]core.Message{e.Message}))
			for _, s := range []struct{ name, id string }{
				{" inserted by ", e.InsertedBy}, {" rewritten by ", e.RewrittenBy}, {" hidden by ", strings.Join(e.HiddenBy, ",")},
			} {
				if s.id != "" {
					b.WriteString(s.name + s.id)
				}
			}
			b.WriteString("\n")
		}
		return b.String()
	}
	want := `a=a hidden by X
b=b hidden by X
S=S inserted by X hidden by Y
T=T inserted by Y
c=c
d=d/Y rewritten by Y
`
	if diff := cmp.Diff(want, lines()); diff != "" {
		t.Error(diff)
	}
	run(t, j, "undo X")
	want = `a=a hidden by Y
b=b hidden by Y
T=T inserted by Y
c=c
d=d/Y rewritten by Y
`
	if diff := cmp.Diff(want, lines()); diff != "" {
		t.Errorf("with X undone:\n%s", diff)
	}
}

func TestTimelineNamesEveryoneWhoHides(t *testing.T) {
	j, err := restored(t, "a b S T U", "X hide a b; insert S", "Y hide a S; insert T", "Z hide a b T; insert U")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		step string
		want string // of a, b, and the summaries that are left
	}{
		{"append c", "a:X,Y,Z b:X,Z S:Y T:Z U: c:"},
		{"undo X", "a:Y,Z b:Y,Z T:Z U: c:"}, // S replaced b, and Y hides S
		{"undo Z", "a:Y b:Y T: c:"},
		{"undo Y", "a: b: c:"},
	} {
		run(t, j, tt.step)
		var got []string
		for _, e := range j.Timeline() {
			got = append(got, e.Original.ID+":"+strings.Join(e.HiddenBy, ","))
		}
		if got := strings.Join(got, " "); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.step, got, tt.want)
		}
	}
}

// A summary between a call and its result must not make them two: covered by
// different messages, one could come back without the other.
func TestToolGroupHasOneSubstitute(t *testing.T) {
	call := core.Message{ID: "call", Role: core.RoleAssistant, Parts: []core.Part{core.ToolCall{ID: "c", Name: "read"}}}
	result := core.Message{ID: "result", Role: core.RoleUser, Parts: []core.Part{core.ToolResult{CallID: "c"}}}
	for _, tt := range []struct{ outer, want string }{
		{"Y hide S", "call result T"}, // S replaces nothing
		{"Y hide T", "S"},
	} {
		j := history.New()
		if err := j.Append(message("a"), call, message("b"), result); err != nil {
			t.Fatal(err)
		}
		run(t, j, "condense X hide call b result; insert S after call; insert T after result", "condense "+tt.outer)
		before := j.Len()
		run(t, j, "undo X")
		shown := map[string]bool{}
		for _, m := range j.View() {
			shown[m.ID] = true
		}
		if shown["call"] != shown["result"] {
			t.Errorf("%s, undo X: got call in the view: %v, result: %v", tt.outer, shown["call"], shown["result"])
		}
		if want := tt.outer == "Y hide S"; shown["call"] != want {
			t.Errorf("%s, undo X: got call in the view: %v, want %v (%d messages before)", tt.outer, shown["call"], want, before)
		}
	}
}

// perByte counts a token for every byte of text.
type perByte struct{ factor int }

func (c perByte) Count(parts ...core.Part) int {
	n := 0
	for _, p := range parts {
		if s, ok := p.(core.Text); ok {
			n += c.factor * len(s)
		}
	}
	return n
}

func TestMeasure(t *testing.T) {
	j := history.New()
	unmeasured := func(id string) core.Message { m := message(id); m.Tokens = 0; return m }
	step := func(name string, want int, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		sum := 0
		for _, m := range j.View() {
			sum += m.Tokens
		}
		if j.Tokens() != want || sum != want {
			t.Errorf("%s: got %d tokens, %d in the view, want %d", name, j.Tokens(), sum, want)
		}
	}
	step("not measured", 1, j.Append(unmeasured("aaa"), message("b")))
	j.Measure(perByte{1})
	step("measured", 2*core.FramingTokens+4, nil)
	step("appended with tokens", 2*core.FramingTokens+5, j.Append(message("c")))
	step("appended without", 3*core.FramingTokens+7, j.Append(unmeasured("dd")))
	step("condensed", 2*core.FramingTokens+1+len("dd/X")+1, j.Condense(condensation(t, "X hide aaa c; rewrite dd; insert S after aaa")))
	j.Measure(perByte{10})
	step("measured by another", 3*core.FramingTokens+10*(1+len("dd/X")+1), nil)
	step("what was hidden is measured again", 4*core.FramingTokens+10*(3+1+1+2), j.Undo("X"))
	step("rewound", 1*core.FramingTokens+10*3, j.Rewind("aaa"))
}

// Run with -race: what was handed out is read while the journal goes on.
func TestViewsMayBeReadWhileTheJournalChanges(t *testing.T) {
	j := replay(t, "append a b c")
	var readers sync.WaitGroup
	for i := range 200 {
		view := j.View()
		want := says(view)
		for range 2 {
			readers.Go(func() {
				if got := says(view); got != want {
					t.Errorf("view changed from %s to %s", want, got)
				}
				if extended := append(view, message("intruder")); len(extended) != len(view)+1 {
					t.Errorf("got %d messages", len(extended))
				}
			})
		}
		id := "m" + strings.Repeat("x", i)
		run(t, j, "append "+id)
		switch i % 50 {
		case 10:
			run(t, j, "condense X"+id+" hide "+id+"; insert S"+id+" after "+id)
		case 20:
			run(t, j, "rewind c")
		case 30:
			run(t, j, "condense X"+id+" rewrite "+id, "undo X"+id)
		}
	}
	readers.Wait()
	if slices.ContainsFunc(j.View(), func(m core.Message) bool { return m.ID == "intruder" }) {
		t.Error("an append to a view reached the journal")
	}
}

func TestUndoRewind(t *testing.T) {
	for _, tt := range []struct {
		steps []string
		view  string
	}{
		{[]string{"append a b c", "rewind a", "undo-rewind"}, "a b c"},
		{[]string{"append a b c", "rewind a", "append d", "undo-rewind"}, "a b c d"},
		{[]string{"append a b c", "condense X hide a b; insert S after b", "rewind b", "undo-rewind"}, "S c"},
		{[]string{"append a b c", "condense X hide a b; insert S after b", "rewind b", "append d", "undo-rewind", "undo X"}, "a b c d"},
		{[]string{"append a b c d", "rewind c", "rewind a", "undo-rewind"}, "a b c"},
		{[]string{"append a b c d", "rewind c", "rewind a", "undo-rewind", "undo-rewind"}, "a b c d"},
		{[]string{"append a b c", "rewind a", "undo-rewind", "rewind b"}, "a b"},
		{[]string{"append a b", "rewind a", "append c", "condense X hide c", "undo X", "undo-rewind"}, "a b c"},
	} {
		j := replay(t, tt.steps...)
		if got := says(j.View()); got != tt.view {
			t.Errorf("%q: got %s, want %s", tt.steps, got, tt.view)
		}
		if got := says(decode(t, encode(t, j)).View()); got != tt.view {
			t.Errorf("%q, read again: got %s, want %s", tt.steps, got, tt.view)
		}
	}
	for want, steps := range map[string][]string{
		"undo: there is no rewind": {"append a b", "rewind a", "undo-rewind"},
		`undo: condensation "X" was recorded after the rewind to message "a"; undo it first`: {"append a b", "rewind a", "append c", "condense X hide a c"},
	} {
		j := replay(t, steps...)
		before := encode(t, j)
		if _, err := j.UndoRewind(); err == nil || err.Error() != want {
			t.Errorf("got error %v, want %s", err, want)
		}
		if encode(t, j) != before {
			t.Error("the journal changed with the error")
		}
	}
}

// A rewind that is undone brings back messages that another counter had measured.
func TestUndoRewindCountsWithTheCounterOfToday(t *testing.T) {
	j := history.New()
	j.Measure(perByte{10})
	run(t, j, "append a b", "condense X hide a; insert S after a; rewrite b", "append c", "rewind S")
	j.Measure(perByte{1})
	run(t, j, "undo-rewind")
	got := j.Tokens()
	j.Measure(perByte{1})
	if want := j.Tokens(); got != want {
		t.Errorf("got %d tokens, want %d", got, want)
	}
}
