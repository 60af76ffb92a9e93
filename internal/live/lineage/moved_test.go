package lineage_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/internal/live/lineage"
)

// What Claude Code sends of one conversation to a model that takes messages of the system among the others, and to one
// that does not: reminders are in the texts and results, and the thinking of the other model is left out.
var (
	newerForm = []string{
		`{"role":"user","content":[{"type":"text","text":"<system-reminder>\nSign commits.\n</system-reminder>\n"},{"type":"text","text":"Fix the build."}]}`,
		`{"role":"system","content":"# Environment\nlinux"}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s1"},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make"}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"broken"}]}`,
		`{"role":"system","content":"Keep them updated."}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s2"},{"type":"tool_use","id":"t2","name":"Bash","input":{"command":"make it"}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"whole","cache_control":{"type":"ephemeral"}}]}`,
	}
	olderForm = []string{
		`{"role":"user","content":[{"type":"text","text":"<system-reminder>\n# Environment\nlinux\nSign commits.\n</system-reminder>"},{"type":"text","text":"Fix the build."}]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make"}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"broken\n\n<system-reminder>\nKeep them updated.\n</system-reminder>"}]}`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"t2","name":"Bash","input":{"command":"make it"}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t2","content":"whole"}]}`,
	}
	later = []string{`{"role":"assistant","content":[{"type":"text","text":"Done."}]}`, `{"role":"user","content":"Thank you."}`}
)

// TestChangeOfModelAndRewind: a client that goes back to before an epoch, and changes the model, has the view of then.
func TestChangeOfModelAndRewind(t *testing.T) {
	history := append(slices.Clone(newerForm), later...)
	r, rolling := parse(t, history)
	first := &lineage.State{ID: "first"}
	first.Sent(r, rolling, begin)
	after, _ := parse(t, append([]string{`{"role":"user","content":"Summary."}`}, history[7:]...))
	second, err := first.Freeze(r, rolling, lineage.Condensed{After: after.Messages}, begin)
	if err != nil {
		t.Fatal(err)
	}
	second.ID = "second"
	second.Sent(r, rolling, begin)
	branch := append(slices.Clone(history), `{"role":"assistant","content":"Once more."}`, `{"role":"user","content":"No."}`)
	long, rolled := parse(t, branch)
	first.Sent(long, rolled, begin)
	branch[len(branch)-1] = `{"role":"user","content":"Yes."}`
	r, rolling = parse(t, branch, `"model":"claude-sonnet-4-5"`)
	if s, _ := lineage.Follow([]*lineage.State{second, first}, r, rolling); s.Condensed() {
		t.Errorf("it follows the epoch: %+v", s.Epoch)
	}
}

// TestChangeOfModel: where the agent sends the history in another form to another model, the epoch stays, in both
// directions; a change of the person's words, of a result or of nothing but the model is what it was before.
func TestChangeOfModel(t *testing.T) {
	const summary, reminder = `{"role":"user","content":"Summary."}`, `{"role":"system","content":"Linux."}`
	other := `"model":"claude-sonnet-4-5"`
	for _, tt := range []struct {
		name     string
		was, now []string
		kept     int // messages of was that the epoch left
		change   func(string) string
		model    string
		want     []string // nil: the epoch is not found
	}{
		{name: "to texts", was: newerForm, now: olderForm, kept: 2, model: other, want: olderForm[3:]},
		{name: "a reminder at the cut", was: newerForm, now: olderForm, kept: 3, model: other, want: olderForm[3:]},
		{name: "to messages", was: olderForm, now: newerForm, kept: 2, model: other, want: newerForm[5:]},
		{name: "other words", was: newerForm, now: olderForm, kept: 2, model: other, change: func(s string) string { return strings.Replace(s, "Fix the build", "Fix the test", 1) }},
		{name: "another result", was: newerForm, now: olderForm, kept: 2, model: other, change: func(s string) string { return strings.Replace(s, "broken", "fine", 1) }},
		{name: "the same model", was: newerForm, now: olderForm, kept: 2, model: `"model":"claude-opus-5-5"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, rolling := parse(t, tt.was)
			s, _ := lineage.Follow(nil, r, rolling)
			s.Adapt(r, rolling, true)
			s.Sent(r, rolling, begin)
			after, _ := parse(t, append([]string{summary, reminder}, tt.was[len(tt.was)-tt.kept:]...))
			e, err := s.Freeze(r, rolling, lineage.Condensed{After: after.Messages}, begin)
			if err != nil {
				t.Fatal(err)
			}
			e.ID = "old"
			e.Sent(r, rolling, begin.Add(time.Second))
			now := append(append([]string(nil), tt.now...), later...)
			for i := range now {
				if tt.change != nil {
					now[i] = tt.change(now[i])
				}
			}
			r, rolling = parse(t, now, tt.model)
			got, kind := lineage.Follow([]*lineage.State{e, s}, r, rolling)
			if tt.want == nil {
				if got.Epoch != nil || kind == lineage.Continue {
					t.Fatalf("the epoch goes on, kind %v", kind)
				}
				return
			}
			if kind != lineage.Fork || got.ID != "" || got.Epoch == nil {
				t.Fatalf("kind %v, ID %q, epoch %v", kind, got.ID, got.Epoch)
			}
			view := got.View(r, rolling)
			reminded := reminder
			if tt.model == other && len(tt.want) > 0 && tt.want[0] == olderForm[3] {
				reminded = `{"role":"user","content":[{"type":"text","text":"<system-reminder>\nLinux.\n</system-reminder>"}]}`
			}
			want := append([]string{"Summary.", reminded}, tt.want...)
			want = append(want, later...)
			if len(view) != len(want) || strings.Contains(texts(view), "broken") || !strings.Contains(string(view[0]), "Summary.") || !strings.Contains(string(view[1]), "Linux.") || strings.Contains(string(view[1]), `"user"`) != strings.Contains(reminded, `"user"`) {
				t.Errorf("got\n%s\nwant\n%s", texts(view), strings.Join(want, "\n"))
			}
			got.Sent(r, rolling, begin.Add(2*time.Second))
			r, rolling = parse(t, append(now, later...), tt.model)
			if again, kind := lineage.Follow([]*lineage.State{got, e, s}, r, rolling); kind != lineage.Continue || again.Epoch.Cut != got.Epoch.Cut {
				t.Errorf("the next request: kind %v", kind)
			}
		})
	}
}
