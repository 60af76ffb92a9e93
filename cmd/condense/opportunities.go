package main

import (
	"context"
	"fmt"
	"io"

	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/providers/smart"
	"github.com/condensehq/condense/tokens"
)

// An opportunity says what one pass of the strategy smart could save.
type opportunity struct {
	Pass    string         `json:"pass"`
	Class   string         `json:"class"`
	Looked  int            `json:"looked"`
	Changed int            `json:"changed"`
	Saved   int            `json:"saved"`
	ByKind  map[string]int `json:"by_kind,omitempty"`
	MS      float64        `json:"ms"`
}

// opportunities tries every pass on a copy of the view.
func opportunities(ctx context.Context, view []core.Message, counter *tokens.Counter) ([]opportunity, error) {
	messages := make([]core.Message, len(view))
	copy(messages, view)
	for i := range messages {
		messages[i].Tokens = core.MessageTokens(counter, messages[i])
	}
	req := &core.Request{Messages: messages, Counter: counter, Budget: core.Budget{Target: 1}, Trigger: core.TriggerManual}
	found, err := smart.Opportunities(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("opportunities: %w", err)
	}
	var out []opportunity
	for _, o := range found {
		out = append(out, opportunity{
			Pass: o.Name, Class: o.Class, Looked: o.Looked, Changed: o.Changed,
			Saved: max(0, o.TokensBefore-o.TokensAfter), ByKind: o.Saved, MS: float64(o.Duration.Microseconds()) / 1000,
		})
	}
	return out, nil
}

func printOpportunities(w io.Writer, list []opportunity, total int) {
	t := term.NewTable("pass of smart", "class", ">looked at", ">would change", ">tokens to save", ">share")
	for _, o := range list {
		t.Row(o.Pass, o.Class, o.Looked, o.Changed, o.Saved, fmt.Sprintf("%.1f %%", 100*float64(o.Saved)/float64(max(1, total))))
	}
	_ = printText(w, t.Text("  ")+"\n")
	printf(w, "each pass alone, with its defaults, and at most; together they save less than the sum. The passes value, window and\nscore are not listed: they take out what the target asks for\n")
}
