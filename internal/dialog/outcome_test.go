package dialog_test

import (
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/dialog"
)

// TestFailedIsRecognizedByWhatItIs: agents, shells, compilers and test runners say that something failed in many forms, and
// few formats have a flag for it.
func TestFailedIsRecognizedByWhatItIs(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a line of output\n", 200)
	for _, c := range []struct{ tool, command, text string }{
		// Exit codes, in all agents' forms.
		{"Bash", "make", "Exit code 2\nboom"},
		{"shell", "make", "Exit code: 1\nWall time: 0.1 seconds\nOutput:\n" + long},
		{"shell", "make", `{"output":"` + strings.Repeat("x", 900) + `","metadata":{"exit_code":101,"duration_seconds":0.2}}`},
		{"exec_command", "make", "Chunk ID: 1\nProcess exited with code 127\nOutput:\n" + long},
		{"bash", "make", long + "\nCommand exited with code 1"},
		{"execute_command", "make", "Command executed in terminal within working directory '/home/somebody/a/long/path/to/a/project/of/theirs'. Command execution was not successful, inspect the cause and adjust as needed.\nExit code: 1\nOutput:\n" + long},
		{"run_shell_command", "make", "Command: make\nOutput: no\nError: (none)\nExit Code: 2\nSignal: (none)"},
		{"bash", "make", long + "[The command completed with exit code 1.]"},
		{"bash", "make", "ExitCode: 1\n"},
		{"bash", "make", "exited 1"},
		{"bash", "make", "boom\nexit status 3"},
		{"bash", "make", "CompletedProcess(args=['x'], returncode=1)"},
		{"bash", "cat a | grep b", "Exit code 1"},
		// Exceptions, crashes and tools.
		{"bash", "python x.py", "start\n" + long + "Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\nZeroDivisionError: division by zero"},
		{"bash", "python x.py", long + "botocore.exceptions.ClientError: An error occurred"},
		{"bash", "go run .", "panic: runtime error: index out of range\n\ngoroutine 1 [running]:\nmain.main()"},
		{"bash", "cargo run", "thread 'main' panicked at src/main.rs:2:5:\nno"},
		{"bash", "node x.js", "node:internal/modules:1\n  throw err;\n  ^\n\nError: Cannot find module 'x'\n    at a (b:1:2)"},
		{"bash", "java A", "Exception in thread \"main\" java.lang.NullPointerException\n\tat A.main(A.java:3)"},
		{"bash", "./a", "Segmentation fault (core dumped)"},
		{"mcp__db__query", "", "Error: cannot open file"},
		{"read_file", "", "Error: cannot open file"},
		{"edit", "", "<tool_use_error>String to replace not found"},
		{"mcp__db__query", "", `{"error": "no such table"}`},
		{"mcp__db__query", "", `{"success": false, "reason": "x"}`},
		{"web_fetch", "", "Request failed with status code 404"},
		{"bash", "make", "Command timed out after 2m 0.0s"},
		// Tests.
		{"bash", "pytest", long + "=========== 1 failed, 3 passed in 0.12s ==========="},
		{"bash", "pytest -q", long + "1 failed, 3 passed in 0.12s"},
		{"bash", "python -m unittest", long + "Ran 3 tests in 0.1s\n\nFAILED (failures=1)"},
		{"bash", "go test ./...", "ok  \ta\t0.1s\n--- FAIL: TestX (0.00s)\nFAIL\nb\t0.2s\nFAIL"},
		{"bash", "npx jest", long + "Tests:       1 failed, 2 passed, 3 total"},
		{"bash", "npx vitest", long + " Tests  2 failed | 3 passed (5)"},
		{"bash", "npx mocha", long + "  3 passing (2s)\n  1 failing"},
		{"bash", "rspec", "12 examples, 1 failure"},
		{"bash", "mvn test", "[ERROR] Tests run: 3, Failures: 1, Errors: 0\n[INFO] BUILD FAILURE"},
		{"bash", "gradle", "BUILD FAILED in 3s"},
		{"bash", "node --test", long + "# pass 2\n# fail 1"},
		{"bash", "bun test", " 3 pass\n 1 fail"},
		{"bash", "dotnet test", "Failed!  - Failed:     1, Passed:     2"},
		{"bash", "phpunit", "FAILURES!\nTests: 3, Assertions: 3, Failures: 1."},
		{"bash", "go test | tail -3", "Exit code: 0\n--- FAIL: TestX (0.00s)\nFAIL"},
		// Compilers and shells.
		{"bash", "gcc a.c", "a.c:3:5: error: expected ';'"},
		{"bash", "tsc", "src/a.ts(3,5): error TS2304: Cannot find name 'x'."},
		{"bash", "tsc", "src/a.ts:3:5 - error TS2304: Cannot find name 'x'."},
		{"bash", "cargo build", "error[E0425]: cannot find value `x`\n" + long + "error: could not compile `a`"},
		{"bash", "go build ./...", "# example.com/a\n./a.go:3:5: undefined: x"},
		{"bash", "javac A.java", "A.java:3: error: ';' expected"},
		{"bash", "make", "cc -c a.c\nmake: *** [Makefile:3: a.o] Error 1"},
		{"bash", "npm run build", "npm ERR! code ELIFECYCLE"},
		{"bash", "eslint .", "/a.js\n  3:5  error  x is not defined  no-undef\n\n✖ 1 problem (1 error, 0 warnings)"},
		{"bash", "mypy .", "Found 3 errors in 1 file"},
		{"bash", "foo", "bash: foo: command not found"},
		{"bash", "foo", "zsh: command not found: foo"},
		{"bash", "foo", "sh: 1: foo: not found"},
		{"bash", "cat a", "cat: a: No such file or directory"},
		{"bash", "git push", "fatal: not a git repository"},
		{"bash", "pytest", "\x1b[31mERROR: file or directory not found: x\x1b[0m"},
	} {
		if !dialog.Failed(dialog.FamilyOf(c.tool), c.command, c.text) {
			t.Errorf("%s %s: not recognized: %.120q … %q", c.tool, c.command, c.text, c.text[max(0, len(c.text)-80):])
		}
	}
	for _, c := range []struct{ tool, command, text string }{
		{"bash", "make", "all is well; the last error was yesterday"},
		{"bash", "make", "0 errors, 0 warnings\nno error found"},
		{"bash", "make", "Exit code: 0\nerror handling: ok"},
		{"read_file", "", "func f() error {\n\treturn errors.New(\"failed: exit code 1\")\n}\npanic: no"},
		{"bash", "cat build.sh", "set -e\nmake || exit 1\nexit 1"},
		{"bash", "grep -rn error .", "a.go:3:5: error: x\nb.go:4: // Error: y"},
		{"bash", "pytest", "=== 3 passed in 0.1s ==="},
		{"bash", "npx jest", "Tests:       3 passed, 3 total"},
		{"bash", "cargo test", "test result: ok. 3 passed; 0 failed; 0 ignored"},
		{"bash", "mvn test", "Tests run: 3, Failures: 0, Errors: 0\nBUILD SUCCESS"},
		{"bash", "rspec", "12 examples, 0 failures"},
		{"bash", "node --test", "# pass 2\n# fail 0"},
		{"mcp__db__query", "", `{"error": null, "rows": []}`},
		{"mcp__db__query", "", `{"errors": [], "success": true}`},
		{"read_file", "", "1\tError: this is a line of a file\n2\tpanic: too"},
		{"bash", "make", "see https://example.com/errors: nothing"},
		{"ask_followup_question", "", "Error: that is what I see on my screen"},
		{"bash", "npm run lint", "✖ 3 problems (0 errors, 3 warnings)"},
		{"list_files", "", "error.go\nfailed.txt\nException.java"},
		{"search_files", "", "Found 3 results.\n# a.py\n  1 | raise ValueError: x"},
		{"bash", "make", "# Errors\nclass FooError(Exception):\n    pass"},
		{"bash", "docker ps", "Exited (0) 3 minutes ago"},
		{"bash", "make", ""},
	} {
		if dialog.Failed(dialog.FamilyOf(c.tool), c.command, c.text) {
			t.Errorf("%s %s: taken for a failure: %q", c.tool, c.command, c.text)
		}
	}
}
