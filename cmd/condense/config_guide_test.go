package main_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/condensehq/condense/internal/testkit"
)

var update = flag.Bool("update", false, "write into the guides what the commands print")

// Every command of the guides runs as written, and prints what the guide shows below it.
//
// A block ```console is a shell session: lines that begin with "$ " are input, the others are
// output. A block with a file name after its language, as in ```yaml condense.yaml, is written to
// that file. Each section (##) starts in an empty folder.
func TestGuides(t *testing.T) {
	testkit.Process(t)
	for file, least := range map[string]int{
		"../../docs/switching-providers.md": 10,
		"../../README.md":                   3,
		"../../docs/smart-passes.md":        1,
		"../../docs/serving.md":             1,
		"../../docs/what-the-model-sees.md": 3,
	} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, sessions := replay(t, string(text))
			if sessions < least {
				t.Errorf("only %d sessions were found", sessions)
			}
			if diff := cmp.Diff(settled(string(text), inReports), settled(got, inReports)); diff != "" {
				if *update {
					if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
					return
				}
				t.Errorf("go test ./cmd/condense -update would change it (-want +got):\n%s", diff)
			}
		})
	}
}

// The commands of the guide to files, for the user's own sessions, run in order: each succeeds and prints something, and the last ones
// undo everything.
func TestCommandsForFilesWorkInOrder(t *testing.T) {
	testkit.Process(t)
	const least = 12
	_, section, _ := strings.Cut(read(t, "../../docs/files.md"), "\n## On your own sessions\n")
	section, _, _ = strings.Cut(section, "\n## ")
	dir := t.TempDir()
	sh := func(line string) (stdout, stderr string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+filepath.Join(dir, ".config"), "GORACE=atexit_sleep_ms=0")
		var out, errs strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errs
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, errs.String())
		}
		return out.String(), errs.String()
	}
	session, err := filepath.Abs("../../testdata/traces/pi-mono--before-compaction.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	sh("condense run " + session + " --to claudecode --window 10M -q -o session.jsonl || test $? = 3")
	// What learn recommends takes 14 seconds for that session: it gets a folder with another one.
	sh("mkdir learns && cp " + filepath.Join(filepath.Dir(session), "aider--sec0013.json.gz") + " learns")
	before, _ := sh("condense view session.jsonl")
	typed := 0
	for line := range strings.Lines(section) {
		line, ok := strings.CutPrefix(line, "    condense ")
		if !ok {
			continue
		}
		typed++
		if strings.HasPrefix(line, "learn .") {
			line = strings.Replace(line, " .", " learns", 1)
		}
		stdout, stderr := sh("condense " + line)
		if strings.TrimSpace(stdout+stderr) == "" || strings.HasPrefix(stdout, "nothing") {
			t.Errorf("condense %s shows %.100q and %.100q", line, stdout, stderr)
		}
	}
	if typed < least {
		t.Errorf("only %d commands were found", typed)
	}
	if after, _ := sh("condense view session.condense.jsonl"); after != before {
		t.Errorf("after everything was undone the session is another one:\n%.2000s", cmp.Diff(before, after))
	}
}

// A varying is a pattern for text that differs from run to run, and its replacement.
type varying struct {
	form *regexp.Regexp
	word string
}

// inReports is what differs between reports of the same condensation: durations and IDs, but not
// numbers of tokens and messages.
var inReports = []varying{
	{regexp.MustCompile(`\([0-9.]+ ms\)`), "(TIME)"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "UUID"},
}

// settled returns the lines of a guide with varying text replaced.
func settled(text string, varies []varying) []string {
	for _, v := range varies {
		text = v.form.ReplaceAllString(text, v.word)
	}
	return strings.Split(text, "\n")
}

var fence = regexp.MustCompile("^```(\\w+) ?(\\S*)$")

// replay returns the guide with the actual output of its commands, and the number of its sessions.
// They run with env in addition to the usual environment.
func replay(t *testing.T, guide string, env ...string) (got string, sessions int) {
	t.Helper()
	dir := t.TempDir()
	var out strings.Builder
	lines := strings.SplitAfter(guide, "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSuffix(lines[i], "\n")
		out.WriteString(lines[i])
		if strings.HasPrefix(line, "## ") {
			dir = t.TempDir()
		}
		begin := fence.FindStringSubmatch(line)
		if begin == nil {
			continue
		}
		var block strings.Builder
		for i++; i < len(lines) && lines[i] != "```\n"; i++ {
			block.WriteString(lines[i])
		}
		text := block.String()
		switch language, file := begin[1], begin[2]; {
		case language == "console":
			sessions++
			text = session(t, dir, text, env)
		case file != "":
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out.WriteString(text + "```\n")
	}
	return out.String(), sessions
}

// session runs the input lines of a session in one shell and returns the session with the actual
// output. A session that starts in a checkout of this repository gets its recorded sessions, and the
// program under test instead of one built by go run.
func session(t *testing.T, dir, text string, env []string) string {
	t.Helper()
	script := "exec 2>&1\n"
	if strings.Contains(text, "$ go run ./cmd/condense ") {
		script += "go() { shift 2; condense \"$@\"; }\n"
		sessions, err := filepath.Abs("../../testdata")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(sessions, filepath.Join(dir, "testdata")); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(text) {
		if typed, ok := strings.CutPrefix(line, "$ "); ok {
			script += fmt.Sprintf("cat <<'TYPED'\n%sTYPED\n%s", line, typed)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "XDG_CONFIG_HOME=" + filepath.Join(dir, ".config"),
		"GORACE=atexit_sleep_ms=0", // with -race every command would end with a second of sleep
	}, env...)
	out, err := cmd.Output()
	if err != nil && len(out) == 0 {
		t.Fatalf("%v\n%s", err, text)
	}
	return string(out)
}
