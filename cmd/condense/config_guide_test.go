package main_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write into the guides what the commands print")

// Every command of the guides runs as it is written, and prints what is written below it.
//
// A block ```console is a session in a shell: lines that begin with "$ " are typed, the
// others come back, on either output. A block with a file's name behind its language, as in
// ```yaml condense.yaml, is put into that file. Each section (##) begins in an empty folder.
func TestGuides(t *testing.T) {
	for file, least := range map[string]int{
		"../../docs/switching-providers.md": 10,
		"../../README.md":                   0,
		"../../docs/smart.md":               1,
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
			if *update && got != string(text) {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(strings.Split(string(text), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("go test ./cmd/condense -update would change it (-want +got):\n%s", diff)
			}
		})
	}
}

var fence = regexp.MustCompile("^```(\\w+) ?(\\S*)$")

// replay returns the guide with the output that its commands really have, and how many
// sessions it holds. They see env beside the usual.
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

// session runs the typed lines of a session in one shell, and returns the session as it
// looks then.
func session(t *testing.T, dir, text string, env []string) string {
	t.Helper()
	script := "exec 2>&1\n"
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
