package live_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
)

// bare removes the thinking from a history, as Claude Code does after /model.
func bare(history []object) []object {
	out := make([]object, 0, len(history))
	for _, m := range history {
		content, _ := m["content"].([]any)
		content = slices.DeleteFunc(slices.Clone(content), func(b any) bool {
			o, _ := b.(object)
			return o["type"] == "thinking" || o["type"] == "redacted_thinking"
		})
		if m["role"] != "assistant" || len(content) > 0 {
			out = append(out, object{"role": m["role"], "content": content})
		}
	}
	return out
}

// TestEpochsGoOnAfterAChangeOfModel: whether thinking is bound to the messages before it is a property of the model that a
// request asks, not of the conversation. After a change of the model, in every direction and with or without the older
// thinking, epochs begin, the turn keeps its thinking, and the client sees no refusal. This vendor binds the thinking of every
// model: a change to one that checks it costs one repaired request.
func TestEpochsGoOnAfterAChangeOfModel(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	type asked struct{ model, thinking string }
	bound, older, off := asked{"claude-opus-5-5", "adaptive"}, asked{"claude-sonnet-4-5", "enabled"}, asked{"claude-sonnet-4-5", ""}
	unbound := asked{"claude-opus-4-8", "adaptive"}
	for name, models := range map[string][]asked{
		"bound to enabled": {bound, older}, "enabled to bound": {older, bound}, "bound to none": {bound, off}, "none to bound": {off, bound},
		"bound to adaptive": {bound, unbound}, "adaptive to bound": {unbound, bound}, "there and back": {bound, older, bound}, "and again": {older, bound, older},
	} {
		for _, before := range []int{4, 14} { // requests to the first models: without and with an epoch
			for _, drops := range []bool{true, false} {
				if !testkit.Night() && drops != (before == 4) {
					continue
				}
				t.Run(strings.ReplaceAll(name, " ", "_")+map[int]string{4: "/early", 14: "/late"}[before]+map[bool]string{true: "/drops"}[drops], func(t *testing.T) {
					t.Parallel()
					p := newPlay(t, upstream.Options{Script: upstream.Loop(80, 2200, nil)}, upstream.Client{API: upstream.Messages, Stream: true, Session: "s"}, nil)
					for i, m := range models {
						if i > 0 {
							p.client.History = append(p.client.History, object{"role": "assistant", "content": []any{object{"type": "text", "text": "Done."}}})
						}
						if i > 0 && drops {
							p.client.History = bare(p.client.History)
						}
						p.client.Model, p.client.Thinking = m.model, m.thinking
						p.client.History = append(p.client.History, first(upstream.Messages, "Go on with "+m.model+"."))
						n, were := before, p.Stats().EpochCount
						if i == len(models)-1 {
							n = 40
						}
						for k := range n {
							if _, _, err := p.client.Step(t.Context()); err != nil {
								t.Fatalf("request %d to %s: %v", k+1, m.model, err)
							}
						}
						if got := p.Stats().EpochCount - were; i == len(models)-1 && got < 2 {
							t.Errorf("%d epochs in 40 requests to %s", got, m.model)
						}
					}
					refused := 0
					for _, r := range p.vendor.Refusals() {
						if refused++; r.Rule != "binding" {
							t.Errorf("request %d was refused: %s: %s", r.N, r.Rule, r.Error)
						}
					}
					for kind, n := range p.Stats().Errors {
						if kind != "retry_thinking" && kind != "vendor_invalid_request_error" || n > 1 || refused > 1 {
							t.Errorf("%s: %d", kind, n)
						}
					}
				})
			}
		}
	}
}

// piOf is pi with a model of OpenAI's that recalls the first result before its fourth call.
func piOf(t *testing.T, needle string, calls int) *play {
	t.Helper()
	p := newPlay(t, upstream.Options{Script: looking(calls, needle, map[int]upstream.Step{4: {Calls: []upstream.Call{wants(map[string]any{"grep": "quokka"})}}})},
		upstream.Client{API: upstream.Responses, Model: "gpt-6.2-sol", Thinking: "adaptive", Session: "s", Stream: true, More: map[string]any{"tools": nil}}, withTool)
	p.client.History = []object{
		{"type": "additional_tools", "role": "developer", "tools": []any{object{
			"type": "function", "name": "bash", "parameters": object{"type": "object", "properties": object{"command": object{"type": "string"}}}, "strict": true,
		}}},
		{"role": "developer", "content": "You are a coding assistant running inside pi, a coding agent harness."},
		first(upstream.Responses, "Run the commands."),
	}
	return p
}

// TestRecallBeforeCompaction: the answer with a recall comes first after the agent's own summary, and has its reasoning: the vendor gets
// the call that belongs to it, too.
func TestRecallBeforeCompaction(t *testing.T) {
	t.Parallel()
	const needle = "the quokka lives at 7731"
	p := piOf(t, needle, 8)
	p.steps(t, 6)
	answer := slices.IndexFunc(p.client.History, func(o object) bool {
		return o["call_id"] != nil && strings.Contains(fmt.Sprint(o["arguments"]), "INFO worker")
	})
	for p.client.History[answer-1]["type"] == "reasoning" {
		answer--
	}
	p.client.History = slices.Concat(p.client.History[:2], []object{first(upstream.Responses, "Summary: four commands ran.")}, p.client.History[answer:])
	p.steps(t, 1)
	turns := p.vendor.Turns()
	if len(p.vendor.Refusals()) > 0 || !bytes.Contains(turns[len(turns)-1].Body, []byte(needle)) {
		t.Errorf("refused: %v; the recall is not in the request: %s", p.vendor.Refusals(), turns[len(turns)-1].Body)
	}
}

// TestPi: for OpenAI's newest models pi sends its tools and each change of the effort as items. The gateway's tool is among them, an epoch
// keeps one change of the effort, and stays when pi leaves out the reasoning, the IDs and the efforts of another model.
func TestPi(t *testing.T) {
	testkit.Slow(t)
	t.Parallel()
	const needle, effort = "the quokka lives at 7731", "configuration_update"
	p := piOf(t, needle, 60)
	step := func() []byte {
		t.Helper()
		p.client.History = append(p.client.History, object{"type": effort, "reasoning": object{"effort": "medium"}})
		if _, _, err := p.client.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		turns := p.vendor.Turns()
		return turns[len(turns)-1].Body
	}
	for p.Stats().EpochCount < 2 {
		step()
	}
	if got := p.toolResults(t); len(got) != 1 || !strings.Contains(got[0], needle) {
		t.Errorf("recalled: %q", got)
	}
	before := rawElements(t, step())
	at := slices.IndexFunc(before, func(raw json.RawMessage) bool { return bytes.Contains(raw, []byte("[Extract of")) })
	if at < 0 || slices.ContainsFunc(before[at+1:], func(raw json.RawMessage) bool { return bytes.Contains(raw, []byte("[Extract of")) }) {
		t.Errorf("the extract is not in one piece: %s", before)
	}
	bare := slices.DeleteFunc(p.client.History, func(o object) bool { return o["type"] == "reasoning" || o["type"] == effort })
	for i := range bare {
		delete(bare[i], "id")
	}
	p.client.History, p.client.Model = append(bare, first(upstream.Responses, "Go on.")), "gpt-6-sol"
	after := rawElements(t, step())
	if n := p.Stats().EpochCount; n != 2 || !bytes.Equal(slices.Concat(before[:at+1]...), slices.Concat(after[:at+1]...)) {
		t.Errorf("%d epochs after the change of the model; the history is not the same: %s", n, after[:at+1])
	}
	p.steps(t, 10)
	if refused := p.vendor.Refusals(); len(refused) > 0 {
		t.Errorf("refused: %+v", refused[0].Error)
	}
}
