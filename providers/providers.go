// Package providers lists the strategies that are built in, and which of them are used if
// nothing else is configured.
package providers

import (
	"github.com/condensehq/condense/providers/internal/vendor"
	"github.com/condensehq/condense/providers/native"
	"github.com/condensehq/condense/providers/slidingwindow"
	"github.com/condensehq/condense/providers/smart"
	"github.com/condensehq/condense/registry"
)

// Builtin returns the strategies that come with condense.
func Builtin() []registry.Strategy {
	return []registry.Strategy{smart.Handover(), native.Strategy(), slidingwindow.Strategy(), smart.Strategy(), vendor.Strategy()}
}

// Chain returns the chain for programs whose configuration names none: the best one without cost and without a
// language model. Truncation follows it, as it follows every chain.
func Chain() []string { return []string{smart.Name} }
