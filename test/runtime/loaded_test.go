package runtime_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/config"
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/transcript"
)

// TestToolsLoadedBySearchStay: the vendor has the definition of a deferred tool only while the result that loaded it is in view, whatever
// condenses and however often.
func TestToolsLoadedBySearchStay(t *testing.T) {
	for _, test := range []struct{ format, search, call, loaded string }{
		{
			"anthropic", `{"role":"assistant","content":[{"type":"tool_use","id":"s1","name":"ToolSearch","input":{"query":"tickets"}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"s1","content":[{"type":"tool_reference","tool_name":"mcp__tickets__create"},{"type":"tool_reference","tool_name":"mcp__tickets__list"}]}]}`,
			`,{"role":"assistant","content":[{"type":"tool_use","id":"r%d","name":"Read","input":{"file_path":"/src/f%d.go"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"r%d","content":%q}]}`,
			"tool_reference",
		},
		{
			"responses", `{"type":"tool_search_call","call_id":"s1","execution":"client","arguments":{"query":"tickets"}},` +
				`{"type":"tool_search_output","call_id":"s1","execution":"client","tools":[{"type":"function","name":"tickets_create"},{"type":"function","name":"tickets_list"}]}`,
			`,{"type":"function_call","call_id":"r%d","name":"read_file","arguments":"{\"path\":\"/src/f%d.go\"}"},{"type":"function_call_output","call_id":"r%d","output":%q}`,
			"tickets_",
		},
		{
			"responses", `{"type":"tool_search_call","call_id":null,"execution":"server","arguments":{"query":"tickets"}},` +
				`{"type":"tool_search_output","call_id":null,"execution":"server","tools":[{"type":"function","name":"tickets_create"},{"type":"function","name":"tickets_list"}]}`,
			`,{"type":"function_call","call_id":"r%d","name":"read_file","arguments":"{\"path\":\"/src/f%d.go\"}"},{"type":"function_call_output","call_id":"r%d","output":%q}`,
			"tickets_",
		},
	} {
		toolsStay(t, test.format, test.search, test.call, test.loaded)
	}
}

func toolsStay(t *testing.T, format, search, call, loaded string) {
	t.Helper()
	for _, chain := range [][]string{nil, {"truncation"}, {"slidingwindow"}} {
		var b strings.Builder
		b.WriteString(`[{"role":"user","content":"Open a ticket for each finding."},` + search)
		for i := range 40 {
			fmt.Fprintf(&b, call, i, i, i, strings.Repeat(fmt.Sprintf("line %d of the file is long enough to count\n", i), 60))
		}
		b.WriteString(`,{"role":"assistant","content":"Done reading."},{"role":"user","content":"Go on."}]`)
		d, err := transcript.Read(strings.NewReader(b.String()), &transcript.ReadOptions{Format: format})
		if err != nil {
			t.Fatal(err)
		}
		window, target := 40_000, 30.0
		h, err := condense.Open(t.Context(), &condense.Options{Values: &config.Values{
			Tuning:   config.Tuning{Chain: chain, Target: &target},
			Profiles: map[string]config.ProfileValues{"p": {Window: &window}}, DefaultProfile: "p",
		}})
		if err != nil {
			t.Fatal(err)
		}
		c := condense.ResumeConversation(d.Journal)
		for round, target := range []int{12_000, 6_000, 3_000} {
			if _, err := h.Manage(t.Context(), c, condense.Turn{Trigger: core.TriggerManual, Target: target}); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(fmt.Sprint(c.View()), loaded); n < 2 {
				t.Errorf("%s, %v, round %d: the loaded tools are gone: %.600v", format, chain, round, c.View())
			}
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}
