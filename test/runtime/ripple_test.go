package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/model"
)

// likeRipple is the configuration that Ripple's documentation describes.
const likeRipple = `
default_profile: local
profiles:
  local: {window: 32768, threshold: 85, max_output: 1000, min_new_tokens: 0, originals: parts, chain: [compact]}
providers:
  compact: {strategy: native, settings: {preset: rolling}}
`

// A writer is a language model with a fixed answer.
type writer struct{ text string }

func (w *writer) Generate(context.Context, *model.Prompt) (*model.Answer, error) {
	return &model.Answer{Text: w.text, Usage: core.Usage{Calls: 1, InputTokens: 100, OutputTokens: 10}}, nil
}

func (w *writer) Info() model.Info { return model.Info{Name: "writer", Window: 32_768} }

// A session is a conversation that a user and an agent continue.
type session struct {
	*condense.Conversation
	t    *testing.T
	said int
}

func (s *session) turn() {
	s.t.Helper()
	s.said++
	id := fmt.Sprintf("%d-", s.said)
	if err := s.Append(
		core.Message{ID: id + "a", Role: core.RoleUser, Parts: []core.Part{core.Text("Go on with the parser.")}},
		core.Message{ID: id + "b", Role: core.RoleAssistant, Parts: []core.Part{core.ToolCall{ID: id, Name: "read", Args: `{"path":"p.go"}`}}},
		core.Message{ID: id + "c", Role: core.RoleTool, Parts: []core.Part{core.ToolResult{CallID: id, Content: []core.Part{core.Text(strings.Repeat("word ", 1200))}}}},
		core.Message{ID: id + "d", Role: core.RoleAssistant, Parts: []core.Part{core.Text("Done.")}},
	); err != nil {
		s.t.Fatal(err)
	}
}

// TestRipple is the compaction of Ripple's documentation, with its files: one of originals
// for each round, after a summary that is valid and smaller, and none
// otherwise.
func TestRipple(t *testing.T) {
	w := &writer{"- Goals: a parser. - State: half done."}
	h := start(t, &condense.Options{Load: loadText(t, likeRipple), Models: map[string]model.Generator{"writer": w}})
	s := &session{Conversation: condense.NewConversation(), t: t}
	dir := filepath.Join(t.TempDir(), "history")
	s.KeepOriginals(dir)
	manage := func(trigger core.Trigger) *condense.Report {
		t.Helper()
		r, err := h.Manage(t.Context(), s.Conversation, condense.Turn{
			Trigger: trigger, System: "You are Ripple.", Tools: json.RawMessage(`[{"name":"read","input_schema":{"type":"object"}}]`),
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	parts := func() int {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}

	for round := 1; round <= 3; round++ {
		// Nothing happens below 85 % of the window, system prompt and tools included.
		r := manage("")
		for ; !r.Acted; r = manage("") {
			if r.Budget.Percent >= 85 || parts() != round-1 {
				t.Fatalf("round %d: %d files at %.0f %%: %s", round, parts(), r.Budget.Percent, r.Reason)
			}
			s.turn()
		}
		if r.Budget.Percent < 85 || r.Budget.Percent > 91 {
			t.Errorf("round %d: condensed at %.0f %% of the window", round, r.Budget.Percent)
		}
		// The summary has the role user, the assistant acknowledges it, and a tail of whole turns
		// follows, of at most 6 messages.
		view := s.View()
		if len(view) < 3 || len(view) > 8 || view[0].Kind != core.KindSummary || view[0].Role != core.RoleUser ||
			view[1].Role != core.RoleAssistant || view[2].Role != core.RoleUser || view[2].Kind != core.KindOriginal {
			t.Fatalf("round %d: got a view of %d messages: %+v", round, len(view), view)
		}
		// The originals are in a file of this round, and the summary says where.
		name := filepath.Join(dir, fmt.Sprintf("part-%d.jsonl", round))
		hidden := readPart(t, name)
		if r.Originals != name || len(hidden) != r.Messages.Hidden || parts() != round {
			t.Errorf("round %d: %d messages in %s, %d hidden, %d files", round, len(hidden), r.Originals, r.Messages.Hidden, parts())
		}
		// Rolling: the summary of the previous round is among the replaced messages.
		if folded := hidden[0].Kind == core.KindSummary; folded != (round > 1) {
			t.Errorf("round %d: the first message that went is of kind %s", round, hidden[0].Kind)
		}
		said := fmt.Sprint(view[0].Parts)
		if !strings.Contains(said, name) || strings.Contains(said, "lower numbers") != (round > 1) {
			t.Errorf("round %d: the summary does not say where the originals are: %s", round, said)
		}
	}

	// A manual trigger at once: there is nothing new to summarize.
	if r := manage(core.TriggerManual); r.Acted || len(r.Attempts) > 0 || parts() != 3 {
		t.Errorf("with nothing new: acted %v, %d files, %s", r.Acted, parts(), r.Reason)
	}

	// A summary that is not smaller is not used, and nothing changes.
	s.turn()
	before := s.View()
	w.text = strings.Repeat("blah ", 30_000)
	r, err := h.Manage(t.Context(), s.Conversation, condense.Turn{Trigger: core.TriggerManual})
	if err == nil || !strings.Contains(err.Error(), "saves nothing") {
		t.Errorf("with a summary that is larger: got %v, want an error that says so", err)
	}
	if first := r.Attempts[0]; first.Outcome != core.OutcomeFailed || r.Usage.Calls == 0 || r.Acted || parts() != 3 {
		t.Errorf("with a summary that is larger: %s, %s, %d calls, acted %v, %d files", first.Outcome, first.Reason, r.Usage.Calls, r.Acted, parts())
	}
	if diff := cmp.Diff(before, s.View()); diff != "" {
		t.Errorf("the conversation has changed (-before +after):\n%s", diff)
	}

	// A manual trigger works at any size.
	w.text = "- Goals: a parser. - State: nearly done."
	if r := manage(core.TriggerManual); r.Attempts[0].Outcome != core.OutcomeApplied || r.Budget.Percent > 50 || parts() != 4 {
		t.Errorf("by hand at %.0f %%: %s, %d files", r.Budget.Percent, r.Attempts[0].Reason, parts())
	}
}
