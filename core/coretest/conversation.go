package coretest

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/plain"
)

// System returns a message of a system, without an ID.
func System(parts ...core.Part) core.Message { return message(core.RoleSystem, parts) }

// User returns a message of a user, without an ID.
func User(parts ...core.Part) core.Message { return message(core.RoleUser, parts) }

// Assistant returns a message of a model, without an ID.
func Assistant(parts ...core.Part) core.Message { return message(core.RoleAssistant, parts) }

// Tool returns a message of a tool, without an ID.
func Tool(parts ...core.Part) core.Message { return message(core.RoleTool, parts) }

func message(role core.Role, parts []core.Part) core.Message {
	return core.Message{Role: role, Parts: parts}
}

// Protected returns m with Protected set.
func Protected(m core.Message) core.Message {
	m.Protected = true
	return m
}

// Call returns a call of a tool named read with plausible arguments.
func Call(id string) core.ToolCall {
	return core.ToolCall{ID: id, Name: "read", Args: `{"path": "src/` + id + `.go"}`}
}

// Result returns the result of the call, with one text part for each text.
func Result(id string, texts ...string) core.ToolResult {
	r := core.ToolResult{CallID: id}
	r.Content = append(r.Content, plain.Each(texts, func(s string) core.Part { return core.Text(s) })...)
	return r
}

// Image returns an inline image, a different one for each n.
func Image(n int) core.Image {
	return core.Image{MediaType: "image/png", Data: fmt.Sprintf("iVBORw0KGgo%08dAAAA", n)}
}

// Conversation returns the messages as a host provides them: it sets missing IDs to m1, m2, …, times one minute
// apart, and their tokens by [Counter].
func Conversation(messages ...core.Message) []core.Message {
	for i := range messages {
		m := &messages[i]
		m.ID = cmp.Or(m.ID, fmt.Sprintf("m%d", i+1))
		m.Time = start.Add(time.Duration(i) * time.Minute)
	}
	core.Measure(Counter{}, messages)
	return messages
}

var start = time.Date(2026, time.January, 5, 9, 0, 0, 0, time.UTC)

// Request returns the request to condense messages to target tokens, which is also the
// limit. The counter is [Counter].
func Request(messages []core.Message, target int) *core.Request {
	return &core.Request{
		Messages:  messages,
		Budget:    core.Budget{Window: target, Limit: target, Target: target},
		Trigger:   core.TriggerAutomatic,
		FilesRead: []string{"src/c1.go", "README.md"},
		Counter:   Counter{},
	}
}

// HalfRequest returns the request to condense messages to half their size.
func HalfRequest(messages []core.Message) *core.Request {
	req := Request(messages, 0)
	half := req.Tokens() / 2
	req.Budget = core.Budget{Window: 2 * half, Limit: half, Target: half}
	return req
}

// Session returns a conversation with every kind of content: a system prompt, protected
// messages, reasoning, parallel calls, results in one message and in several, images, blocks
// of unknown kind, a summary of older messages, and a last call that is pending.
func Session() []core.Message {
	return Conversation(
		System(core.Text("You are a careful engineer. Answer briefly and run the tests.")),
		Protected(User(core.Text("The parser drops the last line of a file. Find out why and mend it."))),
		core.Message{Role: core.RoleUser, Kind: core.KindSummary, Parts: []core.Part{core.Text("Earlier: the repository was cloned and the tests were run; one fails, TestLastLine.")}},
		Assistant(
			core.Reasoning{Text: "The test names the function, so read it first.", Signature: "c2lnbmF0dXJl"},
			core.Text("I will read the parser and its test."), Call("c1"), Call("c2"),
		),
		User(Result("c1", prose(60)), core.ToolResult{CallID: "c2", Content: []core.Part{core.Text(prose(30)), Image(1)}}),
		Assistant(core.Text("The loop ends before the last line. Here is the change."), Call("c3")),
		Tool(Result("c3", "wrote 12 lines")),
		Assistant(core.Text("Now the tests, and the linter."), Call("c4"), Call("c5")),
		Tool(Result("c4", prose(80))),
		Tool(core.ToolResult{CallID: "c5", Content: []core.Part{core.Text("exit status 1")}, IsError: true}),
		User(core.Text("This is what I see on my screen:"), Image(2), core.Opaque{Kind: "document", JSON: `{"type": "document", "title": "log"}`}),
		Assistant(core.Text("The linter wants a comment there. "+prose(20))),
		User(core.Text("Go on, then.")),
		Protected(Assistant(core.Text("I keep the change as it is and add the comment."))),
		User(core.Text("Good. "+prose(10))),
		Assistant(core.Reasoning{Encrypted: "ZW5jcnlwdGVk"}, core.Text("One more look at the file."), Call("c6")),
	)
}

// A Counter counts one token for every four bytes of a text, rounded up. It is fast and
// additive, but not a tokenizer: use it in tests only.
type Counter struct{}

// Count returns the tokens of parts.
func (c Counter) Count(parts ...core.Part) int {
	n := 0
	for _, p := range parts {
		switch p := p.(type) {
		case core.Text:
			n += tokens(string(p))
		case core.ToolCall:
			n += tokens(p.ID) + tokens(p.Name) + tokens(p.Args)
		case core.ToolResult:
			n += tokens(p.CallID) + c.Count(p.Content...)
		case core.Image:
			n += tokens(p.Data) + tokens(p.URL)
		case core.Reasoning:
			n += tokens(p.Text) + tokens(p.Signature) + tokens(p.Encrypted)
		case core.Opaque:
			n += tokens(p.JSON)
		}
	}
	return n
}

func tokens(s string) int { return (len(s) + 3) / 4 }

var words = strings.Fields(`the parser reads a line and returns it with its number before the
next one is asked for so the last line of a file that does not end in a newline is lost when
the scanner stops early return nil err != nil func (p *Parser) Next() { if p.done } 404 lines
of output were written to build/out.log in 1.8 s tests passed failed skipped see issue #12
naïve café 日本語 🙂`)

// prose returns n words, the same for the same n.
func prose(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[(i*7+n)%len(words)])
	}
	return b.String()
}
