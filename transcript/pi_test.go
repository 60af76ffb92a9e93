package transcript_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/core"
)

// A session of pi keeps every byte when it is condensed: the view becomes a branch after it, and
// pi goes on with the last line. What did not change is repeated as it was.
func TestPiGetsABranch(t *testing.T) {
	t.Parallel()
	const data = `{"type":"session","version":3,"id":"s","timestamp":"2026-05-20T10:00:00.000Z","cwd":"/shop"}
{"type":"thinking_level_change","id":"a0","parentId":null,"timestamp":"2026-05-20T10:00:00.000Z","thinkingLevel":"high"}
{"type":"message","id":"a1","parentId":"a0","timestamp":"2026-05-20T10:00:01.000Z","message":{"role":"user","content":"one","timestamp":1}}
{"type":"message","id":"a2","parentId":"a1","timestamp":"2026-05-20T10:00:02.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"t1","name":"ls","arguments":{"a": 1}}],"api":"x","provider":"y","model":"z","usage":{"input":9,"totalTokens":9},"stopReason":"toolUse","timestamp":2}}
{"type":"message","id":"a3","parentId":"a2","timestamp":"2026-05-20T10:00:03.000Z","message":{"role":"toolResult","toolCallId":"t1","toolName":"ls","content":[{"type":"text","text":"much","extra":1}],"details":{"x":1},"isError":false,"timestamp":3}}
{"type":"message","id":"a4","parentId":"a3","timestamp":"2026-05-20T10:00:04.000Z","message":{"role":"assistant","content":[{"type":"text","text":"done"}],"api":"x","provider":"y","model":"z","usage":{"input":99,"totalTokens":99},"stopReason":"stop","timestamp":4}}
`
	d := read(t, data, "")
	condense(t, d, core.Edit{
		Hide:    []string{"a1"},
		Rewrite: []core.Rewrite{{ID: "a3", Parts: []core.Part{core.ToolResult{CallID: "t1", Content: []core.Part{core.Text("cut")}, IsError: true}}}},
		Insert:  []core.Insert{{After: "a1", Message: core.Message{ID: "s1", Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("before")}}}},
	})
	out, warnings := write(t, d, "")
	branch, ok := strings.CutPrefix(out, data)
	if !ok || len(warnings) > 0 {
		t.Fatalf("the session changed: warnings %v, %s", warnings, out)
	}
	parent := "null"
	var got []string
	for line := range strings.Lines(branch) {
		var entry struct{ ID, ParentID json.RawMessage }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		if string(entry.ParentID) != parent || strings.Contains(data, string(entry.ID)) {
			t.Errorf("the entry %s follows %s, want %s", entry.ID, entry.ParentID, parent)
		}
		parent = string(entry.ID)
		line = strings.Replace(line, string(entry.ID), "ID", 1)
		got = append(got, strings.TrimSpace(strings.Replace(line, `"parentId":`+string(entry.ParentID), "UP", 1)))
	}
	const none = `"usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`
	want := []string{
		`{"type":"thinking_level_change","id":ID,UP,"timestamp":"2026-05-20T10:00:00.000Z","thinkingLevel":"high"}`,
		`{"type":"message","id":ID,UP,"timestamp":"2026-05-20T10:00:00.000Z","message":{"role":"user","content":[{"type":"text","text":"before"}],"timestamp":1779271200000}}`,
		`{"type":"message","id":ID,UP,"timestamp":"2026-05-20T10:00:02.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"t1","name":"ls","arguments":{"a": 1}}],"api":"x","provider":"y","model":"z","usage":{"input":9,"totalTokens":9},"stopReason":"toolUse","timestamp":2}}`,
		`{"type":"message","id":ID,UP,"timestamp":"2026-05-20T10:00:03.000Z","message":{"role":"toolResult","toolCallId":"t1","toolName":"ls","content":[{"type":"text","text":"cut","extra":1}],"details":{"x":1},"isError":true,"timestamp":3}}`,
		`{"type":"message","id":ID,UP,"timestamp":"2026-05-20T10:00:04.000Z","message":{"role":"assistant","content":[{"type":"text","text":"done"}],"api":"x","provider":"y","model":"z",` + none + `,"stopReason":"stop","timestamp":4}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("branch (-want +got):\n%s", diff)
	}
	again, _ := write(t, read(t, out, ""), "")
	if again != out {
		t.Errorf("read and written again: %s", again)
	}
}

// Pi gives a file of version 1 IDs when it reads it, and one chain of all lines. So does this.
func TestPiOfVersion1(t *testing.T) {
	t.Parallel()
	d := read(t, files(t, "pi")["version1.jsonl"], "")
	condense(t, d, core.Edit{Hide: []string{"m2"}})
	out, _ := write(t, d, "")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if !strings.Contains(lines[0], `"version":3`) || strings.Contains(out, "firstKeptEntryIndex") || len(lines) != 9 {
		t.Errorf("got %s", out)
	}
	var kept, first struct{ ID, FirstKeptEntryID string }
	for line, v := range map[int]any{2: &kept, 4: &first} {
		if err := json.Unmarshal([]byte(lines[line]), v); err != nil {
			t.Fatal(err)
		}
	}
	if kept.ID == "" || kept.ID != first.FirstKeptEntryID {
		t.Errorf("the compaction keeps from %q, want %q", first.FirstKeptEntryID, kept.ID)
	}
	if diff := cmp.Diff(words(d.Journal.View()), words(read(t, out, "").Journal.View())); diff != "" {
		t.Errorf("view (-want +got):\n%s", diff)
	}
}

// A session of which nothing is left does not show the branch before.
func TestPiEmpty(t *testing.T) {
	t.Parallel()
	d := read(t, files(t, "pi")["session.jsonl"], "")
	var all []string
	for _, m := range d.Journal.View() {
		all = append(all, m.ID)
	}
	condense(t, d, core.Edit{Hide: all})
	out, _ := write(t, d, "")
	if again := read(t, out, ""); again.Journal.Len() != 0 {
		t.Errorf("got %s", outline(again))
	}
}
