package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// A provider can be a function. This one keeps the first message and as many of the
// newest groups as there is room for.
func ExampleProviderFunc() {
	keepNewest := core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		m := req.Messages
		if len(m) < 2 {
			return &core.Result{Messages: m}, nil
		}
		groups := core.Groups(m[1:]) // the first message is the task
		start, room := len(m), req.Budget.Room()-m[0].Tokens
		for _, g := range slices.Backward(groups) {
			for _, msg := range m[1+g.Start : start] {
				room -= msg.Tokens
			}
			if room < 0 {
				break
			}
			start = 1 + g.Start
		}
		return &core.Result{Messages: append(m[:1:1], m[start:]...)}, nil
	})

	req := coretest.Request(coretest.Conversation(
		coretest.User(core.Text("Why does the build fail?")),
		coretest.Assistant(core.Text("Let me see."), coretest.Call("c1")),
		coretest.User(coretest.Result("c1", "a long file")),
		coretest.Assistant(core.Text("A comma is missing.")),
	), 25)
	res, err := keepNewest.Condense(context.Background(), req)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range res.Messages {
		fmt.Println(m.ID, m.Role, m.Parts)
	}
	fmt.Println("valid:", core.Verify(req, res) == nil)
	// Output:
	// m1 user [Why does the build fail?]
	// m4 assistant [A comma is missing.]
	// valid: true
}

func ExampleVerify() {
	req := coretest.Request(coretest.Conversation(
		coretest.User(core.Text("Why does the build fail?")),
		coretest.Assistant(coretest.Call("c1")),
		coretest.User(coretest.Result("c1", "a long file")),
		coretest.Protected(coretest.User(core.Text("Do not touch the tests."))),
	), 20)
	// The call is hidden and its result is not, and nothing is left of a message that
	// had to stay.
	res := &core.Result{Messages: []core.Message{req.Messages[0], req.Messages[2]}}

	err := core.Verify(req, res)
	fmt.Println(err)
	if v, ok := errors.AsType[*core.ViolationError](err); ok {
		fmt.Println("first:", v.Rule, "by", v.Message)
	}
	// Output:
	// keep-protected: message m4: is hidden
	// keep-pairs: message m3: the result of call c1 stays without the call, which message m2 had
	// first: keep-protected by m4
}

// A provider for the key ingest of a configuration shortens new results before the model sees them: of the output of tests, this one
// keeps the failures.
func ExampleProviderFunc_ingest() {
	failures := core.ProviderFunc(func(_ context.Context, req *core.Request) (*core.Result, error) {
		if req.Trigger != core.TriggerIngest {
			return nil, core.ErrUnavailable // the next provider is asked
		}
		messages := req.Clone().Messages
		for _, m := range messages {
			for _, part := range m.Parts {
				result, ok := part.(core.ToolResult)
				if !ok || m.Protected {
					continue
				}
				for k, c := range result.Content {
					if text, ok := c.(core.Text); ok && strings.Contains(string(text), "--- FAIL") {
						kept := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool { return strings.HasPrefix(line, "--- PASS") })
						result.Content[k] = core.Text(strings.Join(kept, "\n"))
					}
				}
			}
		}
		return &core.Result{Messages: messages}, nil
	})
	req := coretest.Request(coretest.Conversation(
		coretest.User(core.Text("Mend the tests.")),
		coretest.Assistant(coretest.Call("c1")),
		coretest.User(coretest.Result("c1", "--- PASS: TestA\n--- FAIL: TestB\n    b.go:7: got 3, want 4\n--- PASS: TestC\nFAIL")),
		coretest.Assistant(core.Text(".")),
	), 0)
	req.Trigger = core.TriggerIngest
	res, err := failures(context.Background(), req)
	fmt.Println(err, core.Verify(req, res))
	fmt.Println(res.Messages[2].Parts[0].(core.ToolResult).Content[0])
	// Output:
	// <nil> <nil>
	// --- FAIL: TestB
	//     b.go:7: got 3, want 4
	// FAIL
}

// The second candidate is asked because the first fails.
func ExampleChain() {
	fails := core.ProviderFunc(func(context.Context, *core.Request) (*core.Result, error) { return nil, errors.New("out of order") })
	chain, err := core.NewChain([]core.NamedProvider{
		{Name: "clever", Provider: fails},
		{Name: "simple", Provider: coretest.Truncates()},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	req := coretest.Request(coretest.Conversation(
		coretest.User(core.Text("Why does the build fail? Here is all that it wrote: …")),
		coretest.Assistant(core.Text("Let me see."), coretest.Call("c1")),
		coretest.User(coretest.Result("c1", strings.Repeat("a long file ", 20))),
		coretest.Assistant(core.Text("A comma is missing.")),
	), 50)
	out, err := chain.Run(context.Background(), req)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d tokens became %d\n", out.TokensBefore, out.TokensAfter)
	for _, a := range out.Attempts {
		fmt.Printf("%s: %s %q\n", a.Provider, a.Outcome, a.Reason)
	}
	fmt.Println("hidden:", out.Edit.Hide)
	// Output:
	// 107 tokens became 39
	// clever: failed "out of order"
	// simple: applied ""
	// hidden: [m1 m2 m3]
}
