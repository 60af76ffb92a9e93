package smart

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/dialog"
)

// readings makes up a session in which a few files are read, written and run again.
func readings(t *rapid.T) []core.Message {
	messages := []core.Message{coretest.User(core.Text("Repair the tests."))}
	for i := range rapid.IntRange(2, 20).Draw(t, "calls") {
		file := rapid.IntRange(0, 2).Draw(t, "file")
		body := strings.Repeat(fmt.Sprintf("a line of file %d\n", file), 40) + fmt.Sprintf("version %d\n", rapid.IntRange(0, 3).Draw(t, "version"))
		name, args := "Read", fmt.Sprintf(`{"file_path":"f%d.go"}`, file)
		switch rapid.IntRange(0, 3).Draw(t, "tool") {
		case 0:
			name, args = "Bash", fmt.Sprintf(`{"command":"go test ./f%d"}`, file)
		case 1:
			name, args = "Write", fmt.Sprintf(`{"file_path":"f%d.go","content":%q}`, file, body)
		}
		id := fmt.Sprintf("c%d", i)
		messages = append(messages,
			coretest.Assistant(core.ToolCall{ID: id, Name: name, Args: args}),
			core.Message{Role: core.RoleTool, Parts: []core.Part{core.ToolResult{CallID: id, Content: []core.Part{core.Text(body)}}}})
	}
	return coretest.Conversation(append(messages, coretest.Assistant(core.Text("Done.")))...)
}

// TestReferencesSaveNoMoreThanIsRepeated: the passes that leave references are not tried where
// they could not meet the target, so what they could save must not be underestimated.
func TestReferencesSaveNoMoreThanIsRepeated(t *testing.T) {
	all, err := steps([]PassConfig{with("superseded", `{"by_writes": true, "runs": true}`), {Pass: "near_duplicates"}, {Pass: "duplicates"}})
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{steps: all}
	saved := 0
	rapid.Check(t, func(t *rapid.T) {
		req := coretest.Request(readings(t), 1)
		w := newWork(req, 0, new(dialog.Reader))
		w.first = req.Messages
		before, most := w.tokens, w.repeated()
		if _, err := p.run(context.Background(), w); err != nil {
			t.Fatal(err)
		}
		if before-w.tokens > most {
			t.Fatalf("%d tokens saved, and %d are repeated", before-w.tokens, most)
		}
		saved += before - w.tokens
	})
	if saved == 0 {
		t.Error("nothing was saved in any session")
	}
}

// TestWhatIsNotUsed: with value at the end, passes that leave references run only if they meet
// the target by themselves. Then value does not run; else they change nothing and the report
// says so.
func TestWhatIsNotUsed(t *testing.T) {
	body := strings.Repeat("a line of the file\n", 400)
	var messages []core.Message
	for i := range 6 {
		id := fmt.Sprintf("c%d", i)
		messages = append(messages, coretest.User(core.Text(fmt.Sprintf("Request number %d.", i))),
			coretest.Assistant(core.ToolCall{ID: id, Name: "Read", Args: `{"file_path":"a.go"}`}),
			core.Message{Role: core.RoleTool, Parts: []core.Part{core.ToolResult{CallID: id, Content: []core.Part{core.Text(body)}}}})
	}
	messages = coretest.Conversation(append(messages, coretest.Assistant(core.Text("Done.")))...)
	for _, tt := range []struct {
		name, preset string
		target       float64 // as a share of the conversation
		used         bool    // the references
		note         string  // of superseded
	}{
		{"enough", "balanced", 0.5, true, ""},
		{"plainly not enough", "balanced", 0.05, false, "not used: the extract covers it"},
		{"tried, and not enough", "aggressive", 0.2, false, "not used: would have saved "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := New(Config{Preset: tt.preset})
			if err != nil {
				t.Fatal(err)
			}
			req := coretest.Request(messages, 1)
			req = coretest.Request(messages, int(tt.target*float64(req.Tokens())))
			res, err := p.Condense(context.Background(), req)
			if err != nil {
				t.Fatal(err)
			}
			ran := map[string]core.Step{}
			for _, s := range res.Steps {
				ran[s.Name] = s
			}
			if s := ran["superseded"]; (s.Changed > 0) != tt.used || !strings.HasPrefix(s.Note, tt.note) {
				t.Errorf("superseded changed %d, with the note %q", s.Changed, s.Note)
			}
			if _, ok := ran["value"]; ok == tt.used {
				t.Errorf("value ran: %v", ok)
			}
			if refers := strings.Contains(fmt.Sprint(res.Messages), seeNewer) || strings.Contains(fmt.Sprint(res.Messages), sameText); refers != tt.used {
				t.Errorf("references left: %v", refers)
			}
		})
	}
}

// TestCacheStep: the report says how many messages a prompt cache still serves, and when
// rewriting the others pays off.
func TestCacheStep(t *testing.T) {
	message := func(id string, tokens int) core.Message {
		return core.Message{ID: id, Role: core.RoleUser, Parts: []core.Part{core.Text(id)}, Tokens: tokens}
	}
	before := []core.Message{message("a", 10), message("b", 990), message("c", 1000)}
	for _, tt := range []struct {
		after []core.Message
		want  string
	}{
		{[]core.Message{message("x", 100)}, "prompt cache: prefix kept 0 of 3 messages; rewriting pays off after 1 turn"},
		{[]core.Message{before[0], message("y", 500)}, "prompt cache: prefix kept 1 of 3 messages; rewriting pays off after 5 turns"},
		{[]core.Message{before[0], before[1], message("z", 999)}, "prompt cache: prefix kept 2 of 3 messages (50 % of the tokens); rewriting pays off after 12,488 turns"},
		{before[:2], "prompt cache: prefix kept 2 of 3 messages (50 % of the tokens); nothing to rewrite"},
	} {
		if got := cacheStep(&core.Request{Messages: before}, tt.after); got.Name != "cache" || got.Note != tt.want {
			t.Errorf("got %s %q, want %q", got.Name, got.Note, tt.want)
		}
	}
	one := before[:1]
	if got, want := cacheStep(&core.Request{Messages: one}, []core.Message{message("x", 1)}).Note, "prompt cache: prefix kept 0 of 1 message; rewriting pays off after 2 turns"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
