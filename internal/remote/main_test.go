package remote_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if base := os.Getenv("REMOTE_TEST_BASE_URL"); base != "" {
		os.Exit(askOnce(base)) // the test binary plays a program in an environment of its own
	}
	goleak.VerifyTestMain(m)
}
