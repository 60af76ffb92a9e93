package lab_test

import (
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/tokens"
)

// A session that is too short to be cut is counted, once however many copies there are, and every token has one kind.
func TestSpendingCountsByModeKindAndTool(t *testing.T) {
	t.Parallel()
	const reminder = "<system-reminder>\nThe file notes.txt has changed since it was read.\n</system-reminder>"
	short := []byte(`{"system": "You are an agent.", "messages": [
		{"role": "user", "content": [{"type": "text", "text": "Please list the files."}, {"type": "text", "text": "` + "<system-reminder>\\nThe file notes.txt has changed since it was read.\\n</system-reminder>" + `"}]},
		{"role": "assistant", "content": [{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "ls"}}]},
		{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "one.go\ntwo.go\nthree.go"}]},
		{"role": "assistant", "content": [{"type": "tool_use", "id": "b", "name": "Read", "input": {"path": "one.go"}}, {"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": "pwd"}}]},
		{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "b", "content": "package one\n\nconst long = 1234567890"}, {"type": "tool_result", "tool_use_id": "c", "content": "/work"}]}
	]}`)
	other := []byte(`[{"role": "user", "content": "What is this?"}, {"role": "assistant", "content": "A question."}]`)
	rule, err := lab.ParseModeRule("short*=plan")
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, []lab.Item{inMemory("/x/short.json", short), inMemory("/x/short-copy.json", short), inMemory("/x/other.json", other)},
		lab.Options{Spending: true, ModeOf: []lab.ModeRule{rule}}, window("window", "budget"))
	if len(r.Sessions) != 0 || len(r.Spending) != 2 {
		t.Fatalf("%d sessions were compared, spending of %d modes: want 0, and all and plan", len(r.Sessions), len(r.Spending))
	}
	all, plan := r.Spending[0], r.Spending[1]
	if all.Mode != "" || all.Sessions != 2 || plan.Mode != "plan" || plan.Sessions != 1 {
		t.Fatalf("spending of %q with %d sessions and of %q with %d, want all with 2 and plan with 1", all.Mode, all.Sessions, plan.Mode, plan.Sessions)
	}
	e, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	count := func(texts ...string) int {
		n, c := 0, tokens.NewCounter(e)
		for _, s := range texts {
			n += c.Count(core.Text(s))
		}
		return n
	}
	want := map[tokens.Kind]int{
		tokens.KindSystem:   count("You are an agent."),
		tokens.KindInjected: count(reminder),
		// Results are in messages of the user, whose framing is the user's.
		tokens.KindUser:       count("Please list the files.") + 3*core.FramingTokens,
		tokens.KindAssistant:  count("I look.") + 2*core.FramingTokens,
		tokens.KindToolResult: count("one.go\ntwo.go\nthree.go", "package one\n\nconst long = 1234567890", "/work"),
	}
	sum := 0
	for kind, n := range plan.ByKind {
		sum += n
		if w, ok := want[kind]; ok && n != w {
			t.Errorf("%s: %d tokens, want %d", kind, n, w)
		}
	}
	if sum != plan.Tokens {
		t.Errorf("kinds have %d tokens in all, the sum is %d", sum, plan.Tokens)
	}
	tools := map[string]lab.ToolSpending{}
	calls := 0
	for _, x := range plan.ByTool {
		tools[x.Tool] = x
		calls += x.CallTokens
	}
	if x := tools["Bash"]; x.Calls != 2 || x.Results != 2 || len(tools) != 2 {
		t.Errorf("tools %+v, want Bash with two calls and results, and Read", plan.ByTool)
	}
	if calls != plan.ByKind[tokens.KindToolCall] || calls == 0 {
		t.Errorf("calls of tools have %d tokens, the kind has %d", calls, plan.ByKind[tokens.KindToolCall])
	}
	if r := run(t, []lab.Item{inMemory("/x/short.json", short)}, lab.Options{}, window("window", "budget")); r.Spending != nil {
		t.Errorf("spending %+v without being asked for", r.Spending)
	}
}
