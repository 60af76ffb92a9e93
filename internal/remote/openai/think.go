package openai

import "strings"

// withoutThoughts returns text without what the model thought, which local servers leave
// at its front between the marks of DeepSeek R1 and Qwen 3. Thoughts without an end are
// all that there is.
func withoutThoughts(text string) string {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "<think>")
	if !ok {
		return text
	}
	_, said, _ := strings.Cut(rest, "</think>")
	return strings.TrimSpace(said)
}
