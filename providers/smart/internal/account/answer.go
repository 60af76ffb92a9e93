package account

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/condensehq/condense/internal/plain"
)

// An entry is one statement in the answer of a model.
type entry struct {
	section Section
	text    string
	op      op
	number  int // of the item that op is about
}

// An op is the effect of an entry on an item of the former account.
type op uint8

const (
	opNew op = iota
	opChanged
	opGone
)

// sectionNames are words in the headings that models write: the first that occurs says which section it is.
var sectionNames = []struct {
	words string
	of    Section
}{
	{"next", Next},
	{"constraint|rule|preference", Constraints},
	{"request|goal|objective|intent|user message", Request},
	{"state\\b|status|current|in progress|in flight|running|temporary", State},
	{"pending|remaining|todo|open|risk|question", Open},
	{"decision|decided", Decisions},
	{"error|failure|problem|blocker", Failures},
	{"facts?\\b|finding|value|result", Facts},
	{"file|code", Files},
	{"command", Commands},
	{"done|complete|accomplish|progress", Done},
	{"(?:concept|background|context|note)s?\\b", Notes},
}

var (
	hashHeading = plain.Pattern(`^#{1,6}\s+(.+?)\s*#*$`)
	boldHeading = plain.Pattern(`^\*\*([^*]{2,80})\*\*:?$`)
	lineHeading = plain.Pattern(`^(?:\d{1,2}[.)]\s+)?([A-Z][A-Za-z ,&/()'-]{2,60}):$`)
	bullet      = plain.Pattern(`^(\s*)(?:[-*•+]|\d{1,5}[.)])\s+(.+)$`)
	change      = plain.Pattern(`^(?i:\*{0,2}(changed|gone)\s+#?(\d{1,5})\*{0,2})\s*[:.—-]\s*(.+)$`)
)

// longest is the largest size of an item in bytes, and of one to which a line below it is added.
const (
	longestItem = 1500
	longestJoin = 400
)

// heading returns the words of a heading and its depth, "" if line is none.
func heading(line string) (name string, depth int) {
	line = strings.TrimSpace(line)
	for k, form := range []*regexp.Regexp{hashHeading(), boldHeading(), lineHeading()} {
		if f := form.FindStringSubmatch(line); f != nil {
			const deepest = 6
			return strings.Trim(f[1], "*: "), k*deepest + len(line) - len(strings.TrimLeft(line, "#"))
		}
	}
	return "", 0
}

// sectionOf returns the section that a heading means.
func sectionOf(name string) (Section, bool) {
	file := !strings.Contains(name, " ") && (dotted().MatchString(name) || pathForm().MatchString(name))
	for _, s := range sectionNames {
		if found, _ := regexp.MatchString(`(?i)\b(?:`+s.words+`)`, name); found && !file {
			return s.of, true
		}
	}
	return Notes, false
}

// parse takes the answer of a model apart. Whatever form it has, none of its text is lost but empty lines and marks.
func parse(answer string) []entry {
	var out []entry
	at, open, fenced := Notes, false, false // open: the next line may continue the last entry
	own, level := "", 0                     // own stands before each item below a heading that means no section; level is the depth of the last heading
	begin := func(text string) {
		e := entry{section: at, text: own + text}
		if f := change().FindStringSubmatch(text); f != nil {
			e.op, e.text = opChanged, f[3]
			if strings.EqualFold(f[1], "gone") {
				e.op = opGone
			}
			e.number, _ = strconv.Atoi(f[2]) // digits
		}
		out = append(out, e)
		open = true
	}
	join := func(sep, text string) bool {
		if !open || len(out) == 0 || change().MatchString(text) || len(out[len(out)-1].text)+len(text) > longestJoin {
			return false
		}
		out[len(out)-1].text += sep + text
		return true
	}
	for line := range strings.SplitSeq(answer, "\n") {
		line = strings.TrimRight(line, " \t\r")
		text := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(text, "```"):
			fenced = !fenced
			continue
		case text == "" || strings.Trim(text, "-=_*") == "":
			open = open && fenced
			continue
		case fenced:
			if !join(" ⏎ ", text) {
				begin(text)
			}
			continue
		}
		if name, depth := heading(line); name != "" {
			switch s, ok := sectionOf(name); {
			case ok:
				at, own, level, open = s, "", depth, false
			case level > 0 && depth > level && own == "": // of a part of the section
				begin(name + ":")
			default:
				at, own, level, open = Notes, name+": ", depth, false
			}
			continue
		}
		if f := bullet().FindStringSubmatch(line); f != nil {
			if f[1] == "" || !join("; ", f[2]) {
				begin(f[2])
			}
			continue
		}
		if !join(" ", text) {
			begin(text)
		}
	}
	kept := out[:0]
	for _, e := range out {
		e.text = harmless(e.text)
		if strings.Trim(e.text, "-*:. ") != "" && !strings.EqualFold(strings.Trim(e.text, "-*:.() "), "none") {
			kept = append(kept, e)
		}
	}
	return kept
}

var (
	spaces = plain.Pattern(`\s+`)
	// speaks matches text that looks like the beginning of a turn.
	speaks = plain.Pattern("(?i)^[\\s#>*_`\\[(-]*(user|human|person|assistant|system|developer|tool|ai|model)[\\s*_`\\])]*[:：]\\s*")
	// tags matches tags that agents and vendors give a meaning.
	tags = plain.Pattern(`(?i)<(/?\s*[\x{2060}]?\s*(?:system|user|human|assistant|developer|said|left_out|environment|task|feedback|command|function|invoke|tool|antml|project|instruction|local-|im_|\|)[^<>]{0,80}>)`)
	// written matches the marks of condensations.
	written = plain.Pattern(`\[(Written by provider|Extract of the conversation|Digest of the conversation|Condensed |Sliding window|… )`)
)

// harmless returns text on one line, in which nothing is a heading, a turn, a tag or a mark of somebody else.
func harmless(text string) string {
	text = strings.TrimSpace(spaces().ReplaceAllString(strings.ToValidUTF8(text, ""), " "))
	text = strings.TrimLeft(text, "#> ")
	if f := speaks().FindStringSubmatchIndex(text); f != nil {
		if text[f[1]:] == "" {
			return ""
		}
		text = "(reported: " + strings.ToLower(text[f[2]:f[3]]) + ") " + text[f[1]:]
	}
	text = tags().ReplaceAllString(text, "‹$1")
	text = written().ReplaceAllString(text, "($1")
	if len(text) > longestItem {
		text = text[:plain.Back(text, longestItem)] + "…"
	}
	return text
}
