package smart_test

import (
	"math"
	"sync"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/tokens"
)

func counter(tb testing.TB) *tokens.Counter {
	tb.Helper()
	c, err := sharedCounter()
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// sharedCounter is one for all tests: they count the same sessions, and it remembers the counts.
var sharedCounter = sync.OnceValues(func() (*tokens.Counter, error) {
	e, err := tokens.Open(tokens.O200kBase)
	if err != nil {
		return nil, err
	}
	return tokens.NewCounter(e), nil
})

// request asks for the messages, measured by c, to be brought to target tokens.
func request(messages []core.Message, c core.Counter, target int) *core.Request {
	for i := range messages {
		messages[i].Tokens = core.MessageTokens(c, messages[i])
	}
	n := 0
	for i := range messages {
		n += messages[i].Tokens
	}
	return &core.Request{
		Messages: messages, Counter: c, Trigger: core.TriggerAutomatic,
		Budget: core.Budget{Window: 2 * n, Limit: max(n, target), Target: target},
	}
}

func total(messages []core.Message) int {
	n := 0
	for i := range messages {
		n += messages[i].Tokens
	}
	return n
}

// TestLosslessOnTheAncestorsShapes holds the lossless passes to what is in the sessions
// for them to save: not less, and not more.
func TestLosslessOnTheAncestorsShapes(t *testing.T) {
	c := counter(t)
	for _, s := range shapes {
		for _, p := range []protocol{parts, xml} {
			t.Run(s.name+"/"+p.String(), func(t *testing.T) {
				req := request(s.history(p), c, 1)
				before := total(req.Messages)
				res := condense(t, open(t, `{"preset": "lossless"}`), req)
				saved := 100 * float64(before-total(res.Messages)) / float64(before)
				t.Logf("%d messages, %d tokens: %.1f %% saved", len(req.Messages), before, saved)
				if math.Abs(saved-s.total()) > 2 {
					t.Errorf("got %.1f %% saved, want %.1f ± 2", saved, s.total())
					for _, st := range res.Steps {
						t.Logf("%+v", st)
					}
				}
				if math.Abs(float64(before)/float64(s.tokens)-1) > 0.1 {
					t.Errorf("got a session of %d tokens, want about %d", before, s.tokens)
				}
			})
		}
	}
}
