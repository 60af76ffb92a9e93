package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
)

// printSteps tells what a provider says that it did, one line for each step that
// looked at anything or has something to say.
func printSteps(w io.Writer, steps []core.Step) {
	for _, s := range steps {
		saved := savedByStep(s)
		if s.Looked == 0 && s.Changed == 0 && s.Note == "" && saved == nothingSaved {
			continue
		}
		fmt.Fprintf(w, "    %-16s", s.Name)
		switch {
		case s.Looked > 0:
			fmt.Fprintf(w, " %s of %s changed, %s", thousands(s.Changed), thousands(s.Looked), saved)
		case s.Changed > 0: // of plugins, which need not say out of how many
			fmt.Fprintf(w, " %s changed, %s", thousands(s.Changed), saved)
		case saved != nothingSaved:
			fmt.Fprintf(w, " %s", saved)
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

const nothingSaved = "0 tokens saved"

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
		return nothingSaved
	}
	if len(of) == 0 {
		return fmt.Sprintf("%s tokens saved", thousands(n))
	}
	return fmt.Sprintf("%s tokens saved of %s", thousands(n), strings.Join(of, ", "))
}
