package live

import (
	"github.com/condensehq/condense"
	"github.com/condensehq/condense/internal/live/store"
)

// NewWith is New with a store of a test.
func NewWith(host *condense.Host, opts *Options, s store.Store) (*Gateway, error) {
	settings, err := newSettings(opts)
	if err != nil {
		return nil, err
	}
	return start(host, settings, s)
}

// TokensOf is for tests of its cost.
var TokensOf = tokensOf
