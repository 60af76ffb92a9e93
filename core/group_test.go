package core_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// tooled makes messages of words such as "c1" (calls tool 1), "r1" (answers it), "c1,c2"
// (two calls) and "t" (text).
func tooled(words string) []core.Message {
	var ms []core.Message
	for i, w := range strings.Fields(words) {
		m := core.Message{ID: fmt.Sprintf("m%d", i), Role: core.RoleAssistant}
		for p := range strings.SplitSeq(w, ",") {
			switch p[0] {
			case 'c':
				m.Parts = append(m.Parts, core.ToolCall{ID: p[1:], Name: "tool"})
			case 'r':
				m.Parts = append(m.Parts, core.ToolResult{CallID: p[1:]})
			default:
				m.Parts = append(m.Parts, core.Text(p))
			}
		}
		ms = append(ms, m)
	}
	return ms
}

func TestGroups(t *testing.T) {
	for _, tt := range []struct{ name, messages, want string }{
		{"nothing", "", ""},
		{"text stands alone", "t t", "0-1 1-2"},
		{"call and result", "t c1 r1 t", "0-1 1-3 3-4"},
		{"parallel calls, one result each", "c1,c2 r1 r2 t", "0-3 3-4"},
		{"results in one message", "c1,c2 r2,r1 t", "0-2 2-3"},
		{"crossing pairs", "c1 c2 r1 r2", "0-4"},
		{"nested pairs", "c1 c2 r2 r1", "0-4"},
		{"a result that is also a call", "c1 r1,c2 r2", "0-3"},
		{"text in between", "c1 t r1", "0-3"},
		{"pending call", "t c1", "0-1 1-2"},
		{"orphaned result", "r1 t", "0-1 1-2"},
		{"result before its call", "r1 c1", "0-1 1-2"},
		{"ID used again", "c1 r1 c1 r1", "0-2 2-4"},
		{"ID used again before the answer", "c1 t,c1 r1 t,r1", "0-4"},
		{"call and result in one message", "c1,r1 t", "0-1 1-2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, g := range core.Groups(tooled(tt.messages)) {
				got = append(got, fmt.Sprintf("%d-%d", g.Start, g.End))
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("%s: got %s, want %s", tt.messages, got, tt.want)
			}
		})
	}
}

// Hiding any groups but those that await results is valid for every history, however odd:
// this is what they are for.
func TestHidingWholeGroupsKeepsPairs(t *testing.T) {
	words := rapid.SliceOfN(rapid.SampledFrom([]string{"t", "c1", "c2", "c1,c2", "r1", "r2", "r1,r2", "r2,c1", "t,c1"}), 1, 14)
	rapid.Check(t, func(t *rapid.T) {
		ms := tooled(strings.Join(words.Draw(t, "messages"), " "))
		groups := core.Groups(ms)
		var kept []core.Message
		end := 0
		for _, g := range groups {
			if g.Start != end || g.End <= g.Start {
				t.Fatalf("groups %v leave a gap", groups)
			}
			end = g.End
			awaits := slices.ContainsFunc(core.Pending(ms), func(i int) bool { return g.Start <= i && i < g.End })
			if rapid.Bool().Draw(t, "keep") || awaits {
				kept = append(kept, ms[g.Start:g.End]...)
			}
		}
		if end != len(ms) {
			t.Fatalf("groups %v do not cover %d messages", groups, len(ms))
		}
		if len(kept) == 0 {
			return
		}
		if err := core.Verify(&core.Request{Messages: ms}, &core.Result{Messages: kept}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestByDefinition compares with the definitions, at whatever cost: two messages are of one
// group if a pair of call and result, or a chain of pairs that overlap, spans both; a call
// is pending if it has no answer and only messages of the assistant and results follow it.
func TestByDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := anyTools(t)
		partner := pairs(ms)
		answered := map[place]bool{}
		cut := make([]bool, len(ms)+1) // whether a group may begin with the message
		for i := range cut {
			cut[i] = true
		}
		for result, call := range partner {
			answered[call] = true
			for i := call.message + 1; i <= result.message; i++ {
				cut[i] = false
			}
		}
		var groups []core.Span
		for i := range ms {
			if cut[i] {
				groups = append(groups, core.Span{Start: i})
			}
			groups[len(groups)-1].End = i + 1
		}
		if got := core.Groups(ms); !slices.Equal(got, groups) {
			t.Fatalf("groups: got %v, want %v", got, groups)
		}
		var pending []int
		walk(ms, func(at place, p core.Part) {
			if _, ok := p.(core.ToolCall); !ok || answered[at] {
				return
			}
			for _, m := range ms[at.message+1:] {
				isResult := func(p core.Part) bool { _, ok := p.(core.ToolResult); return ok }
				if m.Role != core.RoleAssistant && !slices.ContainsFunc(m.Parts, isResult) {
					return
				}
			}
			pending = append(pending, at.message)
		})
		if got, want := core.Pending(ms), slices.Compact(pending); !slices.Equal(got, want) {
			t.Fatalf("pending: got %v, want %v", got, want)
		}
	})
}

// anyTools draws messages with calls and results in any order, of few IDs or of many, and
// now and then a word of the user.
func anyTools(t *rapid.T) []core.Message {
	ids := rapid.SampledFrom([]int{1, 3, 40}).Draw(t, "ids")
	users := rapid.IntRange(0, 3).Draw(t, "users in ten")
	calls := rapid.IntRange(4, 9).Draw(t, "calls in ten")
	var words []string
	user := map[int]bool{}
	for i := range rapid.IntRange(0, 60).Draw(t, "messages") {
		if rapid.IntRange(0, 9).Draw(t, "who") < users {
			user[i] = true
			words = append(words, "t")
			continue
		}
		var parts []string
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			kind := "r"
			if rapid.IntRange(0, 9).Draw(t, "kind") < calls {
				kind = "c"
			}
			parts = append(parts, fmt.Sprint(kind, rapid.IntRange(1, ids).Draw(t, "id")))
		}
		words = append(words, strings.Join(parts, ","))
	}
	ms := tooled(strings.Join(words, " "))
	for i := range user {
		ms[i].Role = core.RoleUser
	}
	return ms
}

// TestKeepGroups checks that calls and results stay together, and that protected messages
// and those to be kept are in the result.
func TestKeepGroups(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		messages := coretest.Random(rand.New(rand.NewPCG(seed, 0)), nil)
		r := rand.New(rand.NewPCG(seed, 1))
		keep := map[string]bool{}
		for _, m := range messages {
			keep[m.ID] = r.IntN(4) == 0
		}
		got := core.KeepGroups(messages, func(i int) bool { return keep[messages[i].ID] })
		there := map[string]bool{}
		for _, m := range got {
			there[m.ID] = true
		}
		for _, m := range messages {
			if (keep[m.ID] || m.Protected) && !there[m.ID] {
				rt.Errorf("message %s is missing", m.ID)
			}
		}
		if len(got) == 0 {
			return
		}
		err := core.Verify(coretest.HalfRequest(messages), &core.Result{Messages: got})
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			for _, err := range joined.Unwrap() {
				if v, ok := err.(*core.ViolationError); ok && v.Rule != "first-role" { //nolint:errorlint // as Verify documents
					rt.Error(err)
				}
			}
		}
	})
}

func TestCountEach(t *testing.T) {
	got := core.CountEach(coretest.Counter{}, []core.Part{core.Text("12345")}, nil, []core.Part{core.Text("1"), core.Text("2")})
	if want := []int{2, 0, 2}; !slices.Equal(got, want) {
		t.Errorf("got %v; want %v", got, want)
	}
}
