package score

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/toolcall"
)

// A view refers to more content than it holds. Content is reachable if one recall, or one read of a file, brings it
// back:
//
//   - by a handle: the ten digits of [core.Handle] of a part before the cut, as a word of the view. With
//     a + after it, it names everything from that part on, of which one recall returns [recallPage] bytes.
//   - in an extract by a number: m7 is the seventh message, m7.2 its second result, each with the calls that it answers.
//   - by a path with lines: PATH:FROM-TO in the view, or a call in the view that reads a file. The lines
//     count if the file has not been written since. To err on the strict side, any later call that names
//     the file and does not read it counts as a write.

// recallPage is the most bytes that one recall returns.
const recallPage = 20_000

var (
	visibleHandle = plain.Pattern(`(?:^|[^0-9A-Za-z])([0-9a-f]{10}|m[1-9]\d{0,5}(?:\.\d{1,3})?)(\+?)(?:[^0-9A-Za-z]|$)`)
	visiblePath   = plain.Pattern(`([^\s"'` + "`" + `<>()\[\],;:]+):(\d+)-(\d+)`)
	numberedLine  = plain.Pattern(`^\s*(\d+)(?:→|\t|:| ?\|)`)
)

// A reachIndex resolves handles and paths.
type reachIndex struct {
	parts   []core.Span      // the lines of every part before the cut, in order
	bytes   []int            // of the text of every part
	handles map[string][]int // indices of parts
	reads   []fileRead
	byCall  map[uint64][]int // indices of reads, by name and arguments of the call
	// replaced has the lines that a later edit replaced, each with the first line of the new text.
	replaced map[uint64]uint64
}

// A fileRead is the result of a call that read a file, if the file was not written since.
type fileRead struct {
	path    string
	written bool
	numbers []int // of the lines in the file
	at      []int // indices of the lines of the prefix
}

func (s *Scorer) reachable() *reachIndex {
	s.reachOnce.Do(func() { s.reach = s.readReach() })
	return s.reach
}

func (s *Scorer) readReach() *reachIndex {
	x := &reachIndex{handles: map[string][]int{}, byCall: map[uint64][]int{}, replaced: map[uint64]uint64{}}
	type call struct {
		key  uint64
		path string
		from int
	}
	calls, called := map[string]call{}, map[string]int{} // and their parts
	state := map[uint64]map[uint64]bool{}                // lines of a file when it was last read or written
	at := 0                                              // index of a line
	for m, msg := range s.cut.Prefix() {
		number, nth := "m"+strconv.Itoa(m+1), 0
		for k, p := range msg.Parts {
			i := len(x.parts)
			x.add(number, i)
			start, size := at, 0
			read := fileRead{}
			answer, reads := call{}, false
			if r, ok := p.(core.ToolResult); ok && !r.IsError {
				answer, reads = calls[r.CallID]
			}
			blocks(msg.Parts[k:k+1], func(_ int, text string) {
				size += len(text) + 1
				number := max(answer.from, 1)
				for raw := range strings.SplitSeq(text, "\n") {
					if n := numberedLine().FindStringSubmatch(raw); n != nil {
						number, _ = strconv.Atoi(n[1])
					}
					lines(raw, func(line string) {
						if h := lineHash(line); h != 0 {
							delete(x.replaced, h)
							if reads {
								read.numbers, read.at = append(read.numbers, number), append(read.at, at)
							}
							at++
						}
					})
					number++
				}
			})
			x.parts, x.bytes = append(x.parts, core.Span{Start: start, End: at}), append(x.bytes, size)
			x.add(core.Handle(p), i)
			switch p := p.(type) {
			case core.ToolCall:
				called[p.ID] = i
				path, from, wrote := access(p.Args)
				if path != "" && !wrote {
					calls[p.ID] = call{callKey(p), path, from}
					break
				}
				x.write(p.Args)
				x.replace(p.Args, state)
			case core.ToolResult:
				nth++
				if c, ok := called[p.CallID]; ok {
					x.add(number, c)
					x.add(number+"."+strconv.Itoa(nth), c)
				}
				x.add(number+"."+strconv.Itoa(nth), i)
				if len(p.Content) == 1 {
					x.add(core.Handle(p.Content[0]), i)
				}
				if reads {
					read.path = answer.path
					x.byCall[answer.key], x.reads = append(x.byCall[answer.key], len(x.reads)), append(x.reads, read)
					s.know(state, read)
				}
			case core.Text:
				if s.cut.Session.Origin(m, k) == OriginAgent { // calls as XML
					written(string(p), func(uint64, string) { x.write(string(p)) }, func(uint64) {})
				}
			case core.Image, core.Reasoning, core.Opaque:
			}
		}
	}
	return x
}

// know adds the lines of a read to the known lines of its file.
func (s *Scorer) know(state map[uint64]map[uint64]bool, r fileRead) {
	name, ok := pathName(r.path)
	if !ok {
		return
	}
	if state[name] == nil {
		state[name] = map[uint64]bool{}
	}
	for _, l := range r.at {
		state[name][s.prefix.lines[l].hash] = true
	}
}

func (x *reachIndex) add(handle string, part int) {
	x.handles[handle] = append(x.handles[handle], part)
}

// named returns the parts with a handle or a number in a text: numbers are of extracts.
func (x *reachIndex) named(handle, text string) []int {
	if text, _ = core.CutFrame(text); handle[0] == 'm' && !strings.HasPrefix(text, "[Extract of the conversation") {
		return nil
	}
	return x.handles[handle]
}

// write marks the reads of files that args names as out of date.
func (x *reachIndex) write(args string) {
	for i := range x.reads {
		if r := &x.reads[i]; !r.written && strings.Contains(args, r.path[strings.LastIndexAny(r.path, `/\`)+1:]) {
			r.written = true
		}
	}
}

// replace notes the lines that a call removed from a file: lines that an edit or a patch names, or that a rewritten
// file no longer has.
func (x *reachIndex) replace(args string, state map[uint64]map[uint64]bool) {
	var fields any
	if json.Unmarshal([]byte(args), &fields) != nil {
		return
	}
	note := func(before, after []uint64) {
		var now uint64
		for _, h := range after {
			if !slices.Contains(before, h) {
				now = h
				break
			}
		}
		for _, h := range before {
			if !slices.Contains(after, h) {
				x.replaced[h] = now
			}
		}
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case string:
			if !strings.Contains(v, "\n@@") && !strings.Contains(v, "*** Begin Patch") {
				return
			}
			var before, after []uint64
			for line := range strings.SplitSeq(v, "\n") {
				switch {
				case strings.HasPrefix(line, "-") && !strings.HasPrefix(line, "---"):
					before = append(before, hashes(line[1:])...)
				case strings.HasPrefix(line, "+") && !strings.HasPrefix(line, "+++"):
					after = append(after, hashes(line[1:])...)
				}
			}
			note(before, after)
		case map[string]any:
			text := func(roles toolcall.Role) []uint64 {
				for _, k := range slices.Sorted(maps.Keys(v)) {
					if s, ok := v[k].(string); ok && toolcall.RoleOf(k)&roles != 0 {
						return hashes(s)
					}
				}
				return nil
			}
			if before := text(toolcall.Old); before != nil {
				note(before, text(toolcall.New))
			}
			if now := text(toolcall.Whole); now != nil {
				if path, _, _ := access(args); path != "" {
					if name, ok := pathName(path); ok {
						note(slices.Sorted(maps.Keys(state[name])), now)
						state[name] = nil
					}
				}
			}
			for _, k := range slices.Sorted(maps.Keys(v)) {
				walk(v[k])
			}
		}
	}
	walk(fields)
}

// access returns the file that a call with these arguments names, the first line that it reads, and
// whether it writes. The path is empty for a call without a file.
func access(args string) (path string, from int, writes bool) {
	var fields map[string]any
	if json.Unmarshal([]byte(args), &fields) != nil {
		return "", 0, true
	}
	path = toolcall.First([]byte(args), toolcall.Path)
	for k := range fields {
		writes = writes || toolcall.RoleOf(k)&writeRoles != 0
	}
	for _, k := range []string{"offset", "start_line", "startLine", "start", "from"} {
		if n, ok := fields[k].(float64); ok {
			from = int(n)
		}
	}
	if r, ok := fields["view_range"].([]any); ok && len(r) > 0 {
		if n, ok := r[0].(float64); ok {
			from = int(n)
		}
	}
	return path, from, writes
}

func callKey(c core.ToolCall) uint64 { return hashString(hashString(fnvOffset, c.Name+"\n"), c.Args) }

// reached returns the lines of the prefix that a handle or a path in view leads to.
func (s *Scorer) reached(view []core.Message) []bool {
	x := s.reachable()
	out := make([]bool, len(s.prefix.lines))
	mark := func(lines core.Span) {
		for l := lines.Start; l < lines.End; l++ {
			out[l] = true
		}
	}
	for i := range view {
		for _, p := range view[i].Parts {
			if c, ok := p.(core.ToolCall); ok {
				for _, r := range x.byCall[callKey(c)] {
					x.reads[r].mark(out, 1, 1<<30)
				}
			}
		}
		blocks(view[i].Parts, func(_ int, text string) {
			each(visibleHandle(), text, func(found []string) {
				parts := x.named(found[1], text)
				if found[2] == "" {
					for _, p := range parts {
						mark(x.parts[p])
					}
					return
				}
				if len(parts) == 0 {
					return
				}
				left := recallPage
				for p := parts[0]; p < len(x.parts) && left > 0; p++ {
					lines := x.parts[p]
					if x.bytes[p] > left {
						lines.End = lines.Start + (lines.End-lines.Start)*left/x.bytes[p]
					}
					left -= x.bytes[p]
					mark(lines)
				}
			})
			each(visiblePath(), text, func(found []string) {
				from, _ := strconv.Atoi(found[2])
				to, _ := strconv.Atoi(found[3])
				path := ""
				for r := range x.reads {
					if p := x.reads[r].path; p == found[1] || strings.HasSuffix(p, "/"+strings.TrimPrefix(found[1], "./")) {
						if path != "" && path != p {
							return // it could be either
						}
						path = p
					}
				}
				for r := range x.reads {
					if path != "" && x.reads[r].path == path {
						x.reads[r].mark(out, from, to)
					}
				}
			})
		})
	}
	return out
}

func (r *fileRead) mark(out []bool, from, to int) {
	for i, n := range r.numbers {
		if !r.written && n >= from && n <= to {
			out[r.at[i]] = true
		}
	}
}

// each calls yield for all matches of re in text, even matches that share the character between them.
func each(re *regexp.Regexp, text string, yield func(found []string)) {
	for {
		at := re.FindStringSubmatchIndex(text)
		if at == nil {
			return
		}
		var found []string
		for i := 0; i < len(at); i += 2 {
			found = append(found, text[at[i]:at[i+1]])
		}
		yield(found)
		text = text[at[len(at)-1]:]
	}
}

// A Verdict tells how a view keeps a name that was needed.
type Verdict string

// The verdicts. Reachable content is missing from the view, but one recall or one read brings it back. An Altered
// name lacks the text around it, or is in other text. A Stale name is only in a line that was replaced later, without
// the replacement.
const (
	Kept      Verdict = "kept"
	Reachable Verdict = "reachable"
	Missing   Verdict = "missing"
	Altered   Verdict = "altered"
	Stale     Verdict = "stale"
)

// verdict returns the verdict on unit u.
func (r *reader) verdict(u int, reach *reader) Verdict {
	switch {
	case r.credit[u] > 0 && !r.fresh(u):
		return Stale
	case r.credit[u] > 0:
		return Kept
	case reach.credit[u] > 0:
		return Reachable
	case r.present[u]:
		return Altered
	}
	return Missing
}

// fresh reports whether the view has unit u in a line that no later edit replaced, or in a replacement.
func (r *reader) fresh(u int) bool {
	return r.sound[u] || slices.ContainsFunc(r.stale[int32(u)], func(now uint64) bool { _, ok := r.have[now]; return ok })
}

// with returns a reader of the view of r and the reached lines of the prefix.
func (r *reader) with(reached []bool) *reader {
	out := &reader{s: r.s, credit: slices.Clone(r.credit), words: slices.Clone(r.words), grams: slices.Clone(r.grams)}
	for l, ok := range reached {
		if !ok {
			continue
		}
		for _, u := range r.s.prefix.lines[l].units {
			out.credit[u] = 1 // with the lines around it
		}
		for _, w := range r.s.prefix.lines[l].words {
			out.words[w] = true
		}
		for _, g := range r.s.prefix.lines[l].grams {
			out.grams[g] = true
		}
	}
	return out
}
