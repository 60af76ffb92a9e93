package core

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"
)

// messageJSON is a Message as the journal writes it. Source is written as JSON where
// that keeps every byte, else as base64: encoding/json would compact it.
type messageJSON struct {
	ID          string            `json:"id,omitempty"`
	Role        Role              `json:"role"`
	Kind        Kind              `json:"kind,omitempty"`
	Parts       []partJSON        `json:"parts"`
	Program     bool              `json:"program,omitempty"`
	Time        time.Time         `json:"time,omitzero"`
	Protected   bool              `json:"protected,omitempty"`
	Tokens      int               `json:"tokens,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Source      json.RawMessage   `json:"source,omitempty"`
	SourceBytes []byte            `json:"source_base64,omitempty"`
}

// partJSON is the union of all parts; Type tells which. Strings of JSON are UTF-8: if one
// of a part is not, all of that part are written as base64.
type partJSON struct {
	Type      string     `json:"type"`
	Base64    bool       `json:"base64,omitempty"`
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

// MarshalJSON writes m in the form that the journal stores. Every byte of Parts and
// Source is kept, valid UTF-8 or not, if the encoder that calls it has
// SetEscapeHTML(false). It fails if a part is not one of this package, as a value.
func (m Message) MarshalJSON() ([]byte, error) {
	parts, err := partsToJSON(m.Parts)
	if err != nil {
		return nil, err
	}
	w := messageJSON{
		ID: m.ID, Role: m.Role, Kind: m.Kind, Parts: parts, Program: m.Program,
		Time: m.Time, Protected: m.Protected, Tokens: m.Tokens, Labels: m.Labels,
	}
	if survivesJSON(m.Source) {
		w.Source = m.Source
	} else {
		w.SourceBytes = m.Source
	}
	return marshal(w)
}

// marshal is json.Marshal without escaping of HTML, which would change Source.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
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
	b := bytes.NewBuffer(make([]byte, 0, len(raw)))
	if json.Compact(b, raw) != nil || !bytes.Equal(b.Bytes(), raw) {
		return false
	}
	// Parsers limit the depth to 10,000, and a message is inside other values. Raw JSON with so few brackets cannot
	// be too deep.
	return bytes.Count(raw, []byte("["))+bytes.Count(raw, []byte("{")) < 9000 ||
		json.Valid(slices.Concat(bytes.Repeat([]byte("["), 50), raw, bytes.Repeat([]byte("]"), 50)))
}

// UnmarshalJSON reads the output of [Message.MarshalJSON].
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
		ID: w.ID, Role: w.Role, Kind: w.Kind, Parts: parts, Program: w.Program,
		Time: w.Time, Protected: w.Protected, Tokens: w.Tokens, Labels: w.Labels, Source: w.Source,
	}
	if w.SourceBytes != nil {
		m.Source = w.SourceBytes
	}
	return nil
}

func partsToJSON(parts []Part) ([]partJSON, error) {
	out := make([]partJSON, len(parts))
	for i, p := range parts {
		w := &out[i]
		switch p := p.(type) {
		case Text:
			*w = partJSON{Type: "text", Text: new(string(p))}
		case ToolCall:
			*w = partJSON{Type: "tool_call", ID: p.ID, Name: p.Name, Args: p.Args}
		case ToolResult:
			content, err := partsToJSON(p.Content)
			if err != nil {
				return nil, err
			}
			*w = partJSON{Type: "tool_result", CallID: p.CallID, Content: content, IsError: p.IsError}
		case Image:
			*w = partJSON{Type: "image", MediaType: p.MediaType, Data: p.Data, URL: p.URL}
		case Reasoning:
			*w = partJSON{Type: "reasoning", Text: new(p.Text), Signature: p.Signature, Encrypted: p.Encrypted}
		case Opaque:
			*w = partJSON{Type: "opaque", Kind: p.Kind, JSON: p.JSON}
		default:
			return nil, fmt.Errorf("part %d: %T is not a part", i, p)
		}
		all := w.strings()
		w.Base64 = slices.ContainsFunc(all[:], func(s *string) bool { return s != nil && !utf8.ValidString(*s) })
		for _, s := range all {
			if w.Base64 && s != nil {
				*s = base64.StdEncoding.EncodeToString([]byte(*s))
			}
		}
	}
	return out, nil
}

// strings returns where w holds content; nil means no text.
func (w *partJSON) strings() [12]*string {
	return [...]*string{
		w.Text, &w.ID, &w.Name, &w.Args, &w.CallID, &w.MediaType, &w.Data, &w.URL,
		&w.Signature, &w.Encrypted, &w.Kind, &w.JSON,
	}
}

func partsFromJSON(ws []partJSON) ([]Part, error) {
	if len(ws) == 0 {
		return nil, nil
	}
	out := make([]Part, len(ws))
	for i := range ws {
		w := &ws[i]
		for _, s := range w.strings() {
			if !w.Base64 || s == nil {
				continue
			}
			b, err := base64.StdEncoding.DecodeString(*s)
			if err != nil {
				return nil, fmt.Errorf("part %d: %w", i, err)
			}
			*s = string(b)
		}
		text := *cmp.Or(w.Text, new(string))
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
