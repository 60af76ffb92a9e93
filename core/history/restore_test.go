package history_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
)

// timeline makes messages of words: summaries of upper case, others of lower case. A word
// such as "a@3" is of second 3.
func timeline(words string) []core.Message {
	var ms []core.Message
	for word := range strings.FieldsSeq(words) {
		id, second, timed := strings.Cut(word, "@")
		m := message(id)
		if strings.ToUpper(id) == id {
			m = summary(id)
		}
		if timed {
			m.Time = at(second)
		}
		ms = append(ms, m)
	}
	return ms
}

func at(second string) time.Time {
	return time.Date(2026, 1, 1, 0, 0, len(strings.Repeat("x", int(second[0]-'0'))), 0, time.UTC)
}

func restored(t *testing.T, words string, scripts ...string) (*history.Journal, error) {
	t.Helper()
	var cs []history.Condensation
	for _, script := range scripts {
		script, second, timed := strings.Cut(script, "@")
		c := condensation(t, script)
		for i := range c.Edit.Insert {
			c.Edit.Insert[i].Message = core.Message{ID: c.Edit.Insert[i].Message.ID} // an ID is enough
		}
		if timed {
			c.Time = at(second)
		}
		cs = append(cs, c)
	}
	return history.Restore(timeline(words), cs)
}

func TestRestore(t *testing.T) {
	for _, tt := range []struct {
		name, timeline string
		condensations  []string
		steps          []string
		want           string
	}{
		{"nothing", "", nil, nil, ""},
		{"no condensation", "a b", nil, nil, "a b"},
		{"a summary at the end", "a b S", []string{"X hide a b; insert S"}, nil, "S"},
		{"a summary in front", "S a b", []string{"X hide a; insert S"}, nil, "S b"},
		{"a marker in the middle", "a b M c", []string{"X hide b; insert M"}, nil, "a M c"},
		{"two in one place", "a S T b", []string{"X hide a; insert T; insert S"}, nil, "S T b"},
		{"the younger substitutes before the older", "a T S b", []string{"X insert S", "Y hide a; insert T"}, nil, "T S b"},
		{"the younger substitutes behind the older", "a S T b", []string{"X insert S", "Y hide a; insert T"}, nil, "S T b"},
		{"interleaved", "S1 T1 a S2 T2 T3 S3 b", []string{"X insert S2; insert S1; insert S3", "Y insert T1; insert T2; insert T3"}, nil, "S1 T1 a S2 T2 T3 S3 b"},
		{"what is hidden is hidden again", "a b S T", []string{"X hide a b; insert S", "Y hide a b S; insert T"}, nil, "T"},
		{"hidden twice, one undone", "a b S T", []string{"X hide a b; insert S", "Y hide a S; insert T"}, []string{"undo X"}, "T"},
		{"hidden twice, the other undone", "a b S T", []string{"X hide a b; insert S", "Y hide a S; insert T"}, []string{"undo Y"}, "S"},
		{"nested", "a b S c T", []string{"X hide a b; insert S", "Y hide S c; insert T"}, []string{"undo X"}, "T"},
		{"all undone", "a b S c T", []string{"X hide a b; insert S", "Y hide S c; insert T"}, []string{"undo X", "undo Y"}, "a b c"},
		{"rewritten", "a b", []string{"X rewrite a", "Y rewrite a b"}, []string{"undo Y"}, "a/X b"},
		{"a condensation that left no trace", "a b", []string{"X"}, nil, "a b"},

		{"rewind to before the condensation", "a b S c", []string{"X hide a b; insert S"}, []string{"rewind b"}, "a b"},
		{"rewind to the summary", "a b S c", []string{"X hide a b; insert S"}, []string{"rewind S"}, "S"},
		{"rewind to behind the summary", "a b S c d", []string{"X hide a b; insert S"}, []string{"rewind c"}, "S c"},
		{"by place, c was not there", "a M b c", []string{"X hide a; insert M"}, []string{"rewind c"}, "M b c"},
		{"by time, b was there", "a@1 M@5 b@4 c@6", []string{"X hide a; insert M@5"}, []string{"rewind b"}, "a b"},
		{"by time, c was not there", "a@1 M@5 b@4 c@6", []string{"X hide a; insert M@5"}, []string{"rewind c"}, "M b c"},
		{"by time, b is of the same second", "a@1 M@5 b@5 c@6", []string{"X hide a; insert M@5"}, []string{"rewind b"}, "a b"},
		{"unknown times are no hindrance", "a M b c", []string{"X hide a; insert M@5"}, []string{"rewind b"}, "M b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j, err := restored(t, tt.timeline, tt.condensations...)
			if err != nil {
				t.Fatal(err)
			}
			var order []string
			for _, e := range j.Timeline() {
				order = append(order, e.Original.ID)
			}
			var want []string
			for _, m := range timeline(tt.timeline) {
				want = append(want, m.ID)
			}
			if !slices.Equal(order, want) {
				t.Errorf("timeline: got %s, want %s", order, want)
			}
			run(t, j, tt.steps...)
			if got := says(j.View()); got != tt.want {
				t.Errorf("view: got %s, want %s", got, tt.want)
			}
			if got := says(decode(t, encode(t, j)).View()); got != tt.want {
				t.Errorf("decoded view: got %s, want %s", got, tt.want)
			}
			run(t, j, "append new")
		})
	}
}

func TestRestoreRefusesWhatDoesNotFit(t *testing.T) {
	for _, tt := range []struct {
		timeline      string
		condensations []string
		want          string
	}{
		{"a b a", nil, `restore: message "a" is in the timeline twice`},
		{"a \xff", nil, `restore: message "\xff": the ID is not valid UTF-8`},
		{"a", []string{"X insert S"}, `restore: condensation "X" inserts message "S", which is not in the timeline`},
		{"a S", []string{"X insert S", "Y insert S"}, `restore: condensation "Y" inserts message "S", which condensation "X" inserted`},
		{"a S", []string{"X insert S; insert S"}, `restore: condensation "X" inserts message "S", which condensation "X" inserted`},
		{"a", []string{"X hide b"}, `restore: condensation "X" hides message "b", which does not exist`},
		{"a", []string{"X rewrite b"}, `restore: condensation "X" rewrites message "b", which does not exist`},
		{"a S", []string{"X hide S", "Y insert S"}, `restore: condensation "X" hides message "S", which does not exist`},
		{"a b", []string{"X hide a", "X hide b"}, `restore: condensation "X": the ID was used before in this journal`},
	} {
		j, err := restored(t, tt.timeline, tt.condensations...)
		if err == nil || err.Error() != tt.want || j != nil {
			t.Errorf("%s %q: got error %v, want %s", tt.timeline, tt.condensations, err, tt.want)
		}
	}
}

// What a codec writes with the help of Timeline and Condensations, Restore reads.
func TestRestoreOfATimelineGivesTheSameJournal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &walk{T: t, journal: history.New(), model: &model{}, calls: map[string][2]string{}, moments: map[string]snapshot{}}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			if rapid.IntRange(0, 2).Draw(t, "step") == 0 {
				c := history.Condensation{ID: w.name("X"), Edit: w.edit()}
				if !c.Edit.Empty() {
					w.must(w.journal.Condense(c))
				}
			} else {
				w.appendSome()
			}
		}
		var all []core.Message
		for _, e := range w.journal.Timeline() {
			all = append(all, e.Original)
		}
		j, err := history.Restore(all, w.journal.Condensations())
		w.must(err)
		// Where a place has a choice of anchors, another one may be named.
		anchors := cmpopts.IgnoreFields(core.Insert{}, "After")
		if diff := cmp.Diff(w.journal.Timeline(), j.Timeline(), exactly); diff != "" {
			t.Fatalf("timelines differ:\n%s", diff)
		}
		w.same("view", j.View(), w.journal.View())
		for i, c := range j.Condensations() {
			want := w.journal.Condensations()[i]
			byID := cmpopts.SortSlices(func(a, b core.Insert) bool { return a.Message.ID < b.Message.ID })
			if diff := cmp.Diff(want, c, exactly, anchors, byID); diff != "" {
				t.Fatalf("condensation %s:\n%s", c.ID, diff)
			}
		}
	})
}

// A codec that writes what replaces hidden messages loses no undo, however many condensations
// were undone before.
func TestRestoreWithSubstitutesKeepsEveryUndo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := &walk{T: t, journal: history.New(), model: &model{}, calls: map[string][2]string{}, moments: map[string]snapshot{}}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				w.undo()
			case 1:
				w.appendSome()
			default:
				w.condense()
			}
		}
		j := w.journal
		var all []core.Message
		known := map[string]bool{}
		for _, e := range j.Timeline() {
			all = append(all, e.Original)
			known[e.Original.ID] = true
		}
		var cs []history.Condensation
		for _, c := range j.Condensations() {
			c.Substitutes = j.Substitutes()[c.ID]
			c.Edit.Hide = slices.Sorted(maps.Keys(c.Substitutes))
			c.Edit.Rewrite = slices.DeleteFunc(slices.Clone(c.Edit.Rewrite), func(r core.Rewrite) bool { return !known[r.ID] })
			cs = append(cs, c)
		}
		restored, err := history.Restore(all, cs)
		w.must(err)
		for len(cs) > 0 {
			want, got := j.Timeline(), restored.Timeline()
			if diff := cmp.Diff(want, got, exactly); diff != "" {
				t.Fatalf("timelines differ (-want +got):\n%s", diff)
			}
			k := rapid.IntRange(0, len(cs)-1).Draw(t, "undone")
			w.must(j.Undo(cs[k].ID))
			w.must(restored.Undo(cs[k].ID))
			cs = slices.Delete(cs, k, k+1)
			var log bytes.Buffer // which keeps it too
			w.must(history.Encode(&log, restored))
			restored, _, err = history.Decode(&log)
			w.must(err)
		}
		w.same("with everything undone", restored.View(), j.Messages())
	})
}
