package tokens_test

import (
	"strings"
	"testing"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/tokens"
)

// Thinking of which only the signature is shown is in the window all the same; a short signature has none in it.
func TestHiddenThinkingCounts(t *testing.T) {
	t.Parallel()
	c := tokens.NewCounter(open(t, tokens.O200kBase))
	for _, tt := range []struct {
		text            string
		signature, want int
	}{
		{"", 12_000, 2088},
		{"", 400, 0},
		{"A short summary.", 12_000, 2088},
		{strings.Repeat("word ", 3000), 400, 3001},
	} {
		if got := c.Count(core.Reasoning{Text: tt.text, Signature: strings.Repeat("A", tt.signature)}); got != tt.want {
			t.Errorf("%d bytes with a signature of %d: %d tokens, want %d", len(tt.text), tt.signature, got, tt.want)
		}
	}
}
