package live_test

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/condensehq/condense/internal/testkit"
	"github.com/condensehq/condense/internal/testkit/upstream"
	"github.com/condensehq/condense/live"
)

// What an agent recalled is as it is after the next epoch, where the same result of another tool is condensed; and the statistics say
// what it was and which pass had left it out, after a restart too.
func TestRecalledStays(t *testing.T) {
	testkit.Slow(t)
	for _, tool := range []string{"mcp__condense__recall", "Bash"} {
		t.Run(tool, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "serve.db")
			p := newPlay(t, upstream.Options{Script: upstream.Loop(90, 2200, nil)}, recalls(claude("s1")), func(o *live.Options) { o.Store.Path = file; o.Epoch.Target = 20 })

			p.begin(t)
			p.untilEpoch(t, 1)
			h := slices.Min(slices.Collect(maps.Keys(promises(t, p.lastBody()))))
			got, ok := recallAll(t, p.server.URL+"/recall/"+secret+"/mcp", h)
			if !ok || !slices.Contains(p.results(), got) {
				t.Fatalf("%s leads to %.200q", h, got)
			}
			again := "recalled: " + strings.ReplaceAll(got, " ", "  ") // no duplicate of anything
			args := object{"handle": h, "command": "cat again.txt"}
			p.client.History = append(p.client.History,
				object{"role": "assistant", "content": []any{object{"type": "tool_use", "id": "toolu_recall", "name": tool, "input": args}}},
				object{"role": "user", "content": []any{object{"type": "tool_result", "tool_use_id": "toolu_recall", "content": again}}})
			text, err := json.Marshal(again)
			if err != nil {
				t.Fatal(err)
			}
			p.untilEpoch(t, 2)
			if got := len(p.vendor.Refusals()); got > 0 {
				t.Fatalf("%d refusals", got)
			}
			if kept := strings.Contains(string(p.lastBody()), string(text)); kept != (tool == "mcp__condense__recall") {
				t.Errorf("after the next epoch the result is in the request: %v", kept)
			}
			p.untilEpoch(t, 3)
			if strings.Contains(string(p.lastBody()), string(text)) {
				t.Error("the result stays for good")
			}

			s := p.Stats()
			if s.Recalls == 0 || len(s.Recalled) != 1 || s.Recalled[0].What != "result of Bash" || s.Recalled[0].Pass != "smart/value" && s.Recalled[0].Pass != "ingest" || s.Recalled[0].Count != s.Recalls {
				t.Errorf("recalled %d times: %+v", s.Recalls, s.Recalled)
			}
			if s.Tokens.Recalled == 0 || s.Tokens.Net != s.Tokens.Saved-s.Tokens.Recalled {
				t.Errorf("tokens %+v", s.Tokens)
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			stored, err := live.StoredStats(t.Context(), file)
			if err != nil {
				t.Fatal(err)
			}
			want := s
			want.Epochs, want.Since, want.AsOf = []live.Epoch{}, stored.Since, stored.AsOf
			if a, b := inJSON(t, want), inJSON(t, stored); a != b {
				t.Errorf("stored\n%s\nwant\n%s", b, a)
			}
		})
	}
}

func inJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
