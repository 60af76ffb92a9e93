package transcript_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/transcript"
)

// object is a line of a session.
type object map[string]any

func objects(t interface {
	Helper()
	Fatalf(string, ...any)
}, file string,
) []object {
	t.Helper()
	var all []object
	for line := range strings.Lines(file) {
		var o object
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		all = append(all, o)
	}
	return all
}

// chain walks from the last line of the conversation to the first, as Claude Code does,
// and returns the uuids of the messages that it meets, oldest first.
func chain(all []object) (ids []string, fault string) {
	at := map[string]object{}
	var last object
	for _, o := range all {
		if id, _ := o["uuid"].(string); id != "" && o["isSidechain"] != true {
			at[id], last = o, o
		}
	}
	for id, o := range at {
		if up, ok := o["parentUuid"].(string); ok && at[up] == nil {
			fault = fmt.Sprintf("line %s follows %s, which is not there", id, up)
		}
	}
	for o := last; o != nil; {
		if o["type"] == "user" || o["type"] == "assistant" && o["isApiErrorMessage"] != true {
			ids = append(ids, o["uuid"].(string))
		}
		up, _ := o["parentUuid"].(string)
		o = at[up]
	}
	slices.Reverse(ids)
	return ids, fault
}

func TestClaudeCodeCondensed(t *testing.T) {
	t.Parallel()
	data := files(t, "claudecode")["session.jsonl"]
	d := read(t, data, "")
	view := d.Journal.View()
	summary := uuid.MustParse("11111111-2222-4333-8444-555555555555").String()
	edit := core.Edit{Rewrite: []core.Rewrite{{ID: view[8].ID, Parts: []core.Part{core.Text("Write a test."), view[8].Parts[1]}}}}
	for _, m := range view[:7] { // the opening, results included
		edit.Hide = append(edit.Hide, m.ID)
	}
	edit.Insert = []core.Insert{
		{After: view[6].ID, Message: core.Message{ID: summary, Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("It is the rounding.")}}},
		{After: view[6].ID, Message: core.Message{ID: "ack", Role: core.RoleAssistant, Kind: core.KindMarker, Parts: []core.Part{core.Text("Understood.")}}},
	}
	condense(t, d, edit)
	out, warnings := write(t, d, "")
	if len(warnings) > 0 {
		t.Errorf("warnings %v", warnings)
	}
	ids, fault := chain(objects(t, out))
	if fault != "" {
		t.Errorf("%s\n%s", fault, out)
	}
	want := make([]string, 0, d.Journal.Len())
	for _, m := range d.Journal.View() {
		want = append(want, m.ID)
	}
	want[1] = ids[1] // a uuid made from "ack"
	if _, err := uuid.Parse(want[1]); err != nil {
		t.Errorf("the uuid of a new line: %v", err)
	}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("branch (-want +got):\n%s\n%s", diff, out)
	}

	was, is := strings.Split(data, "\n"), strings.Split(out, "\n")
	left := func(lines []string, without ...string) []string {
		return slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
			return slices.ContainsFunc(without, func(s string) bool { return strings.Contains(l, s) })
		})
	}
	// All lines are verbatim except the seven that are hidden, the progress that follows from
	// them, the line after them, the rewritten one and the last, whose usage is no longer
	// valid.
	same := left(was, `"toolu_`, "The total of", "Rounding,", "look at the", "Tests pass", `[{"type":"text","text":"Write one then"}`, "Here is the test")
	got := left(is, summary, "Understood.", "Tests pass", "Write a test.", "Here is the test")
	if diff := cmp.Diff(same, got); diff != "" {
		t.Errorf("lines that nothing happened to (-want +got):\n%s", diff)
	}
	for _, words := range []string{
		`{"parentUuid":null,"isSidechain":false,"userType":"external","cwd":"/home/ann/shop","sessionId":"5e551011-0000-4000-8000-000000000000","version":"2.1.39","gitBranch":"main","type":"user","message":{"role":"user","content":"It is the rounding."},"isCompactSummary":true,`,
		`{"parentUuid":"` + summary + `","isSidechain":false,`,
		`"type":"assistant","message":{"id":"msg_`,
		`"parentUuid":"` + ids[1] + `"`,
		`"content":[{"type":"text","text":"Write a test."},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]`,
		`fails."}],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0,"service_tier":"standard"}`,
	} {
		if !strings.Contains(out, words) {
			t.Errorf("no %s in\n%s", words, out)
		}
	}
	if again := read(t, out, "claudecode"); again.Journal.View()[0].Kind != core.KindSummary {
		t.Error("the summary is no summary any more")
	}
}

// session draws a session of Claude Code: turns with parallel calls, abandoned branches,
// notes, compactions that keep messages or none.
func session(t *rapid.T) string {
	var out strings.Builder
	n := 0
	prev := ""
	line := func(parent, rest string) string {
		n++
		id := uuid.NewSHA1(uuid.Nil, fmt.Append(nil, n)).String()
		up := "null"
		if parent != "" {
			up = fmt.Sprintf("%q", parent)
		}
		fmt.Fprintf(&out, `{"parentUuid":%s,"isSidechain":false,"sessionId":"s",%s,"uuid":%q,"timestamp":"2026-01-01T00:%02d:%02d.000Z"}`+"\n", up, rest, id, n/60%60, n%60)
		prev = id
		return id
	}
	user := func(content string) string {
		return line(prev, fmt.Sprintf(`"type":"user","message":{"role":"user","content":%q}`, content))
	}
	assistant := func(parent, turn, block string) string {
		return line(parent, fmt.Sprintf(`"type":"assistant","message":{"id":%q,"role":"assistant","content":[%s],"usage":{"input_tokens":%d}}`, turn, block, 100+n))
	}
	var spoken []string // since the last compaction
	for i := range rapid.IntRange(1, 6).Draw(t, "turns") {
		turn := fmt.Sprint("msg_", i)
		switch rapid.IntRange(0, 6).Draw(t, "what") {
		case 0:
			spoken = append(spoken, user("question"), assistant(prev, turn, `{"type":"text","text":"answer"}`))
		case 1: // the second call follows the first; each result follows its call
			user("run")
			a := assistant(prev, turn, `{"type":"tool_use","id":"a`+turn+`","name":"n","input":{}}`)
			b := assistant(a, turn, `{"type":"tool_use","id":"b`+turn+`","name":"n","input":{}}`)
			line(b, `"type":"progress","data":{}`)
			line(a, `"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"a`+turn+`"}]}`)
			spoken = []string{line(b, `"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"b`+turn+`","content":"x"}]}`)}
		case 2: // a branch that is left
			back := prev
			user("never mind")
			assistant(prev, turn+"x", `{"type":"text","text":"ok"}`)
			prev = back
			spoken = append(spoken, user("rather this"))
		case 3:
			line(prev, `"type":"attachment","attachment":{"type":"todo"}`)
			out.WriteString(`{"type":"file-history-snapshot","messageId":"x","snapshot":{}}` + "\n")
			spoken = append(spoken, user("noted"))
		case 4:
			if prev == "" {
				continue
			}
			boundary := line("", fmt.Sprintf(`"type":"system","subtype":"compact_boundary","logicalParentUuid":%q,"compactMetadata":{"trigger":"auto","preTokens":9}`, prev))
			line(boundary, `"type":"user","isCompactSummary":true,"message":{"role":"user","content":"summary"}`)
			spoken = nil
		case 5: // one that keeps the last exchange
			if len(spoken) < 2 {
				continue
			}
			head, tail := spoken[len(spoken)-2], prev
			anchor := uuid.NewSHA1(uuid.Nil, fmt.Append(nil, n+2)).String()
			boundary := line("", fmt.Sprintf(`"type":"system","subtype":"compact_boundary","logicalParentUuid":%q,"compactMetadata":{"preservedSegment":{"headUuid":%q,"anchorUuid":%q,"tailUuid":%q}}`, tail, head, anchor, tail))
			line(boundary, `"type":"user","isCompactSummary":true,"message":{"role":"user","content":"summary"}`)
			prev = tail
			spoken = nil
		case 6:
			line(prev, `"type":"assistant","isApiErrorMessage":true,"message":{"role":"assistant","content":[{"type":"text","text":"API Error"}]}`)
			spoken = append(spoken, user("again"))
		}
	}
	return out.String()
}

// Whatever is condensed in a session, the lines form one branch that is the view, and are read
// as such.
func TestPropertyClaudeCodeStaysOneBranch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		file := session(t)
		if file == "" {
			return
		}
		d, err := transcript.Read(strings.NewReader(file), &transcript.ReadOptions{Format: "claudecode"})
		if err != nil {
			t.Fatal(err)
		}
		for step := range rapid.IntRange(1, 3).Draw(t, "steps") {
			wholeGroups(t, d, step)
			if d.Journal.Len() == 0 {
				return
			}
			out := encode(t, d, "")
			if d.Journal.Len() > 0 && out != file {
				if _, fault := chain(objects(t, out)); fault != "" {
					t.Fatalf("%s\n%s", fault, out)
				}
			}
			again, err := transcript.Read(strings.NewReader(out), &transcript.ReadOptions{Format: "claudecode"})
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if diff := cmp.Diff(told1(d), told1(again)); diff != "" {
				t.Fatalf("view (-want +got):\n%s\n%s\nwas\n%s", diff, out, file)
			}
		}
	})
}

// told1 is the view with its IDs.
func told1(d *transcript.Document) []core.Message {
	all := words(d.Journal.View())
	for i, m := range d.Journal.View() {
		all[i].ID = m.ID
	}
	return all
}

// wholeGroups condenses whole groups, or undoes a condensation.
func wholeGroups(t *rapid.T, d *transcript.Document, step int) {
	all := d.Journal.Condensations()
	if len(all) > 0 && rapid.IntRange(0, 3).Draw(t, "undo") == 0 {
		if err := d.Journal.Undo(rapid.SampledFrom(all).Draw(t, "which").ID); err != nil {
			t.Fatal(err)
		}
		return
	}
	view := d.Journal.View()
	var e core.Edit
	for _, g := range core.Groups(view) {
		after := ""
		if g.Start > 0 {
			after = view[g.Start-1].ID
		}
		switch rapid.IntRange(0, 4).Draw(t, "what happens") {
		case 0, 1:
			for i := g.Start; i < g.End; i++ {
				e.Hide = append(e.Hide, view[i].ID)
			}
		case 2:
			if _, ok := firstPart(&view[g.Start]).(core.Text); ok {
				e.Rewrite = append(e.Rewrite, core.Rewrite{ID: view[g.Start].ID, Parts: []core.Part{core.Text("rewritten")}})
			}
		case 3:
			for _, role := range []core.Role{core.RoleUser, core.RoleAssistant} {
				id := uuid.NewSHA1(uuid.Nil, fmt.Append(nil, step, len(e.Insert), "new")).String()
				e.Insert = append(e.Insert, core.Insert{After: after, Message: core.Message{ID: id, Role: role, Kind: core.KindSummary, Parts: []core.Part{core.Text("new")}}})
			}
		}
	}
	if e.Empty() {
		return
	}
	if err := d.Journal.Condense(history.Condensation{ID: fmt.Sprint("ours", step), Edit: e}); err != nil {
		t.Fatal(err)
	}
}

// A damaged line that is not part of the conversation is skipped. When something else was
// hidden it became part of the conversation, and the file could not be read.
func TestChangedSessionWithDamagedLineCanBeReadBack(t *testing.T) {
	t.Parallel()
	const before = `{"type":"user","uuid":"a","parentUuid":null,"sessionId":"s","message":{"role":"user","content":"one"}}
{"type":"assistant","uuid":"b","parentUuid":"a","sessionId":"s","message":{"id":"m1","role":"assistant","content":[{"type":"text","text":"two"}]}}
`
	const damaged = `{"type":"user","uuid":"x","parentUuid":"b","sessionId":"s","mage":{"role":"user","content":"lost"}}
`
	const behind = `{"type":"system","subtype":"compact_boundary","uuid":"c","parentUuid":null,"logicalParentUuid":"b","sessionId":"s","compactMetadata":{"trigger":"manual"}}
{"type":"user","uuid":"d","parentUuid":"c","sessionId":"s","isCompactSummary":true,"message":{"role":"user","content":"summary"}}
{"type":"assistant","uuid":"e","parentUuid":"d","sessionId":"s","message":{"id":"m2","role":"assistant","content":[{"type":"text","text":"three"}]}}
{"type":"user","uuid":"f","parentUuid":"e","sessionId":"s","message":{"role":"user","content":"four"}}
`
	for _, file := range []string{before + damaged + behind, damaged + before + behind, before + behind + damaged + strings.ReplaceAll(before, `"a","parentUuid":null`, `"g","parentUuid":"f"`)} {
		for choice := range 8 {
			d, err := transcript.Read(strings.NewReader(file), &transcript.ReadOptions{Format: "claudecode"})
			if err != nil {
				continue // it is part of the conversation
			}
			if all := d.Journal.Condensations(); len(all) > 0 && choice&1 > 0 {
				if err := d.Journal.Undo(all[0].ID); err != nil {
					t.Fatal(err)
				}
			}
			e := someEdit(d)
			if choice&2 > 0 { // everything that was there
				e = core.Edit{Insert: e.Insert}
				for _, m := range d.Journal.View() {
					e.Hide = append(e.Hide, m.ID)
				}
			}
			if choice&4 > 0 {
				e.Insert = nil
			}
			condense(t, d, e)
			want := flat(d.Journal.View())
			var b strings.Builder
			if _, err := d.Write(&b, ""); err != nil {
				if len(want) > 0 {
					t.Errorf("choice %d of\n%s%v", choice, file, err)
				}
				continue // nothing is left: refused
			}
			out := b.String()
			again, err := transcript.Read(strings.NewReader(out), &transcript.ReadOptions{})
			if err != nil {
				t.Errorf("choice %d of\n%scannot be read: %v\n%s", choice, file, err, out)
				continue
			}
			if diff := cmp.Diff(want, flat(again.Journal.View())); diff != "" {
				t.Errorf("choice %d of\n%s(-want +got):\n%s\n%s", choice, file, diff, out)
			}
		}
	}
}

// A session of which nothing is left, and one made of nothing, can be read.
func TestEmptySessionCanBeReadBack(t *testing.T) {
	t.Parallel()
	hidden := read(t, `[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`, "")
	condense(t, hidden, core.Edit{Hide: []string{"m1", "m2"}})
	own := read(t, files(t, "claudecode")["session.jsonl"], "")
	all := core.Edit{}
	for _, m := range own.Journal.View() {
		all.Hide = append(all.Hide, m.ID)
	}
	condense(t, own, all)
	for name, d := range map[string]*transcript.Document{"hidden": hidden, "own": own, "nothing": document(t)} {
		out, _ := write(t, d, "claudecode")
		again, err := transcript.Read(strings.NewReader(out), nil)
		if err != nil || again.Format != "claudecode" || again.Journal.Len() != 0 {
			t.Errorf("%s: %v, read %+v\n%s", name, err, again, out)
		}
	}
}

// The transcript of a subagent has only lines that a session leaves aside: there they are the conversation.
func TestTranscriptOfASubagentIsRead(t *testing.T) {
	line := func(uuid, parent, kind, message string) string {
		return fmt.Sprintf(`{"parentUuid":%s,"isSidechain":true,"agentId":"a1","sessionId":"s","type":%q,"message":%s,"uuid":%q,"timestamp":"2026-11-01T10:00:00Z"}`+"\n", parent, kind, message, uuid)
	}
	file := line("00000000-0000-4000-8000-000000000001", "null", "user", `{"role":"user","content":"Find the callers of pay."}`) +
		line("00000000-0000-4000-8000-000000000002", `"00000000-0000-4000-8000-000000000001"`, "assistant", `{"id":"m1","role":"assistant","model":"claude-opus-5-5","content":[{"type":"text","text":"Three."}]}`)
	d := read(t, file, "")
	if n := len(d.Journal.View()); n != 2 {
		t.Fatalf("%d messages", n)
	}
	if out, _ := write(t, d, ""); out != file {
		t.Errorf("written back:\n%s", out)
	}
	condense(t, d, core.Edit{Hide: []string{d.Journal.View()[0].ID}, Insert: []core.Insert{{Message: core.Message{ID: "x", Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("It looked for callers.")}}}}})
	out, _ := write(t, d, "")
	again := read(t, out, "")
	if n := len(again.Journal.View()); n != 2 || strings.Contains(out, `"isSidechain":false`) {
		t.Errorf("%d messages after a condensation:\n%s", n, out)
	}
	main := strings.Replace(line("00000000-0000-4000-8000-000000000003", "null", "user", `{"role":"user","content":"Hello."}`), `"isSidechain":true`, `"isSidechain":false`, 1)
	if n := len(read(t, main+file, "").Journal.View()); n != 1 {
		t.Errorf("%d messages of a session with a subagent", n)
	}
}
