package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The test binary is the program that the scripts run.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"condense": func() { os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs testdata/script: what a user types, and what comes back. A script finds
// the recorded sessions in $SESSIONS.
func TestScripts(t *testing.T) {
	sessions, err := filepath.Abs("../../testdata/traces")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("SESSIONS", sessions)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, ".config"))
			env.Setenv("GORACE", "atexit_sleep_ms=0") // with -race every command would end with a second of sleep
			return nil
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}
