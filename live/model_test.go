package live_test

import (
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
