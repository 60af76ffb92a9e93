package dialog

import "testing"

// TestAider: output of aider and of the commands that it runs is distinguished from typed text.
func TestAider(t *testing.T) {
	var r aiderReader
	at := 0
	for _, tt := range []struct {
		message int
		text    string
		program bool
	}{
		{0, "/home/ann/.venv/bin/aider main.py\nAider v0.47.2-dev\nModels: claude-3-5-sonnet with diff edit format", true},
		{0, "Add tests for the parser, please.", false},
		{2, "Tokens: 7,373 sent, 764 received. Cost: $0.03 request, $0.03 session.\nApplied edit to main.py", true},
		{2, "Commit messages are in English here.", false},
		{2, "/undo", false},
		{2, "Removed: bb25264 style: Apply linter formatting", true},
		{2, "/add main.py", false},
		{2, "Added main.py to the chat\n\n\n^C again to exit", true},
		{2, "Added a test to the chat example?", false},
		{4, "/clear\n/run pytest -s", false},
		{4, "======= test session starts =======", true},
		{6, "Add the output to the chat?", true},
		{8, "======= test session starts =======\nplatform darwin\nFAILED", true},
		{8, "Why does it fail?", false},
		{10, "/run true", false},
		{12, "It printed nothing.", false},
		{12, "", false},
		{14, "/test", false},
		{14, "<environment_details>\n</environment_details>", false},
	} {
		if tt.message != at {
			at, r.ran = tt.message, false
		}
		if got := r.wrote(tt.text); got != tt.program {
			t.Errorf("message %d, %q: got %v, want %v", tt.message, tt.text, got, tt.program)
		}
	}
	var other aiderReader // not aider's: a command has no output here
	for _, text := range []string{"/test the parser", "and tell me what you think"} {
		if other.wrote(text) {
			t.Errorf("%q: a program's", text)
		}
	}
}
