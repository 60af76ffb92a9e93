package coretest_test

import (
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
)

// TestTruths: the conversation itself has no fault, and of the views made by hand the false ones have theirs.
func TestTruths(t *testing.T) {
	t.Parallel()
	for _, c := range coretest.Truths() {
		if faults := c.Faults(c.Messages); len(faults) > 0 {
			t.Errorf("%s, as it is: %+v", c.Name, faults)
		}
		if len(c.Views) < 3 {
			t.Errorf("%s has %d views", c.Name, len(c.Views))
		}
		for _, v := range c.Views {
			summary := coretest.User(core.Text(core.Frame("p") + "\n" + v.Text))
			summary.Kind = core.KindSummary
			if faults := c.Faults([]core.Message{summary}); len(faults) != v.Faults {
				t.Errorf("%s, %q: %+v, want %d", c.Name, v.Text, faults, v.Faults)
			}
		}
	}
}

// TestTruncationLies: who only truncates loses words and outcomes, and says nothing under a wrong name.
func TestTruncationLies(t *testing.T) {
	t.Parallel()
	want := map[string]bool{"words": true, "authors": true, "files": false, "outcomes": true}
	for _, c := range coretest.Truths() {
		res, err := coretest.Truncates().Condense(t.Context(), coretest.Request(c.Messages, 120))
		if err != nil {
			t.Fatal(err)
		}
		if faults := c.Faults(res.Messages); want[c.Name] != (len(faults) > 0) {
			t.Errorf("%s: %+v", c.Name, faults)
		}
	}
}
