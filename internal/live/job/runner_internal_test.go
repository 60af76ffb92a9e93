package job

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/live/queue"
	"github.com/condensehq/condense/internal/live/wire"
)

// An over context has a deadline that comes while the work is done, without a clock.
type over struct{ context.Context } //nolint:containedctx // it is a context

func (over) Deadline() (time.Time, bool) { return time.Now().Add(time.Hour), true }
func (over) Err() error                  { return context.DeadlineExceeded }

// TestAProcessThatComputesGetsFewerTurns: a chain that should wait for another process, and is not in time if many do so at once, gets
// as many turns as one that computes. In time or not, alone it tells nothing.
func TestAProcessThatComputesGetsFewerTurns(t *testing.T) {
	for _, c := range []struct {
		crowd int
		want  int64
	}{{1, turnsAtOnce()}, {int(turnsAtOnce()) + 1, computes()}} {
		r := &Runner{Epochs: queue.New(turnsAtOnce() * computes())}
		chain := &Learned{Names: []string{"a plugin"}, Waits: true}
		for range c.crowd {
			if _, ok := r.Epochs.Try("a tenant", chain.weight()); !ok {
				t.Fatal("no room")
			}
		}
		if _, err := r.paced(over{t.Context()}, &Job{Owner: Owner{Chain: chain}}, r.host, Inline, &chain.pace); err == nil {
			t.Fatal("a job without a body was done")
		}
		if got := chain.weight(); got != c.want {
			t.Errorf("%d at once were too slow: weight %d, want %d", c.crowd, got, c.want)
		}
	}
}

// TestALongConversationIsNotSkippedForItsLength: another process that took as long with short conversations as with long ones is
// expected to take that long. What computes takes longer with a longer one.
func TestALongConversationIsNotSkippedForItsLength(t *testing.T) {
	var p pace
	p.took(10_000, 2*time.Second)
	if got := p.of(100_000, true); got != 2*time.Second {
		t.Errorf("another process: %s", got)
	}
	if got := p.of(100_000, false); got != 20*time.Second {
		t.Errorf("on the processors: %s", got)
	}
	p.stopped(100_000, 5*time.Second)
	if got := p.of(10_000, true); got != 2*time.Second {
		t.Errorf("a short one after a long one that was stopped: %s", got)
	}
}

// What a view says that is not so is measured of every API.
func TestTruthIsMeasured(t *testing.T) {
	r := &Runner{idle: queue.New(1)}
	for _, tt := range []struct {
		api     wire.API
		history []string
		view    string
	}{
		{wire.Messages, []string{
			`{"role":"user","content":"Never delete table 12. Rename it."}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"Edit","input":{"file_path":"a.go","old_string":"func run() { handle(queue) }","new_string":"func run() { handle(jobs) }"}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"done by the tool alone"}]}`,
			`{"role":"assistant","content":[{"type":"tool_use","id":"c2","name":"Bash","input":{"command":"git commit -m x"}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":"[main 3f9a2b7] x"}]}`,
		}, `{"role":"user","content":"?"}`},
		{wire.Chat, []string{
			`{"role":"user","content":"Never delete table 12. Rename it."}`,
			`{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"Edit","arguments":"{\"file_path\":\"a.go\",\"old_string\":\"func run() { handle(queue) }\",\"new_string\":\"func run() { handle(jobs) }\"}"}}]}`,
			`{"role":"tool","tool_call_id":"c1","content":"done by the tool alone"}`,
			`{"role":"assistant","tool_calls":[{"id":"c2","type":"function","function":{"name":"Bash","arguments":"{\"command\":\"git commit -m x\"}"}}]}`,
			`{"role":"tool","tool_call_id":"c2","content":"[main 3f9a2b7] x"}`,
		}, `{"role":"user","content":"?"}`},
		{wire.Responses, []string{
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"Never delete table 12. Rename it."}]}`,
			`{"type":"function_call","call_id":"c1","name":"Edit","arguments":"{\"file_path\":\"a.go\",\"old_string\":\"func run() { handle(queue) }\",\"new_string\":\"func run() { handle(jobs) }\"}"}`,
			`{"type":"function_call_output","call_id":"c1","output":"done by the tool alone"}`,
			`{"type":"function_call","call_id":"c2","name":"Bash","arguments":"{\"command\":\"git commit -m x\"}"}`,
			`{"type":"function_call_output","call_id":"c2","output":"[main 3f9a2b7] x"}`,
		}, `{"type":"message","role":"user","content":[{"type":"input_text","text":"?"}]}`},
		{wire.Gemini, []string{
			`{"role":"user","parts":[{"text":"Never delete table 12. Rename it."}]}`,
			`{"role":"model","parts":[{"functionCall":{"id":"c1","name":"Edit","args":{"file_path":"a.go","old_string":"func run() { handle(queue) }","new_string":"func run() { handle(jobs) }"}}}]}`,
			`{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"Edit","response":{"output":"done by the tool alone"}}}]}`,
			`{"role":"model","parts":[{"functionCall":{"id":"c2","name":"Bash","args":{"command":"git commit -m x"}}}]}`,
			`{"role":"user","parts":[{"functionResponse":{"id":"c2","name":"Bash","response":{"output":"[main 3f9a2b7] x"}}}]}`,
		}, `{"role":"user","parts":[{"text":"?"}]}`},
		{wire.Converse, []string{
			`{"role":"user","content":[{"text":"Never delete table 12. Rename it."}]}`,
			`{"role":"assistant","content":[{"toolUse":{"toolUseId":"c1","name":"Edit","input":{"file_path":"a.go","old_string":"func run() { handle(queue) }","new_string":"func run() { handle(jobs) }"}}}]}`,
			`{"role":"user","content":[{"toolResult":{"toolUseId":"c1","content":[{"text":"done by the tool alone"}]}}]}`,
			`{"role":"assistant","content":[{"toolUse":{"toolUseId":"c2","name":"Bash","input":{"command":"git commit -m x"}}}]}`,
			`{"role":"user","content":[{"toolResult":{"toolUseId":"c2","content":[{"text":"[main 3f9a2b7] x"}]}}]}`,
		}, `{"role":"user","content":[{"text":"?"}]}`},
	} {
		t.Run(string(tt.api), func(t *testing.T) {
			extract, err := json.Marshal(core.Frame("other") + "\n¶ user\nRename it.\ndone by the tool alone\n¶ result a.go\nfunc run() { handle(queue) }")
			if err != nil {
				t.Fatal(err)
			}
			var history [][]byte
			for _, m := range tt.history {
				history = append(history, []byte(m))
			}
			got, err := r.Judge(t.Context(), "a tenant", tt.api, history, [][]byte{[]byte(strings.Replace(tt.view, `"?"`, string(extract), 1))})
			want := epoch.Truth{Sentences: 2, SentencesGone: 1, Claims: 1, WrongAuthor: 1, Lines: 1, Superseded: 1, Outcomes: 1, OutcomesLost: 1}
			if err != nil || *got != want {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
			if got, err = r.Judge(t.Context(), "a tenant", tt.api, history, history); err != nil || len(got.Faults()) > 0 {
				t.Errorf("the history itself has %+v, %v", got, err)
			}
		})
	}
}
