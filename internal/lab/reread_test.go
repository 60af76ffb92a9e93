package lab_test

import (
	"context"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab"
	"github.com/condensehq/condense/internal/testkit"
)

// trusting keeps the newest messages, at first the user's words in a summary, and later what is a summary
// by its kind: what a file does not record is lost with the second round.
func trusting(_ context.Context, req *core.Request) (*core.Result, error) {
	var said []string
	summary := false
	for _, m := range req.Messages {
		summary = summary || m.Kind == core.KindSummary
		for _, p := range m.Parts {
			if t, ok := p.(core.Text); ok && m.Role == core.RoleUser {
				said = append(said, string(t))
			}
		}
	}
	kept := core.KeepGroups(req.Messages, func(i int) bool {
		return req.Messages[i].Kind == core.KindSummary || i >= len(req.Messages)*3/4
	})
	words := "Earlier messages were left out."
	if req.Messages[0].ID[0] != 'r' { // not read again: the first round
		words = strings.Join(said, "\n")
	}
	if !summary {
		kept = append([]core.Message{{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text(words)}}}, kept...)
	}
	return &core.Result{Messages: kept}, nil
}

// TestRoundsAreFiles: between rounds the view is a file. A format that records what was inserted tells the
// next round, and one that does not shows what is lost by that.
func TestRoundsAreFiles(t *testing.T) {
	t.Parallel()
	testkit.Slow(t)
	items, err := lab.Find("demo:super", "demo:roo")
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]float64{}
	for _, format := range []string{"condense", "anthropic", "openai", "claudecode", ""} {
		r := run(t, items, lab.Options{Rounds: 3, RoundsFormat: format, Budgets: budgets(t, "50%")}, lab.Strategy{Name: "trusting", Provider: core.ProviderFunc(trusting)})
		for _, x := range r.Rounds {
			if want := format; x.Error != "" || want != "" && x.Format != want || x.Format == "" {
				t.Errorf("%s: round %d of %s is in %s: %s", format, x.Round, x.Session, x.Format, x.Error)
			}
			if x.Round == 2 {
				left[format] += *x.FirstUser
			}
		}
	}
	if left["condense"] < 1 || left["anthropic"] >= left["condense"] || left[""] != left["anthropic"] {
		t.Errorf("user's words of the beginning after two rounds: %v; want them in a journal, and not in a format that records no kinds", left)
	}
	if _, err := lab.Run(t.Context(), items, nil, &lab.Options{RoundsFormat: "aider"}); err == nil || !strings.Contains(err.Error(), `no format "aider" to write in`) {
		t.Errorf("a format that is only read: %v", err)
	}
}
