package lab

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/transcript"
)

// evidencePrefix before a path marks its files as conversations with gold evidence.
const evidencePrefix = "evidence:"

// A goldFile is a conversation with questions, each with the messages that answer it. docs/comparing.md documents it.
type goldFile struct {
	ID        string        `json:"id"`
	Messages  []GoldMessage `json:"messages"`
	Questions []struct {
		ID       string   `json:"id"`
		Ability  string   `json:"ability"`
		Evidence []string `json:"evidence,omitempty"`
		Lines    []string `json:"lines,omitempty"` // instead of messages: lines that must be left
	} `json:"questions"`
}

// A GoldMessage is a message of a conversation with gold evidence.
type GoldMessage struct {
	ID       string     `json:"id"`
	Role     core.Role  `json:"role"`
	Time     string     `json:"time,omitempty"`
	Session  string     `json:"session,omitempty"` // not measured
	Text     string     `json:"text"`
	Calls    []GoldCall `json:"calls,omitempty"`     // of an assistant's message
	ResultOf string     `json:"result_of,omitempty"` // the text is the result of this call
}

// A GoldCall is a call of a tool.
type GoldCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"`
}

// Message returns m as condense reads it, not yet measured.
func (m *GoldMessage) Message() core.Message {
	text := m.Text
	if m.Time != "" {
		text = "[" + m.Time + "] " + text
	}
	parts := []core.Part{core.Text(text)}
	if m.ResultOf != "" {
		parts = []core.Part{core.ToolResult{CallID: m.ResultOf, Content: parts}}
	} else if strings.TrimSpace(text) == "" {
		parts = nil
	}
	parts = append(parts, plain.Each(m.Calls, func(c GoldCall) core.Part { return core.ToolCall{ID: c.ID, Name: c.Name, Args: c.Args} })...)
	return core.Message{ID: m.ID, Role: m.Role, Parts: parts}
}

// A gold is a goldFile prepared for measuring.
type gold struct {
	session   *score.Session
	hash      string
	questions []goldQuestion
}

type goldQuestion struct {
	id, ability string
	turns       []goldTurn
}

// A goldTurn is a message or, without 3-grams, a line.
type goldTurn struct {
	role  core.Role
	grams []string
	line  string
}

// gold reads a conversation with gold evidence. Its messages are measured with c.
func (it Item) gold(c core.Counter) (*gold, error) {
	f, err := it.Open()
	if err != nil {
		return nil, err
	}
	data, err := transcript.ReadAll(f, maxSession)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	var in goldFile
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, fmt.Errorf("no conversation with evidence: %w", err)
	}
	if len(in.Messages) == 0 || len(in.Questions) == 0 {
		return nil, errors.New(`no conversation with evidence: it needs "messages" and "questions"`)
	}
	out := &gold{hash: hashOf(data), session: &score.Session{}}
	out.session.ID, out.session.Source = called(strings.TrimPrefix(it.Name, evidencePrefix))
	out.session.ID = cmp.Or(in.ID, out.session.ID)
	turns := map[string]goldTurn{}
	for i, m := range in.Messages {
		switch _, twice := turns[m.ID]; {
		case m.Role != core.RoleUser && m.Role != core.RoleAssistant:
			return nil, fmt.Errorf("message %d: role %q, want user or assistant", i+1, m.Role)
		case m.ID == "" || twice:
			return nil, fmt.Errorf("message %d: id %q is empty or not unique", i+1, m.ID)
		case strings.TrimSpace(m.Text) == "" && len(m.Calls) == 0 && m.ResultOf == "":
			return nil, fmt.Errorf("message %q has no text", m.ID)
		}
		turns[m.ID] = goldTurn{role: m.Role, grams: evidenceGrams(m.Text, false)}
		out.session.Messages = append(out.session.Messages, m.Message())
	}
	asked := map[string]bool{}
	for i, q := range in.Questions {
		switch {
		case q.ID == "" || asked[q.ID]:
			return nil, fmt.Errorf("question %d: id %q is empty or not unique", i+1, q.ID)
		case len(q.Evidence)+len(q.Lines) == 0:
			return nil, fmt.Errorf("question %q has no evidence", q.ID)
		}
		asked[q.ID] = true
		g := goldQuestion{id: q.ID, ability: q.Ability}
		for _, id := range q.Evidence {
			turn, ok := turns[id]
			if !ok {
				return nil, fmt.Errorf("question %q: there is no message %q", q.ID, id)
			}
			g.turns = append(g.turns, turn)
		}
		g.turns = append(g.turns, plain.Each(q.Lines, func(line string) goldTurn { return goldTurn{role: core.RoleTool, line: folded(line)} })...)
		out.questions = append(out.questions, g)
	}
	core.Measure(c, out.session.Messages)
	return out, nil
}

// folded returns text with a space for each run of white space, and one at either end.
func folded(text string) string { return " " + strings.Join(strings.Fields(text), " ") + " " }

// evidenceGrams returns the runs of three words of text, made of letters and digits, in lower case. A shorter text is
// one run. With short, runs of two words and of one are returned, too.
func evidenceGrams(text string, short bool) []string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	var out []string
	for n := 3; n > 0; n-- {
		if n > len(words) || n < 3 && !short && len(out) > 0 {
			continue
		}
		for i := range len(words) - n + 1 {
			out = append(out, strings.Join(words[i:i+n], " "))
		}
	}
	return out
}
