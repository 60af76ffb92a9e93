// Package condenseadk keeps the conversations of an agent that is written with Google's Agent Development Kit (google.golang.org/adk)
// within its model's window: [Sessions.BeforeModel] is for an llmagent.
package condenseadk

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/adk/agent"
	"google.golang.org/adk/model"
	"google.golang.org/genai"

	"github.com/condensehq/condense"
	"github.com/condensehq/condense/adapters"
	"github.com/condensehq/condense/core"
)

// ToCore returns contents as core has them.
func ToCore(contents []*genai.Content) ([]core.Message, error) {
	return adapters.ToCore(Codec{}, contents)
}

// FromCore returns messages as the kit has them. Those that ToCore made, and that did not change, are as they were; numbers in
// arguments and responses have the types of JSON.
func FromCore(messages []core.Message) ([]*genai.Content, error) {
	return adapters.FromCore(Codec{}, messages)
}

// Sessions are the memories of an agent, by the kit's sessions and branches; Turn is of each request.
type Sessions struct {
	*adapters.Sessions[*genai.Content]

	turn condense.Turn
}

// NewSessions returns no sessions.
func NewSessions(h *condense.Host, t condense.Turn) *Sessions {
	return &Sessions{adapters.NewSessions(h, Codec{}), t}
}

// Name returns the name of an agent's memory of a session, for adapters.Sessions.Of and adapters.Sessions.Forget.
func Name(session, branch, agent string) string {
	return strings.Join([]string{session, branch, agent}, "/")
}

// BeforeModel is for BeforeModelCallbacks of an llmagent. The session keeps everything; only the model's request is shorter. The
// instruction and the declarations of tools count.
func (s *Sessions) BeforeModel(ctx agent.CallbackContext, req *model.LLMRequest) (*model.LLMResponse, error) {
	t := s.turn
	if c := req.Config; c != nil {
		if c.SystemInstruction != nil {
			for _, p := range c.SystemInstruction.Parts {
				t.System += p.Text + "\n"
			}
		}
		if len(c.Tools) > 0 && t.Tools == nil {
			tools, err := json.Marshal(c.Tools)
			if err != nil {
				return nil, err
			}
			t.Tools = tools
		}
		if t.MaxOutput == 0 {
			t.MaxOutput = int(c.MaxOutputTokens)
		}
	}
	shorter, err := s.Of(Name(ctx.SessionID(), ctx.Branch(), ctx.AgentName())).Shorten(ctx, t, req.Contents)
	if err == nil {
		req.Contents = shorter
	}
	return nil, err
}

// A Codec is adapters.Codec for the kit's contents.
type Codec struct{}

// Parse implements adapters.Codec.
func (Codec) Parse(source json.RawMessage) (*genai.Content, error) {
	var c *genai.Content
	err := json.Unmarshal(source, &c)
	return c, err
}

// Read implements adapters.Codec.
func (Codec) Read(c *genai.Content) (core.Message, error) {
	if c == nil {
		return core.Message{}, errors.New("no content: nil")
	}
	m := core.Message{Role: core.RoleUser}
	switch c.Role {
	case genai.RoleUser, "", "function", "tool": // empty is the user's, as in the kit
	case genai.RoleModel:
		m.Role = core.RoleAssistant
	case "system":
		m.Role = core.RoleSystem
	default:
		return core.Message{}, fmt.Errorf("role %q: want user or model", c.Role)
	}
	for _, p := range c.Parts {
		part, err := read(p)
		if err != nil {
			return core.Message{}, err
		}
		m.Parts = append(m.Parts, part)
	}
	source, err := json.Marshal(c)
	m.Source = source
	return m, err
}

// nameless begins the IDs of calls that have none, as the kit sends them: a response then answers the first open call of its function.
const nameless = "function:"

func read(p *genai.Part) (core.Part, error) {
	switch {
	case p == nil:
		return nil, errors.New("a part is nil")
	case p.FunctionCall != nil:
		args, err := json.Marshal(p.FunctionCall.Args)
		if p.FunctionCall.Args == nil {
			args = []byte("{}")
		}
		return core.ToolCall{ID: idOf(p.FunctionCall.ID, p.FunctionCall.Name), Name: p.FunctionCall.Name, Args: string(args)}, err
	case p.FunctionResponse != nil:
		return readResponse(p.FunctionResponse)
	case p.InlineData != nil && strings.HasPrefix(p.InlineData.MIMEType, "image/"):
		return core.Image{MediaType: p.InlineData.MIMEType, Data: base64.StdEncoding.EncodeToString(p.InlineData.Data)}, nil
	case p.FileData != nil && strings.HasPrefix(p.FileData.MIMEType, "image/"):
		return core.Image{MediaType: p.FileData.MIMEType, URL: p.FileData.FileURI}, nil
	case p.Thought:
		return core.Reasoning{Text: p.Text, Signature: base64.StdEncoding.EncodeToString(p.ThoughtSignature)}, nil
	case p.Text != "" || equalJSON(p, &genai.Part{}):
		return core.Text(p.Text), nil
	}
	data, err := json.Marshal(p)
	kind := "part"
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) == nil && len(fields) > 0 {
		kind = slices.Min(slices.Collect(maps.Keys(fields)))
	}
	return core.Opaque{Kind: kind, JSON: string(data)}, err
}

func equalJSON(a, b any) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}

func idOf(id, name string) string {
	if id == "" {
		return nameless + name
	}
	return id
}

func readResponse(r *genai.FunctionResponse) (core.Part, error) {
	text, err := responseText(r.Response)
	_, failed := r.Response["error"]
	out := core.ToolResult{CallID: idOf(r.ID, r.Name), IsError: failed}
	if text != "" {
		out.Content = []core.Part{core.Text(text)}
	}
	for _, p := range r.Parts {
		if b := p.InlineData; b != nil && strings.HasPrefix(b.MIMEType, "image/") {
			out.Content = append(out.Content, core.Image{MediaType: b.MIMEType, Data: base64.StdEncoding.EncodeToString(b.Data)})
			continue
		}
		data, err := json.Marshal(p)
		if err != nil {
			return nil, err
		}
		out.Content = append(out.Content, core.Opaque{Kind: "response", JSON: string(data)})
	}
	return out, err
}

// responseText returns the answer of a function: the text, if it is the only field, else a line or more for each field.
func responseText(fields map[string]any) (string, error) {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text, ok := fields[name].(string)
		if !ok {
			data, err := json.Marshal(fields[name])
			if err != nil {
				return "", err
			}
			text = string(data)
		}
		switch {
		case ok && len(fields) == 1:
			return text, nil
		case strings.Contains(text, "\n"):
			text = name + ":\n" + text
		default:
			text = name + ": " + text
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n"), nil
}

// Write implements adapters.Codec.
func (Codec) Write(m core.Message, was **genai.Content) ([]*genai.Content, error) {
	out := &genai.Content{Role: genai.RoleUser}
	switch m.Role {
	case core.RoleAssistant:
		out.Role = genai.RoleModel
	case core.RoleSystem:
		out.Role = "system"
	case core.RoleUser, core.RoleTool:
	}
	var old []*genai.Part
	if was != nil {
		out.Role, old = (*was).Role, (*was).Parts
	}
	before := make([]core.Part, len(old))
	for i, p := range old {
		part, err := read(p)
		if err != nil {
			return nil, err
		}
		before[i] = part
	}
	for i, j := range adapters.Kept(before, m.Parts) {
		if j >= 0 {
			out.Parts = append(out.Parts, old[j])
			continue
		}
		p, err := write(m.Parts[i], old)
		if err != nil {
			return nil, err
		}
		out.Parts = append(out.Parts, p)
	}
	return []*genai.Content{out}, nil
}

// write returns a part that is new or changed, with the kit's other fields.
func write(p core.Part, old []*genai.Part) (*genai.Part, error) {
	switch p := p.(type) {
	case core.Text:
		return genai.NewPartFromText(string(p)), nil
	case core.Image:
		if p.URL != "" {
			return genai.NewPartFromURI(p.URL, p.MediaType), nil
		}
		data, err := base64.StdEncoding.DecodeString(p.Data)
		return genai.NewPartFromBytes(data, p.MediaType), err
	case core.Reasoning:
		signature, err := base64.StdEncoding.DecodeString(p.Signature)
		return &genai.Part{Text: p.Text, Thought: true, ThoughtSignature: signature}, err
	case core.ToolCall:
		part, call := genai.Part{}, genai.FunctionCall{Name: p.Name}
		if id := p.ID; id != nameless+p.Name {
			call.ID = id
		}
		for _, o := range old {
			if c := o.FunctionCall; c != nil && idOf(c.ID, c.Name) == p.ID {
				part, call = *o, *c
			}
		}
		call.Args = nil
		err := json.Unmarshal([]byte(p.Args), &call.Args)
		part.FunctionCall = &call
		return &part, err
	case core.ToolResult:
		return writeResponse(p, old)
	case core.Opaque:
		var part genai.Part
		err := json.Unmarshal([]byte(p.JSON), &part)
		return &part, err
	}
	return nil, fmt.Errorf("a part of type %T", p)
}

func writeResponse(p core.ToolResult, old []*genai.Part) (*genai.Part, error) {
	part, r := genai.Part{}, genai.FunctionResponse{ID: p.CallID}
	if name, ok := strings.CutPrefix(p.CallID, nameless); ok {
		r.ID, r.Name = "", name
	}
	for _, o := range old {
		if f := o.FunctionResponse; f != nil && idOf(f.ID, f.Name) == p.CallID {
			part, r = *o, *f
		}
	}
	field := "output"
	if p.IsError {
		field = "error"
	}
	if len(r.Response) == 1 {
		for name := range r.Response {
			field = name
		}
	}
	text := adapters.Joined(p.Content)
	if was, err := responseText(r.Response); err != nil || was != text {
		r.Response = map[string]any{field: text}
	}
	var kept []*genai.FunctionResponsePart
	for _, c := range p.Content {
		switch c := c.(type) {
		case core.Image:
			data, err := base64.StdEncoding.DecodeString(c.Data)
			if err != nil {
				return nil, err
			}
			one := genai.NewFunctionResponsePartFromBytes(data, c.MediaType)
			for _, o := range r.Parts {
				if o.InlineData != nil && string(o.InlineData.Data) == string(data) {
					one = o
				}
			}
			kept = append(kept, one)
		case core.Opaque:
			var one genai.FunctionResponsePart
			if err := json.Unmarshal([]byte(c.JSON), &one); err != nil {
				return nil, err
			}
			kept = append(kept, &one)
		case core.Text, core.ToolCall, core.ToolResult, core.Reasoning: // in the response
		}
	}
	r.Parts, part.FunctionResponse = kept, &r
	return &part, nil
}
