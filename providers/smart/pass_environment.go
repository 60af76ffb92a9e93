package smart

import (
	"context"
	"slices"
	"strings"

	"github.com/condensehq/condense/internal/dialog"
)

type environmentSettings struct {
	Keep     int  `json:"keep" doc:"number of newest blocks to keep"`
	Sections bool `json:"sections" doc:"also keep sections that no newer block has, such as the list of files in Roo-Code's first block"`
}

// Validate says which setting is out of range.
func (s *environmentSettings) Validate() error { return atLeast(1, "keep", s.Keep) }

var environmentPass = define("environment", classSuperseded, "",
	"Keeps the newest of the blocks that describe the environment (environment_details of Roo-Code and Cline, environment_context of Codex).",
	environmentSettings{Keep: 1},
	func(_ context.Context, w *work, c environmentSettings) error {
		kept := 0
		newer := map[string]bool{} // sections of newer blocks
		for i := len(w.segments) - 1; i >= 0; i-- {
			p := &w.segments[i]
			if p.kind != dialog.KindEnvironment || w.hidden[w.message(i)] || isStub(p.text) {
				continue
			}
			w.visited(1)
			own := sections(p.text)
			switch {
			case kept < c.Keep:
				kept++
			case !c.Sections:
				w.leave(i, stub{bare: true})
			default:
				w.staleSections(i, own, newer)
			}
			for _, s := range own {
				newer[s.title] = true
			}
		}
		return nil
	})

// gapSign marks a gap whose content the stub in front counts.
const gapSign = "…"

// A section is a part of an environment block under a title of its own.
type section struct{ title, text string }

// sections cuts an element at the lines that begin with "# ". Text before the first is a section without a title.
// Numbers and paths in a title are not part of it.
func sections(element string) []section {
	var out []section
	begin, at := 0, 0 // of the last section, and of the line
	for line := range strings.Lines(element) {
		if strings.HasPrefix(line, "# ") {
			title, _, _ := strings.Cut(strings.TrimSpace(line), " (")
			out = append(out, section{title: title})
			begin = at
		} else if len(out) == 0 {
			out = append(out, section{})
		}
		at += len(line)
		out[len(out)-1].text = element[begin:at]
	}
	return out
}

// staleSections takes out of block i the sections that a newer block has.
func (w *work) staleSections(i int, own []section, newer map[string]bool) {
	if !slices.ContainsFunc(own, func(s section) bool { return s.title != "" && !newer[s.title] }) {
		w.leave(i, stub{bare: true})
		return
	}
	p := &w.segments[i]
	if hasStub(p.text) {
		return
	}
	end := ""
	if name, ok := dialog.Tag(p.text); ok { // the tag at its end goes with the one at its beginning
		end = "</" + name + ">"
	}
	var kept strings.Builder
	gone, gap := stub{gap: true}, false
	for _, s := range own {
		if s.title == "" && strings.HasPrefix(s.text, "<") || s.title != "" && newer[s.title] {
			gone.lines, gone.bytes = gone.lines+dialog.CountLines(s.text), gone.bytes+len(s.text)
			if !gap && kept.Len() > 0 { // the stub marks the first gap
				kept.WriteString(gapSign + "\n")
			}
			gap = true
			continue
		}
		text := strings.TrimRight(s.text, "\n")
		if end != "" && strings.HasSuffix(text, end) {
			text = strings.TrimRight(strings.TrimSuffix(text, end), "\n") + "\n" + gapSign
		}
		kept.WriteString(text + "\n")
		gap = false
	}
	if gone.bytes == 0 {
		return
	}
	w.describe(i, &gone)
	w.put(i, gone.String()+"\n"+strings.TrimRight(kept.String(), "\n"))
}
