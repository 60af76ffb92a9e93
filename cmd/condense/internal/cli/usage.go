package cli

import (
	"fmt"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/size"
)

// UsageText describes the usage of language models.
func UsageText(u core.Usage) string {
	s := fmt.Sprintf("%s, %s tokens read", size.Plural(u.Calls, "model call"), size.Group(u.InputTokens))
	if u.CachedTokens > 0 {
		s += fmt.Sprintf(" (%s of them cached)", size.Group(u.CachedTokens))
	}
	s += fmt.Sprintf(", %s written, ", size.Group(u.OutputTokens))
	switch {
	case u.Unpriced > 0 && u.Unpriced >= u.Calls:
		return s + "price unknown"
	case u.Unpriced > 0:
		return s + fmt.Sprintf("%.4f USD and %s at an unknown price", u.USD, size.Plural(u.Unpriced, "call"))
	case u.USD == 0:
		return s + "free of charge"
	default:
		return s + fmt.Sprintf("%.4f USD", u.USD)
	}
}
