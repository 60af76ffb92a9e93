package command

import (
	"strings"
	"testing"

	"github.com/condensehq/condense/cmd/condense/internal/comparecmd"
	"github.com/condensehq/condense/internal/lab"
)

// A measurement that took too long is said, with the command that finishes it: it is no verdict on the sessions.
func TestGuideSaysWhatIsNotFinished(t *testing.T) {
	t.Parallel()
	some := lab.Spending{Sessions: 2, Tokens: 1000}
	for name, c := range map[string]struct {
		g    comparecmd.Glance
		want string
	}{
		"reading, nothing read":   {comparecmd.Glance{Late: [2]bool{true, false}}, "not finished in 20s: condense learn there"},
		"reading, nothing cut":    {comparecmd.Glance{Spending: some, Late: [2]bool{true, false}}, "not finished in 20s: condense learn there"},
		"playing, nothing played": {comparecmd.Glance{Spending: some, Compared: 2, Late: [2]bool{false, true}}, "not finished in 20s: condense compare --replay there"},
	} {
		var out strings.Builder
		measured(&out, "your newest sessions", "condense learn there", &c.g)
		if !strings.Contains(out.String(), c.want) || strings.Contains(out.String(), "need no condense") {
			t.Errorf("%s: got\n%s\nwant %s", name, out.String(), c.want)
		}
	}
}
