package trace

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
	Name:    "trace",
	Doc:     "a recorded session: an object with source and messages in Anthropic's shape, each with an origin",
	Vendor:  "", // recorded with models of every maker
	Detect:  detect,
	Read:    request.ReadAnthropic,
	Write:   write,
	Convert: convertFile,
}

func write(f *codec.File, out *codec.Output) error {
	request.Write(f, out, f.View(), false, func(m *core.Message, was []byte) []byte {
		if was != nil {
			return blocks.PatchMessage(was, m.Parts)
		}
		return encode(m.Role, m.Kind, m.Parts)
	})
	return nil
}

// traceFields are those of a recorded session. One without messages has no others.
var traceFields = rawjson.Set("id", "source", "agent", "mode", "model", "system", "repo", "license", "prov", "messages",
	"compactions", "stats", "reward", "roo_modes")

func detect(data []byte) bool {
	source, strange, messages := false, false, []byte(nil)
	for k, v := range rawjson.Fields(data) {
		switch string(k) {
		case "source":
			source = rawjson.IsString(v)
		case "messages":
			messages = v
		}
		strange = strange || !traceFields[string(k)]
	}
	if !source || !rawjson.IsArray(messages) || !rawjson.Complete(messages) {
		return false
	}
	for m := range rawjson.Elements(messages) {
		return rawjson.Field(m, "origin") != nil && rawjson.Field(m, "content") != nil
	}
	return !strange
}

// encode returns a new message with its origin: what nobody typed is "injected".
func encode(role core.Role, kind core.Kind, parts []core.Part) []byte {
	origin := "human"
	switch {
	case role == core.RoleAssistant:
		origin = "agent"
	case len(parts) > 0 && onlyResults(parts):
		origin = "tool"
	case kind != core.KindOriginal:
		origin = "injected"
	}
	out := rawjson.AppendQuote([]byte(`{"role":`), string(apimessage.Speaker(role)))
	out = rawjson.AppendQuote(append(out, `,"origin":`...), origin)
	out = append(out, `,"content":[`...)
	for i, p := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		out = apimessage.AppendBlock(out, p)
		if _, ok := p.(core.Text); ok {
			out = rawjson.AppendQuote(append(out[:len(out)-1], `,"origin":`...), origin)
			out = append(out, '}')
		}
	}
	return append(out, ']', '}')
}

func onlyResults(parts []core.Part) bool {
	for _, p := range parts {
		if _, ok := p.(core.ToolResult); !ok {
			return false
		}
	}
	return true
}

// convertFile writes what convertAnthropic would, as a recorded session.
func convertFile(f *codec.File, out *codec.Output) error {
	turns, system := convert.Turns(f, &apimessage.Anthropic, out)
	out.AddString(`{"source":`)
	source := f.Origin
	if source == "" {
		source = "condense"
	}
	out.Add(rawjson.AppendQuote(nil, source))
	if f.Model != "" {
		out.AddString(`,"model":`)
		out.Add(rawjson.AppendQuote(nil, f.Model))
	}
	if system != "" {
		out.AddString(`,"system":`)
		out.Add(rawjson.AppendQuote(nil, system))
	}
	out.AddString(`,"messages":[`)
	for i, m := range apimessage.Messages(turns) {
		if i > 0 {
			out.AddString(",")
		}
		out.Add(encode(m.Role, m.Kind, m.Parts))
	}
	out.AddString("]}\n")
	return nil
}
