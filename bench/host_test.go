package bench_test

import (
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
)

// open returns a host that truncates. The target is in percent of the window; everything else has its
// default.
func open(tb testing.TB, window int, target float64) *condense.Host {
	tb.Helper()
	c, err := config.New(config.Values{
		Tuning:   config.Tuning{Target: new(target)},
		Profiles: map[string]config.ProfileValues{"bench": {Window: new(window)}}, DefaultProfile: "bench",
	}, config.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	h, err := condense.Open(tb.Context(), &condense.Options{Config: c})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := h.Close(); err != nil {
			tb.Error(err)
		}
	})
	return h
}

func conversation(tb testing.TB, messages []core.Message) *condense.Conversation {
	tb.Helper()
	c := condense.NewConversation()
	if err := c.Append(messages...); err != nil {
		tb.Fatal(err)
	}
	return c
}

// textOf returns the concatenated texts of a message.
func textOf(m *core.Message) string {
	s := ""
	for _, p := range m.Parts {
		switch p := p.(type) {
		case core.Text:
			s += string(p)
		case core.ToolResult:
			s += textOf(&core.Message{Parts: p.Content})
		case core.ToolCall:
			s += p.Args
		case core.Image, core.Reasoning, core.Opaque: // the conversation has none
		}
	}
	return s
}
