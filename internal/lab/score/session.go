package score

import (
	"slices"

	"github.com/condensehq/condense/core"
)

// An Origin says who wrote a part of a message.
type Origin uint8

// The origins. The zero Origin is what the role and the kind of the part suggest, which
// takes all text of a user for typed.
const (
	OriginUnknown  Origin = iota
	OriginHuman           // typed by the person
	OriginAgent           // written by the model: text, reasoning, tool calls
	OriginTool            // what a tool answered
	OriginInjected        // put there by the agent's program: reminders, environment, files
)

// A Session is a recorded conversation, whole: what came after a cut is what the cut is
// judged by. Nothing in it may be modified once it was handed to this package.
type Session struct {
	ID     string
	Source string // where it comes from: sessions of one source are not independent
	Mode   string // what the agent was doing; empty if unknown
	System string // the system prompt, which a strategy neither sees nor pays
	// Tools are the names of the tools and of their parameters, if known; those of the
	// calls in Messages need not be among them.
	Tools    []string
	Messages []core.Message
	// Origins holds the origin of every part of every message; where it is shorter than
	// Messages or their Parts the origin is unknown.
	Origins     [][]Origin
	Compactions []Compaction
}

// A Compaction is one that happened while the session was recorded.
type Compaction struct {
	At       int    // index of the first message after it
	KeptFrom int    // index of the first message that was kept with the summary; At if none was
	Summary  string // what a model wrote; empty if it is not known
}

// origin returns who wrote part p of message m.
func (s *Session) origin(m, p int) Origin {
	if m < len(s.Origins) && p < len(s.Origins[m]) {
		if o := s.Origins[m][p]; o != OriginUnknown {
			return o
		}
	}
	msg := &s.Messages[m]
	return guess(msg.Role, msg.Kind, msg.Parts[p])
}

func guess(role core.Role, kind core.Kind, p core.Part) Origin {
	switch p.(type) {
	case core.ToolResult:
		return OriginTool
	case core.ToolCall, core.Reasoning:
		return OriginAgent
	case core.Text, core.Image, core.Opaque:
	}
	switch {
	case role == core.RoleAssistant:
		return OriginAgent
	case role == core.RoleTool:
		return OriginTool
	case role == core.RoleSystem, kind != core.KindOriginal:
		return OriginInjected
	}
	return OriginHuman
}

// humanText reports whether part p of message m is text that a person typed.
func (s *Session) humanText(m, p int) bool {
	_, ok := s.Messages[m].Parts[p].(core.Text)
	return ok && s.origin(m, p) == OriginHuman
}

// turns returns the indices of the messages of the assistant.
func (s *Session) turns() []int {
	var out []int
	for i := range s.Messages {
		if s.Messages[i].Role == core.RoleAssistant {
			out = append(out, i)
		}
	}
	return out
}

// turnsFrom returns how many of the indices in turns are at or above i.
func turnsFrom(turns []int, i int) int {
	at, _ := slices.BinarySearch(turns, i)
	return len(turns) - at
}

// names returns the names of the tools of s and of their parameters, as far as its calls
// and its definitions show: the agent has them from elsewhere.
func (s *Session) names() []string {
	seen := map[string]bool{}
	for _, t := range s.Tools {
		seen[t] = true
	}
	for i := range s.Messages {
		for _, p := range s.Messages[i].Parts {
			if c, ok := p.(core.ToolCall); ok {
				seen[c.Name] = true
				for _, k := range keys(c.Args) {
					seen[k] = true
				}
			}
		}
	}
	out := make([]string, 0, len(seen))
	for n := range seen {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}
