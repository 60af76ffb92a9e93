// Package trace reads and writes recorded sessions.
package trace

import (
	"cmp"
	"slices"

	"github.com/condensehq/condense/core"
	"github.com/condensehq/condense/internal/apimessage"
	"github.com/condensehq/condense/internal/codec"
	"github.com/condensehq/condense/internal/codec/blocks"
	"github.com/condensehq/condense/internal/codec/convert"
	"github.com/condensehq/condense/internal/codec/request"
	"github.com/condensehq/condense/internal/plain"
	"github.com/condensehq/condense/internal/rawjson"
)

// Codec is the format.
var Codec = codec.Codec{
	Name:    "trace",
	Doc:     "a recorded session: an object with source and messages in Anthropic's shape, each with an origin",
	Vendor:  "", // recorded with models of any vendor
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

// traceFields are the fields of a recorded session. A session without messages must have no
// others.
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

// encode returns a new message with its origin: content that was not typed is "injected".
func encode(role core.Role, kind core.Kind, parts []core.Part) []byte {
	origin := "human"
	switch {
	case role == core.RoleAssistant:
		origin = "agent"
	case len(parts) > 0 && !slices.ContainsFunc(parts, func(p core.Part) bool { _, ok := p.(core.ToolResult); return !ok }):
		origin = "tool"
	case kind != core.KindOriginal:
		origin = "injected"
	}
	content := make([][]byte, len(parts))
	for i, p := range parts {
		content[i] = apimessage.AppendBlock(nil, p)
		if _, ok := p.(core.Text); ok {
			content[i] = rawjson.SetField(content[i], "origin", rawjson.AppendQuote(nil, origin))
		}
	}
	return rawjson.Append(nil, `{"role":?,"origin":?,"content":?}`, string(apimessage.Speaker(role)), origin, rawjson.Array(content))
}

// convertFile writes a conversation of another format as a recorded session.
func convertFile(f *codec.File, out *codec.Output) error {
	turns, system := convert.Turns(f, &apimessage.Anthropic, out)
	raw := rawjson.Append(nil, `{"source":?`, cmp.Or(f.Origin, "condense"))
	if f.Model != "" {
		raw = rawjson.Append(raw, `,"model":?`, f.Model)
	}
	if system != "" {
		raw = rawjson.Append(raw, `,"system":?`, system)
	}
	messages := plain.Each(apimessage.Messages(turns), func(m apimessage.Turn) []byte { return encode(m.Role, m.Kind, m.Parts) })
	out.Add(rawjson.Append(raw, `,"messages":?}`, rawjson.Array(messages)), []byte("\n"))
	return nil
}
