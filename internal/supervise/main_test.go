//go:build linux

package supervise_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain plays the other process: this binary, called with the arguments plugin NAME, is
// the program of that name.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "plugin" {
		run, ok := programs[os.Args[2]]
		if !ok {
			fmt.Fprintf(os.Stderr, "there is no program %q\n", os.Args[2])
			os.Exit(9)
		}
		run()
		os.Exit(0)
	}
	// Most tests wait for other processes, so that more can run than there are processors.
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
