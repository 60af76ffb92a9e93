package dialog_test

import (
	"regexp"
	"testing"

	"github.com/condensehq/condense/internal/dialog"
)

// TestFormMatchesAsItsExpressions holds a form to what its expressions match, though it looks for their words first.
func TestFormMatchesAsItsExpressions(t *testing.T) {
	t.Parallel()
	expressions := []string{
		`(?i)\b(?:go|went) with\b`, `^E:`, `\d{2,}`, `a|b`, `(?i)(?:root|real)+ cause`, `x?yz*`, `Ursache|原因`, `(?:not (?:open|shut)){2}`,
	}
	texts := []string{"", "E", "E:", "e:", "We WENT With it", "wentwith", "7", "77", "ab", "Real cause", "root", "y", "the 原因", "原", "ursache", "not opennot shut", "not open"}
	for _, text := range texts {
		want := false
		for _, e := range expressions {
			is := regexp.MustCompile(e).MatchString(text)
			if got := dialog.NewForm(e).Match(text); got != is {
				t.Errorf("form %s, text %q: got %v", e, text, got)
			}
			want = want || is
		}
		if got := dialog.NewForm(expressions...).Match(text); got != want {
			t.Errorf("all forms, text %q: got %v", text, got)
		}
	}
}
