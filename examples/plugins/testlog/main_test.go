package main

import (
	"encoding/json"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/plugin-sdk/sdktest"
)

func TestConformance(t *testing.T) {
	coretest.Run(t, func(t *testing.T) core.CondensationProvider {
		return sdktest.Loopback(t, strategy, json.RawMessage(`{"recent": 0, "min_lines": 1}`))
	})
}

func TestFailuresStay(t *testing.T) {
	for name, tt := range map[string]struct{ log, want string }{
		"go":     {"=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n    b_test.go:7: got 1, want 2\n--- FAIL: TestB (0.00s)\nFAIL\nok  \tacme/x\t0.1s\nok  \tacme/y\t0.1s\n?   \tacme/z\t[no test files]\n", "[3 lines of passing tests left out]\n    b_test.go:7: got 1, want 2\n--- FAIL: TestB (0.00s)\nFAIL\n[3 lines of passing tests left out]\n"},
		"pytest": {"a.py::test_a PASSED [ 25%]\na.py::test_b PASSED\na.py::test_c PASSED\na.py::test_d FAILED\nE   assert 1 == 2", "[3 lines of passing tests left out]\na.py::test_d FAILED\nE   assert 1 == 2"},
		"jest":   {"PASS src/a.test.js\n  ✓ adds (2 ms)\n  ✓ subtracts\n  ✕ divides\n", "[3 lines of passing tests left out]\n  ✕ divides\n"},
		"cargo":  {"test a ... ok\ntest b ... FAILED\ntest c ... ok", "test a ... ok\ntest b ... FAILED\ntest c ... ok"},
		"none":   {"just\nsome\nlines", "just\nsome\nlines"},
	} {
		c := config{MinLines: 3}
		if got := c.cut(tt.log); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}

// The newest result stays whole, and so does a protected one.
func TestRecent(t *testing.T) {
	const log = "ok 1 a\nok 2 b\nok 3 c\nnot ok 4 d"
	result := func() core.Message { return coretest.User(coretest.Result("c1", log)) }
	messages := coretest.Conversation(
		coretest.Assistant(coretest.Call("c1")), result(),
		coretest.Assistant(coretest.Call("c1")), coretest.Protected(result()),
		coretest.Assistant(coretest.Call("c1")), result(),
	)
	res, err := sdktest.Loopback(t, strategy, nil).Condense(t.Context(), coretest.HalfRequest(messages))
	if err != nil {
		t.Fatal(err)
	}
	for i, changed := range []bool{false, true, false, false, false, false} {
		if core.EqualParts(res.Messages[i].Parts, messages[i].Parts) == changed {
			t.Errorf("message %d: %v", i, res.Messages[i].Parts)
		}
	}
}
