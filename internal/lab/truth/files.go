package truth

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/toolcall"
)

// A state is the known text of a file.
type state struct {
	lines  map[string]int      // the newest text, with the number of each line; 0 if unknown
	former map[string][]string // lines that are gone, with those that came in their place
}

// fileLines are the lines of all files, as they are and as they were.
type fileLines struct {
	current map[string]bool
	former  map[string][]string
}

// readFiles replays the reads and edits of a history.
func readFiles(history []core.Message) fileLines {
	states := map[string]*state{}
	calls := map[string]core.ToolCall{}
	for i := range history {
		for _, p := range history[i].Parts {
			switch p := p.(type) {
			case core.ToolCall:
				calls[p.ID] = p
			case core.ToolResult:
				if c, ok := calls[p.CallID]; ok && !p.IsError {
					replay(states, &c, &p)
				}
			default:
			}
		}
	}
	f := fileLines{map[string]bool{}, map[string][]string{}}
	for _, s := range states {
		for l := range s.lines {
			f.current[l] = true
		}
		for l, next := range s.former {
			f.former[l] = append(f.former[l], next...)
		}
	}
	return f
}

// files counts the lines of files in the view that are no longer so, without the lines that came in their place.
func (m *measure) files(f *fileLines, view []core.Message) {
	for i := range view {
		for _, p := range view[i].Parts {
			if _, ok := p.(core.ToolCall); ok {
				continue // what an edit replaced is next to what it wrote
			}
			for s := range texts(p) {
				for line := range strings.SplitSeq(s, "\n") {
					if _, line = gutter(line); tells(line) {
						m.line(f, strings.TrimSpace(line))
					}
				}
			}
		}
	}
}

func (m *measure) line(f *fileLines, line string) {
	next, gone := f.former[line]
	if f.current[line] {
		gone = false
	} else if !gone {
		return
	}
	m.Lines++
	if !gone || slices.ContainsFunc(next, m.shown.has) {
		return
	}
	m.Superseded++
	m.example("superseded", line)
}

// tells reports whether a line is long enough to be of one file.
func tells(line string) bool {
	const least = 12
	line = strings.TrimSpace(line)
	return len(line) >= least && strings.ContainsFunc(line, unicode.IsLetter)
}

// numberForm is how tools number the lines of files.
var numberForm = plain.Pattern(`^\s{0,8}0{0,6}(\d{1,7})(?:→|\t|: ?| ?\| ?)`)

// gutter splits the number off a line; 0 if there is none.
func gutter(line string) (n int, rest string) {
	f := numberForm().FindStringSubmatch(line)
	if f == nil {
		return 0, line
	}
	return rawjson.Int([]byte(f[1])), line[len(f[0]):]
}

// replay applies a call and its result to the files.
func replay(states map[string]*state, c *core.ToolCall, r *core.ToolResult) {
	args := []byte(c.Args)
	of := func(path string) *state {
		path = strings.ReplaceAll(strings.TrimSpace(path), `\`, "/")
		if i := strings.LastIndexByte(path, '/'); i >= 0 && strings.Count(path, "/") > 1 {
			path = path[strings.LastIndexByte(path[:i], '/')+1:] // a path may be relative: the last two elements
		}
		s := states[path]
		if s == nil {
			s = &state{map[string]int{}, map[string][]string{}}
			states[path] = s
		}
		return s
	}
	patch := toolcall.PatchIn(args)
	for _, h := range patch {
		of(h.Path).edit(h.Old, h.New)
	}
	path := toolcall.First(args, toolcall.Path)
	if len(patch) > 0 || path == "" {
		return
	}
	s := of(path)
	edits := [][]byte{args}
	for list := range toolcall.Values(args, toolcall.Edits) {
		edits = append(edits, slices.Collect(rawjson.Elements(list))...)
	}
	changed := false
	for _, e := range edits {
		old, now := toolcall.First(e, toolcall.Old), toolcall.First(e, toolcall.New)
		if old != "" {
			s.edit(old, now)
			changed = true
		}
	}
	for v := range toolcall.Values(args, toolcall.Patch) {
		for _, pair := range toolcall.SearchReplace(rawjson.Text(v)) {
			s.edit(pair[0], pair[1])
			changed = true
		}
	}
	switch whole := toolcall.First(args, toolcall.Whole); {
	case changed, toolcall.First(args, toolcall.Query|toolcall.Command) != "": // a search shows lines of many files
	case whole != "":
		s.rewrite(whole, 1, 0)
	default:
		var b strings.Builder
		for t := range texts(*r) {
			b.WriteString(t + "\n")
		}
		s.read(b.String(), rawjson.Field(args, "offset") != nil || rawjson.Field(args, "limit") != nil)
	}
}

// linesOf returns the lines of a text that can be told.
func linesOf(text string) (all []string) {
	return plain.Each(plain.Only(strings.Split(text, "\n"), tells), strings.TrimSpace)
}

func (s *state) edit(old, now string) {
	after := linesOf(now)
	is := plain.Set(after)
	var next []string
	before := plain.Set(linesOf(old))
	next = append(next, plain.Only(after, func(l string) bool { return !before[l] })...)
	for l := range before {
		if !is[l] {
			delete(s.lines, l)
			s.former[l] = next
		}
	}
	for _, l := range after {
		s.set(l, 0)
	}
}

func (s *state) set(line string, n int) {
	s.lines[line] = n
	delete(s.former, line)
}

// rewrite replaces the lines from a number to another, 0 for the end.
func (s *state) rewrite(text string, from, to int) {
	now := map[string]int{}
	for i, line := range strings.Split(text, "\n") {
		if tells(line) {
			now[strings.TrimSpace(line)] = from + i
		}
	}
	var next []string
	for l := range now {
		if _, ok := s.lines[l]; !ok {
			next = append(next, l)
		}
	}
	for l, n := range s.lines {
		if _, same := now[l]; !same && n >= from && (to == 0 || n <= to) {
			delete(s.lines, l)
			s.former[l] = next
		}
	}
	for l, n := range now {
		s.set(l, n)
	}
}

// read takes the text of a file or of a part of it that a tool showed.
func (s *state) read(text string, part bool) {
	first, last := 0, 0
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		n, rest := gutter(line)
		if n > 0 && (last == 0 || n == last+1) {
			first = cmp.Or(first, n)
			last = n
			b.WriteString(rest + "\n")
		}
	}
	switch {
	case last > 0:
		s.rewrite(strings.TrimSuffix(b.String(), "\n"), first, last)
	case !part:
		s.rewrite(text, 1, 0)
	}
}
