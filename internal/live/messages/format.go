// Package messages reads the messages of requests as transcripts.
package messages

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/core/history"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/anthropic"
	"github.com/condensehq/condense/internal/codec/converse"
	"github.com/condensehq/condense/internal/codec/geminiapi"
	"github.com/condensehq/condense/internal/codec/openai"
	"github.com/condensehq/condense/internal/codec/responses"
	"github.com/condensehq/condense/internal/live/wire"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// codecs are those of the APIs. Package transcript has them too, and those of the files of agents, which no request is.
var codecs = []*codec.Codec{&anthropic.Codec, &openai.Codec, &responses.Codec, &geminiapi.Codec, &converse.Codec}

func codecOf(api wire.API) (*codec.Codec, error) {
	format := wire.Of(api).Format
	for _, c := range codecs {
		if c.Name == format {
			return c, nil
		}
	}
	return nil, fmt.Errorf("requests of the API %q are not read", api)
}

// Read reads messages.
func Read(api wire.API, messages [][]byte) (*codec.File, error) {
	return ReadRequest(api, rawjson.Array(messages))
}

// ReadRequest reads a request, or the array of its messages.
func ReadRequest(api wire.API, body []byte) (*codec.File, error) {
	c, err := codecOf(api)
	if err != nil {
		return nil, err
	}
	f := &codec.File{Origin: c.Name, Journal: history.New(), Vendor: c.Vendor}
	if err := c.Read(body, f); err != nil {
		return nil, err
	}
	return f, f.KeepHeader()
}

// Write returns the view of a conversation that was read, in the form of its API. With apart, messages of the user that a condensation
// made neighbours stay two.
func Write(api wire.API, f *codec.File, apart bool) ([]byte, error) {
	c, err := codecOf(api)
	if err != nil {
		return nil, err
	}
	f.Apart = apart
	var out codec.Output
	err = c.Write(f, &out)
	return out.Bytes(), err
}

// Raw returns the JSON of messages as in the request.
func Raw(messages []wire.Message) [][]byte {
	return plain.Each(messages, func(x wire.Message) []byte { return x.Raw })
}

// Identity returns a key that is equal for messages with the same content, whatever the model's thinking, images and
// opaque parts.
func Identity(m core.Message) string {
	var b bytes.Buffer
	b.WriteString(string(m.Role))
	for _, p := range m.Parts {
		switch p := p.(type) {
		case core.ToolCall:
			fmt.Fprintf(&b, "\x00call %s %s %s", p.ID, p.Name, p.Args)
		case core.ToolResult:
			fmt.Fprintf(&b, "\x00result %s %s", p.CallID, Text(p.Content))
		case core.Text:
			b.WriteString("\x00" + string(p))
		case core.Image, core.Reasoning, core.Opaque:
		}
	}
	return b.String()
}

// Text returns the text of parts, including the arguments of calls and the text of results.
func Text(parts []core.Part) string {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case core.Text:
			b.WriteString(string(p) + "\n")
		case core.ToolCall:
			b.WriteString(p.Args + "\n")
		case core.ToolResult:
			b.WriteString(Text(p.Content))
		case core.Image, core.Reasoning, core.Opaque:
		}
	}
	return b.String()
}
