package smart_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/providers/smart"
	"github.com/condensehq/condense/registry"
)

// drawn are passes with settings small enough to do something to a small conversation.
var drawn = []string{
	`"layout"`, `{"pass": "duplicates", "tokens": 5}`, `"environment"`, `{"pass": "environment", "sections": true}`,
	`"superseded"`, `{"pass": "superseded", "by_writes": true, "runs": true}`, `{"pass": "near_duplicates", "tokens": 10}`, `{"pass": "mask", "keep": 1}`,
	`{"pass": "mask", "keep": 0, "until_target": true, "inputs": true}`,
	`{"pass": "prune", "protect": 50, "minimum": 20, "turns": 1}`, `{"pass": "headtail", "tokens": 40, "start": 80}`,
	`{"pass": "cut", "tokens": 40, "start": 80, "keep": 0}`, `"score"`, `{"pass": "score", "keep_calls": true, "keep_errors": true}`,
	`"reasoning"`, `{"pass": "results", "over": 50}`,
	`{"pass": "digest", "tokens": 100}`, `"window"`, `"value"`, `{"pass": "value", "tail": 0.5}`, `{"pass": "layout", "always": true}`,
}

// TestAnyListOfPasses holds lists of passes to what every strategy promises: the answer is
// valid, not larger, always the same, and a second run on it finds nothing left to do.
func TestAnyListOfPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.SampledFrom(drawn), 1, 6).Draw(t, "passes")
		checkList(t, "["+strings.Join(list, ",")+"]", rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 4000).Draw(t, "target"))
	})
}

func FuzzPasses(f *testing.F) {
	f.Add([]byte{1, 2, 3}, uint64(1), 500)
	f.Add([]byte{7, 16, 11}, uint64(99), 1)
	f.Fuzz(func(t *testing.T, which []byte, seed uint64, target int) {
		if len(which) == 0 || len(which) > 8 || target < 1 || target > 1<<20 {
			t.Skip()
		}
		var list []string
		for _, b := range which {
			list = append(list, drawn[int(b)%len(drawn)])
		}
		checkList(t, "["+strings.Join(list, ",")+"]", seed, target)
	})
}

func checkList(t failer, passes string, seed uint64, target int) {
	t.Helper()
	s, err := smart.Strategy().Open(nil, json.RawMessage(`{"passes": `+passes+`}`), registry.Env{}) //nolint:staticcheck // no pass needs the context
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 0))
	messages := coretest.Random(r, &coretest.RandomOptions{Tidy: seed%2 == 0})
	req := coretest.Request(messages, target)
	res := condense(t, s, req)
	if twin := condense(t, s, req); !equal(twin.Messages, res.Messages) {
		t.Fatal("the same request got another answer")
	}
	noStubIsLonger(t, req, res)
	next := again(req, res)
	second := condense(t, s, next)
	if at := differs(next.Messages, second.Messages); at != "" {
		t.Fatalf("a second run changed something: %s", at)
	}
}

// noStubIsLonger fails if a message, or one of its parts, is larger in the result, as the request counts: a stub that says more than
// what it stands for is worse than the text.
func noStubIsLonger(t failer, req *core.Request, res *core.Result) {
	t.Helper()
	was := map[string]core.Message{}
	for _, m := range req.Messages {
		was[m.ID] = m
	}
	for _, m := range res.Messages {
		before, ok := was[m.ID]
		if !ok || m.Equal(before) {
			continue
		}
		if b, a := req.Counter.Count(before.Parts...), req.Counter.Count(m.Parts...); a > b {
			t.Fatalf("%d tokens became %d:\n%v\n%v", b, a, before, m)
		}
		for i := range m.Parts {
			if len(m.Parts) != len(before.Parts) {
				break
			}
			if b, a := req.Counter.Count(before.Parts[i]), req.Counter.Count(m.Parts[i]); a > b {
				t.Fatalf("part %d: %d tokens became %d:\n%v\n%v", i, b, a, before, m)
			}
		}
	}
}

func equal(a, b []core.Message) bool { return differs(a, b) == "" }

func differs(a, b []core.Message) string {
	for i := range min(len(a), len(b)) {
		if !a[i].Equal(b[i]) {
			return fmt.Sprintf("message %d:\n%v\n%v", i, a[i], b[i])
		}
	}
	if len(a) != len(b) {
		return fmt.Sprintf("%d messages became %d", len(a), len(b))
	}
	return ""
}
