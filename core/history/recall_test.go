package history_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/core/history"
)

// recalled says where content was found: "b", "b by X" if X rewrote it, "S of X" if X
// inserted it, with a star if it is in the view.
func recalled(j *history.Journal, text string) string {
	var found []string
	for _, r := range j.Recall(core.Handle(core.Text(text))) {
		s := r.Message.ID
		if r.InsertedBy != "" {
			s += " of " + r.InsertedBy
		}
		if r.RewrittenBy != "" {
			s += " by " + r.RewrittenBy
		}
		if r.Dropped {
			s += " dropped"
		}
		if r.InView {
			s += "*"
		}
		if r.Part != core.Text(text) {
			s += fmt.Sprintf(" is %v", r.Part)
		}
		found = append(found, s)
	}
	return strings.Join(found, ", ")
}

func TestRecall(t *testing.T) {
	const abc = "append a b c"
	for _, tt := range []struct {
		name  string
		steps []string
		want  map[string]string // by text
	}{
		{"in the view", []string{abc}, map[string]string{"b": "b*", "d": ""}},
		{"hidden", []string{abc, "condense X hide b; insert S after b"}, map[string]string{"b": "b", "S": "S of X*"}},
		{"rewritten", []string{abc, "condense X rewrite b"}, map[string]string{"b": "b", "b/X": "b by X*"}},
		{
			"what an earlier condensation had made of it, and what it was",
			[]string{abc, "condense X rewrite b", "condense Y rewrite b", "condense Z hide b; insert S after b"},
			map[string]string{"b": "b", "b/X": "b by X", "b/Y": "b by Y"},
		},
		{
			"a summary of what is a summary itself",
			[]string{abc, "condense X hide a b; insert S after b", "condense Y hide S c; insert T after c"},
			map[string]string{"a": "a", "S": "S of X", "T": "T of Y*"},
		},
		{
			"undone, while what came later still points there",
			[]string{abc, "condense X rewrite b", "condense Y rewrite b", "undo X"},
			map[string]string{"b/X": "b by X", "b/Y": "b by Y*", "b": "b"},
		},
		{"back in the view", []string{abc, "condense X hide b", "undo X"}, map[string]string{"b": "b*"}},
		{"dropped by a rewind", []string{abc, "condense X hide a", "rewind b"}, map[string]string{"a": "a*", "c": "c dropped"}},
		{
			"what a dropped condensation had made",
			[]string{abc, "condense X hide a; rewrite b; insert S after a", "rewind b"},
			map[string]string{"b": "b*", "b/X": "b by X dropped", "S": "S of X dropped"},
		},
		{"dropped, and there again", []string{abc, "rewind b", "undo-rewind"}, map[string]string{"c": "c*"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j := history.New()
			for _, s := range tt.steps {
				if err := do(t, j, s); err != nil {
					t.Fatal(err)
				}
			}
			for text, want := range tt.want {
				if got := recalled(j, text); got != want {
					t.Errorf("%q: got %q; want %q", text, got, want)
				}
			}
		})
	}
}

// TestRecallInsideResults: content of a tool result is found alone and as a part of it.
func TestRecallInsideResults(t *testing.T) {
	result := core.ToolResult{CallID: "c", Content: []core.Part{core.Text("out"), core.Image{Data: "aGk="}}}
	j := history.New()
	if err := j.Append(core.Message{ID: "m", Role: core.RoleUser, Parts: []core.Part{result, core.Text("out")}}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []core.Part{result, result.Content[0], result.Content[1]} {
		if got := j.Recall(core.Handle(p)); len(got) != 1 || !core.EqualParts([]core.Part{got[0].Part}, []core.Part{p}) {
			t.Errorf("%v: got %v", p, got)
		}
	}
}

// TestRecallFindsEverything: whatever was condensed and undone, everything that was ever
// said is found by its handle.
func TestRecallFindsEverything(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		j := history.New()
		if err := do(t, j, "append a b c d e f"); err != nil {
			t.Fatal(err)
		}
		said := map[string]bool{"a": true, "b": true, "c": true, "d": true, "e": true, "f": true}
		for i := range rapid.IntRange(0, 12).Draw(rt, "steps") {
			ids := []string{}
			for _, m := range j.View() {
				ids = append(ids, m.ID)
			}
			id := fmt.Sprintf("C%d", i)
			switch rapid.SampledFrom([]string{"hide", "rewrite", "undo", "rewind", "undo-rewind"}).Draw(rt, "step") {
			case "rewind":
				if err := j.Rewind(rapid.SampledFrom(j.Timeline()).Draw(rt, "message").Original.ID); err != nil {
					t.Fatal(err)
				}
			case "undo-rewind":
				_, _ = j.UndoRewind() // there may be none
			case "undo":
				if all := j.Condensations(); len(all) > 0 {
					if err := j.Undo(rapid.SampledFrom(all).Draw(rt, "condensation").ID); err != nil {
						t.Fatal(err)
					}
				}
			case "rewrite":
				if len(ids) == 0 {
					continue
				}
				m := rapid.SampledFrom(ids).Draw(rt, "message")
				if err := do(t, j, "condense "+id+" rewrite "+m); err != nil {
					t.Fatal(err)
				}
				said[m+"/"+id] = true
			case "hide":
				if len(ids) == 0 {
					continue
				}
				m := rapid.SampledFrom(ids).Draw(rt, "message")
				if err := do(t, j, fmt.Sprintf("condense %s hide %s; insert S%d after %s", id, m, i, m)); err != nil {
					t.Fatal(err)
				}
				said[fmt.Sprintf("S%d", i)] = true
			}
		}
		for text := range said {
			if recalled(j, text) == "" {
				t.Fatalf("%q cannot be recalled", text)
			}
		}
	})
}

func TestParseHandle(t *testing.T) {
	for text, want := range map[string]string{
		"0123456789":  "0123456789",
		"#0123456789": "0123456789",
		"[read_file main.go: 120 lines left out; recall 9f2c41d07a]": "9f2c41d07a",
		"handle=9f2c41d07a.":                   "9f2c41d07a",
		"9f2c41d07a 9f2c41d07a":                "9f2c41d07a",
		"9f2c41d07a 0123456789":                "",
		"":                                     "",
		"9f2c41d07":                            "",
		"9f2c41d07ab":                          "",
		"9F2C41D07A":                           "",
		"01a1feb9-7d8e-74b0-92ab-a8bdd72170a2": "",
		"m12":                                  "",
	} {
		if got, ok := history.ParseHandle(text); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", text, got, ok, want)
		}
	}
}

// TestOriginals: what is written is what is read, a line each with all handles.
func TestOriginals(t *testing.T) {
	messages := coretest.Session()
	for i := range messages {
		messages[i].Tokens = 7
	}
	messages[0].Source = []byte(`{"unknown":1}`)
	var b bytes.Buffer
	if err := history.EncodeOriginals(&b, messages); err != nil {
		t.Fatal(err)
	}
	if !history.IsOriginals(b.Bytes()) || strings.Contains(b.String(), "unknown") {
		t.Errorf("begins %.80q", b.String())
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	got, err := history.DecodeOriginals(&b)
	if err != nil || len(got) != len(messages) || len(lines) != len(messages) {
		t.Fatalf("got %d messages of %d in %d lines, error %v", len(got), len(messages), len(lines), err)
	}
	for i := range got {
		if !got[i].Equal(messages[i]) {
			t.Errorf("message %d: got %v; want %v", i, got[i], messages[i])
		}
		for h := range history.Handles(messages[i].Parts) {
			if !strings.Contains(lines[i], `"`+h+`"`) {
				t.Errorf("line %d lacks the handle %s", i+1, h)
			}
		}
	}
	for text, want := range map[string]string{
		"{\"handles\":[],\"message\":{\"role\":\"user\",\"parts\":[]}}\nrubbish\n": `line 2: found "rubbish"; want {"handles":…,"message":…}`,
		`{"handles":3}`: `line 1: found a JSON number, want a JSON array in handles`,
		`{"handles":`:   `line 1: unexpected end of JSON input`,
	} {
		if _, err := history.DecodeOriginals(strings.NewReader(text)); err == nil || err.Error() != want {
			t.Errorf("%q: got error %v; want %s", text, err, want)
		}
	}
}
