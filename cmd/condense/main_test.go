package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/condensehq/condense/internal/testkit"
)

// The test binary is the program that the scripts run.
func TestMain(m *testing.M) {
	testkit.Covered()
	testscript.Main(m, map[string]func(){
		"condense": main,
	})
}

// TestScripts runs testdata/script: what a user types, and what comes back. A script finds
// the recorded sessions in $SESSIONS, and testdata/plugin as a program in $PLUGIN. No process
// that it started outlives it.
func TestScripts(t *testing.T) {
	sessions, err := filepath.Abs("../../testdata/traces")
	if err != nil {
		t.Fatal(err)
	}
	// It is built and not this binary: what the race detector maps, no plugin may have.
	plugin := filepath.Join(t.TempDir(), "plugin")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", plugin, "./testdata/plugin").CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, out)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("SESSIONS", sessions)
			env.Setenv("PLUGIN", plugin)
			env.Defer(func() {
				if left := processesIn(env.WorkDir); len(left) > 0 {
					t.Errorf("%s left processes: %q", filepath.Base(env.WorkDir), left)
				}
			})
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, ".config"))
			env.Setenv("GORACE", "atexit_sleep_ms=0") // with -race every command would end with a second of sleep
			return nil
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// processesIn returns the command lines of the processes whose program is in dir; none
// where there is no /proc.
func processesIn(dir string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		if strings.HasPrefix(string(text), dir+string(filepath.Separator)) {
			found = append(found, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return found
}
