package sdktest_test

import (
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/plugin-sdk/sdktest"
	"github.com/condensehq/condense/providers/slidingwindow"
)

func TestConformance(t *testing.T) {
	coretest.Run(t, func(t *testing.T) core.CondensationProvider {
		return sdktest.Loopback(t, slidingwindow.Strategy(), nil)
	})
}
