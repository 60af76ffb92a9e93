package core_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/testkit/misbehaving"
)

func user(id string, parts ...core.Part) core.Message {
	return core.Message{ID: id, Role: core.RoleUser, Parts: parts}
}

func assistant(id string, parts ...core.Part) core.Message {
	return core.Message{ID: id, Role: core.RoleAssistant, Parts: parts}
}

func system(id string, parts ...core.Part) core.Message {
	return core.Message{ID: id, Role: core.RoleSystem, Parts: parts}
}

func protected(m core.Message) core.Message { return coretest.Protected(m) }

func summary(parts ...core.Part) core.Message {
	return core.Message{Role: core.RoleUser, Kind: core.KindSummary, Parts: parts}
}

func withRole(m core.Message, r core.Role) core.Message { m.Role = r; return m }
func withKind(m core.Message, k core.Kind) core.Message { m.Kind = k; return m }

func call(id string) core.ToolCall { return coretest.Call(id) }

func result(id string, content ...core.Part) core.ToolResult {
	return core.ToolResult{CallID: id, Content: content}
}

type messages = []core.Message

const hi, note = core.Text("hi there"), core.Text(core.LeftOut)

// ruleTests hold, for every rule, conversations that differ as little as they can and
// are valid or break that rule and no other. That the request itself is a valid answer
// is tested with each.
var ruleTests = []struct {
	rule, name string
	request    messages
	valid      messages // nil if there is nothing to add
	invalid    messages
}{
	{
		"answer", "all gone",
		messages{user("1", hi), user("2", hi)},
		messages{user("2", hi)},
		messages{},
	},
	{
		"valid-parts", "pointer",
		messages{user("1", hi)},
		messages{user("1", core.Text("hi …"))},
		messages{user("1", new(core.Text("hi there")))},
	},
	{
		"valid-parts", "nil",
		messages{user("1", hi)},
		nil,
		messages{user("1", hi, nil)},
	},
	{
		"valid-parts", "type of its own that embeds a part",
		messages{user("1", hi)},
		nil,
		messages{user("1", struct {
			core.Text
			more []string
		}{Text: "hi"})},
	},
	{
		"valid-parts", "call in a result",
		messages{assistant("1", call("a")), user("2", result("a", hi, hi))},
		messages{assistant("1", call("a")), user("2", result("a", hi))},
		messages{assistant("1", call("a")), user("2", result("a", call("a")))},
	},
	{
		"valid-parts", "result in a result",
		messages{assistant("1", call("a")), user("2", result("a", hi))},
		nil,
		messages{assistant("1", call("a")), user("2", result("a", result("a", hi)))},
	},
	{
		"known-ids", "invented",
		messages{user("1", hi), assistant("2", hi)},
		messages{user("1", hi), summary(hi)},
		messages{user("1", hi), user("3", hi)},
	},
	{
		"unique-ids", "twice in a row",
		messages{user("1", hi), user("2", hi)},
		nil,
		messages{user("1", hi), user("1", hi), user("2", hi)},
	},
	{
		"unique-ids", "again later",
		messages{user("1", hi), user("2", hi)},
		nil,
		messages{user("1", hi), user("2", hi), user("1", hi)},
	},
	{
		"keep-order", "swapped",
		messages{user("1", hi), user("2", hi), user("3", hi)},
		messages{user("1", hi), user("3", hi)},
		messages{user("1", hi), user("3", hi), user("2", hi)},
	},
	{
		"keep-order", "an exchange after the next one",
		messages{user("0", hi), assistant("1", call("a")), user("2", result("a")), assistant("3", call("b")), user("4", result("b"))},
		messages{user("0", hi), assistant("3", call("b")), user("4", result("b"))},
		messages{user("0", hi), assistant("3", call("b")), user("4", result("b")), assistant("1", call("a")), user("2", result("a"))},
	},
	{
		"keep-role", "role",
		messages{user("1", hi), user("2", hi)},
		nil,
		messages{user("1", hi), assistant("2", hi)},
	},
	{
		"keep-role", "kind",
		messages{user("1", hi), withKind(user("2", hi), core.KindSummary)},
		nil,
		messages{user("1", hi), user("2", hi)},
	},
	{
		"new-role", "system",
		messages{user("1", hi), assistant("2", hi)},
		messages{user("1", hi), withRole(summary(hi), core.RoleAssistant)},
		messages{user("1", hi), withRole(summary(hi), core.RoleSystem)},
	},
	{
		"new-role", "tool",
		messages{user("1", hi), assistant("2", hi)},
		messages{user("1", hi), withKind(summary(hi), core.KindMarker)},
		messages{user("1", hi), withRole(summary(hi), core.RoleTool)},
	},
	{
		"new-role", "kind",
		messages{user("1", hi), assistant("2", hi)},
		messages{user("1", hi), withKind(summary(hi), "")}, // the host takes it for a summary
		messages{user("1", hi), withKind(summary(hi), "legend")},
	},
	{
		"keep-protected", "hidden",
		messages{user("1", hi), protected(user("2", hi)), user("3", hi)},
		messages{user("2", hi), user("3", hi)},
		messages{user("1", hi), user("3", hi)},
	},
	{
		"keep-protected", "rewritten",
		messages{user("1", hi), protected(user("2", hi))},
		messages{user("1", note), user("2", hi)},
		messages{user("1", hi), user("2", note)},
	},
	{
		"keep-protected", "a result in it shortened",
		messages{assistant("1", call("a")), protected(user("2", result("a", hi)))},
		messages{assistant("1", core.ToolCall{ID: "a", Name: call("a").Name}), user("2", result("a", hi))},
		messages{assistant("1", call("a")), user("2", result("a", note))},
	},
	{
		"keep-system", "hidden",
		messages{system("0", hi), user("1", hi), system("2", hi), user("3", hi)},
		messages{system("0", hi), system("2", hi), user("3", hi)},
		messages{system("0", hi), user("1", hi), user("3", hi)},
	},
	{
		"keep-system", "rewritten, even if visibly",
		messages{system("0", core.Text("Never push to main.")), user("1", hi)},
		nil,
		messages{system("0", core.Text("Never push […]")), user("1", hi)},
	},
	{
		"keep-request", "hidden",
		messages{user("1", hi), assistant("2", hi), user("3", hi)},
		messages{user("1", hi), user("3", hi)},
		messages{user("1", hi), assistant("2", hi)},
	},
	{
		"keep-request", "hidden before a note",
		messages{user("1", hi), assistant("2", hi), user("3", hi)},
		messages{summary(hi), user("3", hi)},
		messages{user("1", hi), summary(hi)},
	},
	{
		"keep-request", "hidden with the result next to it",
		messages{user("1", hi), assistant("2", call("a")), user("3", result("a", hi), hi)},
		messages{user("1", hi), assistant("2", call("a")), user("3", result("a", note), hi)},
		messages{user("1", hi)},
	},
	{
		"keep-words", "other words",
		messages{user("1", core.Text("Never push to main. Then mend the tests.")), assistant("2", hi)},
		messages{user("1", core.Text("[… 1 line h:0123456789]\nThen mend the tests.")), assistant("2", core.Text("other words"))},
		messages{user("1", core.Text("Delete the repository and push --force.")), assistant("2", hi)},
	},
	{
		"keep-words", "without a mark",
		messages{user("1", core.Text("Never push to main. Then mend the tests."))},
		messages{user("1", core.Text("Never push … mend the tests."))},
		messages{user("1", core.Text("push to main."))},
	},
	{
		"keep-words", "in another order",
		messages{user("1", core.Text("Never push to main. Then mend the tests."))},
		messages{user("1", core.Text("Never push […]"), core.Text("[redacted] mend the tests."))},
		messages{user("1", core.Text("mend the tests. … Never push"))},
	},
	{
		"keep-words", "a text that is gone",
		messages{user("1", core.Text("Never push to main."), hi)},
		messages{user("1", note, hi)},
		messages{user("1", hi)},
	},
	{
		"keep-words", "something added",
		messages{user("1", hi), assistant("2", hi)},
		messages{user("1", hi), assistant("2", hi, note)},
		messages{user("1", hi, core.Text("Push to main.")), assistant("2", hi)},
	},
	{
		"not-empty", "no part",
		messages{user("1", hi), user("2", hi)},
		messages{user("1", hi), user("2", core.Text("…"))},
		messages{user("1", hi), user("2")},
	},
	{
		"not-empty", "only spaces",
		messages{user("1", hi), user("2", hi, hi)},
		messages{user("1", hi), user("2", hi, core.Text("…"))},
		messages{user("1", hi), user("2", core.Text(" "), core.Text("\n\t"))},
	},
	{
		"not-empty", "new message",
		messages{user("1", hi), assistant("2", hi)},
		messages{user("1", hi), summary(core.Text("."))},
		messages{user("1", hi), summary(core.Text("\r\n"))},
	},
	{
		"not-empty", "result",
		messages{assistant("1", call("a")), user("2", result("a", hi), hi)},
		messages{assistant("1", call("a")), user("2", result("a", core.Text(".")), hi)},
		messages{assistant("1", call("a")), user("2", result("a"), hi)},
	},
	{
		"not-empty", "second result of the same ID",
		messages{assistant("1", call("a"), call("a")), user("2", result("a"), result("a", hi))},
		messages{assistant("1", call("a"), call("a")), user("2", result("a", hi), result("a", hi))},
		messages{assistant("1", call("a"), call("a")), user("2", result("a"), result("a", core.Text("")))},
	},
	{
		"not-empty", "blank on arrival may stay so",
		messages{user("1", core.Text(" ")), user("2", hi), assistant("3", call("a")), user("4", result("a", core.Text("")))},
		messages{user("1"), user("2", hi), assistant("3", call("a")), user("4", result("a"))},
		messages{user("1"), user("2"), assistant("3", call("a")), user("4", result("a"))},
	},
	{
		"keep-calls", "invented call",
		messages{user("1", hi), assistant("2", hi)},
		messages{user("1", hi), assistant("2", note)},
		messages{user("1", hi), assistant("2", hi, call("a"))},
	},
	{
		"keep-calls", "invented result for an open call",
		messages{assistant("1", call("a")), user("2", hi)},
		nil,
		messages{assistant("1", call("a")), user("2", result("a"), hi)},
	},
	{
		"keep-calls", "in a new message",
		messages{assistant("1", hi, call("a")), user("2", result("a", hi))},
		messages{summary(hi)},
		messages{summary(call("a")), summary(result("a", hi))},
	},
	{
		"keep-calls", "a result moved into a new message",
		messages{assistant("1", hi, call("a")), user("2", result("a", hi))},
		nil,
		messages{assistant("1", hi, call("a")), summary(result("a", hi))},
	},
	{
		"keep-calls", "renamed",
		messages{assistant("1", call("a")), user("2", result("a", hi))},
		nil,
		messages{assistant("1", core.ToolCall{ID: "b", Name: call("a").Name}), user("2", result("b", hi))},
	},
	{
		"keep-calls", "of another tool",
		messages{assistant("1", call("a")), user("2", result("a", hi))},
		messages{assistant("1", core.ToolCall{ID: "a", Name: call("a").Name, Args: "{}"}), user("2", result("a", hi))},
		messages{assistant("1", core.ToolCall{ID: "a", Name: "other"}), user("2", result("a", hi))},
	},
	{
		"keep-calls", "moved to another message",
		messages{assistant("1", call("a"), call("b")), user("2", result("a", hi)), user("3", hi, result("b", hi))},
		messages{assistant("1", call("b")), user("2", note), user("3", note, result("b", hi))},
		messages{assistant("1", call("a"), call("b")), user("2", result("a", hi), result("b", hi)), user("3", hi)},
	},
	{
		"keep-calls", "one more of the same ID",
		messages{assistant("1", call("a")), user("2", result("a", hi))},
		nil,
		messages{assistant("1", call("a"), call("a")), user("2", result("a", hi))},
	},
	{
		"keep-pairs", "call hidden",
		messages{user("0", hi), assistant("1", call("a")), user("2", result("a", hi))},
		messages{user("0", hi)},
		messages{user("0", hi), user("2", result("a", hi))},
	},
	{
		"keep-pairs", "result hidden",
		messages{user("0", hi), assistant("1", call("a")), user("2", result("a", hi)), user("3", hi)},
		messages{user("0", hi), user("3", hi)},
		messages{user("0", hi), assistant("1", call("a")), user("3", hi)},
	},
	{
		"keep-pairs", "call taken out of its message",
		messages{assistant("1", hi, call("a"), call("b")), user("2", result("a", hi), result("b", hi))},
		messages{assistant("1", hi, call("b")), user("2", result("b", hi))},
		messages{assistant("1", hi, call("b")), user("2", result("a", hi), result("b", hi))},
	},
	{
		"keep-pairs", "result before its call",
		messages{assistant("1", call("a"), result("a", hi))},
		nil,
		messages{assistant("1", result("a", hi), call("a"))},
	},
	{
		"keep-pairs", "orphaned result put behind an open call",
		messages{assistant("1", result("a", hi), call("a"))},
		messages{assistant("1", call("a"))},
		messages{assistant("1", call("a"), result("a", hi))},
	},
	{
		"keep-pairs", "ID used twice, the inner two hidden",
		messages{assistant("1", call("a")), user("2", result("a", hi)), assistant("3", call("a")), user("4", result("a", hi))},
		messages{assistant("3", call("a")), user("4", result("a", hi))},
		messages{assistant("1", call("a")), user("4", result("a", hi))},
	},
	{
		"keep-pairs", "an orphan gets a call",
		// The first result answers the only call; the second is an orphan.
		messages{assistant("1", call("a")), user("2", result("a", hi), hi), user("3", result("a", hi))},
		messages{assistant("1", call("a")), user("2", result("a", hi), note)},
		messages{assistant("1", call("a")), user("2", hi), user("3", result("a", hi))},
	},
	{
		"keep-pairs", "orphans and open calls may go",
		messages{user("1", result("lost", hi), hi), assistant("2", hi, call("open")), user("x", hi), assistant("3", call("a")), user("4", result("a", hi))},
		messages{user("1", hi), assistant("2", hi), user("x", hi), assistant("3", call("a")), user("4", result("a", hi))},
		messages{user("1", hi), assistant("2", hi), user("x", hi), assistant("3", call("a"))},
	},
	{
		"keep-pending", "the message hidden",
		messages{user("1", hi), assistant("2", hi), assistant("3", call("open"))},
		messages{user("1", hi), assistant("3", call("open"))},
		messages{user("1", hi), assistant("2", hi)},
	},
	{
		"keep-pending", "the call taken out",
		messages{user("1", hi), assistant("2", hi, call("open"))},
		messages{user("1", hi), assistant("2", core.Text("h"), call("open"))},
		messages{user("1", hi), assistant("2", hi)},
	},
	{
		// Each call is a message of its own in some formats; results come in any order.
		"keep-pending", "one of several of a turn",
		messages{user("1", hi), assistant("2", call("open")), assistant("3", call("a")), user("4", result("a", hi))},
		messages{user("1", hi), assistant("2", call("open"))},
		messages{user("1", hi), assistant("3", call("a")), user("4", result("a", hi))},
	},
	{
		"no-split", "between call and result",
		messages{user("0", hi), assistant("1", call("a")), user("2", result("a", hi)), user("3", hi)},
		messages{user("0", hi), assistant("1", call("a")), user("2", result("a", hi)), summary(hi), user("3", hi)},
		messages{user("0", hi), assistant("1", call("a")), summary(hi), user("2", result("a", hi)), user("3", hi)},
	},
	{
		"no-split", "between two results",
		messages{assistant("1", call("a"), call("b")), user("2", result("a", hi)), user("3", result("b", hi)), user("4", hi)},
		messages{summary(hi), assistant("1", call("a"), call("b")), user("2", result("a", hi)), user("3", result("b", hi)), user("4", hi)},
		messages{assistant("1", call("a"), call("b")), user("2", result("a", hi)), summary(hi), user("3", result("b", hi)), user("4", hi)},
	},
	{
		"no-split", "what stood between on arrival is no fault",
		messages{assistant("1", call("a")), user("2", hi), user("3", result("a", hi)), user("4", hi)},
		messages{assistant("1", call("a")), user("2", note), user("3", result("a", hi)), user("4", note)},
		messages{assistant("1", call("a")), user("2", hi), summary(hi), user("3", result("a", hi)), user("4", hi)},
	},
	{
		"no-split", "behind a call whose result is still to come",
		messages{user("0", hi), assistant("1", call("a"))},
		messages{summary(hi), assistant("1", call("a"))},
		messages{user("0", hi), assistant("1", call("a")), summary(hi)},
	},
	{
		"no-split", "behind one of two results, the other still to come",
		messages{user("0", hi), assistant("1", call("a"), call("b")), user("2", result("a", hi))},
		messages{user("0", hi), summary(hi), assistant("1", call("a"), call("b")), user("2", result("a", hi))},
		messages{user("0", hi), assistant("1", call("a"), call("b")), user("2", result("a", hi)), summary(hi)},
	},
	{
		"no-split", "a call that was given up may be followed by anything",
		messages{user("0", hi), assistant("1", call("a")), user("2", hi), assistant("3", call("b")), user("4", result("b", hi))},
		messages{user("0", hi), assistant("1", call("a")), summary(hi), user("2", hi)},
		messages{user("0", hi), assistant("1", call("a")), user("2", hi), assistant("3", call("b")), summary(hi), user("4", result("b", hi))},
	},
	{
		"keep-media", "image",
		messages{user("1", hi, coretest.Image(1))},
		messages{user("1", hi, note)},
		messages{user("1", hi)},
	},
	{
		"keep-media", "one of two that are equal",
		messages{user("0", hi), assistant("1", hi, coretest.Image(1), coretest.Image(1))},
		messages{user("0", hi), assistant("1", hi, coretest.Image(1), note)},
		messages{user("0", hi), assistant("1", hi, coretest.Image(1))},
	},
	{
		"keep-media", "in a result",
		messages{assistant("1", call("a")), user("2", result("a", hi, coretest.Image(1)))},
		messages{assistant("1", call("a")), user("2", result("a", note))},
		messages{assistant("1", call("a")), user("2", result("a", hi))},
	},
	{
		"keep-media", "with the pair that it belongs to",
		messages{assistant("1", hi, call("a")), user("2", result("a", hi, coretest.Image(1)), hi)},
		messages{assistant("1", hi), user("2", note)},
		messages{assistant("1", hi), user("2", hi)},
	},
	{
		"keep-media", "unknown block",
		messages{user("1", hi, core.Opaque{Kind: "document", JSON: "{}"})},
		messages{user("1", note)},
		messages{user("1", hi, core.Opaque{Kind: "document", JSON: "[]"})},
	},
	{
		"keep-media", "put into a message",
		messages{user("1", hi), assistant("2", hi)},
		messages{user("1", hi), assistant("2", note)},
		messages{user("1", hi), assistant("2", hi, core.Opaque{Kind: "tool_use", JSON: `{"type":"tool_use"}`})},
	},
	{
		"keep-media", "put into what the user said",
		messages{user("1", hi), assistant("2", hi)},
		messages{user("1", hi), assistant("2", note)},
		messages{user("1", hi, core.Opaque{Kind: "text", JSON: `{"type":"text","text":"Push."}`}), assistant("2", hi)},
	},
	{
		"keep-media", "put into a result",
		messages{assistant("1", call("a")), user("2", result("a", hi))},
		messages{assistant("1", call("a")), user("2", result("a", note))},
		messages{assistant("1", call("a")), user("2", result("a", hi, coretest.Image(1)))},
	},
	{
		"keep-media", "a new message, but for a compaction",
		messages{user("1", hi), assistant("2", hi)},
		messages{user("1", hi), summary(core.Opaque{Kind: "compaction", JSON: `{"type":"compaction","encrypted_content":"x"}`})},
		messages{user("1", hi), summary(core.Opaque{Kind: "compaction", JSON: `{"type":"text","text":"Push."}`})},
	},
	{
		"keep-words", "images of the user in another order",
		messages{user("1", hi, coretest.Image(1), note, coretest.Image(2))},
		messages{user("1", hi, coretest.Image(1), note, core.Text("[… 1 image left out]"))},
		messages{user("1", hi, coretest.Image(2), note, coretest.Image(1))},
	},
	{
		"keep-words", "an image of the user before other words",
		messages{user("1", hi, coretest.Image(1), note)},
		messages{user("1", hi, coretest.Image(1), core.Text("[… 1 image left out]"))},
		messages{user("1", coretest.Image(1), hi, note)},
	},
	{
		"keep-calls", "a failure that is none any more",
		messages{assistant("1", call("a")), user("2", core.ToolResult{CallID: "a", IsError: true, Content: []core.Part{hi}})},
		messages{assistant("1", call("a")), user("2", core.ToolResult{CallID: "a", IsError: true, Content: []core.Part{note}})},
		messages{assistant("1", call("a")), user("2", core.ToolResult{CallID: "a", Content: []core.Part{hi}})},
	},
	{
		"keep-media", "hidden with its message",
		messages{user("1", coretest.Image(1)), user("2", hi, coretest.Image(2))},
		messages{user("2", hi, note)},
		messages{user("2", hi)},
	},
	{
		"keep-reasoning", "signed text changed",
		messages{user("0", hi), assistant("1", core.Reasoning{Text: "so be it", Signature: "s"}, hi)},
		messages{user("0", hi), assistant("1", hi)},
		messages{user("0", hi), assistant("1", core.Reasoning{Text: "so", Signature: "s"}, hi)},
	},
	{
		"keep-reasoning", "encrypted",
		messages{user("0", hi), assistant("1", core.Reasoning{Encrypted: "e"}, hi)},
		messages{user("0", hi), assistant("1", core.Reasoning{Encrypted: "e"}, note)},
		messages{user("0", hi), assistant("1", core.Reasoning{Encrypted: "f"}, hi)},
	},
	{
		"keep-reasoning", "said once, thought twice",
		messages{user("0", hi), assistant("1", core.Reasoning{Text: "r", Signature: "s"}, hi)},
		nil,
		messages{user("0", hi), assistant("1", core.Reasoning{Text: "r", Signature: "s"}, core.Reasoning{Text: "r", Signature: "s"}, hi)},
	},
	{
		"keep-reasoning", "signed, in a new message",
		messages{user("0", hi), assistant("1", core.Reasoning{Text: "r", Signature: "s"}, hi)},
		messages{user("0", hi), withRole(summary(core.Reasoning{Text: "in short"}, hi), core.RoleAssistant)},
		messages{user("0", hi), withRole(summary(core.Reasoning{Text: "r", Signature: "s"}, hi), core.RoleAssistant)},
	},
	{
		"first-role", "user hidden",
		messages{user("1", hi), assistant("2", hi), user("3", hi)},
		messages{user("3", hi)},
		messages{assistant("2", hi), user("3", hi)},
	},
	{
		"first-role", "new message in front",
		messages{user("1", hi), assistant("2", hi)},
		messages{summary(hi), assistant("2", hi)},
		messages{withRole(summary(hi), core.RoleAssistant), user("1", hi), assistant("2", hi)},
	},
	{
		"first-role", "behind system messages",
		messages{system("0", hi), user("1", hi), assistant("2", hi)},
		messages{system("0", hi), user("1", hi)},
		messages{system("0", hi), assistant("2", hi)},
	},
	{
		"first-role", "only system messages left",
		messages{system("0", hi), user("1", hi), assistant("2", hi), system("3", hi)},
		messages{system("0", hi), user("1", note), system("3", hi)},
		messages{system("0", hi), system("3", hi)},
	},
}

func TestRules(t *testing.T) {
	// By TestGrowthIsMeasured, TestAbilities and TestIngestRule.
	tested := map[string]bool{"no-growth": true, "declared-abilities": true, "only-results": true}
	for _, tt := range ruleTests {
		tested[tt.rule] = true
		t.Run(tt.rule+"/"+tt.name, func(t *testing.T) {
			req := &core.Request{Messages: tt.request} // without a counter: growth is another rule
			for what, valid := range map[string]messages{"the request itself": tt.request, "the valid answer": tt.valid} {
				if valid == nil {
					continue
				}
				if err := core.Verify(req, &core.Result{Messages: valid}); err != nil {
					t.Errorf("%s: got %v, want it to be valid", what, err)
				}
			}
			err := core.Verify(req, &core.Result{Messages: tt.invalid})
			if got := rulesIn(t, err); got != tt.rule {
				t.Errorf("got the rules %q broken, want only %s:\n%v", got, tt.rule, err)
			}
		})
	}
	for _, r := range core.Rules() {
		if !tested[r.Name] {
			t.Errorf("rule %s has no test", r.Name)
		}
		if r.Text == "" {
			t.Errorf("rule %s has no text", r.Name)
		}
	}
}

// rulesIn returns the names of all rules broken in what Verify returned, each once.
func rulesIn(t *testing.T, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("got %T, want errors joined", err)
	}
	names := map[string]bool{}
	for _, err := range many.Unwrap() {
		v, ok := errors.AsType[*core.ViolationError](err)
		if !ok {
			t.Fatalf("got %T, want a violation", err)
		}
		if !slices.ContainsFunc(core.Rules(), func(r core.Rule) bool { return r.Name == v.Rule }) {
			t.Errorf("got a violation of %q, which is no rule", v.Rule)
		}
		names[v.Rule] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), " ")
}

func TestGrowthIsMeasured(t *testing.T) {
	req := coretest.Request(coretest.Conversation(
		coretest.User(core.Text("sixteen bytes….")),
		coretest.Assistant(core.Text("another sixteen.")),
	), 5)
	req.Budget.Overhead = 100
	lie := summary(core.Text("seventeen bytes!!"))
	lie.Tokens = 1
	tests := []struct {
		name   string
		result messages
		want   string
	}{
		{"same size", messages{req.Messages[0], summary(core.Text("another sixteen!"))}, ""},
		{"one token more", messages{req.Messages[0], summary(core.Text("seventeen bytes!!"))}, "no-growth"},
		{"its own numbers are not believed", messages{req.Messages[0], lie}, "no-growth"},
		{"framing counts", messages{req.Messages[0], summary(core.Text("another")), summary(core.Text("sixteen."))}, "no-growth"},
		{"rewritten to more", messages{req.Messages[0], assistant("m2", core.Text("another sixteen. and more"))}, "no-growth"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := core.Verify(req, &core.Result{Messages: tt.result})
			if got := rulesIn(t, err); got != tt.want {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestVerifyWithoutMessages(t *testing.T) {
	empty := &core.Request{Counter: coretest.Counter{}}
	tests := []struct {
		name string
		req  *core.Request
		res  *core.Result
		want string
	}{
		{"nothing from nothing", empty, &core.Result{}, ""},
		{"nil from nothing", empty, nil, "answer"},
		{"nil from something", coretest.HalfRequest(coretest.Session()), nil, "answer"},
		{"something from nothing", empty, &core.Result{Messages: messages{summary(hi)}}, "no-growth"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := core.Verify(tt.req, tt.res)
			if got := rulesIn(t, err); got != tt.want {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

// A part that only claims to be one must not bring Verify down, wherever it is.
func TestVerifySurvivesForeignParts(*testing.T) {
	type foreign struct {
		core.Text
		slices []string // so that it cannot be compared
	}
	odd := foreign{Text: "hi", slices: []string{}}
	with := messages{user("1", hi, odd, (*core.Text)(nil), (*core.ToolResult)(nil), nil), assistant("2", call("a")), user("3", result("a", odd, hi))}
	without := messages{user("1", hi), assistant("2", call("a")), user("3", result("a", hi))}
	for _, req := range []messages{with, without} {
		for _, res := range []messages{with, without} {
			_ = core.Verify(&core.Request{Messages: req, Counter: coretest.Counter{}}, &core.Result{Messages: res})
		}
	}
}

func TestViolationSaysWhereAndWhat(t *testing.T) {
	req := coretest.HalfRequest(coretest.Session())
	tests := []struct {
		misbehaving core.CondensationProvider
		want        string
	}{
		{misbehaving.Named("DropsCall"), "keep-pairs: message m5: the result of call c1 stays without the call, which message m4 had"},
		{misbehaving.Named("DropsNestedImage"), "keep-media: message m5: an image is gone in the result of call c2 and no text replaces it"},
		{misbehaving.Named("HidesProtected"), "keep-protected: message m14: is hidden"},
		{misbehaving.Named("SpeaksAsSystem"), `new-role: new message 0 has the role "system"; want user or assistant`},
		{misbehaving.Named("ReturnsNothing"), "answer: all 16 messages are gone"},
	}
	for _, tt := range tests {
		res, err := tt.misbehaving.Condense(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if err := core.Verify(req, res); err == nil || err.Error() != tt.want {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
	}
}

// TestIngestRule: of new tool results, only the content of results changes. Any other request allows all of that.
func TestIngestRule(t *testing.T) {
	goal, closing := user("goal", hi), assistant("closing", hi)
	round := messages{goal, assistant("calls", hi, call("a"), call("b")), user("results", result("a", hi), result("b", hi), core.Text("a reminder")), closing}
	with := func(i int, parts ...core.Part) messages {
		all := slices.Clone(round)
		all[i].Parts = parts
		return all
	}
	for name, tt := range map[string]struct {
		answer messages
		want   string
	}{
		"unchanged":              {round, ""},
		"a result":               {with(2, result("a", note), result("b", hi), core.Text("a reminder")), ""},
		"both results":           {with(2, result("a", note), result("b", note), core.Text("a reminder")), ""},
		"the text beside it":     {with(2, result("a", hi), result("b", hi), note), "only-results"},
		"what the model said":    {with(1, note, call("a"), call("b")), "only-results"},
		"the user's words":       {with(0, note), "only-results"},
		"the round hidden":       {messages{goal, closing}, "only-results"},
		"a message of its own":   {append(slices.Clone(round), summary(note)), "only-results"},
		"the arguments of calls": {with(1, hi, core.ToolCall{ID: "a", Name: call("a").Name, Args: `{"x":1}`}, call("b")), "only-results"},
	} {
		req := &core.Request{Messages: round, Trigger: core.TriggerIngest}
		if got := rulesIn(t, core.Verify(req, &core.Result{Messages: tt.answer})); got != tt.want {
			t.Errorf("%s: broke %q, want %q", name, got, tt.want)
		}
		if req.Trigger = core.TriggerManual; core.Verify(req, &core.Result{Messages: tt.answer}) != nil {
			t.Errorf("%s: invalid in another request", name)
		}
	}
}
