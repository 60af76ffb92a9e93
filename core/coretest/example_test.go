package coretest_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// For a provider that hides every other message, the test reports the rule and the case.
func ExampleTestProvider() {
	everyOther := core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		res := &core.Result{}
		for i, m := range req.Messages {
			if i%2 == 0 {
				res.Messages = append(res.Messages, m)
			}
		}
		return res, nil
	})
	report := coretest.Examine(context.Background(), everyOther)
	for _, v := range report.Verdicts {
		if v.Case == "pending call" {
			fmt.Println(v.Err)
		}
	}
	fmt.Println("truncation passes:", coretest.TestProvider(context.Background(), coretest.Truncates()) == nil)
	// Output:
	// pending call: keep-pairs: message m3: the result of call c0 stays without the call, which message m2 had (and 5 more like it)
	// 	rule: A tool call and its result are kept or removed together and stay matched. Calls already unanswered, and results already orphaned, may remain.
	// pending call: keep-pending: message m18: call last is gone, and its result is still to come
	// 	rule: A tool call whose result is still to come stays: the result would arrive without it.
	// truncation passes: true
}

// Random histories are the same for the same seed.
func ExampleRandom() {
	r := rand.New(rand.NewPCG(3, 0))
	for _, m := range coretest.Random(r, &coretest.RandomOptions{Max: 8, Tidy: true}) {
		fmt.Println(m.ID, m.Role, m.Tokens)
	}
	// Output:
	// m1 system 33
	// m2 user 19
	// m3 assistant 57
	// m4 user 21
	// m5 assistant 53
	// m6 user 27
	// m7 assistant 52
	// m8 user 21
}
