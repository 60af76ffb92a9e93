package sdktest_test

import (
	"context"
	"slices"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/plugin-sdk/sdktest"
	"github.com/condensehq/condense/providers/slidingwindow"
	"github.com/condensehq/condense/registry"
)

func TestConformance(t *testing.T) {
	coretest.Run(t, func(t *testing.T) core.CondensationProvider {
		return sdktest.Loopback(t, slidingwindow.Strategy(), nil)
	})
}

// What the host knows of a message reaches a plugin: its number for recall, and that the user typed nothing of it, so that it is not
// taken for the newest request. Compiled in, the same provider sees the same.
func TestNumbersAndPrograms(t *testing.T) {
	var numbers, asked []int
	ask := core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
		numbers, asked = nil, req.Unanswered()
		for _, m := range req.Messages {
			numbers = append(numbers, m.Number)
		}
		return &core.Result{Messages: req.Messages}, nil
	})
	plugin := sdktest.Loopback(t, registry.Define("ask", "Looks.", func() struct{} { return struct{}{} },
		func(context.Context, struct{}, registry.Env) (core.CondensationProvider, error) { return ask, nil }), nil)
	messages := coretest.Conversation(
		coretest.User(core.Text("Look.")), coretest.Assistant(core.Text("I look.")), coretest.User(core.Text("<reminder>Be brief.</reminder>")), coretest.User(core.Text("Go on.")),
	)
	for i := range messages {
		messages[i].Number = 7 + i
	}
	req := coretest.HalfRequest(messages)
	req.Typed = func(m *core.Message) []string {
		if text := string(m.Parts[0].(core.Text)); text[0] != '<' {
			return []string{text}
		}
		return nil
	}
	for name, p := range map[string]core.CondensationProvider{"compiled in": ask, "a plugin": plugin} {
		if _, err := p.Condense(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(numbers, []int{7, 8, 9, 10}) || !slices.Equal(asked, []int{3}) {
			t.Errorf("%s: messages %v, the newest request is %v", name, numbers, asked)
		}
	}
	if messages[2].Program {
		t.Error("the request was changed")
	}
}
