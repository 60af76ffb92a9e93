// Package aider reads chats of aider.
//
// Aider appends its whole output to .aider.chat.history.md, in Markdown:
//
//	# aider chat started at 2026-05-01 10:00:00
//
//	> Aider v0.86.1                        aider's own messages: not sent
//
//	#### The total of an order is wrong.   each line of the user, a command too
//
//	Let me look.                           the answer, as it is
//
// With --restore-chat-history aider sends the user's lines and the answers again. It takes the
// whole file, which can hold many chats. Within fenced code every line except the user's
// belongs to the answer. This follows aider/io.py and aider/utils.py, which are public.
package aider

import (
	"bytes"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/codec"
)

// Codec is the format.
var Codec = codec.Codec{
	Name:   "aider",
	Doc:    "aider chat: .aider.chat.history.md",
	Tool:   "aider",
	Detect: detect,
	Read:   read,
}

const (
	started = "# aider chat started at "
	user    = "####"
	own     = ">"
	blank   = "<blank>" // the user entered nothing
	fence   = "```"
)

// detect looks for the start of a chat among the first lines: a file may be cut at the front.
func detect(data []byte) bool {
	at := rawjson.SkipSpace(data, 0)
	if rawjson.IsObject(data[at:]) || rawjson.IsArray(data[at:]) {
		return false
	}
	seen := 0
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(line, []byte(started)) {
			return true
		}
		if seen++; seen > 200 {
			break
		}
	}
	return false
}

// A reader collects the lines of a message.
type reader struct {
	file *codec.File
	n    int
	time time.Time
	role core.Role
	text []string
}

func read(data []byte, f *codec.File) error {
	r := reader{file: f}
	fenced := false
	for raw := range strings.Lines(string(data)) {
		line := strings.TrimRight(raw, "\r\n")
		said, isUser := strings.CutPrefix(line, user)
		isUser = isUser && (said == "" || said[0] == ' ')
		var err error
		switch {
		case isUser:
			fenced = false
			if said = strings.TrimSpace(said); said != blank {
				err = r.add(core.RoleUser, said)
			}
		case strings.HasPrefix(line, started):
			fenced = false
			err = r.end()
			if t, bad := time.Parse(time.DateTime, strings.TrimSpace(line[len(started):])); bad == nil {
				r.time = t
			}
		case !fenced && (line == own || strings.HasPrefix(line, own+" ")):
			err = r.end()
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
	f.Settle(data, nil, "")
	return nil
}

// add adds a line of role.
func (r *reader) add(role core.Role, line string) error {
	if role != r.role {
		if err := r.end(); err != nil || strings.TrimSpace(line) == "" {
			return err
		}
		r.role = role
	}
	r.text = append(r.text, line)
	return nil
}

// end ends the message.
func (r *reader) end() error {
	text := strings.TrimSpace(strings.Join(r.text, "\n"))
	role := r.role
	r.role, r.text = "", nil
	if text == "" {
		return nil
	}
	r.n++
	return r.file.Add(core.Message{ID: codec.IDs{}.Next(r.n, ""), Role: role, Time: r.time, Parts: []core.Part{core.Text(text)}})
}
