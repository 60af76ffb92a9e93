package smart

import (
	"cmp"
	"context"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

type argsSettings struct {
	Over int `json:"over" doc:"size in bytes above which an argument is shortened"`
	Head int `json:"head" doc:"bytes of it to keep"`
	Keep int `json:"keep" doc:"number of newest calls to keep whole"`
}

// Validate says which setting is out of range.
func (s *argsSettings) Validate() error {
	return cmp.Or(atLeast(0, "over", s.Over), atLeast(0, "head", s.Head), atLeast(0, "keep", s.Keep))
}

var argsPass = define("args", classLossy,
	"deepagents: arguments of old writes and edits above 2,000 characters become their first 20",
	"Shortens long arguments of old calls, the oldest first, until the target is met.",
	argsSettings{Over: 2000, Head: 20, Keep: 5},
	func(_ context.Context, w *work, c argsSettings) error {
		var calls []int
		for i := range w.pieces {
			if w.pieces[i].kind == dialog.KindToolCall && !w.hidden[w.message(i)] {
				calls = append(calls, i)
			}
		}
		for _, i := range calls[:max(0, len(calls)-c.Keep)] {
			if w.met() {
				break
			}
			w.looked(1)
			if len(w.pieces[i].text) > c.Over {
				w.shortenCall(i, c.Head, "")
			}
		}
		return nil
	})

type reasoningSettings struct {
	Turns int `json:"turns" doc:"number of newest user turns whose reasoning is kept; at least 1, because vendors require it while tools run"`
}

// Validate says which setting is out of range.
func (s *reasoningSettings) Validate() error { return atLeast(1, "turns", s.Turns) }

var reasoningPass = define("reasoning", classLossy,
	"Anthropic context editing, clear_thinking_20251015: the last turn is kept",
	"Removes the reasoning of old turns. It is signed, so it is removed as a whole, without a stub.",
	reasoningSettings{Turns: 1},
	func(_ context.Context, w *work, c reasoningSettings) error {
		last := w.turnFromEnd(c.Turns)
		for i := range w.pieces {
			p := &w.pieces[i]
			msg := w.message(i)
			if p.kind != dialog.KindReasoning || p.fixed || p.gone || msg >= last || w.hidden[msg] {
				continue
			}
			if w.met() {
				break
			}
			w.looked(1)
			if w.saysMore(msg) {
				w.drop(i)
			}
		}
		return nil
	})

// saysMore reports whether a message holds anything in addition to its reasoning.
func (w *work) saysMore(msg int) bool {
	m := w.msgs[msg]
	var rest []core.Part
	for _, p := range m.Parts {
		if _, ok := p.(core.Reasoning); !ok {
			rest = append(rest, p)
		}
	}
	m.Parts = rest
	return !m.Blank()
}

type proseSettings struct {
	Tokens int `json:"tokens" doc:"largest size of a text of the assistant"`
	Keep   int `json:"keep" doc:"number of newest messages to keep whole"`
}

// Validate says which setting is out of range.
func (s *proseSettings) Validate() error {
	return cmp.Or(atLeast(40, "tokens", s.Tokens), atLeast(0, "keep", s.Keep))
}

var prosePass = define("prose", classLossy, "",
	"Cuts long texts of the assistant and injected texts to their beginning and end, the oldest first, until the target is met. What the user typed is kept.",
	proseSettings{Tokens: 200, Keep: 10},
	func(_ context.Context, w *work, c proseSettings) error {
		for i := range w.pieces {
			p := &w.pieces[i]
			if w.met() || w.message(i) >= len(w.msgs)-c.Keep {
				break
			}
			if p.kind != dialog.KindAssistant && p.kind != dialog.KindInjected || w.hidden[w.message(i)] {
				continue
			}
			w.looked(1)
			w.headTail(i, c.Tokens, 0.5)
		}
		return nil
	})
