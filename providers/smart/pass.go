package smart

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/registry"
)

// passes are all passes that there are, in the order in which they are documented.
var passes = []pass{
	layoutPass, duplicatesPass, environmentPass, supersededPass, nearPass,
	maskPass, prunePass, valuePass, headTailPass, cutPass, resultsPass, windowPass, scorePass, reasoningPass, digestPass,
}

func findPass(name string) (*pass, bool) {
	i := slices.IndexFunc(passes, func(p pass) bool { return p.name == name })
	if i < 0 {
		return nil, false
	}
	return &passes[i], true
}

func passNames() []string {
	return plain.Each(passes, func(p pass) string { return p.name })
}

// A class is the kind of loss that a pass causes.
type class string

const (
	// Lossless: removed content carries no information, or appears elsewhere in the conversation, and the stub
	// says where.
	classLossless class = "lossless"
	// Superseded: a newer version of removed content appears elsewhere.
	classSuperseded class = "superseded"
	// Lossy: removed content can only be recalled by its handle.
	classLossy class = "lossy"
	// Model: a language model writes.
	classModel class = "model"
)

// A pass is one way to make a conversation smaller.
type pass struct {
	name   string
	class  class
	source string // of the method and its constants; empty if it is our own
	// onDemand: the pass saves as much as it is asked for, or adds something. refers: the pass leaves stubs
	// that point at unchanged text elsewhere. chooses: the pass selects lines, so such pointers become invalid.
	onDemand, refers, chooses bool
	doc                       string
	settings                  func() []registry.Setting
	runner                    func(settings json.RawMessage) (runner, error)
}

func onDemand(p pass) pass  { p.onDemand = true; return p }
func referring(p pass) pass { p.refers = true; return p }
func choosing(p pass) pass  { p.chooses = true; return p }

// runner does the work of a pass whose settings are known.
type runner func(ctx context.Context, w *work) error

func define[C any](name string, c class, source, doc string, defaults C, run func(context.Context, *work, C) error) pass {
	settings := registry.Settings[C](func() C { return defaults })
	return pass{
		name: name, class: c, source: source, doc: doc, settings: settings.List,
		runner: func(raw json.RawMessage) (runner, error) {
			c, err := settings.Decode(raw)
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context, w *work) error { return run(ctx, w, c) }, nil
		},
	}
}

// atLeast returns an error if the setting called name is below least.
func atLeast(least int, name string, n int) error {
	switch {
	case n >= least:
		return nil
	case least == 0:
		return fmt.Errorf("%s: %d is negative", name, n)
	}
	return fmt.Errorf("%s: %d is below %d", name, n, least)
}

// share returns an error if the setting called name is no share of 1.
func share(name string, x float64) error {
	if !(x >= 0 && x <= 1) {
		return fmt.Errorf("%s: %v is not between 0 and 1", name, x)
	}
	return nil
}

// A step is a pass in a list, with its settings.
type step struct {
	pass   *pass
	always bool
	run    runner
}

// do runs s and reports whether it changed anything.
func (s *step) do(ctx context.Context, w *work, now func() time.Time) (core.Step, error) {
	if err := ctx.Err(); err != nil {
		return core.Step{}, fmt.Errorf("before the pass %s: %w", s.pass.name, err)
	}
	start, before := now(), w.tokens
	rep := core.Step{Name: s.pass.name, Saved: map[string]int{}}
	w.step = &rep
	w.steps++
	err := s.run(ctx, w)
	for i := range w.segments {
		if p := &w.segments[i]; p.step == w.steps && w.blocks[p.block].handleText != "" {
			rep.Handles = append(rep.Handles, w.blocks[p.block].handleText)
		}
	}
	w.settle()
	rep.TokensBefore, rep.TokensAfter = before, w.tokens
	rep.Duration = now().Sub(start)
	if err != nil {
		return rep, fmt.Errorf("pass %s: %w", s.pass.name, err)
	}
	return rep, nil
}

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

type layoutSettings struct {
	Terminal bool `json:"terminal" doc:"remove escape sequences of terminals; of overwritten lines keep the last state"`
	Space    bool `json:"space" doc:"remove trailing space, and keep one of several empty lines"`
	JSON     bool `json:"json" doc:"write JSON without indentation; numbers and keys stay unchanged"`
	Matches  bool `json:"matches" doc:"write the path of lines that a search found once, above them, if the text can be put together again exactly"`
}

var layoutPass = define("layout", classLossless, "",
	"Removes what carries no information from tool results: escape sequences, progress bars, trailing space, indentation of JSON, paths that are repeated on every line of a search. Results of reads stay unchanged, because edits quote them.",
	layoutSettings{Terminal: true, Space: true, JSON: true, Matches: true},
	func(_ context.Context, w *work, c layoutSettings) error {
		for i := range w.segments {
			p := &w.segments[i]
			if p.kind != dialog.KindToolResult || p.fixed || p.gone || p.use.Info.Family == dialog.FamilyRead {
				continue // an edit quotes a file as it is, to the last space
			}
			w.visited(1)
			text := p.text
			if c.JSON {
				if compact, ok := compactJSON(text); ok {
					w.put(i, compact)
					continue
				}
			}
			if c.Terminal {
				text = plainTerminal(text)
			}
			if c.Space {
				text = trimSpace(text)
			}
			if c.Matches {
				if folded, ok := foldMatches(text); ok && w.count(folded) < w.count(text) {
					text = folded
				}
			}
			if text != p.text && strings.TrimSpace(text) != "" {
				w.put(i, text)
			}
		}
		return nil
	})

// compactJSON removes the space between the values of a JSON object or array of several lines.
func compactJSON(s string) (string, bool) {
	t := strings.TrimSpace(s)
	if len(t) < 2 || t[0] != '{' && t[0] != '[' || !strings.Contains(t, "\n") {
		return "", false
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(t)) != nil {
		return "", false
	}
	return b.String(), true
}

// plainTerminal returns the text that a terminal would show after s: without escape sequences (ECMA-48: CSI,
// OSC and the short ones), and of lines that were overwritten after a carriage return the last state.
func plainTerminal(s string) string {
	if strings.IndexByte(s, 0x1b) >= 0 {
		var b strings.Builder
		for i := 0; i < len(s); i++ {
			if s[i] != 0x1b {
				b.WriteByte(s[i])
				continue
			}
			i = escapeEnd(s, i) - 1
		}
		s = b.String()
	}
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	var b strings.Builder
	for line := range strings.Lines(s) {
		body, end := strings.TrimRight(line, "\r\n"), ""
		if strings.HasSuffix(line, "\n") {
			end = "\n"
		}
		if i := strings.LastIndexByte(body, '\r'); i >= 0 {
			body = body[i+1:]
		}
		b.WriteString(body + end)
	}
	return b.String()
}

// escapeEnd returns the index after the escape sequence that begins at i.
func escapeEnd(s string, i int) int {
	i++
	if i == len(s) {
		return i
	}
	switch s[i] {
	case '[':
		for i++; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
			if s[i] < 0x20 || s[i] > 0x7e {
				return i // not a sequence
			}
		}
		return i
	case ']':
		for i++; i < len(s); i++ {
			if s[i] == 0x07 {
				return i + 1
			}
			if s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\' {
				return i + 2
			}
			if s[i] == '\n' {
				return i
			}
		}
		return i
	case '(', ')', '*', '+', '#':
		return min(i+2, len(s))
	}
	if s[i] >= 0x30 && s[i] <= 0x7e {
		return i + 1
	}
	return i
}

// trimSpace removes the space at the end of lines, and all but one of consecutive empty lines.
func trimSpace(s string) string {
	if !strings.Contains(s, " \n") && !strings.Contains(s, "\t\n") && !strings.Contains(s, "\r\n") && !strings.Contains(s, "\n\n\n") &&
		!strings.HasSuffix(s, " ") {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	empty := 0
	for line := range strings.Lines(s) {
		body := strings.TrimRight(line, " \t\r\n")
		if body == "" {
			if empty++; empty > 1 {
				continue
			}
		} else {
			empty = 0
		}
		b.WriteString(body)
		if strings.HasSuffix(line, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}
