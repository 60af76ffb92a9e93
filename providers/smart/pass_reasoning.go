package smart

import (
	"context"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
)

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
		for i := range w.segments {
			p := &w.segments[i]
			msg := w.message(i)
			if p.kind != dialog.KindReasoning || p.fixed || p.gone || msg >= last || w.hidden[msg] {
				continue
			}
			if w.fits() {
				break
			}
			w.visited(1)
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
