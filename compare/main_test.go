package compare_test

import (
	"flag"
	"testing"
)

// TestMain leaves the example out with -short: it takes four seconds, and an example cannot skip itself.
func TestMain(m *testing.M) {
	if flag.Parse(); testing.Short() {
		_ = flag.Set("test.skip", "ExampleRun")
	}
	m.Run()
}
