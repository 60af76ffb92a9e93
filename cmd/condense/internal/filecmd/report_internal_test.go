package filecmd

import (
	"testing"
	"time"

	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core"
)

// A report shows everything that a step reports; steps of plugins may report less.
func TestStepsInReports(t *testing.T) {
	table := term.NewTable("", "", "")
	addSteps(table, []core.Step{
		{Name: "idle", Duration: time.Second},
		{Name: "cut", Looked: 1200, Changed: 3, Saved: map[string]int{"tool_result": 80, "user": 0}, TokensBefore: 1000, TokensAfter: 900, Duration: 1500 * time.Microsecond},
		{Name: "looked", Looked: 2},
		{Name: "plugged", Saved: map[string]int{"tool_result": 1200, "user": 300}},
		{Name: "replaced", Changed: 3},
		{Name: "none", Looked: 2, Changed: 1, TokensBefore: 50, TokensAfter: 50},
		{Name: "noted", Note: "as said"},
		{Name: "both", Note: "as said", Saved: map[string]int{"user": 7}},
	})
	const want = `  cut         changed 3 of 1,200, saving 100 tokens (results) (1.5 ms)
  looked      changed 0 of 2
  plugged     saving 1,500 tokens (results, user)
  replaced    changed 3
  none        changed 1 of 2, saving 0 tokens
  noted       as said
  both        saving 7 tokens (user) as said
`
	if got := table.Text(""); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
