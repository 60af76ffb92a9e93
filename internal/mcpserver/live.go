package mcpserver

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Director sees to the conversations of running agents. Its texts and errors are for a model. An empty ID means the
// conversation that it considers the model's own, or the only one. The methods may be called concurrently.
type Director interface { //nolint:interfacebloat // a method for each kind of answer
	// List describes the running conversations.
	List(ctx context.Context) (string, error)
	// Show describes the view of a conversation.
	Show(ctx context.Context, id string) (string, error)
	// Undo takes the last condensation back. Unless confirmed, it changes nothing and returns the cost.
	Undo(ctx context.Context, id string, confirmed bool) (string, error)
	// Do performs one of the actions now, pause, resume, protect and unprotect.
	Do(ctx context.Context, id, action string, a *Action) (string, error)
}

// An Action has the parameters of an action. Those that it does not use are empty.
type Action struct {
	Target   string // now: tokens, as 40k, or percent of the window, as 20%
	Profile  string // now
	Provider string // now
	Text     string // protect, unprotect
	Message  int    // protect, unprotect: its number, from 1; 0 means by text
}

const idProperty = `"id":{"type":"string","maxLength":100,"description":"a conversation of list, can be shortened; without it, this one"}`

// NewLive returns a server with tools that direct running conversations.
func NewLive(version string, d Director) *mcp.Server {
	self := &mcp.Implementation{Name: "condense-live", Title: "condense: direct the condensing of conversations", Version: version}
	s := mcp.NewServer(self, &mcp.ServerOptions{
		Instructions: "condense shortens long conversations on their way to the model. These tools show and direct that. " +
			"Call one that changes something only if the user asks for it; it takes effect with the next request.",
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	tool := func(name, title, description, properties string, reads bool) *mcp.Tool {
		no := false
		schema := `{"type":"object","additionalProperties":false,"properties":{` + properties + `}}`
		return &mcp.Tool{
			Name: name, Title: title, Description: description, InputSchema: json.RawMessage(schema),
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: reads, IdempotentHint: reads, OpenWorldHint: &no, DestructiveHint: &no},
		}
	}
	direct(s, tool("list", "List running conversations", "Lists the running conversations: size, window, when the next condensation is due, money saved, and what was asked for.", "", true),
		func(ctx context.Context, _ *liveArgs) (string, error) { return d.List(ctx) })
	direct(s, tool("show", "Show what is sent", "Shows what is sent in place of the first messages of a conversation, and what is hidden, a line for each message with its number.", idProperty, true),
		func(ctx context.Context, in *liveArgs) (string, error) { return d.Show(ctx, in.ID) })
	direct(s, tool("now", "Condense now", "Condenses a conversation before its next request.", idProperty+`,
		"target":{"type":"string","maxLength":20,"description":"the size to reach: tokens, as 40k, or percent of the window, as 20%"},
		"profile":{"type":"string","maxLength":200,"description":"the profile whose chain condenses"},
		"provider":{"type":"string","maxLength":200,"description":"the only provider before truncation"}`, false), act(d, "now"))
	direct(s, tool("undo", "Undo the last condensation", "Takes the last condensation of a conversation back with its next request. Without confirm it only says what that costs: tell the user, and ask.", idProperty+`,
		"confirm":{"type":"boolean","description":"undo it, as the user agreed to the cost"}`, false),
		func(ctx context.Context, in *liveArgs) (string, error) { return d.Undo(ctx, in.ID, in.Confirm) })
	direct(s, tool("pause", "Pause condensing", "From now on, a conversation is condensed only where the vendor would refuse it otherwise.", idProperty, false), act(d, "pause"))
	direct(s, tool("resume", "Resume condensing", "Ends a pause.", idProperty, false), act(d, "resume"))
	const point = idProperty + `,
		"text":{"type":"string","maxLength":4000,"description":"a text that the messages contain"},
		"message":{"type":"integer","minimum":1,"description":"instead of a text: the number of a message, as show gives it"}`
	direct(s, tool("protect", "Protect a text", "Keeps all messages with a text, or one message, verbatim in every condensation from now on.", point, false), act(d, "protect"))
	direct(s, tool("unprotect", "End a protection", "Ends a protection.", point, false), act(d, "unprotect"))
	return s
}

type liveArgs struct {
	ID       string `json:"id"`
	Target   string `json:"target"`
	Profile  string `json:"profile"`
	Provider string `json:"provider"`
	Confirm  bool   `json:"confirm"`
	Text     string `json:"text"`
	Message  int    `json:"message"`
}

func act(d Director, action string) func(context.Context, *liveArgs) (string, error) {
	return func(ctx context.Context, in *liveArgs) (string, error) {
		return d.Do(ctx, in.ID, action, &Action{Target: in.Target, Profile: in.Profile, Provider: in.Provider, Text: in.Text, Message: in.Message})
	}
}

// direct adds a tool. The text that do returns is cut to maxText.
func direct(s *mcp.Server, t *mcp.Tool, do func(context.Context, *liveArgs) (string, error)) {
	mcp.AddTool(s, t, func(ctx context.Context, _ *mcp.CallToolRequest, in liveArgs) (*mcp.CallToolResult, any, error) {
		text, err := do(ctx, &in)
		if err != nil {
			return nil, nil, err
		}
		if len(text) > maxText {
			text = strings.ToValidUTF8(text[:maxText], "") + "\n[… the rest is left out]"
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
}
