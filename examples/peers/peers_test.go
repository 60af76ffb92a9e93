package peers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	peers "example.com/condense-peers"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/plugin-sdk/sdktest"
	"github.com/condensehq/condense/registry"
)

// A scribe is a model that answers with a fixed text, and keeps its prompts.
type scribe struct {
	text  string
	err   error
	shown []string
}

func (s *scribe) Generate(_ context.Context, p *model.Prompt) (*model.Answer, error) {
	s.shown = append(s.shown, string(p.Messages[0].Parts[0].(core.Text)))
	if s.err != nil {
		return nil, s.err
	}
	return &model.Answer{Text: s.text, Usage: core.Usage{Calls: 1}}, nil
}

func (*scribe) Info() model.Info { return model.Info{} }

func open(t *testing.T, s registry.Strategy, settings string, g model.Generator) core.CondensationProvider {
	t.Helper()
	p, err := s.Open(t.Context(), json.RawMessage(settings), registry.Env{Model: func(string) (model.Generator, error) { return g, nil }})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// condense returns the messages of a valid result.
func condense(t *testing.T, p core.CondensationProvider, req *core.Request) []core.Message {
	t.Helper()
	res, err := p.Condense(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := core.Verify(req, res); err != nil {
		t.Fatal(err)
	}
	return res.Messages
}

// talk returns a request with so many steps of an agent: a call of each tool in turn, and its result.
func talk(steps, target int, tools ...string) *core.Request {
	all := []core.Message{coretest.User(core.Text("Fix the importer."))}
	for i := range steps {
		id, name := fmt.Sprint("c", i), tools[i%len(tools)]
		args := fmt.Sprintf(`{"path":"f%d.go"}`, i)
		all = append(all,
			coretest.Assistant(core.Text(fmt.Sprintf("Step %d.", i)), core.ToolCall{ID: id, Name: name, Args: args}),
			coretest.Tool(core.ToolResult{CallID: id, Content: []core.Part{core.Text(strings.Repeat(fmt.Sprintf("line of %d\n", i), 40))}}))
	}
	return coretest.Request(coretest.Conversation(all...), target)
}

func ids(messages []core.Message) string {
	var out []string
	for _, m := range messages {
		out = append(out, m.ID)
	}
	return strings.Join(out, " ")
}

func result(m core.Message) string {
	r := m.Parts[0].(core.ToolResult)
	return string(r.Content[0].(core.Text))
}

// TestConformance: no algorithm breaks a rule, whatever the conversation.
func TestConformance(t *testing.T) {
	for _, s := range peers.All() {
		t.Run(s.Name, func(t *testing.T) {
			coretest.Run(t, func(t *testing.T) core.CondensationProvider { return open(t, s, "{}", sdktest.Extractive()) })
		})
	}
}

// TestOpenHandsRefuses the settings that the original refuses.
func TestOpenHandsRefuses(t *testing.T) {
	for settings, want := range map[string]string{
		`{"max_size": 0}`: "non-positive", `{"keep_first": -1}`: "negative", `{"max_size": 10, "keep_first": 5}`: "less than half",
	} {
		_, err := peers.OpenHands().Open(t.Context(), json.RawMessage(settings), registry.Env{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", settings, err, want)
		}
	}
}

// TestOpenHandsMasks: results before the attention window are masked, and nothing else.
func TestOpenHandsMasks(t *testing.T) {
	req := talk(5, 1000, "read")
	view := condense(t, open(t, peers.OpenHands(), `{"stages": ["masking"], "attention": 5}`, nil), req)
	for i, m := range view {
		switch masked := m.Role == core.RoleTool && i < len(view)-5; {
		case masked && result(m) != core.LeftOut:
			t.Errorf("message %d is not masked", i)
		case !masked && !m.Equal(req.Messages[i]):
			t.Errorf("message %d changed", i)
		}
	}
}

// TestOpenHandsForgets: a view that grows is halved again and again; it never grows beyond the size, and keeps its beginning.
func TestOpenHandsForgets(t *testing.T) {
	p := open(t, peers.OpenHands(), `{"stages": ["forgetting"], "max_size": 20, "keep_first": 3}`, nil)
	var view []core.Message
	all := talk(60, 1<<20, "read").Messages
	halved := 0
	for i := 1; i < len(all); i += 2 {
		view = append(view, all[max(0, i-2):i]...)
		req := coretest.Request(view, 1<<20)
		next := condense(t, p, req)
		if len(view) <= 20 != (len(next) == len(view)) || len(next) > 21 {
			t.Fatalf("%d messages became %d", len(view), len(next))
		}
		if len(next) < len(view) {
			halved++
			if n := len(next); n < 10 || n > 12 || ids(next[:3]) != ids(all[:3]) {
				t.Errorf("%d messages became %d: %s", len(view), n, ids(next))
			}
		}
		view = next
	}
	if halved < 5 {
		t.Errorf("it was halved %d times", halved)
	}
}

// TestOpenHandsBegins: where the first messages are the system's, and the newest are no words of the user, the user's first words stay.
func TestOpenHandsBegins(t *testing.T) {
	all := append([]core.Message{coretest.System(core.Text("Be careful."))}, talk(20, 0, "read").Messages...)
	p := open(t, peers.OpenHands(), `{"stages": ["forgetting"], "max_size": 10}`, nil)
	for _, target := range []int{1 << 20, 40} {
		if view := condense(t, p, coretest.Request(coretest.Conversation(all...), target)); len(view) < 2 || view[1].Role != core.RoleUser {
			t.Errorf("%d tokens: %s", target, ids(view))
		}
	}
}

// TestOpenHandsSummarizes: one summary stands after the first messages, made of the one before and of the forgotten ones.
func TestOpenHandsSummarizes(t *testing.T) {
	model := &scribe{text: "First state."}
	p := open(t, peers.OpenHands(), `{"stages": ["summarizing"], "max_size": 20, "keep_first": 1, "max_event": 30}`, model)
	view := condense(t, p, talk(15, 1<<20, "read"))
	if len(view) < 9 || len(view) > 12 || view[0].ID != "m1" || view[1].Kind != core.KindSummary || view[1].Parts[0] != core.Part(core.Text("First state.")) {
		t.Fatalf("%d messages: %s", len(view), ids(view))
	}
	if s := model.shown[0]; !strings.Contains(s, "No events summarized") || !strings.Contains(s, "Step 3.") || strings.Contains(s, "Step 14.") || strings.Contains(s, strings.Repeat("line of 3\n", 4)) {
		t.Errorf("the model was shown %s", s)
	}
	view[1].ID = "s1"
	model.text = "Second state."
	more := talk(40, 1<<20, "read").Messages[31:]
	view = condense(t, p, coretest.Request(append(view, more...), 1<<20))
	if n := strings.Count(fmt.Sprint(view), "state."); n != 1 || !strings.Contains(model.shown[1], "First state.") {
		t.Errorf("%d summaries, the model was shown %s", n, model.shown[1])
	}
	model.err = errors.New("no credit")
	if _, err := p.Condense(t.Context(), talk(15, 1<<20, "read")); !errors.Is(err, model.err) {
		t.Errorf("got %v", err)
	}
}

// TestOpenHandsPipeline: a stage that forgets ends it; the host's tokens are a reason, too.
func TestOpenHandsPipeline(t *testing.T) {
	model := &scribe{text: "State."}
	p := open(t, peers.OpenHands(), `{"stages": ["masking", "forgetting", "summarizing"], "attention": 10}`, model)
	req := talk(30, 800, "read")
	view := condense(t, p, req)
	if len(model.shown) > 0 || core.TotalTokens(view) > req.Budget.Room() || len(view) == len(req.Messages) {
		t.Errorf("%d messages, %d tokens for %d; the model was asked %d times", len(view), core.TotalTokens(view), req.Budget.Room(), len(model.shown))
	}
}

// TestLangChain: a summary and the newest messages; calls keep their results; a failed model is said in the summary.
func TestLangChain(t *testing.T) {
	model := &scribe{text: "Steps 0 to 23 are done."}
	p := open(t, peers.LangChain(), `{"keep_messages": 11, "trim": 1000}`, model)
	req := talk(30, 1000, "read")
	view := condense(t, p, req)
	// The cut moves to the call of the oldest result.
	if want := " " + ids(req.Messages[len(req.Messages)-12:]); ids(view) != want {
		t.Errorf("got %s, want %s", ids(view), want)
	}
	if s := string(view[0].Parts[0].(core.Text)); s != "Here is a summary of the conversation to date:\n\nSteps 0 to 23 are done." {
		t.Errorf("the summary is %s", s)
	}
	if s := model.shown[0]; strings.Contains(s, "Step 0.") || !strings.Contains(s, "Step 23.") || strings.Contains(s, "Step 24.") {
		t.Errorf("the model was shown %d bytes: not the newest", len(s))
	}
	model.err = errors.New("no credit")
	if view = condense(t, p, req); !strings.Contains(fmt.Sprint(view[0]), "Error generating summary: no credit") {
		t.Errorf("got %v", view[0])
	}
	few := talk(3, 10, "read")
	if view = condense(t, p, few); len(view) != len(few.Messages) {
		t.Errorf("%d of %d messages", len(view), len(few.Messages))
	}
	tokens := open(t, peers.LangChain(), `{"keep_messages": 0, "keep_tokens": 400}`, &scribe{text: "Done."})
	if view = condense(t, tokens, req); core.TotalTokens(view[1:]) > 400 || len(view) < 5 {
		t.Errorf("%d messages, %d tokens", len(view), core.TotalTokens(view[1:]))
	}
}

// TestClearToolUses has each of the settings.
func TestClearToolUses(t *testing.T) {
	req := talk(6, 1, "read", "search")
	cleared := func(settings string) (results, inputs string) {
		for _, m := range condense(t, open(t, peers.ClearToolUses(), settings, nil), req) {
			calls, text := "", ""
			for _, p := range m.Parts {
				if c, ok := p.(core.ToolCall); ok {
					calls, text = c.ID, c.Args
				}
			}
			if m.Role == core.RoleTool && result(m) == core.LeftOut {
				results += m.Parts[0].(core.ToolResult).CallID
			}
			if text == "{}" {
				inputs += calls
			}
		}
		return results, inputs
	}
	for settings, want := range map[string][2]string{
		`{}`:                            {"c0c1c2", ""},
		`{"keep": 1}`:                   {"c0c1c2c3c4", ""},
		`{"keep": 6}`:                   {"", ""},
		`{"exclude_tools": ["search"]}`: {"c0c2", ""},
		`{"clear_tool_inputs": true}`:   {"c0c1c2", "c0c1c2"},
		`{"clear_at_least": 100}`:       {"c0c1c2", ""},
		`{"clear_at_least": 100000}`:    {"", ""},
	} {
		if results, inputs := cleared(settings); results != want[0] || inputs != want[1] {
			t.Errorf("%s: cleared %s and %s, want %v", settings, results, inputs, want)
		}
	}
	once := condense(t, open(t, peers.ClearToolUses(), "{}", nil), req)
	if twice := condense(t, open(t, peers.ClearToolUses(), "{}", nil), coretest.Request(once, 1)); !slices.EqualFunc(once, twice, core.Message.Equal) {
		t.Error("a second time changes something")
	}
}

// TestEpisodes: only as much goes as has to; actions first, then explorations of files out of use; the user's turns never.
func TestEpisodes(t *testing.T) {
	all := talk(24, 0, "write", "read").Messages
	all = append(all[:20:20], append([]core.Message{coretest.User(core.Text("Keep the header."))}, all[20:]...)...)
	for i := range all {
		all[i].ID = ""
	}
	all = coretest.Conversation(all...)
	total := core.TotalTokens(all)
	if view := condense(t, open(t, peers.Episodes(), `{"active": 8}`, nil), coretest.Request(all, total)); len(view) != len(all) {
		t.Error("something went for nothing")
	}
	req := coretest.Request(all, total*3/4)
	view := condense(t, open(t, peers.Episodes(), `{"active": 8}`, nil), req)
	if core.TotalTokens(view) > req.Budget.Room() {
		t.Errorf("%d tokens for %d", core.TotalTokens(view), req.Budget.Room())
	}
	for _, m := range view {
		if m.Role == core.RoleTool && result(m) == core.LeftOut && strings.TrimPrefix(m.Parts[0].(core.ToolResult).CallID, "c") != "" {
			var n int
			if _, err := fmt.Sscanf(m.Parts[0].(core.ToolResult).CallID, "c%d", &n); err != nil || n%2 == 1 {
				t.Errorf("the result of reading %d is gone, and actions would do", n)
			}
		}
	}
	few := condense(t, open(t, peers.Episodes(), `{"active": 8}`, nil), coretest.Request(all, total/6))
	text := fmt.Sprint(few)
	if !strings.Contains(text, "Fix the importer.") || !strings.Contains(text, "Keep the header.") || strings.Contains(text, "line of 3\n") || !strings.Contains(text, "line of 23\n") {
		t.Errorf("%s", ids(few))
	}
}

// TestTree: summaries of pieces, then of summaries, each with the messages that it stands for; the newest stay; without a model they are
// cut.
func TestTree(t *testing.T) {
	settings := `{"fresh": 6, "leaf": 500, "leaf_out": 60, "node_out": 100, "fanout": 3}`
	model := &scribe{text: strings.Repeat("It was read. ", 12)}
	req := talk(60, 1100, "read")
	view := condense(t, open(t, peers.Tree(), settings, model), req)
	if core.TotalTokens(view) > req.Budget.Room() || ids(view[len(view)-6:]) != ids(req.Messages[len(req.Messages)-6:]) {
		t.Errorf("%d tokens for %d: %s", core.TotalTokens(view), req.Budget.Room(), ids(view))
	}
	label := regexp.MustCompile(`depth (\d) of messages m(\d+) to m(\d+)\]`)
	deepest, next := "0", 1
	for _, m := range view {
		if m.Kind != core.KindSummary {
			continue
		}
		found := label.FindStringSubmatch(fmt.Sprint(m.Parts[0]))
		if found == nil || found[2] != fmt.Sprint(next) {
			t.Fatalf("a summary begins %.80s, and message %d is the next", m.Parts[0], next)
		}
		deepest = max(deepest, found[1])
		if _, err := fmt.Sscan(found[3], &next); err != nil {
			t.Fatal(err)
		}
		next++
	}
	if deepest == "0" || next != len(req.Messages)-5 {
		t.Errorf("depth %s, up to message %d", deepest, next)
	}
	// Later its own summaries are sources.
	for i := range view {
		if view[i].ID == "" {
			view[i].ID = fmt.Sprint("s", i)
		}
	}
	later := condense(t, open(t, peers.Tree(), settings, model), coretest.Request(view, core.TotalTokens(view)*3/4))
	if !strings.Contains(fmt.Sprint(later), "of messages m1 to ") {
		t.Errorf("later: %v", later)
	}
	for name, bad := range map[string]*scribe{"long": {text: strings.Repeat("word ", 2000)}, "broken": {err: errors.New("no credit")}} {
		view := condense(t, open(t, peers.Tree(), settings, bad), talk(60, 1100, "read"))
		if core.TotalTokens(view) > 1100 || len(bad.shown) < 2 {
			t.Errorf("%s: %d tokens after %d requests", name, core.TotalTokens(view), len(bad.shown))
		}
	}
}
