package dialog

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
)

// An insertion is a text without a tag of its own that a program puts among the user's words.
type insertion struct {
	Begins string
	Then   string // text after it on the same line or the next, or anywhere if Begins has lines, if Begins alone is too common
	Ends   string // its last words, after which the user's text begins. A line break: it ends with its line.
	Inside bool   // it can begin at any line, and not only the text
}

// insertions are all that are known. Each is fixed by the program, and begins as no user writes.
var insertions = func() (all []insertion) {
	if err := json.Unmarshal(insertionsJSON, &all); err != nil {
		panic("dialog: insertions.json: " + err.Error()) // embedded and tested
	}
	return all
}()

//go:embed insertions.json
var insertionsJSON []byte

// insertionLine is the most bytes of a line that are read to recognize it.
const insertionLine = 1 << 12

// SplitInsertions divides a text without elements of programs into the user's words and what programs put among them.
func SplitInsertions(text string) []Segment { return appendSaid(nil, text) }

// appendSaid appends text of the user that may have insertions of programs in it. The cost is linear.
func appendSaid(out []Segment, text string) []Segment {
	none := map[string]bool{} // ends that the rest of the text does not have
	from := 0
	add := func(k Kind, end int) {
		if k == KindUser && strings.TrimSpace(text[from:end]) == "" && end < len(text) {
			return // it goes to the insertion that follows
		}
		out = append(out, Segment{Kind: k, Text: text[from:end]})
		from = end
	}
	first := true // nothing but space and insertions was read
	for at := 0; at < len(text); {
		line := len(text)
		if k := strings.IndexByte(text[at:], '\n'); k >= 0 {
			line = at + k + 1
		}
		if end := insertionAt(text, at, first, none); end > 0 {
			add(KindUser, at)
			if strings.TrimSpace(text[end:]) == "" {
				end = len(text)
			}
			add(KindInjected, end)
			at = end
			continue
		}
		first = first && strings.TrimSpace(text[at:line]) == ""
		at = line
	}
	if from < len(text) || len(text) == 0 {
		add(KindUser, len(text))
	}
	return out
}

// insertionAt returns where the insertion ends that the line at text[at:] begins; 0 if none does.
func insertionAt(text string, at int, first bool, none map[string]bool) int {
	rest := text[at:]
	if first {
		rest = strings.TrimLeft(rest, " \t")
	}
	for i := range insertions {
		n := &insertions[i]
		if !first && !n.Inside || !strings.HasPrefix(rest, n.Begins) || none[n.Ends] || n.Then != "" && !n.goesOn(rest) {
			continue
		}
		begin := len(text) - len(rest) + len(n.Begins)
		var k int
		switch {
		case n.Ends == "\n":
			if k = strings.IndexByte(text[begin:], '\n'); k < 0 {
				return len(text)
			}
		case n.Inside: // its content can include the end, too
			k = strings.LastIndex(text[begin:], n.Ends)
		default:
			k = strings.Index(text[begin:], n.Ends)
		}
		if k >= 0 {
			return begin + k + len(n.Ends)
		}
		none[n.Ends] = true
	}
	return 0
}

// goesOn reports whether then follows in the line that rest begins with.
func (n *insertion) goesOn(rest string) bool {
	head := rest[:min(len(rest), insertionLine)]
	k := strings.Index(head, n.Then)
	line := strings.IndexByte(head, '\n')
	return k >= 0 && (line < 0 || k < line || strings.Contains(n.Begins, "\n"))
}

// Claude Code's form for the user's answers to questions of the model: each question, the choice, the preview that
// the model had written for it, and the user's notes.
const (
	answersEnd   = ". You can now continue with " // the user's answers, these answers
	previewMark  = " selected preview:\n"
	notesMark    = " user notes: "
	clarifyMark  = "The user wants to clarify these questions."
	answerMark   = "\n  Answer: "
	feedbackMark = "the user said:"
)

// answerBegins are how programs begin the user's answer, in forms of their own or before the user's text, and unanswered how they say that
// there is none: Claude Code and OpenCode; Qwen Code; Copilot CLI; Gemini CLI.
var (
	answerBegins = plain.Pattern(`^\s*(?:(?:User has answered your questions|Your questions have been answered|The user answered[\w ]*):\s|User has provided the following answers:\s+|User (?:selected|responded): )`)
	unanswered   = plain.Pattern(`^\s*(?:User (?:dismissed|declined|skipped|cancel|submitted without)|The user did not answer|Plan rejected\. No feedback)`)
)

// maxAnswers is how many answers are split. Claude Code asks four questions at once.
const maxAnswers = 16

// SplitAnswer returns the segments of a result of a tool that asks the user: the user's words, and the program's text
// around them, including repetitions of the model's questions. Joined, they are the text.
func SplitAnswer(text string) []Segment {
	rest := strings.TrimLeft(text, " \t\r\n")
	if begin := answerBegins().FindString(text); begin != "" {
		return splitAnswers(text, len(begin))
	}
	switch {
	case unanswered().MatchString(text):
		return []Segment{{Kind: KindInjected, Text: text}}
	case strings.HasPrefix(rest, told[0].begins):
		at := strings.LastIndex(text, feedbackMark)
		if at < 0 {
			return []Segment{{Kind: KindInjected, Text: text}}
		}
		at += len(feedbackMark)
		return append([]Segment{{Kind: KindInjected, Text: text[:at]}}, splitClarify(text[at:])...)
	}
	return splitClarify(text)
}

// splitAnswers splits answers that begin at text[at:].
func splitAnswers(text string, at int) []Segment {
	var out []Segment
	add := func(k Kind, end int) {
		if end > at {
			out = append(out, Segment{Kind: k, Text: text[at:end]})
			at = end
		}
	}
	last := strings.LastIndex(text, answersEnd)
	if last < 0 {
		return []Segment{{Kind: KindInjected, Text: text[:at]}, {Text: text[at:]}}
	}
	from := at
	at = 0
	for n := 0; n < maxAnswers && from < last; n++ {
		q := strings.Index(text[from:last], `"="`)
		if q < 0 {
			break
		}
		add(KindInjected, from+q+2)
		end, mark := last, ""
		for _, m := range []string{previewMark, notesMark, `, "`} {
			if k := strings.Index(text[at:end], `"`+m); k > 0 {
				end, mark = at+k+1, m
			}
		}
		add(KindUser, end)
		if mark == previewMark {
			end = last
			for _, m := range []string{notesMark, `, "`} {
				if k := strings.Index(text[at:end], m); k > 0 {
					end, mark = at+k, m
				}
			}
			add(KindInjected, end)
		}
		if mark == notesMark {
			add(KindInjected, at+len(notesMark))
			end = last
			if k := strings.Index(text[at:end], `, "`); k > 0 && strings.Contains(text[at+k:last], `"="`) {
				end = at + k
			}
			add(KindUser, end)
		}
		from = at
	}
	if from < last && strings.Contains(text[from:last], `"="`) {
		add(KindUser, last)
	}
	add(KindInjected, len(text))
	return out
}

// splitClarify splits Claude Code's text for a user who wants to discuss questions of the model first. The user wrote
// all that is not in its form.
func splitClarify(text string) []Segment {
	if !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), clarifyMark) {
		return []Segment{{Text: text}}
	}
	var out []Segment
	for text != "" {
		k := strings.Index(text, answerMark)
		if k < 0 {
			return append(out, Segment{Kind: KindInjected, Text: text})
		}
		k += len(answerMark)
		out = append(out, Segment{Kind: KindInjected, Text: text[:k]})
		text = text[k:]
		line := strings.IndexByte(text, '\n')
		if line < 0 {
			line = len(text)
		}
		out = append(out, Segment{Text: text[:line]})
		text = text[line:]
	}
	return out
}

// separators are characters that agents put between the words of a tool's name.
var separators = strings.NewReplacer("_", "", "-", "", ".", "")

// IsRecall reports whether a name means the tool recall of a server named condense. Agents write it as
// mcp__condense__recall or condense_recall.
func IsRecall(name string) bool { return strings.HasSuffix(separators.Replace(name), "condenserecall") }

// Recalls reports whether a call asks for content by its handle or number. What it returns is in the conversation already, so
// neither it nor its result gets a handle of its own.
func Recalls(name, args string) bool {
	programs := strings.Count(args, "tools.mcp__condense__recall(") // Codex' code mode
	return IsRecall(name) || name == "recall" && (strings.Contains(args, `"handle"`) || strings.Contains(args, `"what"`)) ||
		name == "exec" && programs > 0 && programs == strings.Count(args, "tools.")
}

// BriefBytes is the size from which a single line is worth a handle: to ask for it takes a call and an answer.
const BriefBytes = 200

// Brief reports whether recalling a text costs more than it tells.
func Brief(text string) bool {
	text = strings.TrimSpace(text)
	return len(text) < BriefBytes && !strings.Contains(text, "\n")
}

// Fresh returns the indices of the messages of a view, from an index on, that hold the result of a recall: the
// newest, of no more than most bytes together. Content that was recalled should not have been hidden, so the next
// condensation keeps it.
func Fresh(view []core.Message, from, most int) []int {
	calls := map[string]bool{}
	for i := range view {
		for _, p := range view[i].Parts {
			if c, ok := p.(core.ToolCall); ok && Recalls(c.Name, c.Args) {
				calls[c.ID] = true
			}
		}
	}
	var found []int
	for i := len(view) - 1; i >= max(0, from) && len(calls) > 0; i-- {
		size, recalled := 0, false
		for _, p := range view[i].Parts {
			size += core.ContentBytes(p)
			r, ok := p.(core.ToolResult)
			recalled = recalled || ok && calls[r.CallID] && !r.IsError
		}
		if !recalled {
			continue
		}
		if most -= size; most < 0 {
			break
		}
		found = append(found, i)
	}
	slices.Reverse(found)
	return found
}

// ResultNumber returns the place of a result among the results of its message, from 1; 0 if the message has only one, or if the part is
// no result.
func ResultNumber(parts []core.Part, part int) int {
	nth, of := 0, 0
	for k, p := range parts {
		if _, ok := p.(core.ToolResult); ok {
			if of++; k == part {
				nth = of
			}
		}
	}
	if of < 2 {
		return 0
	}
	return nth
}
