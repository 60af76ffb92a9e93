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

// A dearer result comes with its reason: the agents' own compactions kept less, or the cache is written again.
func TestGuideSaysWhyItCostsMore(t *testing.T) {
	t.Parallel()
	for want, g := range map[string]comparecmd.Glance{
		"keeps more: 68 % of the tokens each time, and the agents' own compactions 16 %": {Epochs: 1, Was: 20.87, Would: 22.22, Left: .68, Own: .16},
		"cache is written again": {Epochs: 2, Was: 3, Would: 3.1, Left: .3},
		"":                       {Epochs: 2, Was: 3, Would: 2, Left: .68, Own: .16},
	} {
		var out strings.Builder
		g.Spending = lab.Spending{Sessions: 2, Tokens: 1000}
		measured(&out, "your newest sessions", "condense learn there", &g)
		if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "costs more") != (want != "") {
			t.Errorf("got\n%s\nwant %s", out.String(), want)
		}
	}
}
