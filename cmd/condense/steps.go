package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
)

// printSteps tells what a provider says that it did, one line for each step that found
// something to look at.
func printSteps(w io.Writer, steps []core.Step) {
	for _, s := range steps {
		if s.Looked == 0 && s.Note == "" && s.TokensBefore == s.TokensAfter {
			continue
		}
		fmt.Fprintf(w, "    %-16s", s.Name)
		if s.Note == "" || s.Looked > 0 {
			fmt.Fprintf(w, " %s of %s changed, %s", thousands(s.Changed), thousands(s.Looked), savedByStep(s))
		}
		if s.Note != "" {
			fmt.Fprintf(w, " %s", s.Note)
		}
		if ms := float64(s.Duration.Microseconds()) / 1000; ms > 0 {
			fmt.Fprintf(w, " (%s ms)", number(ms))
		}
		fmt.Fprintln(w)
	}
}

// savedByStep says how many tokens a step saved and of what.
func savedByStep(s core.Step) string {
	n, sum := s.TokensBefore-s.TokensAfter, 0
	var of []string
	for _, k := range slices.Sorted(maps.Keys(s.Saved)) {
		if s.Saved[k] != 0 {
			of = append(of, k)
			sum += s.Saved[k]
		}
	}
	if s.TokensBefore == 0 && s.TokensAfter == 0 { // which plugins need not count
		n = sum
	}
	if n == 0 {
		return "0 tokens saved"
	}
	if len(of) == 0 {
		return fmt.Sprintf("%s tokens saved", thousands(n))
	}
	return fmt.Sprintf("%s tokens saved of %s", thousands(n), strings.Join(of, ", "))
}
