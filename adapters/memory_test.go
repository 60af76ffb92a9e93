package adapters_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/adapters"
	"github.com/condensehq/condense/adapters/internal/play"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
)

// A word is the message of a small library: who says it, and a note that no model sees.
type word struct{ Who, Text, Note string }

type codec struct{}

func (codec) Read(w word) (core.Message, error) {
	source, err := json.Marshal(w)
	return core.Message{Role: core.Role(w.Who), Parts: []core.Part{core.Text(w.Text)}, Source: source}, err
}

func (codec) Parse(source json.RawMessage) (w word, err error) {
	err = json.Unmarshal(source, &w)
	return w, err
}

func (codec) Write(m core.Message, _ *word) ([]word, error) {
	return []word{{Who: string(m.Role), Text: adapters.Joined(m.Parts)}}, nil
}

// talk returns n messages.
func talk(n int) []word {
	out := []word{{Who: "system", Text: "Be brief."}}
	for i := range n {
		out = append(out, word{"user", fmt.Sprintf("%d: %s", i, play.Words()[0]), ""}, word{"assistant", play.Result(fmt.Sprint("f", i)), ""})
	}
	return append(out, word{"user", "Go on.", ""})
}

func shorten(t *testing.T, m *adapters.Memory[word], messages []word) []word {
	t.Helper()
	out, err := m.Shorten(t.Context(), condense.Turn{}, messages)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestAgentGoesBack: an agent that takes back its last messages, in either form of its history, gets the conversation of that time.
func TestAgentGoesBack(t *testing.T) {
	m, all := adapters.NewMemory(play.Open(t), codec{}, nil), talk(30)
	sent := shorten(t, m, all)
	if len(sent) >= len(all) || sent[0] != all[0] || sent[len(sent)-1] != all[len(all)-1] {
		t.Fatalf("%d messages of %d", len(sent), len(all))
	}
	for name, back := range map[string][]word{"all": all[:len(all)-1], "sent": sent[:len(sent)-1]} {
		again := shorten(t, m, append(slices.Clone(back), word{"user", "Stop.", name}))
		if !slices.Equal(again[:len(again)-1], sent[:len(sent)-1]) || again[len(again)-1].Note != name {
			t.Errorf("%s: %d messages, the last is %v", name, len(again), again[len(again)-1])
		}
		if n := len(m.Conversation().Journal().Messages()); n != len(all)-1 {
			t.Errorf("%s: %d messages are recorded", name, n)
		}
	}
	// To before the condensation: it is gone.
	if few := shorten(t, m, all[:12]); !slices.Equal(few, all[:12]) || len(m.Conversation().Journal().Condensations()) > 0 {
		t.Errorf("%d messages", len(few))
	}
}

// TestNotes: fields that no model sees may change; the agent's latest ones are returned.
func TestNotes(t *testing.T) {
	m, all := adapters.NewMemory(play.Open(t), codec{}, nil), talk(2)
	shorten(t, m, all)
	all[2].Note = "read"
	if out := shorten(t, m, all); !slices.Equal(out, all) || len(m.Conversation().Journal().Messages()) != len(all)-1 {
		t.Errorf("got %v", out)
	}
}

// TestAnotherConversation: a memory of its own begins again; one of a journal does not mix two conversations.
func TestAnotherConversation(t *testing.T) {
	h := play.Open(t)
	m := adapters.NewMemory(h, codec{}, nil)
	shorten(t, m, talk(30))
	other := []word{{"user", "Hello", ""}}
	if out := shorten(t, m, other); !slices.Equal(out, other) {
		t.Errorf("got %v", out)
	}
	m = adapters.NewMemory(h, codec{}, condense.NewConversation())
	shorten(t, m, talk(3))
	if _, err := m.Shorten(t.Context(), condense.Turn{}, other); !errors.Is(err, adapters.ErrForeign) {
		t.Errorf("got %v", err)
	}
}

// TestRestart: a journal on disk goes on in another process, whichever messages the agent has.
func TestRestart(t *testing.T) {
	h, all := play.Open(t), talk(30)
	for name, agents := range map[string]func(sent []word) []word{
		"all": func([]word) []word { return all }, "sent": func(sent []word) []word { return sent },
	} {
		path := filepath.Join(t.TempDir(), "journal")
		f, err := history.Create(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		sent := shorten(t, adapters.NewMemory(h, codec{}, condense.ResumeConversation(f.Journal)), all)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		f, _, err = history.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		m := adapters.NewMemory(h, codec{}, condense.ResumeConversation(f.Journal))
		more := []word{{"assistant", "I do.", ""}, {"user", "Thanks.", ""}}
		if out := shorten(t, m, append(slices.Clone(agents(sent)), more...)); !slices.Equal(out, append(slices.Clone(sent), more...)) {
			t.Errorf("%s: %d messages, want %d", name, len(out), len(sent)+2)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestParallelResults: results of parallel calls may come in any order, and are no other conversation.
func TestParallelResults(t *testing.T) {
	type part = core.Message
	same := adapters.Kept([]core.Part{core.Text("a"), core.Text("b"), core.Text("a")}, []core.Part{core.Text("b"), core.Text("c"), core.Text("a")})
	if !slices.Equal(same, []int{1, -1, 2}) {
		t.Errorf("got %v", same)
	}
	call := func(id string) core.Part { return core.ToolCall{ID: id, Name: "read", Args: "{}"} }
	result := func(id string) part {
		return part{Role: core.RoleTool, Parts: []core.Part{core.ToolResult{CallID: id, Content: []core.Part{core.Text(id)}}}}
	}
	m := adapters.NewMemory(play.Open(t), plain{}, nil)
	all := []part{{Role: core.RoleUser, Parts: []core.Part{core.Text("Go.")}}, {Role: core.RoleAssistant, Parts: []core.Part{call("a"), call("b"), call("c")}}, result("b"), result("c"), result("a")}
	for _, order := range [][]int{{2, 3, 4}, {4, 3, 2}, {3, 4, 2}} {
		given := []part{all[0], all[1], all[order[0]], all[order[1]], all[order[2]]}
		out, err := m.Shorten(t.Context(), condense.Turn{}, given)
		if err != nil || len(out) != 5 || !out[2].Equal(result("a")) || !out[4].Equal(result("c")) {
			t.Errorf("%v: got %v, %v", order, out, err)
		}
	}
	if n := len(m.Conversation().Journal().Messages()); n != 5 {
		t.Errorf("%d messages are recorded", n)
	}
}

// A plain codec is of core's own messages.
type plain struct{}

func (plain) Read(m core.Message) (core.Message, error) {
	source, err := json.Marshal(core.Message{Role: m.Role, Parts: m.Parts})
	return core.Message{Role: m.Role, Parts: m.Parts, Source: source}, err
}

func (plain) Parse(s json.RawMessage) (m core.Message, e error) {
	e = json.Unmarshal(s, &m)
	return m, e
}

func (plain) Write(m core.Message, _ *core.Message) ([]core.Message, error) {
	return []core.Message{{Role: m.Role, Parts: m.Parts}}, nil
}
