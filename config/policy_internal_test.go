package config

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The machine's policy holds whatever a variable says, and also where it cannot be seen; a variable adds one.
func TestPolicyFiles(t *testing.T) {
	there, absent := filepath.Join(t.TempDir(), "policy.yaml"), filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(there, []byte("plugins: {}"), 0o600); err != nil {
		t.Fatal(err)
	}
	hidden := filepath.Join(there, "policy.yaml") // its folder is none
	for _, c := range []struct {
		machine, variable string
		want              []string
	}{
		{there, "", []string{there}},
		{there, absent, []string{there, absent}},
		{absent, "", nil},
		{absent, there, []string{there}},
		{hidden, "", []string{hidden}},
	} {
		if got := policyFiles(c.machine, environment{"CONDENSE_POLICY=" + c.variable}); !slices.Equal(got, c.want) {
			t.Errorf("%s and %s: got %v", c.machine, c.variable, got)
		}
	}
	if _, errs := readPolicies([]string{absent}, &Options{}); len(errs) != 1 {
		t.Errorf("a missing policy: got %v", errs)
	}
}
