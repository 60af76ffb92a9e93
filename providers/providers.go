// Package providers lists the strategies that are built in.
package providers

import (
	"github.com/condensehq/condense/providers/native"
	"github.com/condensehq/condense/providers/slidingwindow"
	"github.com/condensehq/condense/providers/smart"
	"github.com/condensehq/condense/registry"
)

// Builtin returns the strategies that come with condense.
func Builtin() []registry.Strategy {
	return []registry.Strategy{
		native.Strategy(),
		slidingwindow.Strategy(),
		smart.Strategy(),
	}
}
