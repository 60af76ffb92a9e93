package smart_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/extractive"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/providers/native"
	"github.com/condensehq/condense/providers/smart"
	"github.com/condensehq/condense/registry"
)

// hybrid is the chain of the configuration file in docs/smart-passes.md.
func hybrid(t *testing.T) *core.Chain {
	t.Helper()
	doc, err := os.ReadFile("../../docs/smart-passes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(doc), "```yaml condense.yaml\n")
	text, _, _ := strings.Cut(rest, "```\n")
	var file struct {
		Profiles  map[string]struct{ Chain []string }
		Providers map[string]struct {
			Strategy string
			Settings map[string]any
		}
	}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	env := registry.Env{Model: func(name string) (model.Generator, error) {
		if name != extractive.Name {
			return nil, fmt.Errorf("no model %q", name)
		}
		return extractive.New(), nil
	}}
	var candidates []core.NamedProvider
	for _, name := range file.Profiles["hybrid"].Chain {
		settings, err := json.Marshal(file.Providers[name].Settings)
		if err != nil {
			t.Fatal(err)
		}
		strategy := map[string]registry.Strategy{smart.Name: smart.Strategy(), native.Name: native.Strategy()}[file.Providers[name].Strategy]
		p, err := strategy.Open(t.Context(), settings, env)
		if err != nil {
			t.Fatal(err)
		}
		candidates = append(candidates, core.NamedProvider{Name: name, Provider: p})
	}
	chain, err := core.NewChain(candidates, nil)
	if err != nil {
		t.Fatal(err)
	}
	return chain
}

// TestHybrid lets each of the three be the one whose result is accepted.
func TestHybrid(t *testing.T) {
	chain := hybrid(t)
	dialogue := func(n, size int) []core.Message {
		var m []core.Message
		for i := range n {
			m = append(m, coretest.User(core.Text(fmt.Sprintf("%d? %s", i, text(i, size)))), coretest.Assistant(core.Text(text(100+i, size))))
		}
		return m
	}
	calls := func(n, size int) []core.Message {
		var m []core.Message
		for i := range n {
			m = append(m, tool(strconv.Itoa(i), "bash", fmt.Sprintf(`{"command":"run %d"}`, i), code(i, size))...)
		}
		return m
	}
	for _, tt := range []struct {
		name     string
		messages []core.Message
		percent  int
		want     string
	}{
		{"many small messages", dialogue(30, 40), 60, "window"},
		{"one long result", join(say("Go."), calls(12, 50), tool("x", "bash", `{"command":"find"}`, code(9, 4000)), calls(5, 50), say("And?"), say("So?")), 40, "smart_truncation"},
		{"long words of a user", join(dialogue(12, 400), say("And?"), say("So?")), 25, "condensation"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := coretest.Request(coretest.Conversation(tt.messages...), 0)
			req.Budget.Target = req.Tokens() * tt.percent / 100
			req.Budget.Limit = req.Tokens()
			done, err := chain.Run(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if done.Provider != tt.want || done.TokensAfter > req.Budget.Target {
				for _, a := range done.Attempts {
					t.Logf("%s %s: %d -> %d %s %+v", a.Provider, a.Outcome, a.TokensBefore, a.TokensAfter, a.Reason, a.Steps)
				}
				t.Fatalf("got %s with %d tokens, want %s with at most %d", done.Provider, done.TokensAfter, tt.want, req.Budget.Target)
			}
			// What is never removed: the first message and the last two of the user.
			all := textOf(done.Messages...)
			for _, m := range []core.Message{tt.messages[0], tt.messages[len(tt.messages)-1]} {
				if m.Role == core.RoleUser && !strings.Contains(all, textOf(m)) {
					t.Errorf("gone: %.60s", textOf(m))
				}
			}
		})
	}
}

// TestRecipeKeepsCallsAndErrors: the second step keeps every call and every failed result, which no flag marks, and the
// user's messages that the text names.
func TestRecipeKeepsCallsAndErrors(t *testing.T) {
	messages := say("Fix the build.")
	for i := range 40 {
		result := code(i, 800) + "the last error was mended\n"
		switch i {
		case 5:
			result = "Error: cannot open ERRMARK5"
		case 18:
			result = "Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\nKeyError: 'ERRMARK18'"
		case 31:
			result = "ERRMARK31\nProcess exited with code 2"
		}
		messages = append(messages, tool(strconv.Itoa(i), "bash", fmt.Sprintf(`{"command":"run %d"}`, i), result)...)
	}
	messages = append(messages, say("And the tests?")...)
	messages = append(messages, tool("last", "bash", `{"command":"run last"}`, code(99, 500))...)
	messages = append(messages, say("Go on.")...)
	for _, percent := range []int{18, 22} {
		req := coretest.Request(coretest.Conversation(messages...), 0)
		req.Budget.Target, req.Budget.Limit = req.Tokens()*percent/100, req.Tokens()
		done, err := hybrid(t).Run(t.Context(), req)
		if err != nil || done.Provider != "smart_truncation" || done.TokensAfter > req.Budget.Target {
			t.Fatalf("%d %%: got %s with %d tokens, %v", percent, done.Provider, done.TokensAfter, err)
		}
		all := textOf(done.Messages...)
		for _, want := range []string{"Fix the build.", "And the tests?", "Go on.", "ERRMARK5", "ERRMARK18", "ERRMARK31"} {
			if !strings.Contains(all, want) {
				t.Errorf("%d %%: gone: %s", percent, want)
			}
		}
		calls := 0
		for _, m := range done.Messages {
			for _, p := range m.Parts {
				if _, ok := p.(core.ToolCall); ok {
					calls++
				}
			}
		}
		if calls != 41 {
			t.Errorf("%d %%: %d of 41 calls stay", percent, calls)
		}
	}
}
