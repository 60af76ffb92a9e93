package openai

import "strings"

// withoutThoughts returns text without the reasoning that local servers leave at its front,
// between the tags of DeepSeek R1 and Qwen 3. Without an end tag, all text is reasoning.
func withoutThoughts(text string) string {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "<think>")
	if !ok {
		return text
	}
	_, said, _ := strings.Cut(rest, "</think>")
	return strings.TrimSpace(said)
}
