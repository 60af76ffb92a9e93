package core

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"
)

// messageJSON is a Message as the journal writes it. Source is written as JSON where
// that keeps every byte, else as base64: encoding/json would compact it.
type messageJSON struct {
	ID          string          `json:"id,omitempty"`
	Role        Role            `json:"role"`
	Kind        Kind            `json:"kind,omitempty"`
	Parts       []partJSON      `json:"parts"`
	Time        time.Time       `json:"time,omitzero"`
	Protected   bool            `json:"protected,omitempty"`
	Tokens      int             `json:"tokens,omitempty"`
	Source      json.RawMessage `json:"source,omitempty"`
	SourceBytes []byte          `json:"source_base64,omitempty"`
}

// partJSON is the union of all parts; Type tells which.
type partJSON struct {
	Type      string     `json:"type"`
	Text      *string    `json:"text,omitempty"`
	ID        string     `json:"id,omitempty"`
	Name      string     `json:"name,omitempty"`
	Args      string     `json:"args,omitempty"`
	CallID    string     `json:"call_id,omitempty"`
	Content   []partJSON `json:"content,omitempty"`
	IsError   bool       `json:"is_error,omitempty"`
	MediaType string     `json:"media_type,omitempty"`
	Data      string     `json:"data,omitempty"`
	URL       string     `json:"url,omitempty"`
	Signature string     `json:"signature,omitempty"`
	Encrypted string     `json:"encrypted,omitempty"`
	Kind      string     `json:"kind,omitempty"`
	JSON      string     `json:"json,omitempty"`
}

// MarshalJSON writes m in the form that the journal stores. Text that is not valid
// UTF-8 is written with U+FFFD in place of each bad byte; Source keeps every byte if
// the encoder that calls it has SetEscapeHTML(false).
func (m Message) MarshalJSON() ([]byte, error) {
	w := messageJSON{
		ID: m.ID, Role: m.Role, Kind: m.Kind, Parts: partsToJSON(m.Parts),
		Time: m.Time, Protected: m.Protected, Tokens: m.Tokens,
	}
	if m.Source != nil {
		if survivesJSON(m.Source) {
			w.Source = m.Source
		} else {
			w.SourceBytes = m.Source
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(w); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// survivesJSON reports whether raw keeps every byte when it is embedded in JSON that is
// encoded without escaping of HTML.
func survivesJSON(raw []byte) bool {
	if !utf8.Valid(raw) {
		return false
	}
	var b bytes.Buffer
	b.Grow(len(raw))
	return json.Compact(&b, raw) == nil && bytes.Equal(b.Bytes(), raw)
}

// UnmarshalJSON reads what [Message.MarshalJSON] wrote.
func (m *Message) UnmarshalJSON(data []byte) error {
	var w messageJSON
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	parts, err := partsFromJSON(w.Parts)
	if err != nil {
		return err
	}
	*m = Message{
		ID: w.ID, Role: w.Role, Kind: w.Kind, Parts: parts,
		Time: w.Time, Protected: w.Protected, Tokens: w.Tokens, Source: w.Source,
	}
	if w.SourceBytes != nil {
		m.Source = w.SourceBytes
	}
	return nil
}

func partsToJSON(parts []Part) []partJSON {
	out := make([]partJSON, len(parts))
	for i, p := range parts {
		switch p := p.(type) {
		case Text:
			s := string(p)
			out[i] = partJSON{Type: "text", Text: &s}
		case ToolCall:
			out[i] = partJSON{Type: "tool_call", ID: p.ID, Name: p.Name, Args: p.Args}
		case ToolResult:
			out[i] = partJSON{Type: "tool_result", CallID: p.CallID, Content: partsToJSON(p.Content), IsError: p.IsError}
		case Image:
			out[i] = partJSON{Type: "image", MediaType: p.MediaType, Data: p.Data, URL: p.URL}
		case Reasoning:
			s := p.Text
			out[i] = partJSON{Type: "reasoning", Text: &s, Signature: p.Signature, Encrypted: p.Encrypted}
		case Opaque:
			out[i] = partJSON{Type: "opaque", Kind: p.Kind, JSON: p.JSON}
		}
	}
	return out
}

func partsFromJSON(ws []partJSON) ([]Part, error) {
	if len(ws) == 0 {
		return nil, nil
	}
	out := make([]Part, len(ws))
	for i, w := range ws {
		var text string
		if w.Text != nil {
			text = *w.Text
		}
		switch w.Type {
		case "text":
			out[i] = Text(text)
		case "tool_call":
			out[i] = ToolCall{ID: w.ID, Name: w.Name, Args: w.Args}
		case "tool_result":
			content, err := partsFromJSON(w.Content)
			if err != nil {
				return nil, err
			}
			out[i] = ToolResult{CallID: w.CallID, Content: content, IsError: w.IsError}
		case "image":
			out[i] = Image{MediaType: w.MediaType, Data: w.Data, URL: w.URL}
		case "reasoning":
			out[i] = Reasoning{Text: text, Signature: w.Signature, Encrypted: w.Encrypted}
		case "opaque":
			out[i] = Opaque{Kind: w.Kind, JSON: w.JSON}
		default:
			return nil, fmt.Errorf("part %d: unknown type %q; want text, tool_call, tool_result, image, reasoning or opaque", i, w.Type)
		}
	}
	return out, nil
}
