package compare_test

import (
	"context"
	"fmt"

	"github.com/condensehq/condense/compare"
	"github.com/condensehq/condense/providers/slidingwindow"
)

// A provider's author checks, in a test say, that it is not worse than another: with 95 %
// confidence it loses at most 0.02 of what was needed later.
func ExampleRun() {
	mine := compare.Strategy{Name: "mine", Provider: slidingwindow.New(slidingwindow.DefaultConfig())}
	other := compare.Strategy{Name: "other", Provider: slidingwindow.New(slidingwindow.DefaultConfig())}
	report, err := compare.Run(context.Background(), compare.Demo(), []compare.Strategy{mine, other}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	d := report.Difference("mine", "other", compare.MeasurePanel)
	fmt.Println(d.NotBelow(0.02), d)
	// Output: true panel: no difference shown between mine and other, +0.000 (95 % interval +0.000 to +0.000, 10 sessions)
}
