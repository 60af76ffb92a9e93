package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// titles are the measures of comparisons.
var titles = map[string]string{
	"panel": "needed text", "anchors": "lines edited next", "evidence": "gold turns", "user": "user's words",
	"gain": "predicts what follows", "artefacts": "files touched", "errors": "errors", "recent": "last ten messages",
	"canaries": "planted sentences", "rounds": "needed text after three rounds",
	"saved": "cost of whole sessions", "there": "there when it is used",
}

// markdown returns the part of the document: losses first.
func (s *summary) markdown() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%d sessions at cuts, %d cuts with lines of the next edits, %d conversations with gold evidence, %d sessions with planted "+
		"sentences, %d replayed.",
		s.Sessions["cuts"], s.Sessions["anchors"], s.Sessions["evidence"], s.Sessions["canaries"], s.Sessions["money"])
	line("\n### Where `smart` loses\n")
	if len(s.Losses) == 0 {
		line("Nowhere is a loss shown.")
	} else {
		line("| program | measure | ahead of `smart` by | projects |\n|---|---|---|---|")
	}
	for _, c := range s.Losses {
		line("| %s | %s | %.3f (%.3f to %.3f) | %d |", c.Peer, titles[c.Measure], c.Mean, c.Low, c.High, c.Projects)
	}
	counts := map[string][3]int{}
	for i := range s.Pairs {
		n := counts[s.Pairs[i].Measure]
		n[1-s.Pairs[i].Ahead]++
		counts[s.Pairs[i].Measure] = n
	}
	line("\n| measure | programs ahead of `smart` | no difference shown | behind |\n|---|---|---|---|")
	for _, m := range []string{"panel", "anchors", "evidence", "canaries", "rounds", "user", "gain", "artefacts", "errors", "recent", "saved", "there"} {
		if n := counts[m]; n != [3]int{} {
			line("| %s | %d | %d | %d |", titles[m], n[0], n[1], n[2])
		}
	}
	line("\n### All\n\n`(at its size)`: `smart` with the size that the program left as its budget.\n")
	line("| program | tokens left | needed text (at its size) | lines edited next (at its size) | gold turns (at its size) | " +
		"user's words | of another author | replaced lines | outcomes | planted sentences, last round | needed after 3 rounds | refused | cost saved | there when used |")
	line("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|")
	beside := func(measure string, e *entry, x *float64) string {
		for _, c := range s.Pairs {
			if c.Measure == measure && c.Peer == e.Name && x != nil {
				return fmt.Sprintf("%.3f (%.3f)", *x, c.Own)
			}
		}
		return number(x)
	}
	for i := range s.Rows {
		if e := &s.Rows[i]; e.Missing == "" {
			line("| %s |", strings.Join([]string{
				e.Name, number(e.Left), beside("panel", e, e.Needed), beside("anchors", e, e.Anchors), beside("evidence", e, e.Evidence),
				number(e.User), number(e.Wrong), number(e.Replaced), number(e.Outcomes), number(e.Canaries), number(e.Rounds), number(e.Faults), number(e.Saved), number(e.There),
			}, " | "))
		}
	}
	line("\n| name | program | version | from | |\n|---|---|---|---|---|")
	for i := range s.Rows {
		e := &s.Rows[i]
		if e.Program == "condense" {
			continue
		}
		note := e.Note
		if e.Missing != "" {
			note = "not run: " + strings.ReplaceAll(e.Missing, "\n", " ")
		} else if e.Nothing > 0 {
			note = strings.TrimPrefix(fmt.Sprintf("%s; no result at %d cuts", note, e.Nothing), "; ")
		}
		line("| %s | %s | %s | %s | %s |", e.Name, e.Program, e.Version, e.Had, note)
	}
	s.rest(line)
	return b.String()
}

// rest writes what is at recorded compactions, and what the second implementation says.
func (s *summary) rest(line func(format string, args ...any)) {
	if len(s.Real) > 0 {
		line("\nAt %d sessions' recorded compactions, at the size of the recorded summary:\n", s.Sessions["recorded"])
		line("| | tokens left | needed text | user's words |\n|---|---|---|---|")
		for _, name := range slices.Sorted(maps.Keys(s.Real)) {
			e := s.Real[name]
			line("| %s | %s | %s | %s |", name, number(e.Left), number(e.Needed), number(e.User))
		}
	}
	if len(s.Second) > 0 {
		line("")
	}
	for _, x := range s.Second {
		also := ""
		if k := x.ByKind["ahead"]; k.Verdicts > 0 {
			also = fmt.Sprintf(", and which of two is ahead in %d of %d, the reverse in %d", k.Agreed, k.Verdicts, x.Opposite)
		}
		line("`bench/second` confirms %.1f %% of the %d verdicts of %s%s.", 100*x.Share, x.Verdicts, strings.TrimSuffix(x.Report, ".json"), also)
	}
}
