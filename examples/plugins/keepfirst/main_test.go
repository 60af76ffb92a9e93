package main

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/plugin-sdk/sdktest"
)

// TestConformance runs the conformance suite through the protocol: nothing lost, no call
// separated from its result, and so on.
func TestConformance(t *testing.T) {
	coretest.Run(t, func(t *testing.T) core.CondensationProvider {
		return sdktest.Loopback(t, strategy, json.RawMessage(`{"first": 2, "last": 3}`))
	})
}

func TestKeepsBothEnds(t *testing.T) {
	p := sdktest.Loopback(t, strategy, json.RawMessage(`{"first": 1, "last": 2}`))
	messages := coretest.Conversation(
		coretest.User(core.Text("Find the bug.")),
		coretest.Assistant(core.Text("I look at the tests first.")),
		coretest.User(core.Text("Good.")),
		coretest.Assistant(core.Text("I read the parser."), coretest.Call("c1")), // m4
		coretest.User(coretest.Result("c1", "func parse()")),                     // m5
		coretest.Assistant(core.Text("It is in line 3.")),
	)
	res, err := p.Condense(t.Context(), coretest.HalfRequest(messages))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range res.Messages {
		got = append(got, m.ID)
	}
	// m5 is one of the last two, and m4 has its call.
	if want := []string{"m1", "m4", "m5", "m6"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
