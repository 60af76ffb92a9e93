package pluginsdk_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/testkit"
	pluginsdk "github.com/condensehq/condense/plugin-sdk"
	"github.com/condensehq/condense/registry"
)

// envStrategy makes this test's binary a plugin that serves the strategy of that name.
const envStrategy = "PLUGINSDK_TEST_STRATEGY"

func TestMain(m *testing.M) {
	testkit.Covered()
	switch os.Getenv(envStrategy) {
	case "":
		os.Exit(m.Run())
	case "tail":
		pluginsdk.Main(tail())
	case "asker":
		pluginsdk.Main(asker())
	case "nameless":
		pluginsdk.Main(registry.Strategy{})
	}
}

type tailConfig struct {
	Keep  int    `json:"keep"  doc:"Messages to keep at the end."`
	Style string `json:"style" doc:"How to count." enum:"messages|tokens"`
	Fault string `json:"fault" doc:"What goes wrong in a call."`
}

func (c *tailConfig) Validate() error {
	var errs []error
	if c.Keep < 1 {
		errs = append(errs, fmt.Errorf("keep: %d is not positive", c.Keep))
	}
	if c.Style != "messages" && c.Style != "tokens" {
		errs = append(errs, fmt.Errorf("style: %q is neither messages nor tokens", c.Style))
	}
	return errors.Join(errs...)
}

// tail keeps the first message and the last ones.
func tail() registry.Strategy {
	return registry.Define("tail", "Keeps the end of a conversation. A test.",
		func() tailConfig { return tailConfig{Keep: 4, Style: "messages"} },
		func(_ context.Context, c tailConfig, env registry.Env) (core.CondensationProvider, error) {
			return &tailProvider{c, env}, nil
		})
}

type tailProvider struct {
	tailConfig

	env registry.Env
}

func (p *tailProvider) Condense(ctx context.Context, req *core.Request) (*core.Result, error) {
	p.env.Logger.InfoContext(ctx, "condensing", "messages", len(req.Messages))
	switch p.Fault {
	case "talks":
		fmt.Println("said on standard output")
	case "panic":
		panic("boom")
	case "exit":
		os.Exit(3)
	}
	if n := len(req.Messages); n > p.Keep+1 {
		return &core.Result{Messages: core.KeepGroups(req.Messages, func(i int) bool { return i == 0 || i >= n-p.Keep })}, nil
	}
	return &core.Result{Messages: req.Messages}, nil
}

// Close shows that the provider was closed.
func (p *tailProvider) Close() error {
	p.env.Logger.Info("closed")
	return nil
}

// asker asks the host for all that a provider can, and lets smart shorten all but the ends.
func asker() registry.Strategy {
	return registry.Define("asker", "Asks the host. A test.", func() struct{} { return struct{}{} },
		func(_ context.Context, _ struct{}, env registry.Env) (core.CondensationProvider, error) {
			return core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
				vectors, _, err := env.Embed(ctx, []string{"a text"})
				if err != nil {
					return nil, err
				}
				hidden, err := req.Hidden("old")
				if err != nil {
					return nil, err
				}
				file, err := req.File("a.go")
				if err != nil {
					return nil, err
				}
				part := *req
				part.Messages = slices.Clone(req.Messages)
				for i := range part.Messages {
					if i < 2 || i > len(part.Messages)-4 {
						part.Messages[i].Protected = true
					}
				}
				res, err := env.Run(ctx, &part, "smart", nil)
				if err != nil {
					return nil, err
				}
				note := core.Text(fmt.Sprint(vectors[0], hidden[0].Parts, file, req.Cached.Messages, req.Messages[0].Labels))
				res.Messages = slices.Insert(res.Messages, 0, core.Message{Role: core.RoleUser, Kind: core.KindMarker, Parts: []core.Part{note}})
				return res, nil
			}), nil
		})
}
