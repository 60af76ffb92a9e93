package smart

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

type environmentSettings struct {
	Keep     int  `json:"keep" doc:"newest blocks that stay"`
	Sections bool `json:"sections" doc:"sections that no newer block has stay too, such as the list of files in Roo-Code's first block"`
}

// Validate says which setting is out of range.
func (s *environmentSettings) Validate() error {
	if s.Keep < 1 {
		return fmt.Errorf("keep: %d is below 1", s.Keep)
	}
	return nil
}

var environmentPass = define("environment", classSuperseded, "",
	"Of the blocks that describe the surroundings (environment_details of Roo-Code and Cline, environment_context of Codex), the newest stays.",
	environmentSettings{Keep: 1},
	func(_ context.Context, w *work, c environmentSettings) error {
		kept := 0
		newer := map[string]bool{} // sections of newer blocks
		for i := len(w.pieces) - 1; i >= 0; i-- {
			p := &w.pieces[i]
			if p.kind != kindEnvironment || w.hidden[w.message(i)] || isStub(p.text) {
				continue
			}
			w.looked()
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

// A section is a part of an environment block under a title of its own.
type section struct{ title, text string }

// sections cuts a block at the lines that begin with "# ". What stands before the first is
// a section without a title. Numbers and paths in a title are not part of it.
func sections(block string) []section {
	var out []section
	begin, at := 0, 0 // of the last section, and of the line
	for line := range strings.Lines(block) {
		if strings.HasPrefix(line, "# ") {
			title, _, _ := strings.Cut(strings.TrimSpace(line), " (")
			out = append(out, section{title: title})
			begin = at
		} else if len(out) == 0 {
			out = append(out, section{})
		}
		at += len(line)
		out[len(out)-1].text = block[begin:at]
	}
	return out
}

// staleSections takes out of block i the sections that a newer block has.
func (w *work) staleSections(i int, own []section, newer map[string]bool) {
	if !slices.ContainsFunc(own, func(s section) bool { return s.title != "" && !newer[s.title] }) {
		w.leave(i, stub{bare: true})
		return
	}
	var kept, gone strings.Builder
	for _, s := range own {
		if s.title != "" && !newer[s.title] || s.title == "" && !strings.HasPrefix(s.text, "<") {
			kept.WriteString(s.text)
		} else {
			gone.WriteString(s.text)
		}
	}
	p := &w.pieces[i]
	if gone.Len() == 0 || hasStub(p.text) {
		return
	}
	s := stub{lines: countLines(gone.String()), bytes: gone.Len(), gap: true}
	w.describe(i, &s)
	text := strings.TrimRight(kept.String(), "\n")
	if name, ok := tag(p.text); ok { // the tag at its end goes with the one at its beginning
		text = strings.TrimRight(strings.TrimSuffix(text, "</"+name+">"), "\n")
	}
	w.put(i, s.String()+"\n"+text)
}
