package value_test

import (
	"encoding/json"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/coretest"
	"github.com/condensehq/condense/internal/value"
)

// withTree returns weights that are all zero, with one tree over terms.
func withTree(t *testing.T, tree string) []byte {
	t.Helper()
	zero := func(features []value.Feature) map[string][]int {
		out := map[string][]int{}
		for _, f := range features {
			out[f.Name] = make([]int, f.Steps)
		}
		return out
	}
	b, err := json.Marshal(map[string]any{
		"terms": zero(value.TermFeatures()), "phrases": zero(value.PhraseFeatures()), "term trees": []json.RawMessage{json.RawMessage(tree)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestTreeFaults checks that a tree which would not end, or asks for what there is not, is
// refused.
func TestTreeFaults(t *testing.T) {
	for _, tt := range []struct{ tree, want string }{
		{`[]`, "weights: terms: a tree without nodes"},
		{`[[0, 1, 0], [1], [2]]`, "weights: terms: tree 0: node 0 is [0 1 0], want [value] or [feature, at, next]"},
		{`[[0, 1, 1], [1]]`, "weights: terms: tree 0: node 0 is [0 1 1], want [value] or [feature, at, next]"},
		{`[[999, 1, 1], [1], [2]]`, "weights: terms: tree 0: node 0 is [999 1 1], want [value] or [feature, at, next]"},
		{`[[0, 1]]`, "weights: terms: tree 0: node 0 is [0 1], want [value] or [feature, at, next]"},
	} {
		if _, err := value.ParseModel(withTree(t, tt.tree), ""); err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %s", tt.tree, err, tt.want)
		}
	}
}

// TestTreesCount checks that a tree changes what a term is worth: the first feature is how many
// bytes follow its line.
func TestTreesCount(t *testing.T) {
	m, err := value.ParseModel(withTree(t, `[[0, 20, 1], [3], [-3]]`), "")
	if err != nil {
		t.Fatal(err)
	}
	c := value.Read(coretest.Conversation(coretest.User(core.Text("oldName1 is here")), coretest.Assistant(core.Text("newName2"))))
	e := m.Estimate(c)
	older, newer := e.Names[c.TermsOf(0)[0]], e.Names[c.TermsOf(1)[0]]
	if older <= 0 || newer < 10*older {
		t.Errorf("worth %v above the tree's step and %v below, want far more below", older, newer)
	}
}
