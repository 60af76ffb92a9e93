package account

import (
	_ "embed" // the prompts are files, which are easier to read
	"fmt"
	"strings"
)

// The instructions.
var (
	//go:embed prompts/system.txt
	systemPrompt string
	//go:embed prompts/write.txt
	writePrompt string
	//go:embed prompts/update.txt
	updatePrompt string
)

// System returns the system prompt, for a request that is not the agent's own.
func System() string { return strings.TrimSpace(systemPrompt) }

// Instructions returns the request for an account of at most so many tokens, or with former for the changes in
// it. Shown says that the model has former before it already.
func Instructions(former *Account, shown bool, tokens int, own string) string {
	var b strings.Builder
	if former == nil || len(former.Items) == 0 {
		b.WriteString(strings.TrimSpace(writePrompt))
	} else {
		b.WriteString(strings.TrimSpace(updatePrompt))
		if !shown {
			b.WriteString("\n\nThe account so far:\n\n" + former.Text())
		}
	}
	if own = strings.TrimSpace(own); own != "" {
		b.WriteString("\n\nWhat the user wants from it in particular:\n" + own)
	}
	// A word of English is 1.3 tokens or so, of code and other languages more; models keep to words better than to characters.
	fmt.Fprintf(&b, "\n\nWrite at most %d words, that is about %d characters.", max(40, tokens*5/12), tokens*16/5)
	return b.String()
}

// Tidy returns the answer of a model without the reasoning that some write before it, and without tags around it.
func Tidy(answer string) string {
	text := strings.TrimSpace(answer)
	for _, tag := range []string{"think", "thinking", "analysis"} {
		if rest, ok := strings.CutPrefix(text, "<"+tag+">"); ok {
			_, after, _ := strings.Cut(rest, "</"+tag+">")
			text = strings.TrimSpace(after)
		}
	}
	if rest, ok := strings.CutPrefix(text, "<summary>"); ok {
		text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "</summary>"))
	}
	return text
}
