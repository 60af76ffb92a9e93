package sdktest_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/model"
	"github.com/condensehq/condense/plugin-sdk/sdktest"
	"github.com/condensehq/condense/providers/native"
	"github.com/condensehq/condense/registry"
)

// TestModels checks that a strategy in a plugin can call the models of the host.
func TestModels(t *testing.T) {
	models := map[string]model.Generator{"": sdktest.Extractive(), "cheap": sdktest.Extractive()}
	for _, settings := range []string{`{}`, `{"model":"cheap"}`} {
		p := sdktest.LoopbackModels(t, native.Strategy(), json.RawMessage(settings), models)
		res, err := p.Condense(t.Context(), coretest.HalfRequest(coretest.Session()))
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(res.Messages)
		if err != nil || !strings.Contains(string(text), "No language model has written this summary") {
			t.Errorf("%s: got %s, %v", settings, text, err)
		}
	}
	p := sdktest.LoopbackModels(t, native.Strategy(), json.RawMessage(`{"model":"dear"}`), models)
	_, err := p.Condense(t.Context(), coretest.HalfRequest(coretest.Session()))
	if err == nil || !strings.Contains(err.Error(), `has no language model "dear"; there are ["" "cheap"]`) {
		t.Errorf("got error %v", err)
	}
}

// TestNoModels: what needs a model and has none is skipped, not broken.
func TestNoModels(t *testing.T) {
	type none struct{}
	s := registry.Define("asks", "A test.", func() none { return none{} },
		func(_ context.Context, _ none, env registry.Env) (core.CondensationProvider, error) {
			m, err := env.Model("")
			return core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
				_, err := m.Generate(ctx, &model.Prompt{Messages: req.Messages})
				return nil, err
			}), err
		})
	chain, err := core.NewChain([]core.NamedProvider{{Name: "asks", Provider: sdktest.Loopback(t, s, nil)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	req := coretest.HalfRequest(coretest.Session())
	req.Budget.Limit = req.Tokens()
	got, err := chain.Run(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if at := got.Attempts[0]; at.Outcome != core.OutcomeSkipped || !strings.Contains(at.Reason, "has no language model") {
		t.Errorf("got %s: %s", at.Outcome, at.Reason)
	}
}
