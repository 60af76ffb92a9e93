// The keepfirst command is the smallest useful plugin: it keeps the first and the last messages
// of a conversation and hides those between them.
package main

import (
	"context"
	"errors"

	"github.com/condensehq/condense/core"
	pluginsdk "github.com/condensehq/condense/plugin-sdk"
	"github.com/condensehq/condense/registry"
)

func main() { pluginsdk.Main(strategy) }

var strategy = registry.Define("keep_first",
	"Keeps the first and the last messages. What is between them is hidden; no message is rewritten.",
	func() config { return config{First: 2, Last: 10} },
	func(_ context.Context, c config, _ registry.Env) (core.CondensationProvider, error) {
		return core.ProviderFunc(c.condense), nil
	})

type config struct {
	First int `json:"first" doc:"Messages to keep at the beginning."`
	Last  int `json:"last"  doc:"Messages to keep at the end."`
}

// Validate is called before the first conversation; the user sees its error.
func (c *config) Validate() error {
	if c.First < 1 {
		return errors.New("first: must be at least 1, or the conversation would not begin as it did")
	}
	if c.Last < 0 {
		return errors.New("last: must not be negative")
	}
	return nil
}

func (c *config) condense(_ context.Context, req *core.Request) (*core.Result, error) {
	n := len(req.Messages)
	return &core.Result{Messages: core.KeepGroups(req.Messages, func(i int) bool {
		return i < c.First || i >= n-c.Last
	})}, nil
}
