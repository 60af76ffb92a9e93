// Package resolver turns the names in a configuration into the strategies and language
// models that they mean, and checks that they can be used.
package resolver

import (
	"slices"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/providers"
	"github.com/condensehq/condense/registry"
	"github.com/condensehq/condense/tokens"
)

// Strategies returns the built-in strategies and the program's own.
func Strategies(own ...registry.Strategy) (*registry.Registry, error) {
	return registry.New(slices.Concat(providers.Builtin(), own)...)
}

// Names returns opts with the known names of strategies, tokenizers and the default chain. Names that opts has
// already stay.
func Names(reg *registry.Registry, opts config.Options) config.Options {
	if opts.Builtin == nil {
		opts.Builtin = reg.Names()
	}
	if opts.Strategies == nil {
		opts.Strategies = reg.Names()
	}
	if opts.Tokenizers == nil {
		opts.Tokenizers = tokens.Names()
	}
	if opts.Chain == nil {
		opts.Chain = providers.Chain()
	}
	return opts
}
