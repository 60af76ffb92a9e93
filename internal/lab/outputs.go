package lab

import (
	"encoding/json"
	"io"
	"sync"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/lab/score"
)

// outputs writes sessions and results as lines of JSON, for measuring by another program. bench/measures.md
// documents them.
type outputs struct {
	mu       sync.Mutex
	to       *json.Encoder
	sessions map[string]bool
	err      error
}

func newOutputs(w io.Writer) *outputs {
	if w == nil {
		return nil
	}
	return &outputs{to: json.NewEncoder(w), sessions: map[string]bool{}}
}

type outputMessage struct {
	Role  core.Role    `json:"role"`
	Parts []outputPart `json:"parts"`
}

// An outputPart is a text, the model's reasoning, a call or a result.
type outputPart struct {
	Type   string `json:"type"`
	Typed  bool   `json:"typed,omitempty"` // by the user
	Agent  bool   `json:"agent,omitempty"` // written by the model
	ID     string `json:"id,omitempty"`    // of a call, or of a result's call
	Name   string `json:"name,omitempty"`
	Text   string `json:"text"` // of a call, its arguments
	Failed bool   `json:"failed,omitempty"`
}

func outputMessages(messages []core.Message, of *score.Session) []outputMessage {
	out := make([]outputMessage, 0, len(messages))
	for i := range messages {
		m := outputMessage{Role: messages[i].Role, Parts: []outputPart{}}
		for k, p := range messages[i].Parts {
			var o outputPart
			switch p := p.(type) {
			case core.Text:
				o = outputPart{Type: "text", Text: string(p)}
			case core.ToolCall:
				o = outputPart{Type: "call", ID: p.ID, Name: p.Name, Text: p.Args}
			case core.ToolResult:
				o = outputPart{Type: "result", ID: p.CallID, Text: textOf(p.Content), Failed: p.IsError}
			case core.Reasoning:
				o = outputPart{Type: "thinking", Text: p.Text}
			case core.Image, core.Opaque:
				continue
			}
			if of != nil {
				o.Typed, o.Agent = of.Origin(i, k) == score.OriginUser, of.Origin(i, k) == score.OriginAgent
			}
			m.Parts = append(m.Parts, o)
		}
		out = append(out, m)
	}
	return out
}

// result writes a result, after its session.
func (o *outputs) result(b *trial, strategy string, after int, view []core.Message) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	write := func(v any) {
		if o.err == nil {
			o.err = o.to.Encode(v)
		}
	}
	if !o.sessions[b.name] {
		o.sessions[b.name] = true
		write(struct {
			Record   string          `json:"record"`
			Session  string          `json:"session"`
			System   string          `json:"system,omitempty"`
			Tools    []string        `json:"tools,omitempty"`
			Common   map[string]int  `json:"common"`
			Messages []outputMessage `json:"messages"`
		}{"session", b.name, b.session.System, b.session.Tools, score.Common().CommonIn(b.session), outputMessages(b.session.Messages, b.session)})
	}
	write(struct {
		Record   string          `json:"record"`
		Session  string          `json:"session"`
		Strategy string          `json:"strategy"`
		Budget   string          `json:"budget"`
		Cut      string          `json:"cut"`
		At       int             `json:"at"`
		End      int             `json:"end"`
		Before   int             `json:"before"`
		Room     int             `json:"room"`
		After    int             `json:"after"`
		Messages []outputMessage `json:"messages"`
	}{
		"result", b.name, strategy, b.task.budget, b.task.cut.Name, b.task.cut.At, b.task.cut.End,
		b.task.cut.Tokens, b.task.room, after, outputMessages(view, nil),
	})
}
