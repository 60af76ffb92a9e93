package live_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

const recallName = "condense_recall"

func withTool(o *live.Options) { o.Recall.Tool = true }

// wants is a call of the gateway's tool.
func wants(input map[string]any) upstream.Call { return upstream.Call{Tool: recallName, Input: input} }

// looking returns a script of n calls whose first result has a needle. In some steps the model recalls it.
func looking(n int, needle string, at map[int]upstream.Step) []upstream.Step {
	loop := upstream.Loop(n, 6000, map[int]string{1: needle})
	var script []upstream.Step
	for i, s := range loop {
		if before, ok := at[i+1]; ok {
			script = append(script, before)
		}
		script = append(script, s)
	}
	return script
}

// recalled returns how many of the requests have the needle in a result of the tool, in their last message.
func (p *play) found(needle string) (n int) {
	for _, r := range p.vendor.Turns() {
		i := bytes.LastIndex(r.Body, []byte("[condense recall: message"))
		if i >= 0 && bytes.Contains(r.Body[i:], []byte(needle)) && len(r.Body)-i < 40_000 {
			n++
		}
	}
	return n
}

// unseen reports what the client must never see of the tool.
func (p *play) unseen(t *testing.T) {
	t.Helper()
	for _, m := range p.client.History {
		if text := fmt.Sprint(m); strings.Contains(text, recallName) {
			t.Errorf("the client has a call of the gateway's tool: %.300s", text)
		}
	}
	for _, r := range p.vendor.Turns() {
		if bytes.Count(r.Body, []byte(`"name":"`+recallName+`"`)) == 0 {
			t.Errorf("request %d is without the tool", r.N)
		}
	}
}

var handle = regexp.MustCompile(`recall h:([0-9a-f]{10})`)

// A needle of the first tool result is found after three epochs, byte for byte, and the client sees one answer.
func TestRecallTool(t *testing.T) {
	const needle = `NEEDLE-71c4 <&> \u00e9 é`
	for _, c := range clients() {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(c.API, "/", c.Model, "/stream=", stream), func(t *testing.T) {
				c.Stream = stream
				step := upstream.Step{Text: "I look it up.", Calls: []upstream.Call{wants(map[string]any{"grep": "NEEDLE-71c4"})}}
				p := newPlay(t, upstream.Options{Script: looking(60, needle, map[int]upstream.Step{3: step, 20: step, 40: step, 60: step})}, c, withTool)
				answer, err := p.client.Say(t.Context(), task)
				if err != nil {
					t.Fatal(err)
				}
				p.check(t, 3)
				p.unseen(t)
				if !strings.HasSuffix(answer, "All 60 steps are done.") {
					t.Errorf("the last answer is %q", answer)
				}
				if n := p.found("NEEDLE-71c4"); n < 4 {
					t.Errorf("the needle was found %d times", n)
				}
			})
		}
	}
}

var _ = handle
