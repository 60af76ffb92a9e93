package dialog

import (
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
)

// Programs also write plain texts as the user: the time, the state of a task. One alone cannot be told from a person's words, and a
// person, too, types "continue" again and again. But a person does not begin message after message with the time, or with the name
// of a status, in the same words but for the numbers.
const mostAlike = 2 // texts of one form that a person may have written

var (
	// statusForm matches the first line of a text with a time to the second, which nobody types, or a label for a status.
	statusForm = plain.Pattern(`\b\d{1,2}:\d{2}:\d{2}\b|^\W*(?i:(?:current|local|system|session|context|token|task|agent|server|build) ){0,3}` +
		`(?i:status|time|date|reminder|notice|heartbeat|progress|usage|budget|notification|auto(?:mat(?:ed|ic))?(?:[- ][\w-]+)?|cron|` +
		`monitor|watchdog|health(?:[- ]check)?|clock)\b[^.,;\n]{0,30}[:\]]`)
	changingForm = plain.Pattern(`\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|June?|July?|Aug|Sept?|Oct|Nov|Dec)[a-z]*\b|` +
		`\b[0-9a-fA-F-]*\d[0-9a-fA-F-]*\b`)
)

// statusOf returns the form of a text with the look of a status: its first and last line without what changes; "" for any other.
func statusOf(text string) string {
	const look = 200 // bytes of a line
	text = strings.TrimSpace(text)
	first, _, _ := strings.Cut(text, "\n")
	if first = first[:min(len(first), look)]; !strings.ContainsAny(first, ":]") || !statusForm().MatchString(first) {
		return ""
	}
	last := text[strings.LastIndexByte(text, '\n')+1:]
	return changingForm().ReplaceAllString(first+"\n"+last[:min(len(last), look)], "0")
}

// alike counts the user's texts of messages by their forms.
func alike(messages []core.Message) map[string]int {
	n := map[string]int{}
	for i := range messages {
		for _, p := range messages[i].Parts {
			if t, ok := p.(core.Text); ok && messages[i].Role == core.RoleUser {
				n[statusOf(string(t))]++
			}
		}
	}
	delete(n, "")
	return n
}

// Segments returns the authors in a text of a user; nil for any other part. Segments are coarser than passages: a
// tool's text is one segment, whatever files it shows.
func (p *Part) Segments() []Segment {
	if p.of.user == nil {
		return nil
	}
	s := p.of.user.segments[p.at]
	if p.again && len(s) == 1 && s[0].Kind == KindUser {
		return []Segment{{Kind: KindInjected, Text: s[0].Text}}
	}
	return s
}
