package main

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/pgtest"
)

// The test binary is the program that the scripts run; see plain.
func TestMain(m *testing.M) {
	testkit.Covered()
	testscript.Main(plain{m}, map[string]func(){
		"condense": main,
		"agent":    fakeAgent,
	})
}

// plain are tests in which the command is built without the race detector, which makes some of them ten times as
// slow. The packages have tests of their own with it.
type plain struct{ *testing.M }

// Run implements testscript.TestingM.
func (p plain) Run() int {
	flag.Parse()
	if !raceEnabled || testing.Short() || testing.CoverMode() != "" { // -short starts no command
		return p.M.Run()
	}
	dir, err := os.MkdirTemp("", "condense-command")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is a temporary folder
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "condense"), ".").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("build the command: %v\n%s", err, out))
	}
	if err := os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH")); err != nil {
		panic(err)
	}
	return p.M.Run()
}

// TestScripts runs testdata/script: what a user types, and the output. A script has the recorded sessions in
// $SESSIONS, testdata/plugin as a program in $PLUGIN, a module of WebAssembly in $MODULE, this checkout
// in $CHECKOUT, the caches of the go command in $GO_CACHE and $GO_MODCACHE, a cache of comparisons that scripts share in $RESULTS, and
// at $SPY a server that records requests in the file spied;
// where PostgreSQL is installed (condition postgres), a database in $POSTGRES; serveCommands are for gateways. No
// process that it started may outlive it.
func TestScripts(t *testing.T) {
	testkit.Process(t)
	sessions, err := filepath.Abs("../../testdata/traces")
	if err != nil {
		t.Fatal(err)
	}
	// Not this binary: the memory limit of plugins does not allow for the race detector.
	plugin := filepath.Join(t.TempDir(), "plugin")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", plugin, "./testdata/plugin").CombinedOutput(); err != nil {
		t.Fatalf("build the plugin: %v\n%s", err, out)
	}
	module, err := filepath.Abs("../../internal/plugins/wasm/testdata/tidy-rust.wasm")
	if err != nil {
		t.Fatal(err)
	}
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	caches, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	goCaches, results := strings.Fields(string(caches)), t.TempDir()
	var database *pgtest.Server
	if pgtest.Installed() {
		database = pgtest.Start(t)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("SESSIONS", sessions)
			env.Setenv("PLUGIN", plugin)
			env.Setenv("MODULE", module)
			env.Setenv("CHECKOUT", checkout)
			env.Setenv("RESULTS", results)
			env.Setenv("GO_CACHE", goCaches[0])
			env.Setenv("GO_MODCACHE", goCaches[1])
			env.Defer(func() {
				if left := processesIn(env.WorkDir); len(left) > 0 {
					t.Errorf("%s left processes: %q", filepath.Base(env.WorkDir), left)
				}
			})
			spy := httptest.NewServer(spying(filepath.Join(env.WorkDir, "spied")))
			env.Defer(spy.Close)
			env.Setenv("SPY", spy.URL)
			nobody := httptest.NewServer(http.NotFoundHandler()) // at a port of its own: no gateway answers there
			env.Defer(nobody.Close)
			env.Setenv("NOBODY", nobody.URL)
			if database != nil {
				env.Setenv("POSTGRES", database.URL())
			}
			env.Values[servedKey{}] = &served{}
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, ".config"))
			env.Setenv("GORACE", "atexit_sleep_ms=0") // with -race every command would end with a second of sleep
			return nil
		},
		Cmds: serveCommands,
		Condition: func(name string) (bool, error) {
			if name != "postgres" {
				return false, fmt.Errorf("no condition %s", name)
			}
			return database != nil, nil
		},
		UpdateScripts:       flag.Lookup("update").Value.String() == "true",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// spying records every request, with its header and body, in a file.
func spying(file string) http.Handler {
	var one sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		defer one.Unlock()
		seen, err := httputil.DumpRequest(r, true)
		if err != nil {
			seen = []byte(err.Error())
		}
		f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.Write(seen)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			panic(err)
		}
		w.WriteHeader(http.StatusTeapot)
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
