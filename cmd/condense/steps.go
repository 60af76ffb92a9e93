package main

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
)

// printSteps prints what a provider says that it did, one line for each step that
// looked at anything or has something to say.
func printSteps(w io.Writer, steps []core.Step) {
	for _, s := range steps {
		n, kinds := savings(s)
		if s.Looked == 0 && s.Changed == 0 && s.Note == "" && n == 0 {
			continue
		}
		saving := "saving " + thousands(n) + " tokens"
		if n != 0 && len(kinds) > 0 {
			saving += " (" + strings.Join(kinds, ", ") + ")"
		}
		printf(w, "    %-16s", s.Name)
		switch {
		case s.Name == "value" && s.Looked > 0:
			printf(w, " dropped %s of %s lines, %s", thousands(s.Changed), thousands(s.Looked), saving)
		case s.Looked > 0:
			printf(w, " changed %s of %s, %s", thousands(s.Changed), thousands(s.Looked), saving)
		case s.Changed > 0: // of plugins, which need not say out of how many
			printf(w, " changed %s, %s", thousands(s.Changed), saving)
		case n != 0:
			printf(w, " %s", saving)
		}
		if s.Note != "" {
			printf(w, " %s", s.Note)
		}
		if ms := float64(s.Duration.Microseconds()) / 1000; ms > 0 {
			printf(w, " (%s ms)", number(ms))
		}
		printf(w, "\n")
	}
}

// kindsInWords are kinds of content that strategies save tokens of.
var kindsInWords = map[string]string{"assistant": "assistant text", "error": "errors", "injected": "injected text", "project_rules": "project rules", "tool_call": "calls", "tool_result": "results"}

// savings returns how many tokens a step saved, and of what kinds of content.
func savings(s core.Step) (tokens int, kinds []string) {
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
