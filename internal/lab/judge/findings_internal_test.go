package judge

import (
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

func TestEveryRuleHasARepair(t *testing.T) {
	rules := append(core.Rules(), coretest.Contract()...)
	for _, r := range rules {
		if repairs[r.Name] == "" {
			t.Errorf("%s: no repair", r.Name)
		}
	}
	if len(repairs) != len(rules) {
		t.Errorf("%d repairs for %d rules", len(repairs), len(rules))
	}
}
