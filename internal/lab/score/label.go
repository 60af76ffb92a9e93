package score

import (
	"slices"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/toolcall"
)

// A handle is useful only to a reader who knows its content. Labelled reach counts the handles whose label names the
// part: its file, the lines if the label gives any, its command, or the first words of a text. The label of a handle
// is its line. If that line has other words, so that it heads or ends something, up to two lines on either side
// without a handle belong to the label; and so does the call that a result with the handle answers.

const (
	labelLines = 2 // on either side of a handle
	labelStem  = 8 // bytes of a name that is cut short with an ellipsis
	labelWords = 3 // of a text
)

// A partName is how a label can name a part.
type partName struct {
	files []string // base names
	says  []string // beginnings of commands, queries and texts, white space folded
}

var (
	labelWord   = plain.Pattern(`[\pL\pN]{2}`)
	labelPath   = plain.Pattern(`[^\s"'` + "`" + `<>()\[\],;:|]+`)
	labelRange  = plain.Pattern(`^:(\d+)(?:-(\d+))?`)
	patchedFile = plain.Pattern(`\*\*\* (?:Update|Add|Delete) File: ([^\n"\\]+)`)
	changesDir  = plain.Pattern(`^\s*(?:cd|export|source|set)\b[^&;\n]*(?:&&|;|\n)`)
)

func baseName(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }

// nameOf returns the name of a part that is not a result: a result has the name of its call.
func nameOf(p core.Part) partName {
	var n partName
	switch p := p.(type) {
	case core.Text:
		n.say(string(p), labelWords)
	case core.ToolCall:
		if path, _, _ := access(p.Args); path != "" {
			n.files = append(n.files, baseName(path))
		}
		for _, found := range patchedFile().FindAllStringSubmatch(p.Args, -1) {
			n.files = append(n.files, baseName(strings.TrimSpace(found[1])))
		}
		for v := range toolcall.Values([]byte(p.Args), toolcall.Command|toolcall.Query|toolcall.Prose) {
			if rawjson.IsArray(v) { // of words, the last of which a shell runs
				for e := range rawjson.Elements(v) {
					v = e
				}
			}
			n.command(rawjson.Text(v))
		}
	case core.ToolResult, core.Image, core.Reasoning, core.Opaque:
	}
	return n
}

// command adds the names of a command or a query: its first two words, and the files that its first line names.
func (n *partName) command(s string) {
	for at := changesDir().FindStringIndex(s); at != nil; at = changesDir().FindStringIndex(s) {
		s = s[at[1]:]
	}
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	n.say(s, 2)
	for _, u := range appendUnits(nil, s) {
		if f := baseName(s[u.start:u.end]); u.kind == UnitPath && strings.Contains(f, ".") { // no folder
			n.files = append(n.files, f)
		}
	}
	bare := slices.DeleteFunc(strings.Fields(s), func(w string) bool { return strings.HasPrefix(w, "-") })
	n.say(strings.Join(bare, " "), 2) // labels leave flags out
}

// say adds the first words of s.
func (n *partName) say(s string, words int) {
	f := strings.Fields(s)
	if s = strings.Join(f[:min(words, len(f))], " "); len(s) >= 4 && !slices.Contains(n.says, s) {
		n.says = append(n.says, s)
	}
}

// in returns the lines of the part that label names: from and to, or false if it does not name the part. A file that
// is cut short at its end with an ellipsis is named if enough of it is left.
func (n *partName) in(label string) (from, to int, ok bool) {
	for _, s := range n.says {
		if strings.Contains(label, s) {
			return 1, 1 << 30, true
		}
	}
	for _, at := range labelPath().FindAllStringIndex(label, -1) {
		base := baseName(strings.TrimSuffix(label[at[0]:at[1]], "."))
		stem, short := strings.CutSuffix(base, "…")
		for _, f := range n.files {
			if f == "" || f != base && (!short || len(stem) < labelStem || !strings.HasPrefix(f, stem)) {
				continue
			}
			r := labelRange().FindStringSubmatch(label[at[1]:])
			if r == nil {
				return 1, 1 << 30, true
			}
			from, _ = strconv.Atoi(r[1])
			if to, _ = strconv.Atoi(r[2]); to == 0 {
				to = from
			}
			return from, to, true
		}
	}
	return 0, 0, false
}

// labelled returns the lines of the prefix to which handles in view lead whose labels name the content.
func (s *Scorer) labelled(view []core.Message) []bool {
	x := s.reachable()
	out := make([]bool, len(s.prefix.lines))
	calls := map[string]string{}
	for i := range view {
		for k, p := range view[i].Parts {
			call := ""
			switch p := p.(type) {
			case core.ToolCall:
				call = p.Name + " " + plainArgs(p.Args)
				calls[p.ID] = call
			case core.ToolResult:
				call = calls[p.CallID]
			case core.Text, core.Image, core.Reasoning, core.Opaque:
			}
			blocks(view[i].Parts[k:k+1], func(_ int, text string) { s.labelledIn(x, text, call, out) })
		}
	}
	return out
}

// plainArgs returns the values of the arguments of a call as text.
func plainArgs(args string) string {
	var b strings.Builder
	lines(args, func(line string) { b.WriteString(line + " ") })
	return folded(b.String())
}

// labelledIn marks in out the content of the labelled handles in a text. Call is the call that the text answers, or
// is.
func (s *Scorer) labelledIn(x *reachIndex, whole, call string, out []bool) {
	text := strings.Split(whole, "\n")
	for i, line := range text {
		if !visibleHandle().MatchString(line) {
			continue
		}
		label := folded(line)
		if labelWord().MatchString(strings.ReplaceAll(visibleHandle().ReplaceAllString(line, " "), "h:", " ")) {
			label += "\n" + nearby(text, i)
		}
		label += "\n" + call
		each(visibleHandle(), line, func(found []string) {
			parts := x.named(found[1], whole)
			if found[2] == "" {
				for _, p := range parts {
					s.markNamed(x, p, label, x.bytes[p], out)
				}
				return
			}
			if len(parts) == 0 {
				return
			}
			left := recallPage
			for p := parts[0]; p < len(x.parts) && left > 0; p++ {
				s.markNamed(x, p, label, left, out)
				left -= x.bytes[p]
			}
		})
	}
}

// nearby returns the lines next to line i up to the first with a handle of its own.
func nearby(text []string, i int) string {
	var out []string
	for _, step := range []int{-1, 1} {
		for k := 1; k <= labelLines; k++ {
			at := i + step*k
			if at < 0 || at >= len(text) || visibleHandle().MatchString(text[at]) {
				break
			}
			out = append(out, folded(text[at]))
		}
	}
	return strings.Join(out, "\n")
}

// markNamed marks the lines in the first bytes of part p that label names.
func (s *Scorer) markNamed(x *reachIndex, p int, label string, bytes int, out []bool) {
	from, to, ok := x.names[p].in(label)
	if !ok {
		return
	}
	span := x.parts[p]
	if x.bytes[p] > bytes {
		span.End = span.Start + (span.End-span.Start)*bytes/x.bytes[p]
	}
	numbers := map[int]int{} // of lines in the file
	if r := x.readOf[p]; r > 0 {
		for i, at := range x.reads[r-1].at {
			numbers[at] = x.reads[r-1].numbers[i]
		}
	}
	for l := span.Start; l < span.End; l++ {
		if n, known := numbers[l]; !known || n >= from && n <= to {
			out[l] = true
		}
	}
}
