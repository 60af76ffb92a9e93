package smart

import (
	"cmp"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/plain"
)

// A stub replaces removed content. There is one form, for whole results and for gaps
// in them, in the words of the reader, a language model:
//
//	[… 120 lines, 4 kB of read_file src/a.go left out; recall h:ab12cd34ef]
//	[… 14 lines of execute_command npm test (error) left out: same text in the newer one below; recall h:ab12cd34ef]
//
// The handle is [core.Handle] of the original part.
type stub struct {
	lines, bytes int
	noun         string // the unit that lines counts; empty means lines
	gap          bool   // the size in bytes is of no use: there is text around it
	bare         bool   // its size is of no use either
	of           string // tool and digest of its arguments, or another description
	isError      bool
	media        string // of images and other blocks, in a few words
	where        string // the place of the content, or of its newer version; may be empty
	handle       string
	originals    string // where the agent itself can read the original; empty if nowhere, or if another stub says it
}

const (
	stubStart = "[… "
	stubEnd   = "]"
	stubMark  = " left out"
	stubHand  = "; recall h:"
)

func (s stub) String() string {
	var b strings.Builder
	b.WriteString(stubStart)
	switch {
	case s.bare:
	case s.lines > 1:
		b.WriteString(strconv.Itoa(s.lines) + " " + cmp.Or(s.noun, "lines"))
		if !s.gap {
			b.WriteString(", " + byteSize(s.bytes))
		}
	default:
		b.WriteString(byteSize(s.bytes))
	}
	if s.media != "" {
		b.WriteString(" and " + s.media)
	}
	switch {
	case s.of == "":
	case s.bare:
		b.WriteString(strings.TrimSpace(s.of))
	default:
		b.WriteString(" of " + strings.TrimSpace(s.of))
	}
	if s.isError {
		b.WriteString(" (error)")
	}
	b.WriteString(stubMark)
	if s.where != "" {
		b.WriteString(": " + s.where)
	}
	if s.handle != "" {
		b.WriteString(stubHand + s.handle)
	}
	if s.originals != "" {
		b.WriteString(", original in " + s.originals)
	}
	b.WriteString(stubEnd)
	return b.String()
}

// reference matches a stub that says where the content that it replaces is.
var reference = plain.Pattern(
	`(\[… [^\]\n]*` + stubMark + `): (?:` + sameText + `|` + seeNewer + `|` + patchThe + `) [^\]\n]*?((?:` + stubHand + `[^\]\n]*)?\])`)

// withoutPlace returns text whose stubs do not say where their content is.
func withoutPlace(text string) (_ string, changed bool) {
	if !strings.Contains(text, stubMark+": ") {
		return text, false
	}
	s := reference().ReplaceAllString(text, "$1$2")
	return s, s != text
}

// byteSize writes a number of bytes in few tokens.
func byteSize(n int) string {
	if n < 1000 {
		return strconv.Itoa(n) + " B"
	}
	return strconv.Itoa((n+500)/1000) + " kB"
}

// isStub reports whether text is nothing but one stub.
func isStub(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, stubStart) && strings.HasSuffix(text, stubEnd) &&
		strings.Contains(text, stubMark) && !strings.Contains(text, "\n")
}

// hasStub reports whether text holds a stub.
func hasStub(text string) bool {
	i := strings.Index(text, stubStart)
	return i >= 0 && strings.Contains(text[i:], stubMark)
}

// stubLines returns how many lines of the original a line of text is: one, unless it is a stub.
func stubLines(line string) int {
	if !isStub(line) || !strings.Contains(line, " lines") {
		return 1
	}
	return stubCount(line)
}

// stubCount returns the number that a stub begins with; 1 if there is none.
func stubCount(stub string) int {
	n := 0
	for _, c := range []byte(strings.TrimSpace(stub)[len(stubStart):]) {
		if c < '0' || c > '9' || n > 1<<30 {
			break
		}
		n = 10*n + int(c-'0')
	}
	return max(n, 1)
}

// maxDigest is the number of bytes of a call's target that a stub repeats.
const maxDigest = 60

// plainTarget replaces characters that would end a stub, or break its line.
var plainTarget = strings.NewReplacer("[", "(", "]", ")", "\t", " ")

// digest shortens the target of a call to one line that holds no end of a stub. It keeps the
// end of a path and the beginning of anything else.
func digest(target string) string {
	if i := strings.IndexAny(target, "\r\n"); i >= 0 {
		target = target[:i]
	}
	target = plainTarget.Replace(target)
	if len(target) <= maxDigest {
		return target
	}
	if !strings.ContainsAny(target, " ") && strings.Contains(target, "/") {
		tail := target[len(target)-maxDigest:]
		if i := strings.IndexByte(tail, '/'); i >= 0 {
			return "…" + tail[i:]
		}
	}
	return target[:plain.Back(target, maxDigest)] + "…"
}

// marker returns the message that replaces n hidden messages.
func (w *work) marker(n int) core.Message {
	text := fmt.Sprintf("%s%d messages%s%s", stubStart, n, stubMark, stubEnd)
	if n == 1 {
		text = stubStart + "1 message" + stubMark + stubEnd
	}
	if w.req.Originals != "" {
		text = strings.TrimSuffix(text, stubEnd) + "; originals in " + w.req.Originals + stubEnd
	}
	m := core.Message{Role: core.RoleUser, Kind: core.KindMarker, Parts: []core.Part{core.Text(text)}}
	m.Tokens = core.MessageTokens(w.req.Counter, m)
	return m
}

// A gap is a run of text to remove, and the tags to keep next to its stub, so that every
// element of the protocol keeps both of its tags.
type gap struct {
	core.Span
	ends, opens string
}

// wholeTags adds to each gap the tags in it whose counterparts are outside of it, and widens a
// single gap that begins or ends within a tag. Gaps are in ascending order.
func wholeTags(text string, gaps []gap) {
	elements := dialog.Pairs(text)
	if len(elements) == 0 {
		return
	}
	in := func(at int) int { // the gap that holds at
		k := sort.Search(len(gaps), func(k int) bool { return gaps[k].End > at })
		if k == len(gaps) || at < gaps[k].Start {
			return -1
		}
		return k
	}
	if len(gaps) == 1 { // several are of whole lines
		g := &gaps[0]
		for _, e := range elements {
			for _, t := range [2]core.Span{e.Open, e.Close} {
				if t.Start < g.Start && g.Start < t.End {
					g.Start = t.Start
				}
				if t.Start < g.End && g.End < t.End {
					g.End = t.End
				}
			}
		}
	}
	for _, e := range elements { // by their ends: the inner ones first
		a, z := in(e.Open.Start), in(e.Close.Start)
		switch {
		case a < 0 && z >= 0:
			gaps[z].ends += text[e.Close.Start:e.Close.End]
		case a >= 0 && z < 0: // the outer ones come first
			gaps[a].opens = text[e.Open.Start:e.Open.End] + gaps[a].opens
		}
	}
}

// fill returns the replacement of a gap: its stub and its tags, on a separate line if the
// removed text has several lines.
func (g *gap) fill(text string, s stub) string {
	if g.ends == "" && g.opens == "" {
		return s.String()
	}
	line := ""
	if strings.Contains(text[g.Start:g.End], "\n") {
		line = "\n"
	}
	both := line
	if g.ends == "" || g.opens == "" {
		both = ""
	}
	return s.String() + line + g.ends + both + g.opens
}

var (
	// matchForm matches a line of grep -n or rg: path, number and text. The path has a letter and a sign of
	// paths, which times do not have, and may begin with the letter of a drive.
	matchForm = plain.Pattern(`^((?:[A-Za-z]:[\\/])?(?:[^:\s]*[A-Za-z][^:\s]*[./\\][^:\s]*|[^:\s]*[./\\][^:\s]*[A-Za-z][^:\s]*)):\d+:`)
	// underForm matches such a line without its path; the sign after the number says whether it is a match or
	// next to one.
	underForm = plain.Pattern(`^\d+([:-])`)
)

// foldMatches writes the results of a search with each path once, on a line above the matches in that file. It reports
// whether that is shorter and unfoldMatches gives the same text.
func foldMatches(s string) (string, bool) {
	lines := strings.Split(s, "\n")
	next := make([]string, len(lines)+1) // the path of the next match
	for i := len(lines) - 1; i >= 0; i-- {
		next[i] = next[i+1]
		if m := matchForm().FindStringSubmatch(lines[i]); m != nil {
			next[i] = m[1]
		}
	}
	if next[0] == "" {
		return "", false
	}
	var out []string
	path := "" // of the line above
	for i, line := range lines {
		found := false
		for _, p := range []string{path, next[i]} {
			rest, ok := strings.CutPrefix(line, p)
			if p == "" || !ok || rest == "" {
				continue
			}
			if m := underForm().FindStringSubmatch(rest[1:]); m == nil || m[1] != rest[:1] {
				continue
			}
			if p != path {
				out, path = append(out, p), p
			}
			out, found = append(out, rest[1:]), true
			break
		}
		if !found {
			out = append(out, line)
		}
	}
	folded := strings.Join(out, "\n")
	return folded, len(folded) < len(s) && unfoldMatches(folded) == s
}

// unfoldMatches returns the text that foldMatches made s of.
func unfoldMatches(s string) string {
	lines := strings.Split(s, "\n")
	var out []string
	path := ""
	for i, line := range lines {
		under := underForm().FindStringSubmatch(line)
		switch {
		case under != nil && path != "":
			out = append(out, path+under[1]+line)
		case under == nil && line != "--" && i+1 < len(lines) && underForm().MatchString(lines[i+1]):
			path = line
		default:
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}
