// Package author tells who wrote what in a user's message. Agents' programs put results of
// tools, reminders and the state of the surroundings there, beside what the person said;
// no format says which is which.
package author

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/condensehq/condense/core"
)

// By says who wrote a segment.
type By uint8

// The authors.
const (
	Person       By = iota
	Standing        // a file: instructions that stand for every conversation, as in AGENTS.md
	Program         // the agent's program: reminders, commands, notices
	Surroundings    // the same, about the surroundings as they were
	Header          // the same, announcing the result of a tool that was called in a text
	Tool            // a tool, in its answer
)

// A Segment is a run of a user's text.
type Segment struct {
	By           By
	Text         string
	Tool, Target string // of a Header
}

// A Reader takes the user's messages of a conversation apart, in order. The zero value is
// ready.
type Reader struct {
	aider aiderReader
}

// Message returns the segments of every text in m, the next message of the user's, by part.
// Put together, those of a part are its text.
func (r *Reader) Message(m *core.Message) [][]Segment {
	r.aider.ran = false
	out := make([][]Segment, len(m.Parts))
	var answers answer // what follows a header, but for what is marked, is its text
	result := false    // a result in a part of its own stands before
	command := false   // the mark of a command stands right before
	skills := 0        // that were launched, and whose text did not come yet
	for i, p := range m.Parts {
		if r, ok := p.(core.ToolResult); ok {
			result = true
			if launches(r) {
				skills++
			}
		}
		t, ok := p.(core.Text)
		if !ok {
			continue
		}
		text := string(t)
		if answers.tool == "" && Inserted(text) {
			out[i] = []Segment{{By: Program, Text: text}}
			continue
		}
		if r.aider.wrote(text) && answers.tool == "" {
			out[i] = []Segment{{By: Program, Text: text}}
			continue
		}
		inResult := answers.tool != ""
		out[i] = split(text, &answers)
		if skills > 0 && !inResult && slices.ContainsFunc(out[i], func(s Segment) bool { return s.By == Person }) {
			skills--
			out[i], answers = []Segment{{By: Program, Text: text}}, answer{}
			continue
		}
		for k := range out[i] {
			s := &out[i][k]
			switch {
			case s.By != Person:
			case result && isJSON(s.Text): // a second result, without a part of its own
				s.By = Tool
			case command && len(out[i]) == 1: // the text of a command that the person named
				s.By = Program
			}
		}
		command = strings.HasPrefix(strings.TrimSpace(text), "<command-message>")
	}
	return out
}

func isJSON(s string) bool {
	s = strings.TrimSpace(s)
	return s != "" && (s[0] == '{' || s[0] == '[') && json.Valid([]byte(s))
}
