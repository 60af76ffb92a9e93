package anthropic

import (
	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/rawjson"
	"github.com/condensehq/condense/transcript/internal/blocks"
	"github.com/condensehq/condense/transcript/internal/codec"
	"github.com/condensehq/condense/transcript/internal/convert"
	"github.com/condensehq/condense/transcript/internal/request"
)

var Codec = codec.Codec{
	Name:    "anthropic",
	Doc:     "Anthropic Messages: an array of messages, or a request object with messages, system, tools …",
	Vendor:  codec.Anthropic,
	Request: true,
	Detect:  func(data []byte) bool { return request.VendorOf(data) == codec.Anthropic },
	Read:    request.ReadAnthropic,
	Write:   write,
	Convert: convertFile,
}

func write(f *codec.File, out *codec.Output) error {
	request.Write(f, out, placeSystem(f), true, func(m *core.Message, was []byte) []byte {
		if was != nil {
			return blocks.PatchMessage(was, m.Parts)
		}
		return apimessage.AnthropicMessage(m.Role, m.Parts)
	})
	return nil
}

// convertFile writes an array of messages, or an object if there is a system
// prompt.
func convertFile(f *codec.File, out *codec.Output) error {
	turns, system := convert.Turns(f, &apimessage.Anthropic, out)
	var messages [][]byte
	for _, m := range apimessage.Messages(turns) {
		messages = append(messages, apimessage.AnthropicMessage(m.Role, m.Parts))
	}
	raw := rawjson.Array(messages)
	if system != "" {
		raw = rawjson.Append(nil, `{"system":?,"messages":?}`, system, raw)
	}
	out.Add(raw, []byte{'\n'})
	return nil
}
