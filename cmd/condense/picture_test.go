package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/condensehq/condense/internal/size"
	"github.com/condensehq/condense/internal/testkit"
)

// The session of README, and its copy there.
const shownSession = "../../testdata/traces/context-evaluator--8209f1c2-ccba-4dd6-8b9e-8d6d142183e2.json.gz"

// A placed text is one line of the picture.
type placed struct {
	Text string
	Y    int
}

// A bar shows the tokens of one kind before and after, or of all.
type bar struct {
	Name, Before, After, From string
	Y, Top, Was, Width        int
	Sum                       bool
}

// TestPicture: the picture of README is a run of the program. Its template is testdata/picture.svg.tmpl; -update draws it again.
func TestPicture(t *testing.T) {
	testkit.Process(t)
	session, err := filepath.Abs(shownSession)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(session, filepath.Join(dir, "session.json.gz")); err != nil {
		t.Fatal(err)
	}
	sh := func(line string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "GORACE=atexit_sleep_ms=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		return string(out)
	}
	var r struct {
		Tokens struct {
			Before, After int
			ByKind        map[string]struct{ Before, After int } `json:"by_kind"`
		}
		Messages, Words struct{ Before, After int }
	}
	p := map[string]any{"Session": "session.json.gz", "Flags": "--to condense -o shorter.jsonl"}
	if err := json.Unmarshal([]byte(sh(fmt.Sprintf("condense run %s %s -q --report -", p["Session"], p["Flags"]))), &r); err != nil {
		t.Fatal(err)
	}
	p["Messages"], p["Before"], p["After"] = r.Messages.Before, size.Group(r.Tokens.Before), size.Group(r.Tokens.After)
	if r.Words.After != r.Words.Before {
		t.Errorf("the picture says that all the user's words are kept: %v", r.Words)
	}
	p["Words"] = size.Group(r.Words.After)
	var bars []bar
	var sum [2]int
	const widest = 120
	for i, row := range []struct{ name, kinds string }{
		{"tool results", "tool_result"},
		{"tool calls", "tool_call"},
		{"assistant", "assistant"},
		{"you, injected", "user injected"},
		{"quotes, index", "summary"},
		{"all", ""},
	} {
		before, after, y := r.Tokens.Before, r.Tokens.After, 110+23*i
		if row.kinds != "" {
			before, after = 0, 0
			for kind := range strings.FieldsSeq(row.kinds) {
				before, after = before+r.Tokens.ByKind[kind].Before, after+r.Tokens.ByKind[kind].After
			}
			sum[0], sum[1] = sum[0]+before, sum[1]+after
		}
		b := bar{Name: row.name, Before: size.Group(before), After: size.Group(after), Y: y, Top: y - 12, Sum: row.kinds == ""}
		b.Was, b.Width = before*widest/r.Tokens.Before, max(1, after*widest/r.Tokens.Before)
		b.From = fmt.Sprintf("%.2f", float64(b.Was)/float64(b.Width))
		bars = append(bars, b)
	}
	if sum != [2]int{r.Tokens.Before, r.Tokens.After} {
		t.Errorf("the rows make %v tokens, and the last one says %v", sum, r.Tokens)
	}
	p["Bars"] = bars
	view := sh("condense view shorter.jsonl --to anthropic 2>/dev/null")
	if strings.Contains(view, "[base64") {
		t.Error("the view speaks of base64, which the session does not have")
	}
	var sent []struct{ Content any }
	if err := json.Unmarshal([]byte(view), &sent); err != nil {
		t.Fatal(err)
	}
	extract, y := fmt.Sprint(sent[0].Content), 290
	const longest = 46 // letters of a line, which a phone can show
	at := func(lines []string) (out []placed) {
		for _, line := range lines {
			y += 22
			line = strings.ReplaceAll(strings.TrimLeft(line, " "), "\t", " ")
			if letters := []rune(line); len(letters) > longest {
				line = string(letters[:longest-1]) + "…"
			}
			out = append(out, placed{line, y})
		}
		return out
	}
	var shown []string
	for _, begins := range []string{"- **No batching**: All issues", "fixed: bun run test", "m53 Read remediation/engine.ts"} {
		_, rest, found := strings.Cut(extract, "\n"+begins)
		if !found {
			t.Fatalf("the view has no line that begins with %q", begins)
		}
		line, _, _ := strings.Cut(begins+rest, "\n")
		shown = append(shown, line)
	}
	p["View"] = at(shown)
	y += 34
	p["RecallY"], p["Recall"] = y, "condense recall shorter.jsonl m53 --lines 2-3"
	p["Recalled"] = at(strings.Split(strings.TrimRight(sh(p["Recall"].(string)+" 2>/dev/null"), "\n"), "\n"))
	p["Undo"] = "condense undo shorter.jsonl -i"
	_, p["Undone"], _ = strings.Cut(strings.TrimSpace(sh(p["Undo"].(string))), "undone: ")

	form, err := template.New("picture.svg.tmpl").Funcs(template.FuncMap{"html": template.HTMLEscapeString}).ParseFiles("testdata/picture.svg.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	if err := form.Execute(&got, p); err != nil {
		t.Fatal(err)
	}
	const file = "../../docs/picture.svg"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if read(t, file) != got.String() {
		t.Errorf("%s is not what the program prints: go test ./cmd/condense -run TestPicture -update", file)
	}
}
