package lab_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
)

// evidenceFile writes a conversation of 20 turns with questions about the turns of the user and of the assistant.
func evidenceFile(t *testing.T, folder, name string, change func(file map[string]any)) {
	t.Helper()
	var messages []map[string]string
	for i := range 20 {
		m := map[string]string{"id": fmt.Sprint("t", i), "role": "user", "text": fmt.Sprintf("Turn %d of %s says word%d and word%d and word%d to us.", i, name, i*3, i*3+1, i*3+2)}
		if i%2 == 1 {
			m["role"] = "assistant"
		}
		messages = append(messages, m)
	}
	messages[0]["time"] = "2024-03-15"
	file := map[string]any{"id": name, "messages": messages, "questions": []map[string]any{
		{"id": "q1", "ability": "order", "evidence": []string{"t0", "t2"}},
		{"id": "q2", "ability": "order", "evidence": []string{"t4", "t7", "t9", "t19"}},
		{"id": "q3", "ability": "facts", "evidence": []string{"t11"}},
	}}
	if change != nil {
		change(file)
	}
	data, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// keepUser keeps the user's turns and the newest message.
func keepUser(req *core.Request) ([]core.Message, error) {
	var out []core.Message
	for i, m := range req.Messages {
		if m.Role == core.RoleUser || i == len(req.Messages)-1 {
			out = append(out, m)
		}
	}
	return out, nil
}

func TestEvidence(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for i := range 7 {
		evidenceFile(t, folder, fmt.Sprint("talk", i), nil)
	}
	evidenceFile(t, folder, "copy", func(f map[string]any) { f["id"] = "" })
	items, err := lab.Find("evidence:" + folder)
	if err != nil || len(items) != 8 {
		t.Fatalf("%d files, %v", len(items), err)
	}
	seen := ""
	strategies := []lab.Strategy{
		provider("user", keepUser),
		provider("all", func(req *core.Request) ([]core.Message, error) {
			text, _ := req.Messages[0].Parts[0].(core.Text)
			if strings.Contains(string(text), "talk0") {
				seen = fmt.Sprintf("%s, %d tokens of %d", text, req.Budget.Target, req.Budget.Limit)
			}
			return req.Messages, nil
		}),
		provider("torn", func(req *core.Request) ([]core.Message, error) { // every other word
			out, _ := keepUser(req)
			for i := range out[:len(out)-1] {
				t, _ := out[i].Parts[0].(core.Text)
				words := strings.Fields(string(t))
				for k := range words {
					if k%2 == 1 {
						words[k] = "…"
					}
				}
				out[i].Parts = []core.Part{core.Text(strings.Join(words, " "))}
			}
			return out, nil
		}),
	}
	r := run(t, items, lab.Options{Budgets: budgets(t, "50%"), Cache: t.TempDir()}, strategies...)
	if !strings.HasPrefix(seen, "[2024-03-15] Turn 0 of talk0") || len(r.Rows) != 0 || len(r.Sessions) != 8 {
		t.Errorf("the strategies saw %q; %d rows of %d conversations", seen, len(r.Rows), len(r.Sessions))
	}
	want := map[string]float64{
		"user":           (1 + 0.5 + 0) / 3,
		"user user":      1, //nolint:dupword // one is a kind of question, one a role
		"user assistant": (1.0/3 + 0) / 2, "user order": 0.75, "user facts": 0,
		"all": 1, "all user": 1, "all assistant": 1, "all order": 1, "all facts": 1,
		"torn": (0 + 0.25 + 0) / 3, "torn user": 0, "torn assistant": 1.0 / 6, "torn order": 0.125, "torn facts": 0,
	}
	for _, l := range r.EvidenceLines {
		k := strings.TrimSpace(l.Strategy + " " + l.Ability + string(l.Role))
		if v, ok := want[k]; !ok || math.Abs(l.Kept.Mean-v) > 1e-9 || l.Kept.Sessions != 8 || l.Kept.High-l.Kept.Low > 1e-9 {
			t.Errorf("%s: %+v, want %g", k, l, v)
		}
		delete(want, k)
		if k == "all" && (l.Over != 8 || l.Left == nil || l.Left.Mean != 1) {
			t.Errorf("what leaves everything: %+v", l)
		}
	}
	if len(want) > 0 {
		t.Errorf("no lines of %v", want)
	}
	if !slices.ContainsFunc(r.Warnings, func(w lab.Warning) bool {
		return w.Strategy == "all" && w.Text == "budget 50%: it ended above 1.03 of the budget in 8 conversations with evidence"
	}) {
		t.Errorf("warnings: %v", r.Warnings)
	}
}

// An interval is over conversations: many questions about one do not make it narrow.
func TestEvidenceIntervals(t *testing.T) {
	t.Parallel()
	r := &lab.Report{Format: lab.ReportFormat, Budgets: []string{"25%"}, Strategies: []lab.StrategyInfo{{Name: "s"}}}
	for i := range 8 {
		e := lab.Evidence{Strategy: "s", Budget: "25%", Session: fmt.Sprint("evidence:", i), Before: 100, Room: 25, After: 25}
		for k := range 40 {
			e.Questions = append(e.Questions, lab.EvidenceQuestion{ID: strconv.Itoa(k), Gold: map[core.Role]int{"user": 2}, Kept: map[core.Role]int{"user": 2 * (i % 2)}})
		}
		r.Sessions, r.Evidence = append(r.Sessions, lab.SessionInfo{Name: e.Session, Hash: e.Session}), append(r.Evidence, e)
	}
	r = lab.Concluded(r)
	if l := r.EvidenceLines[0]; l.Questions != 320 || l.Kept.Mean != 0.5 || l.Kept.High-l.Kept.Low < 0.5 {
		t.Errorf("of eight conversations: %+v", l)
	}
}

// A file that is not in the form is skipped, and the reason says what is wrong with it.
func TestWrongEvidence(t *testing.T) {
	t.Parallel()
	first := func(f map[string]any, key, value string) {
		m, _ := f["messages"].([]map[string]string)
		m[0][key] = value
	}
	for want, change := range map[string]func(map[string]any){
		`needs "messages" and "questions"`:          func(f map[string]any) { delete(f, "questions") },
		`message 1: role "tool"`:                    func(f map[string]any) { first(f, "role", "tool") },
		`message 2: id "t1" is empty or not unique`: func(f map[string]any) { first(f, "id", "t1") },
		`message "t0" has no text`:                  func(f map[string]any) { first(f, "text", " ") },
		`question "q1": there is no message "t0"`:   func(f map[string]any) { first(f, "id", "other") },
		`question "q1" has no evidence`:             func(f map[string]any) { f["questions"] = []map[string]any{{"id": "q1"}} },
		`question 1: id "" is empty`:                func(f map[string]any) { f["questions"] = []map[string]any{{"evidence": []string{"t0"}}} },
	} {
		folder := t.TempDir()
		evidenceFile(t, folder, "wrong", change)
		items, err := lab.Find("evidence:" + folder)
		if err != nil {
			t.Fatal(err)
		}
		r := run(t, items, lab.Options{}, provider("user", keepUser))
		if len(r.Skipped) != 1 || !strings.Contains(r.Skipped[0].Reason, want) {
			t.Errorf("skipped %v, want one because %s", r.Skipped, want)
		}
	}
}

// Lines are looked for in texts and in results, with white space folded.
func TestEvidenceLines(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	evidenceFile(t, folder, "edits", func(file map[string]any) {
		messages, _ := file["messages"].([]map[string]string)
		var all []any
		for _, m := range messages {
			all = append(all, m)
		}
		file["messages"] = append(all,
			map[string]any{"id": "call", "role": "assistant", "calls": []any{map[string]string{"id": "c", "name": "read", "args": "{}"}}},
			map[string]any{"id": "result", "role": "user", "result_of": "c", "text": "func  one() {\n\treturn\n}\n"})
		file["questions"] = []map[string]any{{"id": "q", "ability": "edits", "lines": []string{"func one() {", "word0 and word1 and", "func two() {"}}}
	})
	items, err := lab.Find("evidence:" + folder)
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, items, lab.Options{Budgets: budgets(t, "99%")}, provider("all", func(req *core.Request) ([]core.Message, error) { return req.Messages, nil }))
	if len(r.Evidence) != 1 || r.Evidence[0].Questions[0].Gold[core.RoleTool] != 3 || r.Evidence[0].Questions[0].Kept[core.RoleTool] != 2 {
		t.Errorf("got %+v", r.Evidence)
	}
}
