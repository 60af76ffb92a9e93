package core_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
)

func texts(ids ...string) []core.Message {
	var ms []core.Message
	for _, id := range ids {
		ms = append(ms, core.Message{ID: id, Role: core.RoleUser, Parts: []core.Part{core.Text("says " + id)}})
	}
	return ms
}

func idsOf(ms []core.Message) string {
	var ids []string
	for i := range ms {
		ids = append(ids, ms[i].ID)
	}
	return strings.Join(ids, " ")
}

func sameMessages(a, b []core.Message) bool { return slices.EqualFunc(a, b, core.Message.Equal) }

func TestDiffInsertsAfterReplacedMessages(t *testing.T) {
	for _, tt := range []struct{ name, before, after, hide, insert string }{
		{"nothing changed", "a b c", "a b c", "", ""},
		{"summary of the middle", "a b c d", "a S d", "b c", "S after c"},
		{"summary of everything", "a b", "S", "a b", "S after b"},
		{"in front", "a b", "S a b", "", "S after "},
		{"two at one place", "a b c", "a S T c", "b", "S after b,T after b"},
		{"at two places", "a b c d e", "a S c T e", "b d", "S after b,T after d"},
		{"summary before what it hides is behind it", "a b c", "a S c", "b", "S after b"},
		{"from nothing", "", "S", "", "S after "},
		{"to nothing", "a b", "", "a b", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := core.Diff(texts(strings.Fields(tt.before)...), texts(strings.Fields(tt.after)...))
			var insert []string
			for _, in := range e.Insert {
				insert = append(insert, in.Message.ID+" after "+in.After)
			}
			if got := strings.Join(e.Hide, " "); got != tt.hide {
				t.Errorf("hide: got %q, want %q", got, tt.hide)
			}
			if got := strings.Join(insert, ","); got != tt.insert {
				t.Errorf("insert: got %q, want %q", got, tt.insert)
			}
			if len(e.Rewrite) > 0 {
				t.Errorf("rewrite: got %v, want none", e.Rewrite)
			}
		})
	}
}

// shortened draws what a provider may make of a conversation.
func shortened(t *rapid.T, before []core.Message) []core.Message {
	var after []core.Message
	add := func() {
		for range rapid.IntRange(0, 2).Draw(t, "new") {
			after = append(after, core.Message{ID: fmt.Sprintf("new%d", len(after)), Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("summary")}})
		}
	}
	add()
	for _, m := range before {
		switch rapid.IntRange(0, 2).Draw(t, "fate") {
		case 0:
			after = append(after, m)
		case 1:
			m.Parts = rapid.SliceOfN(anyPart(1), 0, 2).Draw(t, "parts")
			after = append(after, m)
		}
		add()
	}
	return after
}

func TestApplyOfDiffGivesTheResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var ids []string
		for i := range rapid.IntRange(0, 12).Draw(t, "messages") {
			ids = append(ids, fmt.Sprintf("m%d", i))
		}
		before := texts(ids...)
		for i := range before {
			before[i].Tokens, before[i].Source = 7, []byte(`{}`)
		}
		untouched := slices.Clone(before)
		after := shortened(t, before)
		edit := core.Diff(before, after)
		got, err := edit.Apply(before)
		if err != nil {
			t.Fatal(err)
		}
		if !sameMessages(got, after) {
			t.Fatalf("got %s, want %s\nedit %+v", idsOf(got), idsOf(after), edit)
		}
		if diff := cmp.Diff(untouched, before); diff != "" {
			t.Fatalf("apply modified its input:\n%s", diff)
		}
		if edit.Empty() != sameMessages(before, after) {
			t.Fatalf("edit %+v: got empty %v, want %v", edit, edit.Empty(), !edit.Empty())
		}
		if again := core.Diff(before, got); editsDiffer(again, edit) != "" {
			t.Fatalf("got edit %+v of the result, want %+v", again, edit)
		}
		for _, r := range edit.Rewrite {
			i := slices.IndexFunc(got, func(m core.Message) bool { return m.ID == r.ID })
			if got[i].Source != nil || got[i].Tokens != 0 {
				t.Fatalf("rewritten message %s still has the source and tokens of its former parts", r.ID)
			}
		}
	})
}

func TestApplyRefusesEditsOfOtherConversations(t *testing.T) {
	insert := func(after, id string) core.Edit {
		return core.Edit{Insert: []core.Insert{{After: after, Message: core.Message{ID: id}}}}
	}
	twice := insert("a", "n")
	twice.Insert = append(twice.Insert, twice.Insert[0])
	for _, tt := range []struct {
		edit core.Edit
		want string
	}{
		{core.Edit{Hide: []string{"x"}}, `edit hides message "x", which does not exist`},
		{core.Edit{Rewrite: []core.Rewrite{{ID: "x"}}}, `edit rewrites message "x", which does not exist`},
		{insert("x", "n"), `edit inserts after message "x", which does not exist`},
		{insert("a", "b"), `edit inserts message "b": want an ID that is not in use`},
		{insert("a", ""), `edit inserts message "": want an ID that is not in use`},
		{twice, `edit inserts message "n": want an ID that is not in use`},
	} {
		got, err := tt.edit.Apply(texts("a", "b"))
		if err == nil || err.Error() != tt.want || got != nil {
			t.Errorf("got %v, error %v, want error %s", got, err, tt.want)
		}
	}
}
