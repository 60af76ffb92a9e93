package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each source is written with its messages, and with the questions whose evidence is among them.
func TestSources(t *testing.T) {
	t.Parallel()
	in, out := t.TempDir(), t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		name = filepath.Join(in, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	file("chats/3/chat.json", `[{"turns":[[{"id":0,"role":"user","time_anchor":"March-15","content":"I plan."},{"id":1,"role":"assistant","content":"Well."}],[{"id":2,"role":"user","content":"More."}]]}]`)
	file("chats/3/probing_questions/probing_questions.json", `{"abstention":[{"question":"?"}],"order":[{"source_chat_ids":[2,[0],2,77]},{"source_chat_ids":[77]}],"update":[{"source_chat_ids":{"old":[0],"new":[2]}}]}`)
	talks := file("locomo10.json", `[{"sample_id":"conv-1","conversation":{"speaker_a":"Ann","speaker_b":"Bo","session_1_date_time":"8 May","session_1":[
		{"speaker":"Ann","dia_id":"D1:1","text":"Hi"},{"speaker":"Bo","dia_id":"D1:2","text":"Look","blip_caption":"a photo of a sign"}],"session_2_date_time":"9 May","session_3_date_time":"10 May","session_3":[{"speaker":"Ann","dia_id":"D3:1","text":"Bye"}]},
		"qa":[{"evidence":["D1:2; D3:1"],"category":2},{"evidence":["D"],"category":4}]}]`)
	context := file("d40.json", `[{"role":"user","content":"[Summary]"},{"role":"user","content":"I bought a red boat."},{"role":"assistant","content":"A RED BOAT is fine."},{"role":"user","content":"ok"}]`)
	file("d40_meta.json", `{"facts":[{"fact_id":"F1","question_type":"user","keywords":["red","Boat"],"message_start":1,"message_end":3},
		{"fact_id":"F2","question_type":"user","keywords":["Summary"],"message_start":0,"message_end":0,"compacted":true},{"fact_id":"F3","keywords":["green"],"message_start":1,"message_end":3},
		{"fact_id":"F4","question_type":"told by the assistant","keywords":["boat"],"message_start":1,"message_end":3},{"fact_id":"F5","question_type":"user","keywords":["fine"],"message_start":1,"message_end":3}]}`)
	for _, args := range [][]string{{"beam", filepath.Join(in, "chats"), out, "3-3"}, {"locomo", talks, out, "1-1"}, {"lost", context, out}} {
		if err := run(args); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	for name, want := range map[string]string{
		"beam-3": `{"id":"beam-3","messages":[{"id":"0","role":"user","time":"March-15","text":"I plan."},{"id":"1","role":"assistant","text":"Well."},{"id":"2","role":"user","text":"More."}],` +
			`"questions":[{"id":"order-1","ability":"order","evidence":["2","0"]},{"id":"update-1","ability":"update","evidence":["2","0"]}]}`,
		"conv-1": `{"id":"conv-1","messages":[{"id":"D1:1","role":"user","time":"8 May","session":"session_1","text":"Ann: Hi"},{"id":"D1:2","role":"assistant","time":"8 May","session":"session_1","text":"Bo: Look (shares a photo of a sign)"},{"id":"D3:1","role":"user","time":"10 May","session":"session_3","text":"Ann: Bye"}],` +
			`"questions":[{"id":"1","ability":"time","evidence":["D1:2","D3:1"]}]}`,
		"d40": `{"id":"d40","messages":[{"id":"0","role":"user","text":"[Summary]"},{"id":"1","role":"user","text":"I bought a red boat."},{"id":"2","role":"assistant","text":"A RED BOAT is fine."},{"id":"3","role":"user","text":"ok"}],` +
			`"questions":[{"id":"F1","ability":"user","evidence":["1"]},{"id":"F4","ability":"told by the assistant","evidence":["2"]},{"id":"F5","ability":"user","evidence":["2"]}]}`,
	} {
		data, err := os.ReadFile(filepath.Join(out, name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		for i := range lines {
			lines[i] = strings.Replace(strings.TrimSpace(lines[i]), `": `, `":`, 1)
		}
		if got := strings.Join(lines, ""); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
	session := func(n int, tool string) string {
		return fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"Edit","input":%s}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":"done %d"}]}`, n, tool, n, n)
	}
	text := `{"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"r","name":"Read","input":{"file_path":"a.go"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"r","content":"` +
		strings.Repeat(`func number() int { return 1 }\nfunc other() int { return 2 }\nfunc third() int { return 3 }\nfunc fourth() int { return 4 }\nfunc fifth() int { return 5 }\n`, 2) + `"}]}`
	for n := range 6 {
		edit := `{"file_path":"a.go","old_string":"func  number() int { return 1 }\nfunc other() int { return 2 }\nfunc unseen() {}\n}","new_string":""}`
		if n == 1 {
			edit = `{"input":"*** Begin Patch\n@@\n func third() int { return 3 }\n-func fourth() int { return 4 }\n-func fifth() int { return 5 }\n+func new() int { return 6 }\n"}`
		}
		text += "," + session(n, edit)
	}
	if err := run([]string{"anchors", file("edits.json", text+"]}"), out}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(out, "edits-40.json"))
	if err != nil {
		t.Fatal(err)
	}
	var anchored conversation
	if err := json.Unmarshal(data, &anchored); err != nil {
		t.Fatal(err)
	}
	want := []string{"func number() int { return 1 }", "func other() int { return 2 }", "func third() int { return 3 }", "func fourth() int { return 4 }", "func fifth() int { return 5 }"}
	if len(anchored.Questions) != 1 || !slices.Equal(anchored.Questions[0].Lines, want) || anchored.Messages[1].Calls[0].Name != "Read" || anchored.Messages[2].ResultOf != "r" {
		t.Errorf("got %+v", anchored)
	}
	for _, args := range [][]string{{}, {"beam", in, out}, {"beam", in, out, "3-3"}, {"other", in, out, "1-1"}, {"locomo", talks, out, "1-2"}} {
		if run(args) == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

// The searched messages are those that answer the questions, and sessions count where messages name them.
func TestSearched(t *testing.T) {
	t.Parallel()
	c := conversation{Messages: []message{
		{ID: "1", Role: "user", Session: "a", Text: "Our team moves to the new office on the ninth of June."},
		{ID: "2", Role: "assistant", Session: "a", Text: "Noted. A good plan has boxes, labels, and a list of all rooms."},
		{ID: "3", Role: "user", Session: "b", Text: "How many boxes does a team of twelve people need?"},
	}, Questions: []question{{ID: "q", Ability: "dates", Text: "When does the office move?", Evidence: []string{"1"}}}}
	folder := t.TempDir()
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "talk.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := searched([]string{folder}); err != nil {
		t.Error(err)
	}
	if got := row([]found{{"talk", "dates", []float64{1, 1, 0, 1}}, {"talk", "numbers", []float64{0, 1}}}, ""); got != "all questions\t2\t0.500 ±0.000\t1.000 ±0.000\t0.000 ±0.000\t1.000 ±0.000" {
		t.Error(got)
	}
	if err := searched([]string{t.TempDir()}); err == nil {
		t.Error("a folder without conversations has results")
	}
}
