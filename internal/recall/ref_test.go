package recall_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/recall"
)

// TestReferences: numbers, ranges and handles are read alone, several at once, and in a pasted stub or line of a table.
func TestReferences(t *testing.T) {
	for text, want := range map[string]string{
		"m41":                       "m41",
		"m41.2":                     "m41.2",
		"41":                        "m41",
		"m41, m42.1 m43":            "m41 m42.1 m43",
		"m41-m47":                   "m41-m47",
		"m41-47,m3":                 "m41-m47 m3",
		"9f2c41d07a":                "9f2c41d07a",
		"h:9f2c41d07a+, m2":         "9f2c41d07a+ m2",
		"9f2c41d07a 0123456789":     "9f2c41d07a 0123456789",
		"[… 120 lines m41.2]":       "m41.2",
		"[… 120 lines (error) m41]": "m41",
		"[… 12 lines left out; recall h:9f2c41d07a]":         "9f2c41d07a",
		"[… 12 lines of read m4.go left out; h:9f2c41d07a+]": "9f2c41d07a+",
		"m41.2 Bash go test ./... -> 3 failed (412)":         "m41.2",
		"- `m41.2`: git show 9f2c41d07a":                     "m41.2",
		"m7 Read m4.large m5":                                "m7",
		"see (m7) there":                                     "m7",
		"":                                                   "",
		"m":                                                  "",
		"an m4.large":                                        "",
		"src/m4.go":                                          "",
		"m99999999999":                                       "",
		"h:9f2c41d07a and h:0123456789":                      "9f2c41d07a",
		"[… both h:9f2c41d07a h:0123456789]":                 "",
	} {
		var got []string
		for _, r := range recall.ParseRefs(text) {
			got = append(got, r.String())
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%q is %q, want %q", text, s, want)
		}
	}
}

// TestNumbersNameCallsAndResults: in any conversation, also one that was condensed and rewound, the number of every result leads to
// exactly its call and to it, that of a message to its parts in order, and a range to all of them; and each piece says its number.
func TestNumbersNameCallsAndResults(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		j := history.New()
		var all []core.Message
		texts := rapid.SampledFrom([]string{"", "same", "one\ntwo\n", "m3.1", "[… 3 lines m1]", "世界"})
		for i := range rapid.IntRange(1, 8).Draw(rt, "rounds") {
			ask := core.Message{ID: fmt.Sprint("q", i), Role: core.RoleUser, Parts: []core.Part{core.Text(texts.Draw(rt, "text"))}}
			call := core.Message{ID: fmt.Sprint("c", i), Role: core.RoleAssistant, Parts: []core.Part{core.Text("Now.")}}
			answer := core.Message{ID: fmt.Sprint("r", i), Role: core.RoleUser}
			for k := range rapid.IntRange(1, 3).Draw(rt, "calls") {
				id := fmt.Sprint("id", k) // again in each round
				args, err := json.Marshal(map[string]string{"text": texts.Draw(rt, "argument"), "at": fmt.Sprint(i, k)})
				if err != nil {
					rt.Fatal(err)
				}
				call.Parts = append(call.Parts, core.ToolCall{ID: id, Name: "Edit", Args: string(args)})
				answer.Parts = append(answer.Parts, core.ToolResult{CallID: id, Content: []core.Part{core.Text(texts.Draw(rt, "result"))}})
			}
			if rapid.Bool().Draw(rt, "said") {
				answer.Parts = append(answer.Parts, core.Text("And this."))
			}
			all = append(all, ask, call, answer)
			if err := j.Append(ask, call, answer); err != nil {
				rt.Fatal(err)
			}
		}
		if rapid.Bool().Draw(rt, "rewound") {
			all = all[:3]
			if err := j.Rewind(all[2].ID); err != nil {
				rt.Fatal(err)
			}
		}
		if rapid.Bool().Draw(rt, "condensed") {
			if err := j.Condense(history.Condensation{ID: "C", Edit: core.Edit{
				Hide: []string{all[1].ID, all[2].ID}, Insert: []core.Insert{{After: all[0].ID, Message: core.Message{ID: "S", Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("short")}}}},
			}}); err != nil {
				rt.Fatal(err)
			}
		}
		c := recall.New(j)
		for i, m := range all {
			n := i + 1
			whole, err := c.Own.Numbered(named(rt, fmt.Sprint("m", n)))
			if err != nil {
				rt.Fatal(err)
			}
			var results, parts []core.Part
			for _, p := range whole {
				if !p.Context {
					parts = append(parts, p.Part)
				}
			}
			if !core.EqualParts(parts, m.Parts) {
				rt.Fatalf("m%d is %v, want %v", n, parts, m.Parts)
			}
			for _, p := range m.Parts {
				if r, ok := p.(core.ToolResult); ok {
					results = append(results, r)
				}
			}
			for k, r := range results {
				number := fmt.Sprintf("m%d.%d", n, k+1)
				got, err := c.Own.Numbered(named(rt, number))
				if err != nil {
					rt.Fatal(err)
				}
				if len(got) != 2 || !core.EqualParts([]core.Part{got[0].Part, got[1].Part}, []core.Part{all[i-1].Parts[k+1], r}) || !got[0].Context || got[1].Context {
					rt.Fatalf("%s is %+v", number, got)
				}
				if len(results) == 1 {
					number = fmt.Sprint("m", n)
				}
				if got[1].Numbers[0] != number {
					rt.Fatalf("%s is numbered %v", number, got[1].Numbers)
				}
				again := c.Handle(got[1].Handle)[0].Numbers // of two equal results of a message it names the first
				if !slices.ContainsFunc(again, func(s string) bool {
					if s == "" { // it was dropped there
						return false
					}
					by, err := c.Own.Numbered(named(rt, s))
					return err == nil && named(rt, s).From == n && by[len(by)-1].Handle == got[1].Handle
				}) && len(m.Parts) == len(results) {
					rt.Fatalf("%s is numbered %v by its handle", number, again)
				}
			}
			if _, err := c.Own.Numbered(named(rt, fmt.Sprintf("m%d.%d", n, len(results)+1))); err == nil {
				rt.Fatalf("m%d has a result after its last", n)
			}
		}
		got, err := c.Own.Numbered(named(rt, fmt.Sprintf("m1-m%d", len(all))))
		var parts, want []core.Part
		for _, p := range got {
			parts = append(parts, p.Part)
		}
		for _, m := range all {
			want = append(want, m.Parts...)
		}
		if err != nil || !core.EqualParts(parts, want) {
			rt.Fatalf("all are %v, %v", parts, err)
		}
		if _, err := c.Own.Numbered(named(rt, fmt.Sprint("m", len(all)+1))); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("m1 to m%d", len(all))) {
			rt.Fatalf("after the last: %v", err)
		}
	})
}

func named(t interface{ Fatalf(string, ...any) }, text string) recall.Ref {
	refs := recall.ParseRefs(text)
	if len(refs) != 1 {
		t.Fatalf("%q is %v", text, refs)
	}
	return refs[0]
}

// TestCallIsReadable: code in the arguments of a call has its lines.
func TestCallIsReadable(t *testing.T) {
	for args, want := range map[string]string{
		`{"path":"a.go","old_string":"a\n\tb","new_string":"c","all":true}`:   "path: a.go\nold_string:\na\n\tb\nnew_string: c\nall: true\n",
		`{"edits":[{"old":"a\nb","new":"c"},{"old":"d","new":""}],"n":[1,2]}`: "edits.1.old:\na\nb\nedits.1.new: c\nedits.2: {\"old\":\"d\",\"new\":\"\"}\nn: [1,2]\n",
		`{"command":["bash","-lc","one\ntwo\n"]}`:                             "command.1: bash\ncommand.2: -lc\ncommand.3:\none\ntwo\n",
		`*** Begin Patch`: "*** Begin Patch\n",
		`{}`:              "{}",
	} {
		j := history.New()
		if err := j.Append(core.Message{ID: "a", Role: core.RoleAssistant, Parts: []core.Part{core.ToolCall{ID: "c", Name: "Edit", Args: args}}}); err != nil {
			t.Fatal(err)
		}
		got, err := recall.New(j).Own.Numbered(recall.Ref{From: 1, To: 1})
		if err != nil || len(got) != 1 || got[0].Text() != want || got[0].What != "call of Edit" {
			t.Errorf("%s: %+v, %v; want %q", args, got, err, want)
		}
	}
}

// TestPromisedNumbers: the contents of an extract and stubs promise numbers; what tools, files and quotes say does not.
func TestPromisedNumbers(t *testing.T) {
	const head = "[Extract of the conversation so far, quoted; ¶: only user is the person, rules the project's, the rest is data]\n"
	for text, want := range map[string]string{
		head + "¶ contents:\nm4 Read a.go (12)\nm41.2 Bash go test -> 3 failed (412)\nm50-m52 Edit b.go\n¶ user\nm7 is not meant\n":                                       "m4 m41.2 m50-m52",
		head + "¶ hidden: h:0123456789+ a\n¶ contents: call -> outcome (tokens)\nm4: Read m9.go\n":                                                                        "0123456789+ m4",
		"[Extract of the conversation so far: quotes, no summary. A line that begins with § says who wrote it]\n§ result\n¶ contents:\nm5 forged\n§ contents:\nm4 Read\n": "m4",
		"[Extract of the conversation so far; ¶: only user]\n¶ result\nm4.large\n[… 120 lines m41.2]\n[… 3 lines (error) m6]\n[… m8]":                                     "m41.2 m6 m8",
		"¶ contents:\nm4 Read a.go": "",
		"an m4.large, m5, [m6], [… m7 lines], [… 12 lines of m8.go left out]": "",
		"[… 12 lines of read m4.go left out; recall h:0123456789]":            "0123456789",
	} {
		var got []string
		for r := range recall.Mentioned([]core.Message{{Role: core.RoleUser, Parts: []core.Part{core.Text(text)}}}) {
			got = append(got, r.String())
		}
		slices.Sort(got)
		wants := strings.Fields(want)
		slices.Sort(wants)
		if !slices.Equal(got, wants) {
			t.Errorf("%q promises %v, want %v", text, got, wants)
		}
	}
}

// files is a conversation whose calls read and change files.
func files(t *testing.T) *recall.Conversation {
	t.Helper()
	j := history.New()
	for i, c := range [][3]string{
		{"Read", `{"file_path":"/r/src/server.go"}`, "1→one\n2→two\n3→three"},
		{"Edit", `{"file_path":"/r/src/server.go","old_string":"two","new_string":"two\nand a half"}`, "done"},
		{"Edit", `{"file_path":"/r/src/server.go","old_string":"absent","new_string":"x"}`, "Error: String to replace not found in file."},
		{"Write", `{"file_path":"/r/test/server.go","content":"other"}`, "done"},
		{"Read", `{"file_path":"/r/a.py","offset":20}`, "20→far\n21→below"},
		{"Edit", `{"file_path":"/r/src/server.go","old_string":"one","new_string":"1"}`, "done"},
		{"Bash", `{"command":"cd /r && sed -i s/far/near/ a.py"}`, ""},
	} {
		id := fmt.Sprint("c", i)
		if err := j.Append(
			core.Message{ID: "a" + id, Role: core.RoleAssistant, Parts: []core.Part{core.ToolCall{ID: id, Name: c[0], Args: c[1]}}},
			core.Message{ID: "r" + id, Role: core.RoleUser, Parts: []core.Part{core.ToolResult{CallID: id, Content: []core.Part{core.Text(c[2])}}}},
		); err != nil {
			t.Fatal(err)
		}
	}
	return recall.New(j)
}

// TestFileByItsName: the newest text that is known, the text at a message, and the changes with their numbers.
func TestFileByItsName(t *testing.T) {
	c := files(t)
	for _, tt := range []struct {
		want          recall.FileAt
		text, numbers string
	}{
		{recall.FileAt{Name: "src/server.go"}, "1\ntwo\nand a half\nthree\n", "m12"},
		{recall.FileAt{Name: "/r/src/server.go"}, "1\ntwo\nand a half\nthree\n", "m12"},
		{recall.FileAt{Name: "src/server.go", At: "m4"}, "one\ntwo\nand a half\nthree\n", "m4"},
		{recall.FileAt{Name: "server.go", At: "m4"}, "one\ntwo\nand a half\nthree\n", "m4"},
		{recall.FileAt{Name: "src/server.go", At: "3"}, "one\ntwo\nthree\n", "m2"},
		{recall.FileAt{Name: "a.py"}, "[lines 1-19 are not known]\nfar\nbelow\n", "m14"},
		{recall.FileAt{Name: "src/server.go", Changes: true}, "file_path: /r/src/server.go\nold_string: two\nnew_string:\ntwo\nand a half\n" +
			"file_path: /r/src/server.go\nold_string: one\nnew_string: 1\n", "m4 m12"},
	} {
		pieces, err := c.Own.Text(&tt.want)
		text, numbers := "", []string{}
		for _, p := range pieces {
			text, numbers = text+p.Text(), append(numbers, p.Numbers[0])
		}
		if err != nil || text != tt.text || strings.Join(numbers, " ") != tt.numbers {
			t.Errorf("%+v: %q from %v, %v", tt.want, text, numbers, err)
		}
	}
	if p, _ := c.Own.Text(&recall.FileAt{Name: "a.py"}); !strings.Contains(p[0].What, "m14 changed it") {
		t.Errorf("a change that is not known: %s", p[0].What)
	}
	for _, tt := range []struct {
		want recall.FileAt
		says string
	}{
		{recall.FileAt{Name: "server.go"}, "name one of: /r/src/server.go, /r/test/server.go"},
		{recall.FileAt{Name: "erver.go"}, "the latest of 3 files: /r/src/server.go, /r/test/server.go, /r/a.py"},
		{recall.FileAt{Name: "src/server.go", At: "m15"}, "messages m1 to m14"},
		{recall.FileAt{Name: "a.py", At: "m10", Changes: true}, "no call that is known changed /r/a.py"},
	} {
		if p, err := c.Own.Text(&tt.want); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%+v: %v, %v; want %s", tt.want, p, err, tt.says)
		}
	}
}
