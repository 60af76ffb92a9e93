package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/condensehq/condense/cmd/condense/internal/term"
	"github.com/condensehq/condense/core"
)

// addSteps adds a row for each step that looked at anything or has something to say.
func addSteps(t *term.Table, steps []core.Step) {
	for i := range steps {
		if text := stepText(&steps[i]); text != "" {
			t.Row("  "+steps[i].Name, "", text)
		}
	}
}

// stepText says what a step did; empty if that is nothing.
func stepText(s *core.Step) string {
	n, kinds := savings(s)
	if s.Looked == 0 && s.Changed == 0 && s.Note == "" && n == 0 {
		return ""
	}
	saving := "saving " + thousands(n) + " tokens"
	if n != 0 && len(kinds) > 0 {
		saving += " (" + strings.Join(kinds, ", ") + ")"
	}
	var words []string
	switch {
	case s.Name == "value" && s.Looked > 0:
		words = append(words, "dropped "+thousands(s.Changed)+" of "+thousands(s.Looked)+" lines, "+saving)
	case s.Looked > 0:
		words = append(words, "changed "+thousands(s.Changed)+" of "+thousands(s.Looked)+", "+saving)
	case s.Changed > 0: // of plugins, which need not say out of how many
		words = append(words, "changed "+thousands(s.Changed)+", "+saving)
	case n != 0:
		words = append(words, saving)
	}
	if s.Note != "" {
		words = append(words, s.Note)
	}
	if ms := float64(s.Duration.Microseconds()) / 1000; ms > 0 {
		words = append(words, "("+number(ms)+" ms)")
	}
	return strings.Join(words, " ")
}

// kindsInWords are kinds of content that strategies save tokens of.
var kindsInWords = map[string]string{"assistant": "assistant text", "error": "errors", "injected": "injected text", "project_rules": "project rules", "tool_call": "calls", "tool_result": "results"}

// savings returns how many tokens a step saved, and of what kinds of content.
func savings(s *core.Step) (tokens int, kinds []string) {
	sum := 0
	for _, k := range slices.Sorted(maps.Keys(s.Saved)) {
		if s.Saved[k] != 0 {
			kinds = append(kinds, cmp.Or(kindsInWords[k], strings.ReplaceAll(k, "_", " ")))
			sum += s.Saved[k]
		}
	}
	if s.TokensBefore == 0 && s.TokensAfter == 0 { // which plugins need not count
		return sum, kinds
	}
	return s.TokensBefore - s.TokensAfter, kinds
}
