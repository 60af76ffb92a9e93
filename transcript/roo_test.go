package transcript_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/testkit/roo"
	"github.com/condensehq/condense/transcript"
)

// rooConversation draws a conversation as Roo stores it, condensed and truncated by Roo
// itself in places.
func rooConversation(t *rapid.T) []*roo.Message {
	var file []string
	say := func(role, content string) {
		ts := fmt.Sprintf(`,"ts":%d`, 1_770_000_000_000+1000*(len(file)+1))
		if rapid.IntRange(0, 9).Draw(t, "no ts") == 0 {
			ts = ""
		}
		file = append(file, fmt.Sprintf(`{"role":%q,"content":%s%s}`, role, content, ts))
	}
	quoted := func(s string) string { return fmt.Sprintf("%q", s) }
	for i := range rapid.IntRange(1, 6).Draw(t, "turns") {
		switch rapid.IntRange(0, 4).Draw(t, "kind of turn") {
		case 0:
			say("user", quoted("<task>do it</task>"))
			say("assistant", quoted("<read_file><path>a.go</path></read_file>"))
		case 1:
			id := fmt.Sprint("call_", i)
			say("user", `[{"type":"text","text":"go on","x":1}]`)
			say("assistant", `[{"type":"text","text":"so"},{"type":"tool_use","id":"`+id+`","name":"ls","input":{"a": 1}}]`)
			say("user", `[{"type":"tool_result","tool_use_id":"`+id+`","content":"out"},{"type":"text","text":"env"}]`)
			say("assistant", quoted("done"))
		case 2:
			file = append(file, `{"type":"reasoning","role":"assistant","content":[],"encrypted_content":"xyz","summary":[]}`)
			say("assistant", quoted("thought"))
		case 3:
			say("user", `[{"type":"tool_result","tool_use_id":"nobody"}]`)
		case 4:
			say("user", `[]`)
		}
	}
	messages, err := roo.Parse([]byte("[" + strings.Join(file, ",") + "]"))
	if err != nil {
		t.Fatal(err)
	}
	return rooGoesOn(t, messages)
}

// rooGoesOn does to a conversation what Roo does.
func rooGoesOn(t *rapid.T, messages []*roo.Message) []*roo.Message {
	for range rapid.IntRange(0, 3).Draw(t, "what Roo does") {
		id := fmt.Sprint("roo-", rapid.Uint32().Draw(t, "id"))
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			now := func() time.Time { return time.UnixMilli(1_770_000_099_000) }
			messages = roo.Truncate(messages, 0.5, func() string { return id }, now).Messages
		case 1:
			for i, m := range messages {
				if m.Tag(roo.CondenseParent) == "" {
					messages[i] = m.With(roo.CondenseParent, id)
				}
			}
			messages = append(messages, rooMessage(t, `{"role":"user","content":[{"type":"text","text":"## Conversation Summary\nS"}],"ts":1770000090000,"isSummary":true,"condenseId":"`+id+`"}`))
		case 2:
			messages = append(slices.Clip(messages), rooMessage(t, `{"role":"user","content":"more","ts":1770000091000}`))
		case 3:
			keep := rapid.IntRange(0, len(messages)).Draw(t, "rewound to")
			messages = roo.Cleanup(slices.Clone(messages[:keep]))
		}
	}
	return messages
}

func rooMessage(t *rapid.T, raw string) *roo.Message {
	m, err := roo.ParseMessage([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// anyEdit draws what a condensation might do to a view, sense or not.
func anyEdit(t *rapid.T, view []core.Message, step int) core.Edit {
	var e core.Edit
	inserted := 0
	insert := func(after string) {
		inserted++
		e.Insert = append(e.Insert, core.Insert{After: after, Message: core.Message{
			ID:    fmt.Sprintf("new%d.%d", step, inserted),
			Role:  rapid.SampledFrom([]core.Role{core.RoleUser, core.RoleAssistant}).Draw(t, "role"),
			Kind:  rapid.SampledFrom([]core.Kind{core.KindSummary, core.KindMarker}).Draw(t, "kind"),
			Time:  time.Unix(1_700_000_000, 123456789).UTC(),
			Parts: []core.Part{core.Text("summary")},
		}})
	}
	first := rapid.IntRange(0, len(view)).Draw(t, "fresh start") // everything before is hidden
	if rapid.Bool().Draw(t, "anywhere") {
		first = 0
	}
	for i := range view {
		m := &view[i]
		kind := rapid.IntRange(0, 5).Draw(t, "what happens")
		_, isText := firstPart(m).(core.Text)
		switch {
		case i < first, kind == 0:
			e.Hide = append(e.Hide, m.ID)
		case kind == 1 && isText:
			parts := slices.Clone(m.Parts)
			parts[0] = core.Text("rewritten")
			e.Rewrite = append(e.Rewrite, core.Rewrite{ID: m.ID, Parts: parts})
		}
		if i == first-1 || kind == 2 {
			insert(m.ID)
		}
	}
	return e
}

func firstPart(m *core.Message) core.Part {
	if len(m.Parts) == 0 {
		return nil
	}
	return m.Parts[0]
}

// anything does something to the journal of d.
func anything(t *rapid.T, d *transcript.Document, step int) {
	all := d.Journal.Condensations()
	if len(all) > 0 && rapid.IntRange(0, 3).Draw(t, "undo") == 0 {
		if err := d.Journal.Undo(rapid.SampledFrom(all).Draw(t, "which").ID); err != nil {
			t.Fatal(err)
		}
		return
	}
	edit := anyEdit(t, d.Journal.View(), step)
	if edit.Empty() {
		return
	}
	err := d.Journal.Condense(history.Condensation{
		ID: fmt.Sprint("ours", step), Provider: "p", Trigger: core.TriggerManual,
		Time: time.Unix(1_700_000_001, 0).UTC(), TokensBefore: 9, TokensAfter: 3, Edit: edit,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func encode(t *rapid.T, d *transcript.Document, format string) string {
	var out strings.Builder
	if _, err := d.Write(&out, format); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// timelineEntry is what a timeline reports, without what a file need not keep.
type timelineEntry struct {
	ID                      string
	Role                    core.Role
	Kind                    core.Kind
	Parts                   []core.Part
	InsertedBy, RewrittenBy string
	HiddenBy                []string
}

func timeline(j *history.Journal) []timelineEntry {
	var all []timelineEntry
	for _, e := range j.Timeline() {
		all = append(all, timelineEntry{e.Message.ID, e.Message.Role, e.Message.Kind, e.Message.Parts, e.InsertedBy, e.RewrittenBy, e.HiddenBy})
	}
	return all
}

// Whatever happened to a conversation, Roo's rules make the same view of the file, and
// the file gives the journal back: what hides what, who did it, and how to undo it.
func TestPropertyRooKeepsTheJournal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		file := string(roo.Encode(rooConversation(t)))
		d, err := readRoo(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := encode(t, d, ""); got != file {
			t.Fatalf("unchanged, written as\n%s\nwant\n%s", got, file)
		}
		for step := range rapid.IntRange(1, 4).Draw(t, "steps") {
			anything(t, d, step)
			out := encode(t, d, "roo")
			if err := rooSends(out, d.Journal.View()); err != nil {
				t.Fatalf("Roo: %v\n%s", err, out)
			}
			again, err := readRoo(out)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if len(again.Warnings) > 0 {
				t.Fatalf("warnings %v\n%s", again.Warnings, out)
			}
			if diff := cmp.Diff(timeline(d.Journal), timeline(again.Journal)); diff != "" {
				t.Fatalf("timeline (-want +got):\n%s\n%s", diff, out)
			}
			sameUndo(t, d, again, out)
			if rapid.Bool().Draw(t, "go on with the file") {
				d = again
			}
		}
	})
}

// withEffect returns the condensations that the timeline tells of. One is none of them if
// all that it did was to messages that others inserted, who were undone.
func withEffect(j *history.Journal) []history.Condensation {
	return slices.DeleteFunc(j.Condensations(), func(c history.Condensation) bool {
		return !slices.ContainsFunc(j.Timeline(), func(e history.Entry) bool {
			return e.InsertedBy == c.ID || e.RewrittenBy == c.ID || slices.Contains(e.HiddenBy, c.ID)
		})
	})
}

// sameUndo checks that condensations are the same, and undoing one has the same effect.
func sameUndo(t *rapid.T, d, again *transcript.Document, out string) {
	want, got := withEffect(d.Journal), withEffect(again.Journal)
	if len(want) == 0 && len(got) == 0 {
		return
	}
	if len(want) != len(got) {
		t.Fatalf("got %d condensations, want %d\n%s", len(got), len(want), out)
	}
	for i := range want {
		want[i].Edit, got[i].Edit = core.Edit{}, core.Edit{}
		want[i].Substitutes, got[i].Substitutes = nil, nil // the undo below is checked instead
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("condensations (-want +got):\n%s\n%s", diff, out)
	}
	if len(want) == 0 {
		return
	}
	id := rapid.SampledFrom(want).Draw(t, "undone").ID
	undone := func(d *transcript.Document) []timelineEntry {
		copied, err := transcript.Read(strings.NewReader(encode(t, d, "condense")), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := copied.Journal.Undo(id); err != nil {
			t.Fatal(err)
		}
		return timeline(copied.Journal)
	}
	if diff := cmp.Diff(undone(d), undone(again)); diff != "" {
		t.Fatalf("after undo of %s (-want +got):\n%s\n%s", id, diff, out)
	}
}

// rooSends checks that Roo sends view, by what a reader that knows no notes makes of it.
func rooSends(file string, view []core.Message) error {
	messages, err := roo.Parse([]byte(file))
	if err != nil {
		return err
	}
	sent, err := readRoo(untagged(roo.Encode(roo.Effective(messages))))
	if err != nil {
		return err
	}
	return sameWords(sent.Journal.View(), view)
}

// Roo may go on with a file that was written here. What it sends then is the view.
func TestPropertyRooGoesOn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d, err := readRoo(string(roo.Encode(rooConversation(t))))
		if err != nil {
			t.Fatal(err)
		}
		for step := range rapid.IntRange(1, 3).Draw(t, "steps") {
			anything(t, d, step)
			messages, err := roo.Parse([]byte(encode(t, d, "roo")))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("before %s", roo.Encode(messages))
			file := string(roo.Encode(rooGoesOn(t, messages)))
			if d, err = readRoo(file); err != nil {
				t.Fatalf("%v\n%s", err, file)
			}
			if err := rooSends(file, d.Journal.View()); err != nil {
				t.Fatalf("%v\n%s", err, file)
			}
		}
	})
}

// A file of Roo's holds conversations of any origin, whole.
func TestPropertyRooStoresOtherFormats(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := &transcript.Document{Journal: history.New()}
		if err := d.Journal.Append(wildMessages(t)...); err != nil {
			t.Fatal(err)
		}
		for step := range rapid.IntRange(0, 3).Draw(t, "steps") {
			anything(t, d, step)
		}
		out := encode(t, d, "roo")
		again, err := readRoo(out)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if diff := cmp.Diff(timeline(d.Journal), timeline(again.Journal)); diff != "" {
			t.Fatalf("timeline (-want +got):\n%s\n%s", diff, out)
		}
		var sent []map[string]json.RawMessage
		if err := json.Unmarshal([]byte(out), &sent); err != nil {
			t.Fatal(err)
		}
	})
}

// What the tags say, in every case that there is.
func TestRooTags(t *testing.T) {
	t.Parallel()
	const file = "[\n  {\"role\": \"user\", \"content\": \"task\", \"ts\": 1770000000100},\n  {\"role\":\"assistant\",\"content\":\"a\",\"ts\":1770000000200},\n  {\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"b\",\"x\":1}],\"ts\":1770000000300},\n  {\"role\":\"assistant\",\"content\":\"c\",\"ts\":1770000000400}\n]\n"
	summary := core.Message{ID: "s", Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("S")}}
	marker := core.Message{ID: "k", Role: core.RoleUser, Kind: core.KindMarker, Parts: []core.Part{core.Text("M")}}
	for _, test := range []struct {
		name string
		edit core.Edit
		want string
	}{
		{
			"everything before the summary",
			core.Edit{Hide: []string{"m1", "m2"}, Insert: []core.Insert{{After: "m2", Message: summary}}},
			`[
  {"role": "user", "content": "task", "ts": 1770000000100,"condenseParent":"c1"},
  {"role":"assistant","content":"a","ts":1770000000200,"condenseParent":"c1"},
  {"role":"user","content":"S","isSummary":true,"condenseId":"c1","ts":1770000000299,"condense":{"id":"s","kind":"summary","records":[{"order":1,"id":"c1","edit":{"hide":["m1","m2"],"insert":[{"message":{"id":"s","role":"","parts":[]}}]},"newest":"m4"}]}},
  {"role":"user","content":[{"type":"text","text":"b","x":1}],"ts":1770000000300},
  {"role":"assistant","content":"c","ts":1770000000400}
]
`,
		},
		{
			"some in the middle",
			core.Edit{Hide: []string{"m2"}, Insert: []core.Insert{{After: "m2", Message: marker}}},
			`[
  {"role": "user", "content": "task", "ts": 1770000000100},
  {"role":"assistant","content":"a","ts":1770000000200,"truncationParent":"c1"},
  {"role":"user","content":"M","isTruncationMarker":true,"truncationId":"c1","ts":1770000000299,"condense":{"id":"k","kind":"marker","records":[{"order":1,"id":"c1","edit":{"hide":["m2"],"insert":[{"message":{"id":"k","role":"","parts":[]}}]},"newest":"m4"}]}},
  {"role":"user","content":[{"type":"text","text":"b","x":1}],"ts":1770000000300},
  {"role":"assistant","content":"c","ts":1770000000400}
]
`,
		},
		{
			"nothing in its place",
			core.Edit{Hide: []string{"m2", "m3"}},
			`[
  {"role": "user", "content": "task", "ts": 1770000000100},
  {"role":"user","content":"[Messages hidden or rewritten by condense: 2]","isTruncationMarker":true,"truncationId":"c1","truncationParent":"c1","ts":1770000000199,"condense":{"carrier":true,"records":[{"order":1,"id":"c1","edit":{"hide":["m2","m3"]},"newest":"m4"}]}},
  {"role":"assistant","content":"a","ts":1770000000200,"truncationParent":"c1"},
  {"role":"user","content":[{"type":"text","text":"b","x":1}],"ts":1770000000300,"truncationParent":"c1"},
  {"role":"assistant","content":"c","ts":1770000000400}
]
`,
		},
		{
			"other words",
			core.Edit{Rewrite: []core.Rewrite{{ID: "m3", Parts: []core.Part{core.Text("cut")}}}},
			`[
  {"role": "user", "content": "task", "ts": 1770000000100},
  {"role":"assistant","content":"a","ts":1770000000200},
  {"role":"user","content":"[Messages hidden or rewritten by condense: 1]","isTruncationMarker":true,"truncationId":"c1","truncationParent":"c1","ts":1770000000299,"condense":{"carrier":true,"records":[{"order":1,"id":"c1","edit":{"rewrite":[{"id":"m3","parts":[{"type":"text","text":"cut"}]}]},"newest":"m4"}]}},
  {"role":"user","content":[{"type":"text","text":"b","x":1}],"ts":1770000000300,"truncationParent":"c1"},
  {"role":"user","content":[{"type":"text","text":"cut","x":1}],"ts":1770000000300,"condense":{"copy_of":"m3"}},
  {"role":"assistant","content":"c","ts":1770000000400}
]
`,
		},
	} {
		d := read(t, file, "")
		condense(t, d, test.edit)
		got, _ := write(t, d, "")
		if diff := cmp.Diff(strings.Split(test.want, "\n"), strings.Split(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
		if err := rooSends(got, d.Journal.View()); err != nil {
			t.Errorf("%s: Roo: %v", test.name, err)
		}
	}
}

// Roo condensed, truncated and condensed again: each can be undone, in any order.
func TestRooNested(t *testing.T) {
	t.Parallel()
	const file = `[{"role":"user","content":"1","ts":1,"condenseParent":"A"},{"role":"assistant","content":"2","ts":2,"condenseParent":"A","truncationParent":"T"},` +
		`{"role":"user","content":"S1","ts":3,"isSummary":true,"condenseId":"A","condenseParent":"B"},{"role":"assistant","content":"3","ts":4,"truncationParent":"T","condenseParent":"B"},` +
		`{"role":"user","content":"hidden","ts":5,"isTruncationMarker":true,"truncationId":"T","condenseParent":"B"},{"role":"user","content":"4","ts":6,"condenseParent":"B"},` +
		`{"role":"user","content":"S2","ts":7,"isSummary":true,"condenseId":"B"},{"role":"assistant","content":"5","ts":8}]`
	says := func(d *transcript.Document) string {
		var all []string
		for _, m := range d.Journal.View() {
			all = append(all, outlineParts(m.Parts))
		}
		return strings.Join(all, "")
	}
	for _, test := range []struct{ undo, want string }{
		{"", ` "S2" "5"`},
		{"B", ` "S1" "hidden" "4" "5"`},
		{"B T", ` "S1" "3" "4" "5"`},
		{"B A", ` "1" "hidden" "4" "5"`},
		{"A", ` "S2" "5"`},
		{"A B T", ` "1" "2" "3" "4" "5"`},
	} {
		d := read(t, file, "")
		for id := range strings.FieldsSeq(test.undo) {
			if err := d.Journal.Undo(id); err != nil {
				t.Fatal(err)
			}
		}
		if got := says(d); got != test.want {
			t.Errorf("without %q: got%s, want%s", test.undo, got, test.want)
		}
		out, _ := write(t, d, "")
		if err := rooSends(out, d.Journal.View()); err != nil {
			t.Errorf("without %q: Roo: %v\n%s", test.undo, err, out)
		}
	}
}

// What replaces a hidden message is kept even where the file no longer shows it: here a
// message was between two summaries until its condensation was undone.
func TestRooKeepsWhatReplacesAHiddenMessage(t *testing.T) {
	t.Parallel()
	insert := func(id, after string) core.Insert {
		return core.Insert{After: after, Message: core.Message{ID: id, Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(id)}}}
	}
	d := read(t, `[{"role":"user","content":"1","ts":1770000000100},{"role":"assistant","content":"2","ts":1770000000200},{"role":"user","content":"3","ts":1770000000300}]`, "")
	for _, c := range []history.Condensation{
		{ID: "X", Edit: core.Edit{Insert: []core.Insert{insert("between", "m1")}}},
		{ID: "Y", Edit: core.Edit{Hide: []string{"m3"}, Insert: []core.Insert{insert("S", "m1"), insert("T", "between")}}},
		{ID: "Z", Edit: core.Edit{Hide: []string{"S"}}},
	} {
		if err := d.Journal.Condense(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Journal.Undo("X"); err != nil {
		t.Fatal(err)
	}
	out, _ := write(t, d, "")
	if want := `"substitutes":{"m3":["T"]}`; !strings.Contains(out, want) {
		t.Errorf("got %s, want %s in it", out, want)
	}
	again := read(t, out, "roo")
	text, _ := write(t, again, "condense") // which keeps it too
	for name, d := range map[string]*transcript.Document{"as it was": d, "from roo": again, "from roo and condense": read(t, text, "condense")} {
		if err := d.Journal.Undo("Y"); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range d.Journal.View() {
			got = append(got, m.ID)
		}
		if want := []string{"m1", "m2", "m3"}; !slices.Equal(got, want) { // T, which replaced m3, was not hidden
			t.Errorf("%s: without Y: got %v, want %v", name, got, want)
		}
	}
}

// Each round of condensing can be undone, newest first, and every file on the way is byte for
// byte the one that was there before. An older summary got the tags of a marker, and kept them.
func TestUndoOfALaterRoundRestoresTheFileByteForByte(t *testing.T) {
	t.Parallel()
	for name, data := range files(t, "roo") {
		for _, kinds := range [][]core.Kind{
			{core.KindSummary, core.KindSummary, core.KindSummary},
			{core.KindMarker, core.KindMarker, core.KindMarker},
			{core.KindSummary, core.KindMarker, core.KindSummary},
			{core.KindMarker, core.KindSummary, core.KindMarker},
		} {
			states, before := []string{data}, 0
			for round, kind := range kinds {
				d := read(t, states[round], "roo")
				if round == 0 {
					before = len(d.Journal.Condensations())
				}
				view := d.Journal.View()
				if len(view) < 3 {
					break
				}
				id := fmt.Sprintf("33333333-2222-4333-8444-%012d", round)
				e := core.Edit{Insert: []core.Insert{{After: view[1].ID, Message: core.Message{
					ID: id, Role: core.RoleUser, Kind: kind, Parts: []core.Part{core.Text(fmt.Sprint("earlier, round ", round))},
				}}}}
				for _, m := range view[:2] {
					e.Hide = append(e.Hide, m.ID)
				}
				if err := d.Journal.Condense(history.Condensation{ID: "round-" + id, Provider: "p", Edit: e}); err != nil {
					t.Fatal(err)
				}
				out, _ := write(t, d, "")
				states = append(states, out)
				for _, m := range parsedRoo(t, out) {
					if m["isSummary"] == true && m["isTruncationMarker"] == true {
						t.Errorf("%s, %v, round %d: a summary has the tags of a marker: %v", name, kinds, round+1, m)
					}
				}
			}
			for round := len(states) - 1; round > 0; round-- {
				d := read(t, states[round], "roo")
				all := d.Journal.Condensations()
				if len(all) != before+round {
					t.Fatalf("%s, %v: %d condensations after round %d, want %d", name, kinds, len(all), round, before+round)
				}
				if err := d.Journal.Undo(all[len(all)-1].ID); err != nil {
					t.Fatal(err)
				}
				got, _ := write(t, d, "")
				if diff := cmp.Diff(states[round-1], got); diff != "" {
					t.Errorf("%s, %v: round %d undone (-want +got):\n%s", name, kinds, round, diff)
				}
			}
		}
	}
}

func parsedRoo(t *testing.T, file string) []map[string]any {
	t.Helper()
	var all []map[string]any
	if err := json.Unmarshal([]byte(file), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestRooWithAClockThatIsBehind: messages after a condensation are new, whatever their times say: a file that was
// restored, or comes from another machine, has such times. An undo restores every byte, also of an indented file.
func TestRooWithAClockThatIsBehind(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"", "\n    "} {
		file := strings.ReplaceAll(`[{"role":"user","content":"task","ts":1770000000100},{"role":"assistant","content":"a","ts":1770000000200},`+
			`{"role":"user","content":"b","ts":1770000000300},{"role":"assistant","content":"c","ts":1770000000400}]`, "}", end+"}")
		d := read(t, file, "")
		err := d.Journal.Condense(history.Condensation{ID: "c1", Time: time.Now(), Edit: core.Edit{Hide: []string{"m1", "m2"}, Insert: []core.Insert{
			{Message: core.Message{ID: "s", Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("S")}}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		condensed, _ := write(t, d, "")
		if !read(t, condensed, "").Journal.Settled() {
			t.Error("nothing was said since, and something counts as new")
		}
		more := strings.TrimSuffix(strings.TrimSpace(condensed), "]") + `,{"role":"user","content":"new","ts":1600000000000},{"role":"assistant","content":"newer","ts":1600000000001}]`
		if j := read(t, more, "").Journal; j.Settled() || j.Appended() != 2 {
			t.Errorf("2 messages are new, and %d count as new", j.Appended())
		}
		again := read(t, condensed, "")
		if err := again.Journal.Undo("c1"); err != nil {
			t.Fatal(err)
		}
		if got, _ := write(t, again, ""); got != file {
			t.Errorf("an undo changes the file:\n%s\nwas\n%s", got, file)
		}
	}
}
