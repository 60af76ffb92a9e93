// Package resolver turns the names in a configuration into the strategies and language
// models that they mean, and checks that they can be used.
package resolver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/model"
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

// A lender returns the language model of a name.
type lender = func(name string) (model.Generator, error)

// RunnerOf returns a function that lets a strategy shorten the messages of req that are not protected, for a provider that uses the answer,
// which is verified, as a part of its own. The provider may be a module without files, so the strategy reads none. Errors of the
// provider's wrap [core.ErrInvalidRequest].
func RunnerOf(reg *registry.Registry) func(context.Context, *core.Request, string, json.RawMessage, lender) (*core.Result, error) {
	return func(ctx context.Context, req *core.Request, name string, settings json.RawMessage, models lender) (*core.Result, error) {
		s, err := reg.Get(name)
		var p core.CondensationProvider
		if err == nil {
			err = namesNoFile(settings)
		}
		if err == nil {
			p, err = s.Open(ctx, settings, registry.Env{Model: models})
		}
		switch {
		case errors.Is(err, core.ErrUnavailable):
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("%w: %w", core.ErrInvalidRequest, err)
		}
		defer core.Close(p) //nolint:errcheck // nothing depends on it
		given := req.Clone()
		given.Dir, given.FilesRead, given.Abilities = "", nil, s.Abilities
		given.State, given.States, given.MayWait = nil, nil, false // are the provider's
		res, err := p.Condense(ctx, given)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		check := *req
		check.Abilities = s.Abilities
		return res, core.Verify(&check, res)
	}
}

// namesNoFile returns an error if a setting names a file of the user.
func namesNoFile(settings json.RawMessage) error {
	var all map[string]json.RawMessage
	if json.Unmarshal(settings, &all) != nil {
		return nil //nolint:nilerr // no object: a value, or reported when it is read
	}
	for name, value := range all {
		if strings.HasSuffix(strings.ToLower(name), "_file") {
			return fmt.Errorf("settings: %s: names a file, which only the user's configuration may", name)
		}
		if err := namesNoFile(value); err != nil {
			return err
		}
	}
	return nil
}
