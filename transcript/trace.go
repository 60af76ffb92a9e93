package transcript

import (
	"github.com/condensehq/condense/core"
)

var traceCodec = Codec{
	Name:    "trace",
	Doc:     "a recorded session: an object with source and messages in Anthropic's shape, each with an origin",
	Vendor:  "", // recorded with models of every maker
	Detect:  detectTrace,
	Read:    readAnthropic,
	Write:   writeTrace,
	Convert: convertTrace,
}

func writeTrace(f *File, out *Output) error {
	writeRecords(f, out, f.View(), false, func(m *core.Message, was []byte) []byte {
		if was != nil {
			return patchMessage(was, m.Parts)
		}
		return encodeTrace(m.Role, m.Kind, m.Parts)
	})
	return nil
}

// traceFields are those of a recorded session. One without messages has no others.
var traceFields = set("id", "source", "agent", "mode", "model", "system", "repo", "license", "prov", "messages",
	"compactions", "stats", "reward", "roo_modes")

func detectTrace(data []byte) bool {
	source, strange, messages := false, false, []byte(nil)
	for k, v := range fields(data) {
		switch string(k) {
		case "source":
			source = isString(v)
		case "messages":
			messages = v
		}
		strange = strange || !traceFields[string(k)]
	}
	if !source || !isArray(messages) || !ends(messages) {
		return false
	}
	for m := range elements(messages) {
		return field(m, "origin") != nil && field(m, "content") != nil
	}
	return !strange
}

// encodeTrace returns a new message with its origin: what nobody typed is "injected".
func encodeTrace(role core.Role, kind core.Kind, parts []core.Part) []byte {
	origin := "human"
	switch {
	case role == core.RoleAssistant:
		origin = "agent"
	case len(parts) > 0 && onlyResults(parts):
		origin = "tool"
	case kind != core.KindOriginal:
		origin = "injected"
	}
	out := appendQuoted([]byte(`{"role":`), string(speaker(role)))
	out = appendQuoted(append(out, `,"origin":`...), origin)
	out = append(out, `,"content":[`...)
	for i, p := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendBlock(out, p)
		if _, ok := p.(core.Text); ok {
			out = appendQuoted(append(out[:len(out)-1], `,"origin":`...), origin)
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

// convertTrace writes what convertAnthropic would, as a recorded session.
func convertTrace(f *File, out *Output) error {
	turns, system := convert(f, &anthropicWire, out)
	out.AddString(`{"source":`)
	source := f.Origin
	if source == "" {
		source = "condense"
	}
	out.Add(appendQuoted(nil, source))
	if f.Model != "" {
		out.AddString(`,"model":`)
		out.Add(appendQuoted(nil, f.Model))
	}
	if system != "" {
		out.AddString(`,"system":`)
		out.Add(appendQuoted(nil, system))
	}
	out.AddString(`,"messages":[`)
	for i, m := range messagesOf(turns) {
		if i > 0 {
			out.AddString(",")
		}
		out.Add(encodeTrace(m.role, m.kind, m.parts))
	}
	out.AddString("]}\n")
	return nil
}
