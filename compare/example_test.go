package compare_test

import (
	"testing"

	"github.com/condensehq/condense/compare"
	"github.com/condensehq/condense/providers/slidingwindow"
)

// A provider's author says in a test that it is not worse than another on some sessions.
// The margin is what may be lost of the panel, 0 to 1.
func Example() {
	_ = func(t *testing.T) {
		mine := compare.Strategy{Name: "mine", Provider: slidingwindow.New(slidingwindow.DefaultConfig())}
		other := compare.Strategy{Name: "other", Provider: slidingwindow.New(slidingwindow.DefaultConfig())}
		report, err := compare.Run(t.Context(), compare.Demo(), []compare.Strategy{mine, other}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := report.Difference("mine", "other", "panel"); !d.NotBelow(0.02) {
			t.Error(d)
		}
	}
}
