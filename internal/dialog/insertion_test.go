package dialog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

// segments returns who wrote what in a user's message of one text.
func segments(text string) []dialog.Segment {
	return new(dialog.AuthorReader).Message(&core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text(text)}})[0]
}

// TestInsertions: what programs write into a message of the user is not the user's, and the words around it are.
func TestInsertions(t *testing.T) {
	for name, want := range map[string][]dialog.Segment{
		"Codex in an editor": {
			seg(program, "# Context from my IDE setup:\n\n## Active file: src/pay.ts\n\n## My request for Codex:"), seg(person, "\nadd retry to charge"),
		},
		"Codex, with files": {
			seg(program, "# Files mentioned by the user:\n\n## a.png: /tmp/a.png\n\n## My request for Codex:"), seg(person, "\nFix this image."),
		},
		"Codex, a sub-agent":  {seg(program, "<subagent_notification>\n{\"agent_id\":\"a\"}\n</subagent_notification>")},
		"Codex, a shell":      {seg(program, "<user_shell_command>\n<command>ls</command>\n<result>ok</result>\n</user_shell_command>")},
		"Codex, a compaction": {seg(program, "Another language model started to solve this problem and produced a summary of its thinking process. Use it.\n\nNever touch a.")},
		"Copilot": {
			seg(around, "<current_datetime>2026-01-31T19:21:40Z</current_datetime>"), seg(person, "\n\nmend it\n\n"),
			seg(program, "<system_reminder>\n<sql_tables>none</sql_tables>\n</system_reminder>"),
		},
		"Copilot, a compaction": {
			seg(program, "Some of the conversation history has been summarized to free up context.\n\nHere were the user messages:\n"),
			seg(person, "<user_message>\nNever touch a.\n</user_message>"),
			seg(program, "\n\nHere is a summary of the prior context:\n<summary>\nAlways touch b.\n</summary>\n"),
		},
		"Claude Code, a plan": {
			seg(person, "Implement the following plan:\n\n# Plan\nNever touch vendor/.\n\n\n"),
			seg(program, "If you need specific details from before exiting plan mode (like code), read the full transcript at: /x.jsonl"),
		},
		"Claude Code, a hook":         {seg(program, "Stop hook feedback:\n[check.sh]: commit first")},
		"Claude Code, a hook's tag":   {seg(person, "mend it\n"), seg(program, "<user-prompt-submit-hook>always seal</user-prompt-submit-hook>")},
		"Claude Code, an image":       {seg(program, "[Image: source: /tmp/a.png]")},
		"Claude Code, stopped":        {seg(program, "[Request interrupted by user]")},
		"Claude Code, a continuation": {seg(program, "This session is being continued from a previous conversation that ran out of context. Never touch a.")},
		"OpenCode, a file": {
			seg(person, "Look at @a.ts\n"), seg(program, "Called the Read tool with the following input: {\"filePath\":\"/a.ts\"}\n"),
			seg(program, "<path>/a.ts</path>\n<type>file</type>\n<content>\n1: // never touch </content>\n2: x\n</content>"), seg(person, "\nand mend it"),
		},
		"OpenCode, going on":    {seg(program, "Continue if you have next steps, or stop and ask for clarification if you are unsure how to proceed.")},
		"Gemini CLI, the files": {seg(person, "mend @a\n"), seg(program, "--- Content from referenced files ---\nmust\n--- End of content ---")},
		"Gemini CLI, a command": {
			seg(program, "I ran the following shell command:\n```sh\ncat \\\n a\n```\n\nThis produced the following result:\n```\n```\nDelete it all.\n```\n```"),
		},
		"a command in words":       {seg(person, "I ran the following shell command:\n```sh\nmake\n```\nIt fails: mend it.\n```\nno rule\n```")},
		"Gemini CLI, the folder":   {seg(around, "This is the Gemini CLI. We are setting up the context for our chat.\nToday's date is Friday.")},
		"a hook of beads":          {seg(program, "[bd prime] If this output is truncated by your host, read it.\n\nNever edit a Bead.")},
		"a file that has no end":   {seg(person, "Called the walrus.\n<path>/a.ts</path>\n<type>file</type>\nis what I see")},
		"words about a hook":       {seg(person, "it prints:\nStop hook feedback:\nno")},
		"words about a program":    {seg(person, "why does it say \"Continue if you have next steps, or stop\"?")},
		"a heading without a mark": {seg(person, "# Context from my IDE setup:\nI use vim.")},
		"answers that are typed":   {seg(person, "User has answered your questions: \"a\"=\"b\"")},
	} {
		text := ""
		for _, s := range want {
			text += s.Text
		}
		if got := segments(text); !cmp.Equal(got, want) {
			t.Errorf("%s: %s", name, cmp.Diff(want, got))
		}
	}
}

// TestSplitAnswer: of an answer to the model's questions, what the user chose and noted is the user's; the questions
// and the previews are not.
func TestSplitAnswer(t *testing.T) {
	end := ". You can now continue with the user's answers in mind."
	for name, want := range map[string][]dialog.Segment{
		"one": {seg(program, `User has answered your questions: "Must it be never?"=`), seg(person, `"Yes"`), seg(program, end)},
		"two, with a preview and notes": {
			seg(program, `User has answered your questions: "Scope?"=`), seg(person, `"Repo"`), seg(program, " selected preview:\nOnly touch a.\nNever b."),
			seg(program, " user notes: "), seg(person, "docs too"), seg(program, `, "Style?"=`), seg(person, `"Tabs, \"hard\" ones"`), seg(program, end),
		},
		"rejected": {
			seg(program, "The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:"), seg(person, "\nuse the second one"),
		},
		"rejected in silence": {seg(program, "The user doesn't want to proceed with this tool use. STOP.")},
		"to be talked about": {
			seg(program, "The user doesn't want to proceed with this tool use. the user said:"),
			seg(program, "\nThe user wants to clarify these questions.\n    Questions asked:\n- \"Never?\"\n  Answer: "), seg(person, "Ask me later"),
			seg(program, "\n- \"Must it?\"\n  (No answer provided)"),
		},
		"of another program": {seg(person, "the second one, never the first")},
	} {
		text := ""
		for _, s := range want {
			text += s.Text
		}
		if got := dialog.SplitAnswer(text); !cmp.Equal(got, want) {
			t.Errorf("%s: %s", name, cmp.Diff(want, got))
		}
	}
}

// TestSplitIsWhole: put together, the segments are the text, whatever it is.
func TestSplitIsWhole(t *testing.T) {
	pieces := []string{
		"User has answered your questions: ", `"a"="b"`, ` selected preview:` + "\n", " user notes: ", `, "`, ". You can now continue with the user's answers in mind.",
		"Called the read tool with the following input: {", "<path>a</path>\n<type>file</type>", "</content>", "\n", " ", "# Context from my IDE setup:\n", "## My request for Codex:",
		"The user doesn't want to ", "the user said:", "The user wants to clarify these questions.", "\n  Answer: ", "x", "If you need specific details from before exiting plan mode (",
	}
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 20).Draw(rt, "pieces"), "")
		for name, split := range map[string]func(string) []dialog.Segment{"answer": dialog.SplitAnswer, "message": segments} {
			whole := ""
			for _, s := range split(text) {
				whole += s.Text
			}
			if whole != text {
				rt.Fatalf("%s: %q became %q", name, text, whole)
			}
		}
	})
}

// TestInsertionsAreLinear: text that is made to be slow is not. Eight times the text takes about eight times as long, and
// would take 64 times as long if every piece were compared with every other one. On a busy machine one of many attempts is undisturbed.
func TestInsertionsAreLinear(t *testing.T) {
	const larger, most, attempts = 8, 24, 20
	for _, piece := range []string{
		"Called the read tool with the following input: {\n# Context from my IDE setup:\n", "<path>a</path>\n<type>file</type>\n", "--- Content from referenced files ---\n", "\n",
		`"a"="b", `,
	} {
		took := func(size int) time.Duration {
			text := strings.Repeat(piece, size/len(piece))
			start := time.Now()
			segments(text)
			dialog.SplitAnswer("User has answered your questions: " + text + ". You can now continue with the user's answers in mind.")
			return time.Since(start)
		}
		linear := false
		for n := 0; n < attempts && !linear; n++ {
			small := took(1 << 16)
			linear = took(larger<<16) < most*small
		}
		if !linear {
			t.Errorf("%.20q: more than %d times as long for %d times the text", piece, most, larger)
		}
	}
}
