package value_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// rules returns so many lines of project rules, with empty ones and a list of code between.
func rules(version string, lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "- Rule %d %s: never touch the pelican in heron%d.\n", i, version, i*37)
	}
	return b.String() + "\n```\n{\"strict\": true, \"version\": \"" + version + "\", \"of\": \"the compiler\"}\n```"
}

// withRules returns texts that agents put before the first request, with body in it.
var withRules = map[string]func(body string) string{
	"Codex": func(body string) string {
		return "# AGENTS.md instructions for /home/me/okapi\n\n<INSTRUCTIONS>\n" + body + "\n</INSTRUCTIONS>"
	},
	"Codex before": func(body string) string { return "<user_instructions>\n\n" + body + "\n\n</user_instructions>" },
	"Claude Code": func(body string) string {
		return "<system-reminder>\nAs you answer the user's questions, you can use the following context:\n# claudeMd\n" +
			"Codebase and user instructions are shown below.\n\nContents of /okapi/CLAUDE.md (project instructions, checked into the codebase):\n\n" +
			body + "\n\n      IMPORTANT: this context may or may not be relevant to your tasks.\n</system-reminder>"
	},
}

const skills = "<skills_instructions>\nWalrus skill: describes how to be a walrus.\n</skills_instructions>"

// TestProjectRulesSurvive condenses again and again: the rules of the project stay word for word,
// once, and in their newest version, and what a program says of skills does not.
func TestProjectRulesSurvive(t *testing.T) {
	for name, with := range withRules {
		t.Run(name, func(t *testing.T) {
			old, is := rules("before", 20), rules("now", 25)
			messages := slices.Concat([]core.Message{coretest.User(core.Text(strings.Repeat(skills+"\n", 20))), coretest.User(core.Text(with(old)))}, session(10),
				[]core.Message{coretest.User(core.Text(with(is)))}, session(60)[1:])
			messages = uniqueCalls(messages)
			room := tokensOf(messages) / 8
			for round := range 4 {
				res := shorten(t, messages, room)
				got := text(res.Messages)
				if res.Tokens > room {
					t.Errorf("round %d: %d tokens, room is %d", round, res.Tokens, room)
				}
				if n := strings.Count(got, is); n != 1 {
					t.Errorf("round %d: the rules are there %d times, want once:\n%s", round, n, got)
				}
				if strings.Contains(got, "before: never touch") || strings.Count(got, "Walrus skill") > 1 {
					t.Errorf("round %d: the rules of before or the skills are there:\n%s", round, got)
				}
				messages = slices.Clone(res.Messages)
				for i := range messages {
					messages[i].ID = fmt.Sprintf("%d.%d", round, i)
					if round%2 == 0 { // as formats do that do not record what was inserted
						messages[i].Kind = core.KindOriginal
					}
				}
				messages = uniqueCalls(append(messages, session(20)[1:]...))
			}
		})
	}
}

// uniqueCalls measures a conversation and gives every call an ID of its own.
func uniqueCalls(messages []core.Message) []core.Message {
	id := ""
	for i := range messages {
		for j, p := range messages[i].Parts {
			switch p := p.(type) {
			case core.ToolCall:
				id = fmt.Sprintf("c%d.%d", i, j)
				p.ID = id
				messages[i].Parts[j] = p
			case core.ToolResult:
				p.CallID = id
				messages[i].Parts[j] = p
			case core.Text, core.Image, core.Reasoning, core.Opaque:
			}
		}
		messages[i].ID = fmt.Sprint("n", i)
	}
	return coretest.Conversation(messages...)
}

// TestRulesThatDoNotFit: rules that are larger than the room are shortened at their end, which says
// so and leads to the whole; the request is kept as well.
func TestRulesThatDoNotFit(t *testing.T) {
	body := withRules["Codex"](rules("now", 2000))
	messages := coretest.Conversation(append(session(20), coretest.User(core.Text(body)), coretest.Assistant(core.Text("I see.")), coretest.User(core.Text("Find the zebra.")))...)
	room := core.MessageTokens(coretest.Counter{}, messages[len(messages)-3]) / 2
	res := shorten(t, messages, room)
	got := text(res.Messages)
	if res.Tokens > room || res.Tokens < room*9/10 {
		t.Errorf("%d tokens, room is %d", res.Tokens, room)
	}
	for _, want := range []string{"# AGENTS.md instructions for /home/me/okapi\n", "h:" + core.Handle(core.Text(body)), "Rule 0 now", "Find the zebra."} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%.2000s", want, got)
		}
	}
}

// TestRulesBesideMuch: rules that take less than 15 % of the room are whole, whatever else must stay, and however
// large the newest message is.
func TestRulesBesideMuch(t *testing.T) {
	is := withRules["Codex"](rules("now", 60))
	size := core.MessageTokens(coretest.Counter{}, coretest.User(core.Text(is)))
	for _, share := range []int{10, 20, 30} { // of the rules in the room that is left, which is two fifths of all
		for _, newest := range []int{1, 10, 45, 300} {
			left := size * 100 / share
			room := left * 5 / 2
			system := core.Message{Role: core.RoleSystem, Parts: []core.Part{core.Text(strings.Repeat("Be kind. ", (room-left)*4/9))}}
			messages := coretest.Conversation(slices.Concat([]core.Message{system, coretest.User(core.Text(is))}, session(60), []core.Message{pasted(room * newest / 100)})...)
			res := shorten(t, messages, room)
			if got := text(res.Messages); res.Tokens > room || !strings.Contains(got, is) {
				t.Errorf("%d %% rules, newest %d %%: %d tokens in %d, the rules are cut", share, newest, res.Tokens, room)
			}
			if last := res.Messages[len(res.Messages)-1]; last.ID != messages[len(messages)-1].ID {
				t.Errorf("%d %% rules, newest %d %%: the last message is gone", share, newest)
			}
		}
	}
}
