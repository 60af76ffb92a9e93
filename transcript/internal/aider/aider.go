// Package aider reads chats of aider.
//
// Aider appends its whole output to .aider.chat.history.md, in Markdown:
//
//	# aider chat started at 2026-05-01 10:00:00
//
//	> Aider v0.86.1                        aider's own messages; a line, or all until one ends in two spaces
//
//	#### The total of an order is wrong.   each line of the user, a command too
//
//	Let me look.                           the answer, as it is
//
// Aider's own messages are context in the user's role: its questions with the answers too, which it records as the user's
// if one answer is for all, and the plan of the architect, which it records again as the editor's task. With
// --restore-chat-history aider takes the whole file, which can hold many chats. Within fenced code every line except the
// user's, and aider's that end so, belongs to the answer. This follows aider/io.py and aider/utils.py, which are public.
package aider

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/internal/toolcall"
)

// Codec is the format.
var Codec = codec.Codec{Name: "aider", Doc: "aider chat: .aider.chat.history.md", Tool: "aider", Detect: detect, Read: read}

const (
	started = "# aider chat started at "
	user    = "####"
	own     = "> "
	blank   = "<blank>" // the user entered nothing
	fence   = "```"
	ends    = "  "           // of aider's own lines and the user's
	choice  = "? (Y)es/(N)o" // in a question
)

// detect looks for the start of a chat near the beginning: a file may be cut at the front.
func detect(data []byte) bool {
	const look = 1 << 14
	at := rawjson.SkipSpace(data, 0)
	return !rawjson.IsObject(data[at:]) && !rawjson.IsArray(data[at:]) && bytes.Contains(append([]byte("\n"), data[:min(len(data), look)]...), []byte("\n"+started))
}

// A reader collects the lines of a message. Aider's own lines have the role of a tool until they are one.
type reader struct {
	file *codec.File
	n    int
	time time.Time
	role core.Role
	text []string
	last core.Role // of the last message but aider's own
	said string    // its text
}

func read(data []byte, f *codec.File) error {
	r := reader{file: f}
	fenced, to := false, 0 // where a message of aider's own ends
	lines := strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
	marks := strings.Contains(string(data), ends+"\n"+own) // an editor may have removed the ends
	for i, line := range lines {
		said, isUser := strings.CutPrefix(line+" ", user+" ")
		ended := strings.HasSuffix(line, ends)
		if rest, marked := strings.CutPrefix(line+" ", own); marked && i >= to && (!fenced || ended && marks) { // a fence may lack its end
			if end := ownEnd(lines, i, marks, i > 0 && (i == to || strings.HasPrefix(lines[i-1], user))); end > i {
				to, fenced, line = end, false, rest
			}
		}
		var err error
		switch {
		case i < to:
			err = r.add(core.RoleTool, strings.TrimRight(line, " "))
		case isUser:
			fenced = false
			switch said = strings.TrimRight(said, " "); {
			case strings.Contains(said, choice) && strings.Contains(said, "]: "):
				err = r.add(core.RoleTool, said)
			case said != blank:
				err = r.add(core.RoleUser, said)
			}
		case strings.HasPrefix(line, started):
			fenced = false
			err = r.end()
			r.last = ""
			if t, bad := time.Parse(time.DateTime, strings.TrimSpace(line[len(started):])); bad == nil {
				r.time = t
			}
		default:
			if strings.HasPrefix(line, fence) {
				fenced = !fenced
			}
			err = r.add(core.RoleAssistant, line)
		}
		if err != nil {
			return err
		}
	}
	if err := r.end(); err != nil {
		return err
	}
	f.Settle(data, nil, nil)
	return nil
}

// ownEnd returns where the message of aider's own ends that begins with lines[i]: it marks the first line and ends the last. Lines
// between them may end so, too, as those of a command do before it is run: the last is followed by an empty line, or a mark. Without
// such an end before an empty line or the next mark it is a quote in an answer, and ownEnd returns i, unless it is sure: no answer
// begins in the line after
// aider's own or the user's.
func ownEnd(lines []string, i int, marks, sure bool) int {
	marked := func(at int) bool { // the user's lines stand below an empty one
		return strings.HasPrefix(lines[at], own) || strings.HasPrefix(lines[at], user) && (lines[at-1] == "" || strings.HasPrefix(lines[at-1], user))
	}
	for k, line := range lines[i:] {
		next := i + k + 1
		switch {
		case k > 0 && !sure && (line == "" || marked(next-1)):
			return i
		case k > 0 && marked(next-1):
			return next - 1
		case !marks || line+" " == own || strings.HasSuffix(line, ends) &&
			(next == len(lines) || lines[next] == "" || marked(next) || strings.HasPrefix(lines[next], started)):
			return next
		}
	}
	return i
}

// add adds a line of role.
func (r *reader) add(role core.Role, line string) error {
	empty := strings.TrimSpace(line) == ""
	if role == core.RoleAssistant && empty && r.role == core.RoleTool {
		return nil // it may go on
	}
	if role != r.role {
		if err := r.end(); err != nil || empty {
			return err
		}
		r.role = role
	}
	r.text = append(r.text, line)
	return nil
}

// end ends the message.
func (r *reader) end() error {
	m := core.Message{Role: r.role, Time: r.time}
	text := strings.TrimSpace(strings.Join(r.text, "\n"))
	r.role, r.text = "", nil
	name, rest, ok := strings.Cut(text, ">")
	if ok && m.Role == core.RoleAssistant && strings.HasPrefix(name, "<think") && !strings.ContainsAny(name, " \n") { // aider's element, or a model's
		rest, text, _ = strings.Cut(rest, "</"+name[1:]+">")
		text = strings.TrimSpace(text)
		m.Parts = append(m.Parts, core.Reasoning{Text: strings.TrimSpace(rest)})
	}
	if text == "" && m.Parts == nil {
		return nil
	}
	command, words, _ := strings.Cut(r.said, " ")
	switch {
	case m.Role != core.RoleUser:
	case r.last == core.RoleUser && strings.HasPrefix(command, "/") && strings.TrimSpace(words) == text:
		return nil // aider records the words of /ask and the like again
	case r.last == core.RoleAssistant && strings.Contains(text, " ") && slices.Equal(strings.Fields(text), strings.Fields(r.said)):
		m.Role = core.RoleTool // the plan of the architect
	}
	if m.Role == core.RoleTool { // the element says in every format whose it is
		m.Role, m.Program, text = core.RoleUser, true, toolcall.NoticeOpen+"\n"+text+"\n"+toolcall.NoticeClose
	} else {
		r.last, r.said = m.Role, text
	}
	if text != "" {
		m.Parts = append(m.Parts, core.Text(text))
	}
	r.n++
	m.ID = codec.IDs{}.Next(r.n, "")
	return r.file.Add(m)
}
