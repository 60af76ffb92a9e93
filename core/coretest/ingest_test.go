package coretest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// TestIngest: each round of a conversation is asked for by itself, and the suite finds who does more than shorten results.
func TestIngest(t *testing.T) {
	asked := 0
	shorter := core.ProviderFunc(func(ctx context.Context, req *core.Request) (*core.Result, error) {
		if req.Trigger != core.TriggerIngest || len(req.Messages) < 3 || req.Messages[len(req.Messages)-1].Role != core.RoleAssistant {
			t.Errorf("asked with %q for %d messages", req.Trigger, len(req.Messages))
		}
		asked++
		all := req.Clone().Messages
		for _, m := range all {
			for i, p := range m.Parts {
				if r, ok := p.(core.ToolResult); ok && !m.Protected && core.ContentBytes(p) > 200 {
					r.Content = []core.Part{core.Text("[… left out]")}
					m.Parts[i] = r
				}
			}
		}
		return &core.Result{Messages: all}, ctx.Err()
	})
	req := coretest.HalfRequest(coretest.Session())
	res, err := coretest.Ingest(shorter).Condense(t.Context(), req)
	if err != nil || len(res.Messages) != len(req.Messages) || asked < 3 || core.Verify(req, res) != nil {
		t.Fatalf("%d messages of %d after %d rounds: %v", len(res.Messages), len(req.Messages), asked, err)
	}
	if r := coretest.Examine(t.Context(), coretest.Ingest(coretest.Truncates())); !strings.Contains(said(r), "only-results") {
		t.Errorf("a provider that hides: %s", said(r))
	}
}

// said returns the errors of a report.
func said(r *coretest.Report) string {
	var b strings.Builder
	for _, v := range r.Verdicts {
		if v.Declined != nil {
			b.WriteString(v.Declined.Error() + "\n")
		}
		if v.Err != nil {
			b.WriteString(v.Err.Error() + "\n")
		}
	}
	return b.String()
}
