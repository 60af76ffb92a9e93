package canary_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/lab/canary"
)

// session returns a session of n turns, each with a result of 20 lines.
func session(n int) []core.Message {
	out := []core.Message{coretest.User(core.Text("Find the walrus."))}
	for i := range n {
		id := fmt.Sprint("c", i)
		out = append(out,
			coretest.Assistant(core.Text("I look further."), core.ToolCall{ID: id, Name: "read_file", Args: fmt.Sprintf(`{"path":"f%d"}`, i)}),
			coretest.User(core.ToolResult{CallID: id, Content: []core.Part{core.Text(strings.Repeat(fmt.Sprintf("a line of file %d\n", i), 20))}}))
	}
	return coretest.Conversation(append(out, coretest.Assistant(core.Text("Done.")))...)
}

func size(messages []core.Message) int {
	n := 0
	for i := range messages {
		n += messages[i].Tokens
	}
	return n
}

// TestPlanted: what was planted is found where nothing was removed, and not where it was; every type is there
// as often, the updates too, and the session is otherwise as it was.
func TestPlanted(t *testing.T) {
	was := session(200)
	for n := range uint64(40) {
		set, seed := canary.Sets[n%2], n/2
		messages, planted := canary.Plant(set, was, "walrus", size(was)*3/4, seed, false)
		if again, same := canary.Plant(set, was, "walrus", size(was)*3/4, seed, false); !cmp.Equal(messages, again) || len(same) != len(planted) {
			t.Fatal("not the same twice")
		}
		whole, before := canary.NewView(messages), canary.NewView(was)
		byType, updates, reworded := map[canary.Type]int{}, 0, 0
		ids := map[string]bool{}
		for _, m := range messages {
			ids[m.ID] = true
		}
		for _, c := range planted {
			byType[c.Type]++
			if !ids[c.Message] || c.Update != "" && !ids[c.Update] {
				t.Fatalf("%+v: no such message", c)
			}
			if st := whole.State(&c, false); !st.Kept || st.Updated || st.Stale {
				t.Errorf("seed %d, %+v: %+v in the whole", seed, c, st)
			}
			if c.Update != "" {
				updates++
				if c.Reworded {
					reworded++
				}
				if st := whole.State(&c, true); !st.Kept || !st.Updated || !st.Stale {
					t.Errorf("seed %d, %+v: %+v after the update in the whole", seed, c, st)
				}
				gone := canary.NewView(slices.DeleteFunc(slices.Clone(messages), func(m core.Message) bool { return m.ID == c.Update }))
				if st := gone.State(&c, true); st.Kept || !st.Stale {
					t.Errorf("seed %d, %+v: %+v without the update", seed, c, st)
				}
			}
			if st := before.State(&c, false); st.Kept {
				t.Errorf("seed %d, %+v: kept before it was planted", seed, c)
			}
		}
		for _, typ := range canary.Types[:canary.Said] {
			if byType[typ] != 3 {
				t.Errorf("seed %d: %v", seed, byType)
			}
		}
		if byType[canary.Hostile] != 2 || byType[canary.Neutral] != 2 || updates != 5 || reworded < 2 {
			t.Errorf("seed %d: %v, %d updates, %d in other words", seed, byType, updates, reworded)
		}
		rest := slices.DeleteFunc(messages, func(m core.Message) bool { return strings.HasPrefix(m.ID, "canary-") })
		changed := 0
		for i := range rest {
			if !rest[i].Equal(was[i]) {
				changed++
			}
		}
		if len(rest) != len(was) || changed == 0 || changed > 4 {
			t.Errorf("seed %d: %d of %d messages changed", seed, changed, len(rest))
		}
	}
}

// TestSwapped: exchanged, hostile and neutral lines have the same places, length and values.
func TestSwapped(t *testing.T) {
	was := session(200)
	one, a := canary.Plant(canary.First, was, "walrus", size(was)*3/4, 7, false)
	two, b := canary.Plant(canary.First, was, "walrus", size(was)*3/4, 7, true)
	for i := range a {
		of, to := a[i].Type, b[i].Type
		if exchanged := map[canary.Type]canary.Type{canary.Hostile: canary.Neutral, canary.Neutral: canary.Hostile}[of]; exchanged != "" {
			of = exchanged
		}
		if of != to || a[i].Message != b[i].Message {
			t.Errorf("%+v, exchanged %+v", a[i], b[i])
		}
	}
	for i := range one {
		n, m := core.ContentBytes(one[i].Parts...), core.ContentBytes(two[i].Parts...)
		if max(n, m)-min(n, m) > 10 {
			t.Errorf("message %d has %d bytes, exchanged %d", i, n, m)
		}
	}
}
