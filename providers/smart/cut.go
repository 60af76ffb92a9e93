package smart

import (
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/outline"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/toolcall"
)

// A text is cut into units: its lines, or the elements of a JSON array. The structure of the
// text gives the rank of a unit. Units of a higher rank are kept longer.
const (
	worthLittle = iota
	worthEnds   // the first and the last units
	worthNear   // next to something that counts
	worthSome   // perhaps an error
	worthMuch   // an error, a signature, a changed line
	worthAll    // the headers that the rest cannot be read without
)

// A unitText is a text cut into units, with the rank of each.
type unitText struct {
	units []string
	worth []uint8
	noun  string // for units, in the plural
}

// understand cuts a text into units and ranks them by the structure of the text.
func understand(text string, u *use, f dialog.File) unitText {
	if t, ok := jsonArray(text); ok {
		return t
	}
	t := unitText{units: splitLines(text), noun: "lines"}
	t.worth = make([]uint8, len(t.units))
	switch {
	case isDiff(t.units):
		t.diff()
	case isTable(t.units):
		t.worth[0], t.worth[1] = worthAll, worthAll
	case outline.Language(f.Path) != "" && u != nil && u.Info.Family == dialog.FamilyRead:
		t.code(outline.Language(f.Path), text)
	default:
		t.log()
	}
	t.ends()
	return t
}

// ends raises the rank of the first and last units, which show a reader the nature of the text.
func (t *unitText) ends() {
	n := len(t.units)
	for i := range min(6, n) {
		w := uint8(worthEnds)
		if i < 2 {
			w = worthMuch
		}
		t.worth[i] = max(t.worth[i], w)
		t.worth[n-1-i] = max(t.worth[n-1-i], w)
	}
}

// log ranks lines that report failures.
func (t *unitText) log() {
	for i, line := range t.units {
		worth := wrong(line)
		if worth == worthLittle {
			continue
		}
		t.worth[i] = worth
		if worth < worthMuch {
			continue
		}
		for _, k := range []int{i - 1, i + 1, i + 2} {
			if k >= 0 && k < len(t.worth) && t.worth[k] < worthNear {
				t.worth[k] = worthNear
			}
		}
	}
}

// vagueSigns are words, in lower case, of lines that may be about a failure, besides those of package dialog.
var vagueSigns = []string{"error", "fail", "panic", "fatal", "assert", "undefined", "warning", "expected"}

// wrong returns the rank of a line as a report of failure.
func wrong(line string) uint8 {
	if len(line) > 2000 {
		line = line[:2000]
	}
	switch dialog.FaultOf(line) {
	case dialog.SureFault:
		return worthMuch
	case dialog.MaybeFault:
		return worthSome
	case dialog.NoFault:
	}
	low := strings.ToLower(line)
	if slices.ContainsFunc(vagueSigns, func(s string) bool { return strings.Contains(low, s) }) {
		return worthSome
	}
	return worthLittle
}

func isDiff(lines []string) bool {
	heads := plain.Only(lines[:min(len(lines), 60)], func(l string) bool {
		return strings.HasPrefix(l, "@@ ") || strings.HasPrefix(l, "diff --git ") || strings.HasPrefix(l, "+++ ")
	})
	return len(heads) >= 2
}

// diff ranks changed lines and the headers that locate them.
func (t *unitText) diff() {
	for i, l := range t.units {
		switch {
		case strings.HasPrefix(l, "diff "), strings.HasPrefix(l, "@@ "), strings.HasPrefix(l, "+++ "):
			t.worth[i] = worthAll
		case strings.HasPrefix(l, "+"), strings.HasPrefix(l, "-"):
			t.worth[i] = worthMuch
		}
	}
}

// isTable reports whether lines are a table with a header: of Markdown, or of values
// between commas or tabs, the same number in every line.
func isTable(lines []string) bool {
	if len(lines) < 4 {
		return false
	}
	if strings.HasPrefix(lines[0], "|") && strings.HasPrefix(lines[1], "|") && strings.Contains(lines[1], "---") {
		return true
	}
	begin := lines[:min(len(lines), 40)]
	return slices.ContainsFunc([]string{"\t", ","}, func(sep string) bool {
		n := strings.Count(lines[0], sep)
		same := plain.Only(begin, func(l string) bool { return strings.Count(l, sep) == n })
		return n >= 2 && len(same)*10 >= 9*len(begin)
	})
}

// code keeps signatures.
func (t *unitText) code(language, text string) {
	src := text
	if plain, ok := withoutNumbers(t.units); ok {
		src = plain
	}
	for _, d := range outline.Definitions(language, src) {
		for i := d.Start; i < d.Body && i <= len(t.worth); i++ {
			t.worth[i-1] = worthMuch
			if d.Depth > 0 {
				t.worth[i-1] = worthNear
			}
		}
	}
}

// withoutNumbers returns lines without the numbers that tools put before them, if nearly all have one.
func withoutNumbers(lines []string) (string, bool) {
	var b strings.Builder
	numbered := 0
	for _, l := range lines {
		body, end := strings.CutSuffix(l, "\n")
		_, sign, text := toolcall.Gutter(body)
		if sign != "" && sign != "-" {
			numbered++
			body = text
		}
		b.WriteString(body)
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String(), numbered*10 >= 8*len(lines)
}

// jsonArray cuts a JSON array, or the largest one in an object, into its elements. The text before and after
// them is a unit, too.
func jsonArray(text string) (unitText, bool) {
	t := strings.TrimSpace(text)
	if len(t) < 2 || t[0] != '[' && t[0] != '{' || t[len(t)-1] != ']' && t[len(t)-1] != '}' {
		return unitText{}, false
	}
	cuts := arrayCuts(text)
	if len(cuts) < 8 {
		return unitText{}, false
	}
	out := unitText{noun: "elements"}
	from := 0
	for _, c := range cuts {
		out.units = append(out.units, text[from:c])
		from = c
	}
	out.units = append(out.units, text[from:])
	out.worth = make([]uint8, len(out.units))
	out.worth[0], out.worth[len(out.units)-1] = worthAll, worthAll
	lengths := plain.Each(out.units[1:len(out.units)-1], func(e string) int { return len(e) })
	slices.Sort(lengths)
	usual := lengths[len(lengths)/2]
	for i := 1; i < len(out.units)-1; i++ {
		if e := out.units[i]; wrong(e) > worthLittle || len(e) > 3*usual+40 { // an outlier
			out.worth[i] = worthMuch
		}
	}
	out.ends()
	return out, true
}

// arrayCuts returns the offsets after the opening bracket of the largest array at depth 0
// or 1 of a JSON text, and after the comma that follows each of its elements; nil if the text is
// not well-formed.
func arrayCuts(s string) []int {
	var (
		best, cuts [2][]int // by depth
		stack      []byte
	)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"':
			if i = stringEnd(s, i) - 1; i >= len(s) {
				return nil
			}
		case '[', '{':
			if d := len(stack); d < 2 && c == '[' {
				cuts[d] = []int{i + 1}
			}
			stack = append(stack, c)
		case ']', '}':
			if len(stack) == 0 || stack[len(stack)-1] != c-2 {
				return nil
			}
			stack = stack[:len(stack)-1]
			if d := len(stack); d < 2 && c == ']' && len(cuts[d]) > len(best[d]) {
				best[d] = cuts[d]
			}
		case ',':
			if d := len(stack) - 1; d >= 0 && d < 2 && stack[d] == '[' {
				cuts[d] = append(cuts[d], i+1)
			}
		}
	}
	if len(stack) > 0 {
		return nil
	}
	if len(best[1]) > len(best[0]) {
		return best[1]
	}
	return best[0]
}

// cut keeps the units that are worth most within about room bytes and puts stubs where the
// others were. It reports false if nothing can be cut.
func (t *unitText) cut(room int, s stub) (string, bool) {
	keep := make([]bool, len(t.units))
	long := max(200, room/4) // a unit above this is not worth its place
	for w := worthAll; w > worthLittle; w-- {
		t.inward(func(i int) bool {
			if int(t.worth[i]) == w && len(t.units[i]) <= min(long, room) {
				keep[i] = true
				room -= len(t.units[i])
			}
			return room > 0
		})
	}
	// The rest of the room goes to both ends.
	t.inward(func(i int) bool {
		if !keep[i] && len(t.units[i]) <= room {
			keep[i] = true
			room -= len(t.units[i])
			return true
		}
		return keep[i]
	})
	return t.render(keep, s)
}

// inward visits units from both ends to the middle while f returns true.
func (t *unitText) inward(f func(int) bool) {
	for i, k := 0, len(t.units)-1; i <= k; i, k = i+1, k-1 {
		if !f(i) || i < k && !f(k) {
			return
		}
	}
}

// minGap is the size in bytes below which a gap is not worth its stub.
const minGap = 80

// render writes the kept units, and one stub for each gap. The first names the tool and the handle, the others
// only their size. It reports false if there is no gap.
func (t *unitText) render(keep []bool, s stub) (string, bool) {
	for i := range keep {
		if keep[i] && isStub(t.units[i]) {
			keep[i] = false // of an earlier cut: the new stub includes its count
		}
	}
	var b, all strings.Builder
	var gaps []gap
	var stubs []stub
	for i := 0; i < len(t.units); {
		if keep[i] {
			all.WriteString(t.units[i])
			i++
			continue
		}
		start, bytes, lines, again := all.Len(), 0, 0, false
		for ; i < len(t.units) && !keep[i]; i++ {
			all.WriteString(t.units[i])
			bytes += len(t.units[i])
			again = again || isStub(t.units[i])
			if t.noun == "lines" {
				lines += stubLines(t.units[i])
			} else {
				lines++
			}
		}
		if bytes < minGap && !again {
			continue
		}
		g := stub{gap: true, lines: lines, bytes: bytes, noun: t.noun}
		if len(gaps) == 0 {
			g.of, g.handle, g.isError = s.of, s.handle, s.isError
		}
		gaps, stubs = append(gaps, gap{Span: core.Span{Start: start, End: all.Len()}}), append(stubs, g)
	}
	text, from := all.String(), 0
	if t.noun == "lines" {
		wholeTags(text, gaps)
	}
	for k, g := range gaps {
		b.WriteString(text[from:g.Start])
		if g.Start > from && t.noun == "lines" && text[g.Start-1] != '\n' {
			b.WriteByte('\n')
		}
		b.WriteString(g.fill(text, stubs[k]))
		if text[g.End-1] == '\n' {
			b.WriteByte('\n')
		}
		from = g.End
	}
	b.WriteString(text[from:])
	return b.String(), len(gaps) > 0
}
