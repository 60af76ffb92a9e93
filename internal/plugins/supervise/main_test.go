//go:build linux

package supervise_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/plugin-sdk/host/wasm"
)

// startedWith is the environment of this process before a test binary that measures coverage
// adds to it.
var startedWith = os.Environ()

// TestMain plays the other process: this binary, called with the arguments plugin NAME, is
// the program of that name.
func TestMain(m *testing.M) {
	testkit.Covered()
	wasm.Init()
	if len(os.Args) > 2 && os.Args[1] == "plugin" {
		run, ok := programs[os.Args[2]]
		if !ok {
			fmt.Fprintf(os.Stderr, "there is no program %q\n", os.Args[2])
			os.Exit(9)
		}
		run()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if dir, err := moduleCache(); err == nil {
			_ = os.RemoveAll(dir)
		}
		os.Exit(code)
	}))
}
