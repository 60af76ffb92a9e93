package author_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/author"
)

const (
	person  = author.Person
	program = author.Program
	around  = author.Surroundings
	header  = author.Header
	tool    = author.Tool
)

func seg(by author.By, text string) author.Segment { return author.Segment{By: by, Text: text} }

func head(tool, target, text string) author.Segment {
	return author.Segment{By: header, Text: text, Tool: tool, Target: target}
}

func TestMessage(t *testing.T) {
	result := core.ToolResult{CallID: "a", Content: []core.Part{core.Text("done")}}
	for _, c := range []struct {
		name  string
		parts []core.Part
		want  [][]author.Segment
	}{
		{"words", []core.Part{core.Text("Mend it.")}, [][]author.Segment{{seg(person, "Mend it.")}}},
		{
			"a reminder beside words",
			[]core.Part{core.Text("<system-reminder>\nx\n</system-reminder>\nMend it.")},
			[][]author.Segment{{seg(program, "<system-reminder>\nx\n</system-reminder>"), seg(person, "\nMend it.")}},
		},
		{
			"Roo-Code: a result goes on in the next parts, what the person says of it is marked",
			[]core.Part{core.Text("[read_file for 'a.go'] Result:"), core.Text("package a"), core.Text("<feedback>\nno, b.go\n</feedback>"), core.Text("<environment_details>\n</environment_details>")},
			[][]author.Segment{
				{head("read_file", "a.go", "[read_file for 'a.go'] Result:")},
				{seg(tool, "package a")},
				{seg(person, "<feedback>\nno, b.go\n</feedback>")},
				{seg(around, "<environment_details>\n</environment_details>")},
			},
		},
		{
			"Claude Code: the text of a command follows its mark, what was typed after its name ends it",
			[]core.Part{core.Text("<command-message>review</command-message>"), core.Text("# Review\nLook at everything."), core.Text("and hurry")},
			[][]author.Segment{
				{seg(program, "<command-message>review</command-message>")},
				{seg(program, "# Review\nLook at everything.")},
				{seg(person, "and hurry")},
			},
		},
		{
			"a skill",
			[]core.Part{core.Text("Base directory for this skill: /x\n# How\nARGUMENTS: the parser")},
			[][]author.Segment{{seg(program, "Base directory for this skill: /x\n# How\n"), seg(person, "ARGUMENTS: the parser")}},
		},
		{
			"arguments of a command",
			[]core.Part{core.Text("<command-name>/fix</command-name>\n<command-args>the parser</command-args>")},
			[][]author.Segment{{seg(program, "<command-name>/fix</command-name>"), seg(person, "\n"), seg(person, "<command-args>the parser</command-args>")}},
		},
		{
			"standing instructions",
			[]core.Part{core.Text("# AGENTS.md instructions for /x\n\nNever push.")},
			[][]author.Segment{{seg(author.Standing, "# AGENTS.md instructions for /x\n\nNever push.")}},
		},
		{
			"a file that was mentioned",
			[]core.Part{core.Text("look at @a.go\n<file_content path=\"a.go\">\npackage a\n</file_content>")},
			[][]author.Segment{{seg(person, "look at @a.go\n"), seg(program, "<file_content path=\"a.go\">\npackage a\n</file_content>")}},
		},
		{
			"a second result without a part of its own",
			[]core.Part{result, core.Text(`{"id": 7}`)},
			[][]author.Segment{nil, {seg(tool, `{"id": 7}`)}},
		},
		{
			"JSON that a person pasted",
			[]core.Part{core.Text(`{"id": 7}`)},
			[][]author.Segment{{seg(person, `{"id": 7}`)}},
		},
		{
			"words beside a result",
			[]core.Part{result, core.Text("stop")},
			[][]author.Segment{nil, {seg(person, "stop")}},
		},
		{
			"aider",
			[]core.Part{core.Text("Added a.go to the chat"), core.Text("Added a test, look at it"), core.Text("Tokens: 7,373 sent, 764 received.")},
			[][]author.Segment{{seg(program, "Added a.go to the chat")}, {seg(person, "Added a test, look at it")}, {seg(program, "Tokens: 7,373 sent, 764 received.")}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := core.Message{Role: core.RoleUser, Parts: c.parts}
			var r author.Reader
			if diff := cmp.Diff(c.want, r.Message(&m)); diff != "" {
				t.Errorf("who wrote what (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSaid(t *testing.T) {
	for _, c := range []struct{ text, result, said string }{
		{"ok", "ok", ""},
		{"The user doesn't want to proceed. To tell you how to proceed, the user said:\nuse b.go", "The user doesn't want to proceed. To tell you how to proceed, ", "the user said:\nuse b.go"},
		{"denied\n<feedback>\nuse b.go\n</feedback>", "denied\n", "<feedback>\nuse b.go\n</feedback>"},
		{"<feedback> is an element of " + strings.Repeat("a form ", 2000), "<feedback> is an element of " + strings.Repeat("a form ", 2000), ""},
	} {
		if result, said := author.Said(c.text); result != c.result || said != c.said {
			t.Errorf("Said(%.40q) = %.60q, %.60q; want %.60q, %.60q", c.text, result, said, c.result, c.said)
		}
	}
}

// FuzzMessage: nothing is lost, whoever wrote it.
func FuzzMessage(f *testing.F) {
	f.Add("[read_file for 'a'] Result:\n<file><path>a</path></file><environment_details>\n</environment_details>", "{}")
	f.Add("<system-reminder>x</system-reminder>y", "Base directory for this skill: x\nARGUMENTS: y")
	f.Fuzz(func(t *testing.T, a, b string) {
		m := core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text(a), core.ToolResult{}, core.Text(b)}}
		var r author.Reader
		got := r.Message(&m)
		for i, want := range map[int]string{0: a, 2: b} {
			var s strings.Builder
			for _, x := range got[i] {
				s.WriteString(x.Text)
			}
			if s.String() != want {
				t.Errorf("got %q, want %q", s.String(), want)
			}
		}
	})
}
