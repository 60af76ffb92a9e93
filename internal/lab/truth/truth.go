// Package truth measures whether a view is true, whatever provider made it: from a history and a view it counts the words of the user
// that are gone, passages under a wrong author, lines of files that are shown only as they were, and identifiers of things that were
// started or created and whose end nobody saw. It shares facts with the strategies (the names of parameters, the tags of agents), and
// no judgement: no provider imports it.
package truth

import (
	"cmp"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/dialog"
	"github.com/condensehq/condense/internal/epoch"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/toolcall"
)

// A Report has what a view says that is not so, and what it no longer says.
type Report struct {
	epoch.Truth

	Examples []string `json:"-"` // of each, a few: text of the conversation
}

// maxExamples is the number of examples of each kind.
const maxExamples = 3

// A History is what views of it are held against. It is safe for concurrent use.
type History struct {
	said     []string        // the sentences of the user
	users    *text           // the words of the user
	others   *text           // of everybody else
	programs map[string]bool // texts of the user's role that programs wrote, and how they begin
	files    fileLines
	outcomes []string
}

// Read reads a history. Typed says whether the user typed a part of a message of theirs, where the
// source records it; nil, and parts that are typed, are read by the elements that programs use.
func Read(messages []core.Message, typed func(message, part int) bool) *History {
	h := &History{users: newText(nil), others: newText(nil), programs: map[string]bool{}}
	asks, ticks := map[string]bool{}, map[string]int{}
	for i := range messages {
		for _, p := range messages[i].Parts {
			ticks[clock(p)]++
		}
	}
	for i := range messages {
		m := &messages[i]
		for j, p := range m.Parts {
			own := (typed == nil || typed(i, j)) && !m.Program && (clock(p) == "" || ticks[clock(p)] < mostAlike)
			if t, ok := p.(core.Text); ok && !own && m.Role == core.RoleUser {
				h.programs[string(t)], h.programs[firstLine(string(t))] = true, true
			}
			said, others := divide(m, p, own)
			switch p := p.(type) {
			case core.ToolCall:
				name := strings.ToLower(p.Name)
				asks[p.ID] = strings.Contains(name, "ask") && !strings.Contains(name, "task") || strings.Contains(name, "question") || strings.Contains(name, "input")
			case core.ToolResult:
				if asks[p.CallID] { // the answer is the user's
					h.users.add(others...)
				}
			default:
			}
			h.users.add(said...)
			h.others.add(others...)
			for _, s := range said {
				h.said = slices.AppendSeq(h.said, sentences(dialog.Unwrap(s)))
			}
		}
	}
	h.files, h.outcomes = readFiles(messages), readOutcomes(messages)
	return h
}

// mostAlike is how many texts with a time or a date that are alike but for the numbers are nobody's who types.
const mostAlike = 3

var stampForm, numberForms = plain.Pattern(`^\W*(?:\S+ ){0,8}(?:\d{1,2}:\d\d|\d{4}-\d\d-\d\d)`), plain.Pattern(`\d+`)

// clock returns a text with a time near its beginning without its numbers; empty for any other.
func clock(p core.Part) string {
	t, ok := p.(core.Text)
	if !ok || !stampForm().MatchString(string(t)) {
		return ""
	}
	return numberForms().ReplaceAllString(string(t), "")
}

// Measure compares a view with the history that it stands for. The cost is linear in both.
func (h *History) Measure(view []core.Message) Report {
	m := measure{shown: newText(view)}
	for _, s := range h.said {
		m.Sentences++
		if !m.shown.has(s) {
			m.SentencesGone++
			m.example("gone", s)
		}
	}
	for i := range view {
		for line := range h.claimed(&view[i]) {
			m.Claims++
			if !h.users.has(line) && h.others.has(line) {
				m.WrongAuthor++
				m.example("wrong author", line)
			}
		}
	}
	m.files(&h.files, view)
	for _, id := range h.outcomes {
		m.Outcomes++
		if !m.shown.has(id) {
			m.OutcomesLost++
			m.example("outcome lost", id)
		}
	}
	return m.Report
}

type measure struct {
	Report
	shown *text
	found map[string]int // examples by kind
}

func (m *measure) example(kind, what string) {
	if m.found == nil {
		m.found = map[string]int{}
	}
	if m.found[kind]++; m.found[kind] <= maxExamples {
		const long = 120
		if len(what) > long {
			what = strings.ToValidUTF8(what[:long], "") + "…"
		}
		m.Examples = append(m.Examples, kind+": "+what)
	}
}

// creates matches the names of tools, and commands, that start or create something whose result cannot be had again.
var (
	creates = plain.Pattern(`(?i)(?:^|[_.\-/ ])(?:create|start|launch|spawn|open|send|pay|post|upload|publish|deploy|submit|schedule|provision|book|task|agent|charge)`)
	command = plain.Pattern(`(?i)\bgit commit\b|\bgh (?:issue|pr|release) create\b|\bnpm publish\b|\bkubectl (?:create|apply)\b|\bdocker run\b|&\s*$|\bnohup\b|\bcurl\b[^|]*-X ?POST`)
	aside   = plain.Pattern(`"run_in_background":\s*true`)
	// identifier matches a name with a digit that a result gives with a label, as a key, as git says a commit, or the number of an issue:
	// "#D6002F" and "[line 287]" name nothing that was made. A chunk is a piece of output.
	identifier = plain.Pattern(`(?i)(\bchunk )?(?:(?:\b(?:agent|task|job|run|shell|session|process|issue|ticket|order|payment|deployment|server|bash)?_?-?(?:id|key|number|ref|reference|pid)\b["']?\s*[:=#]?\s*["']?|\bsession(?: id)? |\bwith id:? ` +
		`|https?://\S+/)([A-Za-z0-9][A-Za-z0-9_.-]{2,63})|\[[\w/.-]+ (?:\(root-commit\) )?([0-9a-f]{7,40})\]|#([1-9]\d{2,})\b)`)
	// agent matches tools whose results are reports: the issues in them were read about.
	agent = plain.Pattern(`(?i)(?:^|[_.\-/ ])(?:task|agent)`)
	ended = plain.Pattern(`(?i)\b(?:completed|finished|exited|done|closed|killed|stopped|merged|deleted|cancell?ed|terminated|failed)\b`)
)

// readOutcomes returns the identifiers in results of calls that create something, whose end is not seen.
func readOutcomes(history []core.Message) (all []string) {
	open := map[string]bool{}
	var order []string
	calls := map[string]core.ToolCall{}
	for i := range history {
		for _, p := range history[i].Parts {
			if c, ok := p.(core.ToolCall); ok {
				calls[c.ID] = c
				continue
			}
			made, reports := false, false
			if r, ok := p.(core.ToolResult); ok {
				c := calls[r.CallID]
				made = !r.IsError && (creates().MatchString(c.Name) && !strings.Contains(strings.ToLower(c.Name), "read") || makes([]byte(c.Args)))
				reports = agent().MatchString(c.Name)
			}
			for s := range texts(p) {
				for id := range open {
					if at := strings.Index(s, id); at >= 0 && ended().MatchString(near(s, at)) {
						delete(open, id)
					}
				}
				if !made {
					continue
				}
				const most = 3 // of a result
				for _, f := range identifier().FindAllStringSubmatch(s, most) {
					id := strings.TrimRight(f[2]+f[3]+f[4], ".-")
					if f[1] == "" && (!reports || f[4] == "") && strings.ContainsAny(id, "0123456789") && !open[id] {
						open[id] = true
						order = append(order, id)
					}
				}
			}
		}
	}
	for _, id := range order {
		if !open[id] {
			continue
		}
		open[id] = false // an identifier counts once
		all = append(all, id)
	}
	return all
}

// makes reports whether the arguments of a call have a command that starts or creates something: a file's text has none.
func makes(args []byte) bool {
	for v := range toolcall.Values(args, toolcall.Command) {
		if command().MatchString(cmp.Or(rawjson.Text(v), string(v))) {
			return true
		}
	}
	return aside().Match(args) || !rawjson.IsObject(args) && command().Match(args)
}

// near returns the text within 100 bytes of a place.
func near(s string, at int) string { return s[max(0, at-100):min(len(s), at+100)] }
