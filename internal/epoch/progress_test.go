package epoch_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/epoch"
)

// worked writes a conversation from lines: "user: words", "TOOL ARGS => RESULT" (or "=>! RESULT" for an error) and "said: words".
func worked(t *testing.T, lines string) []core.Message {
	t.Helper()
	var out []core.Message
	for i, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		line = strings.TrimSpace(line)
		if words, ok := strings.CutPrefix(line, "user: "); ok {
			out = append(out, core.Message{Role: core.RoleUser, Parts: []core.Part{core.Text(words)}})
			continue
		}
		if words, ok := strings.CutPrefix(line, "said: "); ok {
			out = append(out, core.Message{Role: core.RoleAssistant, Parts: []core.Part{core.Text(words)}})
			continue
		}
		call, result, ok := strings.Cut(line, " =>")
		name, args, _ := strings.Cut(call, " ")
		if !ok {
			t.Fatalf("line %q has no result", line)
		}
		text, failed := strings.CutPrefix(result, "!")
		id := fmt.Sprintf("c%d", i)
		out = append(out,
			core.Message{Role: core.RoleAssistant, Parts: []core.Part{core.ToolCall{ID: id, Name: name, Args: args}}},
			core.Message{Role: core.RoleTool, Parts: []core.Part{core.ToolResult{CallID: id, IsError: failed, Content: []core.Part{core.Text(strings.TrimSpace(text))}}}})
	}
	return out
}

func TestProgress(t *testing.T) {
	t.Parallel()
	const read = `Read {"file_path":"a.go"} => package a` + "\n"
	for _, tt := range []struct {
		name, lines string
		want        epoch.Progress
	}{
		{"nothing but reading", read + read + read, epoch.Progress{}},
		{"the user's words", read + "said: done\nuser: now the other one", epoch.Progress{Boundary: epoch.BoundaryAsked}},
		{"the user's words, one round later", "user: now the other one\n" + read, epoch.Progress{Boundary: epoch.BoundaryAsked}},
		{"the user's words, two rounds later", "user: now the other one\n" + read + read, epoch.Progress{}},
		{"a reminder is nobody's words", read + read + read + "user: <system-reminder>The task tools haven't been used recently.</system-reminder>", epoch.Progress{}},
		{"a commit", read + read + `Bash {"command":"cd a && git -c user.name=x commit -m 'Fix it'"} => [main 1a2b3c4] Fix it`, epoch.Progress{Boundary: epoch.BoundaryCommit}},
		{"a refused commit", read + read + `Bash {"command":"git commit -m x"} =>! nothing to commit`, epoch.Progress{}},
		{"a passing test", read + read + `Bash {"command":"go test ./..."} => ok  	example.com/a	0.1s`, epoch.Progress{Boundary: epoch.BoundaryTest}},
		{"a failing test", read + read + `Bash {"command":"go test ./a"} =>! FAIL`, epoch.Progress{Failed: "go test"}},
		{"a failing test that is said only in the text", read + `exec_command {"cmd":"pytest -q"} => ===== 1 failed, 3 passed in 0.2s =====`, epoch.Progress{Failed: "pytest"}},
		{"its repair", `Bash {"command":"go test ./a"} =>! FAIL` + "\n" + read + read + `Bash {"command":"go test ./..."} => ok  	example.com/a	0.1s`, epoch.Progress{Boundary: epoch.BoundaryTest}},
		{"another command succeeds", `Bash {"command":"go test ./a"} =>! FAIL` + "\n" + read + `Bash {"command":"go vet ./a"} => `, epoch.Progress{Boundary: epoch.BoundaryTest, Failed: "go test"}},
		{"the user asks for the repair", read + `Bash {"command":"make all"} => make: *** [Makefile:2: all] Error 1` + "\nuser: repair it", epoch.Progress{Boundary: epoch.BoundaryAsked, Failed: "make all"}},
		{"a commit after a failure", `Bash {"command":"go test ./a"} =>! FAIL` + "\n" + read + `Bash {"command":"git commit -m x"} => [main 1a2b3c4] x`, epoch.Progress{Boundary: epoch.BoundaryCommit}},
		{"a search without a hit is no failure", read + read + `Bash {"command":"grep -n x a.go"} =>! Exit code 1`, epoch.Progress{}},
		{"an item of a list is finished", `TodoWrite {"todos":[{"content":"a","status":"in_progress"}]} => ok` + "\n" + read + `TodoWrite {"todos":[{"content":"a","status":"completed"}]} => ok`, epoch.Progress{Boundary: epoch.BoundaryPlan}},
		{"a list as before", `update_plan {"plan":[{"step":"a","status":"completed"}]} => ok` + "\n" + read + read + `update_plan {"plan":[{"step":"a","status":"completed"},{"step":"b","status":"in_progress"}]} => ok`, epoch.Progress{}},
		{"one item is finished", read + read + `TaskUpdate {"taskId":"1","status":"completed"} => ok`, epoch.Progress{Boundary: epoch.BoundaryPlan}},
		{"one item is begun", read + read + `TaskUpdate {"taskId":"2","status":"in_progress"} => ok`, epoch.Progress{}},
	} {
		if got := epoch.ProgressOf(worked(t, tt.lines)); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
