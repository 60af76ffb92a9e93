package live_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/condensehq/condense/internal/testkit/upstream"
)

// socketed is an agent that speaks Responses over a WebSocket, and sends only what is new.
func socketed(session string) upstream.Client {
	return upstream.Client{API: upstream.Responses, Model: "gpt-5.6", Thinking: "medium", Stream: true, Session: session, Socket: true}
}

// The loop of an agent over a WebSocket is several times as long as the window: the vendor, which holds the history, refuses nothing, and
// the prefix breaks only where an epoch begins a new chain.
func TestSocketLoops(t *testing.T) {
	t.Parallel()
	loops := []struct{ window, calls, size int }{{window, 45, 2200}}
	if !testing.Short() {
		loops = append(loops, struct{ window, calls, size int }{60_000, 45, 12_000}, struct{ window, calls, size int }{200_000, 120, 12_000})
	}
	for _, l := range loops {
		t.Run(fmt.Sprint(l.window, "/", l.calls), func(t *testing.T) {
			t.Parallel()
			p := playIn(t, l.window, upstream.Options{Window: l.window, Script: work(l.calls, l.size)}, socketed("s1"), nil)
			p.works(t)
			p.check(t, 1)
			whole, before := 0, p.vendor.Turns()
			for _, r := range before {
				if !containsField(r.Body, "previous_response_id") {
					whole++
				}
			}
			if s := p.Stats(); whole != s.EpochCount+1 {
				t.Errorf("%d of %d requests had the whole history, with %d epochs", whole, len(before), s.EpochCount)
			}
		})
	}
}

func containsField(body []byte, name string) bool {
	var o map[string]json.RawMessage
	return json.Unmarshal(body, &o) == nil && o[name] != nil
}
